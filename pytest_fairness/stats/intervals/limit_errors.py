"""Error rates of a limit that separates acceptable from problematic cases by their scores.

A case is a labelled output, or a set of outputs with one label; it has one score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.stats.arrays import Bools, Floats
from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.intervals.proportions import wilson

FALSE_POSITIVES = 0.05
FALSE_NEGATIVES = 0.10
"""Rates of false positives and of false negatives below which a limit is good."""


@dataclass(frozen=True)
class Errors:
    """Error rates of one limit; a case whose score is above the limit raises an alarm.

    Attributes:
        limit: the limit, in the unit of the scores.
        false_positive: share of the acceptable cases that raise an alarm, 0..1.
        false_positive_interval: two-sided 95 % confidence interval of `false_positive` (Wilson 1927).
        missed: share of the problematic cases that raise no alarm, 0..1.
        missed_interval: two-sided 95 % confidence interval of `missed`.
    """

    limit: float
    false_positive: float
    false_positive_interval: tuple[float, float]
    missed: float
    missed_interval: tuple[float, float]

    @property
    def good(self) -> bool:
        """Return whether `false_positive` is below `FALSE_POSITIVES`, and `missed` is below `FALSE_NEGATIVES`."""
        return self.false_positive < FALSE_POSITIVES and self.missed < FALSE_NEGATIVES


def errors(scores: Floats, problematic: Bools, limit: float) -> Errors:
    """Return the error rates of one limit.

    Args:
        scores: (cases,) score of each case; larger is worse.
        problematic: (cases,) whether the case was labelled as problematic; at least one case must be problematic, and
            at least one acceptable.
        limit: cases with a score above the limit raise an alarm.
    """
    z = normal.quantile(0.975)
    acceptable, bad = int((~problematic).sum()), int(problematic.sum())
    alarms, misses = int((scores[~problematic] > limit).sum()), int((scores[problematic] <= limit).sum())
    return Errors(limit, alarms / acceptable, wilson(alarms, acceptable, z), misses / bad, wilson(misses, bad, z))


def curve(scores: Floats, problematic: Bools) -> list[Errors]:
    """Return the error rates of each limit that is half-way between two neighbouring scores, the lowest limit first.

    Every other limit between the lowest and the highest score has the error rates of one of these limits. If all scores
    are equal, the list is empty.

    Args:
        scores: (cases,) score of each case; larger is worse.
        problematic: (cases,) whether the case was labelled as problematic.
    """
    distinct = np.unique(scores)
    return [errors(scores, problematic, float(limit)) for limit in (distinct[1:] + distinct[:-1]) / 2]


def best(candidates: Sequence[Errors]) -> Errors | None:
    """Return the best good limit (see `Errors.good`); `None` if no limit is good.

    Each error rate is divided by the rate that is allowed (`FALSE_POSITIVES` or `FALSE_NEGATIVES`), which gives two
    quotients for each limit. The best limit is the limit whose larger quotient is smallest.
    """
    good = [rates for rates in candidates if rates.good]
    return min(
        good,
        key=lambda rates: max(rates.false_positive / FALSE_POSITIVES, rates.missed / FALSE_NEGATIVES),
        default=None,
    )
