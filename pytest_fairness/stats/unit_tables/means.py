"""Statistics of one or two column means: means, differences of shares, ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups.spreads import largest_difference
from pytest_fairness.stats.intervals import normal, proportions
from pytest_fairness.stats.unit_tables.statistic import TAIL, Sample, UnitStatistic


@dataclass(frozen=True)
class Mean(UnitStatistic):
    """The mean of the first column.

    Attributes:
        higher_is_better: whether a smaller mean is worse.
    """

    higher_is_better: bool = False

    def value(self, means: Floats) -> Floats:
        """Return the (...) means of the first column."""
        return means[..., 0]

    def loss_gradient(self, means: Floats) -> Floats:
        """Return 1 or −1."""
        return np.array([-1.0 if self.higher_is_better else 1.0])


@dataclass(frozen=True)
class DistanceFromMiddle(UnitStatistic):
    """The mean of a single column on a scale whose middle is fair; the groups are the two halves of the scale.

    Attributes:
        whole: largest value of the scale, whose smallest is 0.
        names: of the upper and of the lower half.
    """

    whole: float
    names: tuple[str, str]
    pairs = ((0, 1),)
    distance = largest_difference(((0, 1),))

    def value(self, means: Floats) -> Floats:
        """Return the (...) means of the column."""
        return means[..., 0]

    def loss_gradient(self, means: Floats) -> Floats:
        """Return 1 above the middle and −1 below it."""
        return self.difference_gradient(means)

    def groups(self, means: Floats) -> Floats:
        """Return (..., 2) halves of the value and of its complement; their difference is the distance."""
        scores = means[..., 0]
        return np.stack([scores, self.whole - scores], axis=-1) / 2

    def group_gradients(self, means: Floats) -> Floats:
        """Return the gradients of both halves."""
        return np.array([[0.5], [-0.5]])

    def group_names(self, columns: Sequence[str]) -> Sequence[str]:
        """Return the names of both halves."""
        return self.names


class ShareDifference(UnitStatistic):
    """The first column's share less the second column's, both of the same units; only values above 0 are bad."""

    def value(self, means: Floats) -> Floats:
        """Return the (...) differences."""
        difference: Floats = means[..., 0] - means[..., 1]
        return difference

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the gradient of the difference."""
        return np.array([1.0, -1.0])

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return Agresti and Min's interval, which holds if few units differ; see `proportions.paired_interval`."""
        return proportions.paired_interval(sample.rows[:, 0] - sample.rows[:, 1], normal.quantile(1 - TAIL))


class TwoSidedShareDifference(ShareDifference):
    """The first column's share less the second column's; values on either side of 0 are bad."""

    pairs = ((0, 1),)
    distance = largest_difference(((0, 1),))

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the gradient of the difference towards the side of the larger share."""
        return self.difference_gradient(means)


class Ratio(UnitStatistic):
    """The ratio of the first two columns' means, of which only values above 0 are bad."""

    def value(self, means: Floats) -> Floats:
        """Return the (...) ratios; NaN for 0 / 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio: Floats = means[..., 0] / means[..., 1]
        return ratio

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the gradient of the ratio, below 0 as above it."""
        return np.array([1 / means[1], -means[0] / means[1] ** 2])

    def change(self, current: Floats, baseline: Floats, moves: Floats) -> float:
        """Return the change of the part above 0."""
        return float(np.maximum(self.value(current), 0.0) - np.maximum(self.value(baseline), 0.0))
