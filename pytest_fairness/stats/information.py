"""Jensen-Shannon divergence of word counts, in bits, for many pairs of samples at once.

Lin 1991, "Divergence measures based on the Shannon entropy"; the definition with equal weights is followed, so
0 means equal distributions and 1 means that no word is shared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def divergence(first: Floats, second: Floats) -> Floats:
    """Jensen-Shannon divergence in bits, 0..1, plug-in estimate.

    Args:
        first, second: (..., words) counts; each row is one sample. Rows without any count give NaN.

    Returns:
        (...) one divergence a pair of rows.
    """
    # Deferred, as scipy.special is not needed to load a probe.
    from scipy.special import xlogy

    with np.errstate(divide="ignore", invalid="ignore"):
        p = first / first.sum(axis=-1, keepdims=True)
        q = second / second.sum(axis=-1, keepdims=True)
    middle = (p + q) / 2
    nats: Floats = (xlogy(p, p) + xlogy(q, q)).sum(axis=-1) / 2 - xlogy(middle, middle).sum(axis=-1)
    # Rounding can push 0 a little below it.
    bits: Floats = np.maximum(nats / np.log(2), 0.0)
    return bits


def contributions(first: Floats, second: Floats) -> Floats:
    """What each word adds to the divergence: (p log2(p/m) + q log2(q/m)) / 2, never negative, shape as the arguments.

    A word-shift graph shows these, oriented by which side uses the word more (Gallagher et al. 2021).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        p = first / first.sum(axis=-1, keepdims=True)
        q = second / second.sum(axis=-1, keepdims=True)
        middle = (p + q) / 2
        terms = np.where(p > 0, p * np.log2(p / middle), 0.0 * p) + np.where(q > 0, q * np.log2(q / middle), 0.0 * q)
    # Rounding can push a term that is 0 a little below it.
    bits: Floats = np.maximum(terms / 2, 0.0)
    return bits


def miller_madow(first: Floats, second: Floats) -> float:
    """Divergence in bits with Miller and Madow's correction of each entropy; for samples of equal size only.

    It removes a part of the plug-in bias and can be negative (Miller 1955).

    Args:
        first, second: (words,) counts with equal totals.

    Raises:
        ValueError: the totals differ.
    """
    total = float(first.sum())
    if total != float(second.sum()):
        raise ValueError("the correction holds for samples of equal size only")

    def extra(counts: Floats, size: float) -> float:
        return float((np.count_nonzero(counts) - 1) / (2 * size * np.log(2)))

    correction: float = extra(first + second, 2 * total) - (extra(first, total) + extra(second, total)) / 2
    return float(divergence(first, second)) + correction
