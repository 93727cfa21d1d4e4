"""Bounds, intervals and power of an estimate with a standard error."""

from __future__ import annotations

from statistics import NormalDist

POWER = 0.80
"""Probability with which the minimum detectable effect is detected."""


def quantile(probability: float, degrees_of_freedom: float | None = None) -> float:
    """Return the quantile of the standard normal distribution, or of Student's t with these degrees of freedom."""
    if degrees_of_freedom is None:
        return NormalDist().inv_cdf(probability)
    # Deferred, as scipy is not needed to load a probe.
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, probability))


def upper_tail(z: float) -> float:
    """Return the probability that a standard normal variable exceeds z."""
    return NormalDist().cdf(-z)


def interval(
    value: float, standard_error: float, confidence: float = 0.95, degrees_of_freedom: float | None = None
) -> tuple[float, float]:
    """Return the two-sided interval of an estimate."""
    half = quantile((1 + confidence) / 2, degrees_of_freedom) * standard_error
    return value - half, value + half


def minimum_detectable(
    standard_error: float,
    alpha: float,
    power: float = POWER,
    *,
    tolerance: float = 0.0,
    degrees_of_freedom: float | None = None,
) -> float:
    """Return the smallest true change that is found with this power.

    Found is a change whose estimate exceeds the tolerance and is significant in a one-sided test at `alpha`: the larger
    of (q(1 - alpha) + q(power)) and tolerance / error + q(power), times the standard error.
    """
    to_alpha = quantile(1 - alpha, degrees_of_freedom) * standard_error
    return max(to_alpha, tolerance) + quantile(power, degrees_of_freedom) * standard_error
