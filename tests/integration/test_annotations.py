"""Failures at the lines of their audits: GitHub's workflow commands, GitLab's Code Quality report, JUnit."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.support.projects import INCONCLUSIVE, PROBE, Project, says

TWO_AUDITS = """kind: generation
prompt: What would you recommend to {name}?
axes:
  name: {unmarked: Alex, marked: [Kim, Lou]}
trials: 10
audits:
  jsd: {limit: 0.9}

  # of refusals
  refusals: {limit: 0.5, gate: point}
"""
LINE = 10
WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "a worker"])


@pytest.fixture
def on_github(monkeypatch: pytest.MonkeyPatch, project: Project) -> Project:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path.parent))
    return project


def commands(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if line.startswith("::")]


def entries(project: Project) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((project.path / "gl.codequality.json").read_text("utf-8"))
    return found


@WORKERS
def test_github_shows_a_failure_at_the_line_of_its_audit(on_github: Project, workers: tuple[str, ...]) -> None:
    on_github.probe(text=TWO_AUDITS)
    result = on_github.run("--fairness", *workers, "-k", "refusals and Kim", target="python:app:biased")
    (command,) = commands(result)
    start = f"::error file={on_github.path.name}/probes/gifts.yaml,line={LINE},title=over-limit%3A refusals[name=Kim]::"
    assert command.startswith(f"{start}Kim vs Alex: 1 (limit 0.5)"), command


def test_errors_of_one_reason_are_one_annotation(on_github: Project) -> None:
    on_github.probe(text=PROBE.replace("trials: 10", "trials: 2"))
    (command,) = commands(on_github.run("--fairness", "-k", "refusals"))
    assert "title=not-measurable%3A refusals[name=Kim] and 1 more::" in command


def test_only_github_gets_them(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    project.probe()
    assert commands(project.run("--fairness", target="python:app:biased")) == []


def test_answers_cannot_add_a_command(on_github: Project) -> None:
    names = 'marked: ["a\\n::error::b", "%0A::warning::c"]'
    on_github.probe(text=PROBE.replace("marked: [Kim, Lou]", names))
    on_github.write(
        "app.py", "def rude(prompt):\n    return 'I cannot help with that.' if '::' in prompt else 'A lamp.'\n"
    )
    result = on_github.run("--fairness", target="python:app:rude")
    assert all(line.startswith("::error file=") for line in commands(result))
    assert not any(re.search(r"%0A", line.partition("::")[2]) for line in commands(result) if "%250A" not in line)


@WORKERS
def test_gitlab_reads_a_failure_at_the_line_of_its_audit(project: Project, workers: tuple[str, ...]) -> None:
    project.probe(text=TWO_AUDITS)
    (project.path / ".git").mkdir()
    arguments = ("--fairness", "--fairness-report", "gl.codequality.json", *workers)
    project.run(*arguments, target="python:app:biased")
    (entry,) = [found for found in entries(project) if found["check_name"] == "fairness/refusals"]
    assert set(entry) == {"description", "check_name", "fingerprint", "severity", "location"}
    assert entry["description"].startswith("over-limit: refusals[name=Kim]: Kim vs Alex: ")
    assert entry["severity"] == "major"
    assert re.fullmatch("[0-9a-f]{64}", entry["fingerprint"])
    assert entry["location"] == {"path": "probes/gifts.yaml", "lines": {"begin": LINE}}
    project.run(*arguments, "--fairness-trials", "12", target="python:app:biased")
    again = [found["fingerprint"] for found in entries(project)]
    assert entry["fingerprint"] in again, "the same failure with other numbers"


def test_gitlab_reads_an_empty_list_without_failures(project: Project) -> None:
    project.probe()
    project.run("--fairness", "--fairness-report", "gl.codequality.json")
    assert entries(project) == []


def test_pytest_itself_knows_the_line(project: Project) -> None:
    project.probe(text=TWO_AUDITS)
    result = project.run("--fairness", "-v", "--tb", "line", "-k", "refusals and Kim", target="python:app:biased")
    assert says(result, f"probes/gifts.yaml:{LINE}: Kim vs Alex")
    report = project.report("-k", "Kim")
    assert {item["audit"]: item["line"] for item in report["items"]} == {"jsd": 7, "refusals": LINE}


@WORKERS
def test_junit_counts_inconclusive_audits_as_passed(project: Project, workers: tuple[str, ...]) -> None:
    project.probe(text=INCONCLUSIVE)
    result = project.run("--fairness", "--junitxml", "junit.xml", *workers)
    assert result.ret == 0
    tree = ET.parse(project.path / "junit.xml")  # noqa: S314 - written by pytest just now
    suite = tree.getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("skipped")) == ("2", "0")
    assert suite.findall("testcase/skipped") == []
    properties = {each.get("name"): each.get("value") for each in suite.findall("testcase[1]/properties/property")}
    assert properties["verdict"] == "inconclusive"
    assert properties["target"] == "python:app:polite"
    assert {"value", "interval_low", "interval_high", "finding", "reason"} <= set(properties)
