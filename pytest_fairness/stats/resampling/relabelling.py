"""Permutation of group labels within strata, and of run labels within cells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from pytest_fairness.stats.arrays import Bools, Ints


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


def run_swaps(current: Bools, cells: Ints, count: int, random: np.random.Generator) -> tuple[Bools, Bools]:
    """Return which units belong to each run after random exchange between the runs (null hypothesis: no change).

    The units of both runs are in one array. Units are exchanged only within cells; a cell is a group within a stratum.
    In each cell, both runs get as many units as the run with fewer units has in this cell. A cell that is empty in one
    run is therefore left out.

    Args:
        current: (units,) whether the unit belongs to the current run.
        cells: (units,) cell number of each unit.
        count: number of random draws.
        random: random generator.

    Returns:
        two (count, units) masks: the units that a draw assigns to the current run, and the units that it assigns to the
        baseline.
    """
    to_current = np.zeros((count, len(current)), dtype=np.bool_)
    to_baseline = np.zeros((count, len(current)), dtype=np.bool_)
    for cell in np.unique(cells):
        indices = np.flatnonzero(cells == cell)
        size = int(min(current[indices].sum(), (~current[indices]).sum()))
        deal = np.zeros(len(indices), dtype=np.int8)
        deal[:size], deal[size : 2 * size] = 1, 2
        drawn = random.permuted(np.tile(deal, (count, 1)), axis=1)
        to_current[:, indices] = drawn == 1
        to_baseline[:, indices] = drawn == 2
    return to_current, to_baseline


def equal_size(current: Bools, cells: Ints, count: int, random: np.random.Generator) -> tuple[Bools, Bools]:
    """Return random cuts of two runs: subsets with which both runs have the same number of units in every cell.

    The units of both runs are in one array. Each unit stays in its own run. A cell is a group within a stratum.

    Args:
        current: (units,) whether the unit belongs to the current run.
        cells: (units,) cell number of each unit.
        count: number of random cuts.
        random: random generator.

    Returns:
        two (count, units) masks: the units of the current run in each cut, and the units of the baseline. If the runs
        already have equal size in every cell, each mask has a single row.
    """
    halves = []
    for side in (current, ~current):
        selected = np.zeros((count, len(current)), dtype=np.bool_)
        for cell in np.unique(cells):
            own = np.flatnonzero((cells == cell) & side)
            size = min(len(own), int(np.count_nonzero((cells == cell) & ~side)))
            deal = np.zeros(len(own), dtype=np.bool_)
            deal[:size] = True
            selected[:, own] = random.permuted(np.tile(deal, (count, 1)), axis=1)
        halves.append(selected)
    first, second = halves
    if (first | second).all():
        return first[:1], second[:1]
    return first, second
