"""Ratios of two independent shares."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.stats import intervals
from tests.support.oracles import vectors

Z = intervals.quantile(0.975)


def interval(hits: float, n: float, other_hits: float, other_n: float) -> tuple[float, float]:
    return intervals.ratio_interval(*intervals.log_ratio(hits, n, other_hits, other_n), Z)


@pytest.mark.parametrize("vector", [v for v in vectors("impact_ratio") if v.id != "everybody_selected_in_one"])
def test_intervals_agree_with_statsmodels(vector) -> None:  # type: ignore[no-untyped-def]  # a vector is plain JSON
    groups, expected = vector["input"]["groups"], vector["expected"]
    for group, ends in expected["ratio_interval"].items():
        assert interval(*groups[group], *groups[expected["most_selected"]]) == pytest.approx(ends, abs=vector["tol"])


def test_an_interval_worked_by_hand() -> None:
    # 60 of 250 and 100 of 250: √(1/60 − 1/250 + 1/100 − 1/250) = √0.018667 = 0.13663; 0.6 × exp(±1.96 × 0.13663).
    logarithm, error = intervals.log_ratio(60, 250, 100, 250)
    assert (math.exp(logarithm), error) == pytest.approx((0.6, 0.13663), abs=1e-5)
    assert interval(60, 250, 100, 250) == pytest.approx((0.459, 0.784), abs=5e-4)


COUNTS = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS, COUNTS)
def test_the_inverse_ratio_has_the_inverse_interval(first: tuple[int, int], second: tuple[int, int]) -> None:
    low, high = interval(*first, *second)
    assert 0 < low < high < math.inf
    assert interval(*second, *first) == pytest.approx((1 / high, 1 / low))
