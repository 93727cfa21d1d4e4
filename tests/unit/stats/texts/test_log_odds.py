"""Log-odds ratios with a Dirichlet prior, against the original code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pytest_fairness.stats.words import log_odds, z_scores
from tests.support.oracles import vector, vectors


def counted(documents: list[str]) -> Counter[str]:
    return Counter(word for document in documents for word in document.split())


def z_by_word(marked: Mapping[str, int], unmarked: Mapping[str, int], prior: Mapping[str, float]) -> dict[str, float]:
    words = sorted(prior)
    first, second, prior_ = (
        np.array([side.get(word, 0) for word in words], dtype=float) for side in (marked, unmarked, prior)
    )
    return dict(zip(words, z_scores(first, second, prior_), strict=True))


@pytest.mark.parametrize("case", [c for c in vectors("marked_words_original") if "z" in c.values[0]["expected"]])
def test_scores_of_the_original_code_with_an_unscaled_prior(case: dict[str, Any]) -> None:
    given_, marked, unmarked = case["input"], *(counted(case["input"][side]) for side in ("marked", "unmarked"))
    prior = {word: float(count) for word, count in counted(given_["prior_corpus"]).items()}
    for word in {*marked, *unmarked} - {*prior}:
        prior[word] = 1.0
    assert z_by_word(marked, unmarked, prior) == pytest.approx(case["expected"]["z"], abs=case["tol"])


@pytest.mark.parametrize("case", [c for c in vectors("marked_words_scaled_prior") if "z" in c.values[0]["expected"]])
def test_scores_with_a_prior_of_given_mass(case: dict[str, Any]) -> None:
    given_ = case["input"]
    marked, unmarked = counted(given_["marked"]), counted(given_["unmarked"])
    words = sorted(marked + unmarked)
    first, second = (np.array([side[word] for word in words], dtype=float) for side in (marked, unmarked))
    pooled = first + second
    ratio, variance = log_odds(first, second, pooled * given_["prior_mass"] / pooled.sum())
    for name, found in (("log_odds", ratio), ("variance", variance), ("z", ratio / np.sqrt(variance))):
        assert dict(zip(words, found, strict=True)) == pytest.approx(case["expected"][name], abs=case["tol"])


def test_a_prior_of_mass_one_cannot_see_a_word_that_one_group_alone_uses() -> None:
    case = vector("marked_words_scaled_prior", "mw_exclusive_word_30_vs_0_of_1500")
    marked, unmarked = np.array([30.0, 1470.0]), np.array([0.0, 1500.0])
    pooled = marked + unmarked
    for name, prior in (
        ("z_mass1", pooled / pooled.sum()),
        ("z_mass100", 100 * pooled / pooled.sum()),
        ("z_original_unscaled", pooled),
    ):
        assert z_scores(marked, unmarked, prior)[0] == pytest.approx(case["expected"][name], abs=case["tol"])


def test_one_word_allows_no_contrast() -> None:
    assert np.isnan(z_scores(np.array([2.0]), np.array([1.0]), np.array([3.0]))).all()


def test_words_of_an_intersection_pass_on_every_axis() -> None:
    """The original's rule for two axes: marked against each axis' unmarked group, scores summed."""
    case = vector("marked_words_original", "mw_intersection_two_axes")
    table, target, unmarked = (case["input"][name] for name in ("table", "target", "unmarked"))

    def documents(**labels: str) -> Counter[str]:
        rows = zip(table["text"], table["gender"], table["race"], strict=True)
        return counted(
            [text for text, gender, race in rows if {"gender": gender, "race": race}.items() >= labels.items()]
        )

    everything = {word: float(count) for word, count in documents().items()}
    by_axis = [z_by_word(documents(**target), documents(**{axis: unmarked[axis]}), everything) for axis in unmarked]
    summed = {
        word: sum(scores[word] for scores in by_axis)
        for word in everything
        if all(scores[word] > case["input"]["threshold"] for scores in by_axis)
    }
    assert summed == pytest.approx(case["expected"]["words_with_summed_z"], abs=case["tol"])


counts = arrays(np.float64, st.shared(st.integers(2, 12), key="words"), elements=st.integers(0, 50).map(float))
priors = arrays(np.float64, st.shared(st.integers(2, 12), key="words"), elements=st.floats(0.01, 50))


@given(counts, counts, priors)
def test_swapping_the_groups_turns_the_sign(first: Any, second: Any, prior: Any) -> None:
    np.testing.assert_allclose(z_scores(first, second, prior), -z_scores(second, first, prior), atol=1e-9)


@given(counts, priors)
def test_equal_counts_have_no_association(same: Any, prior: Any) -> None:
    np.testing.assert_allclose(z_scores(same, same, prior), 0, atol=1e-12)
