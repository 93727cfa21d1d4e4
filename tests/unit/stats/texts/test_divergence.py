"""The Jensen-Shannon divergence against worked vectors and scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import jensenshannon

from pytest_fairness.stats.words import divergence_contributions
from tests.support.oracles import vector, vectors


def paired(case: dict[str, Any]) -> tuple[list[str], Any, Any]:
    first, second = case["input"]["counts_1"], case["input"]["counts_2"]
    words = sorted({*first, *second})
    counts = [np.array([side.get(word, 0) for word in words], dtype=float) for side in (first, second)]
    return words, counts[0], counts[1]


@pytest.mark.parametrize("case", [c for c in vectors("jsd") if "contribution_bits" in c.values[0]["expected"]])
def test_divergence_and_contributions_agree_with_the_worked_vectors(case: dict[str, Any]) -> None:
    words, first, second = paired(case)
    bits = divergence_contributions(first, second)
    assert bits.sum() == pytest.approx(case["expected"]["jsd_bits"], abs=case["tol"])
    assert dict(zip(words, bits, strict=True)) == pytest.approx(case["expected"]["contribution_bits"], abs=case["tol"])


def test_smoothing_hardly_changes_the_divergence() -> None:
    case = vector("jsd", "jsd_smoothing_disjoint")
    _, first, second = paired(case)
    smoothed = (side + case["input"]["eps"] for side in (first, second))
    assert divergence_contributions(*smoothed).sum() == pytest.approx(case["expected"]["jsd_bits"], abs=case["tol"])


samples = arrays(np.float64, st.shared(st.integers(1, 15), key="words"), elements=st.integers(0, 40).map(float)).filter(
    lambda counts: counts.sum() > 0
)


@given(samples, samples)
def test_contributions_add_up_to_the_divergence_of_scipy(first: Any, second: Any) -> None:
    contributions = divergence_contributions(first, second)
    assert contributions.sum() == pytest.approx(float(jensenshannon(first, second, base=2)) ** 2, abs=1e-7)
    np.testing.assert_allclose(contributions, divergence_contributions(second, first), atol=1e-12)
    assert (contributions >= 0).all()


def test_an_empty_side_has_no_divergence() -> None:
    assert np.isnan(divergence_contributions(np.zeros(3), np.ones(3))).all()
