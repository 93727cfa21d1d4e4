"""Standard errors of means, also of scores in 0..1, where they hold for small samples and for equal scores."""

from __future__ import annotations

import math

from pytest_fairness.stats.arrays import Floats


def mean_error(numbers: Floats) -> float:
    """Return the standard error of the mean of (units,) numbers."""
    return float(numbers.std(ddof=1)) / math.sqrt(len(numbers))


def shrunken(scores: Floats, added: float = 1.0) -> tuple[float, float]:
    """Return the mean and standard error of (n,) scores in 0..1 with `added` zeros and as many ones added.

    For scores of 0 and 1 this is the error of Agresti and Coull (1998). It is above 0 for equal scores too, as twenty
    equal answers do not prove that all answers are equal.
    """
    n = len(scores) + 2 * added
    mean = (float(scores.sum()) + added) / n
    variance = (float((scores**2).sum()) + added) / n - mean**2
    return mean, math.sqrt(max(variance, 0.0) / n)


def bounded_error(scores: Floats, added: float = 1.0) -> float:
    """Return the standard error of the mean of scores in 0..1, at least that of the shrunken sample.

    Args:
        scores: (n,) scores.
        added: see `shrunken`.
    """
    plain = mean_error(scores) if len(scores) > 1 else 0.0
    return max(plain, shrunken(scores, added)[1])


def effective_size(mean: float, error: float) -> float:
    """Return the number of yes-or-no answers with this mean, above 0 and below 1, and this standard error."""
    return mean * (1 - mean) / error**2
