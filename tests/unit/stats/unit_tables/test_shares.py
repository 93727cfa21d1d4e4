"""Shares of groups: impact ratios, bounds, tests of pairs, records that count in several groups, and clusters."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom

from pytest_fairness.stats import intervals
from pytest_fairness.stats.resampling import Floats
from pytest_fairness.stats.unit_statistics import Cell, ImpactRatio, ShareGap, equal_rates_p
from pytest_fairness.stats.unit_statistics import log_ratio as log_ratio_of_cells
from pytest_fairness.stats.unit_tables import Sample

COUNTS = st.lists(
    st.integers(5, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=5
)


def table(*groups: tuple[int, int]) -> Floats:
    """Return the rows of people who belong to one group each; each pair is the hits and the size of a group."""
    rows = []
    for cell, (hits, size) in enumerate(groups):
        own = np.zeros((size, 2 * len(groups)))
        own[:hits, cell] = 1.0
        own[:, len(groups) + cell] = 1.0
        rows.append(own)
    return np.vstack(rows)


def value(rows: Floats) -> float:
    return float(ImpactRatio(rows.shape[1] // 2).value(rows.mean(axis=0)))


def sample(rows: Floats) -> Sample:
    return Sample(rows, rows.mean(axis=0))


def log_ratio(rows: Floats, group: int, other: int) -> tuple[float, float]:
    return log_ratio_of_cells(Cell.of(rows, group), Cell.of(rows, other))


def p_of(*groups: tuple[int, int]) -> float:
    """Return the p-value of the first two of these groups of people."""
    return equal_rates_p(*(Cell.of(table(*groups), cell) for cell in (0, 1)))


@given(COUNTS)
def test_the_value_is_the_lowest_rate_divided_by_the_highest(groups: list[tuple[int, int]]) -> None:
    rates = [hits / size for hits, size in groups]
    found = value(table(*groups))
    if max(rates) == 0:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(min(rates) / max(rates), abs=1e-12)


@example([(5, 5), (6, 6)], random.Random(1))  # noqa: S311 - no secret depends on it
@example([(6, 6), (5, 5), (6, 6)], random.Random(1))  # noqa: S311 - no secret depends on it
@given(COUNTS.filter(lambda groups: max(hits for hits, _ in groups) > 0), st.randoms(use_true_random=False))
def test_the_order_of_groups_and_records_has_no_effect(groups: list[tuple[int, int]], order: random.Random) -> None:
    mixed = [*groups]
    order.shuffle(mixed)
    rows, other = table(*groups), np.random.default_rng(0).permutation(table(*mixed))
    statistic = ImpactRatio(len(groups))
    assert value(rows) == pytest.approx(value(other), abs=1e-12)
    assert statistic.interval(sample(rows)) == pytest.approx(statistic.interval(sample(other)), abs=1e-12)


@given(COUNTS.filter(lambda groups: max(hits for hits, _ in groups) > 0))
def test_the_interval_contains_the_value_and_lies_within_0_and_1(groups: list[tuple[int, int]]) -> None:
    rows = table(*groups)
    low, high = ImpactRatio(len(groups)).interval(sample(rows))
    assert 0 <= low <= high <= 1
    # With a count of 0, the estimate behind the interval has half a hit.
    assert low <= max(value(rows), low) <= high + 1e-12


def test_two_groups_have_the_interval_of_katz() -> None:
    rows = table((100, 250), (60, 250))
    katz = intervals.ratio_interval(*intervals.log_ratio(60, 250, 100, 250), intervals.quantile(0.975))
    assert ImpactRatio(2).interval(sample(rows)) == pytest.approx(katz)


def test_the_ends_of_the_interval_for_three_groups() -> None:
    # The lower end is that of the most extreme pair; for the upper end, three pairs share alpha.
    rows = table((48, 120), (20, 80), (33, 90))
    low = intervals.ratio_interval(*intervals.log_ratio(20, 80, 48, 120), intervals.quantile(0.975))[0]
    high = intervals.ratio_interval(*intervals.log_ratio(20, 80, 48, 120), intervals.quantile(1 - 0.025 / 3))[1]
    assert ImpactRatio(3).interval(sample(rows)) == pytest.approx((low, min(1.0, high)))


def test_the_gradient_is_the_derivative_of_the_loss() -> None:
    means = table((48, 120), (20, 80), (33, 90)).mean(axis=0)
    statistic = ImpactRatio(3)
    gradient = statistic.loss_gradient(means)
    for column in range(6):
        step = np.zeros(6)
        step[column] = 1e-7
        slope = -(statistic.value(means + step) - statistic.value(means - step)) / 2e-7
        assert gradient[column] == pytest.approx(float(slope), abs=1e-6)


def test_records_that_count_in_both_groups_are_clusters() -> None:
    # 30 records are selected as both, 10 as the first only, 2 as the second only. The variance of the logarithm of a
    # ratio of paired shares is (n10 + n01) / (n1. × n.1) (Nam and Blackwelder 2002).
    rows = np.array([[1, 1]] * 30 + [[1, 0]] * 10 + [[0, 1]] * 2 + [[0, 0]] * 58, dtype=np.float64)
    paired = np.hstack([rows, np.ones_like(rows)])
    logarithm, error = log_ratio(paired, 1, 0)
    assert math.exp(logarithm) == pytest.approx(32 / 40)
    assert error == pytest.approx(math.sqrt(12 / (40 * 32)))
    assert error < intervals.log_ratio(32, 100, 40, 100)[1] / 1.5


def test_equal_answers_for_both_groups_leave_an_error() -> None:
    rows = np.array([[1.0, 1.0]] * 40 + [[0.0, 0.0]] * 60)
    assert log_ratio(np.hstack([rows, np.ones_like(rows)]), 0, 1) == (0.0, 1 / 40)


@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_intervals_cover_the_true_ratio(rate: float) -> None:
    random = np.random.default_rng(7)
    covered = 0
    for _ in range(400):
        drawn = (int(random.binomial(200, rate)), 200), (int(random.binomial(200, 0.6 * rate)), 200)
        low, high = ImpactRatio(2).interval(sample(table(*drawn)))
        covered += low <= 0.6 <= high
    # 95 % of 400 runs are 380; fewer than 366 have a probability of about 0.1 % only.
    assert covered >= 366


# Tests of pairs


@pytest.mark.parametrize("groups", [((174, 360), (52, 160)), ((20, 60), (33, 60)), ((5, 80), (14, 90))])
def test_the_test_of_a_pair_is_the_two_proportion_test_with_the_variance_of_a_permutation(
    groups: tuple[tuple[int, int], tuple[int, int]],
) -> None:
    (hits, size), (other_hits, other) = groups
    people, pooled = size + other, (hits + other_hits) / (size + other)
    error = math.sqrt(pooled * (1 - pooled) * people / (people - 1) * (1 / size + 1 / other))
    z = abs(hits / size - other_hits / other) / error
    assert p_of(*groups) == pytest.approx(2 * intervals.upper_tail(z), rel=0.12)
    if size == other:
        assert p_of(*groups) == pytest.approx(2 * intervals.upper_tail(z))


@pytest.mark.parametrize(("small", "large"), [(4, 100), (5, 360), (10, 360), (30, 360), (30, 100), (110, 360)])
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("alpha", [0.01, 0.001])
def test_the_level_of_a_pair_is_kept_beside_a_large_group(small: int, large: int, rate: float, alpha: float) -> None:
    # The exact probability of a rejection. Without the skewness it is up to 7 times alpha (5 of 360, rate 0.1).
    chances = [binom.pmf(np.arange(size + 1), size, rate) for size in (small, large)]
    level = 0.0
    for hits in np.flatnonzero(chances[0] > 1e-7):
        for other in np.flatnonzero(chances[1] > 1e-7):
            if chances[0][hits] * chances[1][other] > 1e-9:
                level += chances[0][hits] * chances[1][other] * (counts_p(int(hits), small, int(other), large) <= alpha)
    assert level <= 1.1 * alpha


def counts_p(hits: int, size: int, other_hits: int, other: int) -> float:
    """Return the p-value of two groups of people; a fast stand-in for their tables, as each row counts alone."""

    def cell(group: int, hit: int, people: int, mates: int) -> Cell:
        own = np.repeat([1.0, 0.0], [hit, people - hit])
        pads = (0, mates) if group == 0 else (mates, 0)
        return Cell(np.pad(own, pads), np.pad(np.ones(people), pads), float(hit), float(people), people, float(people))

    return equal_rates_p(cell(0, int(hits), size, other), cell(1, int(other_hits), other, size))


def test_a_further_group_leaves_the_other_pairs_alone() -> None:
    groups = [(174, 360), (52, 160), (78, 150), (58, 110)]
    for statistic_of in (ImpactRatio, lambda count: ShareGap(1, count)):
        found, more = (
            {
                (test.first, test.second): test
                for test in statistic_of(len(each)).pair_tests(table(*each), np.random.default_rng(0))
            }
            for each in (groups, [*groups, (14, 30)])
        )
        assert all(more[pair].value == test.value for pair, test in found.items())
        assert all(more[pair].interval == pytest.approx(test.interval) for pair, test in found.items())
        # Holm's method: ten pairs in place of six.
        smallest = min(found, key=lambda pair: found[pair].p_value)
        assert more[smallest].p_value == pytest.approx(found[smallest].p_value * 10 / 6)
        assert more[smallest].p_value < 0.01


def clustered(rates: list[float], clusters: int, random: np.random.Generator) -> Floats:
    """Return rows of clusters of 1 to 9 records that all share one answer."""
    rows = []
    for group, rate in enumerate(rates):
        own = np.zeros((clusters, 2 * len(rates)))
        sizes = random.integers(1, 10, clusters)
        own[:, len(rates) + group] = sizes
        own[:, group] = sizes * (random.random(clusters) < rate)
        rows.append(own)
    return np.vstack(rows)


def test_clusters_of_equal_answers_keep_level_and_coverage() -> None:
    random = np.random.default_rng(5)
    rejected = covered = ratio_covered = 0
    for _ in range(600):
        rows = clustered([0.4, 0.4], 60, random)
        rejected += equal_rates_p(Cell.of(rows, 0), Cell.of(rows, 1)) <= 0.05
        low, high = ShareGap(1, 2).pair_tests(rows, random)[0].interval
        covered += low <= 0 <= high
        low, high = ImpactRatio(2).pair_tests(rows, random)[0].interval
        ratio_covered += low <= 1 <= high
    # As single records, 40 of 100 null runs would be rejected.
    assert 16 <= rejected <= 46
    assert 555 <= covered <= 585
    assert 550 <= ratio_covered <= 587


def test_an_effective_size_is_at_most_the_size() -> None:
    rows = table((40, 100), (50, 100))
    assert Cell.of(rows, 0).effective_size == pytest.approx(100)
    # Ten clusters of ten equal answers count as ten; ten clusters of ten different answers count as more.
    equal = np.repeat([[10.0, 10.0], [0.0, 10.0]], 5, axis=0)
    assert Cell.of(equal, 0).effective_size == pytest.approx(10)
    different = np.repeat([[4.0, 10.0], [6.0, 10.0]], 5, axis=0)
    assert Cell.of(different, 0).effective_size == pytest.approx(100)
    # A cell without hits says nothing about the answers of a cluster: they count as equal.
    assert Cell.of(np.array([[0.0, 10.0]] * 10), 0).effective_size == pytest.approx(10)
