"""Fisher's exact test of two shares.

`scipy.stats.fisher_exact` is not used here, because the import of scipy.stats takes half a second. A run that finds all
its measurements in the store takes less time than that.
"""

from __future__ import annotations

import math
from itertools import accumulate
from operator import mul

TIE = 1 + 1e-7
"""Relative tolerance within which two probabilities count as equal, as in R's `fisher.test`."""


def p_value(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Return the two-sided p-value of Fisher's exact test: do two groups have the same share of hits?

    Args:
        first, second: number of hits, and number of misses, of each group.

    Returns:
        the p-value: total probability of all tables (with the same totals) that are at most as probable as the observed
        table.
    """
    size, other, hits = sum(first), sum(second), first[0] + second[0]
    fewest, most = max(0, hits - other), min(hits, size)
    mode = (size + 1) * (hits + 1) // (size + other + 2)

    def ratio(count: int) -> float:
        """Return P(first group has `count` + 1 hits) / P(first group has `count` hits), for the same totals."""
        return (size - count) * (hits - count) / ((count + 1) * (other - hits + count + 1))

    # Relative to the most probable table, so that no number overflows.
    above = accumulate(map(ratio, range(mode, most)), mul, initial=1.0)
    below = accumulate((1 / ratio(count) for count in range(mode - 1, fewest - 1, -1)), mul, initial=1.0)
    weights = dict(zip(range(mode, most + 1), above, strict=True))
    weights |= zip(range(mode, fewest - 1, -1), below, strict=True)
    observed = weights[first[0]] * TIE
    return math.fsum(weight for weight in weights.values() if weight <= observed) / math.fsum(weights.values())
