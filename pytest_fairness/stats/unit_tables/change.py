"""Change of a statistic between two runs of the same units, with a sign-flip test of the units' moves.

A unit's move is the change of its row between the runs. If the two runs do not differ, each move has either sign with
equal probability; random signs therefore give the null distribution. A gap between two groups is compared as a
signed difference. If a statistic tests each pair of groups, the change is that of the pair that differs most in both
runs together: the pair that differs most in one run was chosen by the chance of this run. For another distance among
several groups, the change is the growth of the distance. The change of the signed distance
(see `stats.groups.distance_measures`) is computed as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups import distance_measures
from pytest_fairness.stats.groups.distance_measures import direction_unknown, most_different
from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.intervals.mean_errors import mean_error
from pytest_fairness.stats.resampling import column_means, paired_tests, randomness, significance
from pytest_fairness.stats.unit_tables.statistic import PairTest, UnitStatistic

SIGNS = 2**13
"""Number of draws of random signs; with up to thirteen units that moved, all combinations are used."""
ROUNDING = 1e-9
"""Groups that differ by at most this much are equal."""
REVERSAL_SIGNS = 1999
"""Number of draws of random signs for the test of a gap that changed sides."""


@dataclass(frozen=True)
class SideChange:
    """Reversal of the gap between two groups: the group that is higher in the current run was lower in the baseline.

    Attributes:
        high, low: indices of the group that is higher in the current run, and of the group that is lower.
        current: group `high` minus group `low` in the current run, above 0.
        baseline: group `high` minus group `low` in the baseline, below 0.
        p_value: two-sided p-value of the null hypothesis that the runs do not differ.
    """

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
        standard_error: standard error of `value`.
        p_value: one-sided p-value of the null hypothesis that the runs do not differ; adjusted for all pairs.
        growth: growth of the distance if the statistic `compares_several_pairs`; otherwise equal to `value`.
        growth_error: standard error of `growth`.
        signed_change: change of the signed distance (see `DistanceMeasure.signed`), by a linear approximation.
        signed_change_error: standard error of `signed_change`.
        degrees_of_freedom: degrees of freedom of both standard errors.
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
        """Return the change from the baseline to the current run.

        Args:
            statistic: statistic whose change is computed.
            current, baseline: (units, columns) complete rows of the same units in the two runs.
            least_error: standard error to use in place of 0, such as if no unit changed.
            seed: text that seeds all random draws.
            baseline_weight: weight of the baseline, 0..1, in the means of both runs together, which decide which of two
                groups is ahead. If one run has more answers, the weights must be proportional to the numbers of
                answers. Otherwise, the run with fewer answers decides, and chance looks like a change in one direction.
        """
        means = current.mean(axis=0), baseline.mean(axis=0)
        joint = (1 - baseline_weight) * means[0] + baseline_weight * means[1]
        moves = (current - baseline) @ statistic.loss_gradient(joint)
        signed_change, signed_error = statistic.change(*means, moves), mean_error(moves) or least_error
        value, error = signed_change, signed_error
        p_value = paired_tests.sign_flip(moves, SIGNS, randomness.generator(f"{seed}/compare"))
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
            side_change=_side_change(statistic, current, baseline, randomness.generator(f"{seed}/reversal")),
            pairs=pairs if pair else (),
            pair=pair,
        )


def _pair_changes(
    statistic: UnitStatistic, current: Floats, baseline: Floats, joint: Floats, least_error: float, seed: str
) -> tuple[PairTest, ...]:
    """Return the change of each pair's gap; empty if the statistic does not test pairs.

    A pair's gap has its direction in both runs together. All pairs get the same random signs, and each change is
    divided by its own error, so that a small group does not hide the change of a large one; see
    `paired_tests.sign_flips`. The standard errors are those of the jackknife: a ratio changes more from the same moves
    if it is larger.
    """
    if not statistic.tests_pairs:
        return ()
    gaps = [statistic.pair_gaps(run.mean(axis=0), joint) for run in (current, baseline)]
    moves = (current - baseline) @ statistic.pair_gradients(joint).T
    known = np.flatnonzero(~np.isnan(gaps[0] - gaps[1]))
    p_values = paired_tests.sign_flips(moves[:, known], SIGNS, randomness.generator(f"{seed}/pairs"))
    without = [(run.sum(axis=0) - run) / (len(run) - 1) for run in (current, baseline)]
    left_out = (len(moves) - 1) * (statistic.pair_gaps(without[1], joint) - statistic.pair_gaps(without[0], joint))
    found = []
    for pair, p_value in zip(known.tolist(), p_values.tolist(), strict=True):
        value, influence = float(gaps[0][pair] - gaps[1][pair]), left_out[:, pair]
        # Without its only hit, a rate of 0 has no ratio.
        error = mean_error(influence if np.isfinite(influence).all() else moves[:, pair]) or least_error
        found.append(PairTest(*statistic.pairs[pair], value, normal.interval(value, error), p_value, error))
    return tuple(found)


def _growth(
    statistic: UnitStatistic, current: Floats, baseline: Floats, seed: str
) -> tuple[float, float, float] | None:
    """Return how much the distance among the groups grew since the baseline.

    Returns:
        the growth, its standard error and its one-sided p-value; `None` if no unit changed or the statistic is not a
        distance.
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
    flipped, exact = column_means.flipped_means(nonzero, SIGNS, randomness.generator(f"{seed}/growth"))
    value = float(grown(half))
    covariance = np.atleast_2d(np.cov(moves.T)) / len(moves)
    error = distance_measures.growth_error(
        size, pattern + half, pattern - half, covariance, randomness.generator(f"{seed}/error")
    )
    p_value = significance.p_value(grown(flipped * (len(nonzero) / len(moves) / 2)), value, exact=exact)
    return value, error, p_value


def _side_change(
    statistic: UnitStatistic, current: Floats, baseline: Floats, random: np.random.Generator
) -> SideChange | None:
    """Return the reversal of the gap between the two groups that differ most in the current run.

    Return `None` if the gap did not have the opposite sign in the baseline, or if the statistic does not compare groups
    in pairs.
    """
    if not statistic.pairs:
        return None
    means = current.mean(axis=0), baseline.mean(axis=0)
    groups = [statistic.groups(run) for run in means]
    high, low = most_different(groups[0], statistic.pairs)
    current_gap, baseline_gap = (float(numbers[high] - numbers[low]) for numbers in groups)
    if not current_gap > 0 > baseline_gap + ROUNDING:
        return None
    moves = (current - baseline) @ statistic.group_gradients((means[0] + means[1]) / 2).T
    first, second = (np.array(side) for side in zip(*statistic.pairs, strict=True))
    if statistic.tests_pairs:
        p_values = paired_tests.sign_flips(moves[:, first] - moves[:, second], REVERSAL_SIGNS, random, two_sided=True)
        place = [{*pair} for pair in statistic.pairs].index({high, low})
        return SideChange(high, low, current_gap, baseline_gap, float(p_values[place]))
    nonzero = moves[(moves != 0).any(axis=1)]
    flipped, exact = column_means.flipped_means(nonzero, REVERSAL_SIGNS, random)
    null = np.abs(flipped[:, first] - flipped[:, second]).max(axis=1) * len(nonzero)
    total = moves.sum(axis=0)
    observed = float(np.abs(total[first] - total[second]).max())
    return SideChange(high, low, current_gap, baseline_gap, significance.p_value(null, observed, exact=exact))


def needed_units(alpha: float) -> int:
    """Return the smallest number of units with which a sign-flip test can be significant at `alpha`.

    If all n units change in the same direction, p is 2 ** −n, the smallest possible value.
    """
    return math.ceil(-math.log2(alpha))
