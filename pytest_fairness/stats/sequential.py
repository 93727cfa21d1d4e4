"""Several looks at growing data that err together no more often than one look would (group-sequential tests)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats import normal

Floats = NDArray[np.float64]

EXPONENT = 2.0
"""Of the spending function; most of the level is left for late looks, so that the last is nearly as sharp as one."""
_DEVIATIONS = 8.0
_POINTS = 801


def levels(shares: Sequence[float], level: float) -> list[float]:
    """One-sided level of the test at each look, such that all looks together reject with probability `level`.

    By each look may be spent what the power family of Kim and DeMets (1987) allows, `level × share ** 2`, as Lan and
    DeMets (1983) proposed. The looks' estimates are those of data that are added to, so that what is added does not
    depend on what was there; the probabilities come from numerical integration (Armitage, McPherson and Rowe 1969).

    Args:
        shares: of all data that there may be, at each look; rising, the last one is 1.
        level: of all looks together, 0..0.5.

    Returns:
        as many levels as there are shares; the level itself for a single one.
    """
    return list(_levels(tuple(shares), level)) if len(shares) > 1 else [level]


@lru_cache(maxsize=256)
def _levels(shares: tuple[float, ...], level: float) -> tuple[float, ...]:
    # The sum over all data so far is a random walk whose variance is the share; at first it stands at 0.
    places, weights = np.zeros(1), np.ones(1)
    found, before = [], 0.0
    for share in shares:
        spread = math.sqrt(share - before)
        bound = _bound(places, weights, spread, level * (share**EXPONENT - before**EXPONENT))
        found.append(normal.upper_tail(bound / math.sqrt(share)))
        places, weights = _below(bound, math.sqrt(share), places, weights, spread)
        before = share
    return tuple(found)


def _bound(places: Floats, weights: Floats, spread: float, spent: float) -> float:
    """What walks from these places exceed at their next look with probability `spent`."""
    # Deferred, as scipy.optimize takes a third of a second to import and few probes grow.
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def excess(bound: float) -> float:
        return float(weights @ ndtr((places - bound) / spread)) - spent

    return float(brentq(excess, -_DEVIATIONS, _DEVIATIONS))


def _below(bound: float, deviation: float, places: Floats, weights: Floats, spread: float) -> tuple[Floats, Floats]:
    """Where the walks that do not exceed the bound are then: points, and the probability around each of them."""
    points = np.linspace(-_DEVIATIONS * deviation, bound, _POINTS)
    density = np.exp(-(((points[:, None] - places) / spread) ** 2) / 2) @ weights / (spread * math.sqrt(2 * math.pi))
    width = points[1] - points[0]
    density[[0, -1]] /= 2
    return points, density * width
