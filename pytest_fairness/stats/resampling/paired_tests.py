"""Exact tests of paired answers: McNemar and sign flip."""

from __future__ import annotations

import numpy as np

from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.resampling import column_means, significance


def mcnemar(one_way: int, other_way: int, *, two_sided: bool = False) -> float:
    """Return the p-value of the exact McNemar test for pairs of yes-or-no answers (McNemar 1947).

    Args:
        one_way: number of pairs that differ in the direction of interest.
        other_way: number of pairs that differ in the other direction.
        two_sided: whether both directions are of interest.

    Returns:
        the p-value, 0..1; 1 if no pair differs.
    """
    if one_way + other_way == 0:
        return 1.0
    # Deferred, as scipy.stats takes half a second to import and only measuring needs it.
    from scipy.stats import binomtest

    pairs = one_way + other_way
    test = binomtest(one_way, pairs) if two_sided else binomtest(one_way, pairs, alternative="greater")
    return float(test.pvalue)


def sign_flip(differences: Floats, count: int, random: np.random.Generator, *, two_sided: bool = False) -> float:
    """Test by sign flips whether the mean difference is above 0, and return the p-value.

    The p-value is exact for few units, and 1 if all differences are 0.

    Args:
        differences: (units,) one difference for each independent unit.
        count: number of random draws of signs; if at most this many combinations exist, each is used once.
        random: random generator.
        two_sided: whether the test is two-sided, so that a mean difference below 0 counts too.
    """
    # The sign of a difference of 0 does not matter; without such units more tests are exact.
    nonzero = differences[differences != 0]
    if not len(nonzero):
        return 1.0
    null, exact = column_means.flipped_means(nonzero[:, None], count, random)
    means, observed = null[:, 0], float(nonzero.mean())
    if two_sided:
        means, observed = np.abs(means), abs(observed)
    return significance.p_value(means, observed, exact=exact)
