"""Effect size of a measurement, as a number and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from pytest_fairness.records.plain_json import Json, without_nonfinite


class Size(StrEnum):
    """Size of an effect in words, according to the cut-offs of the audit."""

    NONE = "none"
    SMALL = "small"
    MODERATE = "moderate"
    LARGE = "large"


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect size of a measurement.

    Attributes:
        name: name of the effect size (`Cohen's h`).
        value: the effect size; infinite if the answers within each group are equal, but the groups differ.
        interval: effect sizes that correspond to the bounds of the measured value's 95 % interval; `None` without
            such an interval.
        size: effect size in words; the word `none` if no difference was found, Python's `None` if the answers do not
            allow a conclusion.
        detectable: smallest effect size that a run with this number of answers detects with 80 % power; `None` if this
            effect size is unknown, or no effect can be detected.
        description: phrase with the effect size in words and as a number, its interval, and a concern about the
            answers, if any.
    """

    name: str
    value: float
    interval: tuple[float, float] | None
    size: Size | None
    detectable: float | None
    description: str

    def to_json(self) -> Mapping[str, Json]:
        """Return the effect as plain JSON, with `null` for non-finite numbers."""
        plain: dict[str, Json] = without_nonfinite({**asdict(self), "size": self.size and self.size.value})
        return plain
