"""Form of a probe's answers, and the models that classify the answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_fairness.probes.keys.refusal_settings import RefusalSettings
from pytest_fairness.records import Judging, NumberFormat, Selection


@dataclass(frozen=True)
class AnswerReading:
    """Form of a probe's answers, and the models that classify them.

    Attributes:
        choices: valid answers; empty if answers are not choices, or if a judge model classifies the answers.
        number: number that answers state; `None` if answers are no numbers.
        selection: part of an answer that is measured; `None` if it is the whole answer.
        judging: instructions for the judge model that classifies the answers; `None` without a judge model.
        refusals: settings of the recognition of refusals.
    """

    choices: tuple[str, ...] = ()
    number: NumberFormat | None = None
    selection: Selection | None = None
    judging: Judging | None = None
    refusals: RefusalSettings = field(default_factory=RefusalSettings)

    @property
    def judge_votes(self) -> int:
        """Return the number of votes of the judge model on each answer; 0 without a judge model."""
        if self.judging is not None:
            return self.judging.votes
        return self.refusals.votes if self.refusals.by == "judge" else 0
