"""StereoSet's scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.audits.likelihood import mean_by_term, preferences, stereoset
from tests.support.oracles import vectors

NAN = float("nan")


@pytest.mark.parametrize("vector", vectors("stereoset"))
def test_scores_agree_with_the_worked_vectors(vector: dict[str, Any]) -> None:
    rows, expected = vector["input"]["rows"], vector["expected"]
    columns = [np.array([row[name] for row in rows]) for name in ("stereotype", "anti", "unrelated")]
    found = stereoset(columns[0], columns[1], columns[2], [row["target"] for row in rows])
    assert found.lms == pytest.approx(expected["LM Score"], abs=vector["tol"])
    assert found.ss == pytest.approx(expected["SS Score"], abs=vector["tol"])
    assert found.icat == pytest.approx(expected["ICAT Score"], abs=vector["tol"])


def test_a_model_with_equal_scores_has_no_stereotype_score() -> None:
    alike = np.zeros(6)
    terms = ["a", "a", "b", "b", "c", "c"]
    assert stereoset(alike, alike, alike, terms, ties="left out").ss is None
    published = stereoset(alike, alike, alike, terms)
    assert (published.ss, published.lms, published.icat) == (0, 0, 0)


def test_scores_within_the_tolerance_are_equal() -> None:
    first, second = np.array([0.0, 0.0, 0.0]), np.array([1e-5, -1e-5, -1e-3])
    assert preferences(first, second, tolerance=1e-4).tolist() == [0, 0, 100]
    left = preferences(first, second, ties="left out", tolerance=1e-4)
    assert np.isnan(left).tolist() == [True, True, False]


def test_missing_sentences_are_left_out_of_what_needs_them() -> None:
    found = stereoset(np.array([0.5, 0.5, NAN]), np.array([0.4, 0.6, 0.1]), np.array([0.1, NAN, 0.2]), ["a", "b", "c"])
    assert (found.ss, found.lms) == (50, 100), "LMS of the first alone, as the second has no unrelated sentence"
    pairs = stereoset(np.array([0.5]), np.array([0.4]), np.array([NAN]), ["a"])
    assert (pairs.ss, pairs.lms, pairs.icat) == (100, None, None)


def test_two_sentences_of_probability_0_have_equal_scores() -> None:
    assert np.isnan(preferences(np.array([-np.inf]), np.array([-np.inf]), ties="left out")).all()
    assert preferences(np.array([-1.0]), np.array([-np.inf])).tolist() == [100]


scores = st.lists(st.tuples(st.sampled_from("abc"), *[st.integers(-5, 5).map(float)] * 3), min_size=1, max_size=30)


@given(scores)
def test_exchanging_stereotypes_mirrors_the_score(rows: list[tuple[str, float, float, float]]) -> None:
    terms = [row[0] for row in rows]
    first, second, third = (np.array([row[column] for row in rows]) for column in (1, 2, 3))
    one = stereoset(first, second, third, terms, ties="left out")
    other = stereoset(second, first, third, terms, ties="left out")
    assert one.lms == pytest.approx(other.lms)
    if one.ss is None or other.ss is None:
        assert one.ss is other.ss is None
        return
    assert one.ss == pytest.approx(100 - other.ss)
    assert one.icat == pytest.approx(other.icat)
    assert one.icat is not None
    assert one.lms is not None
    assert 0 <= one.icat <= one.lms + 1e-9 <= 100 + 1e-8


@given(scores)
def test_every_term_has_the_same_weight(rows: list[tuple[str, float, float, float]]) -> None:
    terms = [row[0] for row in rows]
    first, second = (np.array([row[column] for row in rows]) for column in (1, 2))
    means = mean_by_term(preferences(first, second), terms)
    assert list(means) == sorted(set(terms))
    for term, mean in means.items():
        own = [row for row in rows if row[0] == term]
        assert mean == pytest.approx(100 * sum(row[1] > row[2] for row in own) / len(own))
