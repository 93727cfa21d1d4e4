"""Bounds of the largest of many differences and of a standard deviation of means."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pytest_fairness.stats import blocks, gaps, normal

MEANS = arrays(np.float64, st.integers(2, 7), elements=st.floats(0, 1, width=16))


def bounds_of(means: np.ndarray, alpha: float, beta: float) -> tuple[float, float]:
    """Bounds of the range of means whose differences have a standard error of 1."""
    differences = np.array([means[first] - means[second] for first, second in combinations(range(len(means)), 2)])
    return gaps.largest_bounds(differences, np.ones(len(differences)), alpha, beta)


def test_two_groups_have_the_bounds_of_their_difference() -> None:
    assert bounds_of(np.array([0.0, 5.0]), 0.01, 0.05) == pytest.approx(
        (5 - normal.quantile(0.99), 5 + normal.quantile(0.95))
    )
    assert bounds_of(np.zeros(2), 0.01, 0.05) == pytest.approx((0, normal.quantile(0.95)))


@pytest.mark.parametrize("groups", [2, 4, 8])
@pytest.mark.parametrize("gap", [0.0, 1.0, 4.0])
def test_the_range_of_many_groups_is_hardly_ever_outside_its_bounds(groups: int, gap: float) -> None:
    random = np.random.default_rng(groups)
    truth = np.zeros(groups)
    truth[0] = gap
    drawn = truth + random.normal(size=(4000, groups)) / np.sqrt(2)
    found = np.array([bounds_of(means, 0.05, 0.05) for means in drawn])
    # 4,000 draws tell 5 % from 6 % by three standard errors. A gap of 0 may seem to be one in either direction.
    assert np.mean(found[:, 0] > gap) < (0.061 if gap else 0.115)
    assert np.mean(found[:, 1] < gap) < 0.061


@pytest.mark.parametrize("gap", [0.0, 0.5, 2.0, 6.0])
@pytest.mark.parametrize(("values", "units"), [(2, 20), (4, 50), (8, 50)])
def test_the_interval_of_a_spread_covers_it(values: int, units: int, gap: float) -> None:
    random = np.random.default_rng(values)
    means = np.zeros(values)
    means[0] = gap
    truth, repeats, held = float(means.std()), 400, 0
    for _ in range(repeats):
        rows = means + random.normal(size=(units, values)) * np.sqrt(units / 2)
        lower, upper = gaps.spread_bounds(rows.mean(axis=0), np.cov(rows.T) / units, 0.025, 0.025, units - 1)
        assert 0 <= lower <= upper
        held += lower <= truth <= upper
    assert held / repeats >= 0.92


def test_means_without_error_have_the_spread_that_they_have() -> None:
    means = np.array([0.1, 0.2, 0.6])
    assert gaps.spread_bounds(means, np.zeros((3, 3)), 0.01, 0.05, 10) == (means.std(), means.std())


@given(MEANS, arrays(np.float64, 7, elements=st.floats(-1, 1, width=16)))
def test_slopes_are_gradients(means: np.ndarray, direction: np.ndarray) -> None:
    """Where the statistic is smooth: no two means alike, none at the mean of all."""
    direction = direction[: len(means)]
    centred = np.abs(means - means.mean())
    apart = np.abs(np.subtract.outer(means, means))[~np.eye(len(means), dtype=bool)]
    if min(apart.min(), centred.min()) < 1e-3:
        return
    step = 1e-6
    for statistic, slope in ((blocks.value_spread, blocks.spread_slope), (blocks.evenness, blocks.evenness_slope)):
        moved = (statistic(means + step * direction) - statistic(means - step * direction)) / (2 * step)
        assert moved == pytest.approx(slope(means) @ direction, abs=1e-4)


def test_slopes_of_equal_means_are_those_of_the_first_one_moving() -> None:
    equal = np.full(4, 0.5)
    for statistic, slope in ((blocks.value_spread, blocks.spread_slope), (blocks.evenness, blocks.evenness_slope)):
        moved = equal + np.array([0.1, 0, 0, 0])
        assert statistic(moved) - statistic(equal) == pytest.approx(0.1 * slope(equal)[0])
