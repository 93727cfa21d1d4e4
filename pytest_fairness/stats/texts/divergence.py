"""Jensen-Shannon divergence of word counts, in bits, for many pairs of samples at once.

The definition is that of Lin 1991, "Divergence measures based on the Shannon entropy", with equal weights: 0 means
equal distributions, and 1 means that no word is shared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def divergence(first: Floats, second: Floats) -> Floats:
    """Return the plug-in estimate of the Jensen-Shannon divergence in bits, 0..1.

    Args:
        first, second: (..., words) counts; each row is one sample. Rows without any count give NaN.

    Returns:
        (...) divergences, one for each pair of rows.
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
    """Return each word's part in the divergence, (p log2(p/m) + q log2(q/m)) / 2, in bits and at least 0.

    A word-shift graph shows these parts, oriented by the side that uses the word more (Gallagher et al. 2021).

    Args:
        first, second: (..., words) counts, as in `divergence`.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        p = first / first.sum(axis=-1, keepdims=True)
        q = second / second.sum(axis=-1, keepdims=True)
        middle = (p + q) / 2
        terms = np.where(p > 0, p * np.log2(p / middle), 0.0 * p) + np.where(q > 0, q * np.log2(q / middle), 0.0 * q)
    # Rounding can push a term that is 0 a little below it.
    bits: Floats = np.maximum(terms / 2, 0.0)
    return bits
