"""Scores of answers by case and group, and what is computed from them: means, gaps, and runs laid side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats import cells, gaps, means, resampling, spreads

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Column = tuple[str, str]
"""Case and group; the group is empty where a case's groups are not told apart."""

SUBSAMPLES = 20
"""Cuts to equal size that are averaged where two runs hold different numbers of scores."""


@dataclass(frozen=True, slots=True)
class Score:
    """One answer's score, 0..1: whose it is, the stratum within which runs are swapped, and what was written."""

    column: Column
    stratum: str
    value: float
    text: str
    repeated: bool = False


@dataclass(frozen=True)
class Scores:
    """The scores of one run by column.

    Attributes:
        columns: the columns, sorted; all cases that have one have all of the groups.
        column: (n,) number of the score's column.
        values: (n,) the scores, 0..1.
        strata: the scores' strata.
    """

    columns: tuple[Column, ...]
    column: Ints
    values: Floats
    strata: tuple[str, ...]

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Scores:
        """Sorted, with the draws of a cell that repeats itself as a single one."""
        cells: dict[tuple[Column, str], list[Score]] = {}
        for score in sorted(scores, key=lambda score: (score.column, score.stratum, score.text, score.value)):
            cells.setdefault((score.column, score.stratum), []).append(score)
        single = {cell: _is_one(own) for cell, own in cells.items()}
        kept = [score for cell, own in cells.items() for score in (own[:1] if single[cell] else own)]
        columns = tuple(sorted({score.column for score in kept}))
        return cls(
            columns=columns,
            column=np.array([columns.index(score.column) for score in kept], dtype=np.int64),
            values=np.array([score.value for score in kept]),
            strata=tuple(score.stratum for score in kept),
        )

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases, sorted."""
        return tuple(dict.fromkeys(case for case, _ in self.columns))

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups, sorted."""
        return tuple(sorted({group for _, group in self.columns}))

    def of_cases(self, cases: Sequence[str]) -> Scores:
        """Those of some cases alone."""
        kept = [number for number, (case, _) in enumerate(self.columns) if case in cases]
        mask = np.isin(self.column, kept)
        numbers = {number: place for place, number in enumerate(kept)}
        return replace(
            self,
            columns=tuple(self.columns[number] for number in kept),
            column=np.array([numbers[int(number)] for number in self.column[mask]], dtype=np.int64),
            values=self.values[mask],
            strata=tuple(stratum for stratum, own in zip(self.strata, mask, strict=True) if own),
        )

    def own(self, column: Column) -> Floats:
        """The scores of one column."""
        return np.asarray(self.values[self.column == self.columns.index(column)])

    def grid(self, numbers: Floats) -> Floats:
        """Numbers by column, (..., columns), as (..., cases, groups)."""
        return numbers.reshape(*numbers.shape[:-1], len(self.cases), len(self.groups))

    def means(self) -> Floats:
        """(columns,) mean of each column."""
        return np.array([self.own(column).mean() for column in self.columns])

    def errors(self, added: float) -> Floats:
        """(columns,) standard error of each column's mean."""
        return np.array([means.standard_error(self.own(column), added) for column in self.columns])

    def shrunken_means(self, added: float) -> Floats:
        """(columns,) mean of each column, drawn towards 0.5; see `means.shrunken`."""
        return np.array([means.shrunken(self.own(column), added)[0] for column in self.columns])

    def mean_error(self, added: float) -> float:
        """Standard error of the mean of the columns' means; the columns are fixed."""
        errors = self.errors(added)
        return float(np.sqrt((errors**2).sum()) / len(errors))

    def group_means(self, column_means: Floats) -> Floats:
        """(..., groups) mean of the cases, each group's."""
        return np.asarray(self.grid(column_means).mean(axis=-2))

    def gap(self, column_means: Floats) -> Floats:
        """(...) largest minus smallest group mean."""
        return np.asarray(np.ptp(self.group_means(column_means), axis=-1))

    def group_errors(self, added: float) -> Floats:
        """(groups,) standard error of each group's mean."""
        return np.asarray(np.sqrt((self.grid(self.errors(added)) ** 2).sum(axis=0)) / len(self.cases))

    def gap_error(self, added: float) -> float:
        """Standard error of the gap: that of the difference between the two groups furthest apart."""
        by_group, groups = self.group_errors(added), self.group_means(self.means())
        return math.hypot(by_group[groups.argmax()], by_group[groups.argmin()])

    def gap_bounds(self, added: float, alpha: float, beta: float) -> tuple[float, float]:
        """One-sided bounds of the gap; see `gaps.largest_bounds`."""
        by_group, groups = self.group_errors(added), self.group_means(self.means())
        pairs = list(combinations(range(len(groups)), 2))
        errors = np.array([math.hypot(by_group[first], by_group[second]) for first, second in pairs])
        differences = np.array([groups[first] - groups[second] for first, second in pairs])
        return gaps.largest_bounds(differences, errors, alpha, beta)

    def gaps_by_chance(self, count: int, random: np.random.Generator) -> Floats:
        """(count,) gaps when groups are dealt at random within each case and stratum."""
        blocks: dict[tuple[str, str], list[int]] = {}
        for place, (number, stratum) in enumerate(zip(self.column, self.strata, strict=True)):
            blocks.setdefault((self.columns[number][0], stratum), []).append(place)
        dealt = np.empty((count, len(self.values)), dtype=np.int64)
        for places in blocks.values():
            dealt[:, places] = random.permuted(np.tile(self.column[places], (count, 1)), axis=1)
        sums = np.stack([np.where(dealt == number, self.values, 0).sum(axis=1) for number in range(len(self.columns))])
        sizes = np.bincount(self.column, minlength=len(self.columns))
        return self.gap((sums / sizes[:, None]).T)


@dataclass(frozen=True)
class TwoScores:
    """The scores of two runs with the same columns, in one array; the present run's come first."""

    like: Scores
    column: Ints
    values: Floats
    cells: Ints
    now: Bools

    @classmethod
    def of(cls, now: Scores, then: Scores) -> TwoScores:
        """Put the runs together; cells are matched by column and stratum."""
        column, strata = np.concatenate([now.column, then.column]), (*now.strata, *then.strata)
        names = sorted({*zip(column.tolist(), strata, strict=True)})
        numbers = {name: number for number, name in enumerate(names)}
        return cls(
            like=now,
            column=column,
            values=np.concatenate([now.values, then.values]),
            cells=np.array([numbers[cell] for cell in zip(column.tolist(), strata, strict=True)], dtype=np.int64),
            now=np.repeat([True, False], [len(now.values), len(then.values)]),
        )

    def as_observed(self, random: np.random.Generator) -> tuple[Floats, Floats]:
        """(cuts, columns) means of the present and of the earlier run at equal size."""
        first, second = resampling.equal_size(self.now, self.cells, SUBSAMPLES, random)
        return self._means(first), self._means(second)

    def swapped(self, count: int, random: np.random.Generator) -> tuple[Floats, Floats]:
        """(count, columns) means of two runs that differ by chance only."""
        first, second = resampling.run_swaps(self.now, self.cells, count, random)
        return self._means(first), self._means(second)

    def mean_change(self, now: Floats, then: Floats) -> Floats:
        """(...) change of the mean from (..., columns) means of both runs."""
        return np.asarray(now.mean(axis=-1) - then.mean(axis=-1))

    def mean_error(self) -> tuple[float, float | None]:
        """Standard error of the change of the mean, and its degrees of freedom; see `cells.change_error`."""
        number = len(self.like.columns)
        return self._error(np.full(number, 1 / number))

    def gap_error(self, weights: Floats) -> tuple[float, float | None]:
        """Standard error of the change of a weighted sum of the groups' means, and its degrees of freedom.

        Args:
            weights: (groups,) of the sum.
        """
        cases = len(self.like.cases)
        return self._error(np.tile(weights, cases) / cases)

    def _error(self, weights: Floats) -> tuple[float, float | None]:
        """Standard error of the change of a sum of (columns,) weight × mean, and its degrees of freedom."""
        runs = self.column * 2 + self.now
        shares = weights[self.column] / np.bincount(runs, minlength=2 * len(weights))[runs]
        return cells.change_error(self.values, self.now, self.cells, np.where(self.now, shares, -shares))

    def _means(self, selections: Bools) -> Floats:
        belongs = np.eye(len(self.like.columns))[self.column]
        sizes = selections.astype(np.float64) @ belongs
        sums = selections.astype(np.float64) @ (belongs * self.values[:, None])
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / sizes, dtype=np.float64)


@dataclass(frozen=True)
class GapChange:
    """By how much the largest gap between groups' means grew from one run to the other; see `stats.spreads`.

    Attributes:
        value, error, p_value: of the growth; one-sided.
        along, along_error: the change of the gap that both runs together show, and its standard error.
        degrees_of_freedom: of the errors.
        pattern: size of the gap that both runs together show.
        groups: (2, groups) means of the present and of the earlier run.
    """

    value: float
    error: float
    p_value: float
    along: float
    along_error: float
    degrees_of_freedom: float | None
    pattern: float
    groups: Floats

    @classmethod
    def of(
        cls,
        runs: TwoScores,
        observed: tuple[Floats, Floats],
        swapped: tuple[Floats, Floats],
        random: np.random.Generator,
    ) -> GapChange:
        """Compare two runs.

        Args:
            runs: their scores.
            observed: (cuts, columns) means of both runs as they are.
            swapped: (draws, columns) means of two runs that differ by chance only.
            random: for the standard error.
        """
        drawn = [runs.like.group_means(run) for run in observed]
        now, then = (run.mean(axis=0) for run in drawn)
        pattern, number = (now + then) / 2, len(now)
        spread = spreads.largest_difference(tuple(combinations(range(number), 2)))
        size, gradient = spread.signed(pattern), spread.gradient(pattern)
        along_error, degrees = runs.gap_error(gradient)
        error = along_error
        if number > 2:
            variances = [runs.gap_error(own)[0] ** 2 for own in np.eye(number)]
            error = spreads.growth_error(size, now, then, np.diag(variances), random)
        value = float(np.nanmean(size(drawn[0]) - size(drawn[1])))
        null = size(runs.like.group_means(swapped[0])) - size(runs.like.group_means(swapped[1]))
        return cls(
            value=value,
            error=error,
            p_value=resampling.p_value(null[~np.isnan(null)], value, exact=False),
            along=float((now - then) @ gradient),
            along_error=along_error,
            degrees_of_freedom=degrees,
            pattern=float(spread.size(pattern)),
            groups=np.array([now, then]),
        )


def _is_one(cell: Sequence[Score]) -> bool:
    """Whether all draws of a cell are one answer over and over."""
    return len(cell) > 1 and all(score.repeated for score in cell) and len({score.text for score in cell}) == 1
