"""Records with equal prompts in whole runs: how often they are asked, what the reports say, and old baselines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.projects import Project, says

APP = """
import random

def dice(prompt):
    with open("calls.txt", "a") as file:
        file.write(prompt + "\\n")
    return str(random.randint(0, 100))
"""
PROBE = "\n".join(
    [
        "kind: counterfactual",
        "prompt: Sex {sex}, {years} years.",
        "flip: {sex: {Male: Female}}",
        "answer: {number: {min: 0, max: 100}}",
        "audits: {mean_gap: {tolerance: 60, limit: 60}}",
        "records:",
        *(
            f"  - {{id: r{place:02}, sex: {('Male', 'Female')[place % 2]}, years: {place // 2 % 8}}}"
            for place in range(64)
        ),
        "",
    ]
)
NUMBERS = "64 records, 16 different prompts"
TARGET = "python:app:dice"


@pytest.fixture
def people(project: Project) -> Project:
    project.write("app.py", APP)
    project.probe("probes/people.yaml", PROBE)
    return project


def item(project: Project, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = project.report(*arguments, target=TARGET)["items"][0]
    return found


def test_each_record_is_asked_for_itself_and_all_reports_say_so(people: Project) -> None:
    reports = [word for name in ("r.json", "r.html") for word in ("--fairness-report", name)]
    result = people.run("--fairness", *reports, target=TARGET)
    assert len(people.calls()) == 128
    assert len(set(people.calls())) == 16
    assert says(result, "128 requests to send")
    assert says(result, f"people · {NUMBERS} · equal prompts are asked separately")
    assert says(result, f"{NUMBERS}: each was asked for itself")
    for name in ("r.html", "r.json"):
        assert NUMBERS in (people.path / name).read_text("utf-8"), name


def test_a_dry_run_counts_each_record(people: Project) -> None:
    result = people.run("--fairness", "--fairness-dry-run", target=TARGET)
    assert says(result, "128 requests, 0 recorded, 128 to send")
    assert says(result, NUMBERS)


def test_at_temperature_0_equal_prompts_are_one_request_and_one_observation(people: Project) -> None:
    people.probe("probes/people.yaml", f"{PROBE}sampling: {{temperature: 0}}\n")
    result = people.run("--fairness", "--fairness-report", "r.json", target=TARGET)
    assert len(people.calls()) == 16
    assert says(result, "equal prompts share one answer (temperature 0)")
    (found,) = people.read("r.json")["items"]
    assert [found["details"]["records"], found["details"]["observations"]] == [64, 8]
    assert found["concerns"][0]["message"].endswith("equal prompts share their answers, and count as 8 observations")


def test_a_baseline_of_equal_prompts_without_its_answers_is_stale(people: Project) -> None:
    people.run("--fairness-rebaseline", target=TARGET)
    path = people.path / "baselines/people.responses.jsonl"
    rows = [json.loads(line) for line in path.read_bytes().splitlines()[1:]]
    assert len({row["text"] for row in rows}) > 20
    path.unlink()
    found = item(people, "--fairness-fresh")
    assert found["verdict"] == "stale-baseline"
    assert "answers to equal prompts, which are no longer stored" in found["reason"]
