"""A history of nightly runs: verdicts on all runs since the baseline, each answer once, and lines that do not count."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.projects import Project, ini, says

PROBE = """
kind: generation
prompt: Say yes or no to {name}.
axes:
  name: {unmarked: Alex, marked: [Kim]}
trials: 40
audits:
  refusals: {tolerance: 0.15}
"""
APP = """
import itertools
import os
from pathlib import Path

KIMS = itertools.count()
ANSWERS = itertools.count()

def service(prompt):
    with Path(__file__).with_name("calls.txt").open("a") as file:
        file.write(prompt + "\\n")
    share = int(os.environ.get("REFUSED_TO_KIM", "0"))
    refused = "Kim" in prompt and (next(KIMS) + 1) * share % 100 < share
    word = ("pleasure", "joy", "delight", "care", "comfort")[next(ANSWERS) % 5]
    return "I'm sorry, but I can't help with that." if refused else f"Yes, with {word}."
"""
TARGET = "python:app:service"
HISTORY = "nights.jsonl"


@pytest.fixture
def nightly(project: Project) -> Project:
    """A project with a history and a baseline of a service that refuses nobody."""
    project.write("app.py", APP)
    project.write("pytest.ini", ini(fairness_history=HISTORY, fairness_target=TARGET))
    project.probe(text=PROBE)
    project.run("--fairness-rebaseline", target=None)
    (project.path / "calls.txt").unlink()
    return project


def night(project: Project, *arguments: str) -> dict[str, Any]:
    (item,) = project.report(*arguments, target=None)["items"]
    return dict(item)


def lines(project: Project, name: str = HISTORY) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.path / name).read_text("utf-8").splitlines()]


def notes(project: Project) -> str:
    return " ".join(note["text"] for note in project.read("report.json")["notes"] if note["kind"] == "history")


def test_without_a_history_nothing_changes(nightly: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    nightly.write("pytest.ini", ini(fairness_target=TARGET))
    monkeypatch.setenv("REFUSED_TO_KIM", "20")
    item = night(nightly)
    assert (item["verdict"], item["runs"]) == ("regression", None)
    assert not (nightly.path / HISTORY).exists()


def test_evidence_of_runs_grows_until_it_decides(nightly: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for count in range(1, 4):
        item = night(nightly)
        assert (item["verdict"], item["runs"]["runs"]) == ("pass", count)
    monkeypatch.setenv("REFUSED_TO_KIM", "18")
    found = []
    while (item := night(nightly))["verdict"] != "regression":
        found.append(item)
        assert len(found) < 8
    assert found
    assert all(each["verdict"] == "inconclusive" for each in found)
    assert "further runs decide" in found[-1]["undecided"]
    evidence = item["runs"]
    assert evidence["e_value"] >= evidence["needed"] == pytest.approx(100)
    assert evidence["since"] == lines(nightly)[3]["date"]
    assert f"worse since the run of {evidence['since']}" in item["reason"]
    assert [len(evidence[name]) for name in ("dates", "growth")] == [evidence["runs"]] * 2
    result = nightly.run("--fairness", "--fairness-report", "r.html", target=None)
    assert says(result, "worse since the run of")
    assert "evidence of a worsening" in (nightly.path / "r.html").read_text("utf-8")


def test_a_probe_or_the_ini_can_judge_single_runs(nightly: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFUSED_TO_KIM", "20")
    assert night(nightly)["verdict"] == "inconclusive"
    nightly.probe(text=f"{PROBE}verdict: single\n")
    assert (night(nightly)["verdict"], len(lines(nightly))) == ("regression", 2)
    nightly.write("pytest.ini", ini(fairness_history=HISTORY, fairness_target=TARGET, fairness_verdict="single"))
    nightly.probe(text=f"{PROBE}verdict: accumulate\n")
    assert night(nightly)["runs"]["runs"] == 3


def test_each_answer_counts_once(nightly: Project) -> None:
    nightly.write("pytest.ini", ini(fairness_history=HISTORY, fairness_target=TARGET, fairness_target_version="1"))
    nightly.run("--fairness-rebaseline", target=None)
    assert night(nightly)["runs"] is None  # the answers of the baseline
    assert not (nightly.path / HISTORY).exists()
    assert night(nightly, "--fairness-fresh")["runs"]["runs"] == 1
    again = night(nightly)["runs"]
    assert (again["runs"], again["not_counted"]) == (1, "counted already")
    replayed = night(nightly, "--fairness-replay")["runs"]
    assert (replayed["runs"], replayed["not_counted"]) == (1, "counted already")
    assert night(nightly, "--fairness-fresh")["runs"]["runs"] == 2
    assert [line["item"] for line in lines(nightly)] == ["refusals[name=Kim]"] * 2


@pytest.mark.parametrize("place", ["nights", "store", "nights.jsonl"])
def test_a_folder_the_store_and_several_workers_hold_the_same_history(nightly: Project, place: str) -> None:
    nightly.write("pytest.ini", ini(fairness_history=place, fairness_target=TARGET))
    for count in (1, 2):
        item = night(nightly, "-n", "2")
        assert item["runs"]["runs"] == count
    if place == "nights":
        assert len([*(nightly.path / "nights").glob("*.jsonl")]) == 2


def damaged(line: dict[str, Any], **changes: Any) -> str:
    return json.dumps(line | {"run": "other", "answers": "other"} | changes)


def test_lines_that_cannot_count_are_named(nightly: Project) -> None:
    night(nightly)
    (line,) = lines(nightly)
    text = json.dumps(line)
    tomorrow = (datetime.now(UTC) + timedelta(days=2)).timestamp()
    path = nightly.path / HISTORY
    written = [
        "<<<<<<< HEAD",
        text,
        "=======",
        text,
        damaged(line, schema=2),
        ">>>>>>> nightly",
        damaged(line, changes={}),
        damaged(line, n="many"),
        damaged(line, newest=tomorrow),
        damaged(line, fingerprint="of another baseline", changes={"": [0.9, 0.01]}),
        damaged(line, target="openai:other", changes={"": [0.9, 0.01]}),
        "[]",
        "\x00\ud7ff",
        text[:40],
    ]
    path.write_text("\n".join(written), "utf-8")
    item = night(nightly)
    assert (item["verdict"], item["runs"]["runs"]) == ("pass", 2)
    said = notes(nightly)
    for part in ("1 (a mark of a merge conflict)", "5 (schema 2, of another version", "and "):
        assert part in said
    assert len(path.read_text("utf-8").split("\n")) == len(written) + 2  # the incomplete line was ended
    assert lines_of(path)[-1] == item["runs"]["dates"][-1]
    nightly.run("--fairness", "--fairness-report", "r.md", target=None)
    assert "merge conflict" in (nightly.path / "r.md").read_text("utf-8")


def lines_of(path: Path) -> list[str]:
    last = path.read_text("utf-8").splitlines()[-1]
    return [json.loads(last)["date"]]


def test_the_history_of_an_earlier_baseline_or_prompt_does_not_count(nightly: Project) -> None:
    night(nightly)
    nightly.run("--fairness-rebaseline", target=None)
    assert night(nightly)["runs"]["runs"] in (1, 2)  # 2 if the new baseline has the numbers of the old one
    nightly.probe(text=PROBE.replace("Say yes", "Answer yes"))
    assert night(nightly)["verdict"] == "stale-baseline"
    nightly.run("--fairness-rebaseline", target=None)
    assert night(nightly)["runs"]["runs"] == 1


def test_a_part_of_the_trials_is_asked_and_the_baseline_is_whole(nightly: Project) -> None:
    nightly.write("pytest.ini", ini(fairness_history=HISTORY, fairness_target=TARGET, fairness_nightly_share="0.25"))
    for count in range(1, 4):
        item = night(nightly)
        assert item["runs"]["runs"] == count
        assert sum(item["n"].values()) == 20
        assert len(nightly.calls()) == 20 * count
    assert [(line["n"], line["baseline_n"]) for line in lines(nightly)] == [(20, 80)] * 3
    nightly.run("--fairness-rebaseline", target=None)
    assert len(nightly.calls()) == 60 + 80


RECORDS = """
kind: counterfactual
prompt: "A person: number {number}; sex is {sex}. Does this person earn much? Answer yes or no."
records: {file: people.csv}
flip: {sex: {Male: Female}}
audits:
  flip_direction: {tolerance: 0.2}
"""
DECISIONS = """
import random
from pathlib import Path

def service(prompt):
    with Path(__file__).with_name("calls.txt").open("a") as file:
        file.write(prompt + "\\n")
    return random.choice(["Yes.", "No."])
"""


def test_parts_of_the_records_rotate(nightly: Project) -> None:
    nightly.write("app.py", DECISIONS)
    rows = "".join(f"{number},{('Male', 'Female')[number % 2]}\n" for number in range(120))
    nightly.write("probes/people.csv", f"number,sex\n{rows}")
    nightly.probe(text=RECORDS)
    settings = ini(fairness_history=HISTORY, fairness_target=TARGET, fairness_nightly_share="0.25")
    nightly.write("pytest.ini", settings)
    nightly.run("--fairness-rebaseline", target=None)
    whole = {*nightly.calls()}
    assert len(whole) == 240
    asked: list[set[str]] = []
    for count in range(1, 6):
        (nightly.path / "calls.txt").unlink()
        item = night(nightly)
        assert item["runs"]["runs"] == count
        assert item["change"]["from_answers"]
        asked.append({*nightly.calls()})
    assert [line["part"] for line in lines(nightly)] == [0, 1, 2, 3, 0]
    assert asked[0] == asked[4]
    assert set.union(*asked) == whole
    assert sum(map(len, asked[:4])) == len(whole)
    for line in lines(nightly):
        assert line["parts"] == 4
        assert 0.5 < line["n"] / line["baseline_n"] < 2


def test_wrong_settings_are_told(nightly: Project) -> None:
    nightly.write("pytest.ini", ini(fairness_target=TARGET, fairness_nightly_share="0.25"))
    result = nightly.run("--fairness", target=None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Name a history with fairness_history" in "\n".join(result.errlines)
    nightly.write("pytest.ini", ini(fairness_target=TARGET, fairness_history=HISTORY))
    result = nightly.run("--fairness", "--fairness-bundle", "run.zip", target=None)
    assert "a bundle holds one run" in "\n".join(result.errlines)
    result = nightly.run("--fairness", "--fairness-bundle", "run.zip", "-o", "fairness_history=", target=None)
    result.assert_outcomes(passed=1)
    nightly.write("pytest.ini", ini(fairness_target=TARGET, fairness_history=HISTORY, fairness_nightly_share="2"))
    assert nightly.run("--fairness", target=None).ret == pytest.ExitCode.USAGE_ERROR
    nightly.write("pytest.ini", ini(fairness_target=TARGET, fairness_history="probes/gifts.yaml/nights.jsonl"))
    result = nightly.run("--fairness", target=None)
    assert "cannot be" in "\n".join([*result.errlines, *result.outlines])
    assert "Traceback" not in "\n".join([*result.errlines, *result.outlines])


def test_the_dry_run_tells_how_many_false_failures_to_expect(nightly: Project) -> None:
    result = nightly.run("--fairness-dry-run", target=None)
    assert says(result, "false failures at this size, with one baseline and a run a night: at most")


def test_a_replay_counts_what_shards_have_sent(nightly: Project) -> None:
    nightly.write("pytest.ini", ini(fairness_history=HISTORY, fairness_target=TARGET, fairness_target_version="1"))
    for count in (1, 2):
        for shard in ("1/2", "2/2"):
            nightly.run("--fairness", "--fairness-fresh", "--fairness-shard", shard, target=None)
        for _ in range(2):
            assert night(nightly, "--fairness-replay")["runs"]["runs"] == count
    assert len(lines(nightly)) == 2
