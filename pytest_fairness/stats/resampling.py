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
    """A random generator that depends on nothing but this text: the same on every machine and in every process."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big"))


def relabellings(labels: Bools, strata: Ints, count: int, random: np.random.Generator) -> tuple[Bools, bool]:
    """Labels permuted within strata, as the hypothesis has it that labels do not matter.

    Args:
        labels: (n,) the observed labels.
        strata: (n,) labels are exchanged only between units of equal stratum.
        count: how many relabellings to draw; where there are no more than this many distinct ones, all of them are
            given, the observed one among them.
        random: the source of randomness.

    Returns:
        (relabellings, n) labels, and whether these are all there are (an exact test).
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


def exceeded(largest: Floats, level: float) -> float:
    """What the largest of many statistics exceeds with this probability, if nothing is there.

    A level that so many draws cannot resolve is taken from the distribution of extremes (Gumbel's) that has their mean
    and standard deviation.

    Args:
        largest: (draws,) the largest statistic of each draw.
        level: the probability.
    """
    observed = float(np.quantile(largest, 1 - level, method="higher"))
    if level * (len(largest) + 1) >= 1:
        return observed
    scale = math.sqrt(6) / math.pi * float(np.std(largest, ddof=1))
    tail = float(np.mean(largest)) - scale * (np.euler_gamma + math.log(-math.log1p(-level)))
    return max(observed, tail)


def run_swaps(now: Bools, cells: Ints, count: int, random: np.random.Generator) -> tuple[Bools, Bools]:
    """Run labels swapped within cells, at equal size: what two runs would look like if nothing had changed.

    Units of both runs lie in one array; a cell is a group within a stratum. In each cell as many units are dealt to
    either run as the smaller run holds there; a cell that one run lacks is left out.

    Args:
        now: (n,) whether the unit belongs to the present run.
        cells: (n,) the unit's cell.
        count: how many swaps to draw.
        random: the source of randomness.

    Returns:
        two (count, n) selections: the units dealt to the present run, and those dealt to the earlier one.
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
    """The two runs as they are, cut to equal size in every cell: arguments and result as in `run_swaps`.

    Where they are of equal size in every cell there is only one such cut, and one row is given.
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
