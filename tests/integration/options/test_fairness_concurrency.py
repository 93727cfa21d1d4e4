"""`--fairness-concurrency` and its ini."""

from __future__ import annotations

import pytest

from tests.support.projects import Project, ini
from tests.support.servers import ChatServer


def test_no_more_requests_are_in_flight(project: Project) -> None:
    project.probe()
    project.write("pytest.ini", ini(fairness_concurrency="3"))
    with ChatServer(delay=0.02) as server:
        project.run("--fairness", "--fairness-base-url", server.url, target="openai:tiny").assert_outcomes(passed=2)
        assert server.most_in_flight == 3
    with ChatServer(delay=0.02) as server:
        arguments = ("--fairness-concurrency", "7", "--fairness-base-url", server.url)
        project.run("--fairness", *arguments, target="openai:tiny").assert_outcomes(passed=2)
        assert server.most_in_flight == 7


@pytest.mark.parametrize("written", ["0", "-1", "all"])
def test_it_must_be_a_whole_number(project: Project, written: str) -> None:
    result = project.run("--fairness", f"--fairness-concurrency={written}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--fairness-concurrency must be a whole number of at least 1" in result.stderr.str()
    project.write("pytest.ini", ini(fairness_concurrency=written))
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "fairness_concurrency" in result.stderr.str()
    assert len(result.stderr.str().strip().splitlines()) == 1
