"""Distances among several numbers, such as the means of groups, and the growth of a distance from one run to another.

The largest gap, the standard deviation and the mean absolute deviation are never negative. They are above 0 by chance
alone even if all groups are truly equal. In a baseline with equal groups, the distance is therefore too large, and its
growth up to the current run is underestimated.

A signed distance removes this bias. For two groups, the signed distance is the mean of one group minus the mean of the
other, in the same order in both runs: first the group with the higher mean in both runs together.
`DistanceMeasure.signed` generalises the signed distance to more groups: the groups' means, averaged over both runs,
define the positive direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.stats.arrays import Floats

Pairs = Sequence[tuple[int, int]]
"""Index pairs of the groups that are compared."""

DRAWS = 4000
"""Number of random draws from which `growth_error` computes a standard error."""
CLEAR_ERRORS = 3.0
"""The direction of a gap counts as known if the sum of both runs' gaps is at least this number of standard errors of
the change."""


def value_range(means: Floats) -> Floats:
    """Return the largest minus the smallest value of each row; `means` has shape (..., values).

    This is SNSR (Zhang et al. 2023).
    """
    largest_gap: Floats = means.max(axis=-1) - means.min(axis=-1)
    return largest_gap


def value_sd(means: Floats) -> Floats:
    """Return the population standard deviation of the values of each row; `means` has shape (..., values).

    This is SNSV (Zhang et al. 2023). The V stands for "variance" in the paper, but its formula is a standard deviation.
    """
    sd: Floats = means.std(axis=-1)
    return sd


def evenness(means: Floats) -> Floats:
    """Return 1 minus the mean absolute deviation of the values of each row; `means` has shape (..., values).

    This is PAFS (Sah et al. 2025). If all means are in 0..1, PAFS is in 0.5..1.
    """
    even: Floats = 1 - np.abs(means - means.mean(axis=-1, keepdims=True)).mean(axis=-1)
    return even


def _centred(means: Floats) -> Floats:
    """Return each mean minus the mean of all means; equal means are treated as 1, 0, …, 0.

    The result is used to compute gradients, which are not defined for equal means.
    """
    centred: Floats = means - means.mean()
    return centred if centred.any() else np.eye(len(means))[0] - 1 / len(means)


def _sd_gradient(means: Floats) -> Floats:
    """Return the gradient of `value_sd` at these means; both have shape (values,)."""
    centred = _centred(means)
    return np.asarray(centred / (math.sqrt(len(means)) * float(np.linalg.norm(centred))))


def _deviation_gradient(means: Floats) -> Floats:
    """Return the gradient of 1 − `evenness` at these means; both have shape (values,)."""
    signs = np.sign(_centred(means))
    return np.asarray((signs - signs.mean()) / len(means))


@dataclass(frozen=True)
class DistanceMeasure:
    """Distance measure for several numbers, one for each group, with its gradient.

    Attributes:
        size: function that returns the distance for each row of (..., groups) numbers. The distance is 0 if all numbers
            are equal; if all numbers are multiplied by c, the distance is multiplied by |c|.
        gradient: function that returns the (groups,) gradient of the distance at (groups,) numbers.
    """

    size: Callable[[Floats], Floats]
    gradient: Callable[[Floats], Floats]

    def signed(self, pattern: Floats) -> Callable[[Floats], Floats]:
        """Return a signed version of `size`, which is negative for numbers whose pattern is opposite to `pattern`.

        For two groups and a pattern whose first number is higher, (3, 1) has the distance 2, and (1, 3) has −2. For
        more groups, the numbers are split into a multiple of `pattern` and the rest. If the multiple is negative, its
        distance is subtracted from the distance of the rest.

        Args:
            pattern: (groups,) numbers that define the positive direction.
        """
        gradient, distance = self.gradient(pattern), float(self.size(pattern))

        def size(numbers: Floats) -> Floats:
            along = np.minimum(np.nansum(numbers * gradient, axis=-1), 0.0)
            rest = numbers - along[..., None] * (pattern / distance) if distance else numbers
            return np.asarray(self.size(rest) + along)

        return size


def largest_difference(pairs: Pairs) -> DistanceMeasure:
    """Return the distance measure "largest absolute difference of any pair of groups"; pairs with NaN are left out."""
    first, second = (np.array(side) for side in zip(*pairs, strict=True))

    def size(numbers: Floats) -> Floats:
        return np.asarray(np.nanmax(np.abs(numbers[..., first] - numbers[..., second]), axis=-1))

    def gradient(numbers: Floats) -> Floats:
        high, low = most_different(numbers, pairs)
        signs = np.zeros(len(numbers))
        signs[high], signs[low] = 1.0, -1.0
        return signs

    return DistanceMeasure(size, gradient)


STANDARD_DEVIATION = DistanceMeasure(value_sd, _sd_gradient)
MEAN_DEVIATION = DistanceMeasure(lambda means: 1 - evenness(means), _deviation_gradient)


def most_different(numbers: Floats, pairs: Pairs) -> tuple[int, int]:
    """Return the indices of the two groups whose numbers differ most; the group with the higher number comes first.

    If no groups differ, return the first pair.

    Args:
        numbers: (groups,) number of each group.
        pairs: index pairs of the groups that are compared.
    """
    differences = np.array([numbers[first] - numbers[second] for first, second in pairs])
    # Rounded, so that differences that are equal except for rounding errors are a tie; the first of a tie is taken.
    place = int(np.nanargmax(np.round(np.abs(differences), 12)))
    first, second = pairs[place]
    return (first, second) if differences[place] >= 0 else (second, first)


def direction_unknown(both_gaps: float, error: float) -> bool:
    """Return whether the direction of a gap is unknown: the sum of both runs' gaps is not clearly different from 0.

    Args:
        both_gaps: sum of the signed gaps of both runs.
        error: standard error of the change of the gap.
    """
    return abs(both_gaps) < CLEAR_ERRORS * error


def growth_error(
    size: Callable[[Floats], Floats], current: Floats, baseline: Floats, covariance: Floats, random: np.random.Generator
) -> float:
    """Return the standard error of the change of a distance, size(current) − size(baseline).

    The standard error is the standard deviation over random draws: the means of each run are drawn from a normal
    distribution around the observed means.

    Args:
        size: function that returns the distance for each row of (..., groups) numbers.
        current, baseline: (groups,) means of the two runs.
        covariance: (groups, groups) covariance of current − baseline; half of it is attributed to each run.
        random: random generator.
    """
    noise = random.multivariate_normal(np.zeros(len(current)), covariance / 2, size=(2, DRAWS), method="eigh")
    return float((size(current + noise[0]) - size(baseline + noise[1])).std())
