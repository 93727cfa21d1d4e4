"""Statistics of shares of several groups: rates, largest gap, impact ratio, and the test of each pair of groups.

A row holds hits and sizes of one unit; the unit is a record, or a cluster of records that share one answer. The first
half of the columns holds the hits of each cell (a rate of a group), and the second half holds the sizes. A rate is the
sum of hits divided by the sum of sizes. A cell of size 0 has no rate and takes no part in anything.

Every pair of groups is tested by itself, with the errors of its own rows: a group with few records is compared with
large errors, and leaves the pairs of the other groups as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pytest_fairness.stats.arrays import Floats, Ints
from pytest_fairness.stats.groups.distance_measures import largest_difference, most_different
from pytest_fairness.stats.groups.gaps import shares
from pytest_fairness.stats.intervals import normal, proportions, ratios
from pytest_fairness.stats.intervals.mean_errors import mean_error
from pytest_fairness.stats.resampling import significance
from pytest_fairness.stats.unit_tables.statistic import TAIL, PairTest, Sample, UnitStatistic


@dataclass(frozen=True)
class Cell:
    """One rate of one group.

    Attributes:
        hits, sizes: (units,) hits and size of each unit.
        total_hits, size: their sums.
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
        """The sum of hits divided by the sum of sizes."""
        return self.total_hits / self.size

    @property
    def effective_hits(self) -> float:
        """The hits of a sample of the effective size with the same rate."""
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
    return min(1.0, significance.gamma_tail(z, skewness) + significance.gamma_tail(z, -skewness))


class ShareGap(UnitStatistic):
    """The largest gap between groups in a rate; if there are several rates, the rate with the largest gap counts.

    With true and false positive rates, the value is the equalized odds difference (Hardt, Price and Srebro 2016).

    Args:
        rates: number of rates; each half of the columns is ordered by rate, then by group.
        groups: number of groups.
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
        """Return the gap for each row of `means`; NaN if fewer than two groups have a defined rate."""
        first, second = self.sides
        rates = self.groups(means)
        # Unlike `np.nanmax`, `np.fmax` does not warn of a row in which all rates are NaN.
        largest: Floats = np.fmax.reduce(np.abs(rates[..., first] - rates[..., second]), axis=-1)
        return largest

    def groups(self, means: Floats) -> Floats:
        """Return the rate of each group, shape (..., rates × groups); NaN for a group of size 0."""
        cells = means.shape[-1] // 2
        return shares(means[..., :cells], means[..., cells:])

    def group_gradients(self, means: Floats) -> Floats:
        """Return the gradient of each group's rate, hits / size; 0 for a group of size 0."""
        cells = len(means) // 2
        hits, sizes = means[:cells], means[cells:]
        inverse = np.divide(1.0, sizes, out=np.zeros(cells), where=sizes > 0)
        return np.hstack([np.diag(inverse), np.diag(-hits * inverse**2)])

    def degrees_of_freedom(self, rows: Floats) -> float:
        """Return the number of units in the smaller one of the two groups that differ most, minus 1; at least 1."""
        pair = most_different(ShareGap.groups(self, rows.mean(axis=0)), self.pairs)
        return max(1.0, min(Cell.of(rows, cell).units for cell in pair) - 1.0)

    def standard_error(self, sample: Sample) -> float:
        """Return the standard error of the gap, from the units of the two groups that differ most."""
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
        """Return the number that compares each pair, with its interval and p-value; see `tests_of`."""
        return self.tests_of(self.compared_pairs(rows))

    def tests_of(self, pairs: Sequence[tuple[tuple[int, int], Cell, Cell]]) -> list[PairTest]:
        """Return `estimate` and the p-value of `equal_rates_p` of each pair; Holm's method adjusts the p-values."""
        adjusted = significance.holm([equal_rates_p(first, second) for _, first, second in pairs])
        return [
            PairTest(*pair, *self.estimate(first, second), p_value)
            for (pair, first, second), p_value in zip(pairs, adjusted, strict=True)
        ]

    def estimate(self, first: Cell, second: Cell) -> tuple[float, tuple[float, float]]:
        """Return the difference of two rates, and its 95 % confidence interval (Newcombe 1998, method 10)."""
        return first.rate - second.rate, _newcombe(first, second, normal.quantile(1 - TAIL))

    def reference_tests(self, sample: Sample, reference: int, others: Sequence[int]) -> list[PairTest]:
        """Return the comparison of each other group with the reference; only these comparisons are adjusted."""
        cells = {cell: Cell.of(sample.rows, cell) for cell in [reference, *others]}
        return self.tests_of([((other, reference), cells[other], cells[reference]) for other in others])

    def bounds(self, sample: Sample, alpha: float, beta: float) -> tuple[float, float]:
        """Return one-sided bounds of the gap, from Newcombe's interval of each pair of groups (1998, method 10).

        As in `gaps.largest_bounds`, each pair has an equal part of `alpha`, but the whole of `beta`.
        """
        pairs = self.compared_pairs(sample.rows)
        below, above = normal.quantile(1 - alpha / len(pairs)), normal.quantile(1 - beta)
        lower, upper = 0.0, 0.0
        for _, low, high in pairs:
            lower = max(lower, _newcombe(high, low, below)[0])
            upper = max(upper, _newcombe(high, low, above)[1])
        return lower, upper


def _newcombe(first: Cell, second: Cell, z: float) -> tuple[float, float]:
    return proportions.newcombe(
        first.effective_hits, first.effective_size, second.effective_hits, second.effective_size, z
    )


class ImpactRatio(ShareGap):
    """The lowest rate of a group divided by the highest, 0..1; a smaller ratio is worse.

    A group's number is its rate divided by the highest rate, so that the largest difference between two groups is
    1 minus the impact ratio.

    Args:
        groups: number of groups; the table has a column of hits for each group, and then a column of sizes for each.
    """

    def __init__(self, groups: int) -> None:
        super().__init__(1, groups)

    def value(self, means: Floats) -> Floats:
        """Return the impact ratio for each row of `means`; NaN if fewer than two groups have a ratio."""
        return 1 - super().value(means)

    def groups(self, means: Floats) -> Floats:
        """Return the ratio of each group's rate to the highest rate; NaN without a rate, and if all rates are 0."""
        rates = super().groups(means)
        highest = np.max(np.nan_to_num(rates), axis=-1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.where(highest > 0, rates / np.where(highest > 0, highest, 1), np.nan)

    def group_gradients(self, means: Floats) -> Floats:
        """Return the gradient of each group's ratio; 0 for the group with the highest rate."""
        rates, gradients = super().groups(means), super().group_gradients(means)
        highest = int(np.nanargmax(rates))
        own, other = gradients / rates[highest], np.outer(np.nan_to_num(rates), gradients[highest])
        return np.asarray(own - other / rates[highest] ** 2)

    def reference(self, numbers: Floats) -> int:
        """Return the index of the most selected group; see `UnitStatistic.reference`."""
        return int(np.nanargmax(numbers))

    def pair_gaps(self, means: Floats, joint: Floats) -> Floats:
        """Return 1 minus the ratio of each pair; the group with the higher rate at `joint` is the denominator."""
        low, high = self._by_rate(joint)
        rates = super().groups(means)
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps: Floats = 1 - rates[..., low] / rates[..., high]
        return gaps

    def pair_gradients(self, joint: Floats) -> Floats:
        """Return the gradient of each pair's gap at `joint`, shape (pairs, columns); see `pair_gaps`."""
        low, high = self._by_rate(joint)
        rates, gradients = np.nan_to_num(super().groups(joint)), super().group_gradients(joint)
        highest = np.where(rates[high] > 0, rates[high], 1.0)[:, None]
        return np.asarray(rates[low][:, None] * gradients[high] / highest**2 - gradients[low] / highest)

    def _by_rate(self, means: Floats) -> tuple[Ints, Ints]:
        """Return the groups of each pair: those with the lower rates, and those with the higher rates."""
        first, second = self.sides
        rates = np.nan_to_num(super().groups(means))
        ordered = rates[first] <= rates[second]
        return np.where(ordered, first, second), np.where(ordered, second, first)

    def estimate(self, first: Cell, second: Cell) -> tuple[float, tuple[float, float]]:
        """Return the first rate divided by the second, and its 95 % confidence interval (Katz et al. 1978)."""
        ratio = first.rate / second.rate if second.total_hits else 1.0
        return ratio, ratios.interval(*log_ratio(first, second), normal.quantile(1 - TAIL))

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
        """Return one-sided bounds of the loss, which is minus the impact ratio.

        The bounds come from the ratios of all pairs of groups. As in `gaps.largest_bounds`, each pair has an equal part
        of `alpha`, but the whole of `beta`.
        """
        pairs = self.compared_pairs(sample.rows)
        below, above = normal.quantile(1 - alpha / len(pairs)), normal.quantile(1 - beta)
        lowest, highest = 1.0, 1.0
        for _, low, high in pairs:
            logarithm, error = log_ratio(low, high)
            lowest = min(lowest, math.exp(logarithm - above * error))
            highest = min(highest, math.exp(logarithm + below * error))
        return -highest, -lowest

    def interval(self, sample: Sample) -> tuple[float, float]:
        """Return the two-sided 95 % confidence interval of the impact ratio; its upper end is at most 1."""
        lower, upper = self.bounds(sample, TAIL, TAIL)
        return -upper, -lower


def log_ratio(cell: Cell, other: Cell) -> tuple[float, float]:
    """Return the logarithm of the ratio of two cells' rates, and its standard error over units.

    If each unit belongs to one cell and has one answer, the error is that of Katz et al. (1978). Otherwise, the error
    takes into account that a unit counts in both cells, that answers about one unit are averaged, and that a unit may
    be a cluster of records. See `ratios.log_ratio` for rates of 0 or 1.

    Args:
        cell: a rate of a group.
        other: the rate by which it is divided.
    """
    counts = cell.effective_hits, cell.effective_size, other.effective_hits, other.effective_size
    if not (cell.total_hits and other.total_hits):
        return ratios.log_ratio(*counts)
    influence = [(each.hits - each.rate * each.sizes) / each.total_hits for each in (cell, other)]
    logarithm = math.log(cell.rate) - math.log(other.rate)
    error = math.sqrt(float(((influence[0] - influence[1]) ** 2).sum()))
    if error:
        return logarithm, error
    if (cell.sizes * other.sizes).any():
        # No unit has different answers as both groups; half a unit is added for each of the two ways to differ.
        return logarithm, 1 / math.sqrt(cell.effective_hits * other.effective_hits)
    return ratios.log_ratio(*counts)
