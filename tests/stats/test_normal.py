from __future__ import annotations

from typing import Any

import pytest

from pytest_fairness.stats import normal
from tests.oracles import vectors


@pytest.mark.parametrize("case", vectors("mde_paired_mean"))
def test_minimum_detectable_effect(case: dict[str, Any]) -> None:
    given_ = case["input"]
    error = given_["sd_diff"] / given_["n_units"] ** 0.5
    found = normal.minimum_detectable(error, given_["alpha_one_sided"], given_["power"])
    assert found == pytest.approx(case["expected"]["mde"], abs=case["tol"])


def test_half_the_effect_takes_four_times_the_units() -> None:
    assert normal.times_more_units(0.2, 0.1) == pytest.approx(4)
    assert normal.times_more_units(0.05, 0.1) == 1


def test_an_interval_holds_its_estimate_in_the_middle() -> None:
    assert normal.interval(1.0, 0.5) == pytest.approx((1 - 0.5 * 1.959964, 1 + 0.5 * 1.959964), abs=1e-6)
