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
    value_sd,
)
from pytest_fairness.stats.intervals import normal, proportions
from pytest_fairness.stats.intervals.mean_errors import mean_error
from pytest_fairness.stats.resampling import paired_tests
from pytest_fairness.stats.unit_tables.change import SIGNS
from pytest_fairness.stats.unit_tables.statistic import TAIL, PairTest, Sample, UnitStatistic


class LargestGap(UnitStatistic):
    """The largest difference between the column means of two groups.

    Args:
        columns: number of columns, at least two for each quantity; ordered by quantity, then by group.
        quantities: number of quantities, such as quantiles. Groups are compared by the same quantity only, and the
            quantity with the largest gap counts.
    """

    tests_pairs = True

    def __init__(self, columns: int, quantities: int = 1) -> None:
        groups = columns // quantities
        self.pairs = tuple(
            pair for start in range(0, columns, groups) for pair in combinations(range(start, start + groups), 2)
        )
        self.distance = largest_difference(self.pairs)

    def value(self, means: Floats) -> Floats:
        """Return the largest difference between two groups, for each row of `means`."""
        first, second = self.sides
        largest: Floats = np.abs(means[..., first] - means[..., second]).max(axis=-1)
        return largest

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        """Return one-sided bounds of the gap, from the bounds of all pairs of groups; see `gaps.largest_bounds`."""
        return gaps.largest_bounds(*self._differences(sample), alpha, beta, self.degrees_of_freedom(sample.rows))

    def pair_tests(self, rows: Floats, random: np.random.Generator) -> list[PairTest]:
        """Return the difference of each pair of columns, with Student's t interval and the p-value of `sign_flips`."""
        first, second = self.sides
        differences = rows[:, first] - rows[:, second]
        p_values = paired_tests.sign_flips(differences, SIGNS, random, two_sided=True)
        return [
            PairTest(
                *pair,
                mean := float(own.mean()),
                normal.interval(mean, mean_error(own), degrees_of_freedom=self.degrees_of_freedom(rows)),
                float(p_value),
            )
            for pair, own, p_value in zip(self.pairs, differences.T, p_values, strict=True)
        ]

    def _differences(self, sample: Sample) -> tuple[Floats, Floats]:
        """Return the difference of each pair of groups, and its standard error; both have the shape (pairs,)."""
        first, second = self.sides
        influence = (sample.rows - sample.rows.mean(axis=0)) @ self.group_gradients(sample.means).T
        errors = (influence[:, first] - influence[:, second]).std(axis=0, ddof=1) / math.sqrt(len(sample.rows))
        if not errors.any():
            errors = np.full(len(errors), sample.least_error)
        groups = self.groups(sample.means)
        return groups[first] - groups[second], errors


class SignedGap(LargestGap):
    """The difference between the two groups whose means differ most: the left column minus the right column."""

    def value(self, means: Floats) -> Floats:
        """Return the signed difference for each row of `means`."""
        first, second = self.sides
        differences = means[..., first] - means[..., second]
        largest = np.abs(differences).argmax(axis=-1)[..., None]
        return np.asarray(np.take_along_axis(differences, largest, axis=-1)[..., 0])

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the 95 % confidence interval of the signed difference.

        For two columns, the interval is Student's t interval. For more columns, the end farther from 0 comes from
        `bounds`. The end nearer to 0 is the bound of the pair that is surest to differ, adjusted for the number of
        pairs (Bonferroni).
        """
        value, degrees = float(self.value(sample.means)), self.degrees_of_freedom(sample.rows)
        if len(self.pairs) == 1:
            return normal.interval(value, self.standard_error(sample), degrees_of_freedom=degrees)
        differences, errors = self._differences(sample)
        lower = np.abs(differences) - normal.quantile(1 - TAIL / len(self.pairs), degrees) * errors
        _, upper = self.bounds(sample, TAIL, TAIL)
        return (float(lower.max()), upper) if value >= 0 else (-upper, -float(lower.max()))


class SignedShareGap(SignedGap):
    """The signed difference between the two shares that differ most; see `SignedGap`."""

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the 95 % confidence interval; for two columns, the interval of `ShareDifference` (Agresti and Min)."""
        if len(self.pairs) == 1:
            return proportions.paired_interval(sample.rows[:, 0] - sample.rows[:, 1], normal.quantile(1 - TAIL))
        return super().interval(sample)


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
