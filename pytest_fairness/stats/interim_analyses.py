"""Group-sequential tests: alpha of each interim analysis of growing data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.intervals import normal

EXPONENT = 2.0
"""Exponent of the spending function; most of alpha is left for the last analyses."""
_DEVIATIONS = 8.0
_POINTS = 801


def alphas(shares: Sequence[float], alpha: float) -> list[float]:
    """Return the one-sided alpha of each interim analysis, such that all of them together reject with `alpha`.

    The spending function (Lan and DeMets 1983) is the power family of Kim and DeMets (1987): `alpha × share ** 2` may
    be spent up to an analysis. Successive analyses add independent data; the probabilities come from numerical
    integration (Armitage, McPherson and Rowe 1969).

    Args:
        shares: share of all planned data at each analysis; rising, the last one is 1.
        alpha: of all analyses together, 0..0.5.

    Returns:
        one alpha for each share; `alpha` itself for a single share.
    """
    return list(_alphas(tuple(shares), alpha)) if len(shares) > 1 else [alpha]


@lru_cache(maxsize=256)
def _alphas(shares: tuple[float, ...], alpha: float) -> tuple[float, ...]:
    # The sum over all data so far is a random walk that starts at 0 and has the share as its variance.
    places, weights = np.zeros(1), np.ones(1)
    found, before = [], 0.0
    for share in shares:
        spread = math.sqrt(share - before)
        bound = _bound(places, weights, spread, alpha * (share**EXPONENT - before**EXPONENT))
        found.append(normal.upper_tail(bound / math.sqrt(share)))
        places, weights = _below(bound, math.sqrt(share), places, weights, spread)
        before = share
    return tuple(found)


def _bound(places: Floats, weights: Floats, spread: float, spent: float) -> float:
    """Return the bound that walks from these places exceed at the next analysis with probability `spent`."""
    # Deferred, as scipy.optimize takes a third of a second to import and few probes grow.
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def excess(bound: float) -> float:
        return float(weights @ ndtr((places - bound) / spread)) - spent

    return float(brentq(excess, -_DEVIATIONS, _DEVIATIONS))


def _below(bound: float, deviation: float, places: Floats, weights: Floats, spread: float) -> tuple[Floats, Floats]:
    """Return points that walks reach without exceeding the bound, and the probability around each point."""
    points = np.linspace(-_DEVIATIONS * deviation, bound, _POINTS)
    density = np.exp(-(((points[:, None] - places) / spread) ** 2) / 2) @ weights / (spread * math.sqrt(2 * math.pi))
    width = points[1] - points[0]
    density[[0, -1]] /= 2
    return points, density * width
