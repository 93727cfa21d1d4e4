"""Arrays, and permutation, sign-flip, bootstrap and group-sequential tests: seeded draws, p-values, alphas.

`count` is the number of random draws of a test. If at most this many combinations exist, each is used once, including
the observed one, and the test is exact.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats import intervals

# Type aliases of numpy arrays, and conversions of names and numbers.

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NameT = TypeVar("NameT", bound=str | tuple[Any, ...])


def numbered(names: Sequence[NameT]) -> tuple[tuple[NameT, ...], Ints]:
    """Return the sorted distinct names, and each name's index among them: b, a, b gives (a, b) and 1, 0, 1."""
    different = tuple(sorted({*names}))
    places = {name: place for place, name in enumerate(different)}
    return different, np.array([places[name] for name in names], dtype=np.int64)


def number_or_none(cell: float) -> float | None:
    return None if math.isnan(cell) else float(cell)


# Random generators that are seeded by a text.


def generator(seed: str) -> np.random.Generator:
    """Return a random generator seeded by a text; the same text gives the same numbers on every machine."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big"))


# P-values and critical values from a resampled null distribution; adjustment of p-values for multiple tests.

PERMUTATIONS = 1999
"""Number of random draws of a permutation test."""
DRAWS_OF_A_TAIL = 1000
"""Smallest number of draws from which the tail of the null distribution is extrapolated."""
SYMMETRIC = 0.01
"""Skewness below which the normal distribution replaces the gamma distribution, which is not defined for a skewness
of 0."""


def p_value(null: Floats, observed: float, *, exact: bool) -> float:
    """Return the one-sided p-value: the share of draws whose statistic is at least as large as the observed one.

    Args:
        exact: whether `null` holds each possible relabelling once, including the observed labels. If not, the observed
            statistic counts as one more draw, so that p is never 0 (Phipson and Smyth 2010). If, moreover, the observed
            statistic exceeds all of at least `DRAWS_OF_A_TAIL` draws, `tail_p_value` extrapolates p.
    """
    # Equal statistics of different relabellings may differ in the last bits.
    hits = int(np.count_nonzero(null >= observed - 1e-12 * max(1.0, abs(observed))))
    if exact:
        return hits / len(null)
    counted = (1 + hits) / (1 + len(null))
    return counted if hits or len(null) < DRAWS_OF_A_TAIL else tail_p_value(null, observed)


def tail_p_value(null: Floats, observed: float) -> float:
    """Return the p-value of a statistic that exceeds all draws, extrapolated by a gamma distribution.

    The gamma distribution has the first three moments of the draws. This is the Pearson type III approximation of
    permutation tests (Mielke and Berry 2007). A skewness below 0 counts as 0, which makes p too large rather than too
    small. The p-value is at most 1 / (draws + 1), and at least a twentieth of this number.
    """
    resolved = 1 / (1 + len(null))
    sd = float(null.std()) if np.isfinite(null).all() else 0.0
    if not sd:
        return resolved  # equal or infinite draws have no tail to extrapolate
    z = (observed - float(null.mean())) / sd
    skewness = float((((null - null.mean()) / sd) ** 3).mean())
    return min(resolved, max(resolved / 20, gamma_tail(z, max(0.0, skewness))))


def gamma_tail(z: float, skewness: float) -> float:
    """Return the probability that a variable of mean 0 and variance 1 exceeds z; its distribution is Pearson type III.

    This is a shifted gamma distribution, mirrored for a skewness below 0.
    """
    # Deferred, as scipy is not needed to load a probe.
    from scipy.special import gammainc, gammaincc, ndtr

    if abs(skewness) < SYMMETRIC:
        return float(ndtr(-z))
    shape = 4 / skewness**2
    if skewness > 0:
        return float(gammaincc(shape, max(0.0, shape + z * math.sqrt(shape))))
    return float(gammainc(shape, max(0.0, shape - z * math.sqrt(shape))))


def threshold(largest: Floats, alpha: float) -> float:
    """Return the critical value that the largest of many statistics exceeds by chance with probability `alpha`.

    If `alpha` is too small for the number of draws, the critical value is extrapolated by the Gumbel distribution with
    the mean and standard deviation of the draws.
    """
    observed = float(np.quantile(largest, 1 - alpha, method="higher"))
    if alpha * (len(largest) + 1) >= 1:
        return observed
    scale = math.sqrt(6) / math.pi * float(np.std(largest, ddof=1))
    tail = float(np.mean(largest)) - scale * (np.euler_gamma + math.log(-math.log1p(-alpha)))
    return max(observed, tail)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for multiple tests by Holm's method (1979), in the given order; scipy lacks it."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


# Exact tests of paired answers: McNemar and sign flip.


def mcnemar(one_way: int, other_way: int, *, two_sided: bool = False) -> float:
    """Return the p-value of the exact McNemar test for pairs of yes-or-no answers (McNemar 1947); 1 if no pair differs.

    `one_way` is the number of pairs that differ in the direction of interest.
    """
    if one_way + other_way == 0:
        return 1.0
    # Deferred, as scipy.stats takes half a second to import and only measuring needs it.
    from scipy.stats import binomtest

    pairs = one_way + other_way
    test = binomtest(one_way, pairs) if two_sided else binomtest(one_way, pairs, alternative="greater")
    return float(test.pvalue)


def sign_flip(differences: Floats, count: int, random: np.random.Generator, *, two_sided: bool = False) -> float:
    """Return the p-value of (units,) differences, whose mean is 0 under the null hypothesis; see `sign_flips`."""
    return float(sign_flips(differences[:, None], count, random, two_sided=two_sided)[0])


def sign_flips(differences: Floats, count: int, random: np.random.Generator, *, two_sided: bool = False) -> Floats:
    """Test several mean differences of the same units by sign flips, and return their p-values, adjusted jointly.

    All of a unit's (units, tests) differences get the same sign. Each mean is divided by the root of the mean of its
    squares, which no sign changes, and is compared with the largest of all means of a draw (the single-step max-T
    method of Westfall and Young 1993). A noisy difference therefore does not hide a precise one. The p-values are exact
    for few units, and 1 for differences that are all 0.
    """
    p_values = np.ones(differences.shape[1])
    tested = np.flatnonzero((differences != 0).any(axis=0))
    # The sign of a unit without differences does not matter; without such units more tests are exact.
    moved = differences[(differences != 0).any(axis=1)][:, tested]
    if not len(tested):
        return p_values
    moved = moved / np.abs(moved).max(axis=0)  # squares of very small numbers would be 0
    scaled = moved / np.sqrt((moved**2).mean(axis=0))
    null, exact = flipped_means(scaled, count, random)
    means = scaled.mean(axis=0)
    if two_sided:
        null, means = np.abs(null), np.abs(means)
    largest = null.max(axis=1)
    p_values[tested] = [p_value(largest, float(mean), exact=exact) for mean in means]
    return p_values


# Resampling of a table with a row for each entity: random signs, swapped runs and bootstrap.
#
# The functions return the column means of each random draw, shape (draws, columns), so that the caller can compute
# any statistic of the means.

NUMBERS_AT_ONCE = 2**20
"""Largest number of table cells, over all draws, that are in memory at the same time."""


def swapped_means(
    current: Floats, baseline: Floats, count: int, random: np.random.Generator
) -> tuple[Floats, Floats, bool]:
    """Return both runs' (draws, columns) means after random swaps of rows, and whether the test is exact.

    The null hypothesis is that nothing changed: an entity's row of the current run and its row of the baseline change
    places with probability 0.5. The rows are (entities, columns) numbers of the same entities, without NaN.
    """
    chosen, exact = _chosen_sums(baseline - current, count, random)
    moved = chosen / len(current)
    return current.mean(axis=0) + moved, baseline.mean(axis=0) - moved, exact


def flipped_means(differences: Floats, count: int, random: np.random.Generator) -> tuple[Floats, bool]:
    """Return (draws, columns) means after random changes of the entities' signs, and whether the test is exact.

    The null hypothesis is that the means are 0. All differences of an entity get the same sign.
    """
    flipped, exact = _chosen_sums(differences, count, random)
    return (differences.sum(axis=0) - 2 * flipped) / len(differences), exact


def bootstrap_means(rows: Floats, count: int, random: np.random.Generator) -> Floats:
    """Return the column means of bootstrap samples: entities drawn with replacement; shape (count, columns).

    Cells with NaN are left out of the means. A mean is NaN if no cell is left.
    """
    present = ~np.isnan(rows)
    filled = np.where(present, rows, 0.0)
    chances = np.full(len(rows), 1 / len(rows))
    parts = []
    for size in _batch_sizes(count, len(rows)):
        weights = random.multinomial(len(rows), chances, size=size).astype(np.float64)
        with np.errstate(invalid="ignore"):
            parts.append(weights @ filled / (weights @ present))
    return np.concatenate(parts)


def _chosen_sums(rows: Floats, count: int, random: np.random.Generator) -> tuple[Floats, bool]:
    """Return (draws, columns) sums of rows that are each chosen with probability 0.5, and whether the test is exact."""
    entities = len(rows)
    if 2**entities <= count:
        return np.array(list(product((0.0, 1.0), repeat=entities))) @ rows, True
    parts = [
        random.integers(0, 2, size=(size, entities)).astype(np.float64) @ rows for size in _batch_sizes(count, entities)
    ]
    return np.concatenate(parts), False


def _batch_sizes(draws: int, numbers_per_draw: int) -> list[int]:
    largest = max(1, NUMBERS_AT_ONCE // max(1, numbers_per_draw))
    return [min(largest, draws - start) for start in range(0, draws, largest)]


# Permutation of group labels within strata, and of run labels within cells.

CURRENT, BASELINE = 1, 2
"""Numbers that stand for the two runs in `RunCells._deal`."""
LABELS_AT_ONCE = 2**22
"""Largest number of labels that are permuted at a time."""

LabelT = TypeVar("LabelT", np.bool_, np.int8)


def relabellings(labels: Bools, strata: Ints, count: int, random: np.random.Generator) -> tuple[Bools, bool]:
    """Return (draws, units) group labels after permutation within strata, and whether the test is exact.

    The null hypothesis is that the groups do not differ: labels are exchanged only between units of the same stratum.
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
    """Yield, for each distinct relabelling, the indices of the units whose label is true."""
    per_stratum = [combinations(indices, int(labels[indices].sum())) for indices in members]
    for choice in product(*per_stratum):
        yield np.array([index for part in choice for index in part], dtype=np.int64)


@dataclass(frozen=True)
class RunCells:
    """Units of two runs in one array, grouped by cell (group within stratum); units are exchanged within cells only.

    Attributes:
        current: (units,) whether the unit belongs to the current run.
        members: indices of each cell's units.
        equal_size: whether only as many units of a cell are used as the run with fewer units has; this is for values
            that depend on the number of units. Otherwise, all units of the cells that both runs have are used.
    """

    current: Bools
    members: list[Ints]
    equal_size: bool = True

    @classmethod
    def of(cls, current: Bools, cells: Ints, *, equal_size: bool = True) -> RunCells:
        order = np.argsort(cells, kind="stable")
        return cls(current, np.split(order, np.flatnonzero(np.diff(cells[order])) + 1), equal_size)

    def swaps(self, count: int, random: np.random.Generator) -> tuple[Bools, Bools]:
        """Return (count, units) masks of the units of each run after random exchange (null hypothesis: no change).

        In each cell, both runs get as many units as the run with fewer units has in this cell or, without `equal_size`,
        as many as they have. A cell that is empty in one run is left out.
        """
        to_current = np.zeros((count, len(self.current)), dtype=np.bool_)
        to_baseline = np.zeros((count, len(self.current)), dtype=np.bool_)
        for indices in self.members:
            for rows, drawn in _permuted(self._deal(indices), count, random):
                to_current[rows, indices] = drawn == CURRENT
                to_baseline[rows, indices] = drawn == BASELINE
        return to_current, to_baseline

    def sums_after_swaps(self, values: Floats, count: int, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Return (count, columns) sums of `values` over each run's units after the random exchange of `swaps`.

        The masks of all draws are never in memory together. See `sums` for the weights of the units.
        """
        sums = np.zeros((2, count, values.shape[1]))
        for indices in self.members:
            own = values[indices]
            for rows, drawn in _permuted(self._deal(indices), count, random):
                for total, run, weight in zip(sums, (CURRENT, BASELINE), self._weights(indices), strict=True):
                    total[rows] += (drawn == run).astype(np.float64) @ own * weight
        return sums[0], sums[1]

    def sums(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the column sums over the units of the current run, and over those of the baseline, each (columns,).

        A cell has the same weight in both runs: the number of units of the run with fewer units in it.
        """
        sums = np.zeros((2, values.shape[1]))
        for indices in self.members:
            own = self.current[indices]
            for total, side, weight in zip(sums, (own, ~own), self._weights(indices), strict=True):
                total += values[indices[side]].sum(axis=0) * weight
        return sums[0], sums[1]

    def _weights(self, indices: Ints) -> tuple[float, float]:
        own = int(np.count_nonzero(self.current[indices]))
        other = len(indices) - own
        size = min(own, other)
        return (1.0, 1.0) if self.equal_size else (size / max(own, 1), size / max(other, 1))

    def cuts(self, count: int, random: np.random.Generator) -> tuple[Bools, Bools]:
        """Return random cuts: masks of each run's units, with the same number of units of both runs in each cell.

        The masks have the shape (count, units) or, if the runs already have equal size in every cell, a single row.
        """
        equal = all(2 * np.count_nonzero(self.current[indices]) == len(indices) for indices in self.members)
        halves = []
        for side in (self.current, ~self.current):
            selected = np.zeros((1 if equal else count, len(side)), dtype=np.bool_)
            for indices in self.members:
                own = indices[side[indices]]
                deal = np.arange(len(own)) < len(indices) - len(own)
                for rows, drawn in _permuted(deal, count, random):
                    # Runs of equal size consume the same random numbers, which later draws depend on.
                    selected[slice(1) if equal else rows, own] = drawn[:1] if equal else drawn
            halves.append(selected)
        return halves[0], halves[1]

    def _deal(self, indices: Ints) -> NDArray[np.int8]:
        """Return the runs to which the units of a cell are dealt: `CURRENT`, `BASELINE` or 0 for neither."""
        own = int(np.count_nonzero(self.current[indices]))
        size = min(own, len(indices) - own)
        deal = np.zeros(len(indices), dtype=np.int8)
        if not self.equal_size and size:
            deal[:own], deal[own:] = CURRENT, BASELINE
        else:
            deal[:size], deal[size : 2 * size] = CURRENT, BASELINE
        return deal


def _permuted(
    deal: NDArray[LabelT], count: int, random: np.random.Generator
) -> Iterator[tuple[slice, NDArray[LabelT]]]:
    """Yield random permutations of `deal`, `count` in all, in arrays of limited size, with the slice of their rows."""
    rows = max(1, LABELS_AT_ONCE // max(1, len(deal)))
    for start in range(0, count, rows):
        size = min(rows, count - start)
        yield slice(start, start + size), random.permuted(np.tile(deal, (size, 1)), axis=1)


# Group-sequential tests: the alpha of each interim analysis while data are being collected.

EXPONENT = 2.0
"""Exponent of the spending function; with 2, most of alpha remains for the last analyses."""
_DEVIATIONS = 8.0
_POINTS = 801


def interim_alphas(shares: Sequence[float], alpha: float) -> list[float]:
    """Return the one-sided alpha of each interim analysis; all analyses together have the error rate `alpha`, 0..0.5.

    `shares` are the shares of all planned data at each analysis, in rising order up to 1. When a share of the data has
    been collected, the probability of a false rejection in the analyses up to then is `alpha × share ** 2`. This is a
    spending function (Lan and DeMets 1983) of the power family (Kim and DeMets 1987). The data that an analysis adds
    must be independent of earlier data. The probabilities are computed by numerical integration (Armitage, McPherson
    and Rowe 1969).
    """
    return list(_alphas(tuple(shares), alpha)) if len(shares) > 1 else [alpha]


@lru_cache(maxsize=256)
def _alphas(shares: tuple[float, ...], alpha: float) -> tuple[float, ...]:
    # The sum of all data so far is a random walk that starts at 0 and has the share as its variance.
    sums, weights = np.zeros(1), np.ones(1)
    one_sided, previous = [], 0.0
    for share in shares:
        sd = math.sqrt(share - previous)
        bound = _critical_value(sums, weights, sd, alpha * (share**EXPONENT - previous**EXPONENT))
        one_sided.append(intervals.upper_tail(bound / math.sqrt(share)))
        sums, weights = _distribution_below(bound, math.sqrt(share), sums, weights, sd)
        previous = share
    return tuple(one_sided)


def _critical_value(sums: Floats, weights: Floats, sd: float, spent: float) -> float:
    """Return the critical value of the next analysis, which the sum of the data exceeds with probability `spent`.

    `sums` and `weights` are the possible sums at the previous analysis and their probabilities; `sd` is the standard
    deviation of the data that the next analysis adds.
    """
    # Deferred, as scipy.optimize takes a third of a second to import and few probes have interim analyses.
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def excess(bound: float) -> float:
        return float(weights @ ndtr((sums - bound) / sd)) - spent

    return float(brentq(excess, -_DEVIATIONS, _DEVIATIONS))


def _distribution_below(
    bound: float, total_sd: float, sums: Floats, weights: Floats, sd: float
) -> tuple[Floats, Floats]:
    """Return possible sums of the data at the next analysis, up to `bound`, and their probabilities."""
    points = np.linspace(-_DEVIATIONS * total_sd, bound, _POINTS)
    density = np.exp(-(((points[:, None] - sums) / sd) ** 2) / 2) @ weights / (sd * math.sqrt(2 * math.pi))
    width = points[1] - points[0]
    density[[0, -1]] /= 2
    return points, density * width
