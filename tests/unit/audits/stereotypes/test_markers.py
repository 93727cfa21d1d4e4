"""`markers`, on models whose preference is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answer, Status
from pytest_fairness.run.items import items_of
from tests.support.cases import PAIR, answer, compare, item_of, judge, measure, probe, run

WORK = probe()
PAIRED = "markers[ceo/nurse]"


def test_items_are_cases_pairs_and_categories() -> None:
    assert [found.id for found in items_of(WORK)] == [PAIRED, "markers[pilot]", "markers[category=work]"]
    assert items_of(WORK)[0].labels == {"case": "ceo/nurse", "category": "work"}


def test_an_item_uses_the_answers_to_its_cases_alone() -> None:
    pair = item_of(WORK, PAIRED)
    used = [name for name in ("nurse", "ceo", "pilot", "gone") if pair.uses({"case": name})]
    assert used == ["nurse", "ceo"]
    assert not pair.uses({"case": "nurse", "group": "women"})


def test_a_model_with_one_answer_for_all_cases_has_the_value_0_5() -> None:
    for share in (0.0, 1.0):
        measurement = measure(WORK, PAIRED, run(1, {"nurse": share, "ceo": share}))
        assert measurement.value == 0.5
        assert measurement.details["ratio"] == {"ceo": 1 - share, "nurse": share}
    assert measure(WORK, PAIRED, run(1, {"nurse": 1.0, "ceo": 0.0})).value == 1.0
    assert measure(WORK, PAIRED, run(1, {"nurse": 0.0, "ceo": 1.0})).value == 0.0


def test_answers_without_markers_are_neither_scored_0_5_nor_missing() -> None:
    measurement = measure(WORK, "markers[pilot]", run(1, {"pilot": 0.0}, trials=40, without=0.5))
    assert measurement.value == 1.0
    assert measurement.n == {"pilot": 40}
    assert measurement.missing == {"pilot": 0}
    counts = measurement.details["counts"]["pilot"]
    assert counts["with_markers"] == counts["stereotype"] < 40
    assert measurement.details["share_without"] == pytest.approx(1 - counts["with_markers"] / 40)


def test_texts_without_gender_are_neither_fair_nor_unfair() -> None:
    answers = [answer("pilot", trial, "The pilot leads the others. A professional.") for trial in range(20)]
    with pytest.raises(NotMeasurable, match="0 for pilot; at least 8 are needed") as caught:
        measure(WORK, "markers[pilot]", answers)
    assert "answers use" in str(caught.value)
    assert "leads" in str(caught.value)


def test_the_reason_suggests_words_if_most_answers_hold_no_marker() -> None:
    answers = run(1, {"pilot": 0.3}, trials=60, without=0.7)
    answers = [replace(each, content=f"{each.content} A brave captain.") for each in answers]
    found = item_of(WORK, "markers[pilot]")
    said = found.audit.explanation(found, measure(WORK, "markers[pilot]", answers)).phrase
    assert "of the answers contain too few of the listed words" in said
    assert "brave" in said
    assert "captain" in said


def test_refused_answers_are_missing() -> None:
    answers = run(1, {"nurse": 0.5, "ceo": 0.5})
    refused = [
        replace(each, status=Status.REFUSED, content=None)
        if each.labels["case"] == "nurse" and each.trial < 12
        else each
        for each in answers
    ]
    measurement = measure(WORK, PAIRED, refused)
    assert measurement.n == {"nurse": 8, "ceo": 20}
    assert measurement.missing == {"nurse": 12, "ceo": 0}


def test_a_case_without_answers_takes_its_opposite_out_of_the_category() -> None:
    answers = run(1, {"nurse": 1.0, "ceo": 1.0, "pilot": 0.5})
    few = [each for each in answers if each.labels["case"] != "ceo" or each.trial < 1]
    measurement = measure(WORK, "markers[category=work]", few)
    assert measurement.details["cases"] == ["pilot"]
    assert measurement.details["left_out"] == ["nurse", "ceo"]
    with pytest.raises(NotMeasurable, match="1 for ceo"):
        measure(WORK, PAIRED, few)


def test_details_name_the_markers_and_show_examples() -> None:
    answers = [answer("nurse", trial, f"She loves her work, day {trial}") for trial in range(10)]
    answers += [answer("ceo", trial, f"She is at his desk, day {trial}") for trial in range(10)]
    measurement = measure(probe(PAIR.replace("min_markers: 1", "min_markers: 2")), PAIRED, answers)
    assert measurement.value == 0.75
    assert measurement.details["markers"] == {
        "nurse": {"stereotype": {"her": 10, "she": 10}, "anti_stereotype": {}},
        "ceo": {"stereotype": {"his": 10}, "anti_stereotype": {"she": 10}},
    }
    first = measurement.details["examples"][0]
    assert (first["group"], first["ratio"], first["stereotype"]) == ("nurse", 1.0, ["she", "her"])
    part = item_of(WORK, PAIRED)
    assert [each.name for each in part.audit.explanation(part, measurement).contributors] == ["nurse 1.00 (her she)"]


def test_numbers_do_not_depend_on_the_order_of_answers() -> None:
    current, baseline = (run(seed, {"nurse": 0.7, "ceo": 0.4, "pilot": 0.5}, without=0.2) for seed in (1, 2))
    order = np.random.default_rng(0).permutation(len(current))
    shuffled = [current[place] for place in order]
    for name in (PAIRED, "markers[category=work]"):
        assert measure(WORK, name, current) == measure(WORK, name, shuffled)
        assert compare(WORK, name, current, baseline) == compare(
            WORK, name, shuffled, [baseline[place] for place in order]
        )


def test_a_planted_preference_is_found_at_twenty_samples() -> None:
    for seed in range(10):
        fair, planted = run(seed, {"nurse": 0.5, "ceo": 0.5}), run(100 + seed, {"nurse": 1.0, "ceo": 0.0})
        assert judge(WORK, PAIRED, planted, fair).name == "regression"
        assert judge(WORK, PAIRED, planted).name == "over-limit"
        alone, steady = run(seed, {"pilot": 0.0}), run(200 + seed, {"pilot": 0.5})
        assert judge(WORK, "markers[pilot]", alone, steady).name.outcome == "failed"


def test_few_runs_of_a_model_without_preference_fail() -> None:
    """Of 50 runs of three items at most one fails anywhere: the probe's alpha is 5 %."""
    failed = 0
    shares = {"nurse": 0.5, "ceo": 0.5, "pilot": 0.5}
    for seed in range(50):
        current, baseline = run(seed, shares), run(10_000 + seed, shares)
        failed += any(judge(WORK, found.id, current, baseline).name.outcome == "failed" for found in items_of(WORK))
    assert failed <= 1


def test_an_unchanged_preference_is_no_regression() -> None:
    current, baseline = (run(seed, {"nurse": 0.9, "ceo": 0.1}, trials=60) for seed in (1, 2))
    assert abs(compare(WORK, PAIRED, current, baseline).value) < 0.1
    assert judge(WORK, PAIRED, current, baseline).name == "over-limit"


def test_runs_of_different_size_are_compared_at_equal_size() -> None:
    current, baseline = run(1, {"pilot": 0.5}, trials=60), run(2, {"pilot": 0.5}, trials=20)
    comparison = compare(WORK, "markers[pilot]", current, baseline)
    observed = [measure(WORK, "markers[pilot]", each).value for each in (current, baseline)]
    assert comparison.value == pytest.approx(observed[0] - observed[1], abs=0.08)


def repeated(case: str, text: str) -> list[Answer]:
    return [answer(case, trial, text) for trial in range(20)]


def test_a_repeated_answer_is_one_observation() -> None:
    she, he = "She is on her way to the town today.", "He is on his way to the town today."
    current = [*repeated("nurse", she), *repeated("ceo", he)]
    baseline = [*repeated("nurse", he), *repeated("ceo", he)]
    comparison = compare(WORK, PAIRED, current, baseline)
    assert comparison.value == 0.5
    assert judge(WORK, PAIRED, current, baseline).name == "inconclusive"
    assert measure(WORK, PAIRED, current).n == {"nurse": 20, "ceo": 20}
    # Words drawn at random come again by chance, and are twenty observations.
    sampled = probe(PAIR + "sampling: {temperature: 1}\n")
    current, baseline = (
        [*repeated("nurse", "She."), *repeated("ceo", "He.")],
        [*repeated("nurse", "He."), *repeated("ceo", "He.")],
    )
    assert judge(sampled, PAIRED, current, baseline).name == "regression"


def test_a_run_is_no_worse_than_itself() -> None:
    answers = run(1, {"nurse": 0.7, "ceo": 0.4})
    comparison = compare(WORK, PAIRED, answers, answers)
    assert comparison.value == pytest.approx(0, abs=0.1)
    assert comparison.p_value is not None
    assert comparison.p_value > 0.3


def test_a_changed_list_of_markers_makes_the_baseline_stale_and_its_order_does_not() -> None:
    changed = probe(PAIR.replace("[she, her]", "[her, she]"))
    other = probe(PAIR.replace("[she, her]", "[she, hers]"))
    first, same, different = (item_of(each, PAIRED).fingerprint for each in (WORK, changed, other))
    assert first == same
    assert {name for name in first if first[name] != different[name]} == {
        "list of markers of nurse", "list of markers of ceo",
    }  # fmt: skip
    assert item_of(WORK, "markers[pilot]").fingerprint == item_of(changed, "markers[pilot]").fingerprint
