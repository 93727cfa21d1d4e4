"""Excess Jensen-Shannon divergence between two groups of documents, with standard errors and sample-size estimates.

`first` and `second` (or `marked`) say which documents are in the two groups, `current` and `baseline` which are in the
two runs; they have the shape (documents,) or, for many labellings, (labellings, documents). A document may be in
neither group. `counts` are (documents, words), and `strata` and `cells` (documents,) numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pytest_fairness.stats import resampling
from pytest_fairness.stats.resampling import Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array


# Excess Jensen-Shannon divergence between two groups of documents, for many labellings at once.
#
# A labelling assigns documents to the two groups. The divergence of two finite samples is above 0 even if both come
# from the same distribution (Gerlach, Font-Clos and Altmann 2016). The excess is the divergence minus its mean over
# labels that are permuted within strata.
#
# A block is a set of documents with a divergence of its own. The first block holds all documents; in this block,
# opposite differences in two strata cancel. Each stratum with enough documents is a further block, so that opposite
# differences do not cancel. The result is a weighted sum over blocks.

CHUNK = 15_000
"""Largest number of values in memory at the same time while divergences are computed; larger arrays would be slower,
because the operating system allocates them anew each time."""
LEAST_ROWS = 8
"""Smallest number of labellings that are computed at once."""
OPERATIONS = 2**29
"""Largest number of multiplications for a chunk of labellings."""
LARGEST_EXACT = 2**24
"""Integers up to this number are exact in floating-point numbers of 32 bits."""
TINY = float(np.finfo(np.float64).tiny)
LARGEST_SHARE = 0.5
"""Largest total weight of the blocks of single strata; the block of all documents has the remaining weight. See
`Words`."""
KNOWN_OCCURRENCES = 64
"""Largest number of occurrences for which `_mean_bits` returns a number; a word with more occurrences gets the number
for this many."""


class Sums(NamedTuple):
    """Sums over the documents of the two groups, for some labellings. All sums are exact integers.

    Attributes:
        first, second: (columns, labellings) counts of the two groups.
        squares: (columns, labellings) squared counts of both groups; empty if they are not needed.
        lengths: (groups, labellings) number of words.
        shared: (groups, labellings) number of words that another document of the block has, too.
        documents: (labellings,) number of documents of both groups.
    """

    first: Floats
    second: Floats
    squares: Floats
    lengths: Floats
    shared: Floats
    documents: Floats

    def divergences(self) -> Floats:
        """Return the divergence of each labelling in bits; 0 if a group has no words."""
        (one, other), (shared, other_shared) = self.lengths, self.shared
        measured = (one > 0) & (other > 0)
        # A word occurs a times among the m words of one group, and b times among the n words of the other. Then m (p +
        # q) with p = a / m and q = b / n is a + b m / n.
        ratio = np.divide(one, other, out=np.zeros_like(one), where=measured)
        bits = measured.astype(np.float64)
        for totals, number, length, sign in (
            (self.first, shared, one, 1),
            (self.second, other_shared, other, 1),
            (self.first + self.second * ratio, shared + ratio * other_shared, one, -1),
        ):
            size = np.maximum(length, 1.0)
            logarithms = np.log2(np.maximum(totals, TINY))
            logarithms *= totals
            bits += sign / 2 * (logarithms.sum(axis=0) - number * np.log2(size)) / size
        # Rounding errors can make a divergence of 0 negative.
        return np.where(measured, np.maximum(bits, 0.0), 0.0)


@dataclass(frozen=True)
class Block:
    """Word counts of a set of documents with a divergence of its own.

    A word that only one of the documents contains is not stored. In every labelling it occurs in one group only, so its
    part of the sum p log p + q log q − (p + q) log (p + q) is 0 (p and q: its occurrences in the two groups).

    Attributes:
        documents: indices of the documents.
        counts: (columns, documents) counts of a word in each column. The numbers have 32 bits if all sums of counts are
            exact in 32 bits, because a matrix product then takes half of the time or less.
        squares: (columns, documents) squared counts.
        lengths: (documents,) numbers of words.
        shared: (documents,) numbers of words that another document of the block has, too.
        chance_bits: divergence that a word adds by chance, by the word's number of occurrences; see `_mean_bits`.
    """

    documents: Ints
    counts: csr_array
    squares: csr_array
    lengths: Floats
    shared: Floats
    chance_bits: Floats

    @classmethod
    def of(cls, counts: csr_array, documents: Ints, first: Bools, second: Bools) -> Block:
        own = counts[documents]
        lengths = own.sum(axis=1)
        own = own[:, np.flatnonzero(np.bincount(own.indices, minlength=own.shape[1]) > 1)]
        squares = own.power(2)
        exact = np.float32 if squares.sum(axis=0).max(initial=0) <= LARGEST_EXACT else np.float64
        return cls(
            documents,
            own.T.tocsr().astype(exact),
            squares.T.tocsr().astype(exact),
            np.asarray(lengths, dtype=np.float64),
            np.asarray(own.sum(axis=1), dtype=np.float64),
            _mean_bits(int(first[documents].sum()), int(second[documents].sum())),
        )

    def sums(self, first: Bools, second: Bools, *, squared: bool) -> Iterator[Sums]:
        """Yield the sums of the groups for a few labellings at a time."""
        sides = [side[:, self.documents] for side in (first, second)]
        # A group's matrix product leaves out the documents that no labelling puts into the group. If runs are swapped,
        # these are half of all documents.
        used = [np.flatnonzero(side.any(axis=0)) for side in sides]
        tables = [self.counts if len(own) == len(self.documents) else self.counts[:, own] for own in used]
        rows = max(LEAST_ROWS, CHUNK // max(1, self.counts.shape[0]))
        for start in range(0, len(first), rows):
            labels = [np.ascontiguousarray(side[start : start + rows].T, dtype=self.counts.dtype) for side in sides]
            totals = [
                (table @ group[own]).astype(np.float64) for table, group, own in zip(tables, labels, used, strict=True)
            ]
            selected = labels[0] + labels[1]
            yield Sums(
                totals[0],
                totals[1],
                (self.squares @ selected).astype(np.float64) if squared else np.empty(0),
                np.stack([self.lengths @ group for group in labels]),
                np.stack([self.shared @ group for group in labels]),
                selected.sum(axis=0, dtype=np.float64),
            )

    def excesses(self, sums: Sums) -> Floats:
        """Return the divergences minus their approximate mean over permuted labels, in bits; shape (labellings,)."""
        totals, lengths = sums.first + sums.second, sums.lengths.sum(axis=0)
        squared = totals * totals
        occurrences = np.minimum(np.rint(squared / np.maximum(sums.squares, 1.0)), KNOWN_OCCURRENCES).astype(np.intp)
        # Documents are assigned to groups without replacement: the count of a word that is equally frequent in all
        # documents varies little.
        squared /= np.maximum(sums.documents, 1)
        bits = (sums.squares - squared) * self.chance_bits.take(occurrences) / np.maximum(totals, 1.0)
        finite = sums.documents / np.maximum(sums.documents - 1, 1)
        # A word that only one document contains occurs in one group only, and adds its whole share to the divergence.
        alone = lengths - sums.shared.sum(axis=0)
        return np.asarray(sums.divergences() - (alone + bits.sum(axis=0) * finite) / np.maximum(lengths, 1))


@dataclass(frozen=True)
class Words:
    """Word counts of documents, from which divergences are computed.

    Attributes:
        blocks: all documents, and the documents of each stratum that is a block.
        weights: (blocks,) weight of each block's divergence, 0..1, adding up to 1.
        strata: stratum number of each block from the second on.
        compute: map of a function over chunks of labellings, such as the builtin `map`; it may use other processes.
    """

    blocks: tuple[Block, ...]
    weights: Floats
    strata: tuple[int, ...]
    compute: Callable[..., Iterable[Floats]] = map

    @classmethod
    def of(
        cls,
        counts: csr_array,
        strata: Ints,
        first: Bools,
        second: Bools,
        least: int,
        compute: Callable[..., Iterable[Floats]] = map,
    ) -> Words:
        """Return the word counts, arranged by block.

        The divergence within stratum s has the weight λ w(s); w(s) is the stratum's share of both groups' documents. λ
        is 1 / (2 √(S − 1)), at most `LARGEST_SHARE`, with the effective number of strata S = 1 / Σ w(s)². The
        divergence of all documents together has the remaining weight. If the groups do not differ, the weighted sum has
        a standard deviation at most 12 % larger than the divergence of all documents together.

        A stratum with at least `least` documents of each group becomes a block. Other labellings must have the same
        group sizes.
        """
        present, sizes = np.unique(strata[first | second], return_counts=True)
        shares = sizes / sizes.sum()
        in_effect = 1 / float((shares**2).sum())
        within = min(LARGEST_SHARE, 1 / (2 * math.sqrt(in_effect - 1))) if len(present) > 1 else 0.0
        members, weights, kept = [np.arange(len(strata))], [1.0], []
        for stratum, share in zip(present, shares, strict=True):
            own = strata == stratum
            if within and min((first & own).sum(), (second & own).sum()) >= least:
                members.append(np.flatnonzero(own))
                kept.append(int(stratum))
                weights.append(within * float(share))
                weights[0] -= within * float(share)
        blocks = tuple(Block.of(counts, documents, first, second) for documents in members)
        return cls(blocks, np.array(weights), tuple(kept), compute)

    def divergences(self, first: Bools, second: Bools) -> Floats:
        """Return the divergence of each labelling in each block, in bits; shape (labellings, blocks).

        The divergence is 0 if a group has no words in the block.
        """
        return self._mapped(_divergences, first, second)

    def excesses(self, first: Bools, second: Bools) -> Floats:
        """Return the excess divergence of each labelling, in bits: the weighted sum over blocks; shape (labellings,).

        The excess is the divergence minus its mean over permuted labels. This mean is approximated without random
        draws. Let c(d) be a word's occurrences in document d, and t their sum. The word is treated as k = t² / Σ c(d)²
        independent occurrences of equal size.
        """
        return self._mapped(_excesses, first, second) @ self.weights

    def excess_changes(self, marked: Bools, current: Bools, baseline: Bools) -> Floats:
        """Return the excess of the current run's documents minus that of the baseline's; shape (labellings,)."""
        if (current != baseline).all():
            # Each document belongs to one of the runs: the baseline's counts are all counts minus the current run's.
            excesses = self._mapped(partial(_excesses_of_runs, first=marked), current & marked, current & ~marked)
            return excesses[:, 0] @ self.weights - excesses[:, 1] @ self.weights
        runs = (self.excesses(run & marked, run & ~marked) for run in (current, baseline))
        change: Floats = next(runs) - next(runs)
        return change

    def _mapped(self, function: Callable[..., Floats], first: Bools, second: Bools) -> Floats:
        """Call `function((first, second), words=self)` for chunks of labellings, and return the joined results."""
        rows = max(LEAST_ROWS, OPERATIONS // max(1, sum(block.counts.nnz for block in self.blocks)))
        sides = ((first[start : start + rows], second[start : start + rows]) for start in range(0, len(first), rows))
        return np.concatenate(list(self.compute(partial(function, words=self), sides)))


def _divergences(sides: tuple[Bools, Bools], words: Words) -> Floats:
    """Return (labellings, blocks) divergences; other processes can import this function, as the next ones."""
    by_block = ([sums.divergences() for sums in block.sums(*sides, squared=False)] for block in words.blocks)
    return np.stack([np.concatenate(bits) for bits in by_block], axis=1)


def _excesses(sides: tuple[Bools, Bools], words: Words) -> Floats:
    by_block = ([block.excesses(sums) for sums in block.sums(*sides, squared=True)] for block in words.blocks)
    return np.stack([np.concatenate(bits) for bits in by_block], axis=1)


def _excesses_of_runs(sides: tuple[Bools, Bools], words: Words, first: Bools) -> Floats:
    """Return (labellings, runs, blocks) excesses of the current run and of the baseline.

    `sides` are the documents of the current run in each group; all other documents belong to the baseline.
    """
    by_block = []
    for block in words.blocks:
        everything = next(block.sums(first[None], ~first[None], squared=True))
        excesses = []
        for current in block.sums(*sides, squared=True):
            baseline = Sums(*(whole - part for whole, part in zip(everything, current, strict=True)))
            excesses.append(np.stack([block.excesses(current), block.excesses(baseline)], axis=1))
        by_block.append(np.concatenate(excesses))
    return np.stack(by_block, axis=2)


@cache
def _mean_bits(first: int, second: int) -> Floats:
    """Return the mean divergence that a word with k occurrences adds by chance, for each k from 0.

    The unit is bits × number of words in all documents. Each occurrence falls into the first group with probability s,
    the first group's share of the documents. The result is 1 for k = 1, and approaches 1 / (8 ln 2 s (1 − s)) for large
    k.
    """
    from scipy.special import comb

    share = first / (first + second)
    bits = np.zeros(KNOWN_OCCURRENCES + 1)
    for count in range(1, len(bits)):
        k = np.arange(count + 1)
        chances = comb(count, k) * share**k * (1 - share) ** (count - k)
        sides = np.stack([k / share, (count - k) / (1 - share)])
        sides = np.stack([*sides, sides.sum(axis=0)])
        first_part, second_part, both = sides * np.log2(np.maximum(sides, TINY))
        bits[count] = chances @ (first_part + second_part - both + sides[2]) / 2
    return bits


# Standard error of the excess divergence, and estimates of the excess from samples of a given size.

CUT_PERMUTATIONS = 99
"""Number of relabellings for each random cut of two runs to equal size."""
LEFT_OUT_SETS = 100
"""Approximate number of sets of documents that the jackknife leaves out in turn; each cell has at least two sets."""


def excess_standard_error(
    words: Words,
    first: Bools,
    second: Bools,
    cells: Ints,
    null_sd: float,
    random: np.random.Generator,
) -> float:
    """Return the standard error of the excess, in bits; it is valid whether the groups differ or not.

    The method is a jackknife that leaves out sets of documents within cells (Kott 2001). If the groups do not differ,
    the excess is a quadratic form of noise, for which the jackknife gives twice the true variance. The variance over
    permuted labels is therefore subtracted once. The standard error is at least `null_sd`, the standard deviation of
    the divergence over labels permuted within strata, in bits.
    """
    chosen = np.flatnonzero(first | second)
    cells = np.array(cells)
    numbers, of_cell = np.unique(cells[chosen], return_counts=True)
    # A cell with a single document has no variance; all such cells of a group are treated as one cell.
    single = np.isin(cells, numbers[of_cell == 1])
    cells[single] = np.where(first[single], -1, -2)
    sets, cell_of = np.full(len(first), -1), np.zeros(0, np.int64)
    for cell in np.unique(cells[chosen]):
        documents = random.permutation(chosen[cells[chosen] == cell])
        count = min(len(documents), max(2, round(LEFT_OUT_SETS * len(documents) / len(chosen))))
        sets[documents] = len(cell_of) + np.arange(len(documents)) % count
        cell_of = np.append(cell_of, np.repeat(cell, count))
    without = sets == np.arange(len(cell_of))[:, None]
    sizes = without.sum(axis=1)
    side_sizes = np.where((without & first).any(axis=1), first.sum(), second.sum())
    values = words.excesses(first & ~without, second & ~without) - words.excesses(first[None], second[None])
    # Without one of n documents, the other documents of its group weigh more: the mean moves by n / (n − 1) times the
    # document's contribution. The factor is removed here.
    moved, variance = values * (1 - sizes / side_sizes), 0.0
    for cell in np.unique(cell_of):
        own = cell_of == cell
        if np.count_nonzero(own) > 1:
            mean = moved[own].sum() / sizes[own].sum()
            of_one = ((moved[own] - mean * sizes[own]) ** 2 / sizes[own]).sum() / (np.count_nonzero(own) - 1)
            variance += float(of_one * sizes[own].sum())
    return math.sqrt(max(variance - null_sd**2, null_sd**2))


def excess_at_size(
    words: Words, strata: Ints, first: Bools, size: int, draws: int, random: np.random.Generator
) -> float | None:
    """Return the mean excess of all documents together, in bits, of `draws` random samples of `size` documents a group.

    The expected value does not depend on how many documents a run has, so that runs of different sizes can be compared.
    Documents are drawn without replacement; from each stratum, equally many documents of both groups are drawn. The
    result is `None` if the strata do not have enough documents for a sample.
    """
    sides: list[list[Ints]] = [[], []]
    for stratum in np.unique(strata):
        members = [np.flatnonzero(side & (strata == stratum)) for side in (first, ~first)]
        pairs = min(map(len, members))
        for drawn, own in zip(sides, members, strict=True):
            drawn.append(random.permuted(np.tile(own, (draws, 1)), axis=1)[:, :pairs])
    both = [np.concatenate(drawn, axis=1) for drawn in sides]
    available = both[0].shape[1]
    if available < size:
        return None
    chosen = random.permuted(np.tile(np.arange(available), (draws, 1)), axis=1)[:, :size]
    documents = np.concatenate([np.take_along_axis(side, chosen, axis=1) for side in both], axis=1)
    # Both orders are by stratum, and the second is random within each stratum, so that labels move within strata only.
    by_stratum = np.argsort(strata[documents], axis=1, kind="stable")
    at_random = np.argsort(strata[documents] + random.random(documents.shape), axis=1)
    labels = np.zeros(documents.shape, dtype=np.bool_)
    labels[:, :size] = True
    permuted = np.empty_like(labels)
    np.put_along_axis(permuted, by_stratum, np.take_along_axis(labels, at_random, axis=1), axis=1)
    together = replace(words, blocks=words.blocks[:1], weights=np.ones(1), strata=())
    observed, chance_divergences = (
        together.divergences(_selections(documents, own, len(first)), _selections(documents, ~own, len(first)))
        for own in (labels, permuted)
    )
    return float((observed - chance_divergences).mean())


def _selections(documents: Ints, chosen: Bools, count: int) -> Bools:
    """Return a (draws, count) mask of the chosen ones of the (draws, drawn) documents."""
    selected = np.zeros((len(documents), count), dtype=np.bool_)
    np.put_along_axis(selected, documents, chosen, axis=1)
    return selected


def mean_of_cuts(
    words: Words, marked: Bools, strata: Ints, cuts: Bools, random: np.random.Generator
) -> tuple[float, float]:
    """Return the mean excess of a run's cuts, and the standard deviation of one cut's excess under permuted labels.

    Both numbers are in bits; labels are permuted within strata. `cuts` are (cuts, documents) masks.
    """
    values, variances = [], []
    for cut in cuts:
        labels, _ = resampling.relabellings(marked[cut], strata[cut], CUT_PERMUTATIONS, random)
        relabelled = np.zeros((len(labels), len(cut)), dtype=np.bool_)
        relabelled[:, cut] = labels
        null = words.divergences(relabelled, cut & ~relabelled) @ words.weights
        observed = words.divergences((cut & marked)[None], (cut & ~marked)[None])[0] @ words.weights
        values.append(observed - null.mean())
        variances.append(null.var())
    return float(np.mean(values)), math.sqrt(np.mean(variances))
