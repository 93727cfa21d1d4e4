"""Means of scores between 0 and 1: their errors, and bounds that hold for small and one-sided samples too."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats import proportions

Floats = NDArray[np.float64]


def shrunken(scores: Floats, added: float = 1.0) -> tuple[float, float]:
    """Mean and standard error of scores in 0..1 to which as many as `added` zeros and ones are added.

    For yes and no this is the error of Agresti and Coull (1998). It does not vanish where all scores are alike: twenty
    equal answers do not show that every answer will be.
    """
    n = len(scores) + 2 * added
    mean = (float(scores.sum()) + added) / n
    variance = (float((scores**2).sum()) + added) / n - mean**2
    return mean, math.sqrt(max(variance, 0.0) / n)


def standard_error(scores: Floats, added: float = 1.0) -> float:
    """Standard error of the mean of scores in 0..1; never below that of the shrunken sample.

    Args:
        scores: (n,) scores.
        added: see `shrunken`.
    """
    plain = float(scores.std(ddof=1)) / math.sqrt(len(scores)) if len(scores) > 1 else 0.0
    return max(plain, shrunken(scores, added)[1])


def effective_size(mean: float, error: float) -> float:
    """How many yes-or-no answers would leave this error; `mean` strictly between 0 and 1."""
    return mean * (1 - mean) / error**2


def interval(value: float, size: float, z: float) -> tuple[float, float]:
    """Wilson's score interval of a mean in 0..1 that is worth `size` yes-or-no answers (Wilson 1927)."""
    return proportions.wilson(value * size, size, z)
