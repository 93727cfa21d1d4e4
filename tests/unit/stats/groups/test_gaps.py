"""Bounds of the largest of many differences and of a standard deviation of means."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from pytest_fairness.stats import gaps, intervals


def bounds_of(means: np.ndarray, alpha: float, beta: float) -> tuple[float, float]:
    """Bounds of the range of means whose differences have a standard error of 1."""
    differences = np.array([means[first] - means[second] for first, second in combinations(range(len(means)), 2)])
    return gaps.largest_bounds(differences, np.ones(len(differences)), alpha, beta)


def test_two_groups_have_the_bounds_of_their_difference() -> None:
    assert bounds_of(np.array([0.0, 5.0]), 0.01, 0.05) == pytest.approx(
        (5 - intervals.quantile(0.99), 5 + intervals.quantile(0.95))
    )
    assert bounds_of(np.zeros(2), 0.01, 0.05) == pytest.approx((0, intervals.quantile(0.95)))


@pytest.mark.parametrize("groups", [2, 4, 8])
@pytest.mark.parametrize("gap", [0.0, 1.0, 4.0])
def test_the_range_of_groups_is_outside_its_bounds_as_rarely_as_planned(groups: int, gap: float) -> None:
    random = np.random.default_rng(groups)
    truth = np.zeros(groups)
    truth[0] = gap
    drawn = truth + random.normal(size=(4000, groups)) / np.sqrt(2)
    found = np.array([bounds_of(means, 0.05, 0.05) for means in drawn])
    # With 4,000 draws 6 % is three standard errors above 5 %. A gap of 0 may appear in either direction.
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
        lower, upper = gaps.standard_deviation_bounds(
            rows.mean(axis=0), np.cov(rows.T) / units, 0.025, 0.025, units - 1
        )
        assert 0 <= lower <= upper
        held += lower <= truth <= upper
    assert held / repeats >= 0.92


def test_bounds_without_error_are_the_estimate() -> None:
    means = np.array([0.1, 0.2, 0.6])
    assert gaps.standard_deviation_bounds(means, np.zeros((3, 3)), 0.01, 0.05, 10) == (means.std(), means.std())
