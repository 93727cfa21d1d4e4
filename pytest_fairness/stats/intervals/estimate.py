"""An estimated value with its standard error and confidence interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_fairness.stats.intervals import normal


@dataclass(frozen=True)
class Estimate:
    """An estimated value or change.

    Attributes:
        value: the estimate.
        standard_error: standard error of `value`.
        interval: two-sided 95 % confidence interval of `value`.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]

    @classmethod
    def normal(cls, value: float, standard_error: float) -> Estimate:
        """Return an estimate with the confidence interval of the normal distribution."""
        return cls(value, standard_error, normal.interval(value, standard_error))

    @classmethod
    def difference(cls, first: Estimate, second: Estimate) -> Estimate:
        """Return the difference between two independent estimates, the first minus the second."""
        return cls.normal(first.value - second.value, math.hypot(first.standard_error, second.standard_error))
