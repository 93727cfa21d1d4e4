"""Permutation of group labels within strata, and of run labels within cells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.stats.arrays import Bools, Floats, Ints

CURRENT, BASELINE = 1, 2
"""Numbers that stand for the two runs in `RunCells._deal`."""
LABELS_AT_ONCE = 2**22
"""Largest number of labels that are permuted at a time."""

LabelT = TypeVar("LabelT", np.bool_, np.int8)


def relabellings(labels: Bools, strata: Ints, count: int, random: np.random.Generator) -> tuple[Bools, bool]:
    """Return group labels after permutation within strata (null hypothesis: the groups do not differ).

    Args:
        labels: (units,) the observed labels, true for one group and false for the other.
        strata: (units,) stratum number of each unit; labels are exchanged only between units of the same stratum.
        count: number of random draws; if at most this many distinct relabellings exist, each is used once, including
            the observed labels.
        random: random generator.

    Returns:
        (draws, units) labels, and whether these are all distinct relabellings (an exact test).
    """
    members = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    distinct = math.prod(math.comb(len(indices), int(labels[indices].sum())) for indices in members)
    if distinct <= count:
        rows = np.zeros((distinct, len(labels)), dtype=np.bool_)
        for row, choice in zip(rows, _all_choices(labels, members), strict=True):
            row[choice] = True
        return rows, True
    rows = np.empty((count, len(labels)), dtype=np.bool_)
    for indices in members:
        rows[:, indices] = random.permuted(np.tile(labels[indices], (count, 1)), axis=1)
    return rows, False


def _all_choices(labels: Bools, members: list[Ints]) -> Iterator[Ints]:
    """Yield, for each distinct relabelling, the indices of the units whose label is true.

    Args:
        labels: (units,) the observed labels.
        members: indices of each stratum's units.
    """
    per_stratum = [combinations(indices, int(labels[indices].sum())) for indices in members]
    for choice in product(*per_stratum):
        yield np.array([index for part in choice for index in part], dtype=np.int64)


@dataclass(frozen=True)
class RunCells:
    """Units of two runs in one array, grouped by cell (group within stratum); units are exchanged within cells only.

    Attributes:
        current: (units,) whether the unit belongs to the current run.
        members: indices of each cell's units.
        equal_size: whether only as many units of a cell are used as the run with fewer units has; this is for values
            that depend on the number of units. Otherwise, all units of the cells that both runs have are used.
    """

    current: Bools
    members: list[Ints]
    equal_size: bool = True

    @classmethod
    def of(cls, current: Bools, cells: Ints, *, equal_size: bool = True) -> RunCells:
        """Return the units grouped by cell.

        Args:
            current: (units,) whether the unit belongs to the current run.
            cells: (units,) cell number of each unit.
            equal_size: see the attribute.
        """
        order = np.argsort(cells, kind="stable")
        return cls(current, np.split(order, np.flatnonzero(np.diff(cells[order])) + 1), equal_size)

    def swaps(self, count: int, random: np.random.Generator) -> tuple[Bools, Bools]:
        """Return the units of each run after random exchange between the runs (null hypothesis: no change).

        In each cell, both runs get as many units as the run with fewer units has in this cell or, without `equal_size`,
        as many as they have. A cell that is empty in one run is left out.

        Args:
            count: number of random draws.
            random: random generator.

        Returns:
            two (count, units) masks: the units that a draw assigns to the current run, and the units that it assigns to
            the baseline.
        """
        to_current = np.zeros((count, len(self.current)), dtype=np.bool_)
        to_baseline = np.zeros((count, len(self.current)), dtype=np.bool_)
        for indices in self.members:
            for rows, drawn in _permuted(self._deal(indices), count, random):
                to_current[rows, indices] = drawn == CURRENT
                to_baseline[rows, indices] = drawn == BASELINE
        return to_current, to_baseline

    def sums_after_swaps(self, values: Floats, count: int, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the column sums over the units of each run after random exchange; the draws are those of `swaps`.

        The masks of all draws are never in memory together. See `sums` for the weights of the units.

        Args:
            values: (units, columns) numbers.
            count: number of random draws.
            random: random generator.

        Returns:
            two (count, columns) arrays: the sums of the current run, and the sums of the baseline.
        """
        sums = np.zeros((2, count, values.shape[1]))
        for indices in self.members:
            own = values[indices]
            for rows, drawn in _permuted(self._deal(indices), count, random):
                for total, run, weight in zip(sums, (CURRENT, BASELINE), self._weights(indices), strict=True):
                    total[rows] += (drawn == run).astype(np.float64) @ own * weight
        return sums[0], sums[1]

    def sums(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the column sums over the units of the current run, and over those of the baseline, each (columns,).

        A cell has the same weight in both runs: the number of units of the run with fewer units in it.
        """
        sums = np.zeros((2, values.shape[1]))
        for indices in self.members:
            own = self.current[indices]
            for total, side, weight in zip(sums, (own, ~own), self._weights(indices), strict=True):
                total += values[indices[side]].sum(axis=0) * weight
        return sums[0], sums[1]

    def _weights(self, indices: Ints) -> tuple[float, float]:
        """Return the weight of a unit of the current run and of the baseline in one cell; see `sums`."""
        own = int(np.count_nonzero(self.current[indices]))
        other = len(indices) - own
        size = min(own, other)
        return (1.0, 1.0) if self.equal_size else (size / max(own, 1), size / max(other, 1))

    def cuts(self, count: int, random: np.random.Generator) -> tuple[Bools, Bools]:
        """Return random cuts: subsets of each run's units, with the same number of units of both runs in each cell.

        Args:
            count: number of random cuts.
            random: random generator.

        Returns:
            two (count, units) masks: the units of the current run in each cut, and the units of the baseline. If the
            runs already have equal size in every cell, each mask has a single row.
        """
        equal = all(2 * np.count_nonzero(self.current[indices]) == len(indices) for indices in self.members)
        halves = []
        for side in (self.current, ~self.current):
            selected = np.zeros((1 if equal else count, len(side)), dtype=np.bool_)
            for indices in self.members:
                own = indices[side[indices]]
                deal = np.arange(len(own)) < len(indices) - len(own)
                for rows, drawn in _permuted(deal, count, random):
                    # Runs of equal size consume the same random numbers, which later draws depend on.
                    selected[slice(1) if equal else rows, own] = drawn[:1] if equal else drawn
            halves.append(selected)
        return halves[0], halves[1]

    def _deal(self, indices: Ints) -> NDArray[np.int8]:
        """Return the runs to which the units of a cell are dealt: `CURRENT`, `BASELINE` or 0 for neither."""
        own = int(np.count_nonzero(self.current[indices]))
        size = min(own, len(indices) - own)
        deal = np.zeros(len(indices), dtype=np.int8)
        if not self.equal_size and size:
            deal[:own], deal[own:] = CURRENT, BASELINE
        else:
            deal[:size], deal[size : 2 * size] = CURRENT, BASELINE
        return deal


def _permuted(
    deal: NDArray[LabelT], count: int, random: np.random.Generator
) -> Iterator[tuple[slice, NDArray[LabelT]]]:
    """Yield random permutations of `deal`, `count` in all, as rows of arrays of limited size.

    Each array comes with a slice: the indices of its rows among all draws.
    """
    rows = max(1, LABELS_AT_ONCE // max(1, len(deal)))
    for start in range(0, count, rows):
        size = min(rows, count - start)
        yield slice(start, start + size), random.permuted(np.tile(deal, (size, 1)), axis=1)
