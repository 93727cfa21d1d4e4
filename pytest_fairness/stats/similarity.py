"""How alike two ranked lists are: Jaccard, SERP* and PRAG*, for many pairs of lists at once.

Zhang et al. 2023, "Is ChatGPT Fair for Recommendation?" (FaiRLLM). The published formulas, the authors' code and the
LangFair library use three different scales; in the `normalized` one identical lists are 1 in all three measures.
SERP* and PRAG* look at the first list's ranks: exchanging the lists changes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Measure = Literal["jaccard", "serp", "prag"]
Variant = Literal["normalized", "fairllm", "langfair"]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

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
    """Similarity of each first list to the second list of the same place.

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
    if len(first) != len(second):
        raise ValueError(f"{len(first)} first lists and {len(second)} second ones make no pairs")
    if not len(first):
        return np.zeros(0)
    if variant == "normalized":
        first, second = ([list(dict.fromkeys(items[:k])) for items in lists] for lists in (first, second))
    one, other = _encode(first, second, k)
    parts = [slice(start, start + PAIRS_AT_ONCE) for start in range(0, len(one), PAIRS_AT_ONCE)]
    found = np.concatenate([_similarities(one[part], other[part], measure, variant, k) for part in parts])
    sizes = _sizes(one), _sizes(other)
    found[(sizes[0] == 0) | (sizes[1] == 0)] = 0.0
    found[(sizes[0] == 0) & (sizes[1] == 0)] = np.nan
    return found


def _encode(first: Sequence[Sequence[str]], second: Sequence[Sequence[str]], k: int) -> tuple[Ints, Ints]:
    """Both sides as (pairs, k) numbers, equal ones for equal items, -1 after the end of a list."""
    cut = [[items[:k] for items in lists] for lists in (first, second)]
    numbers: dict[str, int] = {item: 0 for lists in cut for items in lists for item in items}
    numbers = {item: number for number, item in enumerate(numbers)}
    sides = []
    for lists in cut:
        lengths = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
        side = np.full((len(lists), k), -1, dtype=np.int32)
        codes = map(numbers.__getitem__, chain.from_iterable(lists))
        side[np.arange(k) < lengths[:, None]] = np.fromiter(codes, dtype=np.int32, count=int(lengths.sum()))
        sides.append(side)
    return sides[0], sides[1]


def _sizes(lists: Ints) -> NDArray[np.int64]:
    sizes: NDArray[np.int64] = np.count_nonzero(lists >= 0, axis=1)
    return sizes


def _similarities(first: Ints, second: Ints, measure: Measure, variant: Variant, k: int) -> Floats:
    # (pairs, k, k): whether the item at a place of the first list is the one at a place of the second.
    equal: Bools = (first[:, :, None] == second[:, None, :]) & (first >= 0)[:, :, None]
    # Each measure meets empty lists, which the caller deals with.
    with np.errstate(divide="ignore", invalid="ignore"):
        match measure:
            case "jaccard":
                return _jaccard(first, second, equal)
            case "serp":
                return _serp(_sizes(first), _sizes(second), equal, variant, k)
            case "prag":
                return _prag(first, second, equal, variant)


def _jaccard(first: Ints, second: Ints, equal: Bools) -> Floats:
    new = _first_occurrences(first)
    shared = np.count_nonzero(equal.any(axis=2) & new, axis=1)
    union = np.count_nonzero(new, axis=1) + np.count_nonzero(_first_occurrences(second), axis=1) - shared
    share: Floats = shared / union
    return share


def _first_occurrences(lists: Ints) -> Bools:
    """(pairs, k) whether an item stands there for the first time in its list."""
    earlier = np.tri(lists.shape[1], k=-1, dtype=np.bool_)
    repeated = ((lists[:, :, None] == lists[:, None, :]) & earlier).any(axis=2)
    fresh: Bools = (lists >= 0) & ~repeated
    return fresh


def _serp(size: NDArray[np.int64], other_size: NDArray[np.int64], equal: Bools, variant: Variant, k: int) -> Floats:
    places = np.arange(equal.shape[1])
    score: Floats
    match variant:
        case "normalized":
            score = (equal.any(axis=2) * (k - places)).sum(axis=1) / (k * (k + 1) / 2)
        case "fairllm":
            # The weights are one too large, and an item that the second list repeats counts each time.
            weights = size[:, None] - places + 1
            score = 0.5 * (equal.sum(axis=2) * weights).sum(axis=1) / (other_size * (other_size + 1))
        case "langfair":
            weights = size[:, None] - places + 1
            score = 0.5 * (equal.any(axis=2) * weights).sum(axis=1) / (size * (size + 1))
    return score


def _prag(first: Ints, second: Ints, equal: Bools, variant: Variant) -> Floats:
    size, length = _sizes(first), equal.shape[2]
    present = equal.any(axis=2)
    found = length - 1 - equal[:, :, ::-1].argmax(axis=2) if variant == "fairllm" else equal.argmax(axis=2)
    # An item that the second list lacks stands behind all others there.
    place = np.where(present, found, length).astype(np.int16)
    listed = first >= 0
    agree = (place[:, :, None] < place[:, None, :]) & listed[:, None, :] & ~np.tri(length, dtype=np.bool_)
    pairs = size * (size + 1) if variant == "langfair" else size * (size - 1) / 2
    score: Floats = np.count_nonzero(agree, axis=(1, 2)) / pairs
    # One item makes no pair: the lists are equal or not.
    score[size == 1] = (first == second).all(axis=1)[size == 1]
    return score
