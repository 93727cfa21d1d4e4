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
    """Test by sign flips whether the mean difference is above 0, and return the p-value; see `sign_flips`.

    Args:
        differences: (units,) one difference for each independent unit.
        count: number of random draws of signs; if at most this many combinations exist, each is used once.
        random: random generator.
        two_sided: whether the test is two-sided, so that a mean difference below 0 counts too.
    """
    return float(sign_flips(differences[:, None], count, random, two_sided=two_sided)[0])


def sign_flips(differences: Floats, count: int, random: np.random.Generator, *, two_sided: bool = False) -> Floats:
    """Test several mean differences of the same units by sign flips, and return their p-values, adjusted jointly.

    Each mean is divided by the root of the mean of its squares, which no sign changes, and is compared with the largest
    of all means of a draw (the single-step max-T method of Westfall and Young 1993). A noisy difference therefore does
    not hide a precise one. The p-values are exact for few units, and 1 for differences that are all 0.

    Args:
        differences: (units, tests) differences; all differences of a unit get the same sign.
        count: number of random draws of signs; if at most this many combinations exist, each is used once.
        random: random generator.
        two_sided: whether the tests are two-sided, so that a mean difference below 0 counts too.
    """
    p_values = np.ones(differences.shape[1])
    tested = np.flatnonzero((differences != 0).any(axis=0))
    # The sign of a unit without differences does not matter; without such units more tests are exact.
    moved = differences[(differences != 0).any(axis=1)][:, tested]
    if not len(tested):
        return p_values
    moved = moved / np.abs(moved).max(axis=0)  # squares of very small numbers would be 0
    scaled = moved / np.sqrt((moved**2).mean(axis=0))
    null, exact = column_means.flipped_means(scaled, count, random)
    means = scaled.mean(axis=0)
    if two_sided:
        null, means = np.abs(null), np.abs(means)
    largest = null.max(axis=1)
    p_values[tested] = [significance.p_value(largest, float(mean), exact=exact) for mean in means]
    return p_values
