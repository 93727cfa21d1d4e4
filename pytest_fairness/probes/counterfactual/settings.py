"""Settings of a counterfactual probe: the possible answers, which are choices or numbers, and the true answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pytest_fairness.probes import checks
from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.diagnostics import Diagnostic, quoted, raise_diagnostics, suggestion
from pytest_fairness.probes.field_types import Line
from pytest_fairness.probes.structured import StructuredAnswerSettings
from pytest_fairness.records import CALLED, NOT_CALLED, NumberFormat


class NumberSettings(ProbeModel):
    """Settings of answers that are numbers, such as scores or salaries."""

    min: float = Field(description="Smallest possible number; a smaller number is unreadable.")
    max: float = Field(description="Largest possible number; a larger number is unreadable.")
    unit: Line | None = Field(
        default=None,
        description="Unit of the numbers, such as `points`, `USD` or `EUR per month`. A number with another unit is "
        "unreadable.",
    )
    name: Line | None = Field(
        default=None,
        description="Name of the number in the answers: a key in JSON, and a label in prose (`Salary: 85000`). "
        "Default: common names, such as `score` and `answer`.",
    )
    ranges: Literal["unreadable", "middle"] = Field(
        default="unreadable", description='How "80 to 90" is read: not at all, or as the middle, 85.'
    )
    decimal: Literal[".", ","] | None = Field(
        default=None, description="Decimal mark of the answers. Default: recognised in each number."
    )

    @field_validator("max")
    @classmethod
    def _is_above_min(cls, largest: float, info: ValidationInfo) -> float:
        smallest = info.data.get("min", -math.inf)
        if smallest >= largest:
            raise_diagnostics([Diagnostic((), f"`max` must be larger than `min` ({smallest:g})")])
        return largest

    @property
    def format(self) -> NumberFormat:
        """The settings as a `NumberFormat`, by which answers are parsed."""
        return NumberFormat(self.min, self.max, self.unit or "", self.name or "", self.ranges, self.decimal)


def _default_choices(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the default choices; `settings` holds `tool` and `path`, which pydantic validates before `choices`."""
    return (CALLED, NOT_CALLED) if settings.get("tool") and not settings.get("path") else ("yes", "no")


class RecordAnswerSettings(StructuredAnswerSettings):
    """Settings of the valid answers (choices, numbers or texts), and of the way answers are read."""

    choices: tuple[Line, ...] = Field(
        default_factory=_default_choices,
        min_length=2,
        description="The valid answers. Default: yes and no; for a `tool` without `path`, called and not called.",
    )
    positive: Line | None = Field(default=None, description="The favourable choice. Default: the first choice.")
    judge: bool = Field(
        default=False,
        description="Let a judge model (ini fairness_judge) classify the answers; for answers in free text.",
    )
    votes: int = Field(
        default=3, ge=1, le=99, description="Number of votes of the judge model on each answer; must be odd."
    )

    number: NumberSettings | None = Field(
        default=None, description="Answers are numbers, such as scores; in place of `choices`."
    )
    text: bool = Field(
        default=False, description="Answers are free texts, which the audit `score` measures; in place of `choices`."
    )

    @field_validator("choices")
    @classmethod
    def _are_different(cls, choices: tuple[str, ...]) -> tuple[str, ...]:
        located = (((place,), choice) for place, choice in enumerate(choices))
        raise_diagnostics(checks.repeats(located, "choices must differ in more than letter case"))
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
    def _can_decide(cls, votes: int, info: ValidationInfo) -> int:
        if votes % 2 == 0:
            message = "`votes` must be odd, so that two choices cannot get the same number of votes"
            raise_diagnostics([Diagnostic((), message)])
        if not info.data.get("judge", True):
            raise_diagnostics([Diagnostic((), "`votes` needs a judge: add `judge: true`", at_key=True)])
        return votes

    @property
    def is_call(self) -> bool:
        """Return whether the decision is the call of a tool."""
        return self.tool is not None and self.path is None

    @model_validator(mode="after")
    def _have_one_form(self) -> Self:
        """Check that the settings describe only one form of answers."""
        form = "number" if self.number else "text" if self.text else None
        others = {"choices", "positive", "judge", "votes", *(("text",) if self.number and self.text else ())}
        both = self.model_fields_set & others if form else set()
        found = [
            Diagnostic((name,), f"{form}s have no `{name}`: remove `{name}`, or remove `{form}`", at_key=True)
            for name in sorted(both)
        ]
        if self.is_call:
            message = "the decision is whether `tool` is called: remove `{}`, or add the `path` of an argument"
            own = self.model_fields_set & {"choices", "number", "text", "judge"}
            found += [Diagnostic((name,), message.format(name), at_key=True) for name in sorted(own)]
        elif self.judge and self.path is not None:
            message = "a judge model reads free text: remove `judge`, or remove `path`"
            found.append(Diagnostic(("judge",), message, at_key=True))
        raise_diagnostics(found)
        return self


class TruthSettings(ProbeModel):
    """Settings of the true answers about the records."""

    column: Line = Field(default="truth", description="The records' column with the true answer.")
    positive: Line = Field(description="The value of `column` for which the positive choice is right.")
