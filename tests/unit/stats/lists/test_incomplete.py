"""Comparison of columns with missing numbers, checked against least squares and by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_fairness.stats import intervals, resampling
from pytest_fairness.stats.gaps import mean_error
from pytest_fairness.stats.ranked_lists import compared_columns, complete_rows, row_contributions
from pytest_fairness.stats.resampling import Floats


def table(seed: int, units: int = 40, columns: int = 4, missing: float = 0.0) -> Floats:
    random = np.random.default_rng(seed)
    rows = random.normal(size=(units, columns)) + 3 * random.normal(size=(units, 1)) + np.arange(columns)
    rows[random.random(rows.shape) < missing] = np.nan
    return rows


def test_complete_tables_stay_as_they_are() -> None:
    rows = table(1)
    assert (complete_rows(rows) == rows).all()
    with_gap = rows.copy()
    with_gap[0, 1:] = np.nan
    assert (complete_rows(with_gap)[1:] == rows[1:]).all()
    assert np.isnan(complete_rows(with_gap)[0]).all()


@pytest.mark.parametrize("missing", [0.1, 0.4])
def test_means_are_least_squares_estimates(missing: float) -> None:
    rows = table(2, missing=missing)
    used = rows[(~np.isnan(rows)).sum(axis=1) >= 2]
    unit, column = np.nonzero(~np.isnan(used))
    dummies = np.hstack([np.eye(len(used))[unit], np.eye(4)[column]])
    fitted = np.linalg.lstsq(dummies, used[unit, column], rcond=None)[0][-4:]
    pseudo = complete_rows(rows)
    means = np.nanmean(pseudo, axis=0)
    assert means - means.mean() == pytest.approx(fitted - fitted.mean(), abs=0.02)
    assert np.isnan(pseudo).any(axis=1).sum() == len(rows) - len(used)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_contributions_add_up_to_the_differences_of_means(missing: float) -> None:
    rows = table(5, missing=missing)
    means, contributed = (np.nanmean(of(rows), axis=0) for of in (complete_rows, row_contributions))
    assert contributed - contributed[0] == pytest.approx(means - means[0], abs=0.02 if missing else 1e-12)


def test_random_signs_keep_their_level_if_a_column_has_few_numbers() -> None:
    p_values = []
    for seed in range(400):
        rows: Floats = table(seed) - np.arange(4)
        rows[9:, 3] = np.nan
        differences = np.diff(row_contributions(rows)[:, 2:])
        p_values.append(resampling.sign_flips(differences, 512, np.random.default_rng(seed), two_sided=True)[0])
    assert 0.02 <= np.mean(np.array(p_values) <= 0.05) <= 0.07


def test_columns_that_share_no_unit_cannot_be_compared() -> None:
    rows = table(3)
    rows[:20, :2] = rows[20:, 2:] = np.nan
    assert np.isnan(complete_rows(rows)).all()


@pytest.mark.parametrize(("few", "covered"), [(12, 0.9), (30, 0.93)])
def test_intervals_of_a_column_with_few_numbers_cover(few: int, covered: float) -> None:
    hits = []
    for seed in range(400):
        rows = table(seed)
        rows[few:, 3] = np.nan
        differences = np.diff(complete_rows(rows)[:, 2:])[:, 0]
        error = mean_error(differences)
        low, high = intervals.interval(float(differences.mean()), error, degrees_of_freedom=len(rows) - 1)
        hits.append(low <= 1 <= high)
    assert covered <= np.mean(hits) <= 0.98


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((40, 40, 40, 40), [0, 1, 2, 3]),
        ((40, 3, 40, 7), [0, 2, 3]),
        ((40, 0, 40, 6), [0, 2]),
        ((5, 5, 4, 5), [0, 1, 2, 3]),
        ((5, 5, 2, 5), [0, 1, 3]),
        ((3, 2, 0, 0), [0, 1]),
    ],
)
def test_columns_with_too_few_numbers_are_left_out(counts: tuple[int, ...], expected: list[int]) -> None:
    rows = table(4)
    for column, count in enumerate(counts):
        rows[count:, column] = np.nan
    assert compared_columns(rows, needed=7, minimum=4) == expected
