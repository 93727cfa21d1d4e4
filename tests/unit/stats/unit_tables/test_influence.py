"""Scores of records whose means are quantiles and relative effects."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import mstats

from pytest_fairness.stats.unit_statistics import quantile_scores, rank_scores

NUMBERS = st.lists(st.integers(0, 20).map(float), min_size=3, max_size=30)
PAIRS = st.lists(st.tuples(*[st.integers(0, 10).map(float)] * 3), min_size=3, max_size=20)
QUANTILES = st.sampled_from([0.1, 0.5, 0.75, 0.9])


@given(NUMBERS, QUANTILES)
def test_the_mean_of_the_scores_is_the_estimate_of_harrell_and_davis(numbers: list[float], quantile: float) -> None:
    expected = float(mstats.hdquantiles(numbers, [quantile])[0])
    assert quantile_scores(np.array(numbers), quantile).mean() == pytest.approx(expected, abs=1e-9)


@given(NUMBERS, QUANTILES)
def test_the_spread_of_the_scores_is_the_error_of_the_jackknife(numbers: list[float], quantile: float) -> None:
    without = [float(mstats.hdquantiles(np.delete(numbers, row), [quantile])[0]) for row in range(len(numbers))]
    n = len(numbers)
    expected = np.sqrt((n - 1) / n * np.sum((np.array(without) - np.mean(without)) ** 2))
    scores = quantile_scores(np.array(numbers), quantile)
    assert scores.std(ddof=1) / np.sqrt(n) == pytest.approx(expected, abs=1e-9)


@given(NUMBERS, QUANTILES, st.floats(-50, 50), st.floats(0.1, 10))
def test_a_quantile_moves_and_stretches_with_the_numbers(
    numbers: list[float], quantile: float, shift: float, factor: float
) -> None:
    plain = quantile_scores(np.array(numbers), quantile)
    assert quantile_scores(factor * np.array(numbers) + shift, quantile) == pytest.approx(
        factor * plain + shift, abs=1e-6
    )


def test_the_upper_quantile_is_the_lower_quantile_of_the_negative_numbers() -> None:
    numbers = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])
    assert quantile_scores(numbers, 0.9) == pytest.approx(-quantile_scores(-numbers, 0.1))


@given(PAIRS)
def test_the_mean_of_the_rank_scores_is_the_mean_midrank(rows: list[tuple[float, ...]]) -> None:
    table = np.array(rows)
    ranks = stats.rankdata(table).reshape(table.shape)
    assert rank_scores(table).mean(axis=0) == pytest.approx((ranks.mean(axis=0) - 0.5) / table.size)


@given(PAIRS)
def test_the_difference_of_two_rank_scores_is_half_of_cliffs_delta(rows: list[tuple[float, ...]]) -> None:
    table = np.array(rows)[:, :2]
    delta = np.sign(table[:, :1] - table[:, 1]).mean()
    means = rank_scores(table).mean(axis=0)
    assert means[0] - means[1] == pytest.approx(delta / 2)
    result = stats.mannwhitneyu(table[:, 0], table[:, 1])
    assert means[0] - means[1] == pytest.approx(result.statistic / len(table) ** 2 - 0.5)


@given(PAIRS)
def test_ranks_do_not_change_with_the_scale(rows: list[tuple[float, ...]]) -> None:
    table = np.array(rows)
    assert rank_scores(np.exp(table)) == pytest.approx(rank_scores(table))


def test_the_spread_of_the_scores_is_the_standard_deviation_over_samples() -> None:
    random = np.random.default_rng(1)
    estimates: dict[str, list[float]] = {"tail": [], "rank": []}
    errors: dict[str, list[float]] = {"tail": [], "rank": []}
    for _ in range(600):
        record = random.normal(size=(150, 1))
        rows = record + random.normal(size=(150, 2)) + [0.4, 0.0]
        scores = {
            "tail": np.column_stack([quantile_scores(column, 0.9) for column in rows.T]),
            "rank": rank_scores(rows),
        }
        for name, each in scores.items():
            differences = each[:, 0] - each[:, 1]
            estimates[name].append(differences.mean())
            errors[name].append(differences.std(ddof=1) / np.sqrt(150))
    for name in estimates:
        # The standard deviation of 600 estimates has a standard error of 3 %.
        assert np.mean(errors[name]) / np.std(estimates[name]) == pytest.approx(1, abs=0.1)


def test_the_quantile_of_copies_is_smoothed_like_that_of_the_numbers() -> None:
    numbers = np.random.default_rng(1).normal(size=40)
    plain, copied = quantile_scores(numbers, 0.8), quantile_scores(np.repeat(numbers, 25), 0.8, 40)
    assert copied.mean() == pytest.approx(plain.mean(), abs=0.01)
    assert copied.reshape(40, 25).mean(axis=1).std() == pytest.approx(plain.std(), rel=0.1)
