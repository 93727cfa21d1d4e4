"""Excess Jensen-Shannon divergence between two groups of documents, with standard errors and sample-size estimates.

`first` and `second` (or `marked`) say which documents are in the two groups, `current` and `baseline` which are in the
two runs; they have the shape (documents,) or, for many labellings, (labellings, documents). A document may be in
neither group. `counts` are (documents, words), and `strata` and `cells` (documents,) numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
COLUMNS = 2**15
"""Number of columns that are summed at a time."""
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


@dataclass(frozen=True)
class Words:
    """Word counts of documents, arranged by block, from which divergences are computed.

    The first block is all documents, and each further block is the documents of one stratum.

    A word that only one document of a block contains is not stored. In every labelling it occurs in one group only, so
    its part of the sum p log p + q log q − (p + q) log (p + q) is 0 (p and q: its occurrences in the two groups). The
    lengths of documents include such words.

    Attributes:
        counts: (columns, documents) counts; a column stands for one word in one block. A word has a column for a block
            only if at least two documents of the block contain the word. The numbers have 32 bits if all sums of counts
            are exact in 32 bits, because a matrix product then takes half of the time or less.
        squares: (columns, documents) squared counts.
        blocks: (columns,) block number of each column.
        lengths: (blocks, documents) number of words of each document of the block, 0 for other documents.
        members: (blocks, documents) 1 for documents of the block, 0 for other documents.
        weights: (blocks,) weight of each block's divergence, 0..1, adding up to 1.
        chance_bits: (blocks, `KNOWN_OCCURRENCES` + 1) divergence that a word adds by chance, by the word's number of
            occurrences; see `_mean_bits`.
        strata: stratum number of each block from the second on.
        compute: map of a function over chunks of labellings, such as the builtin `map`; it may use other processes.
    """

    counts: csr_array
    squares: csr_array
    blocks: Ints
    lengths: csr_array
    members: csr_array
    weights: Floats
    chance_bits: Floats
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
        from scipy.sparse import csr_array

        chosen = first | second
        block_of = np.zeros(len(strata), dtype=np.int64)
        weights, kept_strata = [1.0], []
        present = np.unique(strata[chosen])
        sizes = np.bincount(strata[chosen])[present]
        shares = sizes / sizes.sum()
        in_effect = 1 / float((shares**2).sum())
        within = min(LARGEST_SHARE, 1 / (2 * math.sqrt(in_effect - 1))) if len(present) > 1 else 0.0
        for stratum, share in zip(present, shares, strict=True):
            own = strata == stratum
            if within and min((first & own).sum(), (second & own).sum()) >= least:
                block_of[own] = len(weights)
                kept_strata.append(int(stratum))
                weights.append(within * float(share))
                weights[0] -= within * float(share)
        columns = _Columns.of(counts, block_of)
        squares = columns.arranged(counts.power(2))
        of_block = np.array([np.ones(len(strata)), *(block_of == block for block in range(1, len(weights)))])
        groups = of_block @ np.stack([first, second], axis=1)
        return cls(
            counts=columns.arranged(counts),
            squares=squares,
            blocks=columns.blocks,
            lengths=csr_array(of_block * np.asarray(counts.sum(axis=1)).ravel()),
            members=csr_array(of_block),
            weights=np.array(weights),
            chance_bits=np.array([_mean_bits(int(m), int(n)) for m, n in groups]),
            strata=tuple(kept_strata),
            compute=compute,
        )

    @classmethod
    def together(cls, counts: csr_array, first: Bools, second: Bools) -> Words:
        return cls.of(counts, np.zeros(len(first), dtype=np.int64), first, second, least=1)

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
        return self._mapped(_excesses, first, second)

    def excess_changes(self, marked: Bools, current: Bools, baseline: Bools) -> Floats:
        """Return the excess of the current run's documents minus that of the baseline's; shape (labellings,)."""
        if (current != baseline).all():
            # Each document belongs to one of the runs: the baseline's counts are all counts minus the current run's.
            return self._mapped(partial(_excess_changes, first=marked), current & marked, current & ~marked)
        runs = (self.excesses(run & marked, run & ~marked) for run in (current, baseline))
        change: Floats = next(runs) - next(runs)
        return change

    def _mapped(self, function: Callable[..., Floats], first: Bools, second: Bools) -> Floats:
        """Call `function((first, second), words=self)` for batches of labellings, and return the joined results."""
        batches = max(1, OPERATIONS // (self._batch_size * max(1, self.counts.nnz)))
        starts = range(0, len(first), batches * self._batch_size)
        sides = ((first[start : start + starts.step], second[start : start + starts.step]) for start in starts)
        return np.concatenate(list(self.compute(partial(function, words=self), sides)))

    @property
    def _batch_size(self) -> int:
        return max(LEAST_ROWS, CHUNK // max(1, len(self.blocks)))

    def batches(self, first: Bools, second: Bools, *, squared: bool) -> Iterator[tuple[_Sums, Floats]]:
        """Yield the groups' sums for each batch of labellings, and work arrays for `_Batch`."""
        rows = self._batch_size
        space = np.empty((2, len(self.blocks) * min(rows, len(first))))
        # A group's matrix product leaves out the documents that no labelling puts into the group. If runs are swapped,
        # these are half of all documents.
        used = [np.flatnonzero(side.any(axis=0)) for side in (first, second)]
        counts = [self.counts if len(own) == self.counts.shape[1] else self.counts[:, own] for own in used]
        for start in range(0, len(first), rows):
            sides = [
                np.ascontiguousarray(side[start : start + rows].T, dtype=self.counts.dtype) for side in (first, second)
            ]
            totals = [
                (table @ side[own]).astype(np.float64) for table, side, own in zip(counts, sides, used, strict=True)
            ]
            yield _Sums.of(self, sides, totals, squared=squared), space

    @cached_property
    def sum_by_block(self) -> csr_array:
        """Return the (blocks, columns) matrix that sums columns by block: 1 for a column of the block, else 0."""
        from scipy.sparse import csr_array

        columns = np.arange(len(self.blocks))
        return csr_array((np.ones(len(columns)), (self.blocks, columns)), shape=(len(self.weights), len(columns)))

    @cached_property
    def shared(self) -> csr_array:
        """Return the (blocks, documents) numbers of a document's words that another document of the block has, too."""
        from scipy.sparse import csr_array

        # The product converts its counts to 64 bits.
        shared = csr_array((len(self.weights), self.counts.shape[1]))
        for start in range(0, len(self.blocks), COLUMNS):
            part = slice(start, start + COLUMNS)
            shared = shared + self.sum_by_block[:, part] @ self.counts[part]
        return shared


@dataclass(frozen=True)
class _Columns:
    """Order of the entries of a (documents, words) table by column of `Words`.

    Attributes:
        pointers: (columns + 1,) index of each column's first entry, and the number of all entries.
        documents: (entries,) document of each entry, by column.
        first: (entries of the table,) whether an entry, in the order of words and documents, belongs to a column of the
            first block.
        others: for the further blocks, the indices of the entries, by column.
        blocks: (columns,) block number of each column.
    """

    pointers: Ints
    documents: NDArray[np.int32]
    first: Bools
    others: Ints
    blocks: Ints

    @classmethod
    def of(cls, counts: csr_array, block_of: Ints) -> _Columns:
        """Return the order of the entries by column; a column is a word in a block, with at least two documents.

        `block_of` is the block of each document's stratum; 0 if it has none (block 0 has all documents).
        """
        turned = _turned(counts, np.ones(counts.nnz, dtype=np.bool_))
        lengths = np.diff(turned.indptr)
        first = np.repeat(lengths > 1, lengths)
        blocks = block_of.astype(np.uint16 if block_of.max(initial=0) < 2**16 else np.int64)[turned.indices]
        # A stable sort keeps the order of words and documents within a block.
        others = np.argsort(blocks, kind="stable")[np.count_nonzero(blocks == 0) :]
        if counts.nnz < 2**32:
            others = others.astype(np.uint32)
        words = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)[others]
        blocks = blocks[others]
        starts = np.flatnonzero(np.append(True, (words[1:] != words[:-1]) | (blocks[1:] != blocks[:-1]))[: len(words)])
        sizes = np.diff(np.append(starts, len(words)))
        kept = np.repeat(sizes > 1, sizes)
        others = others[kept]
        return cls(
            pointers=np.cumsum(np.concatenate([[0], lengths[lengths > 1], sizes[sizes > 1]])),
            documents=np.concatenate([turned.indices[first], turned.indices[others]]),
            first=first,
            others=others,
            blocks=np.concatenate(
                [np.zeros(np.count_nonzero(lengths > 1), np.int64), blocks[starts][sizes > 1].astype(np.int64)]
            ),
        )

    def arranged(self, table: csr_array) -> csr_array:
        from scipy.sparse import csr_array

        # The first block holds all documents, so that it has the largest sums.
        sums = table.sum(axis=0)[np.bincount(table.indices, minlength=table.shape[1]) > 1]
        is_exact = sums.max(initial=0) <= LARGEST_EXACT
        data = _turned(table, table.data.astype(np.float32 if is_exact else np.float64)).data
        values = np.concatenate([data[self.first], data[self.others]])
        # Indices of 32 bits take half of the memory.
        pointers = self.pointers.astype(np.int32) if len(values) < 2**31 else self.pointers
        return csr_array((values, self.documents, pointers), shape=(len(pointers) - 1, table.shape[0]))


def _turned(table: csr_array, data: NDArray[Any]) -> csr_array:
    from scipy.sparse import csr_array

    turned: csr_array = csr_array((data, table.indices, table.indptr), shape=table.shape).T.tocsr()
    turned.sort_indices()
    return turned


@dataclass(frozen=True)
class _Sums:
    """Sums over the documents of the two groups, for a batch of labellings. All sums are exact integers.

    Attributes:
        totals: for each group, the (columns, labellings) sums of counts.
        squares: (columns, labellings) sums of squared counts, over both groups; empty if they are not needed.
        lengths: for each group, the (blocks, labellings) number of words.
        shared: for each group, the (blocks, labellings) number of words that also occur in another document of the
            block.
        documents: (blocks, labellings) number of documents of both groups.
    """

    totals: tuple[Floats, Floats]
    squares: Floats
    lengths: tuple[Floats, Floats]
    shared: tuple[Floats, Floats]
    documents: Floats

    @classmethod
    def of(cls, words: Words, sides: Sequence[Floats], totals: Sequence[Floats], *, squared: bool) -> _Sums:
        """Return the groups' sums, from their (documents, labellings) masks and (columns, labellings) counts."""
        first, second = sides
        selected = first + second
        return cls(
            (totals[0], totals[1]),
            (words.squares @ selected).astype(np.float64) if squared else np.empty(0),
            (words.lengths @ first, words.lengths @ second),
            (words.shared @ first, words.shared @ second),
            words.members @ selected,
        )

    def without(self, part: _Sums) -> _Sums:
        """Return the sums over all documents but those of `part`; this object has a single labelling."""
        return _Sums(
            (self.totals[0] - part.totals[0], self.totals[1] - part.totals[1]),
            self.squares - part.squares,
            (self.lengths[0] - part.lengths[0], self.lengths[1] - part.lengths[1]),
            (self.shared[0] - part.shared[0], self.shared[1] - part.shared[1]),
            self.documents - part.documents,
        )


class _Batch:
    """A batch of labellings, computed for speed in `space`: two arrays of columns × labellings numbers.

    `chance_divergences` overwrites the sums.
    """

    def __init__(self, words: Words, sums: _Sums, space: Floats) -> None:
        self.words, self.sums = words, sums
        shape = sums.totals[0].shape
        self.space, self.more = (array[: math.prod(shape)].reshape(shape) for array in space)

    def excesses(self) -> Floats:
        """Return the weighted sum of all blocks' divergences minus their approximate means; shape (labellings,)."""
        excesses: Floats = self.words.weights @ (self.divergences() - self.chance_divergences())
        return excesses

    def divergences(self) -> Floats:
        """Return the divergence of each block and labelling, in bits; shape (blocks, labellings)."""
        (first, second), (one, other) = self.sums.totals, self.sums.lengths
        measured = (one > 0) & (other > 0)
        # A word occurs a times among the m words of one group, and b times among the n words of the other. Then m (p +
        # q) with p = a / m and q = b / n is a + b m / n.
        ratio = np.divide(one, other, out=np.zeros_like(one), where=measured)
        np.multiply(second, self._of_columns(ratio), out=self.space)
        self.space += first
        shared_one, shared_other = self.sums.shared
        mixed = shared_one + ratio * shared_other, self._sum_of_xlogx(self.space)
        sides = (shared_one, self._sum_of_xlogx(first)), (shared_other, self._sum_of_xlogx(second))
        bits = measured.astype(np.float64)
        for (total, terms), length, sign in (*zip((*sides, mixed), (one, other, one), (1, 1, -1), strict=True),):
            size = np.maximum(length, 1.0)
            bits += sign / 2 * (terms - total * np.log2(size)) / size
        # Rounding errors can make a divergence of 0 negative.
        return np.where(measured, np.maximum(bits, 0.0), 0.0)

    def chance_divergences(self) -> Floats:
        """Return the approximate mean divergence over permuted labels, in bits; shape (blocks, labellings).

        This method overwrites the sums: call `divergences` first.
        """
        words, (totals, scratch), squares = self.words, self.sums.totals, self.sums.squares
        totals += scratch
        lengths, documents = self.sums.lengths[0] + self.sums.lengths[1], self.sums.documents
        np.multiply(totals, totals, out=scratch)
        np.maximum(squares, 1.0, out=self.space)
        np.divide(scratch, self.space, out=self.space)
        np.minimum(self.space, KNOWN_OCCURRENCES, out=self.space)
        np.rint(self.space, out=self.space)
        self.space += words.blocks[:, None] * (KNOWN_OCCURRENCES + 1)
        known = self.more.view(np.int64)
        np.copyto(known, self.space, casting="unsafe")
        words.chance_bits.take(known, out=self.space, mode="clip")
        # Documents are assigned to groups without replacement: the count of a word that is equally frequent in all
        # documents varies little.
        alone = lengths - self.sums.shared[0] - self.sums.shared[1]
        scratch *= self._of_columns(1 / np.maximum(documents, 1))
        squares -= scratch
        squares *= self.space
        np.maximum(totals, 1.0, out=totals)
        squares /= totals
        finite = documents / np.maximum(documents - 1, 1)
        # A word that only one document contains occurs in one group only, and adds its whole share to the divergence.
        return np.asarray((alone + (words.sum_by_block @ squares) * finite) / np.maximum(lengths, 1))

    def _sum_of_xlogx(self, values: Floats) -> Floats:
        """Return the sum of x log2 x over the columns of each block, from (columns, labellings) values."""
        np.maximum(values, TINY, out=self.more)
        np.log2(self.more, out=self.more)
        self.more *= values
        return np.asarray(self.words.sum_by_block @ self.more)

    def _of_columns(self, by_block: Floats) -> Floats:
        """Return for each column the row of its block: from (blocks, labellings) to (columns, labellings) values."""
        return by_block if len(by_block) == 1 else by_block[self.words.blocks]


def _divergences(sides: tuple[Bools, Bools], words: Words) -> Floats:
    """Return the (labellings, blocks) divergences for `Words.divergences`; other processes can import this function."""
    return np.concatenate([_Batch(words, *batch).divergences().T for batch in words.batches(*sides, squared=False)])


def _excesses(sides: tuple[Bools, Bools], words: Words) -> Floats:
    """Return the (labellings,) excesses for `Words.excesses`; other processes can import this function."""
    return np.concatenate([_Batch(words, *batch).excesses() for batch in words.batches(*sides, squared=True)])


def _excess_changes(sides: tuple[Bools, Bools], words: Words, first: Bools) -> Floats:
    """Return the (labellings,) changes for `Words.excess_changes`; other processes can import this function.

    `sides` are the documents of the current run in each group; all other documents belong to the baseline.
    """
    everything, _ = next(words.batches(first[None], ~first[None], squared=True))
    changes = []
    for current, space in words.batches(*sides, squared=True):
        baseline = everything.without(current)
        changes.append(_Batch(words, current, space).excesses() - _Batch(words, baseline, space).excesses())
    return np.concatenate(changes)


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
    left_out: list[Bools] = []
    cell_of = []
    for cell in np.unique(cells[chosen]):
        documents = random.permutation(chosen[cells[chosen] == cell])
        count = min(len(documents), max(2, round(LEFT_OUT_SETS * len(documents) / len(chosen))))
        for number in range(count):
            left_out.append(np.isin(np.arange(len(first)), documents[number::count]))
            cell_of.append(cell)
    without = np.array(left_out)
    sizes = without.sum(axis=1)
    side_sizes = np.where((without & first).any(axis=1), first.sum(), second.sum())
    values = words.excesses(first & ~without, second & ~without) - words.excesses(first[None], second[None])
    # Without one of n documents, the other documents of its group weigh more: the mean moves by n / (n − 1) times the
    # document's contribution. The factor is removed here.
    moved, variance = values * (1 - sizes / side_sizes), 0.0
    for cell in np.unique(cell_of):
        own = np.array(cell_of) == cell
        if np.count_nonzero(own) > 1:
            mean = moved[own].sum() / sizes[own].sum()
            of_one = ((moved[own] - mean * sizes[own]) ** 2 / sizes[own]).sum() / (np.count_nonzero(own) - 1)
            variance += float(of_one * sizes[own].sum())
    return math.sqrt(max(variance - null_sd**2, null_sd**2))


def excess_at_size(
    words: Words, strata: Ints, first: Bools, size: int, draws: int, random: np.random.Generator
) -> float | None:
    """Return the mean excess, in bits, of `draws` random samples of `size` documents from each group.

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
    observed, chance_divergences = (
        words.divergences(_selections(documents, own, len(first)), _selections(documents, ~own, len(first)))
        for own in (labels, permuted)
    )
    return float((observed - chance_divergences).mean(axis=0) @ words.weights)


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
