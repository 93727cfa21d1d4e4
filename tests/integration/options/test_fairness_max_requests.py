"""`--fairness-max-requests` and its ini: a budget that is kept, whoever sends and whatever has to be sent again."""

from __future__ import annotations

import pytest

from tests.support.projects import KIM, PROBE, Project, ini, says
from tests.support.servers import Body, ChatServer, Messages, Reply, fair_answer

OPENAI = "openai:tiny"


def test_the_rest_are_errors_that_say_how_to_go_on(project: Project) -> None:
    project.probe()
    with ChatServer() as server:
        arguments = ("--fairness", "--fairness-base-url", server.url, "--fairness-report", "report.json")
        result = project.run(*arguments, "--fairness-max-requests", "20", target=OPENAI)
        result.assert_outcomes(passed=1, errors=1)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        assert server.count == 20
        assert says(
            result,
            "not sent: this run's budget of 20 requests is spent (--fairness-max-requests); the answers are "
            "recorded, so run again to continue",
        )
        assert project.read("report.json")["requests"]["sent"] == 20
        # What is recorded does not count.
        project.run(*arguments, "--fairness-max-requests", "10", target=OPENAI).assert_outcomes(passed=2)
        assert server.count == 30


def test_every_try_counts_and_workers_share(project: Project) -> None:
    tries = 0

    def answer(messages: Messages, body: Body) -> Reply | str:
        nonlocal tries
        tries += 1
        if tries % 5 == 0:
            return Reply("slow down", status=429)
        return Reply("oops", status=500) if tries % 5 == 1 else fair_answer(messages, body)

    project.probe("probes/a.yaml")
    project.probe("probes/b.yaml", PROBE.replace("would you recommend", "might you give"))
    project.write("pytest.ini", ini(fairness_max_requests="25"))
    with ChatServer(answer, delay=0.02) as server:
        arguments = ("--fairness", "--fairness-base-url", server.url, "--fairness-report", "report.json")
        project.run(*arguments, "-n", "2", target=OPENAI).assert_outcomes(errors=4)
        assert server.count == 25
        requests = project.read("report.json")["requests"]
        assert (requests["planned"], requests["reused"]) == (60, 0)
        assert requests["sent"] <= 25
        result = project.run(*arguments, "--fairness-max-requests", "200", target=OPENAI)
        result.assert_outcomes(passed=4)
        assert project.read("report.json")["summary"]["errors"] == 0


def test_an_application_cannot_go_on_where_it_stopped(project: Project) -> None:
    project.probe()
    result = project.run("--fairness", "--fairness-max-requests", "1")
    assert says(result, "not sent: this run's budget of 1 request is spent")
    assert says(result, "raise the limit, or set the target's version with the ini fairness_target_version")
    assert len(project.calls()) == 1


def test_questions_of_python_tests_count(project: Project) -> None:
    project.write("test_own.py", "def test_a(llm_client):\n    llm_client.complete('x', trials=5)\n")
    result = project.run("--fairness", "--fairness-max-requests", "3")
    result.assert_outcomes(failed=1)
    assert len(project.calls()) == 3


@pytest.mark.parametrize("written", ["0", "-1", "many"])
def test_it_must_be_a_whole_number(project: Project, written: str) -> None:
    result = project.run("--fairness", f"--fairness-max-requests={written}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--fairness-max-requests must be a whole number of at least 1" in result.stderr.str()


def test_without_a_budget_nothing_is_held_back(project: Project) -> None:
    project.probe()
    assert project.verdicts()[KIM] == "pass"
    assert len(project.calls()) == 30
