"""The change of a statistic between two runs of the same units, by a test of how far each unit moved.

Swapping the two runs within a unit turns the sign of its move; the null distribution is therefore that of random signs.
The change of a difference is taken towards the side that both runs together show, and that of several groups also along
the pattern that both runs together show; see `stats.groups.spreads`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups import spreads
from pytest_fairness.stats.groups.spreads import either_side, furthest
from pytest_fairness.stats.intervals.mean_errors import mean_error
from pytest_fairness.stats.resampling import column_means, paired_tests, randomness, significance
from pytest_fairness.stats.unit_tables.statistic import UnitStatistic

SIGNS = 2**13
"""Draws of random signs; all signs are tried of up to thirteen units that moved."""
REVERSAL_SIGNS = 1999
"""Draws of random signs for the test of a gap that changed sides."""


@dataclass(frozen=True)
class SideChange:
    """A gap between two groups that changed sides: the higher group of this run was the lower one in the baseline.

    Attributes:
        high, low: numbers of the groups.
        current: the gap in this run, above 0.
        baseline: the gap in the baseline, below 0.
        p_value: of the hypothesis that no group moved, two-sided.
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
        value, standard_error, p_value: of the change, one-sided.
        along: change along the pattern that both runs together show; equal to `value` for a single difference.
        along_error: standard error of `along`.
        degrees_of_freedom: of both standard errors.
        either_side: whether both runs together do not show clearly which of two groups is the higher one.
        side_change: the gap that changed sides; `None` where none did.
    """

    value: float
    standard_error: float
    p_value: float
    along: float
    along_error: float
    degrees_of_freedom: float
    either_side: bool
    side_change: SideChange | None

    @classmethod
    def of(
        cls, statistic: UnitStatistic, current: Floats, baseline: Floats, *, least_error: float, seed: str
    ) -> UnitChange:
        """Return the change between two runs.

        Args:
            statistic: what is compared.
            current, baseline: (units, columns) complete rows of the same units in either run.
            least_error: standard error where no unit moved.
            seed: text from which all resampling is seeded.
        """
        means = current.mean(axis=0), baseline.mean(axis=0)
        joint = (means[0] + means[1]) / 2
        moves = (current - baseline) @ statistic.loss_gradient(joint)
        value = statistic.change(*means, moves)
        error = mean_error(moves) or least_error
        p_value = paired_tests.sign_flip(moves, SIGNS, randomness.generator(f"{seed}/compare"))
        found = _growth(statistic, current, baseline, seed) if statistic.among_several else None
        grown, grown_error, grown_p = found or (value, error, p_value)
        return cls(
            value=grown,
            standard_error=grown_error or error,
            p_value=grown_p,
            along=value,
            along_error=error,
            degrees_of_freedom=statistic.degrees_of_freedom(current),
            either_side=statistic.distance is not None
            and either_side(2 * float(statistic.distance.size(statistic.groups(joint))), error),
            side_change=_side_change(statistic, current, baseline, randomness.generator(f"{seed}/reversal")),
        )


def _growth(
    statistic: UnitStatistic, current: Floats, baseline: Floats, seed: str
) -> tuple[float, float, float] | None:
    """Return by how much several groups are further apart, its standard error and p-value; `None` if no unit moved."""
    if statistic.distance is None:
        return None
    joint = (current.mean(axis=0) + baseline.mean(axis=0)) / 2
    pattern = statistic.groups(joint)
    moves = (current - baseline) @ statistic.group_gradients(joint).T
    half = moves.mean(axis=0) / 2
    size = statistic.distance.signed(pattern)

    def grown(half: Floats) -> Floats:
        return size(pattern + half) - size(pattern - half)

    moving = moves[(moves != 0).any(axis=1)]
    if not len(moving):
        return None
    flipped, exact = column_means.flipped_means(moving, SIGNS, randomness.generator(f"{seed}/growth"))
    value = float(grown(half))
    covariance = np.atleast_2d(np.cov(moves.T)) / len(moves)
    error = spreads.growth_error(
        size, pattern + half, pattern - half, covariance, randomness.generator(f"{seed}/error")
    )
    p_value = significance.p_value(grown(flipped * (len(moving) / len(moves) / 2)), value, exact=exact)
    return value, error, p_value


def _side_change(
    statistic: UnitStatistic, current: Floats, baseline: Floats, random: np.random.Generator
) -> SideChange | None:
    """Return the gap of the two groups that are furthest apart in this run, if the baseline has it the other way."""
    if not statistic.pairs:
        return None
    means = current.mean(axis=0), baseline.mean(axis=0)
    groups = [statistic.groups(each) for each in means]
    high, low = furthest(groups[0], statistic.pairs)
    current_gap, baseline_gap = (float(each[high] - each[low]) for each in groups)
    if not current_gap > 0 > baseline_gap:
        return None
    moves = (current - baseline) @ statistic.group_gradients((means[0] + means[1]) / 2).T
    first, second = (np.array(side) for side in zip(*statistic.pairs, strict=True))
    moving = moves[(moves != 0).any(axis=1)]
    flipped, exact = column_means.flipped_means(moving, REVERSAL_SIGNS, random)
    null = np.abs(flipped[:, first] - flipped[:, second]).max(axis=1) * len(moving)
    total = moves.sum(axis=0)
    observed = float(np.abs(total[first] - total[second]).max())
    return SideChange(high, low, current_gap, baseline_gap, significance.p_value(null, observed, exact=exact))


def needed_units(alpha: float) -> int:
    """Return the fewest units of which all signs alike are rarer than `alpha` by chance."""
    return math.ceil(-math.log2(alpha))
