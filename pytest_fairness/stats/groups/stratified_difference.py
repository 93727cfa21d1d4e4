"""Weighted mean difference between two groups of units in strata: weights, standard error, resampling."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pytest_fairness.stats.arrays import Bools, Floats, Ints
from pytest_fairness.stats.resampling import relabelling
from pytest_fairness.stats.resampling.bundles import LARGEST_UNBUNDLED, Bundles

CHUNK = 2**22
"""Largest number of values in memory at the same time while resamples are summed."""


def precision(*counts: Ints | Floats) -> Floats:
    """Return the precision of each stratum: 1 / (1/n + 1/m + …), where n, m, … are the sizes of its cells.

    The precision is 0 if a cell is empty. The variance of a mean of n units is proportional to 1/n. With precisions as
    weights, a weighted mean of differences therefore has the smallest variance if all units vary equally.

    Args:
        counts: numbers of units, one (strata,) array for each cell that a stratum has, such as its marked group.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(1 / sum(1 / np.asarray(count, dtype=np.float64) for count in counts))


def cell_sizes(marked: Bools, strata: Ints, number: int) -> tuple[Ints, Ints]:
    """Return the number of marked units and the number of unmarked units in each stratum; each of shape (number,).

    Args:
        marked: (units,) whether the unit belongs to the marked group.
        strata: (units,) stratum number of each unit, below `number`.
        number: number of strata.
    """
    return (
        np.bincount(strata[marked], minlength=number).astype(np.int64),
        np.bincount(strata[~marked], minlength=number).astype(np.int64),
    )


def coefficients(marked: Bools, strata: Ints, weights: Floats) -> Floats:
    """Return the coefficient of each unit in the weighted mean difference; shape (units,).

    `coefficients @ values` is the weighted mean, over strata, of the marked units' mean minus the unmarked units' mean.

    Args:
        marked: (units,) whether the unit belongs to the marked group.
        strata: (units,) stratum number of each unit.
        weights: (strata,) weight of each stratum, 0 if one group has no unit there; the weights need not add up to 1.
    """
    first, second = cell_sizes(marked, strata, len(weights))
    share = weights / weights.sum()
    return np.asarray(np.where(marked, 1.0, -1.0) * (share[strata] / np.where(marked, first[strata], second[strata])))


def difference_error(values: Floats, marked: Bools, strata: Ints, weights: Floats) -> tuple[float, float]:
    """Return the standard error of the weighted mean difference, and its degrees of freedom.

    The standard error is Welch's within strata, with the degrees of freedom of Satterthwaite (1946). In a stratum in
    which a group has only one unit, the variance is unknown. The variance of all such strata is therefore estimated
    from the variation of the strata's differences, as for paired data. The standard error is 0 if no variation is
    observed.

    Args:
        values: (units,) value of each unit.
        marked: (units,) whether the unit belongs to the marked group.
        strata: (units,) stratum number of each unit.
        weights: (strata,) weight of each stratum, 0 if one group has no unit there.
    """
    first, second = cell_sizes(marked, strata, len(weights))
    share = weights / weights.sum()
    used = weights > 0
    single = used & (np.minimum(first, second) == 1)
    parts: list[tuple[float, int]] = []
    for side, sizes in ((marked, first), (~marked, second)):
        means = np.bincount(strata[side], values[side], len(weights)) / np.maximum(sizes, 1)
        squares = np.bincount(strata[side], (values[side] - means[strata[side]]) ** 2, len(weights))
        for stratum in np.flatnonzero(used & ~single):
            n = int(sizes[stratum])
            parts.append((float(share[stratum] ** 2 * squares[stratum] / (n - 1) / n), n - 1))
    if single.any():
        parts.append(_single_unit_variance(values, marked, strata, share, single))
    total = sum(part for part, _ in parts)
    if total <= 0:
        return 0.0, float(max(1, len(values) - 2 * int(used.sum())))
    return math.sqrt(total), 1 / sum((part / total) ** 2 / degrees for part, degrees in parts)


def _single_unit_variance(
    values: Floats, marked: Bools, strata: Ints, share: Floats, single: Bools
) -> tuple[float, int]:
    """Return the variance contributed by strata in which a group has a single unit, and its degrees of freedom.

    Args:
        values: (units,) value of each unit.
        marked: (units,) whether the unit belongs to the marked group.
        strata: (units,) stratum number of each unit.
        share: (strata,) weight of each stratum, adding up to 1.
        single: (strata,) whether a group has a single unit in the stratum.
    """
    first, second = cell_sizes(marked, strata, len(share))
    chosen = np.flatnonzero(single)
    size = precision(first, second)[chosen]
    sums = [np.bincount(strata[side], values[side], len(share))[chosen] for side in (marked, ~marked)]
    apart = sums[0] / first[chosen] - sums[1] / second[chosen]
    if len(chosen) > 1:
        centre = float(size @ apart) / float(size.sum())
        variance, degrees = float(size @ (apart - centre) ** 2) / (len(chosen) - 1), len(chosen) - 1
    else:
        # The differences of a single stratum have no variation; the variance is estimated from the units of all strata.
        cells = strata * 2 + marked
        means = np.bincount(cells, values) / np.maximum(np.bincount(cells), 1)
        degrees = max(1, len(values) - len(np.unique(cells)))
        variance = float(((values - means[cells]) ** 2).sum()) / degrees
    return float((share[chosen] ** 2 / size).sum()) * variance, degrees


def relabelled_sums(
    columns: Floats, marked: Bools, strata: Ints, count: int, random: np.random.Generator
) -> tuple[Floats, bool]:
    """Return the column sums over the units that are labelled as marked, for each permutation of labels within strata.

    Args:
        columns: (units, columns) numbers.
        marked: (units,) whether the unit belongs to the marked group.
        strata: (units,) stratum number of each unit.
        count: number of random relabellings; if at most this many exist, each is used once.
        random: random generator.

    Returns:
        (relabellings, columns) sums, and whether these are the sums of all possible relabellings (an exact test).
    """
    if len(marked) > LARGEST_UNBUNDLED:
        bundles = Bundles.of(marked, strata, random)
        return bundles.relabellings(count, random) @ (bundles.indicator() @ columns), False
    labels, exact = relabelling.relabellings(marked, strata, count, random)
    rows = max(1, CHUNK // len(marked))
    return np.concatenate([labels[start : start + rows] @ columns for start in range(0, len(labels), rows)]), exact


def resampled_sums(columns: Floats, cells: Ints, count: int, random: np.random.Generator) -> Iterator[Floats]:
    """Yield the (draws, columns) column sums of bootstrap samples: units drawn with replacement within cells.

    Args:
        columns: (units, columns) numbers.
        cells: (units,) cell number of each unit. A bootstrap sample has as many units of each cell as the data have.
        count: number of bootstrap samples in all.
        random: random generator.
    """
    if len(cells) > LARGEST_UNBUNDLED:
        # Packs are drawn in place of single units.
        packs = Bundles.of(np.ones(len(cells), dtype=np.bool_), cells, random)
        columns, cells = packs.indicator() @ columns, packs.pack_sets
    members = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
    rows = max(1, CHUNK // len(cells))
    for start in range(0, count, rows):
        size = min(rows, count - start)
        drawn = [own[random.integers(len(own), size=(size, len(own)))] for own in members]
        yield np.stack(
            [sum(column[places].sum(axis=1) for places in drawn) for column in columns.T], axis=1, dtype=np.float64
        )


def permuted_differences(
    values: Floats, marked: Bools, strata: Ints, weights: Floats, count: int, random: np.random.Generator
) -> tuple[Floats, bool]:
    """Return the null distribution: the weighted mean difference for each permutation of group labels within strata.

    Args:
        values: (units,) value of each unit.
        marked: (units,) whether the unit belongs to the marked group; every stratum holds both groups.
        strata: (units,) stratum number of each unit.
        weights: (strata,) weight of each stratum.
        count: number of random relabellings; if at most this many exist, each is used once.
        random: random generator.

    Returns:
        (relabellings,) differences, and whether these are the differences of all possible relabellings (an exact test).
    """
    first, second = cell_sizes(marked, strata, len(weights))
    share = weights / weights.sum()
    ours, others = (values * (share / sizes)[strata] for sizes in (first, second))
    # A marked unit adds `ours` to the difference, and an unmarked unit subtracts `others`.
    sums, exact = relabelled_sums((ours + others)[:, None], marked, strata, count, random)
    return sums[:, 0] - others.sum(), exact
