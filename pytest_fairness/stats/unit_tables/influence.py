"""Scores of records, for statistics that are means of scores: quantiles and mean ranks.

The scores are linear approximations (empirical influence functions). The variance of the statistic is therefore
estimated like that of a mean: as the sample variance of the scores, divided by the number of records.
"""

from __future__ import annotations

import numpy as np

from pytest_fairness.stats.arrays import Floats


def quantile_scores(numbers: Floats, quantile: float, observations: int | None = None) -> Floats:
    """Return scores whose mean is the Harrell-Davis estimate of a quantile; the jackknife gives the scores.

    The estimate of Harrell and Davis (1982) is a weighted mean of all sorted numbers. It changes gradually even if many
    numbers are equal, so that the jackknife is valid.

    Args:
        numbers: (n,) one number for each record; at least two.
        quantile: probability of the quantile, above 0 and below 1.
        observations: number of independent observations among the numbers, at least two; `None` if all are independent.
            Fewer observations are averaged more widely: a quantile of many copies is that of few numbers.
    """
    n = len(numbers)
    left_out = 0 if observations is None else n - observations
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    estimate = float(_harrell_davis_weights(n, quantile, n - left_out) @ ordered)
    weights = _harrell_davis_weights(n - 1, quantile, n - 1 - left_out)
    # Without the number at position r, the numbers before r keep their weights, and those after r move down by one.
    below = np.concatenate([[0.0], np.cumsum(weights * ordered[:-1])])
    above = np.concatenate([np.cumsum((weights * ordered[1:])[::-1])[::-1], [0.0]])
    without = below + above
    scores = np.empty(n)
    scores[order] = estimate + (n - 1) * (without.mean() - without)
    return scores


def _harrell_davis_weights(n: int, quantile: float, observations: int) -> Floats:
    """Return the weights of `n` sorted numbers in the Harrell-Davis estimate of a quantile; their sum is 1."""
    # Deferred, as scipy is not needed to load a probe.
    from scipy.special import betainc

    bounds = betainc((observations + 1) * quantile, (observations + 1) * (1 - quantile), np.arange(n + 1) / n)
    return np.asarray(np.diff(bounds))


def rank_scores(rows: Floats) -> Floats:
    """Return scores whose column means are the groups' mean ranks, 0..1, in one ranking of all numbers.

    The rank of a number is the share of all numbers that are smaller, with equal numbers counted half: (midrank − 1/2)
    / (number of numbers). A group's mean rank is its relative effect (Brunner, Domhof and Langer 2002). A record's
    scores include the influence of the record's numbers on the ranks of the other records.

    Args:
        rows: (records, groups) numbers.
    """
    groups = rows.shape[1]
    shares = np.stack([_shares_below(rows[:, group], rows) for group in range(groups)])
    effects = shares.mean(axis=(0, 1))
    scores = np.empty_like(rows)
    for group in range(groups):
        others = 1 - shares[group]
        scores[:, group] = (shares[:, :, group].mean(axis=0) + others.mean(axis=1)) - effects[group]
    return scores


def _shares_below(sample: Floats, numbers: Floats) -> Floats:
    """Return the share of `sample` below each of `numbers`, plus half of the share that equals the number."""
    ordered = np.sort(sample)
    below, not_above = (np.searchsorted(ordered, numbers, side) for side in ("left", "right"))
    return np.asarray((below + not_above) / (2 * len(sample)))
