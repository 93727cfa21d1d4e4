"""Bounds, intervals and power of an estimate with a standard error."""

from __future__ import annotations

import math
from statistics import NormalDist

POWER = 0.80
"""Probability with which the minimum detectable effect is seen."""


def quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)


def upper_tail(z: float) -> float:
    """Probability that a standard normal variable exceeds z."""
    return NormalDist().cdf(-z)


def interval(value: float, standard_error: float, confidence: float = 0.95) -> tuple[float, float]:
    """Two-sided interval of an estimate."""
    half = quantile((1 + confidence) / 2) * standard_error
    return value - half, value + half


def minimum_detectable(standard_error: float, level: float, power: float = POWER) -> float:
    """Smallest true effect that a one-sided test at this level sees with this power: (z_level + z_power) × error."""
    return (quantile(1 - level) + quantile(power)) * standard_error


def times_more_units(minimum_detectable_now: float, wanted: float) -> float:
    """By which factor the number of units must grow so that the wanted effect becomes detectable; at least 1."""
    return max(1.0, (minimum_detectable_now / wanted) ** 2) if wanted > 0 else math.inf
