"""Many texts are relabelled in bundles and give nearly the same numbers as texts that are relabelled one by one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_fairness.audits import registry
from pytest_fairness.audits.text import documents
from pytest_fairness.audits.text.samples import kernels, published_accuracy, word_counts
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answer
from pytest_fairness.stats.groups import stratified_difference
from pytest_fairness.stats.resampling import bundles
from tests.support.corpora import answers, item

SETTINGS: dict[str, dict[str, Any]] = {"lexicon": {"lexicons": {"hair": ["braids", "hair", "lotion", "skin"]}}}


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few hundred texts count as many, and let slices be small."""
    for module in (documents, published_accuracy, word_counts, stratified_difference):
        monkeypatch.setattr(module, "LARGEST_UNBUNDLED", 200)
    monkeypatch.setattr(bundles, "PACKS", 150)
    monkeypatch.setattr(kernels, "DOCUMENTS", 100)


def with_embeddings(run: list[Answer]) -> list[Answer]:
    vectors = np.random.default_rng(3).normal(size=(len(run), 8)).astype("<f4")
    for vector, each in zip(vectors, run, strict=True):
        vector[0] += 0.5 * (each.labels["race"] == "Black")
    return [replace(each, embedding=vector.tobytes()) for vector, each in zip(vectors, run, strict=True)]


@pytest.mark.parametrize("name", ["jsd", "mmd", "mmd of embeddings", "svm", "marked_words", "lexicon"])
@pytest.mark.parametrize("bias", [0.0, 0.15])
def test_bundles_change_numbers_by_little(
    name: str, bias: float, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "EXACT", 10)  # vectors of many texts are approximate, whether there are bundles or not
    run = answers(1, 150, bias=bias)
    audit_name, _, embedded = name.partition(" of ")
    audit, settings = registry.get("generation", audit_name), SETTINGS.get(audit_name, {})
    if embedded:
        run, settings = with_embeddings(run), {"embeddings": "openai:small"}
    part = item(audit_name, **settings)
    part = replace(part, labels={**part.labels, "lexicon": "hair"})
    alone = audit.measure(part, run)
    request.getfixturevalue("many")
    together = audit.measure(part, run)
    error = alone.standard_error or 0.0
    assert together.value == pytest.approx(alone.value, abs=0.3 * error + (1 if audit_name == "marked_words" else 1e-9))
    assert (together.standard_error or 0.0) == pytest.approx(error, rel=0.35)
    assert alone.p_value is not None
    assert together.p_value is not None
    if alone.p_value < 0.001:
        assert together.p_value < 0.002
    else:
        # The test statistic of `svm` is another one for many texts.
        assert together.p_value == pytest.approx(alone.p_value, abs=0.25 if audit_name == "svm" else 0.12)
    assert (together != alone) == (audit_name != "lexicon")  # no other group uses the listed terms
    assert together.details.keys() == alone.details.keys()
    assert all(math.isfinite(number) for number in together.details.values() if isinstance(number, float))


def test_runs_that_are_too_large_to_compare_are_compared_by_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "LARGEST_COMPARED", 100)
    for name in ("jsd", "marked_words"):
        audit = registry.get("generation", name)
        with pytest.raises(NotMeasurable, match=r"have 160 texts together; at most 100 can be compared"):
            audit.compare(item(name), answers(1, 20), answers(2, 20))
