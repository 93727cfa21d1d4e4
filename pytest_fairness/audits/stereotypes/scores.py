"""Scores of answers by case and group, with their means and gaps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pytest_fairness.stats.arrays import Floats, Ints
from pytest_fairness.stats.intervals import mean_errors

Column = tuple[str, str]
"""Case and group; the group is empty if the answers of a case are not split by group."""


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one answer.

    Attributes:
        column: case and group of the answer.
        stratum: stratum of the answer; tests permute groups, or runs, only within strata.
        value: the score; 0..1, or a number without bounds if the audit's class attribute `added` is `None`.
        text: text of the answer.
        repeated: whether answers with the same text count as repetitions.
    """

    column: Column
    stratum: str
    value: float
    text: str
    repeated: bool = False


@dataclass(frozen=True)
class Scores:
    """The scores of one run, by column; a column is a pair of case and group.

    Attributes:
        columns: sorted pairs of case and group; each case occurs with every group. The group is empty if no groups are
            compared.
        column: (n,) column number of each score.
        values: (n,) scores; see `Score`.
        strata: stratum of each score.
    """

    columns: tuple[Column, ...]
    column: Ints
    values: Floats
    strata: tuple[str, ...]

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Scores:
        """Return the scores, sorted.

        If all answers of a cell (a column in one stratum) repeat one answer, they count as one score.
        """
        cells: dict[tuple[Column, str], list[Score]] = {}
        for score in sorted(scores, key=lambda score: (score.column, score.stratum, score.text, score.value)):
            cells.setdefault((score.column, score.stratum), []).append(score)
        kept = [score for own in cells.values() for score in (own[:1] if _repeats_one_answer(own) else own)]
        columns = tuple(sorted({score.column for score in kept}))
        return cls(
            columns=columns,
            column=np.array([columns.index(score.column) for score in kept], dtype=np.int64),
            values=np.array([score.value for score in kept]),
            strata=tuple(score.stratum for score in kept),
        )

    @property
    def cases(self) -> tuple[str, ...]:
        """Return the cases, sorted."""
        return tuple(dict.fromkeys(case for case, _ in self.columns))

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the groups, sorted."""
        return tuple(sorted({group for _, group in self.columns}))

    def of_cases(self, cases: Sequence[str]) -> Scores:
        """Return the scores of these cases."""
        numbers_of_columns = [number for number, (case, _) in enumerate(self.columns) if case in cases]
        mask = np.isin(self.column, numbers_of_columns)
        numbers = {number: place for place, number in enumerate(numbers_of_columns)}
        return replace(
            self,
            columns=tuple(self.columns[number] for number in numbers_of_columns),
            column=np.array([numbers[int(number)] for number in self.column[mask]], dtype=np.int64),
            values=self.values[mask],
            strata=tuple(stratum for stratum, own in zip(self.strata, mask, strict=True) if own),
        )

    def of_column(self, column: Column) -> Floats:
        """Return the scores of one column."""
        return np.asarray(self.values[self.column == self.columns.index(column)])

    def grid(self, numbers: Floats) -> Floats:
        """Return the numbers, of shape (..., columns), reshaped to (..., cases, groups)."""
        return numbers.reshape(*numbers.shape[:-1], len(self.cases), len(self.groups))

    def means(self) -> Floats:
        """Return the mean score of each column; shape (columns,)."""
        return np.array([self.of_column(column).mean() for column in self.columns])

    def errors(self, added: float | None) -> Floats:
        """Return the standard error of each column's mean; shape (columns,).

        Args:
            added: how many zeros, and equally many ones, are added to a column's scores; see
                `mean_errors.bounded_error`. `None` for scores without bounds: nothing is added.
        """
        own = [self.of_column(column) for column in self.columns]
        if added is None:
            return mean_errors.sample_errors(own)
        return np.array([mean_errors.bounded_error(scores, added) for scores in own])

    def mean_error(self, added: float | None) -> float:
        """Return the standard error of the mean of all column means, for this fixed set of columns."""
        errors = self.errors(added)
        return float(np.sqrt((errors**2).sum()) / len(errors))

    def group_means(self, column_means: Floats) -> Floats:
        """Return each group's mean over cases, shape (..., groups); `column_means` has shape (..., columns)."""
        return np.asarray(self.grid(column_means).mean(axis=-2))

    def gap(self, column_means: Floats) -> Floats:
        """Return the largest minus the smallest group mean, for each row of `column_means`."""
        return np.asarray(np.ptp(self.group_means(column_means), axis=-1))

    def group_errors(self, added: float | None) -> Floats:
        """Return the standard error of each group's mean; shape (groups,)."""
        return np.asarray(np.sqrt((self.grid(self.errors(added)) ** 2).sum(axis=0)) / len(self.cases))

    def gap_error(self, added: float | None) -> float:
        """Return the standard error of the difference between the two groups that differ most; see `group_errors`."""
        by_group, groups = self.group_errors(added), self.group_means(self.means())
        return math.hypot(by_group[groups.argmax()], by_group[groups.argmin()])


def _repeats_one_answer(cell: Sequence[Score]) -> bool:
    """Return whether the cell's scores are repetitions: several scores, all of answers with the same text."""
    return len(cell) > 1 and all(score.repeated for score in cell) and len({score.text for score in cell}) == 1
