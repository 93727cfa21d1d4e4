"""Reports say which commit and which version of the target was tested."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from pytest_fairness.__main__ import main
from pytest_fairness.baselines.changes import commit_description
from tests.support.projects import Project

REPORTS = [f"--fairness-report=report.{suffix}" for suffix in ("json", "html", "md")]


def test_reports_name_the_commit_and_the_version_of_the_target(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project.probe()
    project.write("pytest.ini", "[pytest]\nfairness_target_version = shop 1.4\n")
    first = project.commit()
    project.run("--fairness", *REPORTS)
    assert (project.read("report.json")["commit"], project.read("report.json")["target_version"]) == (first, "shop 1.4")
    page = (project.path / "report.html").read_text("utf-8")
    assert f"<dt>commit</dt><dd>{first}</dd>" in page
    assert "<dt>version of the target</dt><dd>shop 1.4</dd>" in page
    end = (project.path / "report.md").read_text("utf-8").splitlines()[-1]
    assert re.search(rf"UTC, version shop 1\.4 of the target, commit {first}; requests: \d+ sent", end)
    assert "tokens" not in end, "the target reports none"
    (project.path / "report.json").rename(project.path / "old.json")
    project.write("app.py", (project.path / "app.py").read_text("utf-8") + "# changed\n")
    project.run("--fairness", "--fairness-report=report.json")
    assert project.read("report.json")["commit"] == f"{first} with uncommitted changes"
    monkeypatch.chdir(project.path)
    monkeypatch.setenv("COLUMNS", "200")
    main(["compare", "old.json", "report.json"])
    assert re.search(rf"^commit +{first} +{first} with uncommitted changes$", capsys.readouterr().out, re.MULTILINE)


def test_a_folder_without_a_commit_has_no_description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert commit_description(tmp_path) is None
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    assert commit_description(Path(__file__).parent) is None, "there is no git"
