"""Gaps between groups in shares, and bounds of gaps and of standard deviations of means.

A share is hits over size. The share of a group of size 0 is not defined: it is NaN and left out. A gap is defined if at
least two groups have a share.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from pytest_fairness.stats.arrays import Floats, Ints
from pytest_fairness.stats.intervals import normal

NUMBERS_AT_ONCE = 2**22
"""Drawn numbers in memory at the same time."""


def shares(hits: Floats, sizes: Floats) -> Floats:
    """Return (..., groups) shares 0..1, hits over sizes; NaN for a size of 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(sizes > 0, hits / sizes, np.nan)
    return found


def gap(rates: Floats) -> Floats:
    """Return the (...) largest minus smallest of the defined (..., groups) rates; NaN for fewer than two.

    For the shares of positive answers this is the demographic parity difference.
    """
    with warnings.catch_warnings():
        # numpy warns of draws in which all rates are NaN; the result for these is NaN.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = np.nanmax(rates, axis=-1) - np.nanmin(rates, axis=-1)
    defined = np.count_nonzero(~np.isnan(rates), axis=-1)
    return np.where(defined >= 2, found, np.nan)


def odds_gap(rates: Floats) -> Floats:
    """Return the larger of two gaps, in true positive and in false positive rates (Hardt, Price and Srebro 2016).

    Args:
        rates: (..., 2 × groups), first the true positive rates of all groups, then their false positive rates.
    """
    groups = rates.shape[-1] // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found: Floats = np.nanmax(np.stack([gap(rates[..., :groups]), gap(rates[..., groups:])]), axis=0)
    return found


def largest_bounds(
    differences: Floats, errors: Floats, alpha: float, beta: float, degrees_of_freedom: float | None = None
) -> tuple[float, float]:
    """Return one-sided bounds of the largest of many absolute differences, from the bounds of each of them.

    The largest observed difference may be the one of many that chance made large, so that all differences share `alpha`
    (Bonferroni). For the upper bound no sharing is needed: the difference that is truly largest exceeds its own bound
    with probability `beta` at most.

    Args:
        differences: (pairs,) estimates; NaN for an undefined difference.
        errors: (pairs,) their standard errors.
        alpha: chance that the lower bound is above the truth; twice that for a true difference of 0, which may appear
            as a difference in either direction.
        beta: chance that the upper bound is below the truth.
        degrees_of_freedom: of the standard errors.
    """
    known = ~np.isnan(differences)
    sizes, own = np.abs(differences[known]), errors[known]
    lower = sizes - normal.quantile(1 - alpha / len(sizes), degrees_of_freedom) * own
    upper = sizes + normal.quantile(1 - beta, degrees_of_freedom) * own
    return max(0.0, float(lower.max())), float(upper.max())


def spread_bounds(
    means: Floats, covariance: Floats, alpha: float, beta: float, degrees_of_freedom: float
) -> tuple[float, float]:
    """Return one-sided bounds of the population standard deviation of means.

    The sum of squared deviations from the mean, divided by its scale, is approximately a noncentral chi-square variable
    (for unequal errors with the degrees of freedom of Satterthwaite 1946); the bounds invert its distribution in the
    noncentrality. For few units the scale is widened by the ratio of Student's to normal quantiles.

    Args:
        means: (values,) estimates.
        covariance: (values, values) of the estimates.
        alpha: chance that the lower bound is above the truth.
        beta: chance that the upper bound is below the truth.
        degrees_of_freedom: of the covariance.
    """
    from scipy.special import chndtr, chndtrinc

    values, spread = len(means), float(means.std())
    centring = np.eye(values) - 1 / values
    noise = centring @ covariance @ centring
    total = float(np.trace(noise))
    if total <= 0:
        return spread, spread
    freedom = total**2 / float((noise**2).sum())

    def bound(probability: float) -> float:
        tail = max(probability, 1 - probability)
        wider = (normal.quantile(tail, degrees_of_freedom) / normal.quantile(tail)) ** 2
        scale = wider * total / freedom
        ratio = values * spread**2 / scale
        if float(chndtr(ratio, freedom, 0.0)) <= probability:
            return 0.0
        return math.sqrt(scale * float(chndtrinc(ratio, freedom, probability)) / values)

    return bound(1 - alpha), max(bound(beta), spread)


def exchanged(numbers: Floats, cells: Ints, strata: Ints, count: int, random: np.random.Generator) -> Floats:
    """Return (count, cells) sums by cell with numbers permuted within strata: the null distribution of equal groups.

    Args:
        numbers: (units,) one number for each unit.
        cells: (units,) number of the unit's cell, from 0.
        strata: (units,) number of the unit's stratum.
        count: number of draws.
        random: the source of randomness.
    """
    member = np.zeros((len(cells), int(cells.max()) + 1))
    member[np.arange(len(cells)), cells] = 1.0
    indices = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    at_once = max(1, NUMBERS_AT_ONCE // len(numbers))
    parts = []
    for start in range(0, count, at_once):
        drawn = np.tile(numbers, (min(at_once, count - start), 1))
        for own in indices:
            drawn[:, own] = random.permuted(drawn[:, own], axis=1)
        parts.append(drawn @ member)
    return np.concatenate(parts)
