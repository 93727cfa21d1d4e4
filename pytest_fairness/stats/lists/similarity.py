"""Similarity of ranked lists: Jaccard, SERP* and PRAG*, for many pairs of lists at once.

Zhang et al. 2023, "Is ChatGPT Fair for Recommendation?" (FaiRLLM). The published formulas, the authors' code and the
LangFair library use three different scales; in the `normalized` one identical lists are 1 in all three measures.
SERP* and PRAG* look at the first list's ranks: exchanging the lists changes them.
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
"""Pairs whose items are all compared with each other in one array."""


def similarities(
    first: Sequence[Sequence[str]],
    second: Sequence[Sequence[str]],
    *,
    measure: Measure = "jaccard",
    variant: Variant = "normalized",
    k: int,
) -> Floats:
    """Return the similarity of each first list to the second list of the same pair.

    Args:
        first, second: (pairs) lists of items, best first, cut to `k` here. In the audits the first is a conditioned
            list and the second the neutral one.
        measure: `jaccard` compares sets; `serp` weights each shared item by its rank in the first list; `prag` counts
            the pairs of items that both lists put in the same order.
        variant: the scale. `normalized` drops repeated items; the others count them as the code they reproduce does.
        k: length of a full list, at least 1.

    Returns:
        (pairs,) 0..1 where no list repeats an item. NaN where both lists are empty, as two refusals are no agreement;
        0 where one is.
    """
    return Pairs(first, second, variant=variant, k=k).similarities(measure)


class Pairs:
    """Pairs of lists, read once, to be compared by any measure; arguments as in `similarities`."""

    def __init__(
        self,
        first: Sequence[Sequence[str]],
        second: Sequence[Sequence[str]],
        *,
        variant: Variant = "normalized",
        k: int,
    ) -> None:
        if len(first) != len(second):
            raise ValueError(f"{len(first)} first lists and {len(second)} second ones make no pairs")
        self.variant, self.k = variant, k
        numbers: defaultdict[str, int] = defaultdict()
        numbers.default_factory = numbers.__len__
        self._first, self._second = (_encoded(lists, numbers, k, variant) for lists in (first, second))
        self._size, self._other_size = (np.count_nonzero(side >= 0, axis=1) for side in (self._first, self._second))
        # How often each item of the first list stands in the second, and where first; (pairs, k) each.
        self._times = np.empty(self._first.shape, dtype=np.int64)
        self._place = np.empty(self._first.shape, dtype=np.int64)
        for start in range(0, len(first), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            self._times[part], self._place[part] = _found(self._first[part], self._second[part], variant)
        self._present: Bools = self._times > 0

    def similarities(self, measure: Measure) -> Floats:
        """Return the (pairs,) similarity of each first list to its second list."""
        # Empty lists divide by 0; their results are set below.
        with np.errstate(divide="ignore", invalid="ignore"):
            match measure:
                case "jaccard":
                    found = self._jaccard()
                case "serp":
                    found = self._serp()
                case "prag":
                    found = self._prag()
        found[(self._size == 0) | (self._other_size == 0)] = 0.0
        found[(self._size == 0) & (self._other_size == 0)] = np.nan
        return found

    def _jaccard(self) -> Floats:
        shared = _distinct(np.where(self._present, self._first, -1))
        share: Floats = shared / (_distinct(self._first) + _distinct(self._second) - shared)
        return share

    def _serp(self) -> Floats:
        places, k = np.arange(self.k), self.k
        score: Floats
        match self.variant:
            case "normalized":
                score = self._present @ (k - places) / (k * (k + 1) / 2)
            case "fairllm":
                # The weights are one too large, and an item that the second list repeats counts each time.
                weights = self._size[:, None] - places + 1
                score = 0.5 * (self._times * weights).sum(axis=1) / (self._other_size * (self._other_size + 1))
            case "langfair":
                weights = self._size[:, None] - places + 1
                score = 0.5 * (self._present * weights).sum(axis=1) / (self._size * (self._size + 1))
        return score

    def _prag(self) -> Floats:
        size, agree = self._size, np.zeros(len(self._first), dtype=np.int64)
        # An item that the second list lacks stands behind all others there, one that is no item before them.
        place = np.where(self._present, self._place, self.k)
        place[self._first < 0] = -1
        place = np.ascontiguousarray(place.T.astype(np.int16))
        for row in range(self.k - 1):
            agree += np.count_nonzero(place[row] < place[row + 1 :], axis=0)
        pairs = size * (size + 1) if self.variant == "langfair" else size * (size - 1) / 2
        score: Floats = agree / pairs
        # One item makes no pair: the lists are equal or not.
        score[size == 1] = (self._first == self._second).all(axis=1)[size == 1]
        return score


def _encoded(lists: Sequence[Sequence[str]], numbers: defaultdict[str, int], k: int, variant: Variant) -> Ints:
    """Return (pairs, k) numbers, the same number for the same item, −1 after the end of a list."""
    # A list that occurs in many pairs is encoded once.
    different = {id(items): items for items in lists}
    places = {name: place for place, name in enumerate(different)}
    order = np.fromiter((places[id(items)] for items in lists), dtype=np.int64, count=len(lists))
    return _numbered(list(different.values()), numbers, k, variant)[order]


def _numbered(lists: Sequence[Sequence[str]], numbers: defaultdict[str, int], k: int, variant: Variant) -> Ints:
    if variant == "normalized":
        cut = [[*dict.fromkeys(items[:k])] for items in lists]
    else:
        cut = [[*items[:k]] for items in lists]
    lengths = np.fromiter(map(len, cut), dtype=np.int64, count=len(cut))
    codes = map(numbers.__getitem__, chain.from_iterable(cut))
    encoded = np.full((len(cut), k), -1, dtype=np.int32)
    encoded[np.arange(k) < lengths[:, None]] = np.fromiter(codes, dtype=np.int32, count=int(lengths.sum()))
    return encoded


def _found(first: Ints, second: Ints, variant: Variant) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how often the second list holds each item of the first, and where: last for `fairllm`, else first."""
    # (pairs, k, k): whether the item at a place of the first list is the one at a place of the second.
    equal: Bools = (first[:, :, None] == second[:, None, :]) & (first >= 0)[:, :, None]
    times = np.count_nonzero(equal, axis=2)
    if variant == "fairllm":
        return times, equal.shape[2] - 1 - equal[:, :, ::-1].argmax(axis=2)
    return times, equal.argmax(axis=2)


def _distinct(lists: Ints) -> NDArray[np.int64]:
    """Return the (pairs,) number of different items; −1 is no item."""
    ordered = np.sort(lists, axis=1)
    new = ordered[:, 1:] != ordered[:, :-1]
    count: NDArray[np.int64] = np.count_nonzero(new & (ordered[:, 1:] >= 0), axis=1) + (ordered[:, 0] >= 0)
    return count
