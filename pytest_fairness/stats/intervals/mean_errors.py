"""Standard errors of means; for scores in 0..1, also from few scores or from equal scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pytest_fairness.stats.arrays import Floats


def mean_error(numbers: Floats) -> float:
    """Return the standard error of the mean of `numbers`: one number for each of at least two units."""
    return float(numbers.std(ddof=1)) / math.sqrt(len(numbers))


def shrunken_mean_and_error(scores: Floats, added: float = 1.0) -> tuple[float, float]:
    """Return the mean of scores in 0..1 and its standard error, after adding `added` zeros and `added` ones.

    The method comes from Agresti and Coull (1998), who add two zeros and two ones for a 95 % interval of a share. The
    standard error is above 0 even if all scores are equal: twenty equal answers do not prove that the model always
    gives this answer.
    """
    n = len(scores) + 2 * added
    mean = (float(scores.sum()) + added) / n
    variance = (float((scores**2).sum()) + added) / n - mean**2
    return mean, math.sqrt(max(variance, 0.0) / n)


def bounded_error(scores: Floats, added: float = 1.0) -> float:
    """Return the standard error of the mean of scores in 0..1, at least the error of `shrunken_mean_and_error`.

    Args:
        scores: (n,) scores, 0..1.
        added: how many zeros, and how many ones, `shrunken_mean_and_error` adds.
    """
    plain = mean_error(scores) if len(scores) > 1 else 0.0
    return max(plain, shrunken_mean_and_error(scores, added)[1])


def sample_errors(samples: Sequence[Floats]) -> Floats:
    """Return the standard error of each sample's mean; shape (samples,). The numbers need not be in 0..1.

    A sample of one number gets the pooled variance of all samples. If only two different numbers occur, such as 0 and
    1, `bounded_error` is used, so that a sample of equal numbers does not have the error 0. If all numbers are equal,
    the errors are 0.
    """
    values = np.unique(np.concatenate(samples))
    if len(values) == 2:
        low, width = float(values[0]), float(np.ptp(values))
        return np.array([width * bounded_error((sample - low) / width, added=0.5) for sample in samples])
    squares = np.array([float(((sample - sample.mean()) ** 2).sum()) for sample in samples])
    sizes = np.array([len(sample) for sample in samples])
    pooled = float(squares.sum()) / max(1, int((sizes - 1).sum()))
    variances = np.where(sizes > 1, squares / np.maximum(1, sizes - 1), pooled)
    return np.asarray(np.sqrt(variances / sizes))


def effective_size(mean: float, error: float) -> float:
    """Return the number of independent yes-or-no answers whose mean has the standard error `error`.

    Args:
        mean: share of yes, above 0 and below 1.
        error: standard error of the mean, above 0.
    """
    return mean * (1 - mean) / error**2
