"""P-values and thresholds from the draws of a null distribution, and their adjustment for many tests."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pytest_fairness.stats.arrays import Floats

DRAWS_OF_A_TAIL = 1000
"""Draws from which on their tail tells more than that the observed statistic is beyond it."""
SYMMETRIC = 0.01
"""Skewness below which the normal distribution stands for the gamma distribution, which has no limit there."""


def p_value(null: Floats, observed: float, *, exact: bool) -> float:
    """Return the one-sided p-value: how often the null statistic is at least the observed one.

    Args:
        null: (draws,) the statistic under the hypothesis.
        observed: the statistic as it was observed.
        exact: whether `null` holds every possible value (the observed one among them); if not, the observed one is
            counted as a draw, so that p is never 0 (Phipson and Smyth 2010), or, beyond all of many draws, p is taken
            from their tail; see `tail_p_value`.
    """
    # Equal statistics of different relabellings may differ in the last bits.
    hits = int(np.count_nonzero(null >= observed - 1e-12 * max(1.0, abs(observed))))
    if exact:
        return hits / len(null)
    counted = (1 + hits) / (1 + len(null))
    return counted if hits or len(null) < DRAWS_OF_A_TAIL else tail_p_value(null, observed)


def tail_p_value(null: Floats, observed: float) -> float:
    """Return the p-value of a statistic beyond all draws, by the gamma distribution with their first three moments.

    The Pearson type III approximation of permutation tests (Mielke and Berry 2007); a skewness below 0 counts as 0,
    which errs upwards. Never below a twentieth of the smallest p-value that the draws resolve, nor above it.

    Args:
        null: (draws,) the statistic under the hypothesis, at least `DRAWS_OF_A_TAIL`.
        observed: the statistic as it was observed, larger than all draws.
    """
    # Deferred, as scipy is not needed to load a probe.
    from scipy.special import gammaincc, ndtr

    resolved, spread = 1 / (1 + len(null)), float(null.std())
    if not spread:
        return resolved  # all draws are the same, so that nothing tells how far they may go
    z = (observed - float(null.mean())) / spread
    skewness = float((((null - null.mean()) / spread) ** 3).mean())
    if skewness < SYMMETRIC:
        tail = float(ndtr(-z))
    else:
        shape = 4 / skewness**2
        tail = float(gammaincc(shape, shape + z * math.sqrt(shape)))
    return min(resolved, max(resolved / 20, tail))


def threshold(largest: Floats, alpha: float) -> float:
    """Return the threshold that the largest of many statistics exceeds with probability `alpha` under the hypothesis.

    A probability below the resolution of the draws is extrapolated by the Gumbel distribution with the mean and
    standard deviation of the draws.

    Args:
        largest: (draws,) the largest statistic of each draw.
        alpha: the probability.
    """
    observed = float(np.quantile(largest, 1 - alpha, method="higher"))
    if alpha * (len(largest) + 1) >= 1:
        return observed
    scale = math.sqrt(6) / math.pi * float(np.std(largest, ddof=1))
    tail = float(np.mean(largest)) - scale * (np.euler_gamma + math.log(-math.log1p(-alpha)))
    return max(observed, tail)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for multiple tests, in the same order (Holm 1979); scipy has no such function."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
