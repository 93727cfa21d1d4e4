"""Statistics that are distances among column means: largest gap, standard deviation, mean absolute deviation."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups import gaps
from pytest_fairness.stats.groups.distance_measures import (
    MEAN_DEVIATION,
    STANDARD_DEVIATION,
    evenness,
    largest_difference,
    value_range,
    value_sd,
)
from pytest_fairness.stats.intervals import normal, proportions
from pytest_fairness.stats.unit_tables.statistic import TAIL, Sample, UnitStatistic


class LargestGap(UnitStatistic):
    """The largest minus the smallest column mean.

    Args:
        columns: number of columns, at least two.
    """

    def __init__(self, columns: int) -> None:
        self.pairs = tuple(combinations(range(columns), 2))
        self.distance = largest_difference(self.pairs)

    def value(self, means: Floats) -> Floats:
        """Return the largest minus the smallest mean, for each row of `means`."""
        return value_range(means)

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        """Return one-sided bounds of the gap, from the bounds of all pairs of groups; see `gaps.largest_bounds`."""
        first, second = (np.array(side) for side in zip(*self.pairs, strict=True))
        influence = (sample.rows - sample.rows.mean(axis=0)) @ self.group_gradients(sample.means).T
        deviations = (influence[:, first] - influence[:, second]).std(axis=0, ddof=1)
        errors = deviations / math.sqrt(len(sample.rows))
        if not errors.any():
            errors = np.full(len(errors), sample.least_error)
        groups, degrees = self.groups(sample.means), self.degrees_of_freedom(sample.rows)
        return gaps.largest_bounds(groups[first] - groups[second], errors, alpha, beta, degrees)


class SignedGap(LargestGap):
    """The difference between the two columns whose means differ most: the left column minus the right column."""

    def value(self, means: Floats) -> Floats:
        """Return the signed difference for each row of `means`."""
        earlier_is_higher = means.argmax(axis=-1) <= means.argmin(axis=-1)
        difference = value_range(means)
        return np.where(earlier_is_higher, difference, -difference)

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the 95 % confidence interval of the signed difference.

        For two columns, the interval is Student's t interval. For more columns, the end farther from 0 comes from
        `bounds`. The end nearer to 0 is adjusted for the choice of the pair with the largest difference (Bonferroni).
        """
        value, degrees = float(self.value(sample.means)), self.degrees_of_freedom(sample.rows)
        error = self.standard_error(sample)
        if len(self.pairs) == 1:
            return normal.interval(value, error, degrees_of_freedom=degrees)
        _, upper = self.bounds(sample, TAIL, TAIL)
        lower = abs(value) - normal.quantile(1 - TAIL / len(self.pairs), degrees) * error
        return (lower, upper) if value >= 0 else (-upper, -lower)


class SignedShareGap(SignedGap):
    """The signed difference between the two shares that differ most; see `SignedGap`."""

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the 95 % confidence interval; for two columns, the interval of `ShareDifference` (Agresti and Min)."""
        if len(self.pairs) == 1:
            return proportions.paired_interval(sample.rows[:, 0] - sample.rows[:, 1], normal.quantile(1 - TAIL))
        return super().interval(sample)


class ShareGap(LargestGap):
    """The largest gap between groups in a rate; if there are several rates, the rate with the largest gap counts.

    A rate is a number of hits divided by a size. The first half of the columns holds the hits of each rate and group,
    and the second half holds the sizes.

    Args:
        rates: number of rates; each half of the columns is ordered by rate, then by group.
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
        """Return the gap for each row of `means`; NaN if fewer than two groups have a defined rate."""
        rates = self.groups(means)
        return gaps.gap(rates) if self._rates == 1 else gaps.odds_gap(rates)

    def groups(self, means: Floats) -> Floats:
        """Return the rate of each group, shape (..., rates × groups); NaN for a group of size 0."""
        cells = means.shape[-1] // 2
        return gaps.shares(means[..., :cells], means[..., cells:])

    def group_gradients(self, means: Floats) -> Floats:
        """Return the gradient of each group's rate, hits / size; 0 for a group of size 0."""
        cells = len(means) // 2
        hits, sizes = means[:cells], means[cells:]
        inverse = np.divide(1.0, sizes, out=np.zeros(cells), where=sizes > 0)
        return np.hstack([np.diag(inverse), np.diag(-hits * inverse**2)])

    def degrees_of_freedom(self, rows: Floats) -> float:
        """Return the size of the smallest group minus 1, at least 1; the smallest group's rate is the least precise."""
        sizes = rows[:, rows.shape[1] // 2 :].sum(axis=0)
        return float(max(1.0, sizes[sizes > 0].min() - 1))

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        """Return one-sided bounds of the gap, from Newcombe's interval of each pair of groups (1998, method 10).

        As in `gaps.largest_bounds`, each pair has an equal part of `alpha`, but the whole of `beta`.
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
        """Return the standard deviation for each row of `means`."""
        return value_sd(means)

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        """Return one-sided bounds of the standard deviation; see `gaps.standard_deviation_bounds`."""
        covariance = np.cov(sample.rows.T) / len(sample.rows)
        return gaps.standard_deviation_bounds(sample.means, covariance, alpha, beta, len(sample.rows) - 1)


class Evenness(StandardDeviation):
    """1 minus the mean absolute deviation of the column means (PAFS); a smaller value is worse."""

    distance = MEAN_DEVIATION

    def value(self, means: Floats) -> Floats:
        """Return the evenness for each row of `means`."""
        return evenness(means)

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        """Return one-sided bounds of the loss, which is minus the evenness.

        The bounds of the standard deviation are scaled to the mean absolute deviation.
        """
        deviation = float(value_sd(sample.means))
        scale = (1 - float(evenness(sample.means))) / deviation if deviation else 1.0
        lower, upper = super().bounds(sample, alpha, beta)
        return scale * lower - 1, scale * upper - 1

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the two-sided 95 % confidence interval of the evenness; its upper end is at most 1."""
        lower, upper = self.bounds(sample, TAIL, TAIL)
        return -upper, -lower
