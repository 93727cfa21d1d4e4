"""Error rates of limits, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import det_curve

from pytest_fairness.stats import gaps

CASES = st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=2, max_size=40).filter(
    lambda cases: len({problematic for _, problematic in cases}) == 2
)


@given(CASES)
def test_error_rates_agree_with_scikit_learn(cases: list[tuple[int, bool]]) -> None:
    scores = np.array([score for score, _ in cases], dtype=np.float64)
    problematic = np.array([label for _, label in cases])
    theirs = {
        (round(float(false_positive), 12), round(float(missed), 12))
        for false_positive, missed, _ in zip(*det_curve(problematic, scores), strict=True)
    }
    ours = {(round(each.false_positive, 12), round(each.missed, 12)) for each in gaps.error_curve(scores, problematic)}
    # Theirs leaves limits out beyond which nothing changes for the better; what it has we have, but the ends.
    assert {pair for pair in theirs if pair[0] > 0 and pair[1] < 1 and pair != (1, 0)} <= ours | {(1.0, 0.0)}


def test_a_limit_that_separates_is_found() -> None:
    scores, problematic = np.array([0.1, 0.2, 0.3, 0.7, 0.8]), np.array([False, False, False, True, True])
    found = gaps.best_limit(gaps.error_curve(scores, problematic))
    assert found is not None
    assert [found.limit, found.false_positive, found.missed] == pytest.approx([0.5, 0, 0])
    assert list(found.false_positive_interval) == pytest.approx([0, 0.5615], abs=1e-4)


def test_no_limit_is_best_if_none_is_good() -> None:
    scores = np.array([0.1, 0.9, 0.2, 0.8])
    assert gaps.best_limit(gaps.error_curve(scores, np.array([False, False, True, True]))) is None


def test_scores_that_are_all_equal_have_no_limit() -> None:
    assert gaps.error_curve(np.ones(4), np.array([True, False, True, False])) == []
