"""Estimates from scores, with standard error, test and interval: the mean, and the gap between groups' means."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np

from pytest_fairness.audits.stereotypes.scores import Scores
from pytest_fairness.records import Json
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups import gaps
from pytest_fairness.stats.intervals import mean_errors, normal, proportions
from pytest_fairness.stats.resampling import randomness, significance
from pytest_fairness.stats.unit_tables.statistic import TAIL

PERMUTATIONS = 1999
"""Number of random draws of a permutation test."""


class ScoreEstimate(NamedTuple):
    """A value with its two-sided 95 % interval, its standard error, its p-value and details."""

    value: float
    interval: tuple[float, float]
    standard_error: float
    p_value: float | None
    details: Mapping[str, Json]


def mean_estimate(scores: Scores, added: float, neutral: float | None) -> ScoreEstimate:
    """Return the mean of the cases' mean scores.

    Args:
        scores: scores of the cases.
        added: how many zeros, and equally many ones, are added to a case's scores for the standard error of their
            mean; see `mean_errors.bounded_error`.
        neutral: mean score of a model without preference, the null hypothesis of the test; `None` to omit the test.
    """
    value, error = float(scores.means().mean()), scores.mean_error(added)
    shrunken = float(
        np.mean([mean_errors.shrunken_mean_and_error(scores.of_column(column), added)[0] for column in scores.columns])
    )
    size = mean_errors.effective_size(shrunken, error)
    return ScoreEstimate(
        value=value,
        interval=proportions.wilson(value * size, size, normal.quantile(1 - TAIL)),
        standard_error=error,
        p_value=None if neutral is None else normal.upper_tail((value - neutral) / error),
        details={"effective_size": size},
    )


def gap_estimate(scores: Scores, added: float | None, alpha: float, beta: float, seed: str) -> ScoreEstimate:
    """Return the largest gap between groups, tested by permutation of groups within case and stratum.

    Args:
        scores: scores of the cases and groups.
        added: how many zeros, and equally many ones, are added to a column's scores for the standard error of their
            mean; `None` for scores without bounds: nothing is added.
        alpha, beta: error rates of the lower and of the upper confidence bound in the details.
        seed: text that seeds the permutations.
    """
    column_means = scores.means()
    value = float(scores.gap(column_means))
    null = _permuted_gaps(scores, PERMUTATIONS, randomness.generator(f"{seed}/measure"))
    lower, upper = _gap_bounds(scores, added, alpha, beta)
    low, high = _gap_bounds(scores, added, TAIL, TAIL)
    return ScoreEstimate(
        value=value,
        interval=(low, high if added is None else min(1.0, high)),
        standard_error=scores.gap_error(added),
        p_value=significance.p_value(null, value, exact=False),
        details={
            "groups": dict(zip(scores.groups, scores.group_means(column_means).tolist(), strict=True)),
            "bounds": {"lower": lower, "upper": upper},
        },
    )


def _gap_bounds(scores: Scores, added: float | None, alpha: float, beta: float) -> tuple[float, float]:
    """Return the lower (at `alpha`) and the upper bound (at `beta`) of the largest gap; see `gaps.largest_bounds`."""
    by_group, groups = scores.group_errors(added), scores.group_means(scores.means())
    pairs = list(combinations(range(len(groups)), 2))
    errors = np.array([math.hypot(by_group[first], by_group[second]) for first, second in pairs])
    differences = np.array([groups[first] - groups[second] for first, second in pairs])
    return gaps.largest_bounds(differences, errors, alpha, beta)


def _permuted_gaps(scores: Scores, count: int, random: np.random.Generator) -> Floats:
    """Return the gap after each random permutation of groups within case and stratum; shape (count,)."""
    blocks: dict[tuple[str, str], list[int]] = {}
    for place, (number, stratum) in enumerate(zip(scores.column, scores.strata, strict=True)):
        blocks.setdefault((scores.columns[number][0], stratum), []).append(place)
    dealt = np.empty((count, len(scores.values)), dtype=np.int64)
    for places in blocks.values():
        dealt[:, places] = random.permuted(np.tile(scores.column[places], (count, 1)), axis=1)
    sums = np.stack([np.where(dealt == number, scores.values, 0).sum(axis=1) for number in range(len(scores.columns))])
    sizes = np.bincount(scores.column, minlength=len(scores.columns))
    return scores.gap((sums / sizes[:, None]).T)
