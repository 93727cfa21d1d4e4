"""Balanced accuracy of a classifier of two groups: standard error, log-odds, and change between two runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.intervals.estimate import Estimate

SHRINKAGE = 0.4
"""Number of standard errors by which `floored_log_odds_error` moves the log-odds towards 0 (chance)."""
INTERVAL_Z = normal.quantile(0.975)


@dataclass(frozen=True)
class Accuracy:
    """An estimated balanced accuracy and its standard error.

    Attributes:
        value: mean of both groups' shares of correctly classified answers, 0..1; chance is 0.5.
        n: effective number of answers; see `effective_size`.
        standard_error: standard error of `value`.
    """

    value: float
    n: float
    standard_error: float

    @classmethod
    def of(cls, value: float, n: float, null_sd: float) -> Accuracy:
        """Return the accuracy with its estimated standard error.

        The standard error is that of a binomial share after adding one right and one wrong answer, multiplied by a
        factor for the variation between trained classifiers. The factor is at least 1. For an accuracy of 0.5,
        it raises the standard error to at least `null_sd`; towards accuracies of 0 and 1, it decreases to 1.

        Args:
            value: balanced accuracy, 0..1.
            n: effective number of answers; see `effective_size`.
            null_sd: standard deviation of the accuracy over labels permuted within strata.
        """
        shrunk = (value * n + 1) / (n + 2)
        at_chance = max(1.0, 2 * null_sd * math.sqrt(n))
        factor = 1 + (at_chance - 1) * 4 * shrunk * (1 - shrunk)
        return cls(value, n, factor * math.sqrt(shrunk * (1 - shrunk) / n))

    @property
    def interval(self) -> tuple[float, float]:
        """Return the two-sided 95 % confidence interval of the accuracy, 0..1, computed from its log-odds.

        The interval always includes `value`.
        """
        half = INTERVAL_Z * self.log_odds_error
        low, high = logistic(self.log_odds - half), logistic(self.log_odds + half)
        return min(low, self.value), max(high, self.value)

    @property
    def log_odds(self) -> float:
        """Return the log-odds of the accuracy; to make it finite, half a right and half a wrong answer are added."""
        return math.log((self.value * self.n + 0.5) / ((1 - self.value) * self.n + 0.5))

    @property
    def log_odds_error(self) -> float:
        """Return the standard error of `log_odds`, by the delta method."""
        shrunk = (self.value * self.n + 1) / (self.n + 2)
        return self.standard_error / (shrunk * (1 - shrunk))

    @property
    def floored_log_odds(self) -> float:
        """Return the log-odds of the accuracy, at least 0 (chance)."""
        return max(0.0, self.log_odds)

    @property
    def floored_log_odds_error(self) -> float:
        """Return the standard error of `floored_log_odds`, which is smaller than `log_odds_error` near chance."""
        error = self.log_odds_error
        return error * _floored_sd(max(0.0, self.log_odds / error - SHRINKAGE))


def effective_size(marked: int, unmarked: int) -> float:
    """Return the effective number of answers of two groups of different size.

    This is the total size of two equally large groups whose accuracy has the same standard error.
    """
    return 4 / (1 / marked + 1 / unmarked)


def logistic(log_odds: float) -> float:
    """Return the probability, 0..1, that has these log-odds."""
    return 1 / (1 + math.exp(-log_odds)) if log_odds > 0 else math.exp(log_odds) / (1 + math.exp(log_odds))


def accuracy_change(current: Accuracy, baseline: Accuracy) -> Estimate:
    """Return the change of the accuracy between two independent runs, computed from the change of its log-odds.

    The difference of the two runs' log-odds is converted back to an accuracy. The change is this accuracy minus 0.5,
    from −0.5 to 0.5. A run's accuracy below 0.5 (chance) counts as 0.5. The standard error comes from the delta method.
    """
    log_odds = current.floored_log_odds - baseline.floored_log_odds
    error = math.hypot(current.floored_log_odds_error, baseline.floored_log_odds_error)
    value = logistic(log_odds) - 0.5
    low, high = (logistic(log_odds + sign * INTERVAL_Z * error) - 0.5 for sign in (-1, 1))
    return Estimate(value, error * (0.25 - value**2), (low, high))


def _floored_sd(z: float) -> float:
    """Return the standard deviation of max(0, Z), where Z is normal with mean `z` and standard deviation 1."""
    above, density = 1 - normal.upper_tail(z), math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    mean = z * above + density
    return math.sqrt((z**2 + 1) * above + z * density - mean**2)
