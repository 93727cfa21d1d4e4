"""Statistics of the values' means, and resampling within entities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import permutation_test

from pytest_fairness.stats.groups import spreads
from pytest_fairness.stats.lists.similarity import similarities
from pytest_fairness.stats.resampling import column_means, significance
from tests.support.oracles import vector, vectors

MEANS = arrays(np.float64, st.integers(2, 7), elements=st.floats(0, 1, width=32))


def random() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("name", ["two_values", "all_equal", "one_value", "three_values_extreme"])
def test_snsr_and_snsv_agree_with_the_worked_vectors(name: str) -> None:
    case = vector("snsr_snsv", name)
    means = np.array(case["input"]["sim_by_value"])
    assert spreads.value_range(means) == pytest.approx(case["expected"]["SNSR"], abs=case["tol"])
    assert spreads.value_spread(means) == pytest.approx(case["expected"]["SNSV"], abs=case["tol"])


@pytest.mark.parametrize(
    ("name", "measure", "variant"),
    [
        ("jaccard", "jaccard", "normalized"),
        ("serp", "serp", "normalized"),
        ("serp_code", "serp", "langfair"),
        ("prag", "prag", "normalized"),
        ("prag_langfair", "prag", "langfair"),
    ],
)
def test_snsr_of_lists_agrees_with_the_worked_example_of_langfair(name: str, measure: Any, variant: Any) -> None:
    case = vector("snsr_snsv", "langfair_fixture")
    given_, expected = case["input"], case["expected"]
    artists = sorted(given_["neutral"])
    means = np.array(
        [
            similarities(
                [given_[value][artist] for artist in artists],
                [given_["neutral"][artist] for artist in artists],
                measure=measure,
                variant=variant,
                k=given_["K"],
            ).mean()
            for value in ("male", "female")
        ]
    )
    assert sorted(means) == pytest.approx(sorted(expected["sim"][name]), abs=case["tol"])
    assert spreads.value_range(means) == pytest.approx(expected["snsr"][name], abs=case["tol"])
    assert spreads.value_spread(means) == pytest.approx(expected["snsv"][name], abs=case["tol"])


@given(MEANS)
def test_snsv_lies_within_its_bounds_by_snsr_and_number_of_values(means: Any) -> None:
    n, width, spread = len(means), spreads.value_range(means), spreads.value_spread(means)
    most = math.sqrt((n // 2) * ((n + 1) // 2)) / n
    assert width / math.sqrt(2 * n) - 1e-9 <= spread <= width * most + 1e-9 <= width / 2 + 2e-9
    assert 0.5 - 1e-9 <= spreads.evenness(means) <= 1 + 1e-9


def test_the_bounds_of_snsv_agree_with_the_worked_vector() -> None:
    case = vector("snsr_snsv", "feasibility_bound")
    for count in case["input"]["n_values"]:
        extreme = np.array([0.0] * (count // 2) + [1.0] * (count - count // 2))
        flat = np.array([0.0, 1.0] + [0.5] * (count - 2))
        expected = case["expected"]
        assert spreads.value_spread(extreme) == pytest.approx(expected["max_SNSV_over_SNSR"][str(count)], abs=1e-9)
        assert spreads.value_spread(flat) == pytest.approx(expected["min_SNSV_over_SNSR"][str(count)], abs=1e-9)


@pytest.mark.parametrize("vector", vectors("pafs"))
def test_pafs_agrees_with_the_worked_vectors(vector: dict[str, Any]) -> None:
    means = np.array(vector["input"]["sim_by_personality"])
    assert spreads.evenness(means) == pytest.approx(vector["expected"]["PAFS"], abs=vector["tol"])


@pytest.mark.parametrize("vector", vectors("snsr_block_permutation"))
def test_permutations_within_entities_agree_with_the_worked_vectors(vector: dict[str, Any]) -> None:
    rows, expected = np.array(vector["input"]["sim_rows_entities_cols_values"]), vector["expected"]
    null, exact = column_means.permuted_means(rows, 1000, random())
    observed = float(spreads.value_range(rows.mean(axis=0)))
    assert exact
    assert len(null) == expected["n_permutations"]
    assert observed == pytest.approx(expected["SNSR"], abs=vector["tol"])
    assert significance.p_value(spreads.value_range(null), observed, exact=True) == pytest.approx(expected["p_exact"])


@pytest.mark.parametrize("vector", vectors("snsr_regression_run_swap"))
def test_run_swaps_within_entities_agree_with_the_worked_vectors(vector: dict[str, Any]) -> None:
    now, then = (np.array(vector["input"][name]) for name in ("current", "baseline"))
    observed = float(spreads.value_range(now.mean(axis=0)) - spreads.value_range(then.mean(axis=0)))
    one, other, exact = column_means.swapped_means(now, then, 1000, random())
    null = spreads.value_range(one) - spreads.value_range(other)
    assert exact
    assert observed == pytest.approx(vector["expected"]["delta_SNSR"], abs=vector["tol"])
    assert significance.p_value(null, observed, exact=True) == pytest.approx(vector["expected"]["p_exact"])


def test_sampled_permutations_agree_with_all_permutations() -> None:
    rows = np.random.default_rng(3).random((4, 3))
    observed = float(spreads.value_range(rows.mean(axis=0)))
    p = [
        significance.p_value(spreads.value_range(null), observed, exact=exact)
        for null, exact in (column_means.permuted_means(rows, count, random()) for count in (1295, 1296))
    ]
    assert p[0] == pytest.approx(p[1], abs=0.04)


def test_the_sign_flip_test_agrees_with_scipy() -> None:
    differences = np.random.default_rng(5).normal(0.3, 1, (9, 1))
    null, exact = column_means.flipped_means(differences, 1000, random())
    expected = permutation_test((differences[:, 0],), np.mean, permutation_type="samples", alternative="greater")
    assert exact
    assert significance.p_value(null[:, 0], float(differences.mean()), exact=True) == pytest.approx(expected.pvalue)


def test_the_bootstrap_has_the_error_of_a_mean_and_leaves_missing_cells_out() -> None:
    rows = np.random.default_rng(6).normal(0, 1, (200, 2))
    rows[:100, 1] = np.nan
    drawn = column_means.bootstrap_means(rows, 4000, random())
    errors = [rows[:, 0].std() / math.sqrt(200), rows[100:, 1].std() / math.sqrt(100)]
    assert drawn.std(axis=0) == pytest.approx(errors, rel=0.1)


def test_holm_agrees_with_a_hand_computed_example() -> None:
    assert significance.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert significance.holm([]) == []
