"""The ini `fairness_prices`: what a run cost."""

from __future__ import annotations

import pytest

from tests.support.projects import PROBE, Project, ini, says, shows
from tests.support.servers import ChatServer, Reply, fair_answer

OPENAI = "openai:tiny"


@pytest.mark.parametrize("name", ["tiny", "openai:tiny"])
def test_the_cost_of_what_was_received(project: Project, name: str) -> None:
    project.probe()
    project.write("pytest.ini", ini(fairness_prices=f"\n  {name} 2 10\n  other 1 1"))
    with ChatServer(lambda *_: "one two three") as server:
        arguments = ("--fairness", "--fairness-base-url", server.url, "--fairness-report", "report.json")
        result = project.run(*arguments, target=OPENAI)
        # 30 prompts of 6 words, and answers of 3.
        assert shows(result, "30 sent, 0 reused; 180 prompt and 90 completion tokens; cost 0.0013")
        assert project.read("report.json")["requests"]["cost"] == pytest.approx((180 * 2 + 90 * 10) / 1e6)
        result = project.run(*arguments, target=OPENAI)
        assert shows(result, "0 sent, 30 reused (oldest ")
        assert "completion tokens" not in result.stdout.str(), "none were received"
        assert project.read("report.json")["requests"]["cost"] in (0, None)


def test_workers_add_up(project: Project) -> None:
    project.probe()
    project.write("pytest.ini", ini(fairness_prices="tiny 2 10"))
    # Three words, as all are counted.
    with ChatServer(lambda *asked: fair_answer(*asked).rsplit(maxsplit=7)[0]) as server:
        arguments = ("--fairness", "--fairness-base-url", server.url, "--fairness-report", "report.json", "-n", "2")
        project.run(*arguments, target=OPENAI).assert_outcomes(passed=2)
    assert project.read("report.json")["requests"]["cost"] == pytest.approx((180 * 2 + 90 * 10) / 1e6)


def test_no_cost_where_it_is_not_known(project: Project) -> None:
    project.probe()
    assert project.report()["requests"]["cost"] is None
    project.write("pytest.ini", ini(fairness_prices="tiny 2 10"))
    bare = Reply(raw=b'{"choices": [{"message": {"content": "hi"}}]}')
    with ChatServer(lambda *_: bare) as server:
        report = project.report("--fairness-base-url", server.url, target=OPENAI)
    assert report["requests"]["sent"] == 30
    assert report["requests"]["cost"] is None


@pytest.mark.parametrize("line", ["tiny", "tiny 1", "tiny 1 x", "tiny -1 1", "tiny 1 inf", "1 2", "a 1 1\n  a 2 2"])
def test_a_wrong_line_is_a_usage_error(project: Project, line: str) -> None:
    project.probe(text=PROBE)
    project.write("pytest.ini", ini(fairness_prices=line))
    result = project.run("--fairness")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "fairness_prices has " in result.stderr.str()
    assert not says(result, "Traceback")
