"""Rates of groups, and confidence bounds of gaps and of standard deviations."""

from __future__ import annotations

import math

import numpy as np

from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.intervals import normal


def shares(hits: Floats, sizes: Floats) -> Floats:
    """Return the rates hits / sizes, 0..1, shape (..., groups); NaN for a size of 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sizes > 0, hits / sizes, np.nan)


def largest_bounds(
    differences: Floats, errors: Floats, alpha: float, beta: float, degrees_of_freedom: float | None = None
) -> tuple[float, float]:
    """Return one-sided bounds of the largest absolute difference, computed from the bounds of each difference.

    The observed largest difference may be the largest by chance only. For the lower bound, all differences therefore
    share `alpha` (Bonferroni). For the upper bound, each difference has the whole of `beta`: the difference that is
    truly the largest exceeds its own bound with probability `beta` at most.

    Args:
        differences: (pairs,) estimated differences; NaN for an undefined difference.
        errors: (pairs,) standard error of each difference.
        alpha: probability that the lower bound is above the true value. The probability is 2 × `alpha` if the true
            difference is 0, because chance may produce a difference in either direction.
        beta: probability that the upper bound is below the true value.
        degrees_of_freedom: degrees of freedom of the standard errors; `None` for the normal distribution.
    """
    known = ~np.isnan(differences)
    sizes, own = np.abs(differences[known]), errors[known]
    lower = sizes - normal.quantile(1 - alpha / len(sizes), degrees_of_freedom) * own
    upper = sizes + normal.quantile(1 - beta, degrees_of_freedom) * own
    return max(0.0, float(lower.max())), float(upper.max())


def standard_deviation_bounds(
    means: Floats, covariance: Floats, alpha: float, beta: float, degrees_of_freedom: float
) -> tuple[float, float]:
    """Return one-sided bounds of the population standard deviation of several means.

    The sum of squared deviations from the mean has approximately a scaled noncentral chi-square distribution, with the
    degrees of freedom of Satterthwaite (1946). Each bound is the standard deviation for which the observed sum is a
    given quantile of this distribution: 1 − `alpha` for the lower bound, `beta` for the upper bound.

    Args:
        means: (values,) estimated means.
        covariance: (values, values) covariance of the estimates.
        alpha: probability that the lower bound is above the true value.
        beta: probability that the upper bound is below the true value.
        degrees_of_freedom: degrees of freedom of `covariance`.
    """
    from scipy.special import chndtr, chndtrinc

    values, deviation = len(means), float(means.std())
    centring = np.eye(values) - 1 / values
    noise = centring @ covariance @ centring
    total = float(np.trace(noise))
    if total <= 0:
        return deviation, deviation
    freedom = total**2 / float((noise**2).sum())

    def bound(probability: float) -> float:
        tail = max(probability, 1 - probability)
        # The bound is wider, because `covariance` is an estimate: Student's quantile replaces the normal quantile.
        wider = (normal.quantile(tail, degrees_of_freedom) / normal.quantile(tail)) ** 2
        scale = wider * total / freedom
        ratio = values * deviation**2 / scale
        if float(chndtr(ratio, freedom, 0.0)) <= probability:
            return 0.0
        return math.sqrt(scale * float(chndtrinc(ratio, freedom, probability)) / values)

    return bound(1 - alpha), max(bound(beta), deviation)
