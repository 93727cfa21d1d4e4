"""Pairs of answers to the same question: exact tests of which way they differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats import blocks, resampling

Floats = NDArray[np.float64]


def mcnemar(one_way: int, other_way: int, *, two_sided: bool = False) -> float:
    """Exact McNemar test of pairs of yes and no (McNemar 1947), by the binomial distribution.

    Args:
        one_way: pairs that differ in the direction of interest.
        other_way: pairs that differ in the other direction.
        two_sided: whether both directions are of interest.

    Returns:
        p-value; 1 where no pair differs.
    """
    if one_way + other_way == 0:
        return 1.0
    # Deferred, as scipy.stats takes half a second to import and only measuring needs it.
    from scipy.stats import binomtest

    pairs = one_way + other_way
    test = binomtest(one_way, pairs) if two_sided else binomtest(one_way, pairs, alternative="greater")
    return float(test.pvalue)


def sign_flip(differences: Floats, count: int, random: np.random.Generator, *, two_sided: bool = False) -> float:
    """One-sided p-value that the mean difference is above 0, signs turned at random; exact where few units allow it.

    Args:
        differences: (units,) one number each, independent of each other.
        count: how many draws of signs where not all can be tried.
        random: the source of randomness.
        two_sided: whether a mean difference below 0 is of interest as well.
    """
    null, exact = blocks.flipped_means(differences[:, None], count, random)
    means, observed = null[:, 0], float(differences.mean())
    if two_sided:
        means, observed = np.abs(means), abs(observed)
    return resampling.p_value(means, observed, exact=exact)
