"""Answers of earlier runs are no evidence for this commit, and a run compared with itself is no comparison."""

from __future__ import annotations

import pytest

from tests.support.projects import PROBE, Project, ini, says, shows
from tests.support.servers import ChatServer

PLAIN = PROBE.replace("{limit: 0.5, gate: point}", "{tolerance: 0.3, gate: point}")
REPORTS = (
    "--junitxml=junit.xml", "--fairness-report", "report.html", "--fairness-report", "report.md",
    "--fairness-report", "pr.comment.md",
)  # fmt: skip
THROWN = """
import random

def polite(prompt):
    return f"{random.SystemRandom().sample('Lamp Mirror Rug Vase Clock Shelf Plant'.split(), 5)} and sturdy Table."
"""
EVENTS = {"GITHUB_EVENT_NAME": "pull_request", "CI_MERGE_REQUEST_IID": "3", "CHANGE_ID": "7"}


@pytest.mark.parametrize(("name", "value"), EVENTS.items())
def test_an_application_behind_an_address_is_asked_afresh_in_pull_requests(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    project.probe()
    with ChatServer() as server:
        arguments = ("--fairness", "--fairness-base-url", server.url)
        project.run(*arguments, target="openai:tiny")
        project.run(*arguments, target="openai:tiny")
        assert len(server.bodies) == 30, "on a machine of a developer, answers are reused"
        monkeypatch.setenv(name, value)
        project.run(*arguments, target="openai:tiny")
        assert len(server.bodies) == 60
        project.run(*arguments, "-o", "fairness_target_version=7", target="openai:tiny")
        project.run(*arguments, "-o", "fairness_target_version=7", target="openai:tiny")
        assert len(server.bodies) == 90, "the version says what was asked"
        project.run(*arguments, "--fairness-replay", target="openai:tiny")
        assert len(server.bodies) == 90


def test_every_headline_says_that_nothing_was_sent(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    project.write("pytest.ini", ini(fairness_target_version="1"))
    project.probe(text=PROBE)
    project.run("--fairness", *REPORTS)
    assert "No check got worse" in (project.path / "pr.comment.md").read_text("utf-8")
    (project.path / "summary.md").unlink()
    result = project.run("--fairness", *REPORTS)
    phrase = "0 requests sent: 30 answers of earlier runs (oldest "
    assert shows(result, phrase)
    for name in ("pr.comment.md", "report.md", "report.html", "summary.md", "junit.xml"):
        text = (project.path / name).read_text("utf-8")
        assert phrase in text, name
        assert "got worse:" not in text
        assert "o check got worse" not in text


def test_a_run_compared_with_itself_says_so(project: Project) -> None:
    project.write("pytest.ini", ini(fairness_target_version="1"))
    project.write("app.py", THROWN)
    project.probe(text=PLAIN)
    project.run("--fairness-rebaseline")
    result = project.run("--fairness", "-v", "--fairness-report", "report.json", *REPORTS)
    result.assert_outcomes(passed=2)
    assert sum("same answers" in line for line in result.outlines) == 2
    assert says(result, "0 requests sent: 30 answers of earlier runs")
    assert [item["change"]["same_answers"] for item in project.read("report.json")["items"]] == [True, True]
    for name in ("report.md", "report.html"):
        assert "same answers" in (project.path / name).read_text("utf-8")
    report = project.report("--fairness-fresh")
    assert [item["change"]["same_answers"] for item in report["items"]] == [False, False]


def test_a_system_that_was_asked_and_said_the_same_is_not_compared_with_itself(project: Project) -> None:
    project.write("app.py", "def answer(prompt):\n    return f'{len(prompt)} lamps for ' + prompt[-3:]\n")
    project.probe(text=PLAIN)
    project.run("--fairness-rebaseline", target="python:app:answer")
    result = project.run("--fairness", "-v", "--fairness-fresh", target="python:app:answer")
    assert says(result, "(the answers are those of the baseline, so that there is no change to test)")
    assert not says(result, "compared with itself")
    assert not says(result, "of earlier runs")


@pytest.mark.parametrize(
    "option", ["--fairness-measure", "--fairness-dry-run", "--fairness-shard=1/2"], ids=lambda option: option[11:]
)
@pytest.mark.parametrize("place", ["addopts", "PYTEST_ADDOPTS"])
def test_in_ci_only_the_command_line_asks_for_no_verdicts(
    project: Project, monkeypatch: pytest.MonkeyPatch, option: str, place: str
) -> None:
    project.probe()
    if place == "addopts":
        project.write("pytest.ini", ini(addopts=option))
    else:
        monkeypatch.setenv(place, option)
    assert project.run("--fairness").ret == pytest.ExitCode.OK
    monkeypatch.setenv("CI", "true")
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    flag = option.partition("=")[0]
    assert f"{flag}: this CI run would give no verdicts" in result.stderr.str()
    assert project.run("--fairness", option).ret == pytest.ExitCode.OK
    assert project.run("--fairness", "-o", "fairness_min_audits=0").ret == pytest.ExitCode.OK
