"""Mean differences within strata: weights, errors, and resampling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pytest_fairness.stats import intervals, resampling, strata
from pytest_fairness.stats.strata import StratifiedValues, TwoRuns

RANDOM = np.random.default_rng(0)


def weights_of(marked: np.ndarray, within: np.ndarray) -> np.ndarray:
    return strata.precision(*strata.cell_sizes(marked, within, int(within.max()) + 1))


def test_one_stratum_is_welchs_test() -> None:
    first, second = RANDOM.normal(1, 2, 12), RANDOM.normal(0, 1, 9)
    values, marked = np.concatenate([first, second]), np.repeat([True, False], [12, 9])
    within = np.zeros(21, dtype=np.int64)
    weights = weights_of(marked, within)
    expected = stats.ttest_ind(first, second, equal_var=False)
    error, degrees = strata.difference_error(values, marked, within, weights)
    value = float(strata.coefficients(marked, within, weights) @ values)
    assert value / error == pytest.approx(expected.statistic)
    assert degrees == pytest.approx(expected.df)
    assert intervals.interval(value, error, degrees_of_freedom=degrees) == pytest.approx(
        tuple(expected.confidence_interval())
    )


def test_single_units_in_every_stratum_are_the_paired_test() -> None:
    first, second = RANDOM.normal(1, 1, 10), RANDOM.normal(0, 1, 10)
    values, marked = np.concatenate([first, second]), np.repeat([True, False], 10)
    within = np.tile(np.arange(10), 2)
    error, degrees = strata.difference_error(values, marked, within, weights_of(marked, within))
    assert error == pytest.approx(stats.sem(first - second))
    assert degrees == pytest.approx(9)


@pytest.mark.parametrize("sizes", [((8, 8),), ((4, 4), (4, 4)), ((15, 5), (3, 12)), ((1, 6), (9, 9)), ((1, 4),) * 8])
def test_the_error_is_that_of_the_estimate(sizes: tuple[tuple[int, int], ...]) -> None:
    random = np.random.default_rng(1)
    marked = np.concatenate([np.repeat([True, False], pair) for pair in sizes])
    within = np.repeat(np.arange(len(sizes)), [sum(pair) for pair in sizes])
    weights = weights_of(marked, within)
    share, found, squares, covered = strata.coefficients(marked, within, weights), [], [], 0
    for _ in range(1500):
        values = random.gamma(2, 1, len(marked)) + 3 * within
        error, degrees = strata.difference_error(values, marked, within, weights)
        low, high = intervals.interval(float(share @ values), error, degrees_of_freedom=degrees)
        found.append(float(share @ values))
        squares.append(error**2)
        covered += low <= 0 <= high
    assert np.sqrt(np.mean(squares)) / np.std(found) == pytest.approx(1, abs=0.08)
    assert covered / 1500 == pytest.approx(0.955, abs=0.025)


def test_permuted_differences_are_those_of_permuted_labels() -> None:
    marked, within = np.array([True, True, False, False, True, False]), np.array([0, 0, 0, 0, 1, 1])
    values = RANDOM.normal(size=6)
    weights = weights_of(marked, within)
    found, exact = strata.permuted_differences(values, marked, within, weights, 100, np.random.default_rng(2))
    labels, _ = resampling.relabellings(marked, within, 100, np.random.default_rng(2))
    expected = [strata.coefficients(row, within, weights) @ values for row in labels]
    assert exact
    assert len(found) == 12
    assert found == pytest.approx(np.array(expected))


def two_runs(values: np.ndarray, marked: np.ndarray, within: np.ndarray, current: np.ndarray) -> TwoRuns:
    names = tuple(map(str, range(int(within.max()) + 1)))
    runs = (StratifiedValues(values[own], marked[own], within[own], names, 0.0) for own in (current, ~current))
    return TwoRuns.of(*runs)


def test_swapped_runs_of_one_kind_differ_by_chance_only() -> None:
    random = np.random.default_rng(3)
    marked, within = np.tile([True, False], 40), np.repeat([0, 1], 40)
    current = random.permutation(np.repeat([True, False], 40))
    values = random.normal(size=80) + 2 * marked
    runs = two_runs(values, marked, within, current)
    whole = runs.gaps_after_swaps(999, np.random.default_rng(4))
    assert np.mean(whole[0] - whole[1]) == pytest.approx(0, abs=0.05)
    assert np.mean(whole[0]) == pytest.approx(2, abs=0.4)
    more_than_one_batch = strata.CHUNK // 80 + 500
    parts = runs.gaps_after_swaps(more_than_one_batch, np.random.default_rng(4))
    assert np.std(parts[0]) == pytest.approx(np.std(whole[0]), rel=0.1)
    assert [len(side) for side in parts] == [more_than_one_batch] * 2
    # The second batch is drawn as the first is, and does not repeat it.
    assert np.std(parts[0][-500:]) == pytest.approx(np.std(whole[0]), rel=0.15)
    assert not np.array_equal(parts[0][-500:], parts[0][:500])


def test_all_documents_of_both_runs_count() -> None:
    marked, within = np.repeat([True, False, True, False], [4, 4, 20, 40]), np.zeros(68, dtype=np.int64)
    current = np.repeat([True, False], [8, 60])
    values = np.random.default_rng(5).normal(size=68) + 3 * marked
    runs = two_runs(values, marked, within, current)
    gaps = [values[own & marked].mean() - values[own & ~marked].mean() for own in (current, ~current)]
    assert runs.gaps() == pytest.approx(gaps)
    assert runs.joint_gap() == pytest.approx(values[marked].mean() - values[~marked].mean())
    # The null distribution is as narrow as runs of these sizes allow: 1/4 + 1/4 + 1/20 + 1/40, not 4/4.
    first, second = runs.gaps_after_swaps(4000, np.random.default_rng(6))
    assert np.std(first - second) == pytest.approx(np.sqrt(0.575), rel=0.15)


def test_strata_that_a_run_lacks_do_not_count() -> None:
    marked, within = np.tile([True, False], 8), np.repeat([0, 1], [8, 8])
    current = np.repeat([True, False, True], [4, 4, 8])
    values = np.where(within == 1, 100.0, 2.0) * marked
    runs = two_runs(values, marked, within, current)
    assert runs.gaps() == pytest.approx((2.0, 2.0))


def test_documents_are_drawn_within_their_cells() -> None:
    cells = np.repeat([0, 1], [5, 10])
    columns = np.stack([cells == 0, cells == 1], axis=1).astype(float)
    sums = np.concatenate(list(strata.resampled_sums(columns, cells, 50, np.random.default_rng(6))))
    assert sums.tolist() == [[5.0, 10.0]] * 50
