"""Distance d' between the scores of two groups, in standard deviations, and its change between two runs.

d' (Green and Swets 1966, "Signal Detection Theory and Psychophysics") is the difference between the groups' mean
scores, divided by the standard deviation within groups: Cohen's d of the scores. It has no largest value, so that two
runs whose groups are nearly always told apart can still be compared. It is shown as the accuracy with which normal
scores of this distance tell the groups apart, Φ(d' / 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.intervals.estimate import Estimate

SHRINKAGE = 0.4
"""Number of standard errors by which `floored_error` moves d' towards 0."""
LARGEST_ACCURACY = 1 - 1e-12
"""Largest accuracy that is converted to a distance, of 14 standard deviations."""
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Separation:
    """An estimated distance d' between two groups, and its standard error, in standard deviations."""

    d_prime: float
    standard_error: float

    @classmethod
    def of(cls, d_prime: float, null_sd: float, marked: int, unmarked: int) -> Separation:
        """Return the distance with its standard error, √(null variance + d'² / 2n) for n units.

        The first part is the variance if the groups do not differ; it includes the variation between trained
        classifiers, and is at least that of two means of independent units. The second part is the variance of the
        estimated standard deviation (Hedges and Olkin 1985, "Statistical Methods for Meta-Analysis").

        Args:
            d_prime: the distance.
            null_sd: standard deviation of the distance over labels permuted within strata.
            marked, unmarked: number of units of each group.
        """
        variance = max(null_sd**2, 1 / marked + 1 / unmarked)
        return cls(d_prime, math.sqrt(variance + d_prime**2 / (2 * (marked + unmarked))))

    @classmethod
    def of_accuracy(cls, value: float, standard_error: float) -> Separation:
        """Return the distance that `estimate` shows as this accuracy and standard error."""
        d_prime = 2 * _NORMAL.inv_cdf(min(max(value, 1 - LARGEST_ACCURACY), LARGEST_ACCURACY))
        return cls(d_prime, 2 * standard_error / _NORMAL.pdf(d_prime / 2))

    @property
    def estimate(self) -> Estimate:
        """Return the accuracy, 0..1 (0.5: chance), with its standard error (delta method) and interval."""
        low, high = normal.interval(self.d_prime, self.standard_error)
        error = self.standard_error * _NORMAL.pdf(self.d_prime / 2) / 2
        return Estimate(accuracy(self.d_prime), error, (accuracy(low), accuracy(high)))

    def bounds(self, limit: float, alpha: float, beta: float) -> dict[str, float]:
        """Return one-sided bounds, at `alpha` and `beta`, of the distance from an accuracy `limit`, added to `limit`.

        The distance is shown as in `separation_change`, so that it can be compared with a tolerance.
        """
        apart = self.d_prime - Separation.of_accuracy(limit, 0.0).d_prime
        low, high = (normal.quantile(1 - error) * self.standard_error for error in (alpha, beta))
        return {"lower": limit + accuracy(apart - low) - 0.5, "upper": limit + accuracy(apart + high) - 0.5}

    @property
    def floored(self) -> float:
        """Return the distance, at least 0: classifiers that are worse than chance have learned nothing."""
        return max(0.0, self.d_prime)

    @property
    def floored_error(self) -> float:
        """Return the standard error of `floored`, which is smaller than `standard_error` near 0."""
        if not self.standard_error:
            return 0.0
        z = max(0.0, self.d_prime / self.standard_error - SHRINKAGE)
        above, density = _NORMAL.cdf(z), _NORMAL.pdf(z)
        mean = z * above + density
        return self.standard_error * math.sqrt((z**2 + 1) * above + z * density - mean**2)


def accuracy(d_prime: float) -> float:
    """Return the balanced accuracy with which normal scores of this distance tell two groups apart, 0..1."""
    return _NORMAL.cdf(d_prime / 2)


def separation_change(current: Separation, baseline: Separation) -> Estimate:
    """Return the change between two independent runs, shown as if the accuracy had been 0.5 in the baseline.

    The change of d' is converted to the accuracy of this distance, minus 0.5: from −0.5 to 0.5. Distances below 0 count
    as 0. The standard error comes from the delta method.
    """
    change = current.floored - baseline.floored
    error = math.hypot(current.floored_error, baseline.floored_error)
    low, high = (accuracy(bound) - 0.5 for bound in normal.interval(change, error))
    return Estimate(accuracy(change) - 0.5, error * _NORMAL.pdf(change / 2) / 2, (low, high))
