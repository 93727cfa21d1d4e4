"""Confidence intervals, quantiles and minimum detectable effects of an estimate with a standard error."""

from __future__ import annotations

from statistics import NormalDist

POWER = 0.80
"""Probability with which a test detects the minimum detectable effect."""


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


def two_sided_p(t: float, degrees_of_freedom: float) -> float:
    """Return the two-sided p-value of `t`, an estimate divided by its standard error, from Student's t distribution."""
    # Deferred, as scipy is not needed to load a probe.
    from scipy.special import stdtr

    return float(2 * stdtr(degrees_of_freedom, -abs(t)))


def interval(
    value: float, standard_error: float, confidence: float = 0.95, degrees_of_freedom: float | None = None
) -> tuple[float, float]:
    """Return the two-sided confidence interval of an estimate.

    The interval comes from Student's t distribution, or from the normal distribution if no degrees of freedom are
    given.
    """
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
    """Return the smallest true change that a run detects with probability `power`.

    A change is detected if its estimate exceeds the tolerance and is significant in a one-sided test at `alpha`. The
    result is therefore max(q(1 − alpha) × standard error, tolerance) + q(power) × standard error, where q is the
    quantile function.
    """
    to_alpha = quantile(1 - alpha, degrees_of_freedom) * standard_error
    return max(to_alpha, tolerance) + quantile(power, degrees_of_freedom) * standard_error
