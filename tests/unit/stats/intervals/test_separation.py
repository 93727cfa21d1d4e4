"""Distances between two groups' scores: errors, changes without a ceiling, and the accuracies that show them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from pytest_fairness.stats.intervals import Separation, accuracy, separation_change

sizes = st.integers(8, 20000)
separations = st.builds(Separation.of, st.floats(-2, 12), st.floats(0, 0.5), sizes, sizes)


@given(separations)
def test_an_interval_holds_its_value_and_ends_within_0_and_1(separation: Separation) -> None:
    estimate = separation.estimate
    assert 0 <= estimate.interval[0] <= estimate.value <= estimate.interval[1] <= 1
    assert separation.standard_error > 0


@given(separations, separations)
def test_a_change_back_is_the_same_change_with_the_other_sign(first: Separation, second: Separation) -> None:
    there, back = separation_change(first, second), separation_change(second, first)
    assert there.value == pytest.approx(-back.value, abs=1e-12)
    assert there.standard_error == pytest.approx(back.standard_error)
    assert -0.5 <= there.interval[0] <= there.value <= there.interval[1] <= 0.5


@given(st.floats(-2, 10), st.floats(0.01, 2))
def test_a_value_keeps_its_distance_and_error(d_prime: float, error: float) -> None:
    shown = Separation(d_prime, error).estimate
    kept = Separation.of_accuracy(shown.value, shown.standard_error)
    assert kept.d_prime == pytest.approx(d_prime, abs=1e-3)
    assert kept.standard_error == pytest.approx(error, rel=1e-2)


def test_a_change_from_chance_is_the_difference_and_one_near_certainty_is_larger() -> None:
    def change(now: float, then: float) -> float:
        return separation_change(Separation.of_accuracy(now, 0.0001), Separation.of_accuracy(then, 0.0001)).value

    assert change(0.65, 0.5) == pytest.approx(0.15)
    assert change(0.65, 0.3) == pytest.approx(0.15)
    assert change(0.2, 0.4) == 0
    assert change(0.996, 0.894) == pytest.approx(norm.cdf(norm.ppf(0.996) - norm.ppf(0.894)) - 0.5)
    assert change(0.996, 0.894) > change(0.6, 0.5)


def test_the_error_is_the_spread_of_standardised_differences() -> None:
    random, distance, n = np.random.default_rng(1), 4.0, 30
    marked, unmarked = random.normal(distance, 1, (4000, n)), random.normal(0, 1, (4000, n))
    within = np.sqrt((marked.var(axis=1, ddof=1) + unmarked.var(axis=1, ddof=1)) / 2)
    found = (marked.mean(axis=1) - unmarked.mean(axis=1)) / within
    assert Separation.of(distance, 0.0, n, n).standard_error == pytest.approx(found.std(), rel=0.05)
    assert Separation.of(0.0, 0.4, n, n).standard_error == pytest.approx(0.4)


@pytest.mark.parametrize("z", [0.4, 1.0, 3.0])
def test_the_spread_of_floored_distances(z: float) -> None:
    draws = np.maximum(np.random.default_rng(1).normal(z - 0.4, 1, 400_000), 0)
    assert Separation(z, 1.0).floored_error == pytest.approx(draws.std(), rel=0.01)


def test_bounds_are_compared_with_a_limit_in_standard_deviations() -> None:
    """At 0.99, a bound of the accuracy itself would be close to the limit however wide the interval is."""
    separation = Separation(2 * norm.ppf(0.99), 1.0)
    bounds = separation.bounds(0.8, alpha=0.01, beta=0.05)
    apart = 2 * (norm.ppf(0.99) - norm.ppf(0.8))
    assert bounds["lower"] - 0.8 == pytest.approx(norm.cdf((apart - norm.ppf(0.99)) / 2) - 0.5)
    assert bounds["upper"] - 0.8 == pytest.approx(norm.cdf((apart + norm.ppf(0.95)) / 2) - 0.5)
    assert accuracy(0.0) == 0.5
    assert math.isclose(accuracy(2 * norm.ppf(0.8)), 0.8)
