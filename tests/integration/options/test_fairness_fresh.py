"""`--fairness-fresh`."""

from __future__ import annotations

import pytest

from tests.support.projects import Project
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
