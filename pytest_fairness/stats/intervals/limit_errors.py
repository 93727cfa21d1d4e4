"""Error rates of limits on a score that shall separate acceptable from problematic cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.stats.arrays import Bools, Floats
from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.intervals.proportions import wilson

FALSE_POSITIVES = 0.05
MISSES = 0.10
"""Largest rate of misses, and above of false positives, of a good limit."""


@dataclass(frozen=True)
class Errors:
    """Error rates of a limit; a score above the limit is an alarm.

    Attributes:
        limit: the limit.
        false_positive: share of acceptable cases with an alarm, 0..1.
        false_positive_interval: two-sided 95 % (Wilson 1927).
        missed: share of problematic cases without an alarm, 0..1.
        missed_interval: two-sided 95 %.
    """

    limit: float
    false_positive: float
    false_positive_interval: tuple[float, float]
    missed: float
    missed_interval: tuple[float, float]

    @property
    def good(self) -> bool:
        """Return whether both rates are below those of a good limit."""
        return self.false_positive < FALSE_POSITIVES and self.missed < MISSES


def errors(scores: Floats, problematic: Bools, limit: float) -> Errors:
    """Return the error rates of one limit.

    Args:
        scores: (cases,) more is worse.
        problematic: (cases,) whether a case was labelled so; there are some of both kinds.
        limit: scores above it are alarms.
    """
    z = normal.quantile(0.975)
    acceptable, bad = int((~problematic).sum()), int(problematic.sum())
    alarms, misses = int((scores[~problematic] > limit).sum()), int((scores[problematic] <= limit).sum())
    return Errors(limit, alarms / acceptable, wilson(alarms, acceptable, z), misses / bad, wilson(misses, bad, z))


def curve(scores: Floats, problematic: Bools) -> list[Errors]:
    """Return the error rates of all limits with different results, from the lowest limit to the highest.

    Limits lie half-way between neighbouring scores; arguments as in `errors`.
    """
    found = np.unique(scores)
    return [errors(scores, problematic, float(limit)) for limit in (found[1:] + found[:-1]) / 2]


def best(candidates: Sequence[Errors]) -> Errors | None:
    """Return the good limit whose errors are furthest below those allowed; `None` if no limit is good."""
    good = [each for each in candidates if each.good]
    return min(good, key=lambda each: max(each.false_positive / FALSE_POSITIVES, each.missed / MISSES), default=None)
