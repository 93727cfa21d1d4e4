"""Shares and differences of shares: intervals that hold for small samples too."""

from __future__ import annotations

import math


def wilson(hits: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's score interval of a share, 0..1; (0, 1) for n = 0 (Wilson 1927)."""
    if n == 0:
        return 0.0, 1.0
    share = hits / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def newcombe(hits: float, n: int, other_hits: float, other_n: int, z: float) -> tuple[float, float]:
    """Newcombe's hybrid score interval of the difference of two independent shares (Newcombe 1998, method 10)."""
    difference = (hits / n if n else 0.0) - (other_hits / other_n if other_n else 0.0)
    low, high = wilson(hits, n, z)
    other_low, other_high = wilson(other_hits, other_n, z)
    share, other = hits / n if n else 0.0, other_hits / other_n if other_n else 0.0
    return (
        difference - math.hypot(share - low, other_high - other),
        difference + math.hypot(high - share, other - other_low),
    )


def difference_error(hits: float, n: int, other_hits: float, other_n: int) -> float:
    """Standard error of a difference of shares with one success and one failure added to each sample.

    It does not collapse to 0 where a sample has no success at all (Agresti and Caffo 2000).
    """

    def variance(count: float, size: int) -> float:
        share = (count + 1) / (size + 2)
        return share * (1 - share) / (size + 2)

    return math.sqrt(variance(hits, n) + variance(other_hits, other_n))


def least_difference_error(n: int) -> float:
    """Return the standard error of the difference of two shares of 0, each of `n` units; see `difference_error`."""
    return difference_error(0, n, 0, n)
