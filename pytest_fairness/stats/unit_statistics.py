"""Statistics of the column means of a table by unit, each with its gradient, its bounds and the groups it compares.

A unit is what is resampled: an entity, a record, a sentence. A table holds one row a unit and one column a quantity.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats import gaps, normal, paired, proportions
from pytest_fairness.stats.spreads import (
    MEAN_DEVIATION,
    STANDARD_DEVIATION,
    Pairs,
    Spread,
    evenness,
    furthest,
    largest_difference,
    value_range,
    value_spread,
)

Floats = NDArray[np.float64]

TAIL = 0.025
"""Either tail of a 95 % interval."""


@dataclass(frozen=True)
class Sample:
    """The rows of a table, as far as a statistic needs them.

    Attributes:
        rows: (units, columns) numbers of the complete units.
        means: (columns,) mean of each column over the units that have a number there.
        least_error: standard error to take where no unit differs from any other, as equal units do not prove that all
            units are equal.
    """

    rows: Floats
    means: Floats
    least_error: float = 0.0


class UnitStatistic(ABC):
    """A statistic of the column means of a table.

    A statistic that is the distance between groups also names the numbers it compares, one a group, and the pairs of
    groups. Such a distance is above 0 by chance alone, so that its standard error does not give its bounds.

    Attributes:
        pairs: the pairs of groups that are compared; empty where the value is no difference of two groups.
        distance: how far the groups are apart, from the groups' numbers; `None` where the value is no distance.
    """

    pairs: Pairs = ()
    distance: Spread | None = None

    @abstractmethod
    def value(self, means: Floats) -> Floats:
        """Return (...) values from (..., columns) means; NaN where the statistic is not defined."""

    @abstractmethod
    def loss_gradient(self, means: Floats) -> Floats:
        """Return the (columns,) gradient of the loss, which grows as the value gets worse, at (columns,) means."""

    @property
    def among_several(self) -> bool:
        """Return whether the value is a distance among several groups, and not a single difference."""
        return self.distance is not None and len(self.pairs) != 1

    def groups(self, means: Floats) -> Floats:
        """Return the (..., groups) numbers that are compared, from (..., columns) means."""
        return means

    def group_gradients(self, means: Floats) -> Floats:
        """Return the (groups, columns) gradients of the groups' numbers at (columns,) means."""
        return np.eye(len(means))

    def group_names(self, columns: Sequence[str]) -> Sequence[str]:
        """Return the names of the groups, from the names of the columns."""
        return columns

    def degrees_of_freedom(self, rows: Floats) -> float:
        """Return the degrees of freedom of a standard error over complete (units, columns) rows."""
        return float(len(rows) - 1)

    def standard_error(self, sample: Sample) -> float:
        """Return the standard error of the value, by the delta method."""
        centred = sample.rows - sample.rows.mean(axis=0)
        return paired.mean_error(centred @ self.loss_gradient(sample.means)) or sample.least_error

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float] | None:
        """Return one-sided bounds of the loss, or `None` if the standard error gives them.

        Args:
            sample: the rows.
            alpha: chance that the lower bound is above the truth.
            beta: chance that the upper bound is below the truth.
        """
        return None

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the two-sided 95 % interval of the value."""
        bounds = self.bounds(sample, TAIL, TAIL)
        if bounds is not None:
            return bounds
        value, degrees = float(self.value(sample.means)), self.degrees_of_freedom(sample.rows)
        return normal.interval(value, self.standard_error(sample), degrees_of_freedom=degrees)

    def change(self, current: Floats, baseline: Floats, moves: Floats) -> float:
        """Return the estimated change of the loss between two runs.

        Args:
            current, baseline: (columns,) means of either run.
            moves: (units,) by how much each unit moved along the loss gradient.
        """
        return float(moves.mean())


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
        return _difference_gradient(self, means)

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
        """Return Agresti and Min's interval, which also holds if few units differ; see `paired.share_interval`."""
        return paired.share_interval(sample.rows[:, 0] - sample.rows[:, 1], normal.quantile(1 - TAIL))


class TwoSidedShareDifference(ShareDifference):
    """The first column's share less the second column's; values on either side of 0 are bad."""

    pairs = ((0, 1),)
    distance = largest_difference(((0, 1),))

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the gradient of the difference towards the side of the larger share."""
        return _difference_gradient(self, means)


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
        now, then = (np.maximum(self.value(means), 0.0) for means in (current, baseline))
        return float(now - then)


class LargestGap(UnitStatistic):
    """The largest minus the smallest column mean.

    Args:
        columns: number of columns, at least two.
    """

    def __init__(self, columns: int) -> None:
        self.pairs = tuple(combinations(range(columns), 2))
        self.distance = largest_difference(self.pairs)

    def value(self, means: Floats) -> Floats:
        """Return the (...) ranges of the columns."""
        return value_range(means)

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the gradient of the difference between the two groups that are furthest apart."""
        return _difference_gradient(self, means)

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        """Return bounds from those of all pairs; see `gaps.largest_bounds`."""
        first, second = (np.array(side) for side in zip(*self.pairs, strict=True))
        influence = (sample.rows - sample.rows.mean(axis=0)) @ self.group_gradients(sample.means).T
        spread = (influence[:, first] - influence[:, second]).std(axis=0, ddof=1)
        errors = spread / math.sqrt(len(sample.rows))
        if not errors.any():
            errors = np.full(len(errors), sample.least_error)
        groups, degrees = self.groups(sample.means), self.degrees_of_freedom(sample.rows)
        return gaps.largest_bounds(groups[first] - groups[second], errors, alpha, beta, degrees)


class SignedGap(LargestGap):
    """The largest difference between two columns' means, above 0 where the earlier column has the larger mean."""

    def value(self, means: Floats) -> Floats:
        """Return the (...) signed differences."""
        earlier_is_higher = means.argmax(axis=-1) <= means.argmin(axis=-1)
        difference = value_range(means)
        return np.where(earlier_is_higher, difference, -difference)

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the interval on the side of the value; of two columns Agresti and Min's, as in `ShareDifference`."""
        if len(self.pairs) == 1:
            return paired.share_interval(sample.rows[:, 0] - sample.rows[:, 1], normal.quantile(1 - TAIL))
        value, degrees = float(self.value(sample.means)), self.degrees_of_freedom(sample.rows)
        _, upper = self.bounds(sample, TAIL, TAIL)
        lower = abs(value) - normal.quantile(1 - TAIL / len(self.pairs), degrees) * self.standard_error(sample)
        return (lower, upper) if value >= 0 else (-upper, -lower)


class ShareGap(LargestGap):
    """The largest gap between groups in a rate; of several rates the largest of their gaps.

    The first half of the columns holds the hits of each rate of each group, the second half the sizes.

    Args:
        rates: number of rates; the columns of a half are ordered by rate, then by group.
        groups: number of groups.
    """

    def __init__(self, rates: int, groups: int) -> None:
        super().__init__(groups)
        self.pairs = tuple(
            (rate * groups + first, rate * groups + second)
            for rate in range(rates)
            for first, second in combinations(range(groups), 2)
        )
        self.distance = largest_difference(self.pairs)
        self._rates = rates

    def value(self, means: Floats) -> Floats:
        """Return the (...) gaps; NaN where no rate is defined for two groups."""
        rates = self.groups(means)
        return gaps.gap(rates) if self._rates == 1 else gaps.odds_gap(rates)

    def groups(self, means: Floats) -> Floats:
        """Return the (..., rates × groups) shares; NaN where a group has no size."""
        cells = means.shape[-1] // 2
        return gaps.shares(means[..., :cells], means[..., cells:])

    def group_gradients(self, means: Floats) -> Floats:
        """Return the gradients of hits over sizes; 0 where a share is not defined."""
        cells = len(means) // 2
        hits, sizes = means[:cells], means[cells:]
        inverse = np.divide(1.0, sizes, out=np.zeros(cells), where=sizes > 0)
        return np.hstack([np.diag(inverse), np.diag(-hits * inverse**2)])

    def degrees_of_freedom(self, rows: Floats) -> float:
        """Return the degrees of freedom of the smallest group, whose share is known least."""
        sizes = rows[:, rows.shape[1] // 2 :].sum(axis=0)
        return float(max(1.0, sizes[sizes > 0].min() - 1))

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        """Return bounds from Newcombe's interval of each pair of groups (1998, method 10).

        As in `gaps.largest_bounds`, all pairs share `alpha`, and each has the whole of `beta`.
        """
        cells = sample.rows.shape[1] // 2
        hits, sizes = sample.rows[:, :cells].sum(axis=0), sample.rows[:, cells:].sum(axis=0)
        pairs = [pair for pair in self.pairs if all(sizes[cell] for cell in pair)]
        below, above = normal.quantile(1 - alpha / len(pairs)), normal.quantile(1 - beta)
        lower, upper = 0.0, 0.0
        for pair in pairs:
            low, high = sorted(pair, key=lambda cell: hits[cell] / sizes[cell])
            counts = float(hits[high]), int(sizes[high]), float(hits[low]), int(sizes[low])
            lower = max(lower, proportions.newcombe(*counts, below)[0])
            upper = max(upper, proportions.newcombe(*counts, above)[1])
        return lower, upper


class StandardDeviation(UnitStatistic):
    """The population standard deviation of the column means (SNSV)."""

    distance = STANDARD_DEVIATION

    def value(self, means: Floats) -> Floats:
        """Return the (...) standard deviations."""
        return value_spread(means)

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the gradient of the standard deviation."""
        return STANDARD_DEVIATION.gradient(means)

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        """Return bounds of a standard deviation of means; see `gaps.spread_bounds`."""
        covariance = np.cov(sample.rows.T) / len(sample.rows)
        return gaps.spread_bounds(sample.means, covariance, alpha, beta, len(sample.rows) - 1)


class Evenness(StandardDeviation):
    """1 minus the mean absolute deviation of the column means (PAFS), of which a smaller value is worse."""

    distance = MEAN_DEVIATION

    def value(self, means: Floats) -> Floats:
        """Return the (...) evennesses."""
        return evenness(means)

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the gradient of the mean absolute deviation."""
        return MEAN_DEVIATION.gradient(means)

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        """Return bounds of the loss, −value: those of a standard deviation, scaled to the mean absolute deviation."""
        spread = float(value_spread(sample.means))
        scale = (1 - float(evenness(sample.means))) / spread if spread else 1.0
        lower, upper = super().bounds(sample, alpha, beta)
        return scale * lower - 1, scale * upper - 1

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the two-sided 95 % interval of the value, which is 1 at most."""
        lower, upper = self.bounds(sample, TAIL, TAIL)
        return -upper, -lower


def _difference_gradient(statistic: UnitStatistic, means: Floats) -> Floats:
    """Return the (columns,) gradient of the largest difference between two groups of a pair."""
    high, low = furthest(statistic.groups(means), statistic.pairs)
    gradients = statistic.group_gradients(means)
    found: Floats = gradients[high] - gradients[low]
    return found
