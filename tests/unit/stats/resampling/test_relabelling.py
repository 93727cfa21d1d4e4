"""Relabelling within strata, run swaps and cuts to equal size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.stats import resampling
from pytest_fairness.stats.resampling import RunCells

labelled = st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=2, max_size=14)


@given(labelled, st.integers(1, 400))
def test_relabelling_keeps_the_number_of_labels_in_every_stratum(units: list[tuple[bool, int]], count: int) -> None:
    labels, strata = np.array([u[0] for u in units]), np.array([u[1] for u in units])
    rows, exact = resampling.relabellings(labels, strata, count, np.random.default_rng(1))
    for stratum in np.unique(strata):
        own = strata == stratum
        assert (rows[:, own].sum(axis=1) == labels[own].sum()).all()
    if exact:
        assert len({row.tobytes() for row in rows}) == len(rows) <= count
        assert any((row == labels).all() for row in rows)
    else:
        assert len(rows) == count


def test_few_relabellings_are_all_enumerated() -> None:
    labels = np.array([True] * 3 + [False] * 3)
    rows, exact = resampling.relabellings(labels, np.zeros(6, dtype=np.int64), 999, np.random.default_rng(0))
    assert exact
    assert len(rows) == math.comb(6, 3)


cells = st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=30)


@given(cells)
@settings(max_examples=50)
def test_swapped_runs_are_of_equal_size_in_every_cell(units: list[tuple[bool, int]]) -> None:
    current, cell = np.array([u[0] for u in units]), np.array([u[1] for u in units])
    both = RunCells.of(current, cell)
    for first, second in (both.swaps(20, np.random.default_rng(0)), both.cuts(20, np.random.default_rng(0))):
        assert not (first & second).any()
        for number in np.unique(cell):
            own = cell == number
            size = min(current[own].sum(), (~current[own]).sum())
            assert (first[:, own].sum(axis=1) == size).all()
            assert (second[:, own].sum(axis=1) == size).all()


def test_cuts_to_equal_size_keep_the_runs_apart() -> None:
    current = np.array([True] * 5 + [False] * 3)
    first, second = RunCells.of(current, np.zeros(8, dtype=np.int64)).cuts(50, np.random.default_rng(0))
    assert len(first) == 50
    assert not (first & ~current).any()
    assert not (second & current).any()
    assert first[:, :5].any(axis=0).all(), "a unit is in no cut"


def test_runs_of_equal_size_are_not_cut() -> None:
    current = np.array([True, True, False, False])
    first, _ = RunCells.of(current, np.zeros(4, dtype=np.int64)).cuts(50, np.random.default_rng(0))
    assert first.tolist() == [[True, True, False, False]]


@given(cells, st.integers(1, 40), st.integers(1, 3))
@settings(max_examples=50)
def test_blocks_of_labels_give_the_draws_of_one_array(units: list[tuple[bool, int]], count: int, at_once: int) -> None:
    current, cell = np.array([u[0] for u in units]), np.array([u[1] for u in units])
    values = np.random.default_rng(1).normal(size=(len(units), 2))
    both = RunCells.of(current, cell)
    random, other = np.random.default_rng(0), np.random.default_rng(0)
    swaps, cuts = both.swaps(count, random), both.cuts(count, random)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resampling, "LABELS_AT_ONCE", at_once)
        sums = both.sums_after_swaps(values, count, other)
        blocks = both.cuts(count, other)
    for cut, block in zip(cuts, blocks, strict=True):
        assert (cut == block).all()
    for swap, total in zip(swaps, sums, strict=True):
        assert total == pytest.approx(swap @ values, rel=1e-12, abs=1e-12)
    assert random.random() == other.random()  # later draws are the same


def test_swaps_and_cuts_draw_the_permutations_of_whole_cells() -> None:
    random = np.random.default_rng(3)
    current, cell = random.random(60) < 0.4, random.integers(0, 3, 60)
    both = RunCells.of(current, cell)
    swaps, reference = both.swaps(7, np.random.default_rng(4)), np.random.default_rng(4)
    for number in range(3):
        own = np.flatnonzero(cell == number)
        size = min(int(current[own].sum()), int((~current[own]).sum()))
        deal = np.repeat([1, 2, 0], [size, size, len(own) - 2 * size]).astype(np.int8)
        drawn = reference.permuted(np.tile(deal, (7, 1)), axis=1)
        assert (swaps[0][:, own] == (drawn == 1)).all()
        assert (swaps[1][:, own] == (drawn == 2)).all()


def test_all_units_of_common_cells_are_used_with_the_same_weight_of_a_cell_in_both_runs() -> None:
    current, cell = np.repeat([True, False, True, False, True], [2, 6, 1, 1, 4]), np.repeat([0, 1, 2], [8, 2, 4])
    both = RunCells.of(current, cell, equal_size=False)
    first, second = both.swaps(20, np.random.default_rng(0))
    for number, sizes in ((0, (2, 6)), (1, (1, 1)), (2, (0, 0))):
        own = cell == number
        assert (first[:, own].sum(axis=1) == sizes[0]).all()
        assert (second[:, own].sum(axis=1) == sizes[1]).all()
    columns = np.column_stack([np.ones(14), np.arange(14.0), cell])
    sums = both.sums(columns)
    assert sums[0] == pytest.approx([3, 0 + 1 + 8, 1])
    assert sums[1] == pytest.approx([3, (2 + 3 + 4 + 5 + 6 + 7) / 3 + 9, 1])
    drawn = both.sums_after_swaps(columns, 2000, np.random.default_rng(1))
    assert [side[:, 0].tolist() == [3.0] * 2000 for side in drawn] == [True, True]
    assert np.mean(drawn[0] - drawn[1], axis=0) == pytest.approx([0, 0, 0], abs=0.3)
