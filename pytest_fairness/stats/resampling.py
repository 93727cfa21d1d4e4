"""Seeded resampling: relabelling within strata, swapping runs within cells, and the p-values they give."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DRAWS_OF_A_TAIL = 1000
"""Draws from which on their tail tells more than that the observed statistic is beyond it."""
SYMMETRIC = 0.01
"""Skewness below which the normal distribution stands for the gamma distribution, which has no limit there."""


def generator(seed: str) -> np.random.Generator:
    """Return a random generator seeded by a text, which is the same on every machine and in every process."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big"))


def relabellings(labels: Bools, strata: Ints, count: int, random: np.random.Generator) -> tuple[Bools, bool]:
    """Return labels permuted within strata: the null distribution of labels that do not matter.

    Args:
        labels: (n,) the observed labels.
        strata: (n,) labels are exchanged only between units of equal stratum.
        count: number of draws; if there are no more distinct relabellings than this, all of them are returned, the
            observed one included.
        random: the source of randomness.

    Returns:
        (relabellings, n) labels, and whether they are all distinct relabellings (an exact test).
    """
    members = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    distinct = math.prod(math.comb(len(indices), int(labels[indices].sum())) for indices in members)
    if distinct <= count:
        rows = np.zeros((distinct, len(labels)), dtype=np.bool_)
        for row, choice in zip(rows, _all_choices(labels, members), strict=True):
            row[choice] = True
        return rows, True
    rows = np.empty((count, len(labels)), dtype=np.bool_)
    for indices in members:
        rows[:, indices] = random.permuted(np.tile(labels[indices], (count, 1)), axis=1)
    return rows, False


def _all_choices(labels: Bools, members: list[Ints]) -> Iterator[Ints]:
    per_stratum = [combinations(indices, int(labels[indices].sum())) for indices in members]
    for choice in product(*per_stratum):
        yield np.array([index for part in choice for index in part], dtype=np.int64)


def p_value(null: Floats, observed: float, *, exact: bool) -> float:
    """Return the one-sided p-value: how often the null statistic is at least the observed one.

    Args:
        null: (draws,) the statistic under the hypothesis.
        observed: the statistic as it was observed.
        exact: whether `null` holds every possible value (the observed one among them); if not, the observed one is
            counted as a draw, so that p is never 0 (Phipson and Smyth 2010), or, beyond all of many draws, p is taken
            from their tail; see `tail_p_value`.
    """
    # Equal statistics of different relabellings may differ in the last bits.
    hits = int(np.count_nonzero(null >= observed - 1e-12 * max(1.0, abs(observed))))
    if exact:
        return hits / len(null)
    counted = (1 + hits) / (1 + len(null))
    return counted if hits or len(null) < DRAWS_OF_A_TAIL else tail_p_value(null, observed)


def tail_p_value(null: Floats, observed: float) -> float:
    """Return the p-value of a statistic beyond all draws, by the gamma distribution with their first three moments.

    The Pearson type III approximation of permutation tests (Mielke and Berry 2007); a skewness below 0 counts as 0,
    which errs upwards. Never below a twentieth of the smallest p-value that the draws resolve, nor above it.

    Args:
        null: (draws,) the statistic under the hypothesis, at least `DRAWS_OF_A_TAIL`.
        observed: the statistic as it was observed, larger than all draws.
    """
    # Deferred, as scipy is not needed to load a probe.
    from scipy.special import gammaincc, ndtr

    resolved, spread = 1 / (1 + len(null)), float(null.std())
    if not spread:
        return resolved  # all draws are the same, so that nothing tells how far they may go
    z = (observed - float(null.mean())) / spread
    skewness = float((((null - null.mean()) / spread) ** 3).mean())
    if skewness < SYMMETRIC:
        tail = float(ndtr(-z))
    else:
        shape = 4 / skewness**2
        tail = float(gammaincc(shape, shape + z * math.sqrt(shape)))
    return min(resolved, max(resolved / 20, tail))


def exceeded(largest: Floats, alpha: float) -> float:
    """Return the threshold that the largest of many statistics exceeds with probability `alpha` under the hypothesis.

    A probability below the resolution of the draws is extrapolated by the Gumbel distribution with the mean and
    standard deviation of the draws.

    Args:
        largest: (draws,) the largest statistic of each draw.
        alpha: the probability.
    """
    observed = float(np.quantile(largest, 1 - alpha, method="higher"))
    if alpha * (len(largest) + 1) >= 1:
        return observed
    scale = math.sqrt(6) / math.pi * float(np.std(largest, ddof=1))
    tail = float(np.mean(largest)) - scale * (np.euler_gamma + math.log(-math.log1p(-alpha)))
    return max(observed, tail)


def run_swaps(now: Bools, cells: Ints, count: int, random: np.random.Generator) -> tuple[Bools, Bools]:
    """Return run labels swapped within cells, at equal size: the null distribution of no change.

    The units of both runs are in one array; a cell is a group within a stratum. In each cell either run gets as many
    units as the smaller run has there; a cell that is empty in one run is left out.

    Args:
        now: (n,) whether the unit belongs to the current run.
        cells: (n,) number of the unit's cell.
        count: number of draws.
        random: the source of randomness.

    Returns:
        two (count, n) selections: the units that are given to the current run, and to the baseline.
    """
    dealt_now = np.zeros((count, len(now)), dtype=np.bool_)
    dealt_then = np.zeros((count, len(now)), dtype=np.bool_)
    for cell in np.unique(cells):
        indices = np.flatnonzero(cells == cell)
        size = int(min(now[indices].sum(), (~now[indices]).sum()))
        deal = np.zeros(len(indices), dtype=np.int8)
        deal[:size], deal[size : 2 * size] = 1, 2
        drawn = random.permuted(np.tile(deal, (count, 1)), axis=1)
        dealt_now[:, indices] = drawn == 1
        dealt_then[:, indices] = drawn == 2
    return dealt_now, dealt_then


def equal_size(now: Bools, cells: Ints, count: int, random: np.random.Generator) -> tuple[Bools, Bools]:
    """Return the units of both runs, cut to equal size in every cell; arguments and result as in `run_swaps`.

    Runs of equal size in every cell need no cut; the result then has one row.
    """
    halves = []
    for side in (now, ~now):
        selected = np.zeros((count, len(now)), dtype=np.bool_)
        for cell in np.unique(cells):
            own = np.flatnonzero((cells == cell) & side)
            size = min(len(own), int(np.count_nonzero((cells == cell) & ~side)))
            deal = np.zeros(len(own), dtype=np.bool_)
            deal[:size] = True
            selected[:, own] = random.permuted(np.tile(deal, (count, 1)), axis=1)
        halves.append(selected)
    first, second = halves
    if (first | second).all():
        return first[:1], second[:1]
    return first, second
