"""Statistics of shares of answers; a unit is a cluster, such as all answers to the questions of a template.

A row holds sums over the answers of a unit. A share is a sum of hits divided by a sum of answers, so that each answer
has the same weight; standard errors are taken over units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups import gaps
from pytest_fairness.stats.groups.distance_measures import largest_difference
from pytest_fairness.stats.unit_tables.means import Ratio
from pytest_fairness.stats.unit_tables.statistic import Sample, UnitStatistic

ROUNDING = 1e-9
"""Largest standard error that counts as 0, because of floating-point errors."""


class RightShare(Ratio):
    """The first column (right answers) divided by the second (all answers); a larger share is better."""

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the gradient of the loss, which is minus the share."""
        return -super().loss_gradient(means)

    def change(self, current: Floats, baseline: Floats, moves: Floats) -> float:
        """Return how much smaller the share is in the current run."""
        return float(self.value(baseline) - self.value(current))

    def standard_error(self, sample: Sample) -> float:
        """Return the standard error of the share, or `sample.least_error` if the error is at most `ROUNDING`."""
        return _error_or_least(super().standard_error(sample), sample)

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the 95 % confidence interval of the share, within 0..1."""
        low, high = super().interval(sample)
        return max(0.0, low), min(1.0, high)


class ShareDifferenceOfAnswers(UnitStatistic):
    """The difference between two shares of answers; a value further from 0 is worse.

    The columns are: hits of the first share, hits of the second share, answers of the first share, answers of the
    second share. Both shares may count the same answers.
    """

    pairs = ((0, 1),)
    distance = largest_difference(((0, 1),))

    def value(self, means: Floats) -> Floats:
        """Return the first share minus the second, for each row of `means`; NaN if a share has no answers."""
        shares = self.groups(means)
        difference: Floats = shares[..., 0] - shares[..., 1]
        return difference

    def groups(self, means: Floats) -> Floats:
        """Return the first and the second share of answers, shape (..., 2)."""
        return gaps.shares(means[..., :2], means[..., 2:])

    def group_gradients(self, means: Floats) -> Floats:
        """Return the gradients of the first and of the second share, shape (2, 4)."""
        hits, sizes = means[:2], means[2:]
        return np.hstack([np.diag(1 / sizes), np.diag(-hits / sizes**2)])

    def group_names(self, columns: Sequence[str]) -> Sequence[str]:
        """Return the names of the columns of hits."""
        return columns[:2]

    def change(self, current: Floats, baseline: Floats, moves: Floats) -> float:
        """Return the change of the difference; a positive change is worse.

        The change has the sign of the mean of `moves`: it is positive if it goes in the direction of the difference in
        both runs together. If a share of one run has no answers, the change is this mean, a linear approximation.
        """
        exact = float(self.value(current) - self.value(baseline))
        if np.isnan(exact):
            return float(moves.mean())
        return math.copysign(exact, moves.mean())

    def standard_error(self, sample: Sample) -> float:
        """Return the standard error of the difference, or `sample.least_error` if the error is at most `ROUNDING`."""
        return _error_or_least(super().standard_error(sample), sample)

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the 95 % confidence interval of the difference, within −1..1."""
        low, high = super().interval(sample)
        return max(-1.0, low), min(1.0, high)


def _error_or_least(error: float, sample: Sample) -> float:
    return error if error > ROUNDING else sample.least_error
