"""Statistics of one or two column means: mean, difference between shares, and ratio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups.distance_measures import largest_difference
from pytest_fairness.stats.intervals import normal, proportions
from pytest_fairness.stats.unit_tables.statistic import TAIL, Sample, UnitStatistic


@dataclass(frozen=True)
class Mean(UnitStatistic):
    """The mean of the first column.

    Attributes:
        higher_is_better: whether a larger mean is better; otherwise a smaller mean is better.
    """

    higher_is_better: bool = False

    def value(self, means: Floats) -> Floats:
        """Return the mean of the first column, for each row of `means`."""
        return means[..., 0]

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the derivative of the loss: −1 if a larger mean is better, otherwise 1."""
        return np.array([-1.0 if self.higher_is_better else 1.0])


@dataclass(frozen=True)
class DistanceFromMiddle(UnitStatistic):
    """The mean of a single column of scores from 0 to `maximum`; the middle of this scale means no preference.

    The two halves of the scale are compared like two groups, with the numbers score / 2 and (`maximum` − score) / 2.

    Attributes:
        maximum: largest value of the scale.
        names: names of the two groups; the first group is preferred if the mean is above the middle.
    """

    maximum: float
    names: tuple[str, str]
    pairs = ((0, 1),)
    distance = largest_difference(((0, 1),))

    def value(self, means: Floats) -> Floats:
        """Return the mean of the column, for each row of `means`."""
        return means[..., 0]

    def groups(self, means: Floats) -> Floats:
        """Return half of the score, and half of its complement (`maximum` − score), as two groups; shape (..., 2).

        Their difference is the distance of the score from the middle, score − `maximum` / 2.
        """
        scores = means[..., 0]
        return np.stack([scores, self.maximum - scores], axis=-1) / 2

    def group_gradients(self, means: Floats) -> Floats:
        """Return the gradients of the two groups' numbers, 0.5 and −0.5; shape (2, 1)."""
        return np.array([[0.5], [-0.5]])

    def group_names(self, columns: Sequence[str]) -> Sequence[str]:
        """Return the names of the two groups."""
        return self.names


class ShareDifference(UnitStatistic):
    """The share in the first column minus the share in the second; a larger value is worse."""

    def value(self, means: Floats) -> Floats:
        """Return the first mean minus the second mean, for each row of `means`."""
        difference: Floats = means[..., 0] - means[..., 1]
        return difference

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the gradient of the difference, 1 and −1."""
        return np.array([1.0, -1.0])

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return Agresti and Min's interval, valid even if few units differ; see `proportions.paired_interval`."""
        return proportions.paired_interval(sample.rows[:, 0] - sample.rows[:, 1], normal.quantile(1 - TAIL))


class TwoSidedShareDifference(ShareDifference):
    """The share in the first column minus the share in the second; a value further from 0 is worse."""

    pairs = ((0, 1),)
    distance = largest_difference(((0, 1),))

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the gradient of the absolute difference."""
        return UnitStatistic.loss_gradient(self, means)


class Ratio(UnitStatistic):
    """The mean of the first column divided by the mean of the second; a value below 0 has the loss 0."""

    def value(self, means: Floats) -> Floats:
        """Return the ratio for each row of `means`; NaN for 0 / 0, and ±infinity if only the second mean is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio: Floats = means[..., 0] / means[..., 1]
        return ratio

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the gradient of the ratio, even for a ratio below 0, whose loss is 0."""
        return np.array([1 / means[1], -means[0] / means[1] ** 2])

    def change(self, current: Floats, baseline: Floats, moves: Floats) -> float:
        """Return the change of the ratio, counting ratios below 0 as 0."""
        return float(np.maximum(self.value(current), 0.0) - np.maximum(self.value(baseline), 0.0))
