"""`--fairness-report`."""

from __future__ import annotations

import pytest

from tests.projects import KIM, LOU, PROBE, Project, shows


def test_a_report_holds_every_item_and_what_was_sent(project: Project) -> None:
    project.probe()
    report = project.report(target="python:app:biased")
    assert report["schema"] == 1
    assert report["tool"].startswith("pytest-fairness ")
    assert report["target"] == "python:app:biased"
    assert report["requests"]["planned"] == report["requests"]["sent"] == 30
    assert report["summary"]["failed"] == report["summary"]["passed"] == 1
    kim, lou = report["items"]
    assert (kim["id"], lou["id"]) == (KIM, LOU)
    assert kim["nodeid"] == f"probes/gifts.yaml::{KIM}"
    assert kim["labels"] == {"name": "Kim"}
    assert kim["value"] == kim["details"]["shares"]["Kim"] == 1.0
    assert kim["limit"] == 0.5
    assert kim["baseline"] is None


def test_it_may_be_repeated_and_makes_folders(project: Project) -> None:
    project.probe()
    project.run("--fairness", "--fairness-report", "a.json", "--fairness-report", "deep/er/b.json")
    assert project.read("a.json") == project.read("deep/er/b.json")


def test_it_is_relative_to_where_pytest_was_started(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.probe()
    project.write("inner/test_own.py", "def test_a(): pass")
    monkeypatch.chdir(project.path / "inner")
    result = project.run("--fairness", "--fairness-report", "report.json")
    assert {item["nodeid"] for item in project.read("inner/report.json")["items"]} == {
        f"probes/gifts.yaml::{KIM}",
        f"probes/gifts.yaml::{LOU}",
    }
    result.assert_outcomes(passed=3)


def test_items_that_erred_are_in_it(project: Project) -> None:
    project.probe(text=PROBE.replace("trials: 10", "trials: 2"))
    report = project.report()
    assert [item["verdict"] for item in report["items"]] == ["not-measurable", "not-measurable"]
    assert report["summary"]["errors"] == 2
    assert "only 2 answers came back" in report["items"][0]["reason"]


@pytest.mark.parametrize("name", ["report.html", "report.md", "report", "report.json.txt"])
def test_an_unknown_suffix_is_a_usage_error(project: Project, name: str) -> None:
    project.probe()
    result = project.run("--fairness", "--fairness-report", name)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --fairness-report {name}: *.json*"])
    assert not project.calls()


def test_a_report_that_cannot_be_written_fails_the_run_in_one_line(project: Project) -> None:
    project.probe()
    project.write("taken", "a file where the folder should be")
    result = project.run("--fairness", "--fairness-report", "taken/report.json", "--fairness-report", "other.json")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert shows(result, "--fairness-report ", "taken/report.json: the report cannot be written")
    assert project.read("other.json")["summary"]["passed"] == 2


def test_collecting_only_writes_none(project: Project) -> None:
    project.probe()
    project.run("--fairness", "--collect-only", "--fairness-report", "report.json")
    assert not (project.path / "report.json").exists()
