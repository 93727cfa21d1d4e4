"""Estimates with standard errors, confidence intervals, power, shares, ratios, and distances d'; without numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Confidence intervals, quantiles and minimum detectable effects of an estimate with a standard error.

POWER = 0.80
"""Probability with which a test detects the minimum detectable effect."""


ROUNDING = 1e-12
"""Two numbers that differ by at most this part of them, or by this number below 1, are equal up to rounding errors."""
ROUNDING_OF_SUMS = 1e-9
"""The same for sums and quotients of many numbers."""


def half_width(interval: Sequence[float | None] | None) -> float | None:
    """Return half the width of an interval, 0 for a rounding error; `None` without an interval or a limit."""
    low, high = interval or (None, None)
    if low is None or high is None:
        return None
    half = (high - low) / 2
    return 0.0 if half < ROUNDING * max(1.0, abs(low), abs(high)) else half


def quantile(probability: float, degrees_of_freedom: float | None = None) -> float:
    """Return the quantile of the standard normal distribution, or of Student's t with these degrees of freedom."""
    if degrees_of_freedom is None:
        return NormalDist().inv_cdf(probability)
    # Deferred, as scipy is not needed to load a probe.
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, probability))


def upper_tail(z: float) -> float:
    """Return the probability that a standard normal variable exceeds z."""
    return NormalDist().cdf(-z)


def two_sided_p(t: float, degrees_of_freedom: float) -> float:
    """Return the two-sided p-value of `t`, an estimate divided by its standard error, from Student's t distribution."""
    # Deferred, as scipy is not needed to load a probe.
    from scipy.special import stdtr

    return float(2 * stdtr(degrees_of_freedom, -abs(t)))


def p_value_of_second_test(p_value: float) -> float:
    """Return the p-value of a second test, beside that of the change or of the limit, from its two-sided p-value.

    The p-value is multiplied by 4. Only one side of the second test is a failure of its own, so that both tests
    together fail with a probability of at most 9/8 alpha under the null hypothesis.
    """
    return min(1.0, 4 * p_value)


def interval(
    value: float, standard_error: float, confidence: float = 0.95, degrees_of_freedom: float | None = None
) -> tuple[float, float]:
    """Return the two-sided interval of Student's t, or of the normal distribution without degrees of freedom."""
    half = quantile((1 + confidence) / 2, degrees_of_freedom) * standard_error
    return value - half, value + half


def minimum_detectable(
    standard_error: float,
    alpha: float,
    power: float = POWER,
    *,
    tolerance: float = 0.0,
    degrees_of_freedom: float | None = None,
) -> float:
    """Return the smallest true change that a run detects with probability `power`.

    A change is detected if its estimate exceeds the tolerance and is significant in a one-sided test at `alpha`. The
    result is therefore max(q(1 − alpha) × standard error, tolerance) + q(power) × standard error, where q is the
    quantile function.
    """
    to_alpha = quantile(1 - alpha, degrees_of_freedom) * standard_error
    return max(to_alpha, tolerance) + quantile(power, degrees_of_freedom) * standard_error


# An estimated value with its standard error and confidence interval.


@dataclass(frozen=True)
class Estimate:
    """An estimated value or change, with its standard error and two-sided 95 % confidence interval.

    The interval is that of Student's t with `degrees_of_freedom`, or of the normal distribution without.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    degrees_of_freedom: float | None = None

    @classmethod
    def of(cls, value: float, standard_error: float, degrees_of_freedom: float | None = None) -> Estimate:
        limits = interval(value, standard_error, degrees_of_freedom=degrees_of_freedom)
        return cls(value, standard_error, limits, degrees_of_freedom)

    @classmethod
    def difference(cls, first: Estimate, second: Estimate) -> Estimate:
        """Return the difference of independent estimates; the degrees of freedom are those of Welch (1947)."""
        error, own = math.hypot(first.standard_error, second.standard_error), first.degrees_of_freedom
        other, degrees = second.degrees_of_freedom, None
        if own and other and error:
            degrees = error**4 / (first.standard_error**4 / own + second.standard_error**4 / other)
        return cls.of(first.value - second.value, error, degrees)


# Confidence intervals of shares and of differences between shares, also for small samples.


def wilson(hits: float, n: float, z: float) -> tuple[float, float]:
    """Return Wilson's score interval of a share, 0..1 (Wilson 1927); (0, 1) for a sample of size 0.

    `scipy.stats.binomtest` gives the same interval, but only for whole numbers of hits. Averaged answers have fractions
    of hits.
    """
    if n == 0:
        return 0.0, 1.0
    share = hits / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def newcombe(hits: float, n: float, other_hits: float, other_n: float, z: float) -> tuple[float, float]:
    """Return the interval of a share minus another, independent share, −1..1 (Newcombe 1998, method 10)."""
    share, other = hits / n if n else 0.0, other_hits / other_n if other_n else 0.0
    low, high = wilson(hits, n, z)
    other_low, other_high = wilson(other_hits, other_n, z)
    return (
        share - other - math.hypot(share - low, other_high - other),
        share - other + math.hypot(high - share, other - other_low),
    )


def difference_error(hits: float, n: float, other_hits: float, other_n: float) -> float:
    """Return the standard error of a difference between two shares, after adding one hit and one miss to each sample.

    The method comes from Agresti and Caffo (2000). The standard error is above 0 even if neither sample has a hit.
    """

    def variance(count: float, size: float) -> float:
        share = (count + 1) / (size + 2)
        return share * (1 - share) / (size + 2)

    return math.sqrt(variance(hits, n) + variance(other_hits, other_n))


def least_difference_error(n: int) -> float:
    """Return `difference_error` for two samples of `n` units without any hit."""
    return difference_error(0, n, 0, n)


def paired_interval(differences: NDArray[np.float64], z: float) -> tuple[float, float]:
    """Return the interval of the difference between two shares of the same units, within −1..1 (Agresti and Min 2005).

    Each unit has a yes (1) or a no (0), or an average of several answers, for each of the two shares; `differences` are
    the first minus the second. Half a unit is added to the count of each of the four possible pairs, so that the
    interval is also valid if few units differ.
    """
    size = len(differences) + 2
    mean = float(differences.sum()) / size
    variance = (float((differences**2).sum()) + 1) / size - mean**2
    half = z * math.sqrt(variance / size)
    return max(-1.0, mean - half), min(1.0, mean + half)


# Ratio of two independent shares, with its confidence interval on the logarithmic scale.

HALF = 0.5
"""Number of hits, or of misses, that `log_ratio` adds to each sample."""


def log_ratio(hits: float, n: float, other_hits: float, other_n: float) -> tuple[float, float]:
    """Return the logarithm of the ratio of two independent shares, and its standard error (Katz et al. 1978).

    If a share is 0, half a hit is first added to each of the two samples, so that the results are finite (Walter 1975;
    Pettigrew, Gart and Thomas 1986). If both shares are 1, half a miss is added to each, so that the error is above 0.
    Averaged answers have fractions of hits.
    """
    if not hits or not other_hits:
        hits, n, other_hits, other_n = hits + HALF, n + HALF, other_hits + HALF, other_n + HALF
    elif hits == n and other_hits == other_n:
        n, other_n = n + HALF, other_n + HALF
    return (
        math.log(hits / n) - math.log(other_hits / other_n),
        math.sqrt(1 / hits - 1 / n + 1 / other_hits - 1 / other_n),
    )


def ratio_interval(logarithm: float, error: float, z: float) -> tuple[float, float]:
    return math.exp(logarithm - z * error), math.exp(logarithm + z * error)


# Distance d' between the scores of two groups, in standard deviations, and its change between two runs.
#
# d' (Green and Swets 1966, "Signal Detection Theory and Psychophysics") is the difference between the groups' mean
# scores, divided by the standard deviation within groups: Cohen's d of the scores. It has no largest value, so that
# two runs whose groups are nearly always told apart can still be compared. It is shown as the accuracy with which
# normal scores of this distance tell the groups apart, Φ(d' / 2).

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

        The first part is the variance if the groups do not differ, over labels permuted within strata; it includes the
        variation between trained classifiers, and is at least that of two means of independent units. The second part
        is the variance of the estimated standard deviation (Hedges and Olkin 1985, "Statistical Methods for
        Meta-Analysis").
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
        low, high = interval(self.d_prime, self.standard_error)
        error = self.standard_error * _NORMAL.pdf(self.d_prime / 2) / 2
        return Estimate(accuracy(self.d_prime), error, (accuracy(low), accuracy(high)))

    def bounds(self, limit: float, alpha: float, beta: float) -> dict[str, float]:
        """Return one-sided bounds, at `alpha` and `beta`, of the distance from an accuracy `limit`, added to `limit`.

        The distance is shown as in `separation_change`, so that it can be compared with a tolerance.
        """
        apart = self.d_prime - Separation.of_accuracy(limit, 0.0).d_prime
        low, high = (quantile(1 - error) * self.standard_error for error in (alpha, beta))
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
    low, high = (accuracy(bound) - 0.5 for bound in interval(change, error))
    return Estimate(accuracy(change) - 0.5, error * _NORMAL.pdf(change / 2) / 2, (low, high))
