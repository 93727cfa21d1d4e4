"""The parts of single words in the Jensen-Shannon divergence of word counts, in bits.

The definition is that of Lin 1991, "Divergence measures based on the Shannon entropy", with equal weights: 0 means
equal distributions, and 1 means that no word is shared.
"""

from __future__ import annotations

import numpy as np

from pytest_fairness.stats.arrays import Floats


def contributions(first: Floats, second: Floats) -> Floats:
    """Return each word's part in the divergence, (p log2(p/m) + q log2(q/m)) / 2 with m = (p + q) / 2, in bits.

    Each part is at least 0, and their sum is the plug-in estimate of the divergence, 0..1. A word-shift graph shows the
    parts, oriented by the side that uses the word more (Gallagher et al. 2021).

    Args:
        first, second: (..., words) counts; each row is one sample. Rows without any count give NaN.
    """
    # Deferred, as scipy.special is not needed to load a probe.
    from scipy.special import rel_entr

    with np.errstate(divide="ignore", invalid="ignore"):
        p = first / first.sum(axis=-1, keepdims=True)
        q = second / second.sum(axis=-1, keepdims=True)
    middle = (p + q) / 2
    bits: Floats = (rel_entr(p, middle) + rel_entr(q, middle)) / (2 * np.log(2))
    # Rounding can push a part that is 0 a little below it.
    return np.maximum(bits, 0.0)
