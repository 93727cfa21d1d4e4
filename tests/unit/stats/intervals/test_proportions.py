"""Intervals and standard errors of shares and of their differences, against worked vectors and scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from pytest_fairness.stats import intervals
from tests.support.oracles import vectors


@pytest.mark.parametrize("case", vectors("binomial_ci"))
def test_wilson_agrees_with_the_worked_vectors(case: dict[str, Any]) -> None:
    given_ = case["input"]
    found = intervals.wilson(given_["x"], given_["n"], intervals.quantile((1 + given_["level"]) / 2))
    assert found == pytest.approx(case["expected"]["wilson"], abs=case["tol"])


@pytest.mark.parametrize("case", vectors("newcombe_diff"))
def test_newcombe_agrees_with_the_worked_vectors(case: dict[str, Any]) -> None:
    given_, expected = case["input"], case["expected"]
    z = intervals.quantile((1 + given_["level"]) / 2)
    found = intervals.newcombe(given_["x_cur"], given_["n_cur"], given_["x_base"], given_["n_base"], z)
    assert found == pytest.approx((expected["low"], expected["high"]), abs=case["tol"])


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy(share: tuple[int, int]) -> None:
    hits, n = share
    expected = binomtest(hits, n).proportion_ci(0.95, method="wilson")
    found = intervals.wilson(hits, n, intervals.quantile(0.975))
    assert found == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_the_interval_of_no_answers_is_0_to_1() -> None:
    assert intervals.wilson(0, 0, 1.96) == (0.0, 1.0)


@given(st.integers(1, 50), st.integers(1, 50))
def test_the_error_of_a_difference_is_above_0_for_extreme_shares(n: int, other: int) -> None:
    assert intervals.difference_error(0, n, 0, other) > 0
    assert intervals.difference_error(n, n, 0, other) > 0


@pytest.mark.parametrize("share", [0.0, 0.03, 0.1, 0.4])
def test_the_interval_of_a_paired_difference_of_shares_covers_it(share: float) -> None:
    """The coverage is exact, for a hundred units of which none differs in the other direction."""
    held = 0.0
    for differing in range(101):
        low, high = intervals.paired_interval(np.repeat([1.0, 0.0], [differing, 100 - differing]), 1.96)
        held += float(binom.pmf(differing, 100, share)) * (low <= share <= high)
    assert held > 0.93
