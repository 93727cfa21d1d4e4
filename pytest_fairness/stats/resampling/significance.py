"""P-values and critical values from a resampled null distribution; adjustment of p-values for multiple tests."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pytest_fairness.stats.arrays import Floats

DRAWS_OF_A_TAIL = 1000
"""Smallest number of draws from which the tail of the null distribution is extrapolated."""
SYMMETRIC = 0.01
"""Skewness below which the normal distribution replaces the gamma distribution, which is not defined for a skewness
of 0."""


def p_value(null: Floats, observed: float, *, exact: bool) -> float:
    """Return the one-sided p-value: the share of draws whose statistic is at least as large as the observed one.

    Args:
        null: (draws,) statistic of each draw under the null hypothesis.
        observed: observed statistic.
        exact: whether `null` holds each possible relabelling once, including the observed labels. If not, the observed
            statistic counts as one more draw, so that p is never 0 (Phipson and Smyth 2010). If, moreover, the observed
            statistic exceeds all of at least `DRAWS_OF_A_TAIL` draws, `tail_p_value` extrapolates p.
    """
    # Equal statistics of different relabellings may differ in the last bits.
    hits = int(np.count_nonzero(null >= observed - 1e-12 * max(1.0, abs(observed))))
    if exact:
        return hits / len(null)
    counted = (1 + hits) / (1 + len(null))
    return counted if hits or len(null) < DRAWS_OF_A_TAIL else tail_p_value(null, observed)


def tail_p_value(null: Floats, observed: float) -> float:
    """Return the p-value of a statistic that exceeds all draws, extrapolated by a gamma distribution.

    The gamma distribution has the first three moments of the draws. This is the Pearson type III approximation of
    permutation tests (Mielke and Berry 2007). A skewness below 0 counts as 0, which makes p too large rather than too
    small. The p-value is at most 1 / (draws + 1), and at least a twentieth of this number.

    Args:
        null: (draws,) statistic of each draw under the null hypothesis, at least `DRAWS_OF_A_TAIL` draws.
        observed: observed statistic, larger than the statistic of every draw.
    """
    resolved = 1 / (1 + len(null))
    sd = float(null.std()) if np.isfinite(null).all() else 0.0
    if not sd:
        return resolved  # equal or infinite draws have no tail to extrapolate
    z = (observed - float(null.mean())) / sd
    skewness = float((((null - null.mean()) / sd) ** 3).mean())
    return min(resolved, max(resolved / 20, gamma_tail(z, max(0.0, skewness))))


def gamma_tail(z: float, skewness: float) -> float:
    """Return the probability that a variable of mean 0 and variance 1 exceeds z; its distribution is Pearson type III.

    Args:
        z: the number that is exceeded.
        skewness: skewness of the distribution, which is a shifted gamma distribution, mirrored for a skewness below 0.
    """
    # Deferred, as scipy is not needed to load a probe.
    from scipy.special import gammainc, gammaincc, ndtr

    if abs(skewness) < SYMMETRIC:
        return float(ndtr(-z))
    shape = 4 / skewness**2
    if skewness > 0:
        return float(gammaincc(shape, max(0.0, shape + z * math.sqrt(shape))))
    return float(gammainc(shape, max(0.0, shape - z * math.sqrt(shape))))


def threshold(largest: Floats, alpha: float) -> float:
    """Return the critical value that the largest of many statistics exceeds by chance with probability `alpha`.

    If `alpha` is too small for the number of draws, the critical value is extrapolated by the Gumbel distribution with
    the mean and standard deviation of the draws.

    Args:
        largest: (draws,) largest statistic of each draw under the null hypothesis.
        alpha: family-wise error rate.
    """
    observed = float(np.quantile(largest, 1 - alpha, method="higher"))
    if alpha * (len(largest) + 1) >= 1:
        return observed
    scale = math.sqrt(6) / math.pi * float(np.std(largest, ddof=1))
    tail = float(np.mean(largest)) - scale * (np.euler_gamma + math.log(-math.log1p(-alpha)))
    return max(observed, tail)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for multiple tests by Holm's method (1979), in the given order; scipy lacks it."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
