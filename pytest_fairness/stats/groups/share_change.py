"""Change of the gap between two groups' shares of hits from the baseline to the current run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_fairness.stats.arrays import Bools, Floats, Ints
from pytest_fairness.stats.groups.change_error import change_error
from pytest_fairness.stats.intervals.proportions import difference_error

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
    def coefficients(self) -> Floats:
        """Return the weight of each answer; the change of the gap is `coefficients @ hits`."""
        groups = self.marked * 2 + self.current
        share = 1 / np.bincount(groups, minlength=4)[groups]
        # The group with the larger share of hits in both runs together does not depend on the run labels.
        side = -1.0 if self.hits[self.marked].mean() < self.hits[~self.marked].mean() else 1.0
        return np.asarray(side * np.where(self.marked == self.current, share, -share))

    @property
    def value(self) -> float:
        """Return the change of the gap from the baseline to the current run."""
        return float(self.coefficients @ self.hits)

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
        """Return the change for each of `count` random permutations of run labels within cells; shape (count,).

        The draws are the null distribution: they show which changes occur if the runs do not differ.
        """
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
