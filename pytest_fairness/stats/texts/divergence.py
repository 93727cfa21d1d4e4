"""Contribution of each word to the Jensen-Shannon divergence between two samples of words, in bits.

The divergence comes from Lin 1991, "Divergence measures based on the Shannon entropy", with equal weights: 0 for equal
distributions, 1 if the samples share no word.
"""

from __future__ import annotations

import numpy as np

from pytest_fairness.stats.arrays import Floats


def contributions(first: Floats, second: Floats) -> Floats:
    """Return each word's contribution to the divergence, (p log2(p/m) + q log2(q/m)) / 2 with m = (p + q) / 2, in bits.

    p and q are the word's shares of the first and of the second sample. A contribution is at least 0. The contributions
    add up to the plug-in estimate of the divergence, 0..1. A word-shift graph shows each contribution on the side of
    the sample that uses the word more (Gallagher et al. 2021).

    Args:
        first, second: (..., words) counts of the two samples; a row without any count gives NaN.
    """
    # Deferred, as scipy.special is not needed to load a probe.
    from scipy.special import rel_entr

    with np.errstate(divide="ignore", invalid="ignore"):
        p = first / first.sum(axis=-1, keepdims=True)
        q = second / second.sum(axis=-1, keepdims=True)
    middle = (p + q) / 2
    bits: Floats = (rel_entr(p, middle) + rel_entr(q, middle)) / (2 * np.log(2))
    # Rounding errors can make a contribution of 0 negative.
    return np.maximum(bits, 0.0)
