"""`--fairness-shard`, and the command `merge`."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pytest_fairness.__main__ import main
from tests.support.projects import PROBE, Project, ini, says, shows
from tests.support.servers import ChatServer

REQUESTS = 30
"""Requests of `PROBE`."""


def ask_shards(project: Project, server: ChatServer, count: int, *arguments: str) -> list[int]:
    """Run all shards, each with a store of its own; return the number of requests that each sent."""
    sent = []
    for number in range(1, count + 1):
        before = server.count
        asked = ["--fairness", "--fairness-base-url", server.url, "--fairness-shard", f"{number}/{count}"]
        result = project.run(*asked, *arguments, target="openai:tiny")
        assert result.ret == 0, result.outlines
        result.assert_outcomes(skipped=2)
        sent.append(server.count - before)
        shutil.move(project.path / ".fairness", project.path / f".fairness-{number}")
    return sent


def test_shards_send_each_request_once_and_the_last_job_judges(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    project.probe()
    with ChatServer() as server:
        sent = ask_shards(project, server, 3)
        assert sum(sent) == REQUESTS
        assert len(server.questions) == 3
        assert min(sent) > 0
        assert main(["merge", *(str(project.path / f".fairness-{number}") for number in (1, 2, 3))]) == 0
        assert f"copied {sent[0]} of {sent[0]} responses into" in capsys.readouterr().out
        replayed = project.report("--fairness-replay", "--fairness-base-url", server.url, target="openai:tiny")
        assert [item["verdict"] for item in replayed["items"]] == ["pass", "pass"]
        assert server.count == REQUESTS
        alone = project.report("--fairness-base-url", server.url, "-o", "fairness_store=alone", target="openai:tiny")
        assert [item["value"] for item in alone["items"]] == [item["value"] for item in replayed["items"]]


def test_the_workflow_of_the_documentation(project: Project) -> None:
    """Run its commands, job by job; artifacts are folders that are moved."""
    page = (Path(__file__).parents[3] / "docs/how-to/several-machines.md").read_text("utf-8")
    workflow = YAML(typ="safe").load(re.findall(r"^```yaml[^\n]*\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0])
    ask, judge = (
        [step["run"] for step in workflow["jobs"][job]["steps"] if "pip install" not in step.get("run", "pip install")]
        for job in ("ask", "judge")
    )
    shards = workflow["jobs"]["ask"]["strategy"]["matrix"]["shard"]
    project.probe()
    with ChatServer() as server:
        settings = ini(fairness_target="openai:tiny", fairness_base_url=server.url)
        project.write("pytest.ini", settings)
        for shard in shards:
            for command in ask:
                run(project, command.replace("${{ matrix.shard }}", str(shard)))
            shutil.move(project.path / ".fairness", project.path / f"stores/fairness-{shard}")
        assert server.count == REQUESTS
        for command in judge:
            run(project, command)
        assert server.count == REQUESTS
    assert (project.path / "fairness.html").exists()


def run(project: Project, command: str) -> None:
    """Run a command of a job as its shell would, in this process."""
    program, *written = shlex.split(command)
    arguments = [word for each in written for word in (sorted(map(str, project.path.glob(each))) or [each])]
    if program == "pytest":
        assert project.run(*arguments, target=None).ret == 0
    else:
        assert [program, *arguments[:2]] == ["python", "-m", "pytest_fairness"]
        assert main(arguments[2:]) == 0


def test_the_output_says_what_was_sent_and_what_follows(project: Project) -> None:
    project.probe()
    with ChatServer() as server:
        result = project.run(
            "--fairness", "--fairness-base-url", server.url, "--fairness-shard", "2/3", "-rs", target="openai:tiny"
        )
    assert says(result, f"{server.count} requests to send (shard 2/3)")
    assert shows(result, "SKIPPED [2] probes/gifts.yaml", "no verdict: this run only sends the requests of shard 2/3")
    assert says(result, "shard 2/3: this run sent the requests of its shard and gave no verdicts.")
    assert not says(result, "no audit ran")


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_growing_trials_are_sent_in_full(project: Project, workers: tuple[str, ...]) -> None:
    """A shard knows too few answers to decide early."""
    project.probe(text=PROBE.replace("trials: 10", "trials: {start: 4, max: 10}"))
    with ChatServer() as server:
        assert sum(ask_shards(project, server, 2, *workers)) == REQUESTS


def test_a_failed_request_is_an_error(project: Project) -> None:
    project.probe()
    result = project.run("--fairness", "--fairness-shard", "1/1", target="python:app:broken")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(errors=2)


def test_python_tests_are_left_to_the_last_job(project: Project) -> None:
    project.write("test_own.py", "import pytest\n@pytest.mark.fairness\ndef test_own():\n    assert False\n")
    result = project.run("--fairness", "--fairness-shard", "1/2", "test_own.py")
    result.assert_outcomes(skipped=1)


@pytest.mark.parametrize("written", ["0/2", "3/2", "2", "a/b", "1/", "1/0", "1/20000", "-1/2"])
def test_an_impossible_part_is_a_usage_error(project: Project, written: str) -> None:
    project.probe()
    result = project.run("--fairness", f"--fairness-shard={written}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "must be NUMBER/COUNT, such as 2/5" in result.stderr.str()


@pytest.mark.parametrize("option", ["--fairness-replay", "--fairness-rebaseline", "--fairness-measure"])
def test_a_shard_cannot_judge(project: Project, option: str) -> None:
    project.probe()
    result = project.run("--fairness", "--fairness-shard", "1/2", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--fairness-shard only sends a part of the requests" in result.stderr.str()


@pytest.mark.parametrize(
    "option", [("--fairness-shard", "1/2"), ("--fairness-batch=submit",), ("--fairness-batch=collect",)]
)
def test_a_part_of_a_run_needs_fairness(project: Project, option: tuple[str, ...]) -> None:
    project.probe()
    result = project.run(*option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"{option[0].partition('=')[0]} has no effect without --fairness" in result.stderr.str()
