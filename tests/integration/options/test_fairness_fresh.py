"""`--fairness-fresh`."""

from __future__ import annotations

import pytest

from tests.support.projects import PROBE, Project, says
from tests.support.servers import ChatServer


def test_answers_are_reused_until_it_asks_again(project: Project) -> None:
    project.probe()
    with ChatServer(lambda *_: "A lamp.") as server:
        arguments = ("--fairness-base-url", server.url)
        first = project.report(*arguments, target="openai:tiny")
        assert server.count == 30
        second = project.report(*arguments, target="openai:tiny")
        assert server.count == 30
        third = project.report("--fairness-fresh", *arguments, target="openai:tiny")
        assert server.count == 60
    assert [report["requests"]["sent"] for report in (first, second, third)] == [30, 0, 30]
    assert [report["requests"]["reused"] for report in (first, second, third)] == [0, 30, 0]


def test_it_cannot_be_given_with_replay(project: Project) -> None:
    result = project.run("--fairness", "--fairness-fresh", "--fairness-replay")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --fairness-fresh*--fairness-replay*"])


@pytest.mark.parametrize(
    ("kept", "typed"), [("--fairness-fresh", "--fairness-replay"), ("--fairness-replay", "--fairness-fresh")]
)
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two workers"])
def test_the_command_line_goes_before_addopts(
    project: Project, kept: str, typed: str, workers: tuple[str, ...]
) -> None:
    project.probe()
    project.run("--fairness")
    assert len(project.calls()) == 30
    project.write("pytest.ini", f"[pytest]\naddopts = {kept}\n")
    project.run("--fairness", typed, *workers).assert_outcomes(passed=2)
    assert len(project.calls()) == (30 if typed == "--fairness-replay" else 60)


def test_the_command_that_accepts_asks_nothing_although_addopts_ask_afresh(project: Project) -> None:
    project.probe(text=PROBE.replace("{limit: 0.5, gate: point}", "{}"))
    project.write("pytest.ini", "[pytest]\naddopts = --fairness-fresh\n")
    with ChatServer() as server:
        arguments = ("--fairness-base-url", server.url)
        result = project.run("--fairness", *arguments, target="openai:tiny")
        assert says(result, "--fairness-replay probes/gifts.yaml")
        project.run("--fairness-rebaseline", "--fairness-replay", *arguments, target="openai:tiny")
        assert server.count == 30
    assert (project.path / "baselines/gifts.json").exists()
