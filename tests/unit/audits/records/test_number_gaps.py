"""Gaps in numbers: hand-computed values, planted gaps, equality with SciPy, and runs that cannot decide."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import mstats

from pytest_fairness import kinds, probes
from pytest_fairness.audits import answer_checks
from pytest_fairness.baselines.verdicts import BaselineEntry, decide
from pytest_fairness.errors import NotMeasurable, ProbeError
from pytest_fairness.probes import CounterfactualProbe
from pytest_fairness.records import Answer, Comparison, Measurement, Verdict
from tests.support.deciders import GROUPS, Decide, answers, item_of

AUDITS: dict[str, Any] = {
    "mean_gap": {"tolerance": 4},
    "tail_gap": {"tolerance": 4, "quantile": 0.8},
    "rank_gap": {"tolerance": 0.09},
}
Scores = Mapping[str, Sequence[float]]
"""By value, the number of each record."""


def asked(count: int, values: Sequence[str] = GROUPS, audits: Any = AUDITS, **more: Any) -> CounterfactualProbe:
    written = {
        "kind": "counterfactual",
        "name": "people",
        "prompt": "Record {id}; group is {group}. A score from 0 to 100?",
        "records": [{"id": f"{number:03}", "group": values[number % len(values)]} for number in range(count)],
        "flip": {"group": {values[0]: values[1]} if len(values) == 2 else list(values)},
        "answer": {"number": {"min": 0, "max": 100, "unit": "points"}},
        "audits": audits,
        **more,
    }
    found = probes.parse(json.dumps(written).encode(), Path("people.yaml"), kinds.schemas())
    assert isinstance(found, CounterfactualProbe)
    return found


def saying(scores: Mapping[str, Sequence[object]]) -> Decide:
    return lambda record, group: str(scores[group][int(record)])


def measured(scores: Scores, name: str, values: Sequence[str] = GROUPS, **settings_: Any) -> Measurement:
    item = item_of(asked(len(scores[values[0]]), values, {name: {**AUDITS[name], **settings_}}), name)
    return item.audit.measure(item, answers(item, saying(scores)))


def compared(current: Scores, baseline: Scores, name: str) -> Comparison:
    item = item_of(asked(len(current["Male"])), name)
    runs = [answers(item, saying(each)) for each in (current, baseline)]
    return item.audit.compare(item, *runs)


def verdict(current: Decide, baseline: Decide | None, name: str, count: int = 120, **more: Any) -> Verdict:
    item = item_of(asked(count, **more), name)
    runs = [answers(item, decide_) for decide_ in (current, baseline) if decide_]
    found = [item.audit.measure(item, run) for run in runs]
    concerns = answer_checks.concerns(item.audit, item, runs[0], found[0])
    return decide(
        item.audit, item, replace(found[0], concerns=concerns),
        baseline=BaselineEntry(found[1].value) if baseline else None,
        comparison=item.audit.compare(item, *runs) if baseline else None,
        trials=int(found[0].details["records"]), accept="pytest --fairness-rebaseline",
    )  # fmt: skip


def drawing(
    seed: int, gap: float = 0.0, sd: float = 12.0, change: Callable[[float], float] = lambda score: score
) -> Decide:
    """Return a system that draws each score anew; the second group gets `gap` points less, and `change` its score."""
    random = np.random.default_rng(seed)

    def decide_(_: str, group: str) -> str:
        score = random.normal(60, sd) - gap * (group == GROUPS[1])
        score = change(score) if group == GROUPS[1] else score
        return f"Score: {min(100, max(0, score)):.0f}/100"

    return decide_


# Values

SCORES: Scores = {"Male": [70, 80, 60, 90, 50, 75], "Female": [60, 80, 55, 85, 52, 64]}


def test_the_mean_gap_and_its_interval_are_those_of_the_paired_t_test() -> None:
    found = measured(SCORES, "mean_gap")
    assert found.value == pytest.approx((10 + 0 + 5 + 5 - 2 + 11) / 6)
    test = stats.ttest_rel(SCORES["Male"], SCORES["Female"])
    interval = test.confidence_interval(0.95)
    assert found.interval == pytest.approx((interval.low, interval.high))
    assert found.standard_error == pytest.approx(found.value / test.statistic)
    assert found.degrees_of_freedom == 5
    # Of the 32 signs of five records, 4 give a sum of at least 29 or at most -29: all are +, or only the 2 is -.
    assert found.p_value == pytest.approx(4 / 32)
    assert found.details["mean"]["Male"]["mean"] == pytest.approx(np.mean(SCORES["Male"]))
    assert found.details["mean"]["Female"]["sd"] == pytest.approx(np.std(SCORES["Female"], ddof=1))
    assert found.details["values"] == ["Male", "Female"]
    assert found.details["leaning"] == ["005", "000", "002", "003"]
    assert found.details["unit"] == "points"
    assert found.details["equal_records"] == 1


def test_the_effect_size_is_the_gap_in_standard_deviations_of_the_numbers() -> None:
    item = item_of(asked(6), "mean_gap")
    found = measured(SCORES, "mean_gap")
    effect = item.audit.info.effect
    assert effect is not None
    spread = np.sqrt((np.var(SCORES["Male"], ddof=1) + np.var(SCORES["Female"], ddof=1)) / 2)
    assert effect.of(found.value, found) == pytest.approx(found.value / spread)


def test_the_tail_gap_is_the_difference_of_quantiles() -> None:
    random = np.random.default_rng(3)
    scores = {group: random.integers(20, 90, 40).tolist() for group in GROUPS}
    found = measured(scores, "tail_gap")
    quantiles = np.array([mstats.hdquantiles(scores[group], [0.2, 0.8]) for group in GROUPS])
    gaps = quantiles[0] - quantiles[1]
    worst = int(np.abs(gaps).argmax())
    assert found.value == pytest.approx(gaps[worst])
    assert found.details["quantile_of"] == (0.2, 0.8)[worst]
    assert found.details["quantile"]["Male"]["quantile"] == pytest.approx(quantiles[0][worst])
    assert [pair.quantity for pair in found.pairs] == ["0.2 quantile", "0.8 quantile"]
    assert [pair.value for pair in found.pairs] == pytest.approx(gaps.tolist())


def test_the_rank_gap_is_the_difference_of_mean_ranks() -> None:
    found = measured(SCORES, "rank_gap")
    ranks = stats.rankdata([*SCORES["Male"], *SCORES["Female"]])
    assert found.value == pytest.approx((ranks[:6].mean() - ranks[6:].mean()) / 12)
    wins = np.sign(np.subtract.outer(SCORES["Male"], SCORES["Female"])).mean()
    assert found.value == pytest.approx(wins / 2)


def test_trials_are_averaged_within_the_record() -> None:
    item = item_of(asked(4, trials=2), "mean_gap")
    drawn = {"Male": iter([10, 20, 30, 40, 50, 60, 70, 80]), "Female": iter([10, 10, 30, 30, 50, 50, 70, 70])}
    found = item.audit.measure(item, answers(item, lambda _, group: str(next(drawn[group]))))
    assert found.value == pytest.approx(5)
    assert found.standard_error is not None
    assert found.standard_error > 0  # each record differs by 5, which four records do not prove for all others


def test_of_three_values_the_two_furthest_apart_are_compared_in_the_order_of_the_probe() -> None:
    values = ("A", "B", "C")
    random = np.random.default_rng(1)
    base = random.normal(60, 5, 60)
    scores = {
        name: np.round(base + shift + random.normal(0, 3, 60), 1).tolist()
        for name, shift in zip(values, (0, -6, 6), strict=True)
    }
    found = measured(scores, "mean_gap", values)
    assert found.value == pytest.approx(np.mean(scores["B"]) - np.mean(scores["C"]))
    assert found.details["values"] == ["B", "C"]
    assert len(found.pairs) == 3
    assert found.p_value is not None
    assert found.p_value <= 1 / 2000


# Properties

Rows = st.lists(st.tuples(*[st.integers(0, 100)] * 2), min_size=30, max_size=36)
NAMES = st.sampled_from([*AUDITS])


def by_group(rows: Sequence[tuple[float, float]], order: Sequence[str] = GROUPS) -> Scores:
    return {group: [row[column] for row in rows] for column, group in enumerate(order)}


@settings(max_examples=15, deadline=None)
@given(Rows, NAMES)
def test_exchanging_the_groups_turns_the_sign(rows: list[tuple[float, float]], name: str) -> None:
    one, other = measured(by_group(rows), name), measured(by_group(rows, GROUPS[::-1]), name)
    assert one.value == pytest.approx(-other.value, abs=1e-9)
    assert one.standard_error == pytest.approx(other.standard_error)
    assert one.interval is not None
    assert other.interval is not None
    assert one.interval == pytest.approx((-other.interval[1], -other.interval[0]), abs=1e-9)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 40)] * 2), min_size=30, max_size=36), NAMES)
def test_gaps_do_not_change_if_all_numbers_move_and_grow_with_the_unit(rows: list[tuple[int, int]], name: str) -> None:
    plain = measured(by_group(rows), name)
    moved = measured(by_group([(a + 20, b + 20) for a, b in rows]), name)
    doubled = measured(by_group([(2 * a, 2 * b) for a, b in rows]), name)
    factor = 1 if name == "rank_gap" else 2
    assert moved.value == pytest.approx(plain.value, abs=1e-9)
    assert moved.standard_error == pytest.approx(plain.standard_error, abs=1e-9)
    assert doubled.value == pytest.approx(factor * plain.value, abs=1e-9)
    assert doubled.standard_error == pytest.approx(factor * (plain.standard_error or 0), abs=1e-9)


@settings(max_examples=15, deadline=None)
@given(Rows, NAMES, st.randoms(use_true_random=False))
def test_the_names_of_records_and_the_order_of_answers_do_not_matter(
    rows: list[tuple[float, float]], name: str, order: Any
) -> None:
    plain = measured(by_group(rows), name)
    shuffled = [*rows]
    order.shuffle(shuffled)
    found = measured(by_group(shuffled), name)
    assert found.value == pytest.approx(plain.value, abs=1e-9)
    assert found.standard_error == pytest.approx(plain.standard_error)
    item = item_of(asked(len(rows)), name)
    given_ = answers(item, saying(by_group(rows)))
    order.shuffle(given_)
    assert item.audit.measure(item, given_) == plain


@settings(max_examples=15, deadline=None)
@given(Rows)
def test_gaps_are_within_their_bounds(rows: list[tuple[float, float]]) -> None:
    largest = max(abs(a - b) for a in (row[0] for row in rows) for b in (row[1] for row in rows))
    assume(largest)
    assert abs(measured(by_group(rows), "mean_gap").value) <= largest + 1e-9
    assert abs(measured(by_group(rows), "tail_gap").value) <= largest + 1e-9
    assert abs(measured(by_group(rows), "rank_gap").value) <= 0.5


@pytest.mark.parametrize("name", AUDITS)
def test_a_run_compared_with_itself_and_with_its_mirror_image(name: str) -> None:
    random = np.random.default_rng(5)
    rows = [(float(a), float(b)) for a, b in random.integers(0, 100, (40, 2))]
    same = compared(by_group(rows), by_group(rows), name)
    assert same.value == 0
    assert same.standard_error is not None
    assert same.standard_error > 0
    mirrored = compared(by_group(rows), by_group([(b, a) for a, b in rows]), name)
    assert mirrored.reversal is not None
    assert mirrored.reversal.value == pytest.approx(abs(measured(by_group(rows), name).value))


# Planted gaps


@pytest.mark.parametrize("name", AUDITS)
def test_a_planted_gap_fails_in_either_direction_and_an_unchanged_system_does_not(name: str) -> None:
    for seed in (0, 2):
        same = verdict(drawing(2 * seed), drawing(2 * seed + 1), name, count=200)
        assert same.name in ("pass", "inconclusive")
    for sign in (1, -1):
        worse = verdict(drawing(1, sign * 10), drawing(2), name, count=200)
        assert worse.name == "regression", worse.reason
        assert "shown as Male" in worse.reason
    assert verdict(drawing(1), drawing(2, 10), name, count=200).name == "pass"
    reversed_ = verdict(drawing(1, 10), drawing(2, -10), name, count=200)
    assert reversed_.name == "regression"
    assert "changed sides" in reversed_.reason


def test_only_the_tail_gap_finds_a_ceiling_for_one_group() -> None:
    def capped(score: float) -> float:
        return min(score, 66.0)

    audits = {**AUDITS, "tail_gap": {"tolerance": 4, "quantile": 0.9}}
    found = {
        name: verdict(drawing(1, change=capped), drawing(2), name, 400, audits=audits).name
        for name in ("mean_gap", "tail_gap")
    }
    assert found["tail_gap"] == "regression"
    assert found["mean_gap"] != "regression"


@pytest.mark.parametrize("quantile", [0.9, 0.1])
def test_the_tail_gap_finds_that_the_lowest_scores_of_one_group_fall_whichever_quantile_is_set(quantile: float) -> None:
    """Everybody of one group who would have less than 40 points gets 15 less."""
    audits = {"tail_gap": {"tolerance": 3, "quantile": quantile}}
    lower = drawing(1, sd=22, change=lambda score: score - 15 if score < 40 else score)
    found = verdict(lower, drawing(2, sd=22), "tail_gap", 400, audits=audits)
    assert found.name == "regression", found.reason
    assert "0.1 quantile" in found.reason


def test_a_limit_holds_for_both_directions_in_the_unit_of_the_answers() -> None:
    audits = {"mean_gap": {"tolerance": 4, "limit": 5}}
    for sign in (1, -1):
        assert verdict(drawing(1, sign * 14), None, "mean_gap", 300, audits=audits).name == "over-limit"
    assert verdict(drawing(1), None, "mean_gap", 300, audits=audits).name == "pass"
    with pytest.raises(ProbeError, match="limit"):
        asked(4, audits={"mean_gap": {"tolerance": 4, "limit": -5}})


@pytest.mark.parametrize(
    ("name", "true"), [("mean_gap", 6.0), ("rank_gap", stats.norm.cdf(6 / (12 * np.sqrt(2))) - 0.5)]
)
def test_intervals_contain_the_planted_gap(name: str, true: float) -> None:
    item, held = item_of(asked(60), name), 0
    for seed in range(40):
        found = item.audit.measure(item, answers(item, drawing(seed, 6)))
        assert found.interval is not None
        held += found.interval[0] <= true <= found.interval[1]
    assert held >= 34


# Settings and explanations


@pytest.mark.parametrize(
    ("audits", "said"),
    [
        ({"mean_gap": {}}, "tolerance"),
        ({"tail_gap": {"tolerance": 4}}, "quantile"),
        ({"tail_gap": {"tolerance": 4, "quantile": 1}}, "quantile"),
        ({"rank_gap": {"limit": 0.6}}, "limit"),
    ],
)
def test_tolerance_and_quantile_must_be_set(audits: Any, said: str) -> None:
    with pytest.raises(ProbeError, match=said):
        asked(4, audits=audits)


def test_another_quantile_makes_a_baseline_stale() -> None:
    items = [
        item_of(asked(4, audits={"tail_gap": {"tolerance": 4, "quantile": share}}), "tail_gap") for share in (0.1, 0.9)
    ]
    assert items[0].audit.fingerprint(items[0]) != items[1].audit.fingerprint(items[1])


def test_reports_get_the_unit_the_compared_numbers_and_the_reasons_for_unreadable_answers() -> None:
    item = item_of(asked(10), "mean_gap")
    texts = {"Male": ["70"] * 8 + ["70 to 80", "70"], "Female": ["60"] * 8 + ["60", "170"]}
    found = item.audit.measure(item, answers(item, saying(texts)))
    reasons = answer_checks.unread_reasons(answers(item, saying(texts)))
    found = replace(found, details={**found.details, "unread_reasons": reasons})
    told = item.audit.explanation(item, found)
    assert told.phrase == (
        "gap 10 points (mean 70 shown as Male and 60 shown as Female; each mean over the same 8 records; "
        "unreadable answers: a range (1), outside min and max (1))"
    )
    pairs = item.audit.examples(item, found, answers(item, saying(texts)))
    assert [(group, answer.content) for group, answer in pairs[0]] == [("Male", 70.0), ("Female", 60.0)]
    assert told.contributions == {"mean as Male": 70, "mean as Female": 60}


# Runs that cannot decide

REFUSAL = "I'm sorry, but I can't help with that."


@pytest.mark.parametrize(
    "lost", ["Service unavailable, request 17.", "", REFUSAL, "between 60 and 70", None, "NaN", "140"]
)
def test_a_group_without_numbers_is_not_measured(lost: str | None) -> None:
    item = item_of(asked(40), "mean_gap")
    given_ = answers(item, lambda record, group: lost if group == "Female" else str(50 + int(record)))
    with pytest.raises(NotMeasurable, match=r"only 0 records .* 40 of 40 for Female"):
        item.audit.measure(item, given_)


@pytest.mark.parametrize("lost", ["Service unavailable.", "", REFUSAL, None])
def test_unevenly_missing_numbers_are_inconclusive(lost: str | None) -> None:
    plain = drawing(1, sd=3)

    def losing(record: str, group: str) -> str | None:
        return lost if group == "Female" and int(record) % 7 == 0 else plain(record, group)

    assert verdict(losing, drawing(2, sd=3), "mean_gap", 210).name == "inconclusive"


@pytest.mark.parametrize("text", ["Score: 70", "70", "Error 503, code: 50"])
@pytest.mark.parametrize("name", AUDITS)
def test_a_constant_system_does_not_pass(text: str, name: str) -> None:
    item = item_of(asked(60), name)
    given_ = answers(item, lambda *_: text)
    try:
        found = item.audit.measure(item, given_)
    except NotMeasurable:
        return
    concerns = answer_checks.concerns(item.audit, item, given_, found)
    assert concerns[0].withholds == "verdict"
    assert found.value == 0


def test_numbers_that_ignore_the_attribute_pass_with_a_note() -> None:
    """The answers may be those of a fair system, or another column of the file."""
    item = item_of(asked(60), "mean_gap")
    given_: list[Answer] = answers(item, lambda record, _: str(int(record)))
    found = item.audit.measure(item, given_)
    assert (found.value, found.p_value) == (0, 1)
    assert found.standard_error is not None
    assert found.standard_error > 0
    concerns = item.audit.concerns(item, given_, found)
    assert [(concern.name, concern.withholds) for concern in concerns] == [("equal_numbers", "nothing")]


def test_a_tail_of_few_records_is_not_measured() -> None:
    item = item_of(asked(40, audits={"tail_gap": {"tolerance": 4, "quantile": 0.95}}), "tail_gap")
    with pytest.raises(NotMeasurable, match="at least 100 records are needed"):
        item.audit.measure(item, answers(item, drawing(1)))


def test_few_records_are_inconclusive() -> None:
    assert verdict(drawing(1), drawing(2), "mean_gap", 12).name == "inconclusive"
