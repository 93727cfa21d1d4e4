"""Group-sequential tests: the alpha of each interim analysis while data are being collected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.intervals import normal

EXPONENT = 2.0
"""Exponent of the spending function; with 2, most of alpha remains for the last analyses."""
_DEVIATIONS = 8.0
_POINTS = 801


def alphas(shares: Sequence[float], alpha: float) -> list[float]:
    """Return the one-sided alpha of each interim analysis; all analyses together have the error rate `alpha`.

    When a share of the data has been collected, the probability of a false rejection in the analyses up to then is
    `alpha × share ** 2`. This is a spending function (Lan and DeMets 1983) of the power family (Kim and DeMets 1987).
    The data that an analysis adds must be independent of earlier data. The probabilities are computed by numerical
    integration (Armitage, McPherson and Rowe 1969).

    Args:
        shares: share of all planned data at each analysis, in rising order; the last share is 1.
        alpha: probability, 0..0.5, that any of the analyses rejects a true null hypothesis.

    Returns:
        one alpha for each share; `alpha` itself if there is a single share.
    """
    return list(_alphas(tuple(shares), alpha)) if len(shares) > 1 else [alpha]


@lru_cache(maxsize=256)
def _alphas(shares: tuple[float, ...], alpha: float) -> tuple[float, ...]:
    """Return the result of `alphas` for two or more shares."""
    # The sum of all data so far is a random walk that starts at 0 and has the share as its variance.
    sums, weights = np.zeros(1), np.ones(1)
    one_sided, previous = [], 0.0
    for share in shares:
        sd = math.sqrt(share - previous)
        bound = _critical_value(sums, weights, sd, alpha * (share**EXPONENT - previous**EXPONENT))
        one_sided.append(normal.upper_tail(bound / math.sqrt(share)))
        sums, weights = _distribution_below(bound, math.sqrt(share), sums, weights, sd)
        previous = share
    return tuple(one_sided)


def _critical_value(sums: Floats, weights: Floats, sd: float, spent: float) -> float:
    """Return the critical value of the next analysis, which the sum of the data exceeds with probability `spent`.

    Args:
        sums, weights: possible values of the sum at the previous analysis, and their probabilities.
        sd: standard deviation of the data that the next analysis adds.
        spent: probability that the sum exceeds the critical value although the null hypothesis holds.
    """
    # Deferred, as scipy.optimize takes a third of a second to import and few probes have interim analyses.
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def excess(bound: float) -> float:
        return float(weights @ ndtr((sums - bound) / sd)) - spent

    return float(brentq(excess, -_DEVIATIONS, _DEVIATIONS))


def _distribution_below(
    bound: float, total_sd: float, sums: Floats, weights: Floats, sd: float
) -> tuple[Floats, Floats]:
    """Return possible sums of the data at the next analysis, up to `bound`, and their probabilities.

    Args:
        bound: critical value of the next analysis.
        total_sd: standard deviation of the sum at the next analysis.
        sums, weights: possible values of the sum at the previous analysis, and their probabilities.
        sd: standard deviation of the data that the next analysis adds.
    """
    points = np.linspace(-_DEVIATIONS * total_sd, bound, _POINTS)
    density = np.exp(-(((points[:, None] - sums) / sd) ** 2) / 2) @ weights / (sd * math.sqrt(2 * math.pi))
    width = points[1] - points[0]
    density[[0, -1]] /= 2
    return points, density * width
