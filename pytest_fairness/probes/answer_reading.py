"""Form of a probe's answers, and the models that classify the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_fairness.probes.keys.refusal_settings import RefusalSettings
from pytest_fairness.records import AnswerFormat, Judging, NumberFormat, Prompt, Request, Selection


@dataclass(frozen=True)
class AnswerReading:
    """Form of a probe's answers, and the models that classify them.

    Attributes:
        format: format in which answers are parsed.
        likelihood_label: name of a label; answers with this label are likelihoods of sentences. Empty if no answers are
            likelihoods.
        choices: valid answers; empty if answers are not choices, or if a judge model classifies the answers.
        number: range, unit and name of the number that an answer states; `None` if answers are not numbers.
        selection: part of an answer that is measured; `None` if it is the whole answer.
        judging: instructions for the judge model that classifies the answers; `None` without a judge model.
        refusals: settings that say how refusals are recognised.
    """

    format: AnswerFormat = "text"
    likelihood_label: str = ""
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

    def format_of(self, labels: Mapping[str, str]) -> AnswerFormat:
        """Return the format in which answers with these labels are parsed."""
        return "likelihood" if self.likelihood_label in labels else self.format

    def recorded_prompt(self, labels: Mapping[str, str], trial: int) -> Prompt:
        """Return a prompt without a text; its other fields say how a recorded answer with these labels is parsed."""
        request = Request("", answer_format=self.format_of(labels))
        return Prompt(request, labels, trial, self.choices, self.number, self.selection)
