"""Texts as sequences of word ids (indices into a vocabulary), which need a tenth of the memory of lists of words."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats.arrays import Bools, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

WordIds = NDArray[np.int32]

AT_ONCE = 2**16
"""Number of texts whose words are counted at a time."""


class Tokens(Sequence[tuple[str, ...]]):
    """Texts, each a tuple of words, stored as word ids.

    Args:
        vocabulary: word of each id; it may contain words that no text contains.
        ids: word ids of all texts, one text after the other.
        ends: (texts,) index in `ids` at which the text ends.
    """

    def __init__(self, vocabulary: Sequence[str], ids: WordIds, ends: Ints) -> None:
        self.vocabulary, self._ids, self._ends = vocabulary, ids, ends

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]]) -> Tokens:
        """Return the texts as word ids; a word's id is its place in the order of first occurrence."""
        if isinstance(texts, Tokens):
            return texts
        known: dict[str, int] = {}
        ids, ends = array("i"), array("q")
        for text in texts:
            ids.extend([known.setdefault(word, len(known)) for word in text])
            ends.append(len(ids))
        return cls([*known], np.frombuffer(ids, np.int32), np.frombuffer(ends, np.int64))

    @classmethod
    def joined(cls, parts: Iterable[Tokens]) -> Tokens:
        """Return the texts of all parts, one part after the other."""
        known: dict[str, int] = {}
        ids, lengths = array("i"), [np.zeros(0, np.int64)]
        for part in parts:
            own = np.array([known.setdefault(word, len(known)) for word in part.vocabulary], dtype=np.int32)
            ids.frombytes(own[part._ids].tobytes())
            lengths.append(part.lengths)
        return cls([*known], np.frombuffer(ids, np.int32), np.cumsum(np.concatenate(lengths)))

    @property
    def lengths(self) -> Ints:
        """Return the number of words of each text; shape (texts,)."""
        return np.diff(self._ends, prepend=0)

    def only(self, indices: Ints) -> Tokens:
        """Return the texts with these indices."""
        lengths = self.lengths[indices]
        ends = np.cumsum(lengths)
        ids = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.int32)
        # The index of each returned word: the start of its text, plus its place in the text.
        starts = self._ends[indices] - ends
        for start in range(0, len(indices), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            first, last = int(ends[start] - lengths[start]), int(ends[part][-1])
            ids[first:last] = self._ids[np.repeat(starts[part], lengths[part]) + np.arange(first, last)]
        return Tokens(self.vocabulary, ids, ends)

    def different(self) -> int:
        """Return the number of different texts."""
        return len({hash(text.tobytes()) for text in self._texts()})

    def counts(self, minimum_texts: int = 1, most: int | None = None) -> tuple[list[str], csr_array]:
        """Return the sorted vocabulary, and the sparse (texts, words) counts.

        Args:
            minimum_texts: smallest number of texts that must contain a word; all other words are left out.
            most: largest number of words; if there are more, the words in the largest numbers of texts are returned.
        """
        # Deferred, as scipy is not needed to load a probe.
        from scipy.sparse import csr_array

        columns = self.columns(minimum_texts, most)
        counted = (self.counts_of(start, start + AT_ONCE, columns) for start in self._starts)
        words = [self.vocabulary[number] for number in columns]
        if len(self) <= AT_ONCE:
            return words, next(counted, csr_array((0, len(words))))
        # Filled slice by slice, so that no count is in memory twice.
        number = int(self._texts_by_word[columns].sum())
        data, indices, pointers = np.empty(number), np.empty(number, dtype=np.int32), [np.zeros(1, np.int64)]
        for part in counted:
            start = int(pointers[-1][-1])
            data[start : start + part.nnz], indices[start : start + part.nnz] = part.data, part.indices
            pointers.append(start + part.indptr[1:].astype(np.int64))
        joined = np.concatenate(pointers).astype(np.int32 if number < 2**31 else np.int64)
        return words, csr_array((data, indices, joined), shape=(len(self), len(words)))

    def columns(self, minimum_texts: int = 1, most: int | None = None) -> WordIds:
        """Return the ids of the words that texts contain, sorted by word; for the arguments, see `counts`."""
        # A word occurs in at least one text if it occurs at all, which is counted faster.
        at_all = minimum_texts <= 1 and most is None
        holding = np.bincount(self._ids, minlength=len(self.vocabulary)) if at_all else self._texts_by_word
        order = [
            number
            for number in sorted(range(len(self.vocabulary)), key=self.vocabulary.__getitem__)
            if holding[number] >= max(1, minimum_texts)
        ]
        # scikit-learn takes 32-bit indices only.
        columns = np.array(order, dtype=np.int32)
        if most is None or len(columns) <= most:
            return columns
        return columns[np.sort(np.argsort(-holding[columns], kind="stable")[:most])]

    def counts_of(self, start: int, end: int, columns: WordIds) -> csr_array:
        """Return the sparse (texts, columns) counts of the texts from `start` to `end`.

        Args:
            start, end: indices of the first text, and of the text after the last one.
            columns: word id of each column, each at most once.
        """
        # Deferred, as scipy is not needed to load a probe.
        from scipy.sparse import csr_array

        return csr_array(self._counts_from(start, end)[:, columns])

    def uses(self, chosen: Bools) -> tuple[Ints, Ints]:
        """Return how often the chosen texts and the other texts use each word, and how many of these texts contain it.

        Args:
            chosen: (texts,) whether the text is chosen.

        Returns:
            two (2, vocabulary) arrays, by word id: occurrences, and numbers of texts; the chosen texts come first.
        """
        uses, holding = np.zeros((2, 2, len(self.vocabulary)), dtype=np.int64)
        for start in self._starts:
            counts, own = self._counts_from(start, start + AT_ONCE), chosen[start : start + AT_ONCE]
            for group, side in enumerate((own, ~own)):
                part = counts[np.flatnonzero(side)]
                uses[group] += np.bincount(part.indices, part.data, uses.shape[1]).astype(np.int64)
                holding[group] += np.bincount(part.indices, minlength=uses.shape[1])
        return uses, holding

    @cached_property
    def _texts_by_word(self) -> Ints:
        """Return the number of texts that contain each word; shape (words,)."""
        holding = np.zeros(len(self.vocabulary), dtype=np.int64)
        for start in self._starts:
            holding += np.bincount(self._counts_from(start, start + AT_ONCE).indices, minlength=len(holding))
        return holding

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[str, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[str, ...] | Sequence[tuple[str, ...]]:
        """Return the words of a text, or the texts of a slice."""
        if isinstance(index, slice):
            return self.only(np.arange(len(self))[index])
        end = self._ends[index]
        return tuple(map(self.vocabulary.__getitem__, self._ids[end - self.lengths[index] : end]))

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        """Yield the words of each text."""
        word = self.vocabulary.__getitem__
        return (tuple(map(word, text.tolist())) for text in self._texts())

    def _texts(self) -> Iterator[WordIds]:
        return (
            self._ids[end - length : end]
            for end, length in zip(self._ends.tolist(), self.lengths.tolist(), strict=True)
        )

    @property
    def _starts(self) -> range:
        """Return the index of the first text of each slice; the words of one slice are counted at a time."""
        return range(0, len(self), AT_ONCE)

    def _counts_from(self, start: int, end: int) -> csr_array:
        """Return the (texts, words) counts of the texts from `start` to `end`; a column's index is the word's id."""
        from scipy.sparse import csr_array

        ends = np.concatenate([self._ends[start - 1 : start] if start else [0], self._ends[start:end]])
        ids = self._ids[ends[0] : ends[-1]]
        counts = csr_array(
            (np.ones(len(ids)), ids.copy(), (ends - ends[0]).astype(np.int32)),
            shape=(len(ends) - 1, len(self.vocabulary)),
        )
        counts.sum_duplicates()
        return counts
