"""The audits of parallel texts, on answers that are fair or biased by a known amount."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_fairness.audit import registry
from pytest_fairness.audit.classifier import Corpus
from pytest_fairness.audit.jsd import divergences
from pytest_fairness.audit.marked_words import smallest_ratio
from pytest_fairness.baseline.verdicts import Earlier, decide
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answer, Status, Verdict
from pytest_fairness.stats import resampling
from tests.audit.corpora import PROBE, answers, item
from tests.oracles import vector, vectors

TEXT_AUDITS = ("marked_words", "svm", "jsd", "mmd")
AUDITS = (*TEXT_AUDITS, "refusals")


def judge(name: str, now: list[Answer], then: list[Answer], **settings: Any) -> Verdict:
    audit, subject = registry.get("generation", name), item(name, **settings)
    earlier = Earlier(audit.measure(PROBE, subject, then).value)
    return decide(
        audit,
        subject,
        audit.measure(PROBE, subject, now),
        earlier=earlier,
        comparison=audit.compare(PROBE, subject, now, then),
        trials=15,
        accept="pytest --fairness-rebaseline",
    )


@pytest.mark.parametrize("name", TEXT_AUDITS)
def test_a_planted_bias_is_a_regression_against_a_fair_baseline(name: str) -> None:
    verdict = judge(name, answers(1, bias=0.8), answers(2))
    assert verdict.name == "regression"
    assert "Driven by" in verdict.reason
    assert any(word in verdict.reason for word in ("braids", "hair", "oil", "lotion", "elbows"))


@pytest.mark.parametrize("name", AUDITS)
def test_fresh_runs_of_a_fair_system_never_fail(name: str) -> None:
    baseline = answers(100)
    verdicts = {judge(name, answers(seed), baseline).name.value for seed in range(3)}
    assert verdicts <= {"pass", "inconclusive"}


@pytest.mark.parametrize("name", TEXT_AUDITS)
def test_a_steady_bias_is_no_regression(name: str) -> None:
    assert judge(name, answers(1, bias=0.5), answers(2, bias=0.5)).name.outcome != "failed"


@pytest.mark.parametrize(("name", "limit"), [("marked_words", 3), ("svm", 0.8), ("jsd", 0.1), ("mmd", 0.05)])
def test_a_strong_bias_is_over_the_limit_without_any_baseline(name: str, limit: float) -> None:
    audit, subject = registry.get("generation", name), item(name, limit=limit)
    for bias, expected in ((0.8, {"over-limit"}), (0.0, {"pass", "inconclusive"})):
        measurement = audit.measure(PROBE, subject, answers(3, bias=bias))
        verdict = decide(audit, subject, measurement, earlier=None, comparison=None, trials=15, accept="…")
        assert verdict.name.value in expected


@pytest.mark.parametrize("name", AUDITS)
def test_numbers_depend_on_neither_order_nor_repetition(name: str) -> None:
    audit, subject = registry.get("generation", name), item(name)
    now, then = answers(4, bias=0.3), answers(5)
    shuffled = [[run[index] for index in np.random.default_rng(0).permutation(len(run))] for run in (now, then)]
    assert audit.measure(PROBE, subject, now) == audit.measure(PROBE, subject, shuffled[0])
    assert audit.compare(PROBE, subject, now, then) == audit.compare(PROBE, subject, *shuffled)


@pytest.mark.parametrize("name", AUDITS)
def test_a_run_compared_with_itself_has_not_changed(name: str) -> None:
    audit, subject = registry.get("generation", name), item(name)
    run = answers(6, bias=0.4)
    comparison = audit.compare(PROBE, subject, run, run)
    assert comparison.value == 0
    assert judge(name, run, run).name.outcome != "failed"


@pytest.mark.parametrize("name", TEXT_AUDITS)
def test_runs_of_different_sizes_are_compared_at_equal_size(name: str) -> None:
    assert judge(name, answers(7, trials=9), answers(8, trials=15)).name.outcome != "failed"
    assert judge(name, answers(7, trials=12, bias=0.9), answers(8, trials=15)).name == "regression"


@pytest.mark.parametrize("name", TEXT_AUDITS)
def test_refused_answers_are_left_out_and_counted(name: str) -> None:
    run = answers(9)
    refused = [replace(a, status=Status.REFUSED, content=None) if a.trial == 0 else a for a in run]
    audit, subject = registry.get("generation", name), item(name)
    measurement = audit.measure(PROBE, subject, refused)
    assert measurement.n == {"Black": 28, "White": 28}
    assert measurement.missing == {"Black": 2, "White": 2}
    only_usable = audit.measure(PROBE, subject, [a for a in refused if a.usable])
    assert measurement.value == only_usable.value


@pytest.mark.parametrize("name", TEXT_AUDITS)
def test_too_few_documents_are_not_measured(name: str) -> None:
    audit, subject = registry.get("generation", name), item(name)
    with pytest.raises(NotMeasurable, match=r"only 6 for Black, 6 for White usable answers, 8 a group"):
        audit.measure(PROBE, subject, answers(1, trials=3))


def test_the_reason_for_too_few_documents_says_where_they_went() -> None:
    refused = [
        replace(a, status=Status.REFUSED, content=None) if a.labels["race"] == "Black" else a for a in answers(1)
    ]
    with pytest.raises(NotMeasurable, match=r"only 0 for Black usable answers.*30 refused"):
        registry.get("generation", "jsd").measure(PROBE, item("jsd"), refused)


def test_answers_that_are_all_alike_cannot_train_a_classifier() -> None:
    same = [replace(a, content=f"the same words for {a.labels['race']}") for a in answers(1)]
    with pytest.raises(NotMeasurable, match="temperature"):
        registry.get("generation", "svm").measure(PROBE, item("svm"), same)


def test_identical_vocabularies_have_no_excess_and_no_significant_word() -> None:
    same = [replace(a, content=f"one two three number{a.trial}") for a in answers(1)]
    jsd = registry.get("generation", "jsd").measure(PROBE, item("jsd"), same)
    assert jsd.details["bits"] == pytest.approx(0, abs=1e-9)
    assert jsd.p_value == 1
    assert registry.get("generation", "marked_words").measure(PROBE, item("marked_words"), same).value == 0


def test_identity_terms_alone_tell_nobody_apart() -> None:
    marked = [replace(a, content=f"{a.content} for a {a.labels['race']} {a.labels['gender']}") for a in answers(10)]
    audit = registry.get("generation", "jsd")
    assert audit.measure(PROBE, item("jsd"), marked).value == pytest.approx(
        audit.measure(PROBE, item("jsd"), [replace(a, content=f"{a.content} for a") for a in answers(10)]).value
    )


@pytest.mark.parametrize("features", ["counts", "tfidf"])
def test_the_classifier_finds_the_words_of_either_side(features: str) -> None:
    measurement = registry.get("generation", "svm").measure(PROBE, item("svm", features=features), answers(1, bias=0.9))
    assert measurement.value > 0.9
    assert {"braids", "hair"} & {word["word"] for word in measurement.details["top_words"]["marked"]}


def test_separable_documents_are_told_apart_without_error() -> None:
    case = vector("svm", "separable")
    documents = case["input"]["docs"]
    words = sorted({word for document in documents for word in document.split()})
    counts = np.array([[document.split().count(word) for word in words] for document in documents], dtype=float)
    marked = np.array(case["input"]["y"], dtype=bool)
    corpus = Corpus(words, counts, marked, np.zeros(len(marked), dtype=np.int64), "counts")
    score = corpus.score(3, np.random.default_rng(0))
    assert score.balanced == case["expected"]["balanced_accuracy"]
    assert score.plain == case["expected"]["accuracy"]


@pytest.mark.parametrize("case", vectors("jsd_document_permutation"))
def test_excess_over_all_relabellings_of_documents(case: dict[str, Any]) -> None:
    documents = [document.split() for document in (*case["input"]["group_1"], *case["input"]["group_2"])]
    words = sorted({word for document in documents for word in document})
    counts = np.array([[document.count(word) for word in words] for document in documents], dtype=float)
    marked = np.repeat([True, False], [len(case["input"]["group_1"]), len(case["input"]["group_2"])])
    labels, exact = resampling.relabellings(
        marked, np.zeros(len(marked), dtype=np.int64), 999, np.random.default_rng(0)
    )
    bits, null = float(divergences(marked[None], ~marked[None], counts)[0]), divergences(labels, ~labels, counts)
    expected = case["expected"]
    assert exact
    assert len(labels) == expected["n_splits"]
    assert bits == pytest.approx(expected["jsd_bits"], abs=case["tol"])
    assert bits - null.mean() == pytest.approx(expected["excess_bits"], abs=case["tol"])
    assert resampling.p_value(null, bits, exact=exact) == pytest.approx(expected["p_exact"])


def test_more_documents_show_weaker_words() -> None:
    ratios = [smallest_ratio(1.8, [(n, n)]) for n in (15, 60, 240)]
    assert ratios == sorted(ratios, reverse=True)
    assert smallest_ratio(50.0, [(8, 8)]) == float("inf")


def test_refusals_of_one_group_are_a_regression() -> None:
    def refusing(seed: int, trials_refused: int) -> list[Answer]:
        return [
            replace(a, status=Status.REFUSED, content=None)
            if a.labels["race"] == "Black" and a.trial < trials_refused
            else a
            for a in answers(seed, trials=30)
        ]

    verdict = judge("refusals", refusing(1, 20), refusing(2, 0))
    assert verdict.name == "regression"
    assert "67% of Black, 0% of White" in verdict.reason
    assert judge("refusals", refusing(1, 1), refusing(2, 0)).name.outcome != "failed"


def test_few_documents_are_compared_with_themselves_answer_by_answer() -> None:
    run = answers(12, trials=8, genders=("man",))
    comparison = registry.get("generation", "svm").compare(PROBE, item("svm"), run, run)
    assert comparison.paired
    assert comparison.value == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("name", ["svm", "jsd", "mmd"])
def test_the_change_is_the_difference_of_the_two_values(name: str) -> None:
    audit, subject = registry.get("generation", name), item(name)
    now, then = answers(13, bias=0.5), answers(14, bias=0.3)
    change = audit.badness(audit.measure(PROBE, subject, now).value) - audit.badness(
        audit.measure(PROBE, subject, then).value
    )
    assert audit.compare(PROBE, subject, now, then).value == pytest.approx(change, abs=1e-12)


@pytest.mark.parametrize("name", ["jsd", "marked_words", "mmd"])
def test_a_system_that_repeats_itself_is_one_observation_however_often_it_is_asked(name: str) -> None:
    def repeating(seed: int, bias: float) -> list[Answer]:
        """What is asked at temperature 0: the first answer of each cell, over and over."""
        run = answers(seed, bias=bias)
        first = {tuple(sorted(a.labels.items())): a.content for a in run if a.trial == 0}
        return [replace(a, content=first[tuple(sorted(a.labels.items()))]) for a in run]

    verdict = judge(name, repeating(1, 0.9), repeating(2, 0.0))
    assert verdict.name == "inconclusive"
    assert "every trial repeats the same answer" in verdict.reason
    assert judge(name, repeating(1, 0.9), repeating(1, 0.9)).name.outcome != "failed"
