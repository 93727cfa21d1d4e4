"""Base class of statistics that are computed from the column means of a table.

A table holds one row for each unit and one column for each quantity. A unit is an entity, a record or a sentence; units
are independent of each other, and standard errors are taken over units.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.stats.arrays import Floats, Ints
from pytest_fairness.stats.groups.distance_measures import DistanceMeasure, Pairs
from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.intervals.mean_errors import mean_error
from pytest_fairness.stats.resampling import significance

TAIL = 0.025
"""Probability of each tail of a 95 % confidence interval."""


@dataclass(frozen=True)
class Sample:
    """Rows and column means of a table, from which a statistic and its standard error are computed.

    Attributes:
        rows: (units, columns) numbers of the complete units, which have a number in every column.
        means: (columns,) mean of each column over all units that have a number in that column.
        least_error: standard error to use in place of 0; units outside of the sample may differ even if all rows are
            equal.
    """

    rows: Floats
    means: Floats
    least_error: float = 0.0


@dataclass(frozen=True)
class PairTest:
    """Comparison of two groups, or the change of their gap between two runs.

    Attributes:
        first, second: indices of the groups.
        value: difference between the groups' numbers, first minus second, or their ratio; of a change, how much the gap
            grew.
        interval: two-sided 95 % confidence interval of `value`.
        p_value: p-value of the null hypothesis that the groups do not differ (two-sided), or that the gap did not grow
            (one-sided); adjusted for all pairs.
        standard_error: standard error of a change; `None` for a comparison within one run.
    """

    first: int
    second: int
    value: float
    interval: tuple[float, float]
    p_value: float
    standard_error: float | None = None


class UnitStatistic(ABC):
    """A statistic of the column means of a table.

    A statistic that is a distance between groups also defines a number for each group (`groups`), the pairs of groups
    that are compared (`pairs`), and the distance measure (`distance`). A distance is above 0 by chance alone, so that
    its confidence bounds cannot be computed from its standard error.

    Attributes:
        pairs: index pairs of the groups that are compared; empty if the value does not compare groups in pairs.
        distance: distance measure between the groups' numbers; `None` if the value is not a distance.
        tests_pairs: whether each pair is tested by itself: `pair_tests` for a run, `pair_gaps` for a change.
    """

    pairs: Pairs = ()
    distance: DistanceMeasure | None = None
    tests_pairs: bool = False

    @abstractmethod
    def value(self, means: Floats) -> Floats:
        """Return the statistic of each row of column means; NaN if it is not defined.

        Args:
            means: (..., columns) column means; leading axes, if any, stand for random draws.
        """

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the gradient of the loss at these (columns,) means; a larger loss means a worse value.

        This method returns the gradient of the distance; a statistic without `distance` overrides it.
        """
        if self.distance is None:
            raise NotImplementedError
        return np.asarray(self.distance.gradient(self.groups(means)) @ self.group_gradients(means))

    @property
    def sides(self) -> tuple[Ints, Ints]:
        """The first group of each pair, and the second group of each pair; two arrays of shape (pairs,)."""
        first, second = zip(*self.pairs, strict=True)
        return np.array(first), np.array(second)

    def pair_tests(self, rows: Floats, random: np.random.Generator) -> list[PairTest]:
        """Return the comparison of each pair of groups, given the complete (units, columns) rows of a run.

        Only a statistic with `tests_pairs` has these comparisons.
        """
        raise NotImplementedError

    def reference_tests(self, sample: Sample, reference: int, others: Sequence[int]) -> list[PairTest]:
        """Return the comparison of each other group with the reference, for tables of groups.

        The value is the difference of the groups' numbers. Interval and p-value are Student's; Holm's method adjusts
        the p-values for all these comparisons.
        """
        numbers, gradients = self.groups(sample.means), self.group_gradients(sample.means)
        influence = (sample.rows - sample.rows.mean(axis=0)) @ gradients.T
        degrees = self.degrees_of_freedom(sample.rows)
        gaps, errors = [], []
        for other in others:
            gaps.append(float(numbers[other] - numbers[reference]))
            errors.append(mean_error(influence[:, other] - influence[:, reference]) or sample.least_error)
        p_values = significance.holm(
            [
                normal.two_sided_p(gap / error, degrees) if error else float(gap == 0)
                for gap, error in zip(gaps, errors, strict=True)
            ]
        )
        return [
            PairTest(other, reference, gap, normal.interval(gap, error, degrees_of_freedom=degrees), p_value)
            for other, gap, error, p_value in zip(others, gaps, errors, p_values, strict=True)
        ]

    def pair_gaps(self, means: Floats, joint: Floats) -> Floats:
        """Return the gap of each pair; it is above 0 if it has the direction of the pair's gap at `joint`.

        Args:
            means: (..., columns) column means.
            joint: (columns,) column means of both runs together.
        """
        first, second = self.sides
        groups, pattern = self.groups(means), self.groups(joint)
        signs = np.where(pattern[first] >= pattern[second], 1.0, -1.0)
        return np.asarray(signs * (groups[..., first] - groups[..., second]))

    def pair_gradients(self, joint: Floats) -> Floats:
        """Return the gradient of each pair's gap at `joint`, shape (pairs, columns); see `pair_gaps`."""
        first, second = self.sides
        groups, gradients = self.groups(joint), self.group_gradients(joint)
        signs = np.where(groups[first] >= groups[second], 1.0, -1.0)
        return np.asarray(signs[:, None] * (gradients[first] - gradients[second]))

    @property
    def compares_several_pairs(self) -> bool:
        """Return whether the value is a distance other than the difference between a single pair of groups."""
        return self.distance is not None and len(self.pairs) != 1

    def groups(self, means: Floats) -> Floats:
        """Return the numbers to compare, one for each group, shape (..., groups); `means` has shape (..., columns)."""
        return means

    def group_gradients(self, means: Floats) -> Floats:
        """Return the gradient of each group's number at these (columns,) means; shape (groups, columns)."""
        return np.eye(len(means))

    def group_names(self, columns: Sequence[str]) -> Sequence[str]:
        """Return the name of each group, given the names of the columns."""
        return columns

    def reference(self, numbers: Floats) -> int:
        """Return the index of the group with which reports compare the other groups: the first group with a number."""
        return int(np.flatnonzero(~np.isnan(numbers))[0])

    def is_of_sums(self, columns: int) -> bool:
        """Return whether the statistic of column sums equals that of column means, as that of a ratio of sums does."""
        means = np.linspace(1, 2, columns)
        return bool(np.isclose(self.value(means), self.value(2 * means)))

    def degrees_of_freedom(self, rows: Floats) -> float:
        """Return the degrees of freedom of the standard error, given the complete (units, columns) rows."""
        return float(len(rows) - 1)

    def standard_error(self, sample: Sample) -> float:
        """Return the standard error of the value, by the delta method; `sample.least_error` in place of 0."""
        centred = sample.rows - sample.rows.mean(axis=0)
        return mean_error(centred @ self.loss_gradient(sample.means)) or sample.least_error

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float] | None:
        """Return one-sided confidence bounds of the loss; `None` if the bounds can be computed from the standard error.

        Args:
            sample: rows and column means of the table.
            alpha: probability that the lower bound is above the true loss.
            beta: probability that the upper bound is below the true loss.
        """
        return None

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the two-sided 95 % confidence interval of the value."""
        bounds = self.bounds(sample, TAIL, TAIL)
        if bounds is not None:
            return bounds
        value, degrees = float(self.value(sample.means)), self.degrees_of_freedom(sample.rows)
        return normal.interval(value, self.standard_error(sample), degrees_of_freedom=degrees)

    def change(self, current: Floats, baseline: Floats, moves: Floats) -> float:
        """Return the estimated change of the loss from the baseline to the current run; above 0 is worse.

        Args:
            current, baseline: (columns,) column means of the two runs.
            moves: (units,) change of each unit's row, multiplied by the loss gradient.
        """
        return float(moves.mean())
