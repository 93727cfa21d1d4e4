"""Errors of changes between two runs of answers in cells."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_fairness.stats.gaps import change_error


def test_one_cell_has_the_error_of_two_means() -> None:
    values = np.array([0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    current = np.repeat([True, False], 4)
    error, degrees = change_error(values, current, np.zeros(8, dtype=np.int64), np.where(current, 0.25, -0.25))
    pooled = (3 * values[:4].var(ddof=1) + 3 * values[4:].var(ddof=1)) / 6
    assert error == pytest.approx(np.sqrt(pooled * (1 / 4 + 1 / 4)))
    assert degrees == pytest.approx(6)


def test_differences_between_cells_are_no_error() -> None:
    values = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    current = np.repeat([True, False], 4)
    assert change_error(values, current, np.array([0, 0, 1, 1] * 2), np.where(current, 0.25, -0.25)) == (0.0, None)


@pytest.mark.parametrize("trials", [1, 2, 10])
def test_the_error_is_the_standard_deviation_of_the_change(trials: int) -> None:
    """Forty cells of which some are always refused, asked once or several times."""
    random = np.random.default_rng(trials)
    chances = np.repeat(random.choice([0.02, 0.5, 0.97], size=40), trials)
    current = np.repeat([True, False], len(chances))
    numbers = np.tile(np.repeat(np.arange(40), trials), 2)
    coefficients = np.where(current, 1, -1) / len(chances)
    changes, errors = [], []
    for _ in range(600):
        values = (random.random(2 * len(chances)) < np.tile(chances, 2)).astype(np.float64)
        changes.append(float(coefficients @ values))
        errors.append(change_error(values, current, numbers, coefficients)[0])
    assert 0.9 < np.mean(errors) / np.std(changes) < 1.1
