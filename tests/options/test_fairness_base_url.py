"""`--fairness-base-url`, its ini and its environment variable."""

from __future__ import annotations

import pytest

from tests.projects import Project, ini, says
from tests.servers import ChatServer


def test_the_option_goes_before_the_environment_and_the_environment_before_the_ini(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.probe()
    with ChatServer() as first, ChatServer() as second, ChatServer() as third:
        project.write("pytest.ini", ini(fairness_base_url=third.url))
        project.run("--fairness", target="openai:tiny").assert_outcomes(passed=2)
        assert third.count == 30
        monkeypatch.setenv("OPENAI_BASE_URL", second.url)
        project.run("--fairness", target="openai:tiny").assert_outcomes(passed=2)
        assert second.count == 30
        project.run("--fairness", "--fairness-base-url", first.url, target="openai:tiny").assert_outcomes(passed=2)
        assert first.count == 30


def test_without_it_a_key_is_needed(project: Project) -> None:
    project.probe()
    result = project.run("--fairness", target="openai:tiny")
    result.assert_outcomes(errors=2)
    assert says(result, "OPENAI_API_KEY")


def test_an_endpoint_that_is_not_there_is_an_error_without_a_traceback(project: Project) -> None:
    project.probe()
    project.write("pytest.ini", ini(fairness_give_up="0.5"))
    result = project.run("--fairness", "--fairness-base-url", "http://127.0.0.1:9/v1", target="openai:tiny")
    result.assert_outcomes(errors=2)
    assert says(result, "openai:tiny")
    assert "Traceback" not in result.stdout.str()
