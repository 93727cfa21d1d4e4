"""The mean difference of two scores that each unit has."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def paired_mean(first: Floats, second: Floats, confidence: float = 0.95) -> tuple[float, tuple[float, float] | None]:
    """Mean of first − second over units, with its two-sided interval (paired t, Student 1908).

    Args:
        first, second: (units,) scores, at least one.
        confidence: of the interval, 0..1.

    Returns:
        the mean, and the interval; `None` for a single unit, of which nothing says how it varies.
    """
    difference = first - second
    mean, n = float(difference.mean()), len(difference)
    if n < 2:
        return mean, None
    # Deferred, as scipy.stats takes half a second to import and few runs come this far.
    from scipy.stats import t

    half = float(t.ppf((1 + confidence) / 2, n - 1)) * float(difference.std(ddof=1)) / math.sqrt(n)
    return mean, (mean - half, mean + half)
