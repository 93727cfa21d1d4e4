"""Balanced accuracies: their errors, their log-odds, and changes of them on a scale that has no ceiling."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_fairness.stats.intervals import normal

SHRINKAGE = 0.4
"""Standard errors by which log-odds are shrunk towards chance before the error of the floored ones is taken."""
INTERVAL_Z = normal.quantile(0.975)


@dataclass(frozen=True)
class Accuracy:
    """An estimated balanced accuracy.

    Attributes:
        value: 0..1, chance 0.5.
        n: number of answers of two equal groups with the same error; see `effective_size`.
        standard_error: of the value.
    """

    value: float
    n: float
    standard_error: float

    @classmethod
    def of(cls, value: float, n: float, null_sd: float) -> Accuracy:
        """Estimate the standard error.

        It is that of a binomial share with one right and one wrong answer added, times a factor, as each run trains
        another classifier. At chance the factor is known from permuted labels; towards 1 it shrinks to 1, as the errors
        that are left there are those of single answers.

        Args:
            value: the accuracy.
            n: as in the attributes.
            null_sd: standard deviation of the accuracy over labels permuted within strata.
        """
        shrunk = (value * n + 1) / (n + 2)
        at_chance = max(1.0, 2 * null_sd * math.sqrt(n))
        factor = 1 + (at_chance - 1) * 4 * shrunk * (1 - shrunk)
        return cls(value, n, factor * math.sqrt(shrunk * (1 - shrunk) / n))

    @property
    def interval(self) -> tuple[float, float]:
        """Return the two-sided 95 % interval, computed on the log-odds scale, within 0..1."""
        half = INTERVAL_Z * self.log_odds_error
        low, high = logistic(self.log_odds - half), logistic(self.log_odds + half)
        return min(low, self.value), max(high, self.value)

    @property
    def log_odds(self) -> float:
        """Return the log-odds of the value; half a right and half a wrong answer added keep them finite."""
        return math.log((self.value * self.n + 0.5) / ((1 - self.value) * self.n + 0.5))

    @property
    def log_odds_error(self) -> float:
        """Return the standard error of the log-odds, by the delta method."""
        shrunk = (self.value * self.n + 1) / (self.n + 2)
        return self.standard_error / (shrunk * (1 - shrunk))

    @property
    def above_chance(self) -> float:
        """Return the log-odds of the value, or 0 for a value below chance, which shows no more than chance does."""
        return max(0.0, self.log_odds)

    @property
    def above_chance_error(self) -> float:
        """Return the standard error of `above_chance`, which varies less than log-odds near 0 do."""
        error = self.log_odds_error
        return error * _floored_sd(max(0.0, self.log_odds / error - SHRINKAGE))


def effective_size(marked: int, unmarked: int) -> float:
    """Return how many answers of two equal groups give the same error as these: twice the harmonic mean."""
    return 4 / (1 / marked + 1 / unmarked)


def logistic(log_odds: float) -> float:
    """Return the probability with these log-odds."""
    return 1 / (1 + math.exp(-log_odds)) if log_odds > 0 else math.exp(log_odds) / (1 + math.exp(log_odds))


@dataclass(frozen=True)
class Change:
    """A change of accuracies, as the change of an accuracy of 0.5 that is as large on the log-odds scale.

    Attributes:
        value: −0.5..0.5, above 0 where the first accuracy is higher; accuracies below chance count as chance.
        standard_error: of the value, by the delta method.
        interval: two-sided 95 %, within −0.5..0.5.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, first: Accuracy, second: Accuracy) -> Change:
        """Compare the accuracies of two independent runs."""
        log_odds = first.above_chance - second.above_chance
        error = math.hypot(first.above_chance_error, second.above_chance_error)
        value = logistic(log_odds) - 0.5
        low, high = (logistic(log_odds + sign * INTERVAL_Z * error) - 0.5 for sign in (-1, 1))
        return cls(value, error * (0.25 - value**2), (low, high))


def _floored_sd(z: float) -> float:
    """Return the standard deviation of max(0, Z) for Z normal with mean z and standard deviation 1."""
    above, density = 1 - normal.upper_tail(z), math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    mean = z * above + density
    return math.sqrt((z**2 + 1) * above + z * density - mean**2)
