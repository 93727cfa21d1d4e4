"""Differences between two groups within strata, in one run and in two runs that are compared.

`marked` says which units (or documents) belong to the marked group; `strata` are their stratum numbers from 0, and
`cells` the numbers of their group within the stratum, all (units,). `weights` has the shape (strata,); a weight is 0 if
one group has no unit in the stratum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pytest_fairness.stats import resampling
from pytest_fairness.stats.resampling import Bools, Floats, Ints, RunCells, numbered

# Values of documents (a rate, a score) of two groups in strata, in one run and in two runs that are compared.


@dataclass(frozen=True)
class StratifiedValues:
    """One value for each document of a run; every stratum holds both groups.

    Attributes:
        least_error: lower limit of the gap's standard error, which would be 0 if all values were equal by chance.
    """

    values: Floats
    marked: Bools
    strata: Ints
    stratum_names: tuple[str, ...]
    least_error: float

    @cached_property
    def weights(self) -> Floats:
        return precision(*cell_sizes(self.marked, self.strata, int(self.strata.max()) + 1))

    @cached_property
    def coefficients(self) -> Floats:
        """Return the documents' coefficients in the gap; they add up to 1 (marked) and to −1 (unmarked)."""
        return coefficients(self.marked, self.strata, self.weights)

    def gap(self) -> float:
        # The smallest value is subtracted, so that equal values have a gap of exactly 0.
        return float(self.coefficients @ (self.values - self.values.min()))

    def p_value(self, random: np.random.Generator) -> float:
        """Return the two-sided p-value of the gap, with group labels permuted within strata."""
        null, exact = permuted_differences(
            self.values, self.marked, self.strata, self.weights, resampling.PERMUTATIONS, random
        )
        return resampling.p_value(np.abs(null), abs(self.gap()), exact=exact)

    def means(self) -> tuple[float, float]:
        """Return the mean value of the marked and of the unmarked group; their difference is the gap."""
        share = self.coefficients * self.values
        return float(share[self.marked].sum()), 0.0 - float(share[~self.marked].sum())

    def error(self, weights: Floats | None = None) -> tuple[float, float]:
        """Return the standard error of the gap, at least `least_error`, and its degrees of freedom."""
        error, degrees = difference_error(
            self.values, self.marked, self.strata, self.weights if weights is None else weights
        )
        return max(error, self.least_error), degrees


@dataclass(frozen=True)
class TwoRuns:
    """Documents of this run and of the baseline together; strata with the same name are one stratum.

    Attributes:
        strata: (documents,) stratum number, common to both runs; the current run's documents come first.
    """

    current: StratifiedValues
    baseline: StratifiedValues
    strata: Ints

    @classmethod
    def of(cls, current: StratifiedValues, baseline: StratifiedValues) -> TwoRuns:
        _, strata = numbered([run.stratum_names[number] for run in (current, baseline) for number in run.strata])
        return cls(current, baseline, strata)

    @cached_property
    def is_current(self) -> Bools:
        return np.repeat([True, False], [len(self.current.values), len(self.baseline.values)])

    @cached_property
    def sizes(self) -> Ints:
        """Return the number of documents of each run (current, baseline) and cell; shape (2, cells)."""
        number = 2 * (int(self.strata.max()) + 1)
        return np.stack([np.bincount(self.cells[run], minlength=number) for run in (self.is_current, ~self.is_current)])

    @cached_property
    def cells(self) -> Ints:
        """Return the number of each document's cell: even for an unmarked document, odd for a marked one."""
        marked: Bools = np.concatenate([self.current.marked, self.baseline.marked])
        return self.strata * 2 + marked

    @cached_property
    def weights(self) -> Floats:
        """Return the precision of the change of each stratum's difference; 0 if a run lacks a group in the stratum."""
        return precision(*self.sizes[:, 1::2], *self.sizes[:, ::2])

    def terms(self, sizes: Ints) -> Floats:
        """Return what each document adds to a gap whose means are over this number of documents of each cell."""
        share = self.weights / self.weights.sum()
        values = np.concatenate([self.current.values, self.baseline.values])
        sign = np.where(self.cells % 2, 1.0, -1.0)
        return np.asarray(sign * share[self.strata] / np.maximum(sizes, 1)[self.cells] * values)

    def gaps(self) -> tuple[float, float]:
        """Return the gap of the current run and the gap of the baseline, each from all documents of the run."""
        first, second = (float(self.terms(sizes)[run].sum()) for sizes, run in zip(self.sizes, self._runs, strict=True))
        return first, second

    def joint_gap(self) -> float:
        """Return the gap of all documents of both runs together, which does not depend on the run labels."""
        return float(self.terms(self.sizes.sum(axis=0)).sum())

    def gaps_after_swaps(self, count: int, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the gaps of both runs, each (count,), after random exchange of documents between the runs.

        The draws are the null distribution: they show which gaps occur if the runs do not differ. Documents are
        exchanged within cells; see `RunCells.swaps`.
        """
        cells = RunCells.of(self.is_current, self.cells, equal_size=False)
        # A sum over a run's documents of a cell has the weight min(sizes of both runs) / size of the run.
        first, second = cells.sums_after_swaps(self.terms(self.sizes.min(axis=0))[:, None], count, random)
        return first[:, 0], second[:, 0]

    def error(self) -> tuple[float, float]:
        """Return the standard error of the change of the gap, and its degrees of freedom."""
        runs = zip((self.current, self.baseline), self._runs, strict=True)
        errors = [replace(run, strata=self.strata[own]).error(self.weights) for run, own in runs]
        square = sum(error**2 for error, _ in errors)
        if square == 0:
            return 0.0, min(degrees for _, degrees in errors)
        return math.sqrt(square), 1 / sum((error**2 / square) ** 2 / degrees for error, degrees in errors)

    @property
    def _runs(self) -> tuple[Bools, Bools]:
        return self.is_current, ~self.is_current


# Weighted mean difference between two groups of units in strata: weights, standard error, resampling.

CHUNK = 2**22
"""Largest number of values in memory at the same time while resamples are summed."""


def precision(*counts: Ints | Floats) -> Floats:
    """Return the precision of each stratum: 1 / (1/n + 1/m + …), where n, m, … are the sizes of its cells.

    The precision is 0 if a cell is empty. The variance of a mean of n units is proportional to 1/n. With precisions as
    weights, a weighted mean of differences therefore has the smallest variance if all units vary equally.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(1 / sum(1 / np.asarray(count, dtype=np.float64) for count in counts))


def cell_sizes(marked: Bools, strata: Ints, number: int) -> tuple[Ints, Ints]:
    return (
        np.bincount(strata[marked], minlength=number).astype(np.int64),
        np.bincount(strata[~marked], minlength=number).astype(np.int64),
    )


def coefficients(marked: Bools, strata: Ints, weights: Floats) -> Floats:
    """Return the coefficient of each unit in the weighted mean difference; shape (units,).

    `coefficients @ values` is the weighted mean, over strata, of the marked units' mean minus the unmarked units' mean.
    The weights need not add up to 1.
    """
    first, second = cell_sizes(marked, strata, len(weights))
    share = weights / weights.sum()
    return np.asarray(np.where(marked, 1.0, -1.0) * (share[strata] / np.where(marked, first[strata], second[strata])))


def difference_error(values: Floats, marked: Bools, strata: Ints, weights: Floats) -> tuple[float, float]:
    """Return the standard error of the weighted mean difference, and its degrees of freedom.

    The standard error is Welch's within strata, with the degrees of freedom of Satterthwaite (1946). In a stratum in
    which a group has only one unit, the variance is unknown. The variance of all such strata is therefore estimated
    from the variation of the strata's differences, as for paired data. The standard error is 0 if no variation is
    observed.
    """
    share = weights / weights.sum()
    sizes = np.stack(cell_sizes(marked, strata, len(weights)), axis=1)
    cells = 2 * strata + ~marked
    means = np.bincount(cells, values, sizes.size) / np.maximum(sizes.ravel(), 1)
    squares = np.bincount(cells, (values - means[cells]) ** 2, sizes.size).reshape(sizes.shape)
    single = (weights > 0) & (sizes.min(axis=1) == 1)
    several = (weights > 0) & ~single
    free = sizes[several] - 1
    variances = share[several, None] ** 2 * squares[several] / free / sizes[several]
    parts: list[tuple[float, float]] = [*zip(variances.ravel().tolist(), free.ravel().tolist(), strict=True)]
    if single.any():
        size, apart = precision(*sizes[single].T), means.reshape(sizes.shape)[single] @ np.array([1.0, -1.0])
        if len(size) > 1:
            degrees = len(size) - 1
            squared = float(size @ (apart - size @ apart / size.sum()) ** 2)
        else:
            # The differences of a single stratum have no variation; the units of all strata are taken instead.
            degrees = max(1, len(values) - int(np.count_nonzero(sizes)))
            squared = float(squares.sum())
        parts.append((float((share[single] ** 2 / size).sum()) * squared / degrees, degrees))
    total = sum(part for part, _ in parts)
    if total <= 0:
        return 0.0, float(max(1, len(values) - 2 * int(np.count_nonzero(weights))))
    return math.sqrt(total), 1 / sum((part / total) ** 2 / degrees for part, degrees in parts)


def relabelled_sums(
    columns: Floats, marked: Bools, strata: Ints, count: int, random: np.random.Generator
) -> tuple[Floats, bool]:
    """Return (draws, columns) sums over the units labelled as marked, and whether the test is exact."""
    labels, exact = resampling.relabellings(marked, strata, count, random)
    rows = max(1, CHUNK // len(marked))
    return np.concatenate([labels[start : start + rows] @ columns for start in range(0, len(labels), rows)]), exact


def resampled_sums(columns: Floats, cells: Ints, count: int, random: np.random.Generator) -> Iterator[Floats]:
    """Yield the (draws, columns) column sums of bootstrap samples: units drawn with replacement within cells."""
    members = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
    rows = max(1, CHUNK // len(cells))
    for start in range(0, count, rows):
        size = min(rows, count - start)
        drawn = [own[random.integers(len(own), size=(size, len(own)))] for own in members]
        yield np.stack(
            [sum(column[places].sum(axis=1) for places in drawn) for column in columns.T], axis=1, dtype=np.float64
        )


def permuted_differences(
    values: Floats, marked: Bools, strata: Ints, weights: Floats, count: int, random: np.random.Generator
) -> tuple[Floats, bool]:
    """Return the difference for each permutation of labels within strata, and whether the test is exact."""
    first, second = cell_sizes(marked, strata, len(weights))
    share = weights / weights.sum()
    ours, others = (values * (share / sizes)[strata] for sizes in (first, second))
    # A marked unit adds `ours` to the difference, and an unmarked unit subtracts `others`.
    sums, exact = relabelled_sums((ours + others)[:, None], marked, strata, count, random)
    return sums[:, 0] - others.sum(), exact


# Odds ratio of a word between two groups, with documents (not words) as the independent units.


def odds_ratio(
    counts: Floats, marked: Bools, strata: Ints, draws: int, random: np.random.Generator
) -> tuple[float | None, list[float] | None, float | None]:
    """Return the odds ratio of the marked to the unmarked group, its 95 % interval and its two-sided p-value.

    `counts` says, for each document, how often the word occurs and how many other words it has. The interval comes from
    a bootstrap of documents within cells (a cell is a group within a stratum). The test permutes group labels within
    strata. A result is `None` if it is not defined, for example because a group has a count of 0.
    """
    sums = counts[marked].sum(axis=0), counts[~marked].sum(axis=0)
    observed = float(_log_ratio(sums[0][None], sums[1][None])[0])
    if not math.isfinite(observed):
        return None, None, None
    both = np.concatenate([counts * marked[:, None], counts * ~marked[:, None]], axis=1)
    resampled = resampled_sums(both, strata * 2 + marked, draws, random)
    drawn = np.concatenate([_log_ratio(sums[:, :2], sums[:, 2:]) for sums in resampled])
    low, high = (float(np.quantile(drawn, end, method="nearest")) for end in (0.025, 0.975))
    relabelled, exact = relabelled_sums(counts, marked, strata, draws, random)
    null = _log_ratio(relabelled, counts.sum(axis=0) - relabelled)
    tails = [resampling.p_value(side * null, side * observed, exact=exact) for side in (1, -1)]
    interval = [math.exp(low), math.exp(high)] if math.isfinite(low) and math.isfinite(high) else None
    return math.exp(observed), interval, min(1.0, 2 * min(tails))


def _log_ratio(first: Floats, second: Floats) -> Floats:
    """Return the log odds ratio of each draw, from the (draws, 2) sums of the two groups; not finite if a sum is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(first[:, 0] / first[:, 1]) - np.log(second[:, 0] / second[:, 1]))
