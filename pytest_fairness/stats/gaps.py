"""Gaps between groups in shares: how far the group furthest ahead is from the one furthest behind.

A share is hits over size. Where a group has no size its share is not defined: it is NaN and left out, and never taken
for 0. A gap is defined where at least two groups have a share.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats import normal

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DRAWS_AT_ONCE = 2**22


def shares(hits: Floats, sizes: Floats) -> Floats:
    """(..., groups) hits over sizes; NaN where a size is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(sizes > 0, hits / sizes, np.nan)
    return found


def gap(rates: Floats) -> Floats:
    """Largest minus smallest of (..., groups), of those that are defined; NaN where there are not two.

    Of the shares of positive answers it is the demographic parity difference.
    """
    with warnings.catch_warnings():
        # That all of some draw are NaN, which is what it is to give.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = np.nanmax(rates, axis=-1) - np.nanmin(rates, axis=-1)
    defined = np.count_nonzero(~np.isnan(rates), axis=-1)
    return np.where(defined >= 2, found, np.nan)


def odds_gap(rates: Floats) -> Floats:
    """The larger of two gaps: in true positive and in false positive rates (Hardt, Price and Srebro 2016).

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
    """One-sided bounds of the largest of many absolute differences, by the bounds of each of them.

    The largest difference that is seen is one of many that chance may have made large, so that all of them share
    `alpha` (Bonferroni). The upper bound needs no sharing: the difference that is truly largest is above its own bound
    with a chance of `beta` at most.

    Args:
        differences: (pairs,) estimates; NaN where one is not defined.
        errors: (pairs,) their standard errors.
        alpha: chance that the lower bound is above the truth; of a truth of 0, which may seem to be a difference in
            either direction, twice that.
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
    """One-sided bounds of the population standard deviation of means.

    The sum of squared deviations from the mean, divided by its scale, is about a noncentral chi-square variable (of
    unequal errors with Satterthwaite's degrees of freedom, 1946); the bounds invert its distribution in the
    noncentrality. Of few units the scale is widened as Student's quantiles are.

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
    """(count, cells) sums by cell, with the numbers exchanged among units of equal stratum: as if groups were alike.

    Args:
        numbers: (units,) one each.
        cells: (units,) the cell of each, from 0.
        strata: (units,) numbers are exchanged only between units of equal stratum.
        count: how many draws.
        random: the source of randomness.
    """
    member = np.zeros((len(cells), int(cells.max()) + 1))
    member[np.arange(len(cells)), cells] = 1.0
    indices = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    at_once = max(1, DRAWS_AT_ONCE // len(numbers))
    parts = []
    for start in range(0, count, at_once):
        drawn = np.tile(numbers, (min(at_once, count - start), 1))
        for own in indices:
            drawn[:, own] = random.permuted(drawn[:, own], axis=1)
        parts.append(drawn @ member)
    return np.concatenate(parts)
