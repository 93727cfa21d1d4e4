"""Intervals and minimum detectable effects of an estimate with a standard error."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_fairness.stats import intervals
from tests.support.oracles import vectors


@pytest.mark.parametrize("case", vectors("mde_paired_mean"))
def test_the_minimum_detectable_effect_agrees_with_the_worked_vectors(case: dict[str, Any]) -> None:
    given_ = case["input"]
    error = given_["sd_diff"] / given_["n_units"] ** 0.5
    found = intervals.minimum_detectable(error, given_["alpha_one_sided"], given_["power"])
    assert found == pytest.approx(case["expected"]["mde"], abs=case["tol"])


def test_a_change_that_is_found_also_exceeds_the_tolerance() -> None:
    found = intervals.minimum_detectable(1.0, 0.01, tolerance=5.0)
    assert found == pytest.approx(5 + intervals.quantile(0.8)), "four of five estimates exceed the tolerance"
    assert intervals.minimum_detectable(1.0, 0.01, tolerance=1.0) == intervals.minimum_detectable(1.0, 0.01)


def test_few_units_take_quantiles_of_students_t() -> None:
    assert intervals.quantile(0.975, 3) == pytest.approx(3.1824, abs=1e-4)
    assert intervals.quantile(0.95, 1e9) == pytest.approx(intervals.quantile(0.95))
    low, high = intervals.interval(1.0, 0.5, degrees_of_freedom=3)
    assert (low, high) == pytest.approx((1 - 0.5 * 3.1824, 1 + 0.5 * 3.1824), abs=1e-4)


def test_an_interval_is_symmetric_about_its_estimate() -> None:
    assert intervals.interval(1.0, 0.5) == pytest.approx((1 - 0.5 * 1.959964, 1 + 0.5 * 1.959964), abs=1e-6)
