"""`score` of cases: values by hand, properties, and what never passes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_fairness.errors import BaselineStale, NotMeasurable, ProbeError
from pytest_fairness.records import Answer, Status
from pytest_fairness.run.items import items_of
from pytest_fairness.stats import gaps
from tests.support.cases import GROUPS, item_of, judge, measure, probe

TEXT = GROUPS.replace("regard: {}", "score: {scorer: words, tolerance: 5, better: higher}")
PROBE = probe(TEXT)
ITEM = "score[words,category=places]"


def answer(case: str, group: str, trial: int, score: float | None) -> Answer:
    labels = {"case": case, "category": "places", "group": group}
    text = f"Answer {trial} about {group} in the {case} with {score} words."
    if score is None:
        return Answer(labels, trial, text, Status.UNREADABLE, error="words raised ValueError")
    return Answer(labels, trial, text, Status.OK, {"model": "words 1", "score": score})


def run(seed: int, means: Mapping[str, float], trials: int = 40, sd: float = 10.0) -> list[Answer]:
    random = np.random.default_rng(seed)
    return [
        answer(case, group, trial, float(random.normal(mean + 20 * (case == "bus"), sd)))
        for case in ("bus", "shop")
        for group, mean in means.items()
        for trial in range(trials)
    ]


def test_items_are_the_cases_with_groups() -> None:
    assert [found.id for found in items_of(PROBE)] == ["score[words,bus]", "score[words,shop]", ITEM]
    with pytest.raises(ProbeError, match="`score` needs a case with a `prompt` and `groups`"):
        probe(
            TEXT.replace(", groups: [women, men]", "").replace(", groups: [men, women]", "").replace("{group}", "a man")
        )


def test_the_value_is_the_difference_of_the_means_over_cases() -> None:
    answers = [
        answer(case, group, trial, score + trial % 2)
        for case, group, score in (
            ("bus", "women", 10.0),
            ("bus", "men", 14.0),
            ("shop", "women", 30.0),
            ("shop", "men", 32.0),
        )
        for trial in range(8)
    ]
    measured = measure(PROBE, ITEM, answers)
    assert measured.value == pytest.approx(3.0)
    assert measured.details["scores"]["men"]["mean"] == pytest.approx(23.5)
    # The variance of 0, 1, 0, … is 8/28 in each of four cells of eight scores.
    assert measured.standard_error == pytest.approx(np.sqrt(4 * (8 / 28) / 8) / 2)
    assert measured.p_value is not None
    assert measured.p_value < 0.01


def test_one_case_of_two_groups_as_a_t_test() -> None:
    answers = [each for each in run(1, {"women": 50, "men": 60}) if each.labels["case"] == "bus"]
    measured = measure(PROBE, "score[words,bus]", answers)
    scores = {
        group: [each.content["score"] for each in answers if each.labels["group"] == group]
        for group in ("men", "women")
    }
    welch = stats.ttest_ind(scores["men"], scores["women"], equal_var=False)
    assert measured.value == pytest.approx(np.mean(scores["men"]) - np.mean(scores["women"]))
    assert measured.standard_error == pytest.approx(measured.value / welch.statistic)


@settings(max_examples=20)
@given(shift=st.floats(-1e4, 1e4), seed=st.integers(0, 100))
def test_another_zero_changes_nothing(shift: float, seed: int) -> None:
    one = run(seed, {"women": 50, "men": 60}, trials=8)
    other = [
        answer(each.labels["case"], each.labels["group"], each.trial, each.content["score"] + shift) for each in one
    ]
    values = [measure(PROBE, ITEM, answers).value for answers in (one, other)]
    assert values[1] == pytest.approx(values[0], abs=1e-6)


def test_a_planted_gap_is_found_and_no_gap_is_not() -> None:
    fair = {"women": 50.0, "men": 50.0}
    for seed in range(5):
        baseline = run(2 * seed, fair)
        assert judge(PROBE, ITEM, run(2 * seed + 1, {"women": 35, "men": 50}), baseline).name == "regression"
        assert judge(PROBE, ITEM, run(2 * seed + 1, fair), baseline).name in ("pass", "inconclusive")


def test_too_few_scores_cannot_be_measured() -> None:
    answers = [
        answer("bus", group, trial, None if trial > 3 else 5.0 + trial)
        for group in ("women", "men")
        for trial in range(20)
    ]
    with pytest.raises(
        NotMeasurable, match=r"too few scored answers: 4 for men, 4 for women.*32 of 40 answers have no score"
    ):
        measure(PROBE, "score[words,bus]", answers)


def test_a_smaller_scale_makes_the_baseline_stale() -> None:
    hundred = run(1, {"women": 50.0, "men": 50.0})
    one = [
        answer(each.labels["case"], each.labels["group"], each.trial, each.content["score"] / 100) for each in hundred
    ]
    found = item_of(PROBE, ITEM)
    with pytest.raises(BaselineStale, match="scale of words"):
        found.audit.compare(found, one, hundred)


def test_errors_of_samples_without_bounds() -> None:
    first, second = np.array([1.0, 3.0, 5.0]), np.array([2.0, 2.0, 2.0, 2.0])
    assert gaps.sample_errors([first, second]).tolist() == pytest.approx([stats.sem(first), 0.0])
    # A single number gets the pooled variance: 8 / (2 + 3).
    assert gaps.sample_errors([first, second, np.array([9.0])])[2] == pytest.approx(np.sqrt(8 / 5))
    # Two values only: as shares, so that equal scores are not certain.
    two = gaps.sample_errors([np.array([10.0] * 20), np.array([10.0] * 10 + [30.0] * 10)])
    assert two[0] == pytest.approx(20 * gaps.bounded_error(np.zeros(20), 0.5))
    assert two[0] > 0
    assert gaps.sample_errors([np.array([7.0] * 5)] * 2).tolist() == [0, 0]
