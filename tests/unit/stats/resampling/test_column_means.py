"""Column means of tables whose rows are swapped, flipped in sign or drawn with replacement."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import permutation_test

from pytest_fairness.stats import gaps, resampling
from tests.support.oracles import vectors


def random() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("vector", vectors("snsr_regression_run_swap"))
def test_run_swaps_within_entities_agree_with_the_worked_vectors(vector: dict[str, Any]) -> None:
    current, baseline = (np.array(vector["input"][name]) for name in ("current", "baseline"))
    observed = float(gaps.value_range(current.mean(axis=0)) - gaps.value_range(baseline.mean(axis=0)))
    one, other, exact = resampling.swapped_means(current, baseline, 1000, random())
    null = gaps.value_range(one) - gaps.value_range(other)
    assert exact
    assert observed == pytest.approx(vector["expected"]["delta_SNSR"], abs=vector["tol"])
    assert resampling.p_value(null, observed, exact=True) == pytest.approx(vector["expected"]["p_exact"])


def test_the_sign_flip_test_agrees_with_scipy() -> None:
    differences = np.random.default_rng(5).normal(0.3, 1, (9, 1))
    null, exact = resampling.flipped_means(differences, 1000, random())
    expected = permutation_test((differences[:, 0],), np.mean, permutation_type="samples", alternative="greater")
    assert exact
    assert resampling.p_value(null[:, 0], float(differences.mean()), exact=True) == pytest.approx(expected.pvalue)


def test_the_bootstrap_has_the_error_of_a_mean_and_leaves_missing_cells_out() -> None:
    rows = np.random.default_rng(6).normal(0, 1, (200, 2))
    rows[:100, 1] = np.nan
    drawn = resampling.bootstrap_means(rows, 4000, random())
    errors = [rows[:, 0].std() / math.sqrt(200), rows[100:, 1].std() / math.sqrt(100)]
    assert drawn.std(axis=0) == pytest.approx(errors, rel=0.1)
