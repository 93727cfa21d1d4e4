"""Settings of a counterfactual probe: the choices of the answers, and the truth about the records."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from pytest_fairness.probes import checks
from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.diagnostics import Diagnostic, quoted, raise_diagnostics, suggestion
from pytest_fairness.probes.field_types import Line


class ChoiceSettings(ProbeModel):
    """Settings of the valid answers (choices), and of the way answers are read."""

    choices: tuple[Line, ...] = Field(default=("yes", "no"), min_length=2, description="The valid answers.")
    positive: Line | None = Field(default=None, description="The favourable choice. Default: the first one.")
    judge: bool = Field(
        default=False,
        description="Let a judge model (ini fairness_judge) classify the answers; for answers in free text.",
    )
    votes: int = Field(
        default=3, ge=1, le=99, description="Number of votes of the judge model on each answer; must be odd."
    )

    @field_validator("choices")
    @classmethod
    def _are_different(cls, choices: tuple[str, ...]) -> tuple[str, ...]:
        named = (((place,), choice) for place, choice in enumerate(choices))
        raise_diagnostics(checks.repeats(named, "choices must differ in more than letter case"))
        return choices

    @field_validator("positive")
    @classmethod
    def _is_a_choice(cls, positive: str | None, info: ValidationInfo) -> str | None:
        choices = info.data.get("choices", (positive,))
        if positive is not None and positive not in choices:
            message = f"{quoted(positive)} is not one of the choices{suggestion(positive, choices)}"
            raise_diagnostics([Diagnostic((), message)])
        return positive

    @field_validator("votes")
    @classmethod
    def _decide(cls, votes: int, info: ValidationInfo) -> int:
        if votes % 2 == 0:
            message = "`votes` must be odd, so that two choices cannot get the same number of votes"
            raise_diagnostics([Diagnostic((), message)])
        if not info.data.get("judge", True):
            raise_diagnostics([Diagnostic((), "`votes` needs a judge: add `judge: true`", at_key=True)])
        return votes


class TruthSettings(ProbeModel):
    """Settings of the truth about the records."""

    column: Line = Field(default="truth", description="The records' column with the true answer.")
    positive: Line = Field(description="The value of this column for which the positive choice is right.")
