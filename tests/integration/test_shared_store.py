"""The ini option `fairness_store` with the address of a PostgreSQL database, and `--fairness-run-name`."""

from __future__ import annotations

import shutil
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.__main__ import main
from pytest_fairness.option_types import DatabaseUrl
from tests.support.projects import Project, shows
from tests.support.servers import ChatServer

KIM_AND_LOU = 30
"""Requests of `PROBE`."""


def machine(project: Project, name: str, server: ChatServer, *arguments: str) -> BaseProcess:
    """Start the project's run on a machine of its own: a copy of the folder, another host name."""
    folder = project.path.with_name(f"{project.path.name}-{name}")
    shutil.copytree(project.path, folder)
    (folder / "conftest.py").write_text(f"import platform\nplatform.node = lambda: {name!r}\n", "utf-8")
    asked = ["--fairness", "--fairness-target", "openai:tiny", "--fairness-base-url", server.url]
    report = ["--fairness-report", "report.json"]
    return project.start(*asked, *report, *arguments, folder=folder)


def judged(report: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(item["id"], item["value"], item["interval"], item["verdict"]) for item in report["items"]]


@pytest.mark.timeout(200)
def test_machines_share_requests_and_come_to_the_same_verdicts(project: Project, database_url: DatabaseUrl) -> None:
    project.write("pytest.ini", f"[pytest]\nfairness_store = {database_url}\n")
    project.probe()
    with ChatServer(delay=0.05) as server:
        runs = [machine(project, name, server, *more) for name, more in (("one", ("-n", "2")), ("two", ()))]
        for run in runs:
            run.join(150)
        assert [run.exitcode for run in runs] == [0, 0]
        assert server.count == KIM_AND_LOU
        one, two = (project.read(f"../{project.path.name}-{name}/report.json") for name in ("one", "two"))
        assert judged(one) == judged(two)
        assert one["requests"]["sent"] + two["requests"]["sent"] == KIM_AND_LOU
        in_a_file = ("-o", "fairness_store=alone.sqlite", "--fairness-base-url", server.url)
        alone = project.report(*in_a_file, target="openai:tiny")
        assert judged(alone) == judged(one)


@pytest.mark.timeout(200)
def test_machines_of_a_named_run_share_its_budget(project: Project, database_url: DatabaseUrl) -> None:
    project.write("pytest.ini", f"[pytest]\nfairness_store = {database_url}\n")
    project.probe()
    with ChatServer(delay=0.05) as server:
        named = ("--fairness-run-name", "pipeline 7", "--fairness-max-requests", "20")
        runs = [machine(project, name, server, *named) for name in ("one", "two")]
        for run in runs:
            run.join(150)
        assert [run.exitcode for run in runs] == [1, 1]
        assert server.count == 20
        report = project.path.with_name(f"{project.path.name}-one") / "report.json"
        assert "all runs with this --fairness-run-name share the budget" in report.read_text("utf-8")
        machine(project, "three", server, *named).join(100)
        assert server.count == 20, "the budget of the run is spent"


def test_commands_read_the_database(
    project: Project,
    database_url: DatabaseUrl,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PYTEST_FAIRNESS_STORE", str(database_url))
    project.probe()
    assert project.run("--fairness", "-o", "fairness_target_version=1").ret == 0
    capsys.readouterr()
    assert main(["export", "probes/gifts.yaml", "--target", "python:app:polite", "--target-version", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == KIM_AND_LOU
    assert main(["history"]) == 0
    assert "refusals[name=Kim]" in capsys.readouterr().out
    assert not (project.path / ".fairness").exists()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://me:secret@db/fairness", "holds a password or the path of a password file. Remove it from the"),
        ("postgresql://me@db/fairness?password=secret", "holds a password"),
        ("postgresql://me@db/fairness?passfile=keys", "environment variable PGPASSWORD or PGPASSFILE instead."),
        ("mysql://db/fairness", "must be the path of a file or the address of a database, postgresql://"),
        ("postgresql://me@db:port/fairness", "is not a valid address: write postgresql://user@host:5432/database"),
    ],
)
def test_wrong_addresses_are_usage_errors(project: Project, address: str, said: str) -> None:
    project.probe()
    result = project.run("--fairness", "-o", f"fairness_store={address}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in result.stderr.str()
    assert "secret" not in result.stdout.str() + result.stderr.str()


def test_an_unreachable_database_is_an_error_once(project: Project, tmp_path: Path) -> None:
    project.probe()
    result = project.run("--fairness", "-o", f"fairness_store=postgresql://me@/fairness?host={tmp_path}/nowhere")
    assert result.ret != 0
    assert shows(result, "Check the server, or name another store with the ini fairness_store")
    assert "Traceback" not in result.stdout.str()
