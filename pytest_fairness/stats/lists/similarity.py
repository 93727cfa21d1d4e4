"""Similarity of ranked lists by Jaccard, SERP* and PRAG*, computed for many pairs of lists at once.

The measures come from Zhang et al. 2023, "Is ChatGPT Fair for Recommendation?" (FaiRLLM). The published formulas, the
authors' code and the LangFair library use three different scales. On the scale `normalized`, two identical lists of k
items have the similarity 1 in all three measures. SERP* and PRAG* use the ranks in the first list, so that exchanging
the two lists changes the result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats.arrays import Bools, Floats

Measure = Literal["jaccard", "serp", "prag"]
Variant = Literal["normalized", "fairllm", "langfair"]
Ints = NDArray[np.int32]

PAIRS_AT_ONCE = 2048
"""Number of pairs of lists whose items are compared in one array."""


def similarities(
    first: Sequence[Sequence[str]],
    second: Sequence[Sequence[str]],
    *,
    measure: Measure = "jaccard",
    variant: Variant = "normalized",
    k: int,
) -> Floats:
    """Return the similarity of the two lists of each pair.

    Args:
        first, second: lists of items, best first; only the first `k` items count. `first[i]` and `second[i]` are a
            pair; in the audits, the first list is for a group and the second is the neutral list.
        measure: `jaccard` compares sets; `serp` weights each shared item by its rank in the first list; `prag` counts
            the pairs of items that both lists put in the same order; items that the second list lacks count as the last
            items of the second list.
        variant: scale of the result. `normalized` ignores repeated items; `fairllm` and `langfair` count them as the
            authors' code and LangFair do.
        k: length of a full list, at least 1.

    Returns:
        (pairs,) similarities, 0..1; only `serp` on the scale `fairllm` can exceed 1, if the second list is shorter than
        the first or repeats an item. The similarity is 0 if only one list is empty. It is NaN if both lists are empty,
        because two refusals do not agree in any item.
    """
    return Pairs(first, second, variant=variant, k=k).similarities(measure)


class Pairs:
    """Pairs of lists, encoded once and compared by one or more measures.

    Args:
        first, second, variant, k: see the function `similarities` of this module.
    """

    def __init__(
        self,
        first: Sequence[Sequence[str]],
        second: Sequence[Sequence[str]],
        *,
        variant: Variant = "normalized",
        k: int,
    ) -> None:
        if len(first) != len(second):
            raise ValueError(f"`first` and `second` must have the same length, not {len(first)} and {len(second)}")
        self.variant, self.k = variant, k
        numbers: defaultdict[str, int] = defaultdict()
        numbers.default_factory = numbers.__len__
        self._first, self._second = (_encoded(lists, numbers, k, variant) for lists in (first, second))
        self._size, self._other_size = (np.count_nonzero(side >= 0, axis=1) for side in (self._first, self._second))
        # For each item of the first list, how often it occurs in the second list, and its index there; (pairs, k) each.
        self._times = np.empty(self._first.shape, dtype=np.int64)
        self._place = np.empty(self._first.shape, dtype=np.int64)
        for start in range(0, len(first), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            self._times[part], self._place[part] = _counts_and_places(self._first[part], self._second[part], variant)
        self._present: Bools = self._times > 0

    def similarities(self, measure: Measure) -> Floats:
        """Return the similarity of each pair's lists by this measure; shape (pairs,)."""
        # Empty lists divide by 0; their results are set below.
        with np.errstate(divide="ignore", invalid="ignore"):
            match measure:
                case "jaccard":
                    scores = self._jaccard()
                case "serp":
                    scores = self._serp()
                case "prag":
                    scores = self._prag()
        scores[(self._size == 0) | (self._other_size == 0)] = 0.0
        scores[(self._size == 0) & (self._other_size == 0)] = np.nan
        return scores

    def _jaccard(self) -> Floats:
        """Return the number of shared items divided by the number of different items in both lists together."""
        shared = _distinct(np.where(self._present, self._first, -1))
        return np.asarray(shared / (_distinct(self._first) + _distinct(self._second) - shared))

    def _serp(self) -> Floats:
        """Return the weight of the shared items divided by the weight of a full list; the first item weighs most.

        The variants `fairllm` and `langfair` have other weights. In place of the length of a full list, `fairllm` uses
        the length of the second list, and `langfair` uses the length of the first list.
        """
        places, k = np.arange(self.k), self.k
        score: Floats
        match self.variant:
            case "normalized":
                score = self._present @ (k - places) / (k * (k + 1) / 2)
            case "fairllm":
                # As in the authors' code, each weight is one too large, and an item that the second list repeats counts
                # each time.
                weights = self._size[:, None] - places + 1
                score = 0.5 * (self._times * weights).sum(axis=1) / (self._other_size * (self._other_size + 1))
            case "langfair":
                weights = self._size[:, None] - places + 1
                score = 0.5 * (self._present * weights).sum(axis=1) / (self._size * (self._size + 1))
        return score

    def _prag(self) -> Floats:
        """Return the share of the first list's pairs of items that the second list has in the same order.

        The variant `langfair` divides by n (n + 1) for n items, which is more than their number of pairs.
        """
        size, agree = self._size, np.zeros(len(self._first), dtype=np.int64)
        # An item that the second list lacks gets a place behind all items of the second list; padding gets −1.
        place = np.where(self._present, self._place, self.k)
        place[self._first < 0] = -1
        place = np.ascontiguousarray(place.T.astype(np.int16))
        for row in range(self.k - 1):
            agree += np.count_nonzero(place[row] < place[row + 1 :], axis=0)
        pairs = size * (size + 1) if self.variant == "langfair" else size * (size - 1) / 2
        score: Floats = agree / pairs
        # A list of one item has no pair of items: its score is 1 if both lists are equal, else 0.
        score[size == 1] = (self._first == self._second).all(axis=1)[size == 1]
        return score


def _encoded(lists: Sequence[Sequence[str]], numbers: defaultdict[str, int], k: int, variant: Variant) -> Ints:
    """Return each list as a row of integer codes, shape (lists, k); equal items have equal codes.

    The places after the last item of a list hold −1.

    Args:
        lists: the first list, or the second list, of each compared pair; items are ordered best first.
        numbers: code of each item; new items are added.
        k: number of items that count.
        variant: `normalized` drops repeated items.
    """
    # A list that occurs in many pairs is encoded once.
    different = {id(items): items for items in lists}
    rows = {key: row for row, key in enumerate(different)}
    order = np.fromiter((rows[id(items)] for items in lists), dtype=np.int64, count=len(lists))
    cut = [[*(dict.fromkeys(items[:k]) if variant == "normalized" else items[:k])] for items in different.values()]
    lengths = np.fromiter(map(len, cut), dtype=np.int64, count=len(cut))
    codes = map(numbers.__getitem__, chain.from_iterable(cut))
    encoded = np.full((len(cut), k), -1, dtype=np.int32)
    encoded[np.arange(k) < lengths[:, None]] = np.fromiter(codes, dtype=np.int32, count=int(lengths.sum()))
    return encoded[order]


def _counts_and_places(first: Ints, second: Ints, variant: Variant) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how often each item of the first list occurs in the second list, and its index there; (pairs, k) each.

    If an item occurs several times in the second list, the index is that of the first occurrence (for the variant
    `fairllm`, of the last).
    """
    # (pairs, k, k): whether an item of the first list equals an item of the second list.
    equal: Bools = (first[:, :, None] == second[:, None, :]) & (first >= 0)[:, :, None]
    times = np.count_nonzero(equal, axis=2)
    if variant == "fairllm":
        return times, equal.shape[2] - 1 - equal[:, :, ::-1].argmax(axis=2)
    return times, equal.argmax(axis=2)


def _distinct(lists: Ints) -> NDArray[np.int64]:
    """Return the number of different items of each list; shape (pairs,)."""
    ordered = np.sort(lists, axis=1)
    new = ordered[:, 1:] != ordered[:, :-1]
    count: NDArray[np.int64] = np.count_nonzero(new & (ordered[:, 1:] >= 0), axis=1) + (ordered[:, 0] >= 0)
    return count
