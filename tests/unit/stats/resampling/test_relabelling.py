"""Relabelling, run swaps and the p-values of resampling tests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pytest_fairness.stats.resampling import randomness, relabelling, significance

labelled = st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=2, max_size=14)


@given(labelled, st.integers(1, 400))
def test_relabelling_keeps_the_number_of_labels_in_every_stratum(units: list[tuple[bool, int]], count: int) -> None:
    labels, strata = np.array([u[0] for u in units]), np.array([u[1] for u in units])
    rows, exact = relabelling.relabellings(labels, strata, count, np.random.default_rng(1))
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
    rows, exact = relabelling.relabellings(labels, np.zeros(6, dtype=np.int64), 999, np.random.default_rng(0))
    assert exact
    assert len(rows) == math.comb(6, 3)


def test_a_sampled_p_value_is_above_0_and_ties_count() -> None:
    null = np.array([0.0, 1.0, 2.0, 3.0])
    assert significance.p_value(null, 5.0, exact=False) == pytest.approx(1 / 5)
    assert significance.p_value(null, 3.0, exact=True) == pytest.approx(1 / 4)


cells = st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=30)


@given(cells)
@settings(max_examples=50)
def test_swapped_runs_are_of_equal_size_in_every_cell(units: list[tuple[bool, int]]) -> None:
    now, cell = np.array([u[0] for u in units]), np.array([u[1] for u in units])
    for deal in (relabelling.run_swaps, relabelling.equal_size):
        first, second = deal(now, cell, 20, np.random.default_rng(0))
        assert not (first & second).any()
        for number in np.unique(cell):
            own = cell == number
            size = min(now[own].sum(), (~now[own]).sum())
            assert (first[:, own].sum(axis=1) == size).all()
            assert (second[:, own].sum(axis=1) == size).all()


def test_cuts_to_equal_size_keep_the_runs_apart() -> None:
    now = np.array([True] * 5 + [False] * 3)
    first, second = relabelling.equal_size(now, np.zeros(8, dtype=np.int64), 50, np.random.default_rng(0))
    assert len(first) == 50
    assert not (first & ~now).any()
    assert not (second & now).any()
    assert first[:, :5].any(axis=0).all(), "a unit is in no cut"


def test_runs_of_equal_size_are_not_cut() -> None:
    now = np.array([True, True, False, False])
    first, _ = relabelling.equal_size(now, np.zeros(4, dtype=np.int64), 50, np.random.default_rng(0))
    assert first.tolist() == [[True, True, False, False]]


def test_a_seed_gives_the_numbers_that_baselines_were_recorded_with() -> None:
    assert randomness.generator("a test").integers(0, 10**6, 3).tolist() == [524535, 55417, 773384]
    assert randomness.generator("another test").integers(0, 10**6, 3).tolist() != [524535, 55417, 773384]


def test_a_threshold_below_the_resolution_of_the_draws_is_extrapolated() -> None:
    random = np.random.default_rng(5)
    largest = random.normal(size=(1999, 300)).max(axis=1)
    assert significance.exceeded(largest, 0.01) == np.quantile(largest, 0.99, method="higher")
    threshold = significance.exceeded(largest, 1e-4)
    assert threshold >= largest.max()
    many = np.array([random.normal(size=(20_000, 300)).max(axis=1) for _ in range(5)])
    assert (many > threshold).mean() < 2e-4


@pytest.mark.parametrize("shape", ["normal", "sum of signs", "largest of many", "squares"])
@pytest.mark.parametrize("p_value", [0.0005, 0.0002, 0.0001])
def test_p_values_beyond_all_draws_agree_with_the_true_tail(shape: str, p_value: float) -> None:
    """Over 40 sets of 1,999 draws the median is within a factor of 2, and 90 % are above a quarter of the truth."""
    random = np.random.default_rng(0)

    def draw(count: int) -> NDArray[np.float64]:
        if shape == "normal":
            return random.normal(size=count)
        if shape == "sum of signs":
            weights = np.arange(1, 41) ** 0.5
            return np.asarray((2 * random.integers(0, 2, size=(count, 40)) - 1) @ weights)
        if shape == "largest of many":
            return np.asarray(np.abs(random.normal(size=(count, 100))).max(axis=1))
        return np.asarray((random.normal(size=(count, 20)) ** 2).sum(axis=1))

    observed = float(np.quantile(draw(400_000), 1 - p_value))
    found: list[float] = []
    while len(found) < 40:
        null = draw(1999)
        if null.max() < observed:
            found.append(significance.p_value(null, observed, exact=False))
    ratios = np.array(found) / p_value
    assert 0.5 <= np.median(ratios) <= 2
    assert np.mean(ratios > 1 / 4) >= 0.9


def test_equal_draws_give_the_smallest_resolved_p_value() -> None:
    assert significance.p_value(np.zeros(1999), 2.0, exact=False) == pytest.approx(1 / 2000)
    assert significance.p_value(np.repeat([0.0, 1.0], [1990, 9]), 1.0, exact=False) == pytest.approx(10 / 2000)


@given(st.floats(0, 1e6), st.integers(0, 5))
@settings(max_examples=30)
def test_a_tail_p_value_is_between_a_twentieth_and_the_whole_of_the_smallest_counted_one(
    beyond: float, seed: int
) -> None:
    null = np.random.default_rng(seed).gamma(2, size=1999)
    found = significance.p_value(null, float(null.max()) + beyond + 1e-6, exact=False)
    assert 1 / 2000 / 20 <= found <= 1 / 2000
