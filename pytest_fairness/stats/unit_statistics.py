"""Statistics of unit tables: shares of several groups, shares of answers, distances, quantiles and ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pytest_fairness.stats import gaps, intervals, resampling
from pytest_fairness.stats.gaps import (
    MEAN_DEVIATION,
    STANDARD_DEVIATION,
    evenness,
    largest_difference,
    mean_and_interval,
    mean_error,
    most_different,
    shares,
    value_sd,
)
from pytest_fairness.stats.resampling import Floats, Ints
from pytest_fairness.stats.unit_tables import SIGNS, TAIL, PairTest, Ratio, Sample, UnitStatistic

# Statistics of shares of several groups: rates, largest gap, impact ratio, and the test of each pair of groups.
#
# A row holds hits and sizes of one unit; the unit is a record, or a cluster of records that share one answer. The
# first half of the columns holds the hits of each cell (a rate of a group), and the second half holds the sizes. A
# rate is the sum of hits divided by the sum of sizes. A cell of size 0 has no rate and takes no part in anything.
#
# Every pair of groups is tested by itself, with the errors of its own rows: a group with few records is compared
# with large errors, and leaves the pairs of the other groups as they are.


@dataclass(frozen=True)
class Cell:
    """One rate of one group, from the hits and sizes of its units.

    Attributes:
        units: number of units that count for the rate.
        effective_size: number of independent answers that would give the rate the same precision; at most `size`.
    """

    hits: Floats
    sizes: Floats
    total_hits: float
    size: float
    units: int
    effective_size: float

    @classmethod
    def of(cls, rows: Floats, cell: int) -> Cell:
        """Return a cell of a table.

        The effective size divides the size by the design effect: the variance over units divided by the variance of
        independent answers. It is between 1 and the design effect of units whose answers are all equal, which also
        holds if all answers of the cell are equal.
        """
        hits, sizes = rows[:, cell], rows[:, rows.shape[1] // 2 + cell]
        total, size = float(hits.sum()), float(sizes.sum())
        if not size:
            return cls(hits, sizes, total, size, 0, 0.0)
        rate, largest = total / size, float((sizes**2).sum()) / size
        independent = size * rate * (1 - rate)
        effect = float(((hits - rate * sizes) ** 2).sum()) / independent if independent > 0 else largest
        return cls(hits, sizes, total, size, int((sizes > 0).sum()), size / min(max(effect, 1.0), max(largest, 1.0)))

    @property
    def rate(self) -> float:
        return self.total_hits / self.size

    @property
    def effective_hits(self) -> float:
        return self.rate * self.effective_size


def equal_rates_p(first: Cell, second: Cell) -> float:
    """Return the two-sided p-value of the score test of equal rates, with the errors of these two cells only.

    For units of size 1, the test statistic is that of the two-proportion z-test with pooled variance; for units that
    count in both cells, it is McNemar's. The null distribution has the skewness of the pooled answers (Pearson type
    III, as in Mielke and Berry 2007), so that the test also holds for a small group beside a large one. A larger unit
    counts as a cluster of equal answers.
    """
    pooled = (first.total_hits + second.total_hits) / (first.size + second.size)
    both = (first.sizes > 0) & (second.sizes > 0)
    variance = third_moment = 0.0
    residuals = [cell.hits - pooled * cell.sizes for cell in (first, second)]
    squares, cubes, units = 0.0, 0.0, 0
    for cell, residual in zip((first, second), residuals, strict=True):
        alone = ~both & (cell.sizes > 0)
        squares += float((residual[alone] ** 2).sum())
        cubes += float((residual[alone] ** 3).sum())
        units += int(alone.sum())
    if units > 1 and squares > 0:
        sizes = [cell.sizes[~both] for cell in (first, second)]
        of_size = squares / sum(float((own**2).sum()) for own in sizes) * units / (units - 1)
        cubed = cubes / sum(float((own**3).sum()) for own in sizes)
        for sign, cell, own in zip((1.0, -1.0), (first, second), sizes, strict=True):
            variance += of_size * float((own**2).sum()) / cell.size**2
            third_moment += sign * cubed * float((own**3).sum()) / cell.size**3
    shared = residuals[0][both] / first.size - residuals[1][both] / second.size
    variance += float((shared**2).sum())
    if variance <= 0:
        return 1.0
    z, skewness = abs(first.rate - second.rate) / math.sqrt(variance), third_moment / variance**1.5
    return min(1.0, resampling.gamma_tail(z, skewness) + resampling.gamma_tail(z, -skewness))


class ShareGap(UnitStatistic):
    """The largest gap between groups in a rate; if there are several rates, the rate with the largest gap counts.

    With true and false positive rates, the value is the equalized odds difference (Hardt, Price and Srebro 2016). Each
    half of the columns is ordered by rate, then by group.
    """

    tests_pairs = True

    def __init__(self, rates: int, groups: int) -> None:
        self.pairs = tuple(
            (rate * groups + first, rate * groups + second)
            for rate in range(rates)
            for first, second in combinations(range(groups), 2)
        )
        self.distance = largest_difference(self.pairs)

    def value(self, means: Floats) -> Floats:
        """Return the largest gap; NaN if fewer than two groups have a defined rate."""
        first, second = self.sides
        rates = self.groups(means)
        # Unlike `np.nanmax`, `np.fmax` does not warn of a row in which all rates are NaN.
        largest: Floats = np.fmax.reduce(np.abs(rates[..., first] - rates[..., second]), axis=-1)
        return largest

    def groups(self, means: Floats) -> Floats:
        """Return the (..., rates × groups) rates; NaN for a group of size 0."""
        cells = means.shape[-1] // 2
        return shares(means[..., :cells], means[..., cells:])

    def group_gradients(self, means: Floats) -> Floats:
        """Return the gradients of hits / size; 0 for a group of size 0."""
        cells = len(means) // 2
        hits, sizes = means[:cells], means[cells:]
        inverse = np.divide(1.0, sizes, out=np.zeros(cells), where=sizes > 0)
        return np.hstack([np.diag(inverse), np.diag(-hits * inverse**2)])

    def degrees_of_freedom(self, rows: Floats) -> float:
        """Return the number of units in the smaller of the two groups that differ most, minus 1; at least 1."""
        pair = most_different(ShareGap.groups(self, rows.mean(axis=0)), self.pairs)
        return max(1.0, min(Cell.of(rows, cell).units for cell in pair) - 1.0)

    def standard_error(self, sample: Sample) -> float:
        """Return the standard error over the units of the two groups that differ most."""
        pair = [*most_different(ShareGap.groups(self, sample.means), self.pairs)]
        cells = sample.rows.shape[1] // 2
        own = sample.rows[(sample.rows[:, [cells + cell for cell in pair]] > 0).any(axis=1)]
        influence = (own - sample.rows.mean(axis=0)) @ self.loss_gradient(sample.means)
        # The means are those of all units, of which `own` are the only ones that count.
        return mean_error(influence) * len(own) / len(sample.rows) or sample.least_error

    def compared_pairs(self, rows: Floats) -> list[tuple[tuple[int, int], Cell, Cell]]:
        """Return the pairs whose groups both have a rate, each with its two cells; the higher rate comes second."""
        cells = [Cell.of(rows, cell) for cell in range(rows.shape[1] // 2)]
        found = []
        for pair in self.pairs:
            if all(cells[cell].size for cell in pair):
                # Of two groups with the same rate, the smaller comes first, so that the groups' order has no effect.
                low, high = sorted(pair, key=lambda cell: (cells[cell].rate, cells[cell].size))
                found.append(((low, high), cells[low], cells[high]))
        return found

    def pair_tests(self, rows: Floats, random: np.random.Generator) -> list[PairTest]:
        return self.tests_of(self.compared_pairs(rows))

    def tests_of(self, pairs: Sequence[tuple[tuple[int, int], Cell, Cell]]) -> list[PairTest]:
        """Return `estimate` and the p-value of `equal_rates_p` of each pair; Holm's method adjusts the p-values."""
        adjusted = resampling.holm([equal_rates_p(first, second) for _, first, second in pairs])
        return [
            PairTest(*pair, *self.estimate(first, second), p_value)
            for (pair, first, second), p_value in zip(pairs, adjusted, strict=True)
        ]

    def estimate(self, first: Cell, second: Cell) -> tuple[float, tuple[float, float]]:
        """Return the difference of two rates, and its 95 % confidence interval (Newcombe 1998, method 10)."""
        return first.rate - second.rate, _newcombe(first, second, intervals.quantile(1 - TAIL))

    def reference_tests(self, sample: Sample, reference: int, others: Sequence[int]) -> list[PairTest]:
        """Return the comparison of each other group with the reference; only these comparisons are adjusted."""
        cells = {cell: Cell.of(sample.rows, cell) for cell in [reference, *others]}
        return self.tests_of([((other, reference), cells[other], cells[reference]) for other in others])

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        """Return one-sided bounds of the gap, from Newcombe's interval of each pair of groups (1998, method 10)."""
        pairs = self.compared_pairs(sample.rows)
        below, above = intervals.quantile(1 - alpha / len(pairs)), intervals.quantile(1 - beta)
        lower, upper = 0.0, 0.0
        for _, low, high in pairs:
            lower = max(lower, _newcombe(high, low, below)[0])
            upper = max(upper, _newcombe(high, low, above)[1])
        return lower, upper


def _newcombe(first: Cell, second: Cell, z: float) -> tuple[float, float]:
    return intervals.newcombe(
        first.effective_hits, first.effective_size, second.effective_hits, second.effective_size, z
    )


class ImpactRatio(ShareGap):
    """The lowest rate of a group divided by the highest, 0..1; a smaller ratio is worse.

    A group's number is its rate divided by the highest rate, so that the largest difference between two groups is 1
    minus the impact ratio.
    """

    def __init__(self, groups: int) -> None:
        super().__init__(1, groups)

    def value(self, means: Floats) -> Floats:
        """Return the impact ratio; NaN if fewer than two groups have a ratio."""
        return 1 - super().value(means)

    def groups(self, means: Floats) -> Floats:
        """Return the ratio of each group's rate to the highest rate; NaN without a rate, and if all rates are 0."""
        rates = super().groups(means)
        highest = np.max(np.nan_to_num(rates), axis=-1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.where(highest > 0, rates / np.where(highest > 0, highest, 1), np.nan)

    def group_gradients(self, means: Floats) -> Floats:
        rates, gradients = super().groups(means), super().group_gradients(means)
        highest = int(np.nanargmax(rates))
        own, other = gradients / rates[highest], np.outer(np.nan_to_num(rates), gradients[highest])
        return np.asarray(own - other / rates[highest] ** 2)

    def reference(self, numbers: Floats) -> int:
        return int(np.nanargmax(numbers))

    def pair_gaps(self, means: Floats, joint: Floats) -> Floats:
        """Return 1 minus the ratio of each pair; the group with the higher rate at `joint` is the denominator."""
        low, high = self._by_rate(joint)
        rates = super().groups(means)
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps: Floats = 1 - rates[..., low] / rates[..., high]
        return gaps

    def pair_gradients(self, joint: Floats) -> Floats:
        low, high = self._by_rate(joint)
        rates, gradients = np.nan_to_num(super().groups(joint)), super().group_gradients(joint)
        highest = np.where(rates[high] > 0, rates[high], 1.0)[:, None]
        return np.asarray(rates[low][:, None] * gradients[high] / highest**2 - gradients[low] / highest)

    def _by_rate(self, means: Floats) -> tuple[Ints, Ints]:
        first, second = self.sides
        rates = np.nan_to_num(super().groups(means))
        ordered = rates[first] <= rates[second]
        return np.where(ordered, first, second), np.where(ordered, second, first)

    def estimate(self, first: Cell, second: Cell) -> tuple[float, tuple[float, float]]:
        """Return the first rate divided by the second, and its 95 % confidence interval (Katz et al. 1978)."""
        ratio = first.rate / second.rate if second.total_hits else 1.0
        return ratio, intervals.ratio_interval(*log_ratio(first, second), intervals.quantile(1 - TAIL))

    def reference_tests(self, sample: Sample, reference: int, others: Sequence[int]) -> list[PairTest]:
        """Return the comparison of each other group's ratio with 1, the ratio of the reference.

        The p-values are those of `pair_tests`, which are adjusted for all pairs: the reference is the most selected
        group, which is known from the answers only.
        """
        tests = {frozenset((test.first, test.second)): test for test in self.tests_of(self.compared_pairs(sample.rows))}
        found = []
        for other in others:
            test = tests[frozenset((other, reference))]
            low, high = test.interval
            found.append(PairTest(other, reference, test.value - 1, (low - 1, high - 1), test.p_value))
        return found

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        """Return one-sided bounds of the loss, which is minus the impact ratio."""
        pairs = self.compared_pairs(sample.rows)
        below, above = intervals.quantile(1 - alpha / len(pairs)), intervals.quantile(1 - beta)
        lowest, highest = 1.0, 1.0
        for _, low, high in pairs:
            logarithm, error = log_ratio(low, high)
            lowest = min(lowest, math.exp(logarithm - above * error))
            highest = min(highest, math.exp(logarithm + below * error))
        return -highest, -lowest

    def interval(self, sample: Sample) -> tuple[float, float]:
        lower, upper = self.bounds(sample, TAIL, TAIL)
        return -upper, -lower


def log_ratio(cell: Cell, other: Cell) -> tuple[float, float]:
    """Return the logarithm of the ratio of two cells' rates, and its standard error over units.

    If each unit belongs to one cell and has one answer, the error is that of Katz et al. (1978). Otherwise, the error
    takes into account that a unit counts in both cells, that answers about one unit are averaged, and that a unit may
    be a cluster of records. See `intervals.log_ratio` for rates of 0 or 1.
    """
    counts = cell.effective_hits, cell.effective_size, other.effective_hits, other.effective_size
    if not (cell.total_hits and other.total_hits):
        return intervals.log_ratio(*counts)
    influence = [(each.hits - each.rate * each.sizes) / each.total_hits for each in (cell, other)]
    logarithm = math.log(cell.rate) - math.log(other.rate)
    error = math.sqrt(float(((influence[0] - influence[1]) ** 2).sum()))
    if error:
        return logarithm, error
    if (cell.sizes * other.sizes).any():
        # No unit has different answers as both groups; half a unit is added for each of the two ways to differ.
        return logarithm, 1 / math.sqrt(cell.effective_hits * other.effective_hits)
    return intervals.log_ratio(*counts)


# Statistics of shares of answers; a unit is a cluster, such as all answers to the questions of a template.
#
# A row holds sums over the answers of a unit. A share is a sum of hits divided by a sum of answers, so that each
# answer has the same weight; standard errors are taken over units.


class RightShare(Ratio):
    """The first column (right answers) divided by the second (all answers); a larger share is better."""

    def loss_gradient(self, means: Floats) -> Floats:
        return -super().loss_gradient(means)

    def change(self, current: Floats, baseline: Floats, moves: Floats) -> float:
        return float(self.value(baseline) - self.value(current))

    def standard_error(self, sample: Sample) -> float:
        """Return the standard error; one of at most `ROUNDING_OF_SUMS` counts as 0."""
        return _error_or_least(super().standard_error(sample), sample)

    def interval(self, sample: Sample) -> tuple[float, float]:
        low, high = super().interval(sample)
        return max(0.0, low), min(1.0, high)


class ShareDifferenceOfAnswers(UnitStatistic):
    """The difference between two shares of answers; a value further from 0 is worse.

    The columns are: hits of the first share, hits of the second share, answers of the first share, answers of the
    second share. Both shares may count the same answers.
    """

    pairs = ((0, 1),)
    distance = largest_difference(((0, 1),))

    def value(self, means: Floats) -> Floats:
        """Return the first share minus the second; NaN if a share has no answers."""
        shares = self.groups(means)
        difference: Floats = shares[..., 0] - shares[..., 1]
        return difference

    def groups(self, means: Floats) -> Floats:
        return gaps.shares(means[..., :2], means[..., 2:])

    def group_gradients(self, means: Floats) -> Floats:
        hits, sizes = means[:2], means[2:]
        return np.hstack([np.diag(1 / sizes), np.diag(-hits / sizes**2)])

    def group_names(self, columns: Sequence[str]) -> Sequence[str]:
        return columns[:2]

    def change(self, current: Floats, baseline: Floats, moves: Floats) -> float:
        """Return the change of the difference; a positive change is worse.

        The change has the sign of the mean of `moves`: it is positive if it goes in the direction of the difference in
        both runs together. If a share of one run has no answers, the change is this mean, a linear approximation.
        """
        exact = float(self.value(current) - self.value(baseline))
        if np.isnan(exact):
            return float(moves.mean())
        return math.copysign(exact, moves.mean())

    def standard_error(self, sample: Sample) -> float:
        """Return the standard error; one of at most `ROUNDING_OF_SUMS` counts as 0."""
        return _error_or_least(super().standard_error(sample), sample)

    def interval(self, sample: Sample) -> tuple[float, float]:
        low, high = super().interval(sample)
        return max(-1.0, low), min(1.0, high)


def _error_or_least(error: float, sample: Sample) -> float:
    return error if error > intervals.ROUNDING_OF_SUMS else sample.least_error


# Statistics that are distances among column means: largest gap, standard deviation, mean absolute deviation.


class LargestGap(UnitStatistic):
    """The largest difference between the column means of two groups.

    Columns are ordered by quantity (such as a quantile), then by group. Groups are compared by the same quantity only,
    and the quantity with the largest gap counts.
    """

    tests_pairs = True

    def __init__(self, columns: int, quantities: int = 1) -> None:
        groups = columns // quantities
        self.pairs = tuple(
            pair for start in range(0, columns, groups) for pair in combinations(range(start, start + groups), 2)
        )
        self.distance = largest_difference(self.pairs)

    def value(self, means: Floats) -> Floats:
        first, second = self.sides
        largest: Floats = np.abs(means[..., first] - means[..., second]).max(axis=-1)
        return largest

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        return gaps.largest_bounds(*self._differences(sample), alpha, beta, self.degrees_of_freedom(sample.rows))

    def pair_tests(
        self, rows: Floats, random: np.random.Generator, contributions: Floats | None = None
    ) -> list[PairTest]:
        """Return the difference of each pair, with Student's t interval and the p-value of `sign_flips`.

        The signs of the `contributions` of the units are flipped; by default, those of the rows.
        """
        first, second = self.sides
        differences, flipped = (
            each[:, first] - each[:, second] for each in (rows, rows if contributions is None else contributions)
        )
        p_values = resampling.sign_flips(flipped, SIGNS, random, two_sided=True)
        return [
            PairTest(*pair, *mean_and_interval(own), float(p_value))
            for pair, own, p_value in zip(self.pairs, differences.T, p_values, strict=True)
        ]

    def _differences(self, sample: Sample) -> tuple[Floats, Floats]:
        """Return the difference of each pair of groups, and its standard error; shape (pairs,)."""
        first, second = self.sides
        influence = (sample.rows - sample.rows.mean(axis=0)) @ self.group_gradients(sample.means).T
        errors = (influence[:, first] - influence[:, second]).std(axis=0, ddof=1) / math.sqrt(len(sample.rows))
        if not errors.any():
            errors = np.full(len(errors), sample.least_error)
        groups = self.groups(sample.means)
        return groups[first] - groups[second], errors


class SignedGap(LargestGap):
    """The difference between the two groups whose means differ most: the left column minus the right column."""

    def value(self, means: Floats) -> Floats:
        first, second = self.sides
        differences = means[..., first] - means[..., second]
        largest = np.abs(differences).argmax(axis=-1)[..., None]
        return np.asarray(np.take_along_axis(differences, largest, axis=-1)[..., 0])

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the 95 % confidence interval of the signed difference.

        For two columns, the interval is Student's t interval. For more columns, the end farther from 0 comes from
        `bounds`. The end nearer to 0 is the bound of the pair that is surest to differ, adjusted for the number of
        pairs (Bonferroni).
        """
        value, degrees = float(self.value(sample.means)), self.degrees_of_freedom(sample.rows)
        if len(self.pairs) == 1:
            return intervals.interval(value, self.standard_error(sample), degrees_of_freedom=degrees)
        differences, errors = self._differences(sample)
        lower = np.abs(differences) - intervals.quantile(1 - TAIL / len(self.pairs), degrees) * errors
        _, upper = self.bounds(sample, TAIL, TAIL)
        return (float(lower.max()), upper) if value >= 0 else (-upper, -float(lower.max()))


class SignedShareGap(SignedGap):
    """The signed difference between the two shares that differ most; see `SignedGap`."""

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the 95 % confidence interval; for two columns, the interval of `ShareDifference` (Agresti and Min)."""
        if len(self.pairs) == 1:
            return intervals.paired_interval(sample.rows[:, 0] - sample.rows[:, 1], intervals.quantile(1 - TAIL))
        return super().interval(sample)


class StandardDeviation(UnitStatistic):
    """The population standard deviation of the column means (SNSV)."""

    distance = STANDARD_DEVIATION

    def value(self, means: Floats) -> Floats:
        return value_sd(means)

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        covariance = np.cov(sample.rows.T) / len(sample.rows)
        return gaps.standard_deviation_bounds(sample.means, covariance, alpha, beta, len(sample.rows) - 1)


class Evenness(StandardDeviation):
    """1 minus the mean absolute deviation of the column means (PAFS); a smaller value is worse."""

    distance = MEAN_DEVIATION

    def value(self, means: Floats) -> Floats:
        return evenness(means)

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        """Return one-sided bounds of the loss, which is minus the evenness."""
        deviation = float(value_sd(sample.means))
        scale = (1 - float(evenness(sample.means))) / deviation if deviation else 1.0
        lower, upper = super().bounds(sample, alpha, beta)
        return scale * lower - 1, scale * upper - 1

    def interval(self, sample: Sample) -> tuple[float, float]:
        lower, upper = self.bounds(sample, TAIL, TAIL)
        return -upper, -lower


# Scores of records, for statistics that are means of scores: quantiles and mean ranks.
#
# The scores are linear approximations (empirical influence functions). The variance of the statistic is therefore
# estimated like that of a mean: as the sample variance of the scores, divided by the number of records.


def quantile_scores(numbers: Floats, quantile: float, observations: int | None = None) -> Floats:
    """Return scores whose mean is the Harrell-Davis estimate of a quantile; the jackknife gives the scores.

    The estimate of Harrell and Davis (1982) is a weighted mean of all sorted numbers, at least two. It changes
    gradually even if many numbers are equal, so that the jackknife is valid. Of numbers that are copies of fewer
    independent `observations` (at least two), the quantile is averaged more widely: it is that of few numbers.
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
    ordered = np.sort(sample)
    below, not_above = (np.searchsorted(ordered, numbers, side) for side in ("left", "right"))
    return np.asarray((below + not_above) / (2 * len(sample)))
