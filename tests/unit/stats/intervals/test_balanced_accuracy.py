"""Errors of accuracies, and changes of them on the log-odds scale."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.stats.intervals import balanced_accuracy
from pytest_fairness.stats.intervals.balanced_accuracy import Accuracy, accuracy_change

sizes = st.integers(8, 20000)
estimates = st.builds(Accuracy.of, st.floats(0, 1), sizes, st.floats(0, 0.2))


@given(estimates)
def test_an_interval_holds_its_value_and_ends_within_0_and_1(accuracy: Accuracy) -> None:
    low, high = accuracy.interval
    assert 0 <= low <= accuracy.value <= high <= 1
    assert accuracy.standard_error > 0


@given(estimates, estimates)
def test_a_change_back_is_the_same_change_with_the_other_sign(first: Accuracy, second: Accuracy) -> None:
    there, back = accuracy_change(first, second), accuracy_change(second, first)
    assert there.value == pytest.approx(-back.value, abs=1e-12)
    assert there.standard_error == pytest.approx(back.standard_error)
    assert -0.5 <= there.interval[0] <= there.value <= there.interval[1] <= 0.5


@given(sizes, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_accuracy_is_no_smaller_change(n: int, one: float, other: float) -> None:
    low, high = sorted((one, other))
    baseline = Accuracy.of(0.7, n, 0.05)
    changes = [accuracy_change(Accuracy.of(value, n, 0.05), baseline).value for value in (low, high)]
    assert changes[0] <= changes[1]


def test_a_change_from_chance_is_the_difference_and_one_near_the_ceiling_is_larger() -> None:
    def change(now: float, then: float) -> float:
        return accuracy_change(Accuracy.of(now, 10**6, 0.0), Accuracy.of(then, 10**6, 0.0)).value

    assert change(0.65, 0.5) == pytest.approx(0.15, abs=1e-4)
    assert change(0.65, 0.3) == pytest.approx(0.15, abs=1e-4)
    assert change(0.2, 0.4) == 0
    assert change(0.996, 0.894) == pytest.approx(1 / (1 + math.exp(-3.3845)) - 0.5, abs=1e-3)
    assert change(0.996, 0.894) > change(0.6, 0.5)


def test_the_error_at_chance_is_that_of_permuted_labels() -> None:
    assert Accuracy.of(0.5, 100, 0.07).standard_error == pytest.approx(0.07, rel=0.01)
    assert Accuracy.of(0.5, 100, 0.0).standard_error == pytest.approx(0.05, rel=0.01)
    assert Accuracy.of(0.95, 10**4, 0.0065).standard_error == pytest.approx(math.sqrt(0.95 * 0.05) / 100, rel=0.07)


@pytest.mark.parametrize("z", [0.0, 0.5, 1.0, 3.0])
def test_the_spread_of_floored_estimates(z: float) -> None:
    draws = np.maximum(np.random.default_rng(1).normal(z, 1, 400_000), 0)
    assert balanced_accuracy._floored_sd(z) == pytest.approx(draws.std(), rel=0.01)


def test_unequal_groups_are_worth_fewer_answers() -> None:
    assert balanced_accuracy.effective_size(50, 50) == pytest.approx(100)
    assert balanced_accuracy.effective_size(10, 90) == pytest.approx(36)
