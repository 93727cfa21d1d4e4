"""Designs of everyday use: what `benchmarks.nulls` counts, in few runs with fixed seeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import nulls, trust
from pytest_fairness.audits.unit_audit import shared_changes
from pytest_fairness.records import VerdictName
from pytest_fairness.run import items_of
from tests.support.projects import Project

QUICK = ("refusals", "impact_ratio", "flip_direction", "mean_gap", "snsr", "alignment_cost", "accuracy_gap")
"""An audit of each family that takes little time."""


@pytest.mark.parametrize("key", nulls.scenarios(), ids=lambda key: ", ".join(key).replace("×", "x"))
def test_a_design_is_measured_and_judged(key: tuple[str, str]) -> None:
    scenario = nulls.scenarios()[key]
    assert scenario.simulate(3, 0.0) == scenario.simulate(3, 0.0)
    assert scenario.simulate(2, 0.0) != scenario.simulate(4, 0.0)
    rows = nulls.repeat(scenario, [0], QUICK)
    assert {row["state"] for row in rows} == set(nulls.STATES)
    results = [row["results"][0] for row in rows]
    assert VerdictName.ERROR.value not in {each["verdict"] for each in results}
    assert any("value" in each for each in results)


def test_counts_follow_from_the_true_values(tmp_path: Path) -> None:
    file = tmp_path / "counts.jsonl"
    good = {"verdict": "pass", "value": 0.1, "interval": [0.0, 0.2], "change": 0.0, "change_interval": [-0.1, 0.1]}
    bad = {"verdict": "regression", "value": 0.3, "interval": [0.2, 0.4], "change": 0.2, "change_interval": [0.1, 0.3]}
    results = {
        "0": {**good, "change_error": 0.05, "over": None},
        "1": {**bad, "change_error": 0.05, "over": 0.15},
        "2": {"verdict": "not-measurable"},
    }
    row = {"design": "dice", "size": "9", "audit": "mean_gap", "item": "mean_gap[sex]", "better": "lower"}
    lines = [
        {**row, "state": "nothing", "truth": 0.1, "truths": [0.1, 0.1], "results": results},
        {**row, "state": "changed", "truth": None, "truths": [0.1, None], "results": results},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    cells = nulls.read(file)
    cell = cells["dice", "9", "mean_gap", "nothing"]
    assert (cell.runs, cell.judged, cell.red, cell.over) == (3, 2, 1, 1)
    assert (cell.covers, cell.intervals, cell.change_covers, cell.change_intervals) == (1, 2, 1, 2)
    # The true change is not known: the mean change, 0.1, takes its place.
    assert cells["dice", "9", "mean_gap", "changed"].change_covers == 2
    assert (cell.limited, cells["dice", "9", "mean_gap", "changed"].limited) == (2, 0)
    last = trust.nulls_tables(cells)["nulls by audit"][-1]
    assert last[:5] == ["mean_gap", "2", "50.0% [9.5%, 90.5%]", "50.0% [9.5%, 90.5%]", "50%"]


def results(design: str, size: str, audit: str, state: str, runs: int = 8) -> list[nulls.Row]:
    """Return what became of the only item of an audit in the first runs of a design."""
    scenario = nulls.scenarios()[design, size]
    (row,) = [row for row in nulls.repeat(scenario, range(runs), [audit]) if row["state"] == state]
    return list(row["results"].values())


def missed(found: list[nulls.Row], what: str, true: float) -> int:
    """Return the number of intervals that do not hold the true value."""
    return sum(not each[what][0] - 1e-9 <= true <= each[what][1] + 1e-9 for each in found)


# With the promised rates, three red runs or five missed intervals of eight have a probability below 1 in 10,000.


@pytest.mark.parametrize("design", ["dice, equal prompts", "cached gateway"])
@pytest.mark.parametrize(("size", "audit"), [("400 scores", "mean_gap"), ("400 decisions", "flip_direction")])
def test_equal_prompts_are_no_further_observations(design: str, size: str, audit: str) -> None:
    found = results(design, size, audit, "nothing")
    assert sum(each["verdict"] == "regression" for each in found) < 3
    assert sum(each["over"] is not None for each in found) < 3
    assert missed(found, "interval", 0.0) < 5
    assert missed(found, "change_interval", 0.0) < 5


def test_a_cell_of_two_people_does_not_touch_the_others() -> None:
    found = results("two-person cell", "422 decisions", "demographic_parity", "nothing")
    assert [each["verdict"] for each in found if "value" not in each] == []
    assert missed(found, "interval", 0.0) < 5
    assert sum(each["verdict"] == "regression" for each in found) < 3


def test_a_preference_is_measured_if_nearly_all_records_are_of_one_sex() -> None:
    scenario = nulls.scenarios()["nearly all male", "400 decisions"]
    (item,) = [part.analyses[-1] for part in items_of(scenario.probe) if part.audit.info.name == "flip_rate"]
    runs = [[answer for answer in scenario.simulate(seed, 0.3) if item.uses(answer.labels)] for seed in range(4)]
    mean = sum(item.audit.measure(item, run).value for run in runs) / len(runs)
    assert mean == pytest.approx(0.3**2, abs=0.055)  # four standard errors; (q - p)(1 - 2 p) would be -0.06


def test_an_answer_file_that_was_saved_twice_gives_no_false_verdict() -> None:
    for state in ("nothing", "unchanged"):
        found = results("file saved twice", "2 × 2 × 30 texts", "jsd", state, runs=2)
        assert [each["verdict"] for each in found].count("regression") == 0, state
        assert state == "unchanged" or all(each["over"] is None for each in found)


@pytest.mark.parametrize("design", ["longer texts", "other topics, as strata"])
def test_length_and_declared_topics_are_no_difference(design: str) -> None:
    scenario = nulls.scenarios()[design, "2 × 30 texts"]
    rows = nulls.repeat(scenario, range(0, 6 * nulls.FEWER["svm"], nulls.FEWER["svm"]), ["svm"])
    (row,) = [row for row in rows if row["state"] == "nothing"]
    found = list(row["results"].values())
    assert len(found) == 6
    assert sum(each["over"] is not None for each in found) < 3
    assert sum(each["verdict"] == "regression" for each in found) < 3


DICE = """
import random

drawn = random.Random({seed})
kept = {{}}

def thrown(prompt):
    return f"Score: {{drawn.randint(0, 100)}}"

def cached(prompt):
    return kept.setdefault(prompt, thrown(prompt))
"""
APPLICANTS = """
kind: counterfactual
prompt: "A {sex} applicant with {years} years of experience. Score from 0 to 100?"
records: {file: people.csv}
flip: {sex: {male: female}}
answer: {number: {min: 0, max: 100, unit: points}}
audits:
  mean_gap: {tolerance: 4}
"""


@pytest.mark.parametrize(("target", "observations"), [("thrown", 400), ("cached", 20)])
def test_a_target_that_throws_dice_is_asked_for_each_record(project: Project, target: str, observations: int) -> None:
    people = [f"{number},{('male', 'female')[number % 2]},{number // 2 % 20}" for number in range(400)]
    project.write("probes/people.csv", "\n".join(["id,sex,years", *people]) + "\n")
    project.probe("probes/people.yaml", APPLICANTS)
    runs = []
    for seed, options in enumerate((["--fairness-rebaseline"], [])):
        project.write("dice.py", DICE.format(seed=seed))
        runs.append(project.report("--fairness-fresh", *options, target=f"python:dice:{target}"))
    for report in runs:
        (item,) = report["items"]
        assert sum(item["n"].values()) == 800
        assert item["details"].get("observations", 400) == observations
        low, high = item["interval"]
        # Gaps of independent scores have a standard deviation of 41 points; four of them are never reached by chance.
        assert high - low == pytest.approx(2 * 2 * 41.2 / observations**0.5, rel=0.35)
        assert abs(item["value"]) < 4 * 41.2 / observations**0.5
    assert runs[1]["items"][0]["verdict"] in ("pass", "inconclusive")


@pytest.mark.parametrize("size", ["400 decisions", "40 entities × 3"])
def test_copies_of_a_cache_are_no_change_for_everybody(size: str) -> None:
    """A cache gives one answer to equal prompts, another one each day: few observations, of many answers."""
    scenario = nulls.scenarios()["cached gateway", size]
    parts = [part.analyses[-1] for part in items_of(scenario.probe)]
    noted: list[object] = []
    for seed in range(12):
        baseline, current = (scenario.simulate(2 * seed + half, 0.0) for half in (0, 1))
        for part in parts:
            own = ([answer for answer in run if part.uses(answer.labels)] for run in (current, baseline))
            noted += shared_changes(part, *(part.audit.counted_answers(part, run) for run in own))
    assert noted == []
