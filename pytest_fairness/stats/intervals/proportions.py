"""Confidence intervals of shares and of differences between shares, also for small samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def wilson(hits: float, n: float, z: float) -> tuple[float, float]:
    """Return Wilson's score interval of a share, 0..1 (Wilson 1927).

    `scipy.stats.binomtest` gives the same interval, but only for whole numbers of hits.

    Args:
        hits: number of hits, 0..n; may be a fraction if answers were averaged.
        n: size of the sample; 0 gives the interval (0, 1).
        z: quantile of the standard normal distribution.
    """
    if n == 0:
        return 0.0, 1.0
    share = hits / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def newcombe(hits: float, n: float, other_hits: float, other_n: float, z: float) -> tuple[float, float]:
    """Return the interval of the difference between two independent shares, −1..1 (Newcombe 1998, method 10).

    Args:
        hits, n: hits and sample size of the first share; see `wilson`.
        other_hits, other_n: hits and sample size of the share that is subtracted from the first.
        z: quantile of the standard normal distribution.
    """
    share, other = hits / n if n else 0.0, other_hits / other_n if other_n else 0.0
    low, high = wilson(hits, n, z)
    other_low, other_high = wilson(other_hits, other_n, z)
    return (
        share - other - math.hypot(share - low, other_high - other),
        share - other + math.hypot(high - share, other - other_low),
    )


def difference_error(hits: float, n: float, other_hits: float, other_n: float) -> float:
    """Return the standard error of a difference between two shares, after adding one hit and one miss to each sample.

    The method comes from Agresti and Caffo (2000). The standard error is above 0 even if neither sample has a hit.
    """

    def variance(count: float, size: float) -> float:
        share = (count + 1) / (size + 2)
        return share * (1 - share) / (size + 2)

    return math.sqrt(variance(hits, n) + variance(other_hits, other_n))


def least_difference_error(n: int) -> float:
    """Return `difference_error` for two samples of `n` units without any hit."""
    return difference_error(0, n, 0, n)


def paired_interval(differences: NDArray[np.float64], z: float) -> tuple[float, float]:
    """Return the interval of the difference between two shares of the same units, within −1..1 (Agresti and Min 2005).

    Each unit has a yes or a no for each of the two shares, which makes four possible pairs. Half a unit is added to the
    count of each possible pair, so that the interval is also valid if few units differ.

    Args:
        differences: (units,) for each unit, its number for the first share minus its number for the second; each number
            is 0 for a no, 1 for a yes, or between 0 and 1 for an average of several answers.
        z: quantile of the standard normal distribution.
    """
    size = len(differences) + 2
    mean = float(differences.sum()) / size
    variance = (float((differences**2).sum()) + 1) / size - mean**2
    half = z * math.sqrt(variance / size)
    return max(-1.0, mean - half), min(1.0, mean + half)
