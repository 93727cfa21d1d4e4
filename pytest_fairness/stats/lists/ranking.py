"""Quality of ranked lists against relevant items, and variation of repeated lists."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.stats.arrays import Floats


@dataclass(frozen=True)
class Quality:
    """Precision, recall and NDCG at k, each (lists,) and 0..1; NaN where nothing is relevant."""

    precision: Floats
    recall: Floats
    ndcg: Floats


def quality(lists: Sequence[Sequence[str]], relevant: Sequence[Collection[str]], k: int) -> Quality:
    """Return precision, recall and NDCG of each list; an item is either relevant or not.

    Normalised discounted cumulative gain (Järvelin and Kekäläinen 2002) is scikit-learn's `ndcg_score`, which gives the
    mean over lists only; here it is needed of each.

    Args:
        lists: (lists) items, best first, without repeated ones, cut to `k` here.
        relevant: (lists) the relevant items.
        k: length of a full list; what a short list lacks counts against its precision.
    """
    wanted = [set(items) for items in relevant]
    hits = np.zeros((len(lists), k))
    for row, (items, good) in enumerate(zip(lists, wanted, strict=True)):
        hits[row, : len(items[:k])] = [item in good for item in items[:k]]
    number = np.array([len(good) for good in wanted], dtype=np.float64)
    number[number == 0] = np.nan
    discounts = 1 / np.log2(np.arange(k) + 2)
    ideal = (np.arange(k) < number[:, None]) @ discounts
    found = hits.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Quality(found / np.where(np.isnan(number), np.nan, k), found / number, hits @ discounts / ideal)


@dataclass(frozen=True)
class Variation:
    """How much the lists of one repeated question differ.

    Attributes:
        entropy: of the shares of all mentions, bits. For lists of k items it is log2 k where all of them are equal, and
            at most log2 of the number of mentions.
        instability: what the entropy has over that floor, as a share of what it could have: 0 the same items each
            time, 1 no item twice. Exact for lists of equal length, else clipped to 0..1.
        item_entropy: mean over items of the entropy of being listed or not, bits, 0..1.
    """

    entropy: float
    instability: float
    item_entropy: float


def variation(lists: Sequence[Collection[str]]) -> Variation | None:
    """Return the variation of repeated lists without regard to ranks; `None` for fewer than two non-empty lists."""
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
    """Return the entropy of shares along the first axis in bits; `scipy.stats.entropy` spends most time on checks."""
    # Deferred, as scipy.special is not needed to load a probe.
    from scipy.special import entr

    bits: Floats = entr(weights / weights.sum(axis=0)).sum(axis=0) / math.log(2)
    return bits
