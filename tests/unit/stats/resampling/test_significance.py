"""P-values and thresholds from drawn null distributions, and adjusted p-values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from pytest_fairness.stats import resampling


def test_a_sampled_p_value_is_above_0_and_ties_count() -> None:
    null = np.array([0.0, 1.0, 2.0, 3.0])
    assert resampling.p_value(null, 5.0, exact=False) == pytest.approx(1 / 5)
    assert resampling.p_value(null, 3.0, exact=True) == pytest.approx(1 / 4)


def test_a_tail_with_an_infinite_draw_is_not_extrapolated() -> None:
    null = np.append(np.random.default_rng(5).normal(size=1998), -np.inf)
    assert resampling.p_value(null, 9.0, exact=False) == pytest.approx(1 / 2000)


def test_a_threshold_below_the_resolution_of_the_draws_is_extrapolated() -> None:
    random = np.random.default_rng(5)
    largest = random.normal(size=(1999, 300)).max(axis=1)
    assert resampling.threshold(largest, 0.01) == np.quantile(largest, 0.99, method="higher")
    threshold = resampling.threshold(largest, 1e-4)
    assert threshold >= largest.max()
    many = np.array([random.normal(size=(20_000, 300)).max(axis=1) for _ in range(5)])
    assert (many > threshold).mean() < 2e-4


@pytest.mark.parametrize("shape", ["normal", "sum of signs", "largest of many", "squares"])
@pytest.mark.parametrize("p_value", [0.0005, 0.0002, 0.0001])
def test_p_values_beyond_all_draws_agree_with_the_true_tail(shape: str, p_value: float) -> None:
    """Over 40 sets of 1,999 draws the median is within a factor of 2, and 90 % are above a quarter of the truth."""
    random = np.random.default_rng(0)

    def draw(count: int) -> NDArray[np.float64]:
        if shape == "normal":
            return random.normal(size=count)
        if shape == "sum of signs":
            weights = np.arange(1, 41) ** 0.5
            return np.asarray((2 * random.integers(0, 2, size=(count, 40)) - 1) @ weights)
        if shape == "largest of many":
            return np.asarray(np.abs(random.normal(size=(count, 100))).max(axis=1))
        return np.asarray((random.normal(size=(count, 20)) ** 2).sum(axis=1))

    exact = {
        "normal": norm.isf(p_value),
        "largest of many": norm.isf(-math.expm1(math.log1p(-p_value) / 100) / 2),
        "squares": chi2.isf(p_value, 20),
    }
    observed = float(exact[shape]) if shape in exact else float(np.quantile(draw(400_000), 1 - p_value))
    found: list[float] = []
    while len(found) < 40:
        null = draw(1999)
        if null.max() < observed:
            found.append(resampling.p_value(null, observed, exact=False))
    ratios = np.array(found) / p_value
    assert 0.5 <= np.median(ratios) <= 2
    assert np.mean(ratios > 1 / 4) >= 0.9


def test_equal_draws_give_the_smallest_resolved_p_value() -> None:
    assert resampling.p_value(np.zeros(1999), 2.0, exact=False) == pytest.approx(1 / 2000)
    assert resampling.p_value(np.repeat([0.0, 1.0], [1990, 9]), 1.0, exact=False) == pytest.approx(10 / 2000)


@given(st.floats(0, 1e6), st.integers(0, 5))
@settings(max_examples=30)
def test_a_tail_p_value_is_between_a_twentieth_and_the_whole_of_the_smallest_counted_one(
    beyond: float, seed: int
) -> None:
    null = np.random.default_rng(seed).gamma(2, size=1999)
    found = resampling.p_value(null, float(null.max()) + beyond + 1e-6, exact=False)
    assert 1 / 2000 / 20 <= found <= 1 / 2000


def test_holm_agrees_with_a_hand_computed_example() -> None:
    assert resampling.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert resampling.holm([]) == []
