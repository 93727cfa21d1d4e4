"""How far several numbers (the groups' means) are apart, and how that grew between two runs.

The largest gap between groups, their standard deviation and their mean absolute deviation are norms: never negative,
and of equal groups above 0 by chance alone. A gap near 0 would so lose by chance in the baseline what it gains in the
present run. Between two groups the remedy is the signed difference, to the side that both runs together show. For
more groups `signed` does the same along the pattern that both runs together show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats import blocks

Floats = NDArray[np.float64]

DRAWS = 4000
"""Draws of a standard error."""


@dataclass(frozen=True)
class Spread:
    """How far several numbers are apart.

    Attributes:
        size: from (..., groups) numbers to (...) sizes, 0 where all are equal; of c times the numbers |c| times the
            size.
        slope: from (groups,) numbers to the (groups,) gradient of their size.
    """

    size: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]

    def signed(self, pattern: Floats) -> Callable[[Floats], Floats]:
        """Return the size of (..., groups) numbers, negative where they are the pattern, (groups,), reversed.

        What the numbers have of the reversed pattern counts as negative, and the rest by its size. Of two numbers it
        is their difference, to the side of the pattern.
        """
        slope, whole = self.slope(pattern), float(self.size(pattern))

        def size(numbers: Floats) -> Floats:
            along = np.minimum(np.nansum(numbers * slope, axis=-1), 0.0)
            rest = numbers - along[..., None] * (pattern / whole) if whole else numbers
            return np.asarray(self.size(rest) + along)

        return size


def largest_difference(pairs: Sequence[tuple[int, int]]) -> Spread:
    """Return the largest absolute difference of these pairs; a number that is not defined (NaN) is in no difference."""
    first, second = (np.array(side) for side in zip(*pairs, strict=True))

    def size(numbers: Floats) -> Floats:
        return np.asarray(np.nanmax(np.abs(numbers[..., first] - numbers[..., second]), axis=-1))

    def slope(numbers: Floats) -> Floats:
        high, low = furthest(numbers, pairs)
        found = np.zeros(len(numbers))
        found[high], found[low] = 1.0, -1.0
        return found

    return Spread(size, slope)


STANDARD_DEVIATION = Spread(blocks.value_spread, blocks.spread_slope)
MEAN_DEVIATION = Spread(lambda means: 1 - blocks.evenness(means), lambda means: -blocks.evenness_slope(means))


def furthest(numbers: Floats, pairs: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the pair of (groups,) numbers that differ most, the higher one first; the first pair if none differ."""
    differences = np.array([numbers[first] - numbers[second] for first, second in pairs])
    # Of equal ones the first, whatever the last bits say.
    place = int(np.nanargmax(np.round(np.abs(differences), 12)))
    first, second = pairs[place]
    return (first, second) if differences[place] >= 0 else (second, first)


def growth_error(
    size: Callable[[Floats], Floats], now: Floats, then: Floats, covariance: Floats, random: np.random.Generator
) -> float:
    """Standard error of size(now) − size(then), by drawing both runs' means from normal distributions.

    Args:
        size: of (..., groups) numbers.
        now, then: (groups,) means of either run.
        covariance: (groups, groups) of now − then; each run has half of it.
        random: the source of randomness.
    """
    noise = random.multivariate_normal(np.zeros(len(now)), covariance / 2, size=(2, DRAWS), method="eigh")
    return float((size(now + noise[0]) - size(then + noise[1])).std())
