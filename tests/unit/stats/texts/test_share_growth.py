"""Growth of differences of shares: the statistic, its error, its threshold and the documents it needs."""

from __future__ import annotations

import math
from itertools import pairwise, starmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import binom

from pytest_fairness.stats import resampling
from pytest_fairness.stats.words import LARGEST_BONUS, NeededDocuments, ShareGrowth, largest_needed, smallest_share

Bools = NDArray[np.bool_]


def design(n: int, strata: int = 1) -> tuple[Bools, NDArray[np.int64], Bools]:
    """`n` documents in each group of each run, dealt to strata in turn: marked, strata, current."""
    marked = np.repeat([True, False, True, False], n)
    return marked, np.tile(np.arange(n) % strata, 4), np.repeat([True, True, False, False], n)


def prepared(present: Any, marked: Bools, strata: NDArray[np.int64], current: Bools) -> ShareGrowth:
    return ShareGrowth.of(csr_array(np.asarray(present, dtype=float)), marked, strata, current)


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_changes_are_differences_of_weighted_shares_and_their_error_is_that_of_all_swaps(seed: int) -> None:
    random = np.random.default_rng(seed)
    # Three strata; the last one lacks a group in one run, so that it has no influence.
    strata = np.repeat([0, 1, 2], [24, 12, 4])
    marked, current = random.random((2, 40)) < 0.5
    for start in (0, 24):  # every group in every run
        marked[start : start + 4], current[start : start + 4] = [False, False, True, True], [False, True, False, True]
    marked[-4:], current[-4:] = True, [True, True, False, False]
    present = random.random((40, 6)) < random.random(6)
    found = prepared(present, marked, strata, current)

    def shares(of: Bools, run: Bools, stratum: int) -> Any:
        return present[(strata == stratum) & of & run].mean(axis=0)

    sizes = [
        [np.count_nonzero((strata == s) & (marked == m) & (current == c)) for m in (True, False) for c in (True, False)]
        for s in (0, 1)
    ]
    weights = np.array([1 / sum(1 / size for size in each) for each in sizes])
    weights /= weights.sum()

    def difference(run: Bools) -> Any:
        return sum(weights[s] * (shares(marked, run, s) - shares(~marked, run, s)) for s in (0, 1))

    np.testing.assert_allclose((found.shares[0] - found.shares[1])[0], difference(current), atol=1e-12)
    swaps, _ = resampling.relabellings(current, strata * 2 + marked, 3000, random)
    statistics = found.statistics(swaps)
    changes = np.array([difference(swap) - difference(~swap) for swap in swaps[:20]])
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.where(found.error > 0, changes / found.error, 0)
    np.testing.assert_allclose(statistics[0, :20] - found.bonus[0], expected, atol=1e-9)
    np.testing.assert_allclose(statistics[1, :20] - found.bonus[1], -expected, atol=1e-9)
    np.testing.assert_allclose(found.largest_statistics(swaps), statistics.max(axis=(0, 2)))
    standardised = (statistics[0] - found.bonus[0])[:, found.error > 0]
    np.testing.assert_allclose(standardised.std(axis=0), 1, atol=0.08)
    np.testing.assert_allclose(standardised.mean(axis=0), 0, atol=0.1)


def test_growth_is_what_is_above_equality_and_above_the_baseline() -> None:
    marked, strata, current = design(10)
    columns: dict[str, tuple[list[int], list[float]]] = {
        # current marked, current unmarked, baseline marked, baseline unmarked documents of ten
        "new": ([6, 0, 0, 0], [0.6, 0]),
        "dropped by the others": ([5, 1, 5, 5], [0.4, 0]),
        "gone": ([0, 0, 6, 0], [0, 0]),
        "turned": ([5, 0, 0, 7], [0.5, 0]),
        "grown further": ([9, 1, 5, 1], [0.4, 0]),
        "of the unmarked": ([0, 8, 0, 1], [0, 0.7]),
        "everywhere": ([7, 7, 1, 1], [0, 0]),
    }
    present = [[i < count for count in counts for i in range(10)] for counts, _ in columns.values()]
    found = prepared(np.transpose(present), marked, strata, current)
    np.testing.assert_allclose(found.growth.T, np.array([growth for _, growth in columns.values()]), atol=1e-12)


def test_the_association_of_both_runs_counts_up_to_a_limit_and_is_untouched_by_swaps() -> None:
    marked, strata, current = design(40)
    steady = marked & (np.arange(160) % 40 < 35)
    rare = np.arange(160) == 3
    found = prepared(np.transpose([steady, rare, ~marked]), marked, strata, current)
    np.testing.assert_allclose(found.bonus[:, 0], [LARGEST_BONUS, 0])
    assert 0 < found.bonus[0, 1] < 1.5
    np.testing.assert_allclose(found.bonus[:, 2], [0, LARGEST_BONUS])


def test_no_common_stratum_cannot_be_compared() -> None:
    marked, _, current = design(4)
    with pytest.raises(ValueError, match="no stratum holds both groups in both runs"):
        prepared(np.ones((16, 2)), marked, current.astype(np.int64), current)


@pytest.mark.parametrize("strata", [1, 3])
def test_so_many_documents_are_needed_as_pass_the_threshold(strata: int) -> None:
    marked, numbers, current = design(54, strata)
    found = prepared(np.ones((216, 2)), marked, numbers, current)
    needed, documents = found.documents_needed(5.5, 0.0)
    assert documents == 54
    assert needed is not None
    for held, seen in ((needed - 1, False), (needed, True)):
        new = (np.arange(216) < held).astype(float)
        tried = prepared(np.transpose([new, new]), marked, numbers, current)
        assert bool(tried.statistics(current[None])[0, 0, 0] > 5.5) is seen
    assert found.documents_needed(5.5, 0.5) == (27, 54)
    assert found.documents_needed(50.0, 0.0) == (None, 54)


def test_the_smallest_share_is_the_one_with_enough_documents() -> None:
    share = smallest_share(NeededDocuments(9, 54), 0.8)
    assert binom.sf(8, 54, share) == pytest.approx(0.8)
    assert smallest_share(NeededDocuments(None, 54)) == math.inf
    assert largest_needed(list(starmap(NeededDocuments, [(3, 30), (9, 54), (None, 80)]))) == (None, 80)
    assert all(
        more > less
        for less, more in pairwise(smallest_share(NeededDocuments(9, 54), power) for power in (0.5, 0.8, 0.99))
    )


@pytest.mark.parametrize("steady", [0, 20])
def test_the_largest_statistic_of_unchanged_runs_is_beyond_its_threshold_at_the_level(steady: int) -> None:
    """300 unchanged runs at a level of 10 %, with and without words that one group always gets more often."""
    random, alarms = np.random.default_rng(steady), 0
    marked, strata, current = design(20, 2)
    rates = 0.5 / np.arange(1, 81)
    for _ in range(300):
        rows = np.tile(rates, (80, 1))
        rows[:, 40 : 40 + steady] += 0.5 * marked[:, None]
        found = prepared(random.random(rows.shape) < rows, marked, strata, current)
        swaps, _ = resampling.relabellings(current, strata * 2 + marked, 199, random)
        alarms += (
            found.largest_statistics(current[None])[0]
            > resampling.threshold(found.largest_statistics(swaps), 0.1) + 1e-9
        )
    assert binom.cdf(alarms, 300, 0.1) > 1e-4
    assert binom.sf(alarms - 1, 300, 0.1) > 1e-4
