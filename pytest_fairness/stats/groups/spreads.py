"""Distances among several numbers, such as the means of groups, and their growth between two runs.

The largest gap, the standard deviation and the mean absolute deviation are norms of the numbers' differences: never
negative, and above 0 by chance alone where all groups are equal. The growth of a gap near 0 is therefore
underestimated, by as much as the baseline's gap is above 0 by chance. Between two groups the remedy is the signed
difference, towards the side that both runs together show. `Spread.signed` does the same for more groups, along the
pattern that both runs together show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.stats.arrays import Floats

Pairs = Sequence[tuple[int, int]]

DRAWS = 4000
"""Draws of a standard error."""
CLEAR_ERRORS = 3.0
"""Standard errors of the change by which the gaps of two runs must add up for their side to be known."""


def value_range(means: Floats) -> Floats:
    """Return the (...) largest minus smallest of (..., values) means: SNSR (Zhang et al. 2023)."""
    found: Floats = means.max(axis=-1) - means.min(axis=-1)
    return found


def value_spread(means: Floats) -> Floats:
    """Return the (...) population standard deviations of (..., values) means: SNSV (Zhang et al. 2023).

    The V is for "variance" in the paper, whose formula is a standard deviation.
    """
    found: Floats = means.std(axis=-1)
    return found


def evenness(means: Floats) -> Floats:
    """Return 1 minus the mean absolute deviation of (..., values) means: PAFS (Sah et al. 2025).

    It is 0.5..1 for means in 0..1.
    """
    found: Floats = 1 - np.abs(means - means.mean(axis=-1, keepdims=True)).mean(axis=-1)
    return found


def _spread_gradient(means: Floats) -> Floats:
    """Return the (values,) gradient of `value_spread`; of equal means that of the first one moving up."""
    centred = means - means.mean()
    if not centred.any():
        centred = np.eye(len(means))[0] - 1 / len(means)
    found: Floats = centred / (math.sqrt(len(means)) * float(np.linalg.norm(centred)))
    return found


def _deviation_gradient(means: Floats) -> Floats:
    """Return the (values,) gradient of 1 − `evenness`; of equal means that of the first one moving up."""
    centred = means - means.mean()
    if not centred.any():
        centred = np.eye(len(means))[0] - 1 / len(means)
    signs = np.sign(centred)
    found: Floats = (signs - signs.mean()) / len(means)
    return found


@dataclass(frozen=True)
class Spread:
    """A distance among several numbers.

    Attributes:
        size: function from (..., groups) numbers to (...) distances, 0 where all numbers are equal; |c| times as large
            for c times the numbers.
        gradient: function from (groups,) numbers to the (groups,) gradient of their distance.
    """

    size: Callable[[Floats], Floats]
    gradient: Callable[[Floats], Floats]

    def signed(self, pattern: Floats) -> Callable[[Floats], Floats]:
        """Return a function like `size` that is negative where the numbers are the reversed pattern.

        The function counts the part of the numbers that lies along the reversed pattern as negative, and the size of
        the rest as positive. For two numbers it is their difference, towards the side of the pattern.

        Args:
            pattern: (groups,) numbers.
        """
        gradient, whole = self.gradient(pattern), float(self.size(pattern))

        def size(numbers: Floats) -> Floats:
            along = np.minimum(np.nansum(numbers * gradient, axis=-1), 0.0)
            rest = numbers - along[..., None] * (pattern / whole) if whole else numbers
            return np.asarray(self.size(rest) + along)

        return size


def largest_difference(pairs: Pairs) -> Spread:
    """Return the largest absolute difference of these pairs as a spread; an undefined number (NaN) is left out."""
    first, second = (np.array(side) for side in zip(*pairs, strict=True))

    def size(numbers: Floats) -> Floats:
        return np.asarray(np.nanmax(np.abs(numbers[..., first] - numbers[..., second]), axis=-1))

    def gradient(numbers: Floats) -> Floats:
        high, low = furthest(numbers, pairs)
        found = np.zeros(len(numbers))
        found[high], found[low] = 1.0, -1.0
        return found

    return Spread(size, gradient)


STANDARD_DEVIATION = Spread(value_spread, _spread_gradient)
MEAN_DEVIATION = Spread(lambda means: 1 - evenness(means), _deviation_gradient)


def furthest(numbers: Floats, pairs: Pairs) -> tuple[int, int]:
    """Return the pair of (groups,) numbers that differ most, the higher one first; the first pair if none differ."""
    differences = np.array([numbers[first] - numbers[second] for first, second in pairs])
    # Rounded, so that equal differences are a tie whatever their last bits are; the first of a tie is taken.
    place = int(np.nanargmax(np.round(np.abs(differences), 12)))
    first, second = pairs[place]
    return (first, second) if differences[place] >= 0 else (second, first)


def either_side(both_gaps: float, error: float) -> bool:
    """Return whether two runs do not show clearly on which side of 0 a gap is.

    Args:
        both_gaps: sum of the gaps of both runs.
        error: standard error of the change of the gap.
    """
    return abs(both_gaps) < CLEAR_ERRORS * error


def growth_error(
    size: Callable[[Floats], Floats], current: Floats, baseline: Floats, covariance: Floats, random: np.random.Generator
) -> float:
    """Return the standard error of size(current) − size(baseline), by drawing both runs' means from the normal.

    Args:
        size: function of (..., groups) numbers.
        current, baseline: (groups,) means of either run.
        covariance: (groups, groups) of current − baseline; each run has half of it.
        random: the source of randomness.
    """
    noise = random.multivariate_normal(np.zeros(len(current)), covariance / 2, size=(2, DRAWS), method="eigh")
    return float((size(current + noise[0]) - size(baseline + noise[1])).std())
