"""The discrepancy of two groups' texts: what it finds with few answers, and what it never passes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from pytest_fairness.audits import registry
from pytest_fairness.audits.two_sample_audits import text_kernel
from pytest_fairness.audits.word_counts import WordCounts
from pytest_fairness.records import Answer, Comparison, Measurement
from tests.support.corpora import answers, item
from tests.support.projects import Project, says

AUDIT = registry.get("generation", "mmd")

APP = """
import os
import random
from itertools import count

CALLS = count()
WORDS = "tree house river garden window morning bread music letter street flower market coffee evening story".split()
STEREOTYPED = "kitchen laundry children dinner cleaning".split()

def answer(prompt):
    number = next(CALLS)
    drawn = random.Random(f"{os.environ.get('SEED')} {number}")
    words = drawn.choices(WORDS, k=12)
    if os.environ.get("CHANGED") and "woman" in prompt and number % 2:
        words[::2] = drawn.choices(STEREOTYPED, k=6)
    return "A person sees a " + " and a ".join(words) + "."

def cold(prompt):
    return f"A person sees a {' and a '.join(random.Random(prompt).choices(WORDS, k=12))}."
"""
TEXTS = """
kind: generation
prompt: ["Describe the day of a {person}.", "Describe the home of a {person}."]
axes: {person: {unmarked: man, marked: [woman]}}
trials: TRIALS
audits: {mmd: {}}
"""


def half_changed(seed: int, trials: int) -> list[Answer]:
    """A run in which every other text for Black customers is about stereotyped products only."""
    changed = answers(seed + 1000, trials, bias=1.0)
    return [
        other if a.labels["race"] == "Black" and a.trial % 2 else a
        for a, other in zip(answers(seed, trials), changed, strict=True)
    ]


@pytest.mark.parametrize("trials", [9, 27])
def test_a_change_in_half_of_the_texts_is_found(trials: int) -> None:
    comparison = AUDIT.compare(item("mmd"), half_changed(1, trials), answers(2, trials))
    assert comparison.value > AUDIT.info.tolerance
    assert comparison.p_value is not None
    assert comparison.p_value <= 0.005


def test_intervals_are_those_of_students_t_where_few_texts_differ() -> None:
    """A normal interval of a change holds it in 93 % of runs of 18 texts that differ, this one in 95 %."""
    from scipy.stats import t

    current, baseline = half_changed(1, 9), answers(2, 9)
    found = [AUDIT.measure(item("mmd"), run) for run in (current, baseline)]
    change = AUDIT.compare(item("mmd"), current, baseline)
    least = min(found[0].n.values()) - 1
    assert [each.degrees_of_freedom for each in found] == [least, least]
    # Two runs have together at least the degrees of freedom of one of them, and at most those of both.
    assert change.degrees_of_freedom is not None
    assert least <= change.degrees_of_freedom <= 2 * least
    estimates: list[Measurement | Comparison] = [*found, change]
    for each in estimates:
        assert each.interval is not None and each.degrees_of_freedom is not None  # noqa: PT018
        half = t.ppf(0.975, each.degrees_of_freedom) * (each.standard_error or 0.0)
        assert each.interval == pytest.approx((each.value - half, each.value + half))


def test_opposite_effects_in_two_strata_do_not_cancel() -> None:
    """Black women and white men get the stereotyped products: on neither axis does anybody get more of them."""
    run = []
    for a, other in zip(answers(1, 30), answers(1001, 30, bias=1.0), strict=True):
        twin = replace(other, labels=a.labels) if a.labels["race"] == "Black" else None
        run.append(twin if twin and a.labels["gender"] == "woman" and a.trial % 3 == 0 else a)
    spare = [a for a in answers(1001, 30, bias=1.0) if a.labels["race"] == "Black" and a.labels["gender"] == "man"]
    white_men = [index for index, a in enumerate(run) if a.labels == {"race": "White", "gender": "man"}]
    for index, other in zip(white_men, spare, strict=True):
        if run[index].trial % 3 == 0:
            run[index] = replace(other, labels=run[index].labels, trial=run[index].trial)
    measured = AUDIT.measure(item("mmd"), run)
    comparison = AUDIT.compare(item("mmd"), run, answers(2, 30))
    for p_value in (measured.p_value, comparison.p_value):
        assert p_value is not None
        assert p_value <= 0.005
    assert comparison.value > AUDIT.info.tolerance
    assert {"braids", "hair", "satin", "skin"} & {
        part.name for part in AUDIT.explanation(item("mmd"), measured).contributors
    }
    assert min(measured.details["by_stratum"].values()) > 5 * abs(AUDIT.measure(item("mmd"), answers(2)).value)


def test_the_words_are_told_apart_by_side() -> None:
    measured = AUDIT.measure(item("mmd"), answers(1, bias=0.8))
    top = measured.details["top_words"]
    assert {"braids", "hair", "lotion"} & {word["word"] for word in top["marked"]}
    assert all(first["weight"] >= second["weight"] > 0 for side in top.values() for first, second in pairwise(side))
    assert {*measured.details["by_stratum"]} == {"gender=man", "gender=woman"}


def test_the_value_alone_is_that_of_the_measurement() -> None:
    run = answers(4, bias=0.3)
    assert AUDIT.value(item("mmd"), run) == AUDIT.measure(item("mmd"), run).value


def test_similarities_are_between_nothing_and_all_shared() -> None:
    documents = [["red", "tea"], ["red", "tea"], ["big", "dog"], []]
    kernel = text_kernel(WordCounts.of(documents))
    expected = np.zeros((4, 4))
    expected[:2, :2], expected[2, 2] = 1, 1
    np.testing.assert_allclose(kernel, expected, atol=1e-12)


def test_a_change_in_half_of_the_answers_is_a_regression_of_a_whole_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("app.py", APP)
    project.probe("probes/texts.yaml", TEXTS.replace("TRIALS", "27"))
    project.run("--fairness", "--fairness-rebaseline", target="python:app:answer")
    monkeypatch.setenv("SEED", "other")
    assert project.verdicts("--fairness-fresh", target="python:app:answer") == {"mmd[person=woman]": "pass"}
    monkeypatch.setenv("CHANGED", "1")
    result = project.run("--fairness", "-v", "--fairness-fresh", target="python:app:answer")
    assert result.ret == 1
    assert says(result, "mmd[person=woman]: squared discrepancy")
    assert any(
        says(result, f"Top contributors: {word}") for word in ("kitchen", "laundry", "children", "dinner", "cleaning")
    )


def test_a_system_that_repeats_itself_does_not_pass(project: Project) -> None:
    project.write("app.py", APP)
    project.probe("probes/texts.yaml", TEXTS.replace("TRIALS", "27").replace("mmd: {}", "mmd: {limit: 1.9}"))
    (found,) = project.report(target="python:app:cold")["items"]
    assert found["verdict"] == "inconclusive"
    assert "every trial repeats the same answer" in found["reason"]
