"""Exact tests of pairs against worked vectors and their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.stats import resampling
from tests.support.oracles import vectors


@pytest.mark.parametrize("vector", vectors("mcnemar"))
def test_mcnemar_agrees_with_the_worked_vectors(vector: dict[str, Any]) -> None:
    b, c = vector["input"]["b"], vector["input"]["c"]
    assert resampling.mcnemar(b, c) == pytest.approx(vector["expected"]["p_greater"], abs=vector["tol"])
    assert resampling.mcnemar(b, c, two_sided=True) == pytest.approx(
        vector["expected"]["p_two_sided"], abs=vector["tol"]
    )


@pytest.mark.parametrize("vector", vectors("paired_sign_flip"))
def test_sign_flip_agrees_with_the_worked_vectors(vector: dict[str, Any]) -> None:
    differences = np.array(vector["input"]["diff_current_minus_baseline"])
    p = resampling.sign_flip(differences, 1999, resampling.generator("a test"))
    assert p == pytest.approx(vector["expected"]["p"], abs=vector["tol"])


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_tail_of_the_binomial(one_way: int, other_way: int) -> None:
    pairs = one_way + other_way
    tail = sum(math.comb(pairs, k) for k in range(one_way, pairs + 1)) / 2**pairs
    assert resampling.mcnemar(one_way, other_way) == pytest.approx(tail)
    assert resampling.mcnemar(one_way, other_way, two_sided=True) == resampling.mcnemar(
        other_way, one_way, two_sided=True
    )


def test_a_sampled_sign_flip_test_has_a_p_value_above_0() -> None:
    assert resampling.sign_flip(np.ones(200), 999, resampling.generator("a test")) == pytest.approx(1 / 1000)


def test_a_noisy_difference_hides_no_precise_one() -> None:
    random = np.random.default_rng(8)
    precise, noisy = random.normal(0.5, 1, 100), random.standard_t(2, 100) * 20
    alone = resampling.sign_flips(precise[:, None], 4000, np.random.default_rng(1), two_sided=True)
    both = resampling.sign_flips(np.column_stack([precise, noisy]), 4000, np.random.default_rng(1), two_sided=True)
    assert alone[0] <= both[0] <= 0.001
    assert both[1] > 0.05
    none = resampling.sign_flips(np.column_stack([precise, 0 * noisy]), 4000, np.random.default_rng(1), two_sided=True)
    assert none.tolist() == [alone[0], 1.0]


def test_the_family_of_all_pairs_keeps_its_level() -> None:
    random, rejected = np.random.default_rng(9), 0
    first, second = np.triu_indices(5, 1)
    for _ in range(400):
        rows = random.exponential(1, (30, 5)) * np.array([1, 1, 1, 1, 8])
        differences = rows[:, first] - rows[:, second] - 7 * (second == 4) * -1.0
        rejected += resampling.sign_flips(differences, 999, random, two_sided=True).min() <= 0.05
    # 5 % of 400 are 20; more than 34 have a probability of 0.1 % only.
    assert rejected <= 34
