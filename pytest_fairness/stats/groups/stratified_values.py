"""Values of documents (a rate, a score) of two groups in strata, in one run and in two runs that are compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pytest_fairness.stats.arrays import Bools, Floats, Ints, numbered
from pytest_fairness.stats.groups import stratified_difference
from pytest_fairness.stats.resampling import significance
from pytest_fairness.stats.resampling.relabelling import RunCells

PERMUTATIONS = 1999


@dataclass(frozen=True)
class StratifiedValues:
    """One value for each document of a run; every stratum holds both groups.

    Attributes:
        values: (documents,) value of each document.
        marked: (documents,) whether the document belongs to the marked group.
        strata: (documents,) stratum number of each document.
        stratum_names: name of each stratum, by its number.
        least_error: lower limit of the gap's standard error, which would be 0 if all values were equal by chance.
    """

    values: Floats
    marked: Bools
    strata: Ints
    stratum_names: tuple[str, ...]
    least_error: float

    @cached_property
    def weights(self) -> Floats:
        """Return the weight of each stratum's difference between the groups; shape (strata,)."""
        return stratified_difference.precision(
            *stratified_difference.cell_sizes(self.marked, self.strata, len(self.stratum_names))
        )

    @cached_property
    def coefficients(self) -> Floats:
        """Return the coefficient of each document in the mean difference within strata; shape (documents,).

        The coefficients of the marked group add up to 1, and the coefficients of the unmarked group to −1.
        """
        return stratified_difference.coefficients(self.marked, self.strata, self.weights)

    def gap(self) -> float:
        """Return the mean value of the marked group minus the mean value of the unmarked group, within strata."""
        # The smallest value is subtracted, so that equal values have a gap of exactly 0.
        return float(self.coefficients @ (self.values - self.values.min()))

    def p_value(self, random: np.random.Generator) -> float:
        """Return the two-sided p-value of the gap, with group labels permuted within strata."""
        null, exact = stratified_difference.permuted_differences(
            self.values, self.marked, self.strata, self.weights, PERMUTATIONS, random
        )
        return significance.p_value(np.abs(null), abs(self.gap()), exact=exact)

    def means(self) -> tuple[float, float]:
        """Return the mean value of the marked and of the unmarked group; their difference is the gap."""
        share = self.coefficients * self.values
        return float(share[self.marked].sum()), 0.0 - float(share[~self.marked].sum())

    def error(self, weights: Floats | None = None) -> tuple[float, float]:
        """Return the standard error of the gap, at least `least_error`, and its degrees of freedom.

        Args:
            weights: (strata,) weights; `None` for the run's own weights.
        """
        error, degrees = stratified_difference.difference_error(
            self.values, self.marked, self.strata, self.weights if weights is None else weights
        )
        return max(error, self.least_error), degrees


@dataclass(frozen=True)
class TwoRuns:
    """Documents of this run and of the baseline together; strata with the same name are one stratum.

    Attributes:
        current, baseline: documents of the two runs.
        strata: (documents,) stratum number, common to both runs; the current run's documents come first.
    """

    current: StratifiedValues
    baseline: StratifiedValues
    strata: Ints

    @classmethod
    def of(cls, current: StratifiedValues, baseline: StratifiedValues) -> TwoRuns:
        """Return the values of both runs together; strata with the same name get the same number."""
        _, strata = numbered([run.stratum_names[number] for run in (current, baseline) for number in run.strata])
        return cls(current, baseline, strata)

    @property
    def is_current(self) -> Bools:
        """Return whether each document belongs to the current run; shape (documents,)."""
        return np.repeat([True, False], [len(self.current.values), len(self.baseline.values)])

    @property
    def marked(self) -> Bools:
        """Return whether each document belongs to the marked group; shape (documents,)."""
        return np.concatenate([self.current.marked, self.baseline.marked])

    @cached_property
    def weights(self) -> Floats:
        """Return the weight of each stratum's difference, the same for both runs; shape (strata,).

        The weight is 0 if a run lacks a group in the stratum.
        """
        return stratified_difference.precision(*self._common_sizes)

    def gaps(self, cuts: int, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the gaps of both runs, each (cuts,), after random cuts of both runs to equal size in each cell.

        If the runs already have equal size in every cell, each result has a single gap.
        """
        first, second = self._run_cells.cuts(cuts, random)
        return self._sums(first), self._sums(second)

    def gaps_after_swaps(self, count: int, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the gaps of both runs, each (count,), after random exchange of documents between the runs.

        The draws are the null distribution: they show which gaps occur if the runs do not differ. Documents are
        exchanged within cells; see `RunCells.swaps`.
        """
        rows = max(1, stratified_difference.CHUNK // len(self.strata))
        parts = []
        for start in range(0, count, rows):
            runs = self._run_cells.swaps(min(rows, count - start), random)
            parts.append([self._sums(run) for run in runs])
        first, second = zip(*parts, strict=True)
        return np.concatenate(first), np.concatenate(second)

    def error(self) -> tuple[float, float]:
        """Return the standard error of the change of the gap, and its degrees of freedom."""
        runs = ((self.current, self.is_current), (self.baseline, ~self.is_current))
        errors = [replace(run, strata=self.strata[own]).error(self.weights) for run, own in runs]
        square = sum(error**2 for error, _ in errors)
        if square == 0:
            return 0.0, min(degrees for _, degrees in errors)
        return math.sqrt(square), 1 / sum((error**2 / square) ** 2 / degrees for error, degrees in errors)

    def _sums(self, selections: Bools) -> Floats:
        """Return the gap of one run for each draw, shape (draws,).

        Args:
            selections: (draws, documents) whether the draw assigns the document to this run.
        """
        # The product converts its masks to numbers of 64 bits.
        rows = max(1, stratified_difference.CHUNK // len(self.strata))
        parts = [selections[start : start + rows] for start in range(0, len(selections), rows)]
        return np.concatenate([part @ self._terms for part in parts])

    @cached_property
    def _run_cells(self) -> RunCells:
        return RunCells.of(self.is_current, self.strata * 2 + self.marked)

    @cached_property
    def _common_sizes(self) -> tuple[Ints, Ints]:
        """Return the numbers of marked and of unmarked documents to which both runs can be cut, each (strata,)."""
        number = int(self.strata.max()) + 1
        marked, current = self.marked, self.is_current
        runs = [stratified_difference.cell_sizes(marked[run], self.strata[run], number) for run in (current, ~current)]
        return np.minimum(runs[0][0], runs[1][0]), np.minimum(runs[0][1], runs[1][1])

    @cached_property
    def _terms(self) -> Floats:
        """Return each document's part in the gap of its run, shape (documents,).

        Both runs are reduced to the same number of documents of each group in each stratum; the part of a document is
        its part in a reduced run that contains it.
        """
        sizes = np.where(self.marked, *(size[self.strata] for size in self._common_sizes))
        share = self.weights / self.weights.sum()
        values = np.concatenate([self.current.values, self.baseline.values])
        return np.asarray(np.where(self.marked, 1.0, -1.0) * share[self.strata] / np.maximum(sizes, 1) * values)
