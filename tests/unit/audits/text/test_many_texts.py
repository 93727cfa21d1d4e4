"""Many texts are relabelled in bundles and give nearly the same numbers as texts that are relabelled one by one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_fairness.audits import registry
from pytest_fairness.audits.text import documents
from pytest_fairness.audits.text.groups import Groups
from pytest_fairness.audits.text.samples import kernels, published_accuracy, word_counts
from pytest_fairness.audits.text.two_sample import run_swaps
from pytest_fairness.records import Answer, Comparison, Measurement
from pytest_fairness.stats.groups import stratified_difference
from pytest_fairness.stats.resampling import bundles
from tests.support.corpora import answers, item

SETTINGS: dict[str, dict[str, Any]] = {"lexicon": {"lexicons": {"hair": ["braids", "hair", "lotion", "skin"]}}}


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few hundred texts count as many, and let slices be small."""
    for module in (documents, published_accuracy, word_counts, stratified_difference):
        monkeypatch.setattr(module, "LARGEST_UNBUNDLED", 200)
    monkeypatch.setattr(documents, "LARGEST_UNBUNDLED_RUNS", 400)
    monkeypatch.setattr(bundles, "PACKS", 150)
    monkeypatch.setattr(kernels, "DOCUMENTS", 100)


def with_embeddings(run: list[Answer]) -> list[Answer]:
    vectors = np.random.default_rng(3).normal(size=(len(run), 8)).astype("<f4")
    for vector, each in zip(vectors, run, strict=True):
        vector[0] += 0.5 * (each.labels["race"] == "Black")
    return [replace(each, embedding=vector.tobytes()) for vector, each in zip(vectors, run, strict=True)]


def require_close(
    together: Measurement | Comparison, alone: Measurement | Comparison, audit: str, *, errors: float, p_value: float
) -> None:
    """Check a result from bundles against the result without bundles.

    Args:
        errors: largest difference of the values, in standard errors.
        p_value: largest difference of p-values that are not tiny.
    """
    error = alone.standard_error or 0.0
    assert together.value == pytest.approx(alone.value, abs=errors * error + (1 if audit == "marked_words" else 1e-9))
    assert (together.standard_error or 0.0) == pytest.approx(error, rel=0.35)
    assert alone.p_value is not None
    assert together.p_value is not None
    if alone.p_value < 0.001:
        assert together.p_value < 0.002
    else:
        assert together.p_value == pytest.approx(alone.p_value, abs=p_value)


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
    # The test statistic of `svm` is another one for many texts.
    require_close(together, alone, audit_name, errors=0.3, p_value=0.25 if audit_name == "svm" else 0.12)
    assert (together != alone) == (audit_name != "lexicon")  # no other group uses the listed terms
    assert together.details.keys() == alone.details.keys()
    assert all(math.isfinite(number) for number in together.details.values() if isinstance(number, float))


@pytest.mark.parametrize("name", ["jsd", "mmd", "mmd of embeddings", "svm", "marked_words"])
@pytest.mark.parametrize("bias", [0.0, 0.15])
def test_bundles_of_two_runs_change_comparisons_by_little(
    name: str, bias: float, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "EXACT", 10)
    current, baseline = answers(1, 150, bias=bias), answers(2, 150)
    audit_name, _, embedded = name.partition(" of ")
    audit = registry.get("generation", audit_name)
    settings: dict[str, Any] = {}
    if embedded:
        current, baseline, settings = (
            with_embeddings(current),
            with_embeddings(baseline),
            {"embeddings": "openai:small"},
        )
    part = item(audit_name, **settings)
    alone = audit.compare(part, current, baseline)
    request.getfixturevalue("many")
    together = audit.compare(part, current, baseline)
    require_close(together, alone, audit_name, errors=0.4, p_value=0.2)
    assert alone.p_value is not None
    assert together.p_value != alone.p_value or alone.p_value < 0.001


@pytest.mark.parametrize("name", ["jsd", "mmd", "svm", "marked_words"])
def test_many_texts_of_runs_of_different_size_are_compared(name: str, many: None) -> None:
    same = registry.get("generation", name).compare(item(name), answers(1, 150), answers(2, 110))
    changed = registry.get("generation", name).compare(item(name), answers(1, 150, bias=0.3), answers(2, 110))
    assert same.p_value is not None
    assert changed.p_value is not None
    assert same.p_value > 0.01
    assert changed.p_value < 0.001
    assert changed.value > same.value


def test_many_texts_are_cut_to_equal_size_in_every_cell(many: None) -> None:
    runs = [
        documents.Documents.of(Groups.of(item("jsd"), answers(seed, number))) for seed, number in ((1, 90), (2, 60))
    ]
    found = documents.Runs.of(*runs)
    cut = (found.current, found.baseline)
    assert [len(run.words) for run in cut] == [240, 240]
    assert [np.bincount(run.cells).tolist() for run in cut] == [[60] * 4] * 2
    assert [*cut[1].words] == [*runs[1].words]
    assert {*cut[0].words} < {*runs[0].words}
    assert [*found.both.words] == [*cut[0].words, *cut[1].words]


def test_few_texts_are_not_cut(many: None) -> None:
    runs = [
        documents.Documents.of(Groups.of(item("jsd"), answers(seed, number))) for seed, number in ((1, 30), (2, 10))
    ]
    found = documents.Runs.of(*runs)
    assert (found.current, found.baseline) == (runs[0], runs[1])
    assert found.both.bundles is None


def test_bundles_of_two_runs_hold_texts_of_one_cell_and_run(many: None) -> None:
    runs = [documents.Documents.of(Groups.of(item("jsd"), answers(seed, 90))) for seed in (1, 2)]
    both = documents.join_runs(*runs)
    assert both.bundles is not None
    assert (both.units.cells[both.bundles.numbers] == both.cells).all()
    assert (both.units.current[both.bundles.numbers] == both.current).all()
    first, second = next(run_swaps(both, (40,), np.random.default_rng(1)))
    assert (first != second).all()
    for cell in np.unique(both.cells):
        own = both.units.cells == cell
        assert {*(first[:, own] @ both.bundles.sizes[own]).tolist()} == {90.0}
