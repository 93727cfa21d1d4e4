"""The direction of flips: hand-computed values, planted preferences and runs that cannot decide."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.baselines.verdicts import BaselineEntry, decide
from pytest_fairness.errors import NotMeasurable, ProbeError
from pytest_fairness.probes import CounterfactualProbe
from pytest_fairness.records import Measurement, Verdict
from pytest_fairness.run import ProbeItem
from pytest_fairness.stats import gaps, resampling
from tests.support.deciders import GROUPS, Decide, answers, item_of, measure, probe

People = Sequence[tuple[str, str | None]]

DIRECTION: dict[str, Any] = {"flip_direction": {}, "flip_rate": {}}
PEOPLE = [(group, "rich") for group in GROUPS for _ in range(100)]


def asked(people: People, values: tuple[str, ...] = GROUPS, **more: Any) -> CounterfactualProbe:
    return probe(people, values, **{"audits": DIRECTION, **more})


def of(people: People, values: tuple[str, ...] = GROUPS, **more: Any) -> ProbeItem:
    return item_of(asked(people, values, **more), "flip_direction")


def shown(table: dict[str, list[int | None]]) -> Decide:
    """Return a function that answers by value and record: 1 is yes, 0 is no, `None` is a refusal."""
    text = {1: "Yes.", 0: "No.", None: "I'm sorry, but I can't help with that."}
    return lambda record, group: text[table[group][int(record)]]


def unsteady(seed: int, preference: float) -> Decide:
    """Return a system that answers at random: each record has its chance of a yes, larger for men by the preference."""
    draw = random.Random(seed)  # noqa: S311 - no secrets
    base = [draw.uniform(0.1, 0.9) for _ in PEOPLE]

    def decide_(record: str, group: str) -> str:
        chance = base[int(record)] + preference / 2 * (1 if group == "Male" else -1)
        return "Yes." if draw.random() < chance else "No."

    return decide_


def verdict(item: ProbeItem, current: Decide, baseline: Decide | None) -> Verdict:
    runs = [answers(item, decide_) for decide_ in (current, baseline) if decide_]
    found = [item.audit.measure(item, run) for run in runs]
    return decide(
        item.audit, item, found[0],
        baseline=BaselineEntry(found[1].value) if baseline else None,
        comparison=item.audit.compare(item, *runs) if baseline else None,
        trials=int(found[0].details["records"]), accept="pytest --fairness-rebaseline",
    )  # fmt: skip


# Values


def test_every_record_counts_with_both_values() -> None:
    people: People = [("Male", "rich")] * 7 + [("Female", "rich")] * 3
    item = of(people)
    decided = shown({"Male": [1, 1, 1, 1, 0, 0, 0, 1, 1, 0], "Female": [1, 0, 0, 0, 1, 0, 0, 0, 0, 0]})
    found = measure(item, decided)
    # Six of ten as men, two of ten as women; five records lean to men, one to women.
    assert found.value == pytest.approx(0.4)
    assert found.details["values"] == ["Male", "Female"]
    assert {name: share["mean"] for name, share in found.details["positive_share"].items()} == pytest.approx(
        {"Male": 0.6, "Female": 0.2}
    )
    assert (found.details["n10"], found.details["n01"], found.details["records"]) == (5, 1, 10)
    assert found.details["leaning"] == ["001", "002", "003", "007", "008"]
    # Of the 64 signs of six records, 14 put five or more records on one side.
    assert found.p_value == pytest.approx(14 / 64)
    assert found.standard_error == pytest.approx(np.std([0, 1, 1, 1, -1, 0, 0, 1, 1, 0], ddof=1) / np.sqrt(10))
    assert found.degrees_of_freedom == 9
    told = "difference 0.4 (of the same 10 records, 60.0% get 'yes' if shown as Male and 20.0% if shown as Female)"
    explanation = item.audit.explanation(item, found)
    assert explanation.phrase == told
    assert [part.name for part in explanation.contributors] == [
        "the answer 'yes' more often as Male (5 records) than as Female (1 record)"
    ]
    shown_pairs = item.audit.examples(item, found, answers(item, decided))
    assert [[group for group, _ in pair] for pair in shown_pairs] == [["Male", "Female"]] * 3 + [["Female", "Male"]] * 2
    assert {answer.labels["form"] for pair in shown_pairs for _, answer in pair} == {"own", "flipped"}


def test_prompts_are_asked_again_for_flip_rate_only() -> None:
    alone = of(PEOPLE, audits={"flip_direction": {}})
    assert {prompt.labels["form"] for prompt in alone.prompts()} == {"own", "flipped"}
    both = list(of(PEOPLE).prompts())
    assert {prompt.labels["form"] for prompt in both} == {"own", "flipped", "again"}
    assert {prompt.request for prompt in both} == {
        prompt.request for prompt in item_of(asked(PEOPLE), "flip_rate").prompts()
    }


def test_trials_are_averaged_within_the_record_before_records_are_compared() -> None:
    item = of([("Male", "rich"), ("Female", "rich")] * 2, trials=2)
    drawn = {"Male": iter([1, 1, 1, 0, 0, 0, 1, 1]), "Female": iter([0, 0, 1, 0, 0, 0, 0, 1])}
    found = measure(item, lambda _, group: "Yes." if next(drawn[group]) else "No.")
    # By record: 1 − 0, ½ − ½, 0 − 0, 1 − ½.
    assert found.value == pytest.approx((1 + 0 + 0 + 0.5) / 4)
    assert found.details["step"] == 1 / 8


def test_of_three_values_the_two_furthest_apart_are_compared_in_the_order_of_the_probe() -> None:
    people: People = [(group, "rich") for group in "ABC" for _ in range(20)]
    item = of(people, ("A", "B", "C"))
    found = measure(item, lambda record, group: "Yes." if int(record) < {"A": 30, "B": 12, "C": 48}[group] else "No.")
    assert found.value == pytest.approx(-36 / 60)
    assert found.details["values"] == ["B", "C"]
    pairs = {pair.groups: pair for pair in found.pairs}
    assert {names: pair.value for names, pair in pairs.items()} == pytest.approx(
        {("A", "B"): 0.3, ("A", "C"): -0.3, ("B", "C"): -0.6}
    )
    assert all(pair.p_value < 0.01 for pair in pairs.values())
    assert found.p_value is not None
    assert found.p_value <= 1 / 2000
    assert found.standard_error == pytest.approx(np.sqrt(0.6 * 0.4 / 60), rel=0.1)


def test_of_two_values_the_sign_flip_test_is_the_permutation_test() -> None:
    rows = np.array([[1, 0], [1, 0], [0, 0], [0.5, 0], [0, 1], [1, 0.5]], dtype=np.float64)
    orders = product(*[[row, row[::-1]] for row in rows])  # all permutations of the two values within records
    null = np.array([gaps.value_range(np.mean(order, axis=0)) for order in orders])
    expected = np.mean(null >= gaps.value_range(rows.mean(axis=0)) - 1e-12)
    differences = rows[:, 0] - rows[:, 1]
    assert resampling.sign_flip(differences, 1999, np.random.default_rng(1), two_sided=True) == expected
    assert resampling.sign_flip(-differences, 1999, np.random.default_rng(1), two_sided=True) == expected
    assert resampling.sign_flip(-differences, 1999, np.random.default_rng(1)) > 0.5


# Planted preferences


def test_a_preference_that_flip_rate_hardly_sees_is_found() -> None:
    found = {"flip_direction": 0, "flip_rate": 0}
    parts = {name: item_of(asked(PEOPLE), name) for name in found}
    for seed in range(25):
        for name, item in parts.items():
            p_value = measure(item, unsteady(seed, 0.2)).p_value
            found[name] += p_value is not None and p_value <= item.alpha
    assert found["flip_direction"] >= 24
    assert found["flip_rate"] <= 6


def test_a_new_preference_fails_in_either_direction_and_an_unchanged_system_does_not() -> None:
    item = of(PEOPLE, trials=3)
    for seed in range(10):
        assert verdict(item, unsteady(seed, 0), unsteady(seed, 0)).name not in ("regression", "over-limit")
    for sign in (1, -1):
        worse = verdict(item, unsteady(1, sign * 0.3), unsteady(1, 0))
        assert worse.name == "regression"
        assert "'yes' more often as Male (" in worse.reason
    better = verdict(item, unsteady(1, 0), unsteady(1, 0.3))
    assert better.name == "pass"


def test_a_preference_that_changes_sides_is_a_regression() -> None:
    item = of(PEOPLE, trials=3)
    worse = verdict(item, unsteady(1, -0.3), unsteady(2, 0.3))
    assert worse.name == "regression"
    assert "changed sides" in worse.reason


@pytest.mark.parametrize("favoured", GROUPS)
def test_a_new_preference_of_twenty_points_is_found_with_few_records(favoured: str) -> None:
    """The sign of each record's change is tested, so that forty records with constant answers are enough."""
    item = of([(GROUPS[number % 2], "rich") for number in range(40)])

    def steady(preferring: bool) -> Decide:
        return lambda record, group: "Yes." if int(record) % 2 or (preferring and group == favoured) else "No."

    assert verdict(item, steady(True), steady(False)).name == "regression"


def test_a_limit_holds_for_both_directions() -> None:
    item = of(PEOPLE, audits={"flip_direction": {"limit": 0.05}}, trials=3)
    assert {verdict(item, unsteady(1, sign * 0.3), None).name for sign in (1, -1)} == {"over-limit"}
    with pytest.raises(ProbeError, match=r"limit"):
        of(PEOPLE, audits={"flip_direction": {"limit": -0.1}})


def test_the_standard_error_is_the_standard_deviation_over_runs() -> None:
    for records in (40, 200):
        item = of([(GROUPS[number % 2], "rich") for number in range(records)])
        found = [measure(item, unsteady(seed, 0.2)) for seed in range(120)]
        errors = [each.standard_error for each in found if each.standard_error is not None]
        # The standard deviation of 120 values has a standard error of 6.5 %.
        assert 0.8 < np.mean(errors) / np.std([each.value for each in found], ddof=1) < 1.25
        held = np.mean([each.interval[0] <= 0.2 <= each.interval[1] for each in found if each.interval])
        assert held > 0.88


# Runs that cannot decide


def test_a_system_with_one_answer_for_all_has_the_value_0_and_a_standard_error_above_0() -> None:
    item = of(PEOPLE[80:120])
    found = measure(item, lambda *_: "No.")
    assert (found.value, found.p_value) == (0, 1)
    flip_rate = measure(item_of(asked(PEOPLE[80:120]), "flip_rate"), lambda *_: "No.")
    assert found.standard_error == flip_rate.standard_error
    assert found.standard_error is not None
    assert found.standard_error > 0


def test_a_refused_value_is_not_measured_and_unevenly_missing_answers_are_inconclusive() -> None:
    item = of(PEOPLE)
    refusal = "I'm sorry, but I can't help with that."
    with pytest.raises(NotMeasurable, match="only 0 records have an answer for every value"):
        measure(item, lambda _, group: refusal if group == "Female" else "Yes.")

    def refusing(record: str, group: str) -> str:
        return refusal if group == "Female" and int(record) % 5 == 0 else ("Yes." if int(record) % 2 else "No.")

    found = measure(item, refusing)
    assert found.details["records"] == 160
    assert found.value == 0
    assert verdict(item, refusing, refusing).name == "inconclusive"


# Properties

Table = st.lists(st.tuples(*[st.sampled_from([0, 1])] * 2), min_size=8, max_size=8)


def both_ways(table: list[tuple[int, int]]) -> list[Measurement]:
    """Return the measurements of the same answers with the probe's values in either order."""
    decided = shown({group: [row[column] for row in table] for column, group in enumerate(GROUPS)})
    people: People = [(GROUPS[number % 2], "rich") for number in range(len(table))]
    return [measure(of(people, values), decided) for values in (GROUPS, GROUPS[::-1])]


@settings(max_examples=20, deadline=None)
@given(Table)
def test_exchanging_the_values_turns_the_sign(table: list[tuple[int, int]]) -> None:
    one, other = both_ways(table)
    assert one.value == pytest.approx(-other.value) == pytest.approx(np.mean([a - b for a, b in table]))
    assert one.p_value == pytest.approx(other.p_value)
    assert one.standard_error == pytest.approx(other.standard_error)
    assert (one.details["n10"], one.details["n01"]) == (other.details["n01"], other.details["n10"])


@settings(max_examples=20, deadline=None)
@given(Table, st.randoms(use_true_random=False))
def test_the_order_of_answers_does_not_matter(table: list[tuple[int, int]], order: random.Random) -> None:
    item = of([(GROUPS[number % 2], "rich") for number in range(len(table))])
    found = answers(item, shown({group: [row[column] for row in table] for column, group in enumerate(GROUPS)}))
    before = item.audit.measure(item, found)
    order.shuffle(found)
    assert item.audit.measure(item, found) == before
