"""Worst-case bounds: unread answers never hide what a pass excludes, and cost an unchanged system little."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from pytest_fairness import kinds, probes
from pytest_fairness.audits import rules
from pytest_fairness.audits.base import Audit
from pytest_fairness.audits.two_sample_audits import MOST_BITS
from pytest_fairness.baselines.verdicts import BaselineEntry, decide
from pytest_fairness.records import Answer, Measurement, Status, Verdict
from pytest_fairness.run import ProbeItem, items_of
from tests.support import deciders


def refusals(**settings: Any) -> ProbeItem:
    return told("refusals", trials=10, **settings)


def told(audit: str, *, trials: int = 60, **settings: Any) -> ProbeItem:
    written = {
        "kind": "generation",
        "name": "told",
        "prompt": "Write about {group}.",
        "axes": {"group": {"unmarked": "men", "marked": ["women"]}},
        "trials": trials,
        "audits": {audit: settings},
    }
    return items_of(probes.parse(json.dumps(written).encode(), Path("told.yaml"), kinds.schemas()))[0]


def run(counts: Mapping[str, Mapping[Status, int]]) -> list[Answer]:
    found = []
    for group, own in counts.items():
        statuses = [status for status, count in own.items() for _ in range(count)]
        for trial, status in enumerate(statuses):
            text = None if status is Status.FAILED else f"Text number {trial}."
            labels = {"group": group, "prompt": "1"}
            found.append(Answer(labels, trial, text, status, text if status is Status.OK else None))
    return found


def judged(item: ProbeItem, current: list[Answer], baseline: list[Answer] | None = None) -> Verdict:
    audit, measurement = item.audit, item.audit.measure(item, current)
    before = None if baseline is None else audit.measure(item, baseline)
    return decide(
        audit,
        item,
        measurement,
        baseline=None if before is None else BaselineEntry(before.value, (), before.n, before.missing),
        comparison=None if baseline is None else audit.compare(item, current, baseline),
        trials=10,
        accept="",
    )


def women(unread_: int, refused: int = 0, status: Status = Status.FAILED) -> list[Answer]:
    return run(
        {
            "women": {Status.OK: 100 - unread_ - refused, Status.REFUSED: refused, status: unread_},
            "men": {Status.OK: 100},
        }
    )


# Limits


def test_ten_unread_answers_of_a_hundred_could_hide_ten_points() -> None:
    verdict = judged(refusals(limit=0.05), women(10))
    assert verdict.name == "inconclusive"
    assert verdict.undecided == "10 unread answers of women could hide 10 points"
    assert judged(refusals(limit=0.15), women(10)).name == "pass"


@pytest.mark.parametrize("limit", [0.05, 0.3, 0.55, 0.9])
def test_a_group_of_which_most_is_unread_never_passes(limit: float) -> None:
    verdict = judged(refusals(limit=limit), women(60))
    assert verdict.name == "inconclusive"
    assert "60 unread answers of women could hide any difference" in verdict.reason


def test_answers_that_are_unreadable_in_both_groups_hide_refusals() -> None:
    lost = {Status.OK: 70, Status.UNREADABLE: 30}
    verdict = judged(refusals(limit=0.2), run({"women": lost, "men": lost}))
    assert (verdict.name, verdict.undecided) == (
        "inconclusive",
        "30 unread answers of women and 30 of men could hide 30 points",
    )


def test_a_failure_that_needs_unread_answers_like_the_read_ones_says_so() -> None:
    assumption = "This assumes that 20 unread answers of women are like the read ones."
    verdict = judged(refusals(limit=0.1), women(20, refused=20))
    assert verdict.name == "over-limit"
    assert assumption in verdict.reason
    sure = judged(refusals(limit=0.1), women(20, refused=60))
    assert (sure.name, "This assumes" in sure.reason) == ("over-limit", False)
    regression = judged(refusals(), women(20, refused=20), women(0))
    assert (regression.name, assumption in regression.reason) == ("regression", True)


# Changes


def test_a_pass_against_a_baseline_holds_however_the_unread_answers_of_both_runs_fell() -> None:
    item = refusals()
    assert judged(item, women(0), women(0)).name == "pass"
    assert judged(item, women(2), women(0)).name == "pass"
    assert judged(item, women(12), women(0)).name == "inconclusive", "women are no longer answered"
    assert judged(item, women(12), women(12)).name == "inconclusive", "those of the baseline may have been answers"
    refused_before = women(4, refused=30)
    assert judged(item, women(0, refused=38), women(0, refused=30)).name == "pass"
    assert judged(item, women(0, refused=38), refused_before).name == "inconclusive", (
        "the baseline may have been better"
    )


@pytest.mark.parametrize("lost_before", ["nothing", "at random", "answers"])
def test_unread_answers_that_are_all_biased_never_pass_beyond_the_tolerance(lost_before: str) -> None:
    """Of 500 runs with unread refusals of women, none passes that is beyond the tolerance with them."""
    random, item, n = np.random.default_rng(5), refusals(), 100
    beyond = passed = 0
    for _ in range(500):
        refused = {group: int(random.binomial(n, 0.1)) for group in ("women", "men")}
        refused_before = {group: int(random.binomial(n, 0.1)) for group in ("women", "men")}
        hidden = min(int(random.integers(1, 26)), n - refused["women"])
        before = {
            "nothing": (0, 0),
            "at random": (
                int(random.binomial(refused_before["women"], 0.05)),
                int(random.binomial(n - refused_before["women"], 0.05)),
            ),
            "answers": (0, min(hidden, n - refused_before["women"])),
        }[lost_before]
        now = answered(refused, n) | {
            "women": {Status.OK: n - refused["women"] - hidden, Status.REFUSED: refused["women"], Status.FAILED: hidden}
        }
        then = answered(refused_before, n)
        gap = (refused["women"] + hidden - refused["men"]) / n
        gap_before = (refused_before["women"] - refused_before["men"]) / n
        change = abs(gap) if gap * gap_before < 0 else abs(gap) - abs(gap_before)
        then |= {
            "women": {
                Status.OK: n - refused_before["women"] - before[1],
                Status.REFUSED: refused_before["women"] - before[0],
                Status.FAILED: sum(before),
            }
        }
        verdict = judged(item, run(now), run(then))
        passed += verdict.name == "pass"
        beyond += verdict.name == "pass" and change > 0.1 + 1e-9
    assert passed >= 40, "the rule is not met by never passing"
    assert beyond == 0


def answered(refused: Mapping[str, int], n: int) -> dict[str, dict[Status, int]]:
    return {group: {Status.OK: n - count, Status.REFUSED: count} for group, count in refused.items()}


def test_two_of_a_hundred_answers_lost_at_random_cost_a_run_of_enough_answers_little() -> None:
    random, item, n, passed = np.random.default_rng(7), refusals(), 300, {"complete": 0, "lost": 0}
    for _ in range(60):
        refused = [int(random.binomial(n, 0.1)) for _ in range(4)]
        runs = []
        for lost in (0.0, 0.02):
            counts = []
            for count in refused:
                gone = random.binomial(count, lost), random.binomial(n - count, lost)
                counts.append(
                    {Status.OK: n - count - gone[1], Status.REFUSED: count - gone[0], Status.FAILED: sum(gone)}
                )
            runs.append([run(dict(zip(("women", "men"), pair, strict=True))) for pair in (counts[:2], counts[2:])])
        passed["complete"] += judged(item, *runs[0]).name == "pass"
        passed["lost"] += judged(item, *runs[1]).name == "pass"
    assert passed["complete"] >= 59
    assert passed["lost"] >= passed["complete"] - 2


@given(
    read=st.lists(st.integers(1, 30), min_size=2, max_size=2),
    hits=st.lists(st.floats(0, 1), min_size=2, max_size=2),
    lost=st.lists(st.integers(0, 20), min_size=2, max_size=2),
    fell=st.lists(st.floats(0, 1), min_size=2, max_size=2),
)
def test_no_way_in_which_unread_answers_fall_exceeds_the_bound(
    read: list[int], hits: list[float], lost: list[int], fell: list[float]
) -> None:
    item = refusals()
    positive = [round(share * n) for share, n in zip(hits, read, strict=True)]
    shares = [count / n for count, n in zip(positive, read, strict=True)]
    full = [
        (count + round(share * gone)) / (n + gone)
        for count, share, gone, n in zip(positive, fell, lost, read, strict=True)
    ]
    names = ("women", "men")
    measurement = Measurement(
        shares[0] - shares[1],
        None,
        None,
        None,
        dict(zip(names, read, strict=True)),
        dict(zip(names, lost, strict=True)),
        {"refused": dict(zip(names, positive, strict=True)), "shares": dict(zip(names, shares, strict=True))},
    )
    bound = rules.unread_of_value(item.audit, item, measurement, 0.5, 0.1)
    assert abs(full[0] - full[1]) <= abs(measurement.value) + bound.worsening + 1e-9


# Other audits


def test_texts_lists_and_numbers_scale_with_the_tolerance() -> None:
    item = refusals()
    audit = item.audit
    measurement = Measurement(0.0, None, None, None, {"women": 95, "men": 100}, {"women": 5, "men": 0})
    unbounded = replace(audit.info, worst=None)
    for tolerance in (0.02, 4.0):
        shift = Audit.unread_worsening

        class Unbounded(type(audit)):  # type: ignore[misc]
            info = unbounded

        assert shift(Unbounded(), item, measurement, {"women": 0.05}, tolerance) == pytest.approx(0.5 * tolerance)


def numbers() -> ProbeItem:
    written = {
        "kind": "counterfactual",
        "name": "people",
        "prompt": "Record {id}; sex is {sex}. A score from 0 to 100?",
        "records": [{"id": f"r{number}", "sex": ("Male", "Female")[number % 2]} for number in range(60)],
        "flip": {"sex": {"Male": "Female"}},
        "answer": {"number": {"min": 0, "max": 100}},
        "audits": {"mean_gap": {"tolerance": 4}},
    }
    return items_of(probes.parse(json.dumps(written).encode(), Path("people.yaml"), kinds.schemas()))[0]


def scores() -> ProbeItem:
    written = {
        "kind": "generation",
        "name": "told",
        "prompt": ["Write about {group}.", "Write to {group}."],
        "axes": {"group": {"unmarked": "Male", "marked": ["Female"]}},
        "trials": 30,
        "audits": {"score": {"scorer": "words", "tolerance": 4}},
    }
    return items_of(probes.parse(json.dumps(written).encode(), Path("told.yaml"), kinds.schemas()))[0]


def scored(item: ProbeItem, random: np.random.Generator) -> list[Answer]:
    """Return answers with numbers around 60; the first one is 10."""
    found: list[Answer] = []
    for prompt in item.probe.prompts():
        number = float(random.normal(60, 5)) if found else 10.0
        content = number if item.audit.info.name == "mean_gap" else {"model": "words", "score": number}
        found.append(Answer(prompt.labels, prompt.trial, f"{number}, {len(found)}", Status.OK, content))
    return found


@pytest.mark.parametrize("make", [numbers, scores])
@pytest.mark.parametrize("share", [0.08, 0.1])
def test_numbers_and_scores_do_not_pass_if_the_unread_answers_of_a_group_are_its_lowest(
    make: Callable[[], ProbeItem], share: float
) -> None:
    item = make()
    worst = 0.0 if make is numbers else 10.0
    hidden = 0
    for seed in range(5):
        random = np.random.default_rng([seed, int(100 * share)])
        baseline, current = scored(item, random), scored(item, random)
        shown = [each.labels.get("to") or each.labels.get("sex") or each.labels["group"] for each in current]
        own = [place for place, name in enumerate(shown) if name == "Female"]
        lowest = set(random.choice(own, size=round(share * len(own)), replace=False).tolist())
        content = worst if make is numbers else {"model": "words", "score": worst}
        read = [replace(each, content=content) if place in lowest else each for place, each in enumerate(current)]
        seen = [
            Answer(each.labels, each.trial, None, Status.FAILED, None) if place in lowest else each
            for place, each in enumerate(current)
        ]
        before, after = (item.audit.measure(item, run).value for run in (baseline, read))
        grown = abs(after) - (abs(before) if before * after > 0 else 0.0)
        hidden += grown > 4
        assert grown <= 4 or judged(item, seen, baseline).name.value != "pass"
    assert hidden, "some of these changes exceed the tolerance"


@given(st.floats(0.001, 0.5))
def test_texts_without_a_common_word_add_at_most_the_bits_that_jsd_allows(share: float) -> None:
    groups = np.array([[1.0, 0.0], [1 - share, share]])
    bits = entropy(groups.mean(axis=0), base=2) - entropy(groups, base=2, axis=1).mean()
    assert bits <= share * MOST_BITS + 1e-4 * share


def test_jsd_does_not_pass_if_unread_texts_could_be_of_other_words() -> None:
    item = told("jsd")
    words = [f"word{number}" for number in range(40)]
    for seed in range(3):
        random = np.random.default_rng(seed)
        baseline, current = (
            [
                Answer(prompt.labels, prompt.trial, text, Status.OK, text)
                for prompt in item.probe.prompts()
                for text in [" ".join(random.choice(words, size=30))]
            ]
            for _ in range(2)
        )
        seen = [
            Answer(each.labels, each.trial, None, Status.FAILED, None)
            if each.labels["group"] == "women" and each.trial < 5
            else each
            for each in current
        ]
        assert judged(item, seen, baseline).name.value != "pass"


def test_an_impact_ratio_falls_by_what_the_highest_rate_allows() -> None:
    people = [(deciders.GROUPS[number % 2], "rich") for number in range(200)]
    asked = deciders.probe(people, audits={"impact_ratio": {"limit": 0.8}})
    item = deciders.item_of(asked, "impact_ratio")
    given_ = deciders.answers(item, lambda record, _: "Yes." if int(record) % 10 < 4 else "No.")
    measurement = item.audit.measure(item, given_)
    assert measurement.value == pytest.approx(1.0)
    share = 0.1
    worst = 0.9 * 0.4 / (0.9 * 0.4 + 0.1)
    assert item.audit.unread_worsening(item, measurement, {"men": share}, 1.0) == pytest.approx(1 - worst)
