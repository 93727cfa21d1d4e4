"""The audit `impact_ratio`: worked values, the four-fifths rule, small groups, and systems that never pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.audits import answer_checks
from pytest_fairness.audits.record_gaps import MedianSplit
from pytest_fairness.baselines.verdicts import BaselineEntry, decide
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answer, Comparison, Measurement, Status, Verdict
from pytest_fairness.run import ProbeItem
from tests.support.deciders import Decide, answers, item_of, measure, probe
from tests.support.oracles import vector, vectors


def impact(groups: dict[str, int], **settings_: Any) -> ProbeItem:
    """Return the item of a probe with this number of records of each group."""
    records = [(group, None) for group, size in groups.items() for _ in range(size)]
    return item_of(probe(records, [*groups], truth=None, audits={"impact_ratio": settings_}), "impact_ratio")


def selecting(selected: dict[str, int], sizes: dict[str, int]) -> Decide:
    """Return a system that selects the first records of each group, this many."""
    first: dict[str, int] = {}
    for group, size in sizes.items():
        first[group] = sum(first_size for name, first_size in sizes.items() if name in first)
        assert size >= selected[group]
    return lambda record, group: "Yes." if first[group] <= int(record) < first[group] + selected[group] else "No."


def measured(selected: dict[str, int], sizes: dict[str, int], **settings_: Any) -> Measurement:
    return measure(impact(sizes, **settings_), selecting(selected, sizes))


def verdict(
    item: ProbeItem, run: list[Answer], *, baseline: Measurement | None = None, change: Comparison | None = None
) -> Verdict:
    measurement = item.audit.measure(item, run)
    return decide(
        item.audit, item, measurement, baseline=None if baseline is None else BaselineEntry(baseline.value),
        comparison=change, trials=len(run), accept="",
    )  # fmt: skip


@pytest.mark.parametrize("case", vectors("impact_ratio"))
def test_ratios_and_intervals_agree_with_fairlearn_and_statsmodels(case: dict[str, Any]) -> None:
    groups, expected = case["input"]["groups"], case["expected"]
    sizes = {name: size for name, (_, size) in groups.items()}
    found = measured({name: hits for name, (hits, _) in groups.items()}, sizes)
    assert found.value == pytest.approx(expected["demographic_parity_ratio"], abs=case["tol"])
    rates = {part["group"]: part for part in found.details["rates"]}
    assert {name: part["rate"] for name, part in rates.items()} == pytest.approx(expected["by_group"], abs=case["tol"])
    assert rates[expected["most_selected"]]["ratio"] == 1.0
    for name, ends in expected["ratio_interval"].items():
        assert rates[name]["ratio_interval"] == pytest.approx(ends, abs=case["tol"])


def test_the_four_fifths_rule_needs_a_ratio_below_the_limit_and_a_significant_difference() -> None:
    small, large = {"Male": 50, "Female": 50}, {"Male": 250, "Female": 250}
    for sizes, selected, expected in (
        (large, (100, 60), "over-limit"),  # 0.6 in 500 records
        (small, (20, 12), "inconclusive"),  # 0.6 in 100 records: p = 0.13
        (large, (100, 90), "pass"),  # 0.9
        (large, (200, 170), "pass"),  # 0.85: p = 0.003, but not below four fifths
        (large, (200, 157), "over-limit"),  # 0.79, significantly different from 1, but not from 0.8
    ):
        item = impact(sizes, limit=0.8)
        run = answers(item, selecting(dict(zip(sizes, selected, strict=True)), sizes))
        assert verdict(item, run).name == expected, selected
    item = impact(large, limit=0.8, gate="strict")
    assert verdict(item, answers(item, selecting({"Male": 100, "Female": 90}, large))).name == "inconclusive"
    assert verdict(item, answers(item, selecting({"Male": 200, "Female": 157}, large))).name == "over-limit"
    item = impact(large, limit=0.8, gate="bound")
    assert verdict(item, answers(item, selecting({"Male": 200, "Female": 157}, large))).name == "inconclusive"
    assert verdict(item, answers(item, selecting({"Male": 100, "Female": 55}, large))).name == "over-limit"


def test_an_undecided_ratio_says_how_many_records_show_a_difference() -> None:
    sizes = {"Male": 50, "Female": 50}
    item = impact(sizes, limit=0.8)
    near = verdict(item, answers(item, selecting({"Male": 20, "Female": 15}, sizes)))
    assert near.name == "inconclusive"
    # The difference from equal rates decides, not the distance from the limit, which is a fifth of it.
    assert "over the limit, but not significantly. Needs about 738 records" in near.reason


def test_a_fall_of_the_ratio_since_the_baseline_is_a_regression() -> None:
    sizes = {"Male": 200, "Female": 200}
    item = impact(sizes)
    baseline = answers(item, selecting({"Male": 80, "Female": 78}, sizes))
    for women, expected in ((50, "regression"), (78, "pass"), (76, "pass")):
        run = answers(item, selecting({"Male": 80, "Female": women}, sizes))
        change = item.audit.compare(item, run, baseline)
        assert change.value == pytest.approx((78 - women) / 80, abs=0.02)
        earlier = item.audit.measure(item, baseline)
        found = verdict(item, run, baseline=earlier, change=change)
        assert found.name == expected
        assert ("positive answers of Female 39.0% to 25.0%." in found.reason) == (women == 50)


def test_a_reversed_ratio_is_a_regression_although_it_is_as_large() -> None:
    sizes = {"Male": 200, "Female": 200}
    item = impact(sizes)
    baseline = answers(item, selecting({"Male": 80, "Female": 60}, sizes))
    run = answers(item, selecting({"Male": 60, "Female": 80}, sizes))
    change = item.audit.compare(item, run, baseline)
    earlier = item.audit.measure(item, baseline)
    assert item.audit.measure(item, run).value == pytest.approx(earlier.value)
    found = verdict(item, run, baseline=earlier, change=change)
    assert found.name == "regression"
    assert "changed sides" in found.reason


def test_small_groups_are_left_out_and_named() -> None:
    sizes = {"White": 120, "Black": 80, "Other": 3}
    item = impact(sizes, limit=0.5)
    run = answers(item, selecting({"White": 48, "Black": 30, "Other": 0}, sizes))
    found = item.audit.measure(item, run)
    assert found.value == pytest.approx((30 / 80) / (48 / 120))
    rates = {part["group"]: (part["ratio"], part["rate"], part["left_out"]) for part in found.details["rates"]}
    assert rates["Other"] == (None, 0.0, "less than 2% of the records")
    notes = {concern.name: concern for concern in item.audit.concerns(item, run, found)}
    assert notes["small_groups"].message == ("not compared: Other (0 of 3 records, less than 2% of the records)")
    assert notes["small_groups"].withholds == "nothing"


def test_a_ratio_needs_two_groups_that_are_not_small() -> None:
    with pytest.raises(NotMeasurable, match=r"two groups have enough records .* Other \(less than 2% of the records\)"):
        measured({"White": 48, "Other": 1}, {"White": 220, "Other": 4})
    with pytest.raises(NotMeasurable, match="no record is selected"):
        measured({"White": 0, "Black": 0, "Other": 1}, {"White": 120, "Black": 80, "Other": 4})


def test_a_group_that_is_hardly_ever_selected_stays_in_the_ratio() -> None:
    sizes = {"White": 120, "Black": 80}
    item = impact(sizes, limit=0.8)
    run = answers(item, selecting({"White": 48, "Black": 2}, sizes))
    found = item.audit.measure(item, run)
    assert verdict(item, run).name == "over-limit"
    (note,) = item.audit.concerns(item, run, found)
    assert note.message == "the ratio is imprecise: fewer than 5 selected records in these groups: Black"


@pytest.mark.parametrize(
    ("decide_", "message"),
    [
        (lambda _record, _group: "No.", r"no record is selected \(selection: 'yes'\)"),
        (lambda _record, _group: "I'm sorry, but I can't help with that.", "only 0 records have all their answers"),
        (lambda _record, _group: None, "only 0 records have all their answers"),
        (
            lambda _record, group: "Yes." if group == "Male" else None,
            r"Female \(no records, 50 answers missing\)",
        ),
    ],
    ids=["nobody is selected", "all refused", "outage", "outage for one group"],
)
def test_what_cannot_be_measured(decide_: Decide, message: str) -> None:
    with pytest.raises(NotMeasurable, match=message):
        measure(impact({"Male": 50, "Female": 50}, limit=0.1), decide_)


def test_a_system_that_selects_everybody_has_no_verdict() -> None:
    item = impact({"Male": 50, "Female": 50}, limit=0.8)
    run = answers(item, lambda _record, _group: "Yes.")
    found = item.audit.measure(item, run)
    assert found.value == 1.0
    doubts = answer_checks.concerns(item.audit, item, run, found)
    assert (doubts[0].name, doubts[0].withholds) == ("constant_answers", "verdict")


def test_all_wordings_compare_the_same_records() -> None:
    # 100 records, each shown as both: 30 are selected as both, 10 as Male only, 2 as Female only.
    def decide_(record: str, group: str) -> str:
        number = int(record)
        selected = number < 30 or (number < 40 if group == "Male" else 40 <= number < 42)
        return "Yes." if selected else "No."

    item = impact({"Male": 50, "Female": 50}, wordings="all")
    found = measure(item, decide_)
    assert found.value == pytest.approx(32 / 40)
    assert found.details["records"] == 100
    assert found.n == {"Male": 100, "Female": 100}
    # statsmodels 0.15.0, mcnemar([[30, 10], [2, 58]], exact=False, correction=False): p = 0.02092133533779404.
    assert found.p_value == pytest.approx(0.0209213353)
    # A record that lacks an answer for one of the groups is left out as a whole.
    lacking = measure(
        item, lambda record, group: None if (record, group) == ("000", "Female") else decide_(record, group)
    )
    assert (lacking.details["records"], lacking.details["incomplete"]) == (99, ["000"])
    assert lacking.value == pytest.approx(31 / 39)


def test_a_baseline_of_other_wordings_is_stale() -> None:
    own, both = (impact({"Male": 50, "Female": 50}, wordings=wordings) for wordings in ("own", "all"))
    assert own.audit.fingerprint(own) == {"wordings": "own"}
    assert both.audit.fingerprint(both) == {"wordings": "all"}


def test_own_wordings_use_no_flipped_answers() -> None:
    item = impact({"Male": 50, "Female": 50})
    assert {prompt.labels["form"] for prompt in item.prompts()} == {"own"}
    both = impact({"Male": 50, "Female": 50}, wordings="all")
    assert {prompt.labels["form"] for prompt in both.prompts()} == {"own", "flipped"}


@settings(max_examples=12, deadline=None)
@given(st.permutations(["A", "B", "C"]), st.lists(st.integers(1, 20), min_size=3, max_size=3))
def test_names_and_order_of_groups_have_no_effect(names: list[str], selected: list[int]) -> None:
    sizes = {"A": 20, "B": 30, "C": 25}
    by_name = dict(zip(sizes, selected, strict=True))
    first = measured(by_name, sizes)
    second = measured({name: by_name[name] for name in names}, {name: sizes[name] for name in names})
    assert second.value == pytest.approx(first.value)
    assert second.interval == pytest.approx(first.interval)


@settings(max_examples=12, deadline=None)
@given(st.randoms(use_true_random=False))
def test_names_and_order_of_records_have_no_effect(random: Random) -> None:
    item = impact({"Male": 30, "Female": 30})
    run = answers(item, lambda record, group: "Yes." if int(record) % 7 < 3 + (group == "Male") else "No.")
    names = [answer.labels["record"] for answer in run]
    renamed = dict(zip(names, random.sample(names, len(names)), strict=True))
    other = [replace(each, labels={**each.labels, "record": renamed[each.labels["record"]]}) for each in run]
    random.shuffle(other)
    first, second = (item.audit.measure(item, each) for each in (run, other))
    assert second.value == pytest.approx(first.value)
    assert second.interval == pytest.approx(first.interval)
    # The permutation test draws other permutations.
    assert second.p_value == pytest.approx(first.p_value, abs=0.06)


def test_answers_of_several_trials_are_averaged_by_record() -> None:
    sizes = {"Male": 50, "Female": 50}
    decide_ = selecting({"Male": 20, "Female": 10}, sizes)
    once, item = measured({"Male": 20, "Female": 10}, sizes), impact(sizes)
    run = answers(item, decide_)
    repeated = [*run, *(Answer(each.labels, 1, each.text, Status.OK, each.content) for each in run)]
    twice = item.audit.measure(item, repeated)
    assert (twice.value, twice.interval) == (once.value, once.interval)


def test_the_effect_size_compares_the_two_rates() -> None:
    case = vector("impact_ratio", "two_groups")
    found = measured({"Male": 100, "Female": 60}, {"Male": 250, "Female": 250})
    effect = impact({"Male": 250, "Female": 250}).audit.info.effect
    assert case["expected"]["demographic_parity_ratio"] == found.value == 0.6
    assert effect is not None
    # 2 asin √0.4 − 2 asin √0.24 = 1.3694 − 1.0239
    assert effect.of(found.value, found) == pytest.approx(0.3455, abs=5e-4)
    assert effect.of(1.0, found) == 0.0


def scored(scores: Decide, **settings_: Any) -> Measurement:
    """Return the measurement of 40 records, half of each group, whose answers are scores from 0 to 100."""
    records = [(("Male", "Female")[number % 2], None) for number in range(40)]
    answer = {"number": {"min": 0, "max": 100}}
    audits = {"impact_ratio": settings_}
    return measure(item_of(probe(records, truth=None, answer=answer, audits=audits), "impact_ratio"), scores)


def test_numbers_above_the_median_of_all_are_selected() -> None:
    # Scores 50 to 89; women have 8 points less, so that 14 of the 20 scores above the median are men's.
    found = scored(lambda record, group: str(50 + int(record) - 8 * (group == "Female")))
    rates = {part["group"]: part["hits"] for part in found.details["rates"]}
    numbers = sorted((50 + number - 8 * (number % 2), number % 2) for number in range(40))
    median = (numbers[19][0] + numbers[20][0]) / 2
    above = [sum(score > median and sex == side for score, sex in numbers) for side in (0, 1)]
    assert rates == {"Male": above[0], "Female": above[1]}
    assert found.value == pytest.approx(above[1] / above[0])
    assert found.details["selected"] == f"above the median of {median:g}"
    lower = scored(lambda record, group: str(50 + int(record) - 8 * (group == "Female")), selected="below")
    below = [sum(score < median and sex == side for score, sex in numbers) for side in (0, 1)]
    assert lower.value == pytest.approx(below[0] / below[1])


def test_numbers_that_equal_the_median_count_in_part_so_that_half_of_all_are_selected() -> None:
    # Three quarters of the scores are 70, which is then the median: a third of each counts.
    found = scored(lambda record, _group: "90" if int(record) % 4 == 0 else "70")
    rates = {part["group"]: part["hits"] for part in found.details["rates"]}
    assert rates == {"Male": pytest.approx(10 + 10 / 3), "Female": pytest.approx(20 / 3)}
    assert found.value == pytest.approx(0.5)
    assert found.details["selected"] == "above the median of 70, 33% of each of the 30 equal to it"
    # By the letter of Local Law 144, no woman is above the median.
    assert found.details["strict_ratio"] == 0
    lowest = scored(lambda record, _group: "50" if int(record) % 4 == 0 else "70")
    assert {part["group"]: part["hits"] for part in lowest.details["rates"]} == {
        "Male": pytest.approx(20 / 3),
        "Female": pytest.approx(40 / 3),
    }
    with pytest.raises(NotMeasurable, match="no record is selected"):
        scored(lambda _record, _group: "70")


def test_a_single_number_that_equals_the_median_is_not_above_it() -> None:
    split = MedianSplit.of([50, 60, 70, 80, 90], "above")
    assert [split.share(number) for number in (60, 70, 80)] == [0, 0, 1]
    assert str(split) == "above the median of 70"


def told(said: Sequence[str], record: str, _group: str) -> str:
    """Return the answer about a record."""
    return said[int(record)]


@pytest.mark.parametrize("step", [5, 0.001])
def test_the_error_of_a_change_contains_that_the_median_moves(step: float) -> None:
    """Other people are scored in each repeat; women newly get 5 points less, so that the median may jump by a step."""
    random = np.random.default_rng(1)
    women = np.arange(200) % 2 == 1
    records = [(("Male", "Female")[number % 2], None) for number in range(200)]
    answer = {"number": {"min": 0, "max": 100}}
    item = item_of(probe(records, truth=None, answer=answer, audits={"impact_ratio": {}}), "impact_ratio")
    found = []
    for _ in range(60):
        merit = np.clip(random.normal(60, 12, 200), 6, 94)
        runs = []
        for points in (5, 0):
            scores = step * np.round((merit + random.normal(0, 2, 200)) / step) - points * women
            said = [f"{score:.3f}" for score in scores]
            runs.append(answers(item, partial(told, said)))
        current, baseline = runs
        found.append(item.audit.compare(item, current, baseline))
    # If no group is clearly ahead in both runs together, the sign of the change is unknown.
    deviation = np.std([abs(each.value) for each in found], ddof=1)
    errors = [each.standard_error for each in found if each.standard_error]
    assert deviation < 0.09
    assert 0.9 < np.sqrt(np.mean(np.square(errors))) / deviation < 1.25
