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

    def gaps(self) -> tuple[float, float]:
        """Return the gap of the current run and the gap of the baseline, each from all documents of the run."""
        first, second = (float(self._sums(run[None])[0]) for run in (self.is_current, ~self.is_current))
        return first, second

    def joint_gap(self) -> float:
        """Return the gap of all documents of both runs together, which does not depend on the run labels."""
        return float(self._sums(np.ones((1, len(self.strata)), dtype=np.bool_))[0])

    def gaps_after_swaps(self, count: int, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the gaps of both runs, each (count,), after random exchange of documents between the runs.

        The draws are the null distribution: they show which gaps occur if the runs do not differ. Documents are
        exchanged within cells; see `RunCells.swaps`.
        """
        cells = RunCells.of(self.is_current, self.strata * 2 + self.marked, equal_size=False)
        rows = max(1, stratified_difference.CHUNK // len(self.strata))
        parts = [
            [self._sums(run) for run in cells.swaps(min(rows, count - start), random)]
            for start in range(0, count, rows)
        ]
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
            selections: (draws, documents) whether the draw assigns the document to this run. All draws assign equally
                many documents of each cell.
        """
        number = int(self.strata.max()) + 1
        sizes = stratified_difference.cell_sizes(self.marked[selections[0]], self.strata[selections[0]], number)
        own = np.where(self.marked, *(size[self.strata] for size in sizes))
        share = self.weights / self.weights.sum()
        values = np.concatenate([self.current.values, self.baseline.values])
        terms = np.where(self.marked, 1.0, -1.0) * share[self.strata] / np.maximum(own, 1) * values
        # The product converts its masks to numbers of 64 bits.
        rows = max(1, stratified_difference.CHUNK // len(self.strata))
        parts = [selections[start : start + rows] for start in range(0, len(selections), rows)]
        return np.concatenate([part @ terms for part in parts])

    @cached_property
    def weights(self) -> Floats:
        """Return the weight of each stratum's difference, the same for both runs; shape (strata,).

        The weight is the precision of the change of the difference; it is 0 if a run lacks a group in the stratum.
        """
        number = int(self.strata.max()) + 1
        runs = (self.is_current, ~self.is_current)
        sizes = [stratified_difference.cell_sizes(self.marked[run], self.strata[run], number) for run in runs]
        return stratified_difference.precision(*sizes[0], *sizes[1])
