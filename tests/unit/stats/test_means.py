"""Errors and bounds of means of scores between 0 and 1."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.stats import means, proportions

SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=40).map(np.array)


def test_equal_scores_still_have_an_error() -> None:
    # Agresti and Coull: 21 of 22.
    expected = math.sqrt(21 / 22 * (1 / 22) / 22)
    for score in (0.0, 1.0):
        assert means.standard_error(np.full(20, score)) == pytest.approx(expected)
    assert means.standard_error(np.full(20, 0.5)) > 0


def test_the_error_is_that_of_the_sample_where_scores_vary() -> None:
    scores = np.array([0.0, 1.0] * 10)
    assert means.standard_error(scores) == pytest.approx(scores.std(ddof=1) / math.sqrt(20))


@given(SCORES)
def test_errors_are_symmetric_and_never_vanish(scores: np.ndarray) -> None:
    error = means.standard_error(scores)
    assert 0 < error <= 0.5
    assert error == pytest.approx(means.standard_error(1 - scores))
    mean, shrunken_error = means.shrunken(scores)
    assert 0 < mean < 1
    assert means.effective_size(mean, shrunken_error) >= len(scores)


@given(st.integers(0, 30), st.integers(1, 30))
def test_the_interval_of_yes_and_no_is_wilsons(hits: int, more: int) -> None:
    n = hits + more
    assert means.interval(hits / n, n, 1.96) == pytest.approx(proportions.wilson(hits, n, 1.96))


def test_bounds_of_few_answers_keep_their_level() -> None:
    """The chance that a model at the limit of 0.7 is beyond it at the level 0.01, computed exactly."""
    from scipy.stats import binom

    for n in (8, 20, 50):
        beyond = 0.0
        for hits in range(n + 1):
            scores = np.array([1.0] * hits + [0.0] * (n - hits))
            mean, _ = means.shrunken(scores)
            size = means.effective_size(mean, means.standard_error(scores))
            if means.interval(hits / n, size, 2.3263)[0] > 0.7:
                beyond += float(binom.pmf(hits, n, 0.7))
        assert beyond <= 0.015
