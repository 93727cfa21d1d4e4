"""Standard errors and bounds of means of scores in 0..1."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.stats import gaps, intervals

SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=40).map(np.array)


def test_equal_scores_have_a_standard_error_above_0() -> None:
    # Agresti and Coull: 21 of 22 answers.
    expected = math.sqrt(21 / 22 * (1 / 22) / 22)
    for score in (0.0, 1.0):
        assert gaps.bounded_error(np.full(20, score)) == pytest.approx(expected)
    assert gaps.bounded_error(np.full(20, 0.5)) > 0


def test_the_error_is_that_of_the_sample_where_scores_vary() -> None:
    scores = np.array([0.0, 1.0] * 10)
    assert gaps.bounded_error(scores) == pytest.approx(scores.std(ddof=1) / math.sqrt(20))


@given(SCORES)
def test_errors_are_symmetric_and_above_0(scores: np.ndarray) -> None:
    error = gaps.bounded_error(scores)
    assert 0 < error <= 0.5
    assert error == pytest.approx(gaps.bounded_error(1 - scores))
    mean, shrunken_error = gaps.shrunken_mean_and_error(scores)
    assert 0 < mean < 1
    assert gaps.effective_size(mean, shrunken_error) >= len(scores)


def test_bounds_of_few_answers_keep_alpha() -> None:
    """The exact probability that a model at the limit of 0.7 is found beyond it at alpha 0.01 is at most 0.015."""
    from scipy.stats import binom

    for n in (8, 20, 50):
        beyond = 0.0
        for hits in range(n + 1):
            scores = np.array([1.0] * hits + [0.0] * (n - hits))
            mean, _ = gaps.shrunken_mean_and_error(scores)
            size = gaps.effective_size(mean, gaps.bounded_error(scores))
            if intervals.wilson(hits / n * size, size, 2.3263)[0] > 0.7:
                beyond += float(binom.pmf(hits, n, 0.7))
        assert beyond <= 0.015
