"""List similarities, against the original programs' numbers and by their properties."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.stats.ranked_lists import Measure, Variant, similarities
from tests.support.oracles import vector, vectors

COLUMNS: dict[str, tuple[Measure, Variant]] = {
    "jaccard_fairllm": ("jaccard", "fairllm"),
    "jaccard_langfair": ("jaccard", "langfair"),
    "serp_fairllm_code": ("serp", "fairllm"),
    "serp_langfair": ("serp", "langfair"),
    "prag_fairllm_code": ("prag", "fairllm"),
    "prag_langfair": ("prag", "langfair"),
}
LISTS = st.lists(st.sampled_from("abcdefgh"), max_size=8)
DISTINCT = st.lists(st.sampled_from("abcdefgh"), max_size=6, unique=True)
MEASURES = st.sampled_from(get_args(Measure))
VARIANTS = st.sampled_from(get_args(Variant))


def similarity(first: list[str], second: list[str], measure: Measure, variant: Variant, k: int) -> float:
    return float(similarities([first], [second], measure=measure, variant=variant, k=k)[0])


@pytest.mark.parametrize("vector", [each for each in vectors("recsim") if not each.id.startswith(("ceil", "both"))])
def test_similarities_agree_with_the_original_programs(vector: dict[str, Any]) -> None:
    given_, expected = vector["input"], vector["expected"]
    lists = given_["x_sensitive"], given_["y_neutral"]
    for column, (measure, variant) in COLUMNS.items():
        assert similarity(*lists, measure, variant, given_["K"]) == pytest.approx(expected[column], abs=vector["tol"])
    for measure, value in expected["recommended"].items():
        assert similarity(*lists, measure, "normalized", given_["K"]) == pytest.approx(value, abs=vector["tol"])


@pytest.mark.parametrize("k", [5, 20, 25])
def test_the_highest_values_of_each_scale(k: int) -> None:
    expected = vector("recsim", f"ceilings_K{k}")["expected"]
    same = [str(number) for number in range(k)]
    for variant in get_args(Variant):
        assert similarity(same, same, "jaccard", variant, k) == 1
    assert similarity(same, same, "serp", "normalized", k) == expected["serp_paper"]
    assert similarity(same, same, "prag", "normalized", k) == expected["prag_fairllm_code"]
    for variant in get_args(Variant)[1:]:
        assert similarity(same, same, "serp", variant, k) == pytest.approx(expected["serp_code"])
    assert similarity(same, same, "prag", "fairllm", k) == expected["prag_fairllm_code"]
    assert similarity(same, same, "prag", "langfair", k) == pytest.approx(expected["prag_paper_and_langfair"])


@given(MEASURES, VARIANTS)
def test_two_empty_lists_have_no_similarity_and_one_empty_list_has_0(measure: Measure, variant: Variant) -> None:
    assert np.isnan(similarity([], [], measure, variant, 5))
    assert similarity([], ["a"], measure, variant, 5) == similarity(["a"], [], measure, variant, 5) == 0
    assert similarities([], [], measure=measure, variant=variant, k=5).shape == (0,)


@given(LISTS, LISTS, MEASURES, st.integers(1, 8))
def test_the_normalized_scale_is_0_to_1_and_1_for_equal_full_lists(
    first: list[str], second: list[str], measure: Measure, k: int
) -> None:
    value = similarity(first, second, measure, "normalized", k)
    assert np.isnan(value) if not first and not second else 0 <= value <= 1
    full = list("abcdefgh")[:k]
    assert similarity(full, full, measure, "normalized", k) == 1


@given(LISTS, LISTS, VARIANTS)
def test_jaccard_alone_is_symmetric(first: list[str], second: list[str], variant: Variant) -> None:
    one, other = similarity(first, second, "jaccard", variant, 8), similarity(second, first, "jaccard", variant, 8)
    assert one == other or np.isnan([one, other]).all()
    assert similarity(list("ab"), list("bc"), "serp", "normalized", 2) != similarity(
        list("bc"), list("ab"), "serp", "normalized", 2
    )


@given(LISTS, LISTS, MEASURES)
def test_repeated_items_count_once_in_the_normalized_scale(
    first: list[str], second: list[str], measure: Measure
) -> None:
    once, other = (list(dict.fromkeys(items)) for items in (first, second))
    assert similarity(first, second, measure, "normalized", 8) == pytest.approx(
        similarity(once, other, measure, "normalized", 8), nan_ok=True
    )


@given(st.lists(st.tuples(DISTINCT, DISTINCT), min_size=1, max_size=8), MEASURES, VARIANTS)
def test_many_pairs_at_once_equal_single_pairs(
    pairs: list[tuple[list[str], list[str]]], measure: Measure, variant: Variant
) -> None:
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    together = similarities(first, second, measure=measure, variant=variant, k=6)
    alone = [similarity(one, other, measure, variant, 6) for one, other in pairs]
    np.testing.assert_array_equal(together, alone)


@given(st.integers(1, 8), st.data())
def test_serp_of_the_original_code_follows_from_the_published_formula(k: int, data: st.DataObject) -> None:
    first, second = (data.draw(st.permutations("abcdefghijklmnop")).__getitem__(slice(k)) for _ in range(2))
    hits = len({*first} & {*second})
    published = similarity(first, second, "serp", "normalized", k)
    code = (published * k * (k + 1) / 2 + hits) / (2 * k * (k + 1))
    assert similarity(first, second, "serp", "fairllm", k) == pytest.approx(code)


def test_unequal_numbers_of_lists_raise_an_error() -> None:
    with pytest.raises(ValueError, match="same length, not 1 and 2"):
        similarities([["a"]], [["a"], ["b"]], k=1)
