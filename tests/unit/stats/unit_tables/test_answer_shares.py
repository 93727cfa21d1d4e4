"""Statistics of shares of answers in clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.stats.resampling import Floats
from pytest_fairness.stats.unit_statistics import RightShare, ShareDifferenceOfAnswers
from pytest_fairness.stats.unit_tables import Sample, UnitChange

DIFFERENCE = ShareDifferenceOfAnswers()


def sample(rows: list[list[float]]) -> Sample:
    table = np.array(rows, dtype=np.float64)
    return Sample(table, table.mean(axis=0), least_error=0.01)


@st.composite
def tables(draw: st.DrawFn) -> Floats:
    """Return a table of several clusters: hits of two shares, and their sizes."""
    rows = []
    for _ in range(draw(st.integers(2, 8))):
        sizes = draw(st.integers(1, 20)), draw(st.integers(1, 20))
        rows.append([float(draw(st.integers(0, size))) for size in sizes] + [float(size) for size in sizes])
    return np.array(rows)


def test_each_answer_has_the_same_weight() -> None:
    found = sample([[1, 3, 4, 4], [6, 0, 12, 12]])
    assert float(DIFFERENCE.value(found.means)) == pytest.approx(7 / 16 - 3 / 16)
    right = sample([[3, 4], [6, 12]])
    assert float(RightShare().value(right.means)) == pytest.approx(9 / 16)
    # Delta method by hand: residuals 3 − 4 · 9/16 and 6 − 12 · 9/16, divided by the mean size 8.
    residuals = np.array([3 - 4 * 9 / 16, 6 - 12 * 9 / 16]) / 8
    assert RightShare().standard_error(right) == pytest.approx(residuals.std(ddof=1) / np.sqrt(2))


@given(rows=tables())
def test_the_difference_is_bounded_and_changes_its_sign_with_the_shares(rows: Floats) -> None:
    means = rows.mean(axis=0)
    value = float(DIFFERENCE.value(means))
    assert -1 <= value <= 1
    assert float(DIFFERENCE.value(means[[1, 0, 3, 2]])) == pytest.approx(-value)
    low, high = DIFFERENCE.interval(Sample(rows, means, 0.01))
    assert -1 <= low <= value + 1e-12
    assert value - 1e-12 <= high <= 1


@given(rows=tables())
def test_gradients_agree_with_finite_differences(rows: Floats) -> None:
    means, step = rows.mean(axis=0), 1e-6
    gradient = DIFFERENCE.group_gradients(means)
    for column in range(4):
        moved = means.copy()
        moved[column] += step
        expected = (DIFFERENCE.groups(moved) - DIFFERENCE.groups(means)) / step
        assert gradient[:, column] == pytest.approx(expected, abs=1e-3)


def test_equal_clusters_have_the_least_error() -> None:
    assert DIFFERENCE.standard_error(sample([[2, 2, 4, 4]] * 5)) == 0.01
    # Clusters of different sizes, in which all answers are right: the error is 0 except for rounding.
    assert RightShare().standard_error(sample([[3, 3], [7, 7], [11, 11]])) == 0.01


def test_a_share_without_answers_has_no_value() -> None:
    assert np.isnan(float(DIFFERENCE.value(sample([[0, 0, 0, 0], [0, 0, 0, 0]]).means)))


def test_the_change_is_the_difference_of_the_values_in_their_direction() -> None:
    before = np.array([[1.0, 3.0, 4.0, 4.0]] * 8)
    after = np.array([[0.0, 4.0, 4.0, 4.0]] * 8)
    change = UnitChange.of(DIFFERENCE, after, before, least_error=0.01, seed="x")
    assert change.value == pytest.approx(0.5)
    assert change.p_value == pytest.approx(2**-8)
    assert UnitChange.of(DIFFERENCE, before, after, least_error=0.01, seed="x").value == pytest.approx(-0.5)


def test_a_gap_that_changes_sides_is_reported() -> None:
    before = np.array([[1.0, 3.0, 4.0, 4.0]] * 8)
    change = UnitChange.of(DIFFERENCE, before[:, [1, 0, 3, 2]], before, least_error=0.01, seed="x")
    assert change.side_change is not None
    assert (change.side_change.current, change.side_change.baseline) == pytest.approx((0.5, -0.5))


def test_fewer_right_answers_are_a_positive_change() -> None:
    before, after = np.array([[4.0, 4.0]] * 8), np.array([[3.0, 4.0]] * 8)
    assert UnitChange.of(RightShare(), after, before, least_error=0.01, seed="x").value == pytest.approx(0.25)
