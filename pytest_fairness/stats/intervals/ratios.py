"""Ratio of two independent shares, with its confidence interval on the logarithmic scale."""

from __future__ import annotations

import math

HALF = 0.5
"""Number of hits, or of misses, that `log_ratio` adds to each sample."""


def log_ratio(hits: float, n: float, other_hits: float, other_n: float) -> tuple[float, float]:
    """Return the logarithm of the ratio of two independent shares, and its standard error (Katz et al. 1978).

    If a share is 0, half a hit is first added to each of the two samples, so that the results are finite (Walter 1975;
    Pettigrew, Gart and Thomas 1986). If both shares are 1, half a miss is added to each, so that the error is above 0.

    Args:
        hits, n: hits and sample size of the first share; hits may be a fraction if answers were averaged.
        other_hits, other_n: hits and sample size of the share by which the first share is divided.
    """
    if not hits or not other_hits:
        hits, n, other_hits, other_n = hits + HALF, n + HALF, other_hits + HALF, other_n + HALF
    elif hits == n and other_hits == other_n:
        n, other_n = n + HALF, other_n + HALF
    return (
        math.log(hits / n) - math.log(other_hits / other_n),
        math.sqrt(1 / hits - 1 / n + 1 / other_hits - 1 / other_n),
    )


def interval(logarithm: float, error: float, z: float) -> tuple[float, float]:
    """Return the interval of a ratio, from its logarithm and the standard error of the logarithm.

    Args:
        logarithm, error: the two results of `log_ratio`.
        z: quantile of the standard normal distribution.
    """
    return math.exp(logarithm - z * error), math.exp(logarithm + z * error)
