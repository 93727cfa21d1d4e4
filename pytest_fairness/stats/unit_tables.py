"""Tables with a row for each unit: base class of their statistics, means, and change between two runs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.stats import gaps, intervals, resampling
from pytest_fairness.stats.gaps import (
    DistanceMeasure,
    Pairs,
    direction_unknown,
    largest_difference,
    mean_error,
    most_different,
)
from pytest_fairness.stats.resampling import Floats, Ints

# Base class of statistics that are computed from the column means of a table.
#
# A table holds one row for each unit and one column for each quantity. A unit is an entity, a record or a sentence;
# units are independent of each other, and standard errors are taken over units.

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
        """Return the statistic of each row of (..., columns) means; NaN if it is not defined.

        Leading axes, if any, stand for random draws.
        """

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the gradient of the loss, here of the distance; a larger loss means a worse value."""
        if self.distance is None:
            raise NotImplementedError
        return np.asarray(self.distance.gradient(self.groups(means)) @ self.group_gradients(means))

    @property
    def sides(self) -> tuple[Ints, Ints]:
        first, second = zip(*self.pairs, strict=True)
        return np.array(first), np.array(second)

    def pair_tests(self, rows: Floats, random: np.random.Generator) -> list[PairTest]:
        """Return the comparison of each pair of groups, for a statistic with `tests_pairs`."""
        raise NotImplementedError

    def reference_tests(self, sample: Sample, reference: int, others: Sequence[int]) -> list[PairTest]:
        """Return the comparison of each other group with the reference, for tables of groups.

        Interval and p-value are Student's; Holm's method adjusts the p-values for all these comparisons.
        """
        numbers, gradients = self.groups(sample.means), self.group_gradients(sample.means)
        influence = (sample.rows - sample.rows.mean(axis=0)) @ gradients.T
        degrees = self.degrees_of_freedom(sample.rows)
        gaps, errors = [], []
        for other in others:
            gaps.append(float(numbers[other] - numbers[reference]))
            errors.append(mean_error(influence[:, other] - influence[:, reference]) or sample.least_error)
        p_values = resampling.holm(
            [
                intervals.two_sided_p(gap / error, degrees) if error else float(gap == 0)
                for gap, error in zip(gaps, errors, strict=True)
            ]
        )
        return [
            PairTest(other, reference, gap, intervals.interval(gap, error, degrees_of_freedom=degrees), p_value)
            for other, gap, error, p_value in zip(others, gaps, errors, p_values, strict=True)
        ]

    def pair_gaps(self, means: Floats, joint: Floats) -> Floats:
        """Return the gap of each pair; it is above 0 if it has the direction of the pair's gap at `joint`."""
        first, second = self.sides
        groups, pattern = self.groups(means), self.groups(joint)
        signs = np.where(pattern[first] >= pattern[second], 1.0, -1.0)
        return np.asarray(signs * (groups[..., first] - groups[..., second]))

    def pair_gradients(self, joint: Floats) -> Floats:
        first, second = self.sides
        groups, gradients = self.groups(joint), self.group_gradients(joint)
        signs = np.where(groups[first] >= groups[second], 1.0, -1.0)
        return np.asarray(signs[:, None] * (gradients[first] - gradients[second]))

    @property
    def compares_several_pairs(self) -> bool:
        """Return whether the value is a distance other than the difference between a single pair of groups."""
        return self.distance is not None and len(self.pairs) != 1

    def groups(self, means: Floats) -> Floats:
        """Return the (..., groups) numbers to compare."""
        return means

    def group_gradients(self, means: Floats) -> Floats:
        """Return the (groups, columns) gradients of the groups' numbers."""
        return np.eye(len(means))

    def group_names(self, columns: Sequence[str]) -> Sequence[str]:
        return columns

    def reference(self, numbers: Floats) -> int:
        """Return the group with which reports compare the other groups: the first group with a number."""
        return int(np.flatnonzero(~np.isnan(numbers))[0])

    def is_of_sums(self, columns: int) -> bool:
        """Return whether the statistic of column sums equals that of column means, as that of a ratio of sums does."""
        means = np.linspace(1, 2, columns)
        return bool(np.isclose(self.value(means), self.value(2 * means)))

    def degrees_of_freedom(self, rows: Floats) -> float:
        return float(len(rows) - 1)

    def standard_error(self, sample: Sample) -> float:
        """Return the standard error of the value, by the delta method; `sample.least_error` in place of 0."""
        centred = sample.rows - sample.rows.mean(axis=0)
        return mean_error(centred @ self.loss_gradient(sample.means)) or sample.least_error

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float] | None:
        """Return one-sided bounds of the loss; `None` if they can be computed from the standard error.

        `alpha` and `beta` are the probabilities that the lower bound is above, and the upper bound below, the true
        loss.
        """
        return None

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the two-sided 95 % confidence interval of the value."""
        bounds = self.bounds(sample, TAIL, TAIL)
        if bounds is not None:
            return bounds
        value, degrees = float(self.value(sample.means)), self.degrees_of_freedom(sample.rows)
        return intervals.interval(value, self.standard_error(sample), degrees_of_freedom=degrees)

    def change(self, current: Floats, baseline: Floats, moves: Floats) -> float:
        """Return the change of the loss from the baseline to the current run; above 0 is worse.

        `moves` are the changes of the units' rows, multiplied by the loss gradient.
        """
        return float(moves.mean())


# Change of a statistic between two runs of the same units, with a sign-flip test of the units' moves.
#
# A unit's move is the change of its row between the runs. If the two runs do not differ, each move has either sign
# with equal probability; random signs therefore give the null distribution. A gap between two groups is compared as
# a signed difference. If a statistic tests each pair of groups, the change is that of the pair that differs most in
# both runs together: the pair that differs most in one run was chosen by the chance of this run. For another
# distance among several groups, the change is the growth of the distance. The change of the signed distance (see
# `gaps.DistanceMeasure.signed`) is computed as well.

SIGNS = 2**13
"""Number of draws of random signs; with up to thirteen units that moved, all combinations are used."""


@dataclass(frozen=True)
class SideChange:
    """Reversal of the gap between two groups: the group that is higher in the current run was lower in the baseline."""

    high: int
    low: int
    current: float
    baseline: float
    p_value: float


@dataclass(frozen=True)
class UnitChange:
    """The change of a statistic between two runs; a positive change is worse.

    Attributes:
        value: estimated change of the loss; of `pair`, if there is one.
        p_value: one-sided p-value of the null hypothesis that the runs do not differ; adjusted for all pairs.
        growth: growth of the distance if the statistic `compares_several_pairs`; otherwise equal to `value`.
        signed_change: change of the signed distance (see `DistanceMeasure.signed`), by a linear approximation.
        direction_unknown: whether it is unknown which of two groups is higher, because the gap in both runs together is
            small.
        side_change: reversal of a gap; `None` if no gap was reversed.
        pairs: change of each pair's gap, if the statistic `tests_pairs` and has several pairs.
        pair: the one of `pairs` whose groups differ most in both runs together; `None` without pairs.
    """

    value: float
    standard_error: float
    p_value: float
    growth: float
    growth_error: float
    signed_change: float
    signed_change_error: float
    degrees_of_freedom: float
    direction_unknown: bool
    side_change: SideChange | None
    pairs: tuple[PairTest, ...] = ()
    pair: PairTest | None = None

    @classmethod
    def of(
        cls,
        statistic: UnitStatistic,
        current: Floats,
        baseline: Floats,
        *,
        least_error: float,
        seed: str,
        baseline_weight: float = 0.5,
    ) -> UnitChange:
        """Return the change between complete rows of the same units in the two runs.

        `baseline_weight`, 0..1, is the weight of the baseline in the means of both runs together, which decide which of
        two groups is ahead. If one run has more answers, the weights must be proportional to the numbers of answers.
        Otherwise, the run with fewer answers decides, and chance looks like a change in one direction.
        """
        means = current.mean(axis=0), baseline.mean(axis=0)
        joint = (1 - baseline_weight) * means[0] + baseline_weight * means[1]
        moves = (current - baseline) @ statistic.loss_gradient(joint)
        signed_change, signed_error = statistic.change(*means, moves), mean_error(moves) or least_error
        value, error = signed_change, signed_error
        p_value = resampling.sign_flip(moves, SIGNS, resampling.generator(f"{seed}/compare"))
        growth = _growth(statistic, current, baseline, seed) if statistic.compares_several_pairs else None
        pairs, pair = _pair_changes(statistic, current, baseline, joint, least_error, seed), None
        if len(pairs) > 1:
            farthest = {*most_different(statistic.groups(joint), statistic.pairs)}
            pair = next(test for test in pairs if {test.first, test.second} == farthest)
            value, error, p_value = pair.value, pair.standard_error or least_error, pair.p_value
        elif pairs:
            error = pairs[0].standard_error or least_error
        elif growth is not None:
            value, error, p_value = growth
        return cls(
            value=value,
            standard_error=error,
            p_value=p_value,
            growth=value if growth is None else growth[0],
            growth_error=error if growth is None else growth[1],
            signed_change=signed_change,
            signed_change_error=signed_error,
            degrees_of_freedom=statistic.degrees_of_freedom(current),
            direction_unknown=statistic.distance is not None
            and direction_unknown(2 * float(statistic.distance.size(statistic.groups(joint))), error),
            side_change=_side_change(statistic, current, baseline, resampling.generator(f"{seed}/reversal")),
            pairs=pairs if pair else (),
            pair=pair,
        )


def _pair_changes(
    statistic: UnitStatistic, current: Floats, baseline: Floats, joint: Floats, least_error: float, seed: str
) -> tuple[PairTest, ...]:
    """Return the change of each pair's gap; empty if the statistic does not test pairs.

    A pair's gap has its direction in both runs together. All pairs get the same random signs, and each change is
    divided by its own error, so that a small group does not hide the change of a large one; see
    `resampling.sign_flips`. The standard errors are those of the jackknife: a ratio changes more from the same moves
    if it is larger.
    """
    if not statistic.tests_pairs:
        return ()
    gaps = [statistic.pair_gaps(run.mean(axis=0), joint) for run in (current, baseline)]
    moves = (current - baseline) @ statistic.pair_gradients(joint).T
    known = np.flatnonzero(~np.isnan(gaps[0] - gaps[1]))
    p_values = resampling.sign_flips(moves[:, known], SIGNS, resampling.generator(f"{seed}/pairs"))
    without = [(run.sum(axis=0) - run) / (len(run) - 1) for run in (current, baseline)]
    left_out = (len(moves) - 1) * (statistic.pair_gaps(without[1], joint) - statistic.pair_gaps(without[0], joint))
    found = []
    for pair, p_value in zip(known.tolist(), p_values.tolist(), strict=True):
        value, influence = float(gaps[0][pair] - gaps[1][pair]), left_out[:, pair]
        # Without its only hit, a rate of 0 has no ratio.
        error = mean_error(influence if np.isfinite(influence).all() else moves[:, pair]) or least_error
        found.append(PairTest(*statistic.pairs[pair], value, intervals.interval(value, error), p_value, error))
    return tuple(found)


def _growth(
    statistic: UnitStatistic, current: Floats, baseline: Floats, seed: str
) -> tuple[float, float, float] | None:
    """Return how much the distance among the groups grew since the baseline, with its error and one-sided p-value.

    The result is `None` if no unit changed or the statistic is not a distance.
    """
    if statistic.distance is None:
        return None
    joint = (current.mean(axis=0) + baseline.mean(axis=0)) / 2
    pattern = statistic.groups(joint)
    moves = (current - baseline) @ statistic.group_gradients(joint).T
    half = moves.mean(axis=0) / 2
    size = statistic.distance.signed(pattern)

    def grown(half: Floats) -> Floats:
        return size(pattern + half) - size(pattern - half)

    nonzero = moves[(moves != 0).any(axis=1)]
    if not len(nonzero):
        return None
    flipped, exact = resampling.flipped_means(nonzero, SIGNS, resampling.generator(f"{seed}/growth"))
    value = float(grown(half))
    covariance = np.atleast_2d(np.cov(moves.T)) / len(moves)
    error = gaps.growth_error(size, pattern + half, pattern - half, covariance, resampling.generator(f"{seed}/error"))
    p_value = resampling.p_value(grown(flipped * (len(nonzero) / len(moves) / 2)), value, exact=exact)
    return value, error, p_value


def _side_change(
    statistic: UnitStatistic, current: Floats, baseline: Floats, random: np.random.Generator
) -> SideChange | None:
    """Return the reversal of the gap between the two groups that differ most in the current run.

    The result is `None` if the gap did not have the opposite sign in the baseline, or without pairs of groups.
    """
    if not statistic.pairs:
        return None
    means = current.mean(axis=0), baseline.mean(axis=0)
    groups = [statistic.groups(run) for run in means]
    high, low = most_different(groups[0], statistic.pairs)
    current_gap, baseline_gap = (float(numbers[high] - numbers[low]) for numbers in groups)
    if not current_gap > 0 > baseline_gap + intervals.ROUNDING_OF_SUMS:
        return None
    moves = (current - baseline) @ statistic.group_gradients((means[0] + means[1]) / 2).T
    first, second = (np.array(side) for side in zip(*statistic.pairs, strict=True))
    if statistic.tests_pairs:
        p_values = resampling.sign_flips(
            moves[:, first] - moves[:, second], resampling.PERMUTATIONS, random, two_sided=True
        )
        place = [{*pair} for pair in statistic.pairs].index({high, low})
        return SideChange(high, low, current_gap, baseline_gap, float(p_values[place]))
    nonzero = moves[(moves != 0).any(axis=1)]
    flipped, exact = resampling.flipped_means(nonzero, resampling.PERMUTATIONS, random)
    null = np.abs(flipped[:, first] - flipped[:, second]).max(axis=1) * len(nonzero)
    total = moves.sum(axis=0)
    observed = float(np.abs(total[first] - total[second]).max())
    return SideChange(high, low, current_gap, baseline_gap, resampling.p_value(null, observed, exact=exact))


def needed_units(alpha: float) -> int:
    """Return the smallest number n of units for which a sign-flip test, with p ≥ 2 ** −n, can be significant."""
    return math.ceil(-math.log2(alpha))


# Statistics of one or two column means: mean, difference between shares, and ratio.


@dataclass(frozen=True)
class Mean(UnitStatistic):
    """The mean of the first column."""

    higher_is_better: bool = False

    def value(self, means: Floats) -> Floats:
        return means[..., 0]

    def loss_gradient(self, means: Floats) -> Floats:
        return np.array([-1.0 if self.higher_is_better else 1.0])


@dataclass(frozen=True)
class DistanceFromMiddle(UnitStatistic):
    """The mean of a single column of scores from 0 to `maximum`; the middle of this scale means no preference.

    The two halves of the scale are compared like two groups, with the numbers score / 2 and (`maximum` − score) / 2,
    which differ by the distance from the middle. The first of the two `names` is preferred if the mean is above the
    middle.
    """

    maximum: float
    names: tuple[str, str]
    pairs = ((0, 1),)
    distance = largest_difference(((0, 1),))

    def value(self, means: Floats) -> Floats:
        return means[..., 0]

    def groups(self, means: Floats) -> Floats:
        scores = means[..., 0]
        return np.stack([scores, self.maximum - scores], axis=-1) / 2

    def group_gradients(self, means: Floats) -> Floats:
        return np.array([[0.5], [-0.5]])

    def group_names(self, columns: Sequence[str]) -> Sequence[str]:
        return self.names


class ShareDifference(UnitStatistic):
    """The share in the first column minus the share in the second; a larger value is worse."""

    def value(self, means: Floats) -> Floats:
        difference: Floats = means[..., 0] - means[..., 1]
        return difference

    def loss_gradient(self, means: Floats) -> Floats:
        return np.array([1.0, -1.0])

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return Agresti and Min's interval, valid even if few units differ."""
        return intervals.paired_interval(sample.rows[:, 0] - sample.rows[:, 1], intervals.quantile(1 - TAIL))


class TwoSidedShareDifference(ShareDifference):
    """The share in the first column minus the share in the second; a value further from 0 is worse."""

    pairs = ((0, 1),)
    distance = largest_difference(((0, 1),))

    def loss_gradient(self, means: Floats) -> Floats:
        return UnitStatistic.loss_gradient(self, means)


class Ratio(UnitStatistic):
    """The mean of the first column divided by the mean of the second; a value below 0 has the loss 0."""

    def value(self, means: Floats) -> Floats:
        """Return the ratio; NaN for 0 / 0, and ±infinity if only the second mean is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio: Floats = means[..., 0] / means[..., 1]
        return ratio

    def loss_gradient(self, means: Floats) -> Floats:
        """Return the gradient of the ratio, even for a ratio below 0, whose loss is 0."""
        return np.array([1 / means[1], -means[0] / means[1] ** 2])

    def change(self, current: Floats, baseline: Floats, moves: Floats) -> float:
        return float(np.maximum(self.value(current), 0.0) - np.maximum(self.value(baseline), 0.0))
