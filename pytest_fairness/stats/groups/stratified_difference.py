"""The mean difference between two groups whose units lie in strata: its weights, standard error and resampling."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pytest_fairness.stats.arrays import Bools, Floats, Ints
from pytest_fairness.stats.resampling import relabelling

CHUNK = 2**22
"""Numbers held at once while many resamples are summed."""


def precision(*counts: Ints | Floats) -> Floats:
    """Return 1 / (sum of 1/n) for each stratum; 0 where one of the counts is 0.

    Means of n units each differ with a variance in proportion to the inverse, so that these are the weights of least
    variance where all units vary alike.

    Args:
        counts: (strata,) units of each cell of the stratum, one array a cell.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(1 / sum(1 / np.asarray(count, dtype=np.float64) for count in counts))


def cell_sizes(marked: Bools, strata: Ints, number: int) -> tuple[Ints, Ints]:
    """Return how many marked, and how many other units each of `number` strata holds."""
    return (
        np.bincount(strata[marked], minlength=number).astype(np.int64),
        np.bincount(strata[~marked], minlength=number).astype(np.int64),
    )


def coefficients(marked: Bools, strata: Ints, weights: Floats) -> Floats:
    """Return (units,) coefficients c: `c @ values` is the weighted mean of the strata's differences between groups.

    Args:
        marked: (units,) whether the unit is of the first group.
        strata: (units,) number of the unit's stratum.
        weights: (strata,) of the strata, 0 where one group has no unit; they need not add up to 1.
    """
    first, second = cell_sizes(marked, strata, len(weights))
    share = weights / weights.sum()
    return np.asarray(np.where(marked, 1.0, -1.0) * (share[strata] / np.where(marked, first[strata], second[strata])))


def difference_error(values: Floats, marked: Bools, strata: Ints, weights: Floats) -> tuple[float, float]:
    """Return the standard error of the weighted mean difference, and its degrees of freedom.

    Welch's error within strata, with the degrees of freedom of Satterthwaite (1946). A stratum in which a group has one
    unit shows no spread by itself: the differences of such strata are compared with each other, as paired ones are.

    Args:
        values: (units,) numbers.
        marked, strata, weights: as in `coefficients`.
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
        parts.append(_of_single(values, marked, strata, share, single))
    total = sum(part for part, _ in parts)
    if total <= 0:
        return 0.0, float(max(1, len(values) - 2 * int(used.sum())))
    return math.sqrt(total), total**2 / sum(part**2 / degrees for part, degrees in parts)


def _of_single(values: Floats, marked: Bools, strata: Ints, share: Floats, single: Bools) -> tuple[float, int]:
    """Return the variance that strata with a single unit in a group add, and its degrees of freedom."""
    first, second = cell_sizes(marked, strata, len(share))
    chosen = np.flatnonzero(single)
    size = precision(first, second)[chosen]
    sums = [np.bincount(strata[side], values[side], len(share))[chosen] for side in (marked, ~marked)]
    apart = sums[0] / first[chosen] - sums[1] / second[chosen]
    if len(chosen) > 1:
        centre = float(size @ apart) / float(size.sum())
        spread, degrees = float(size @ (apart - centre) ** 2) / (len(chosen) - 1), len(chosen) - 1
    else:
        # One alone has nothing to be compared with: all units of the other strata tell how units vary.
        cells = strata * 2 + marked
        means = np.bincount(cells, values) / np.maximum(np.bincount(cells), 1)
        degrees = max(1, len(values) - len(np.unique(cells)))
        spread = float(((values - means[cells]) ** 2).sum()) / degrees
    return float((share[chosen] ** 2 / size).sum()) * spread, degrees


def relabelled(
    columns: Floats, marked: Bools, strata: Ints, count: int, random: np.random.Generator
) -> tuple[Floats, bool]:
    """Return sums of columns over the marked units, once labels are permuted within strata.

    Args:
        columns: (units, columns) numbers.
        marked, strata: as in `coefficients`.
        count: how many relabellings to draw.
        random: the source of randomness.

    Returns:
        (relabellings, columns) sums, and whether these are all relabellings that there are.
    """
    labels, exact = relabelling.relabellings(marked, strata, count, random)
    rows = max(1, CHUNK // len(marked))
    return np.concatenate([labels[start : start + rows] @ columns for start in range(0, len(labels), rows)]), exact


def resampled(columns: Floats, cells: Ints, count: int, random: np.random.Generator) -> Iterator[Floats]:
    """Yield (draws, columns) sums over units drawn with replacement within their cells, `count` draws in all.

    Args:
        columns: (units, columns) numbers.
        cells: (units,) number of the unit's cell; a draw takes as many units of each as there are.
        count: how many draws.
        random: the source of randomness.
    """
    members = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
    rows = max(1, CHUNK // len(cells))
    for start in range(0, count, rows):
        size = min(rows, count - start)
        drawn = [own[random.integers(len(own), size=(size, len(own)))] for own in members]
        yield np.stack(
            [sum(column[places].sum(axis=1) for places in drawn) for column in columns.T], axis=1, dtype=np.float64
        )


def swapped(
    values: Floats, marked: Bools, strata: Ints, current: Bools, count: int, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return the differences of two runs that differ by chance only; see `resampling.run_swaps`.

    Args:
        values: (units,) numbers of both runs.
        marked, strata: as in `coefficients`.
        current: (units,) whether the unit belongs to the current run.
        count: how many swaps to draw.
        random: the source of randomness.

    Returns:
        two (count,) arrays: the weighted mean differences of the current and of the baseline run.
    """
    share = _equal_size_coefficients(marked, strata, current) * values
    rows = max(1, CHUNK // len(current))
    found = []
    for start in range(0, count, rows):
        dealt = relabelling.run_swaps(current, strata * 2 + marked, min(rows, count - start), random)
        found.append([side @ share for side in dealt])
    first, second = zip(*found, strict=True)
    return np.concatenate(first), np.concatenate(second)


def at_equal_size(
    values: Floats, marked: Bools, strata: Ints, current: Bools, cuts: int, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return the differences of the two runs cut to equal size, one a cut; arguments as in `swapped`."""
    share = _equal_size_coefficients(marked, strata, current) * values
    first, second = relabelling.equal_size(current, strata * 2 + marked, cuts, random)
    return first @ share, second @ share


def equal_size_weights(marked: Bools, strata: Ints, current: Bools) -> Floats:
    """Return (strata,) weights of two runs at equal size, 0 where a run lacks a group; arguments as in `swapped`."""
    return precision(*_smaller_run(marked, strata, current))


def _smaller_run(marked: Bools, strata: Ints, current: Bools) -> tuple[Ints, Ints]:
    number = int(strata.max()) + 1
    runs = [cell_sizes(marked[run], strata[run], number) for run in (current, ~current)]
    return np.minimum(runs[0][0], runs[1][0]), np.minimum(runs[0][1], runs[1][1])


def _equal_size_coefficients(marked: Bools, strata: Ints, current: Bools) -> Floats:
    first, second = _smaller_run(marked, strata, current)
    weights = precision(first, second)
    sizes = np.where(marked, first[strata], second[strata])
    return np.asarray(np.where(marked, 1.0, -1.0) * (weights / weights.sum())[strata] / np.maximum(sizes, 1))


def permuted(
    values: Floats, marked: Bools, strata: Ints, weights: Floats, count: int, random: np.random.Generator
) -> tuple[Floats, bool]:
    """Return weighted mean differences once labels are permuted within strata.

    Args:
        values: (units,) numbers.
        marked, strata, weights: as in `coefficients`; every stratum holds both groups.
        count, random: as in `relabelled`.

    Returns:
        (relabellings,) differences, and whether these are all relabellings that there are.
    """
    first, second = cell_sizes(marked, strata, len(weights))
    share = weights / weights.sum()
    ours, others = (values * (share / sizes)[strata] for sizes in (first, second))
    # A unit adds `ours` where it is marked, and takes `others` away where it is not.
    sums, exact = relabelled((ours + others)[:, None], marked, strata, count, random)
    return sums[:, 0] - others.sum(), exact
