"""Description of an audit: name, unit, direction, tolerance and the explanation that reports print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from pytest_fairness.audits.effects import EffectSize
from pytest_fairness.records import Json, without_nonfinite

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Range = tuple[float, float]
"""Smallest and largest possible number."""
Numbers = TypeVar("Numbers", float, "NDArray[np.float64]")


class Direction(StrEnum):
    """Direction in which an audit's values are better: lower, higher, near zero or near fifty."""

    LOWER = "lower"
    HIGHER = "higher"
    ZERO = "zero"
    FIFTY = "fifty"

    def loss(self, value: Numbers) -> Numbers:
        """Return the loss of a value, or of each value of an array: a number that is larger for a worse value."""
        match self:
            case Direction.LOWER:
                return value
            case Direction.HIGHER:
                return -value
            case Direction.ZERO:
                return abs(value)
            case Direction.FIFTY:
                return abs(value - 50)


@dataclass(frozen=True, kw_only=True)
class AuditInfo:
    """Description of an audit method.

    Attributes:
        name: name in probe files (`jsd`).
        title: name in plain words.
        question: question that the audit answers.
        formula: how the value is computed.
        meaning: how to read the value.
        source: publications that describe the method.
        better: whether lower or higher values, or values near 0 or 50, are better.
        unit: unit of the value; empty for a share or a score.
        tolerance: largest acceptable change from the baseline, unless the probe sets another; NaN if the probe must set
            it.
        tolerance_of_value: whether the tolerance has the unit of the value, so that a chart of values can show the
            tolerance.
        value_range: smallest and largest possible value; a baseline with a value outside this range is invalid.
        limit_range: smallest and largest limit that a probe may set; by default `value_range`.
        best_is_decidable: whether a system can keep the best possible limit in every run, as with a share of mistakes,
            which is 0 for a perfect system. If not, the value differs from the best one by chance.
        worst: worst possible value of an audit of shares or bounded scores: if a share of a group's answers is unread,
            these answers can move the value by this share of the way to `worst`. `None` for texts, lists and numbers
            without bounds; see `audits.unread`.
        best: value that means no bias; smaller values count as this value. `None` if there is no such value.
        charts: name of the chart that reports draw for a detail of the measurement, by the detail's name;
            `reports/charts/` lists the charts. A detail that maps names to mean values needs no entry: it gets a
            default chart.
        effect: effect size with its cut-offs in words; `None` if the audit has none.
        no_effect_size: reason why the audit has no effect size, for reports.
    """

    name: str
    title: str
    question: str = ""
    formula: str = ""
    meaning: str = ""
    source: str = ""
    better: Direction
    unit: str = ""
    tolerance: float
    tolerance_of_value: bool = True
    value_range: Range
    limit_range: Range | None = None
    best_is_decidable: bool = False
    worst: float | None = None
    best: float | None = None
    charts: Mapping[str, str] = field(default_factory=dict)
    effect: EffectSize | None = None
    no_effect_size: str = ""

    @property
    def limits(self) -> Range:
        """Return the smallest and the largest limit that a probe may set."""
        return self.limit_range or self.value_range

    @property
    def undecidable_limit(self) -> float | None:
        """Return the limit that no number of answers can show to be kept: the value of equal groups, if there is one.

        By chance, the values of about half of all fair systems, or of all of them, are worse than this limit.
        """
        return None if self.best_is_decidable else self._best_value

    @property
    def least_loss(self) -> float:
        """Return the loss of the best possible value: that of equal groups, or of no mistakes."""
        return self.loss(self._best_value)

    @property
    def _best_value(self) -> float:
        match self.better:
            case Direction.LOWER:
                return self.limits[0]
            case Direction.HIGHER:
                return self.limits[1]
            case Direction.ZERO:
                return 0.0
            case Direction.FIFTY:
                return 50.0

    def loss(self, value: Numbers) -> Numbers:
        """Return the loss as `Direction.loss` does; a value below `best` has the loss of `best`."""
        if self.best is None:
            return self.better.loss(value)
        # Deferred, so that audits can be listed without importing numpy.
        import numpy as np

        bounded: Numbers = np.maximum(value, self.best)
        return self.better.loss(bounded)

    def to_json(self) -> Mapping[str, Json]:
        """Return the description for the report document."""
        return self._json

    @cached_property
    def _json(self) -> Mapping[str, Json]:
        plain = asdict(replace(self, effect=None))
        described: dict[str, Json] = without_nonfinite({**plain, "effect": self.effect and self.effect.to_json()})
        return described
