"""Similarity and quality of ranked lists, and tables of them with missing numbers."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats.resampling import Bools, Floats

# Similarity of ranked lists by Jaccard, SERP* and PRAG*, computed for many pairs of lists at once.
#
# The measures come from Zhang et al. 2023, "Is ChatGPT Fair for Recommendation?" (FaiRLLM). The published formulas,
# the authors' code and the LangFair library use three different scales. On the scale `normalized`, two identical
# lists of k items have the similarity 1 in all three measures. SERP* and PRAG* use the ranks in the first list, so
# that exchanging the two lists changes the result.

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
    """Return the (pairs,) similarities of `first[i]` and `second[i]`, lists of items, best first, cut after `k` items.

    Args:
        measure: `jaccard` compares sets; `serp` weights each shared item by its rank in the first list; `prag` counts
            the pairs of items that both lists put in the same order; items that the second list lacks count as the last
            items of the second list.
        variant: scale of the result. `normalized` ignores repeated items; `fairllm` and `langfair` count them as the
            authors' code and LangFair do.

    Returns:
        similarities, 0..1; only `serp` on the scale `fairllm` can exceed 1, if the second list is shorter than the
            first or repeats an item. The similarity is 0 if only one list is empty. It is NaN if both lists are empty,
            because two refusals do not agree in any item.
    """
    return Pairs(first, second, variant=variant, k=k).similarities(measure)


class Pairs:
    """Pairs of lists, encoded once and compared by one or more measures."""

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
        # The index is that of the first occurrence (for the variant `fairllm`, of the last).
        self._times, self._place = (np.empty(self._first.shape, dtype=np.int64) for _ in range(2))
        for start in range(0, len(first), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            items, others = self._first[part, :, None], self._second[part, None, :]
            # (pairs, k, k): whether an item of the first list equals an item of the second list.
            equal: Bools = (items == others) & (items >= 0)
            self._times[part] = np.count_nonzero(equal, axis=2)
            last = variant == "fairllm"
            self._place[part] = k - 1 - equal[:, :, ::-1].argmax(axis=2) if last else equal.argmax(axis=2)

    def similarities(self, measure: Measure) -> Floats:
        first, size, other_size, k = self._first, self._size, self._other_size, self.k
        present, places = self._times > 0, np.arange(k)
        scores: Floats
        # Empty lists divide by 0; their results are set below.
        with np.errstate(divide="ignore", invalid="ignore"):
            match measure:
                case "jaccard":
                    shared = _distinct(np.where(present, first, -1))
                    scores = shared / (_distinct(first) + _distinct(self._second) - shared)
                case "serp":
                    # The weight of the shared items divided by that of a full list; the first item weighs most. As in
                    # the authors' code, each weight is one too large for the variants `fairllm` and `langfair`; a full
                    # list is as long as the second or as the first one; and an item that the second list repeats counts
                    # each time for `fairllm`.
                    length = {"normalized": k, "fairllm": other_size, "langfair": size}[self.variant]
                    is_normalized = self.variant == "normalized"
                    weights = k - places if is_normalized else size[:, None] - places + 1
                    hits = self._times if self.variant == "fairllm" else present
                    full = length * (length + 1) / 2
                    scores = (hits * weights).sum(axis=1) / (full if is_normalized else 4 * full)
                case "prag":
                    # The share of the first list's pairs of items that the second list has in the same order. The
                    # variant `langfair` divides by n (n + 1) for n items, which is more than their number of pairs.
                    agree = np.zeros(len(first), dtype=np.int64)
                    # An item that the second list lacks gets a place behind all items of the second list; padding gets
                    # −1.
                    place = np.where(first < 0, -1, np.where(present, self._place, k))
                    place = np.ascontiguousarray(place.T.astype(np.int16))
                    for row in range(k - 1):
                        agree += np.count_nonzero(place[row] < place[row + 1 :], axis=0)
                    scores = agree / (size * (size + 1) if self.variant == "langfair" else size * (size - 1) / 2)
                    # A list of one item has no pair of items: its score is 1 if both lists are equal, else 0.
                    scores[size == 1] = (first == self._second).all(axis=1)[size == 1]
        scores[(size == 0) | (other_size == 0)] = 0.0
        scores[(size == 0) & (other_size == 0)] = np.nan
        return scores


def _encoded(lists: Sequence[Sequence[str]], numbers: defaultdict[str, int], k: int, variant: Variant) -> Ints:
    """Return each list as a row of k item numbers, with −1 after the last item; new items are added to `numbers`.

    `normalized` drops repeated items.
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


def _distinct(lists: Ints) -> NDArray[np.int64]:
    ordered = np.sort(lists, axis=1)
    new = ordered[:, 1:] != ordered[:, :-1]
    count: NDArray[np.int64] = np.count_nonzero(new & (ordered[:, 1:] >= 0), axis=1) + (ordered[:, 0] >= 0)
    return count


# Quality of ranked lists whose relevant items are known, and variation among repeated lists.


class Quality(NamedTuple):
    """Precision, recall and NDCG at k of each list, shape (lists,), 0..1; NaN if no item is relevant."""

    precision: Floats
    recall: Floats
    ndcg: Floats


def quality(lists: Sequence[Sequence[str]], relevant: Sequence[Collection[str]], k: int) -> Quality:
    """Return precision, recall and NDCG of the first `k` items of each list; an item is either relevant or not.

    NDCG is the normalised discounted cumulative gain (Järvelin and Kekäläinen 2002). scikit-learn's `ndcg_score`
    returns only its mean over lists; this function returns the value of each list. Items are ordered best first,
    without repeated items. A list of fewer than `k` has a lower precision, because its missing items count as not
    relevant.
    """
    relevant_sets = [set(items) for items in relevant]
    hits = np.zeros((len(lists), k))
    for row, (items, good) in enumerate(zip(lists, relevant_sets, strict=True)):
        hits[row, : len(items[:k])] = [item in good for item in items[:k]]
    wanted = np.array([len(good) for good in relevant_sets], dtype=np.float64)
    wanted[wanted == 0] = np.nan
    discounts = 1 / np.log2(np.arange(k) + 2)
    ideal = (np.arange(k) < wanted[:, None]) @ discounts
    counts = hits.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Quality(counts / np.where(np.isnan(wanted), np.nan, k), counts / wanted, hits @ discounts / ideal)


@dataclass(frozen=True)
class Variation:
    """Variation among the lists that a model returns if the same question is repeated.

    Attributes:
        entropy: entropy, in bits, of an item drawn at random from all lists: log2 k if all lists have the same k items,
            larger if lists differ.
        instability: the entropy, rescaled: 0 if all lists have the same items, 1 if no item occurs twice. The
            instability is exact for lists of equal length; for other lists it is clipped to 0..1.
        item_entropy: mean, over all items, of the binary entropy of the share of lists that contain the item; 0..1 bit.
    """

    entropy: float
    instability: float
    item_entropy: float


def variation(lists: Sequence[Collection[str]]) -> Variation | None:
    """Return the variation of repeated lists, ignoring ranks; `None` if fewer than two lists have items."""
    sets = [set(items) for items in lists if items]
    if len(sets) < 2:
        return None
    mentions = np.array(sorted(Counter(item for items in sets for item in items).values()), dtype=np.float64)
    bits, runs = float(_entropy(mentions)), len(sets)
    instability = (bits - math.log2(mentions.sum() / runs)) / math.log2(runs)
    listed = mentions / runs
    return Variation(
        entropy=bits,
        instability=min(1.0, max(0.0, instability)),
        item_entropy=float(np.mean(_entropy(np.stack([listed, 1 - listed])))),
    )


def _entropy(weights: Floats) -> Floats:
    """Return the entropy in bits along the first axis; `scipy.stats.entropy` is slower because of its checks."""
    # Deferred, as scipy.special is not needed to load a probe.
    from scipy.special import entr

    return np.asarray(entr(weights / weights.sum(axis=0)).sum(axis=0) / math.log(2))


# Tables with missing numbers: which columns can be compared, and complete rows that stand for incomplete ones.
#
# If only complete rows were used, a column with few numbers would hide what the other columns show. Column means are
# therefore estimated by least squares from all rows with at least two numbers: a number is the sum of an effect of
# its row, an effect of its column, and noise. The jackknife then gives each row a complete row of pseudo-values,
# whose means are the estimates and whose variation gives their errors (Tukey 1958; Efron and Stein 1981).


def compared_columns(rows: Floats, needed: int, minimum: int) -> list[int]:
    """Return the columns that have enough numbers to be compared, at least two columns.

    A number (not NaN) counts if its row has a number in another compared column, too. A column has enough numbers if
    they are `needed`, or half as many as those of the fullest column, and at least `minimum`.
    """
    columns = list(range(rows.shape[1]))
    present = ~np.isnan(rows)
    while len(columns) > 2:
        own = present[:, columns]
        counts = own[own.sum(axis=1) >= 2].sum(axis=0)
        fewest = int(np.argmin(counts))
        if counts[fewest] >= max(minimum, min(needed, int(counts.max()) // 2)):
            break
        del columns[fewest]
    return columns


def complete_rows(rows: Floats) -> Floats:
    """Return rows of pseudo-values for the rows with at least two numbers, and rows of NaN for the others.

    A table without missing numbers (NaN) is returned unchanged. All rows of the result are NaN if the columns cannot be
    compared, because some have no row in common with the others.
    """
    present = ~np.isnan(rows)
    used = present.sum(axis=1) >= min(2, rows.shape[1])
    pseudo = np.where(used[:, None], rows, np.nan)
    if present[used].all():
        return pseudo
    units, (left, right) = int(used.sum()), _normal_equations(rows[used])
    without = left.sum(axis=0) - left + 1 / rows.shape[1]
    if np.linalg.matrix_rank(without, hermitian=True).min() < rows.shape[1]:
        return np.full(rows.shape, np.nan)
    effects = np.linalg.solve(left.sum(axis=0) + 1 / rows.shape[1], right.sum(axis=0))
    left_out = np.linalg.solve(without, (right.sum(axis=0) - right)[:, :, None])[:, :, 0]
    levels = np.nanmean(rows[used] - effects, axis=1, keepdims=True)
    pseudo[used] = levels + units * effects - (units - 1) * left_out
    return pseudo


def row_contributions(rows: Floats) -> Floats:
    """Return the (used units, columns) contributions of rows to the estimated column means, for tests by random signs.

    Only differences between columns have a meaning. If the columns do not differ, a row with the opposite signs is as
    likely as the row, also if only few rows have a number in a column, whose pseudo-values would all be alike. For a
    table without missing numbers, these are the deviations from the row's mean.
    """
    used = rows[(~np.isnan(rows)).sum(axis=1) >= min(2, rows.shape[1])]
    if not np.isnan(used).any():
        return np.asarray(used - used.mean(axis=1, keepdims=True))
    left, right = _normal_equations(used)
    return np.asarray(len(used) * np.linalg.solve(left.sum(axis=0) + 1 / rows.shape[1], right.T).T)


def _normal_equations(rows: Floats) -> tuple[Floats, Floats]:
    """Return each row's part of the normal equations of the column effects, which add up to 0.

    The parts have the shapes (units, columns, columns) and (units, columns).
    """
    own = (~np.isnan(rows)).astype(np.float64)
    left = own[:, :, None] * (np.eye(rows.shape[1]) - own[:, None, :] / own.sum(axis=1)[:, None, None])
    return left, np.where(own > 0, rows - np.nanmean(rows, axis=1, keepdims=True), 0.0)
