"""Effect sizes: differences on a scale that does not depend on the unit or on the number of answers."""

from __future__ import annotations

import math
from collections.abc import Sequence


def cohens_h(first: float, second: float) -> float:
    """Return Cohen's h of two shares: the difference of their arcsine transforms, above 0 if the first is larger.

    A share below 0 counts as 0, and a share above 1 counts as 1, because the bounds of an interval may be outside 0..1.
    """
    angles = [2 * math.asin(math.sqrt(min(1.0, max(0.0, share)))) for share in (first, second)]
    return angles[0] - angles[1]


def standardized(difference: float, standard_deviations: Sequence[float]) -> float:
    """Return a difference divided by the root mean square of the groups' standard deviations; 0 for 0 / 0."""
    pooled_sd = math.sqrt(sum(sd**2 for sd in standard_deviations) / len(standard_deviations))
    return ratio(difference, pooled_sd)


def d_from_error(difference: float, standard_error: float, first: int, second: int) -> float:
    """Return Cohen's d of a difference between two independent means of `first` and of `second` units."""
    return ratio(difference, standard_error) * math.sqrt(1 / first + 1 / second)


def share_of_variance(square_distance: float, variance: float) -> float:
    """Return η²: the share of the variance that two groups of equal size explain.

    Args:
        square_distance: squared distance between the groups' means; a negative value counts as 0.
        variance: variance within the groups.
    """
    square = ratio(max(0.0, square_distance), variance)
    return 1.0 if math.isinf(square) else square / (square + 4)


def ratio(numerator: float, denominator: float) -> float:
    """Return numerator / denominator; 0 for 0 / 0, and ±infinity if only the denominator is 0."""
    if denominator > 0:
        return numerator / denominator
    return math.copysign(math.inf, numerator) if numerator else 0.0
