"""Quality and variation of lists."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from pytest_fairness.stats.ranked_lists import quality, variation
from tests.support.oracles import vectors

ITEMS = list("abcdefgh")


@given(st.permutations(ITEMS), st.sets(st.sampled_from(ITEMS), min_size=1), st.integers(2, 8))
def test_ndcg_is_that_of_scikit_learn(ranking: list[str], relevant: set[str], k: int) -> None:
    truth = np.array([[item in relevant for item in ranking]], dtype=float)
    expected = ndcg_score(truth, np.arange(len(ITEMS), 0, -1)[None], k=k)
    assert quality([ranking], [relevant], k).ndcg[0] == pytest.approx(expected)


def test_precision_recall_and_ndcg_by_hand() -> None:
    found = quality([["a", "x", "b"], ["a"], [], ["a"]], [{"a", "b"}, {"a", "b", "c"}, {"a"}, set()], k=3)
    np.testing.assert_allclose(found.precision, [2 / 3, 1 / 3, 0, np.nan])
    np.testing.assert_allclose(found.recall, [1, 1 / 3, 0, np.nan])
    best = [1, 1 / math.log2(3), 1 / 2]
    np.testing.assert_allclose(found.ndcg, [(best[0] + best[2]) / sum(best[:2]), 1 / sum(best), 0, np.nan])


@pytest.mark.parametrize("vector", [each for each in vectors("entropy") if each.id != "empty_runs"])
def test_entropy_by_the_worked_vectors(vector: dict[str, Any]) -> None:
    expected, found = vector["expected"], variation(vector["input"]["runs"])
    assert found is not None
    assert found.entropy == pytest.approx(expected["H_bits"], abs=vector["tol"])
    assert found.instability == pytest.approx(expected["H_excess_normalised"], abs=vector["tol"])
    assert found.item_entropy == pytest.approx(expected["mean_item_bernoulli_entropy_bits"], abs=vector["tol"])


@pytest.mark.parametrize("lists", [[], [["a"]], [[], []], [["a"], []]])
def test_fewer_than_two_lists_do_not_vary(lists: list[list[str]]) -> None:
    assert variation(lists) is None


@given(st.lists(st.sets(st.sampled_from(ITEMS), min_size=3, max_size=3), min_size=2, max_size=6))
def test_instability_lies_between_equal_and_disjoint_lists(lists: list[set[str]]) -> None:
    found, same = variation(lists), variation([lists[0]] * len(lists))
    apart = variation([[f"{number} {item}" for item in items] for number, items in enumerate(lists)])
    assert found is not None
    assert same is not None
    assert apart is not None
    assert same.instability == pytest.approx(0, abs=1e-12)
    assert apart.instability == pytest.approx(1)
    assert same.entropy <= found.entropy + 1e-12
    assert found.entropy <= apart.entropy + 1e-12
