"""Gaps and distances between groups' numbers, with their errors, tests, limits, and change between two runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats import intervals
from pytest_fairness.stats.intervals import difference_error, wilson
from pytest_fairness.stats.resampling import Bools, Floats, Ints

# Rates of groups, and confidence bounds of gaps and of standard deviations.


def shares(hits: Floats, sizes: Floats) -> Floats:
    """Return the rates hits / sizes, 0..1, shape (..., groups); NaN for a size of 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sizes > 0, hits / sizes, np.nan)


def largest_bounds(
    differences: Floats, errors: Floats, alpha: float, beta: float, degrees_of_freedom: float | None = None
) -> tuple[float, float]:
    """Return one-sided bounds of the largest absolute difference, computed from the bounds of each difference.

    The observed largest difference may be the largest by chance only. For the lower bound, all differences therefore
    share `alpha` (Bonferroni). For the upper bound, each difference has the whole of `beta`: the difference that is
    truly the largest exceeds its own bound with probability `beta` at most. The lower bound is above a true difference
    of 0 with probability 2 × `alpha`, because chance may produce a difference in either direction. An undefined
    difference is NaN.
    """
    known = ~np.isnan(differences)
    sizes, own = np.abs(differences[known]), errors[known]
    lower = sizes - intervals.quantile(1 - alpha / len(sizes), degrees_of_freedom) * own
    upper = sizes + intervals.quantile(1 - beta, degrees_of_freedom) * own
    return max(0.0, float(lower.max())), float(upper.max())


def standard_deviation_bounds(
    means: Floats, covariance: Floats, alpha: float, beta: float, degrees_of_freedom: float
) -> tuple[float, float]:
    """Return one-sided bounds of the population standard deviation of several means.

    The sum of squared deviations from the mean has approximately a scaled noncentral chi-square distribution, with the
    degrees of freedom of Satterthwaite (1946). Each bound is the standard deviation for which the observed sum is a
    given quantile of this distribution: 1 − `alpha` for the lower bound, `beta` for the upper bound.
    """
    from scipy.special import chndtr, chndtrinc

    values, deviation = len(means), float(means.std())
    centring = np.eye(values) - 1 / values
    noise = centring @ covariance @ centring
    total = float(np.trace(noise))
    if total <= 0:
        return deviation, deviation
    freedom = total**2 / float((noise**2).sum())

    def bound(probability: float) -> float:
        tail = max(probability, 1 - probability)
        # The bound is wider, because `covariance` is an estimate: Student's quantile replaces the normal quantile.
        wider = (intervals.quantile(tail, degrees_of_freedom) / intervals.quantile(tail)) ** 2
        scale = wider * total / freedom
        ratio = values * deviation**2 / scale
        if float(chndtr(ratio, freedom, 0.0)) <= probability:
            return 0.0
        return math.sqrt(scale * float(chndtrinc(ratio, freedom, probability)) / values)

    return bound(1 - alpha), max(bound(beta), deviation)


# Distances among several numbers, such as the means of groups, and the growth of a distance from one run to another.
#
# The largest gap, the standard deviation and the mean absolute deviation are never negative. They are above 0 by
# chance alone even if all groups are truly equal. In a baseline with equal groups, the distance is therefore too
# large, and its growth up to the current run is underestimated.
#
# A signed distance removes this bias. For two groups, the signed distance is the mean of one group minus the mean of
# the other, in the same order in both runs: first the group with the higher mean in both runs together.
# `DistanceMeasure.signed` generalises the signed distance to more groups: the groups' means, averaged over both
# runs, define the positive direction.

Pairs = Sequence[tuple[int, int]]
"""Index pairs of the groups that are compared."""

DRAWS = 4000
"""Number of random draws from which `growth_error` computes a standard error."""
CLEAR_ERRORS = 3.0
"""The direction of a gap counts as known if the sum of both runs' gaps is at least this number of standard errors of
the change."""


def value_range(means: Floats) -> Floats:
    """Return the largest minus the smallest of each row of (..., values) means: SNSR (Zhang et al. 2023)."""
    largest_gap: Floats = means.max(axis=-1) - means.min(axis=-1)
    return largest_gap


def value_sd(means: Floats) -> Floats:
    """Return the population standard deviation of each row of (..., values) means: SNSV (Zhang et al. 2023).

    The V stands for "variance" in the paper, but its formula is a standard deviation.
    """
    sd: Floats = means.std(axis=-1)
    return sd


def evenness(means: Floats) -> Floats:
    """Return 1 minus the mean absolute deviation of each row: PAFS (Sah et al. 2025), 0.5..1 for means in 0..1."""
    even: Floats = 1 - np.abs(means - means.mean(axis=-1, keepdims=True)).mean(axis=-1)
    return even


def _centred(means: Floats) -> Floats:
    """Return each mean minus the mean of all; equal means, which have no gradient, are treated as 1, 0, …, 0."""
    centred: Floats = means - means.mean()
    return centred if centred.any() else np.eye(len(means))[0] - 1 / len(means)


def _sd_gradient(means: Floats) -> Floats:
    centred = _centred(means)
    return np.asarray(centred / (math.sqrt(len(means)) * float(np.linalg.norm(centred))))


def _deviation_gradient(means: Floats) -> Floats:
    """Return the gradient of 1 − `evenness`."""
    signs = np.sign(_centred(means))
    return np.asarray((signs - signs.mean()) / len(means))


@dataclass(frozen=True)
class DistanceMeasure:
    """Distance measure for several numbers, one for each group, with its gradient.

    Attributes:
        size: function that returns the distance for each row of (..., groups) numbers. The distance is 0 if all numbers
            are equal; if all numbers are multiplied by c, the distance is multiplied by |c|.
        gradient: function that returns the (groups,) gradient of the distance at (groups,) numbers.
    """

    size: Callable[[Floats], Floats]
    gradient: Callable[[Floats], Floats]

    def signed(self, pattern: Floats) -> Callable[[Floats], Floats]:
        """Return a signed version of `size`, which is negative for numbers whose pattern is opposite to `pattern`.

        For two groups and a pattern whose first number is higher, (3, 1) has the distance 2, and (1, 3) has −2. For
        more groups, the numbers are split into a multiple of `pattern` and the rest. If the multiple is negative, its
        distance is subtracted from the distance of the rest.
        """
        gradient, distance = self.gradient(pattern), float(self.size(pattern))

        def size(numbers: Floats) -> Floats:
            along = np.minimum(np.nansum(numbers * gradient, axis=-1), 0.0)
            rest = numbers - along[..., None] * (pattern / distance) if distance else numbers
            return np.asarray(self.size(rest) + along)

        return size


def largest_difference(pairs: Pairs) -> DistanceMeasure:
    """Return the distance measure "largest absolute difference of any pair of groups"; pairs with NaN are left out."""
    first, second = (np.array(side) for side in zip(*pairs, strict=True))

    def size(numbers: Floats) -> Floats:
        return np.asarray(np.nanmax(np.abs(numbers[..., first] - numbers[..., second]), axis=-1))

    def gradient(numbers: Floats) -> Floats:
        high, low = most_different(numbers, pairs)
        signs = np.zeros(len(numbers))
        signs[high], signs[low] = 1.0, -1.0
        return signs

    return DistanceMeasure(size, gradient)


STANDARD_DEVIATION = DistanceMeasure(value_sd, _sd_gradient)
MEAN_DEVIATION = DistanceMeasure(lambda means: 1 - evenness(means), _deviation_gradient)


def most_different(numbers: Floats, pairs: Pairs) -> tuple[int, int]:
    """Return the indices of the two groups whose numbers differ most, higher first; the first pair if none differ."""
    differences = np.array([numbers[first] - numbers[second] for first, second in pairs])
    # Rounded, so that differences that are equal except for rounding errors are a tie; the first of a tie is taken.
    place = int(np.nanargmax(np.round(np.abs(differences), 12)))
    first, second = pairs[place]
    return (first, second) if differences[place] >= 0 else (second, first)


def direction_unknown(both_gaps: float, error: float) -> bool:
    """Return whether both runs' gaps add up to less than `CLEAR_ERRORS` standard errors of the gap's change."""
    return abs(both_gaps) < CLEAR_ERRORS * error


def growth_error(
    size: Callable[[Floats], Floats], current: Floats, baseline: Floats, covariance: Floats, random: np.random.Generator
) -> float:
    """Return the standard error of the change of a distance, size(current) − size(baseline).

    The standard error is the standard deviation over random draws: the means of each run are drawn from a normal
    distribution around the observed means. Half of the covariance of current − baseline is attributed to each run.
    """
    noise = random.multivariate_normal(np.zeros(len(current)), covariance / 2, size=(2, DRAWS), method="eigh")
    return float((size(current + noise[0]) - size(baseline + noise[1])).std())


# Standard errors of means; for scores in 0..1, also from few scores or from equal scores.


def mean_error(numbers: Floats) -> float:
    """Return the standard error of the mean of at least two numbers."""
    return float(numbers.std(ddof=1)) / math.sqrt(len(numbers))


def mean_and_interval(numbers: Floats) -> tuple[float, tuple[float, float]]:
    """Return the mean of at least two numbers, and its 95 % confidence interval (Student's t)."""
    mean = float(numbers.mean())
    return mean, intervals.interval(mean, mean_error(numbers), degrees_of_freedom=len(numbers) - 1)


def shrunken_mean_and_error(scores: Floats, added: float = 1.0) -> tuple[float, float]:
    """Return the mean of scores in 0..1 and its standard error, after adding `added` zeros and `added` ones.

    The method comes from Agresti and Coull (1998), who add two zeros and two ones for a 95 % interval of a share. The
    standard error is above 0 even if all scores are equal: twenty equal answers do not prove that the model always
    gives this answer.
    """
    n = len(scores) + 2 * added
    mean = (float(scores.sum()) + added) / n
    variance = (float((scores**2).sum()) + added) / n - mean**2
    return mean, math.sqrt(max(variance, 0.0) / n)


def bounded_error(scores: Floats, added: float = 1.0) -> float:
    """Return the standard error of the mean of scores in 0..1, at least the error of `shrunken_mean_and_error`."""
    plain = mean_error(scores) if len(scores) > 1 else 0.0
    return max(plain, shrunken_mean_and_error(scores, added)[1])


def sample_errors(samples: Sequence[Floats]) -> Floats:
    """Return the standard error of each sample's mean; shape (samples,). The numbers need not be in 0..1.

    A sample of one number gets the pooled variance of all samples. If only two different numbers occur, such as 0 and
    1, `bounded_error` is used, so that a sample of equal numbers does not have the error 0. If all numbers are equal,
    the errors are 0.
    """
    values = np.unique(np.concatenate(samples))
    if len(values) == 2:
        low, width = float(values[0]), float(np.ptp(values))
        return np.array([width * bounded_error((sample - low) / width, added=0.5) for sample in samples])
    squares = np.array([float(((sample - sample.mean()) ** 2).sum()) for sample in samples])
    sizes = np.array([len(sample) for sample in samples])
    pooled = float(squares.sum()) / max(1, int((sizes - 1).sum()))
    variances = np.where(sizes > 1, squares / np.maximum(1, sizes - 1), pooled)
    return np.asarray(np.sqrt(variances / sizes))


def effective_size(mean: float, error: float) -> float:
    """Return the number of independent yes-or-no answers whose mean, above 0 and below 1, has this standard error."""
    return mean * (1 - mean) / error**2


# Error rates of a limit that separates acceptable from problematic cases by their scores.
#
# A case is a labelled output, or a set of outputs with one label; it has one score.

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


def limit_errors(scores: Floats, problematic: Bools, limit: float) -> Errors:
    """Return the error rates of one limit; larger scores are worse, and both kinds of cases must occur."""
    z = intervals.quantile(0.975)
    acceptable, bad = int((~problematic).sum()), int(problematic.sum())
    alarms, misses = int((scores[~problematic] > limit).sum()), int((scores[problematic] <= limit).sum())
    return Errors(limit, alarms / acceptable, wilson(alarms, acceptable, z), misses / bad, wilson(misses, bad, z))


def error_curve(scores: Floats, problematic: Bools) -> list[Errors]:
    """Return the error rates of each limit that is half-way between two neighbouring scores, the lowest limit first.

    Every other limit between the lowest and the highest score has the error rates of one of these limits. If all scores
    are equal, the list is empty.
    """
    distinct = np.unique(scores)
    return [limit_errors(scores, problematic, float(limit)) for limit in (distinct[1:] + distinct[:-1]) / 2]


def best_limit(candidates: Sequence[Errors]) -> Errors | None:
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


# Fisher's exact test of two shares.
#
# `scipy.stats.fisher_exact` is not used here, because the import of scipy.stats takes half a second. A run that
# finds all its measurements in the store takes less time than that.

TIE = 1 + 1e-7
"""Relative tolerance within which two probabilities count as equal, as in R's `fisher.test`."""


def fisher_p_value(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Return the two-sided p-value of Fisher's exact test: do two groups have the same share of hits?

    The p-value is the total probability of all tables (with the same totals) that are at most as probable as the
    observed table. Each group has a number of hits and a number of misses.
    """
    size, other, hits = sum(first), sum(second), first[0] + second[0]
    fewest, most = max(0, hits - other), min(hits, size)
    mode = (size + 1) * (hits + 1) // (size + other + 2)

    def ratio(count: int) -> float:
        """Return P(first group has `count` + 1 hits) / P(first group has `count` hits), for the same totals."""
        return (size - count) * (hits - count) / ((count + 1) * (other - hits + count + 1))

    # Relative to the most probable table, so that no number overflows.
    above = accumulate(map(ratio, range(mode, most)), mul, initial=1.0)
    below = accumulate((1 / ratio(count) for count in range(mode - 1, fewest - 1, -1)), mul, initial=1.0)
    weights = dict(zip(range(mode, most + 1), above, strict=True))
    weights |= zip(range(mode, fewest - 1, -1), below, strict=True)
    observed = weights[first[0]] * TIE
    return math.fsum(weight for weight in weights.values() if weight <= observed) / math.fsum(weights.values())


# Association between the groups of rows and the values of a column, within strata.


@dataclass(frozen=True)
class Association:
    """Association between group and value.

    Attributes:
        p_value: p-value of the null hypothesis that the values are alike in all groups of each stratum.
        cramers_v: Cramér's V without its bias in small tables, from 0 (the values are alike) to 1 (the value tells the
            group).
    """

    p_value: float
    cramers_v: float


def association(counts: NDArray[np.float64]) -> Association:
    """Return the association of group and value, by the generalised Cochran-Mantel-Haenszel test.

    `counts` are the (strata, groups, values) numbers of rows. With a single stratum, the statistic is Pearson's
    chi-square times (n - 1) / n. The expected value of the statistic under the null hypothesis is subtracted before
    Cramér's V is computed (Bergsma 2013).
    """
    from scipy.special import chdtrc

    counts = counts[counts.sum(axis=(1, 2)) > 1]
    if not counts.size:
        return Association(1.0, 0.0)
    sizes = counts.sum(axis=(1, 2))
    groups, values = counts.sum(axis=2) / sizes[:, None], counts.sum(axis=1) / sizes[:, None]
    expected = np.einsum("s,sg,sv->sgv", sizes, groups, values)
    # One group and one value are redundant, as the totals are given.
    surplus = (counts - expected).sum(axis=0)[:-1, :-1].ravel()
    covariances = [
        np.eye(shares.shape[1] - 1) * shares[:, :-1, None] - shares[:, :-1, None] * shares[:, None, :-1]
        for shares in (groups, values)
    ]
    covariance = np.einsum("s,sij,skl->ikjl", sizes**2 / (sizes - 1), *covariances).reshape(2 * [len(surplus)])
    degrees = int(np.linalg.matrix_rank(covariance, hermitian=True)) if surplus.size else 0
    if not degrees:
        return Association(1.0, 0.0)
    statistic = float(surplus @ np.linalg.pinv(covariance, hermitian=True) @ surplus)
    largest = sizes.sum() * min(counts.shape[1] - 1, counts.shape[2] - 1)
    cramers_v = np.sqrt(max(0.0, statistic - degrees) / largest)
    return Association(float(chdtrc(degrees, statistic)), min(1.0, float(cramers_v)))


# Change of the gap between two groups' shares of hits from the baseline to the current run.

FEW = 5
"""If a group has fewer hits, or fewer misses, than this, `change_error` may be too small; see `ShareChange.error`."""


@dataclass(frozen=True)
class ShareChange:
    """Hits and misses of two groups in two runs, and the change of the gap between the groups.

    The gap is one group's share of hits minus the other group's share. The first of these groups is the group with the
    larger share in both runs together. Both runs have the same cells.

    Attributes:
        hits: (answers,) 1 for a hit, else 0.
        marked: (answers,) whether the answer belongs to the marked group.
        current: (answers,) whether the answer belongs to the current run.
        cells: (answers,) number of the answer's cell (group within stratum); the same cell has the same number in both
            runs.
    """

    hits: Floats
    marked: Bools
    current: Bools
    cells: Ints

    @property
    def side(self) -> float:
        """Return −1 if the marked group has the smaller share of hits in both runs together, else 1.

        It does not depend on the run labels.
        """
        return -1.0 if self.hits[self.marked].mean() < self.hits[~self.marked].mean() else 1.0

    @property
    def coefficients(self) -> Floats:
        """Return the weight of each answer; the change of the gap is `coefficients @ hits`."""
        groups = self.marked * 2 + self.current
        share = 1 / np.bincount(groups, minlength=4)[groups]
        return np.asarray(self.side * np.where(self.marked == self.current, share, -share))

    @property
    def error(self) -> tuple[float, float | None]:
        """Return the standard error of the change, and its degrees of freedom; see `change_error`.

        If a group has fewer than `FEW` hits or misses in both runs together, the standard error is at least that of two
        independent runs (`difference_error`), and the degrees of freedom are `None`.
        """
        error, degrees = change_error(self.hits, self.current, self.cells, self.coefficients)
        if np.bincount(self.marked * 2 + (self.hits > 0), minlength=4).min() >= FEW:
            return error, degrees
        gap_errors = []
        for run in (self.current, ~self.current):
            first, second = self.hits[run & self.marked], self.hits[run & ~self.marked]
            gap_errors.append(difference_error(first.sum(), len(first), second.sum(), len(second)))
        return max(error, math.hypot(*gap_errors)), None

    def permuted_changes(self, count: int, random: np.random.Generator) -> Floats:
        """Return (count,) changes after random permutation of run labels within cells: the null distribution."""
        coefficients, changes = self.coefficients, np.zeros(count)
        for cell in np.unique(self.cells):
            own = self.cells == cell
            hits, current = int(self.hits[own].sum()), int((own & self.current).sum())
            first, second = (
                coefficients[own & run].max(initial=0.0) + coefficients[own & run].min(initial=0.0)
                for run in (self.current, ~self.current)
            )
            drawn = random.hypergeometric(hits, int(own.sum()) - hits, current, size=count)
            changes += drawn * first + (hits - drawn) * second
        return changes


# Standard error of the change of a weighted sum between two runs, from the variances within cells.
#
# A cell is a group within a stratum.


def change_error(values: Floats, current: Bools, cells: Ints, coefficients: Floats) -> tuple[float, float | None]:
    """Return the standard error of sum(coefficients × values), for values that vary by chance within cells.

    Differences between cells do not add to the error: a question that is always refused has the variance 0. The
    variance of a cell is pooled over both runs. If a cell has only one value in each run, the variance is half the
    squared difference of the two values: an unbiased estimate if nothing changed. Within a cell, the coefficients of
    one run are positive, and those of the other run are negative; 0 leaves a value out.

    The second result is the degrees of freedom (Satterthwaite 1946). The results are 0 and `None` if the variances of
    all cells are 0.
    """
    groups = cells * 2 + current
    sizes = np.bincount(groups, minlength=2 * (int(cells.max()) + 1)).astype(np.float64)
    centres = np.bincount(groups, values, len(sizes)) / np.maximum(sizes, 1)
    squares = np.bincount(cells, (values - centres[groups]) ** 2)
    pairs = sizes.reshape(-1, 2)
    degrees = np.maximum(pairs - 1, 0).sum(axis=1)
    single = (pairs == 1).all(axis=1)
    between = np.diff(centres.reshape(-1, 2), axis=1)[:, 0] ** 2 / 2
    squares, degrees = np.where(single, between, squares), np.where(single, 1.0, degrees)
    variances = squares / np.maximum(degrees, 1) * np.bincount(cells, coefficients**2)
    total = float(variances.sum())
    if total <= 0:
        return 0.0, None
    return float(np.sqrt(total)), total**2 / float((variances**2 / np.maximum(degrees, 1)).sum())
