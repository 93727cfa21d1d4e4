"""Quality of ranked lists whose relevant items are known, and variation among repeated lists."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.stats.arrays import Floats


@dataclass(frozen=True)
class Quality:
    """Precision, recall and NDCG at k of each list, shape (lists,), 0..1; NaN if no item is relevant."""

    precision: Floats
    recall: Floats
    ndcg: Floats


def quality(lists: Sequence[Sequence[str]], relevant: Sequence[Collection[str]], k: int) -> Quality:
    """Return precision, recall and NDCG of the first `k` items of each list; an item is either relevant or not.

    NDCG is the normalised discounted cumulative gain (Järvelin and Kekäläinen 2002). scikit-learn's `ndcg_score`
    returns only its mean over lists; this function returns the value of each list.

    Args:
        lists: items of each list, best first, without repeated items; only the first `k` count.
        relevant: relevant items for each list; a list without relevant items has the results NaN.
        k: length of a full list; a shorter list has a lower precision, because its missing items count as not relevant.
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
