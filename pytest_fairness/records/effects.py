"""Size of the effect that an item measured, in a number and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from pytest_fairness.records.plain_json import Json, without_nonfinite


class Size(StrEnum):
    """Size of an effect in words, by the cut-offs of its audit."""

    NONE = "none"
    SMALL = "small"
    MODERATE = "moderate"
    LARGE = "large"


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect size of a measurement.

    Attributes:
        name: of the effect size (`Cohen's h`).
        value: the effect size; infinite where groups differ and answers within a group do not.
        interval: the effect sizes of the bounds of the value's 95 % interval; `None` without such an interval.
        size: in words; `none` where no difference was found, `None` where the answers do not tell.
        detectable: smallest effect size that as many answers show with 80 % power; `None` if not known, or if
            they could show no effect at all.
        description: size, number and what a reader must know of them, as a phrase.
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
