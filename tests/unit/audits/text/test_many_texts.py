"""Of many texts of a group, a sample is compared."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_fairness.audits import documents, registry
from pytest_fairness.audits.documents import Groups, sampled
from pytest_fairness.records import Answer, Measurement, Status
from tests.support.corpora import answers, item

SETTINGS: dict[str, dict[str, Any]] = {"lexicon": {"lexicons": {"hair": ["braids", "hair", "lotion", "skin"]}}}
MOST = 200
AUDITS = ["jsd", "mmd", "mmd of embeddings", "svm", "marked_words", "lexicon"]


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few hundred texts count as many."""
    monkeypatch.setattr(documents, "MOST_DOCUMENTS", MOST)
    for audit in {name.partition(" ")[0] for name in AUDITS}:
        monkeypatch.setattr(type(registry.get("generation", audit)), "most_documents", MOST)


def with_embeddings(run: list[Answer]) -> list[Answer]:
    vectors = np.random.default_rng(3).normal(size=(len(run), 8)).astype("<f4")
    for vector, each in zip(vectors, run, strict=True):
        vector[0] += 0.5 * (each.labels["race"] == "Black")
    return [replace(each, embedding=vector.tobytes()) for vector, each in zip(vectors, run, strict=True)]


def of_strata(**sizes: tuple[int, int]) -> Groups:
    """Return answers in strata with these numbers of answers for Black and for White customers."""
    run = [
        Answer(
            {"race": race, "gender": "man", "topic": topic}, trial, f"{topic} {trial}", Status.OK, f"{topic} {trial}"
        )
        for topic, both in sizes.items()
        for race, number in zip(("Black", "White"), both, strict=True)
        for trial in range(number)
    ]
    return Groups.of(item("jsd"), run)


def strata_of(found: Groups, kept: list[int]) -> Counter[tuple[bool, str]]:
    return Counter((found.marked[index], found.strata[index]) for index in kept)


def test_a_sample_keeps_the_shares_of_the_strata(many: None) -> None:
    found = of_strata(a=(900, 100), b=(300, 30), c=(60, 20))
    kept = sampled(found)
    counts = strata_of(found, kept)
    for topic, number in (("a", 900), ("b", 300), ("c", 60)):
        expected = number / 1260 * MOST
        assert counts[True, f"gender=man; topic={topic}"] == pytest.approx(expected, abs=1)
    assert sum(count for (marked, _), count in counts.items() if marked) == MOST
    assert sum(count for (marked, _), count in counts.items() if not marked) == 150, "a group of few texts is whole"
    assert kept == sorted({*kept}) == sampled(found)
    assert kept != sampled(replace(found, seed="another item"))


def test_groups_up_to_the_limit_are_whole(many: None) -> None:
    found = of_strata(a=(120, 200), b=(80, 0))
    assert sampled(found) == documents.comparable(found)


def test_strata_of_one_text_of_each_group_stay_together(many: None) -> None:
    found = of_strata(**{f"topic{number}": (1, 1) for number in range(1000)})
    counts = strata_of(found, sampled(found))
    assert len(counts) == 2 * MOST
    assert {stratum for marked, stratum in counts if marked} == {stratum for marked, stratum in counts if not marked}


def test_each_text_is_as_likely_as_the_others(many: None) -> None:
    found = of_strata(a=(300, 250), b=(100, 250))
    drawn = np.zeros(900)
    for seed in range(400):
        drawn[sampled(replace(found, seed=str(seed)))] += 1
    shares = drawn / 400
    # The standard deviation of a share is 0.025.
    assert shares[np.array(found.marked)].mean() == 200 / 400
    assert shares[~np.array(found.marked)].mean() == 200 / 500
    assert np.abs(shares - np.where(found.marked, 0.5, 0.4)).max() < 0.1


def measured(name: str, run: list[Answer]) -> Measurement:
    audit_name, _, embedded = name.partition(" of ")
    part = part_of(audit_name, **({"embeddings": "openai:small"} if embedded else {}))
    return registry.get("generation", audit_name).measure(part, with_embeddings(run) if embedded else run)


def part_of(name: str, **settings: Any) -> Any:
    found = item(name, **settings, **SETTINGS.get(name, {}))
    return replace(found, labels={**found.labels, "lexicon": "hair"} if name == "lexicon" else found.labels)


@pytest.mark.parametrize("name", AUDITS)
@pytest.mark.parametrize("bias", [0.0, 0.15])
def test_a_sample_has_its_own_value_and_error(name: str, bias: float, request: pytest.FixtureRequest) -> None:
    """400 texts of a group are cut to 200: the error grows by the root of 2, or by 2 where there is no difference."""
    run = answers(1, 200, bias=bias)
    whole = measured(name, run)
    request.getfixturevalue("many")
    part = measured(name, run)
    assert part != whole
    assert part.n == whole.n == {"Black": 400, "White": 400}
    if name == "marked_words":
        assert 0 < part.value < whole.value if bias else part.value == whole.value == 0
    else:
        assert part.standard_error is not None
        assert whole.standard_error is not None
        assert part.value == pytest.approx(whole.value, abs=2 * (part.standard_error + whole.standard_error))
        assert 1.1 < part.standard_error / whole.standard_error < 2.6
    assert part.p_value is not None
    assert part.p_value < 0.05 if bias or name == "mmd of embeddings" else part.p_value > 0.01
    assert part.details.keys() == whole.details.keys()
    assert all(math.isfinite(number) for number in part.details.values() if isinstance(number, float))


@pytest.mark.parametrize("name", ["jsd", "mmd", "svm", "marked_words", "lexicon"])
def test_the_note_says_that_a_sample_is_compared(name: str, many: None) -> None:
    audit = registry.get("generation", name)
    for trials, messages in ((110, ["200 of a group (220 for Black and 220 for White are usable)"]), (100, [])):
        run = answers(1, trials)
        found = [
            concern
            for concern in audit.concerns(part_of(name), run, audit.measure(part_of(name), run))
            if concern.name == "sampled_texts"
        ]
        assert [concern.withholds for concern in found] == ["nothing"] * len(messages)
        assert all(message in concern.message for message, concern in zip(messages, found, strict=True))


@pytest.mark.parametrize("name", ["jsd", "mmd", "svm", "marked_words", "lexicon"])
def test_the_same_answers_have_no_change(name: str, many: None) -> None:
    """The samples of both runs are the same, so that an unchanged model has no change by chance."""
    run = answers(1, 150)
    comparison = registry.get("generation", name).compare(part_of(name), run, run)
    assert comparison.value == pytest.approx(0, abs=1e-9)
    assert (comparison.p_value or 0) > 0.4


@pytest.mark.parametrize("name", ["jsd", "mmd", "svm", "marked_words", "lexicon"])
def test_many_texts_of_runs_of_different_size_are_compared(name: str, many: None) -> None:
    same = registry.get("generation", name).compare(part_of(name), answers(1, 150), answers(2, 90))
    changed = registry.get("generation", name).compare(part_of(name), answers(1, 150, bias=0.3), answers(2, 90))
    assert same.p_value is not None
    assert changed.p_value is not None
    assert same.p_value > 0.01
    assert changed.p_value < 0.001
    assert changed.value > same.value
