"""Statistic of the impact ratio: the lowest selection rate of a group divided by the highest."""

from __future__ import annotations

import math

import numpy as np

from pytest_fairness.stats.arrays import Bools, Floats
from pytest_fairness.stats.intervals import normal, ratios
from pytest_fairness.stats.unit_tables.distances import ShareGap
from pytest_fairness.stats.unit_tables.statistic import TAIL, Sample

SMALL_SHARE = 0.02
"""A group with a smaller share of the units is left out of the impact ratio, as New York's Local Law 144 allows."""


class ImpactRatio(ShareGap):
    """The lowest rate of a group divided by the highest, 0..1; a smaller ratio is worse.

    A group's number is its rate divided by the highest rate, so that the largest difference between two groups is
    1 minus the impact ratio. Groups with less than 2 % of the units are left out.

    Args:
        groups: number of groups; the table has a column of hits for each group, and then a column of sizes for each.
    """

    def __init__(self, groups: int) -> None:
        super().__init__(1, groups)

    def value(self, means: Floats) -> Floats:
        """Return the impact ratio for each row of `means`; NaN if fewer than two groups have a ratio."""
        group_ratios = self.groups(means)
        defined = ~np.isnan(group_ratios)
        lowest = np.min(np.where(defined, group_ratios, np.inf), axis=-1)
        return np.where(np.count_nonzero(defined, axis=-1) >= 2, lowest, np.nan)

    def groups(self, means: Floats) -> Floats:
        """Return the ratio of each group's rate to the highest rate; NaN for small groups, and if all rates are 0."""
        rates = self._rates_of(means)
        highest = np.max(np.nan_to_num(rates), axis=-1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.where(highest > 0, rates / np.where(highest > 0, highest, 1), np.nan)

    def group_gradients(self, means: Floats) -> Floats:
        """Return the gradient of each group's ratio; 0 for the group with the highest rate."""
        rates, gradients = self._rates_of(means), super().group_gradients(means)
        highest = int(np.nanargmax(rates))
        own, other = gradients / rates[highest], np.outer(np.nan_to_num(rates), gradients[highest])
        return np.asarray(own - other / rates[highest] ** 2)

    def reference(self, numbers: Floats) -> int:
        """Return the index of the most selected group; see `UnitStatistic.reference`."""
        return int(np.nanargmax(numbers))

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        """Return one-sided bounds of the loss, which is minus the impact ratio.

        The bounds come from the ratios of all pairs of groups. As in `gaps.largest_bounds`, each pair has an equal part
        of `alpha`, but the whole of `beta`.
        """
        means = sample.rows.mean(axis=0)
        rates, sizes = self._rates_of(means), means[len(means) // 2 :]
        # Of two groups with the same rate, the smaller comes first, so that the order of the groups has no effect.
        pairs = [
            sorted(pair, key=lambda group: (rates[group], sizes[group]))
            for pair in self.pairs
            if not np.isnan(rates[[*pair]]).any()
        ]
        log_ratios = [log_ratio(sample.rows, low, high) for low, high in pairs]
        below, above = normal.quantile(1 - alpha / len(pairs)), normal.quantile(1 - beta)
        highest = min(ratios.interval(*pair, below)[1] for pair in log_ratios)
        lowest = min(ratios.interval(*pair, above)[0] for pair in log_ratios)
        return -min(1.0, highest), -lowest

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the two-sided 95 % confidence interval of the impact ratio, within 0..1."""
        better, worse = self.bounds(sample, TAIL, TAIL)
        return -worse, -better

    def _rates_of(self, means: Floats) -> Floats:
        """Return the rate of each group; NaN for a small group."""
        sizes = means[..., means.shape[-1] // 2 :]
        return np.where(compared_groups(sizes), super().groups(means), np.nan)


def compared_groups(sizes: Floats) -> Bools:
    """Return which groups are large enough to be compared; `sizes` has shape (..., groups)."""
    return np.asarray(sizes >= SMALL_SHARE * sizes.sum(axis=-1, keepdims=True))


def log_ratio(rows: Floats, group: int, other: int) -> tuple[float, float]:
    """Return the logarithm of the ratio of two groups' rates, and its standard error over units.

    If each unit belongs to one group and has one answer, the error is that of Katz et al. (1978). Otherwise, the error
    takes into account that a unit counts in several groups, and that answers about one unit are averaged. See
    `ratios.log_ratio` for rates of 0 or 1.

    Args:
        rows: (units, 2 × groups) number of positive answers in each group, followed by number of answers in each group.
        group: index of the group.
        other: index of the group by whose rate the first group's rate is divided.
    """
    half = rows.shape[1] // 2
    hits, sizes = rows[:, :half].sum(axis=0), rows[:, half:].sum(axis=0)
    counts = float(hits[group]), float(sizes[group]), float(hits[other]), float(sizes[other])
    if not (hits[group] and hits[other]):
        return ratios.log_ratio(*counts)
    influence = [
        (rows[:, cell] - hits[cell] / sizes[cell] * rows[:, half + cell]) / hits[cell] for cell in (group, other)
    ]
    logarithm = math.log(counts[0] / counts[1]) - math.log(counts[2] / counts[3])
    error = math.sqrt(float(((influence[0] - influence[1]) ** 2).sum()))
    if error:
        return logarithm, error
    if (rows[:, half + group] * rows[:, half + other]).any():
        # No unit has different answers as both groups; half a unit is added for each of the two ways to differ.
        return logarithm, 1 / math.sqrt(counts[0] * counts[2])
    return ratios.log_ratio(*counts)
