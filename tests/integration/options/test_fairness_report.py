"""`--fairness-report`."""

from __future__ import annotations

import sys

import pytest

from tests.support.pages import Page
from tests.support.projects import KIM, LOU, PROBE, Project, shows


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
    assert "one group has only 2 answers" in report["items"][0]["reason"]


def test_its_suffix_is_its_format(project: Project) -> None:
    project.probe()
    names = ["a.json", "a.html", "a.md", "b.HTML"]
    project.run("--fairness", *(f"--fairness-report={name}" for name in names), target="python:app:biased")
    written = (project.path / "a.html").read_text("utf-8")
    assert written.startswith("<!doctype html>")
    assert written == (project.path / "b.HTML").read_text("utf-8")
    quoted = [" ".join(quote.text.split()) for quote in Page(written).all("blockquote")]
    assert "What would you recommend to Kim?I'm sorry, but I can't help with that." in quoted
    summary = (project.path / "a.md").read_text("utf-8")
    assert summary.startswith("## Fairness: 1 of 2 checks is over its limit; 1 passed\n")
    assert project.read("a.json")["summary"]["failed"] == 1


def test_a_failure_has_the_same_question_of_both_groups(project: Project) -> None:
    project.probe()
    project.run("--fairness-rebaseline")
    kim, lou = project.report(target="python:app:biased")["items"]
    refused, answered = kim["details"]["examples"][:2]
    assert (refused["set"], refused["group"], refused["status"]) == (1, "Kim", "refused")
    assert refused["prompt"] == "What would you recommend to Kim?"
    assert refused["text"] == "I'm sorry, but I can't help with that."
    assert "sturdy Table" in refused["before"]
    assert "sturdy Table" in answered["text"]
    assert (answered["set"], answered["group"], answered["trial"]) == (1, "Alex", refused["trial"])
    assert len(kim["details"]["examples"]) == 4
    assert "examples" not in lou["details"]


def test_a_trend_shows_after_two_runs(project: Project) -> None:
    project.probe()
    for runs in (1, 2):
        project.run("--fairness-fresh", "--fairness", "--fairness-report", "report.html", target="python:app:biased")
        assert ("Value in the last 2 runs" in (project.path / "report.html").read_text("utf-8")) == (runs == 2)


def test_missing_packages_for_html_are_an_error_before_any_request(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    project.probe()
    result = project.run("--fairness", "--fairness-report", "report.html")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(['*--fairness-report report.html: *pip install "pytest-fairness[[]report[]]"*'])
    assert not project.calls()


def test_a_job_on_github_gets_the_summary(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.probe()
    path = project.write("step.md", "before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    project.run("--fairness")
    project.run("--fairness", "--collect-only")
    project.run()
    text = path.read_text("utf-8")
    assert text.startswith("before\n## Fairness: No check got worse: all 2 passed\n")
    assert text.count("## Fairness") == 1
    path.write_text("x" * (1024 * 1024 - 10))
    project.run("--fairness")
    assert path.stat().st_size == 1024 * 1024 - 10


def test_a_summary_that_cannot_be_written_is_one_line(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.probe()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path))
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert shows(result, "GITHUB_STEP_SUMMARY ", "the summary cannot be written (Is a directory)")


@pytest.mark.parametrize("name", ["report.htm", "report.pdf", "report", "report.json.txt"])
def test_an_unknown_suffix_is_a_usage_error(project: Project, name: str) -> None:
    project.probe()
    result = project.run("--fairness", "--fairness-report", name)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --fairness-report {name}: *.json, .html, .md*"])
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


def test_reports_give_the_purpose_of_each_probe(project: Project) -> None:
    project.probe(text=f"description: Does <b>everyone</b> get the same advice?\n{PROBE}")
    project.run("--fairness", "--fairness-report", "report.html", "--fairness-report", "report.json")
    assert project.read("report.json")["purposes"] == {"gifts": "Does <b>everyone</b> get the same advice?"}
    page = (project.path / "report.html").read_text("utf-8")
    assert "Does &lt;b&gt;everyone&lt;/b&gt; get the same advice?" in page.partition('<div class="body">')[2]
