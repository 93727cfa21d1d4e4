"""The audits of parallel texts, on answers that are fair or biased by a known amount."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from pytest_fairness.audits import registry
from pytest_fairness.audits.documents import Groups
from pytest_fairness.baselines.verdicts import BaselineEntry, decide
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answer, Status, Verdict
from pytest_fairness.stats import resampling
from pytest_fairness.stats.excess_divergence import Words
from tests.support.corpora import answers, item, probe
from tests.support.oracles import vectors

TEXT_AUDITS = ("marked_words", "svm", "jsd", "mmd")
AUDITS = (*TEXT_AUDITS, "refusals")


def judge(name: str, now: list[Answer], then: list[Answer], **settings: Any) -> Verdict:
    audit, subject = registry.get("generation", name), item(name, **settings)
    earlier = BaselineEntry(audit.measure(subject, then).value)
    return decide(
        audit,
        subject,
        audit.measure(subject, now),
        baseline=earlier,
        comparison=audit.compare(subject, now, then),
        trials=15,
        accept="pytest --fairness-rebaseline",
    )


@pytest.mark.parametrize("name", TEXT_AUDITS)
def test_a_planted_bias_is_a_regression_against_a_fair_baseline(name: str) -> None:
    verdict = judge(name, answers(1, bias=0.8), answers(2))
    assert verdict.name == "regression"
    assert "Top contributors" in verdict.reason
    assert any(word in verdict.reason for word in ("braids", "butter", "hair", "oil", "lotion", "elbows"))


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
        measurement = audit.measure(subject, answers(3, bias=bias))
        verdict = decide(audit, subject, measurement, baseline=None, comparison=None, trials=15, accept="…")
        assert verdict.name.value in expected


@pytest.mark.parametrize("name", AUDITS)
def test_numbers_depend_on_neither_order_nor_repetition(name: str) -> None:
    audit, subject = registry.get("generation", name), item(name)
    now, then = answers(4, bias=0.3), answers(5)
    shuffled = [[run[index] for index in np.random.default_rng(0).permutation(len(run))] for run in (now, then)]
    assert audit.measure(subject, now) == audit.measure(subject, shuffled[0])
    assert audit.compare(subject, now, then) == audit.compare(subject, *shuffled)


@pytest.mark.parametrize("name", AUDITS)
def test_a_run_compared_with_itself_has_not_changed(name: str) -> None:
    audit, subject = registry.get("generation", name), item(name)
    run = answers(6, bias=0.4)
    comparison = audit.compare(subject, run, run)
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
    measurement = audit.measure(subject, refused)
    assert measurement.n == {"Black": 28, "White": 28}
    assert measurement.missing == {"Black": 2, "White": 2}
    only_usable = audit.measure(subject, [a for a in refused if a.usable])
    assert measurement.value == only_usable.value


@pytest.mark.parametrize("name", TEXT_AUDITS)
def test_too_few_documents_are_not_measured(name: str) -> None:
    audit, subject = registry.get("generation", name), item(name)
    with pytest.raises(NotMeasurable, match=r"too few usable answers \(6 for Black, 6 for White\); each group needs 8"):
        audit.measure(subject, answers(1, trials=3))


def test_the_reason_for_too_few_documents_says_where_they_went() -> None:
    refused = [
        replace(a, status=Status.REFUSED, content=None) if a.labels["race"] == "Black" else a for a in answers(1)
    ]
    with pytest.raises(NotMeasurable, match=r"too few usable answers \(0 for Black\).*30 refused"):
        registry.get("generation", "jsd").measure(item("jsd"), refused)


def test_identical_vocabularies_have_no_excess_and_no_significant_word() -> None:
    same = [replace(a, content=f"one two three number{a.trial}") for a in answers(1)]
    jsd = registry.get("generation", "jsd").measure(item("jsd"), same)
    assert jsd.details["bits"] == pytest.approx(0, abs=1e-9)
    assert jsd.p_value == 1
    assert registry.get("generation", "marked_words").measure(item("marked_words"), same).value == 0


def test_identity_terms_alone_tell_nobody_apart() -> None:
    marked = [replace(a, content=f"{a.content} for a {a.labels['race']} {a.labels['gender']}") for a in answers(10)]
    audit = registry.get("generation", "jsd")
    assert audit.measure(item("jsd"), marked).value == pytest.approx(
        audit.measure(item("jsd"), [replace(a, content=f"{a.content} for a") for a in answers(10)]).value
    )


@pytest.mark.parametrize("features", ["counts", "tfidf"])
def test_the_classifier_finds_the_words_of_either_side(features: str) -> None:
    measurement = registry.get("generation", "svm").measure(item("svm", features=features), answers(1, bias=0.9))
    assert measurement.value > 0.9
    assert {"braids", "hair"} & {word["word"] for word in measurement.details["top_words"]["marked"]}


@pytest.mark.parametrize("case", vectors("jsd_document_permutation"))
def test_excess_over_all_relabellings_of_documents(case: dict[str, Any]) -> None:
    documents = [document.split() for document in (*case["input"]["group_1"], *case["input"]["group_2"])]
    words = sorted({word for document in documents for word in document})
    counts = np.array([[document.count(word) for word in words] for document in documents], dtype=float)
    marked = np.repeat([True, False], [len(case["input"]["group_1"]), len(case["input"]["group_2"])])
    labels, exact = resampling.relabellings(
        marked, np.zeros(len(marked), dtype=np.int64), 999, np.random.default_rng(0)
    )
    together = Words.of(csr_array(counts), np.zeros(len(marked), dtype=np.int64), marked, ~marked, least=1)
    bits, null = (together.divergences(rows, ~rows)[:, 0] for rows in (marked[None], labels))
    expected = case["expected"]
    assert exact
    assert len(labels) == expected["n_splits"]
    assert bits[0] == pytest.approx(expected["jsd_bits"], abs=case["tol"])
    assert bits[0] - null.mean() == pytest.approx(expected["excess_bits"], abs=case["tol"])
    assert resampling.p_value(null, bits[0], exact=exact) == pytest.approx(expected["p_exact"])


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
    assert "67% for Black, 0% for White" in verdict.reason
    assert judge("refusals", refusing(1, 1), refusing(2, 0)).name.outcome != "failed"


@pytest.mark.parametrize("name", ["jsd", "mmd"])
def test_the_change_is_the_difference_of_the_two_values(name: str) -> None:
    audit, subject = registry.get("generation", name), item(name)
    now, then = answers(13, bias=0.5), answers(14, bias=0.3)
    change = audit.info.loss(audit.measure(subject, now).value) - audit.info.loss(audit.measure(subject, then).value)
    assert audit.compare(subject, now, then).value == pytest.approx(change, abs=1e-12)


ASKED_ONCE = probe(sampling={"temperature": 0.0})


def repeating(seed: int, bias: float, prompts: int = 1, flaw: bool = False) -> list[Answer]:
    """Return a run at temperature 0: one answer a prompt and cell, 15 times over.

    Args:
        flaw: whether a word of every third answer differs, as servers that calculate in batches have it.
    """
    found = []
    for prompt in range(prompts):
        run = answers(100 * seed + prompt, bias=bias)
        first = {tuple(sorted(a.labels.items())): str(a.content) for a in run if a.trial == 0}
        for answer in run:
            text = first[tuple(sorted(answer.labels.items()))]
            text = text.replace(" ", " indeed ", 1) if flaw and answer.trial % 3 == 1 else text
            labels = {**answer.labels, "prompt": str(prompt + 1)}
            found.append(replace(answer, labels=labels, text=text, content=text))
    return found


@pytest.mark.parametrize("flaw", [False, True])
@pytest.mark.parametrize("name", ["jsd", "marked_words", "mmd", "svm"])
def test_a_system_that_repeats_itself_is_neither_passed_nor_failed(name: str, flaw: bool) -> None:
    """Against a baseline as by a limit, changed or not: one observation a cell proves nothing."""
    audit = registry.get("generation", name)
    for bias, settings in ((0.9, {}), (0.0, {}), (0.9, {"limit": 0}), (0.0, {"limit": 90})):
        now, then = repeating(1, bias, flaw=flaw), repeating(2, 0.0)
        subject = item(name, of=ASKED_ONCE, **{"limit": 0.5, **settings} if name == "svm" and settings else settings)
        measurement = audit.measure(subject, now)
        concerns = tuple(audit.concerns(subject, now, measurement))
        verdict = decide(
            audit,
            subject,
            replace(measurement, concerns=concerns),
            baseline=None if settings else BaselineEntry(0.0),
            comparison=None if settings else audit.compare(subject, now, then),
            trials=15,
            accept="…",
        )
        assert verdict.name == "inconclusive"
        assert "every trial repeats the same answer, so that 60 answers are 4 observations" in verdict.reason


@pytest.mark.parametrize("name", ["jsd", "marked_words", "mmd", "svm", "refusals"])
def test_a_cell_of_a_system_that_repeats_itself_is_known_by_one_observation(name: str) -> None:
    audit, run = registry.get("generation", name), repeating(1, 0.9)
    cell = replace(
        item(name, of=ASKED_ONCE), subject="race=Black,gender=woman", labels={"race": "Black", "gender": "woman"}
    )
    used = [answer for answer in run if audit.uses(cell, answer.labels)]
    found = audit.concerns(cell, used, audit.measure(cell, used))
    assert [(each.name, each.withholds) for each in found if each.name == "repeated_answers"][:1] == [
        ("repeated_answers", "test")
    ]


@pytest.mark.parametrize("name", [*AUDITS, "lexicon"])
def test_answers_that_repeat_count_once_a_prompt(name: str) -> None:
    audit = registry.get("generation", name)
    subject = item("jsd", of=ASKED_ONCE)
    if name == "lexicon":
        labels = {**subject.labels, "lexicon": "hair"}
        settings: Any = audit.settings_model
        subject = replace(subject, labels=labels, settings=settings(lexicons={"hair": ["hair", "braids"]}))
    else:
        subject = item(name, of=ASKED_ONCE)
    run = repeating(1, 0.5, prompts=10)
    once = [answer for answer in run if answer.trial == 0]
    if name == "refusals":
        run, once = (
            [replace(a, status=Status.REFUSED) if a.labels["prompt"] == "3" else a for a in each]
            for each in (run, once)
        )
    assert audit.measure(subject, run) == audit.measure(subject, once)
    (note,) = audit.concerns(subject, run, audit.measure(subject, run))
    assert note.withholds == "nothing"
    assert "600 answers count as 40" in note.message


def partly_repeating(seed: int, prompts: int = 10, *, blanks: bool = True) -> tuple[list[Answer], list[Answer]]:
    """Return a run with 15 trials, 5 different answers to each prompt, three times each; and the run with each once."""
    run, once = [], []
    for prompt in range(prompts):
        for answer in answers(100 * seed + prompt, bias=0.5, trials=5):
            labels = {**answer.labels, "prompt": str(prompt + 1)}
            for copy in range(3):
                text = f"  {str(answer.text).upper()}" if blanks and copy == 2 else answer.text
                run.append(replace(answer, labels=labels, trial=answer.trial * 3 + copy, text=text, content=text))
            once.append(replace(answer, labels=labels))
    return run, once


@pytest.mark.parametrize("name", ["jsd", "mmd", "svm", "marked_words"])
def test_equal_answers_to_a_prompt_count_once(name: str) -> None:
    audit, subject = registry.get("generation", name), item(name)
    run, once = partly_repeating(1)
    other, other_once = partly_repeating(2)
    assert audit.measure(subject, run) == audit.measure(subject, once)
    assert audit.compare(subject, run, other) == audit.compare(subject, once, other_once)
    (note,) = (each for each in audit.concerns(subject, run, audit.measure(subject, run)))
    assert (note.name, note.withholds) == ("repeated_answers", "nothing")
    assert "600 answers count as 200" in note.message


def test_equal_answers_to_a_prompt_tell_as_much_about_refusals_as_one() -> None:
    audit, subject = registry.get("generation", "refusals"), item("refusals")
    found, changes = [], []
    for run in partly_repeating(1, blanks=False):
        refused = [replace(a, status=Status.REFUSED) if str(a.text)[-1] in "abcde" else a for a in run]
        found.append(audit.measure(subject, refused))
        changes.append(audit.compare(subject, refused, run).standard_error)
    repeated, once = found
    assert repeated.value == pytest.approx(once.value)
    assert repeated.interval == pytest.approx(once.interval)
    assert repeated.standard_error == pytest.approx(once.standard_error)
    assert repeated.p_value == pytest.approx(once.p_value)
    assert changes[0] == pytest.approx(changes[1], rel=0.2)


def test_equal_answers_that_may_be_equal_by_chance_are_all_counted() -> None:
    """Short ones, those that other prompts or groups get too, and those to few prompts, which cannot be told apart."""
    run, _ = partly_repeating(1)
    subject = item("jsd")
    assert len(Groups.of(subject, run).answers) == len(Groups.of(subject, run, with_copies=True).answers) / 3
    short = [replace(a, text=" ".join(str(a.text).split()[:5])) for a in run]
    fixed = [replace(a, text=f"I am sorry, but I cannot help with that: {a.trial % 2}.") for a in run]
    few, _ = partly_repeating(1, prompts=3)
    for answered in (short, fixed, few):
        groups = Groups.of(subject, answered)
        assert len(groups.answers) == len(Groups.of(subject, answered, with_copies=True).answers)
        assert groups.repetition == []


def test_answers_that_are_drawn_at_random_may_be_short_and_alike() -> None:
    run = [replace(answer, text="A book.", content="A book.") for answer in answers(1)]
    subject = item("refusals")
    assert Groups.of(subject, run).repetition == []
    assert len(Groups.of(subject, run).answers) == len(run)
    assert Groups.of(item("refusals", of=ASKED_ONCE), run).repetition != []


def with_names(run: list[Answer]) -> list[Answer]:
    """The same texts, each about a person whose name tells the group and nothing else."""
    typical = {"White": ("Emily", "Greg", "Hope"), "Black": ("Lakisha", "Jamal", "Grace")}
    texts = [
        f"For {typical[a.labels['race']][a.trial % 3]}: {a.text}. {typical[a.labels['race']][a.trial % 3]}'s choice."
        for a in run
    ]
    return [replace(a, text=text, content=text) for a, text in zip(run, texts, strict=True)]


@pytest.mark.parametrize("name", ["svm", "mmd", "jsd"])
def test_texts_that_differ_by_first_names_only_are_alike_without_these(name: str) -> None:
    audit, run = registry.get("generation", name), answers(5, 20)
    without_names = probe(anonymize={"names": True})
    told = audit.measure(item(name), with_names(run))
    alike = audit.measure(item(name, of=without_names), with_names(run))
    framed = [replace(a, text=f"For: {a.text}. choice.", content=f"For: {a.text}. choice.") for a in run]
    nameless = audit.measure(item(name), framed)
    assert told.p_value is not None
    assert alike.p_value is not None
    assert told.p_value <= 0.005
    assert alike.p_value > 0.05
    assert (alike.value, alike.p_value) == (nameless.value, nameless.p_value)
    if name == "svm":
        assert told.value > 0.95


@pytest.mark.parametrize("name", TEXT_AUDITS)
def test_the_words_of_a_planted_bias_contribute_most(name: str) -> None:
    audit = registry.get("generation", name)
    measurement = audit.measure(item(name), answers(1, bias=0.8))
    assert {"braids", "hair", "oil", "butter", "lotion", "skin"} & {
        part.name for part in audit.explanation(item(name), measurement).contributors[:5]
    }
