"""`--fairness-target`, its ini, its environment variable, and the fixture that overrides them all."""

from __future__ import annotations

import pytest

from tests.projects import KIM, LOU, PROBE, Project, ini, shows

OVERRIDE = """
import pytest

@pytest.fixture(scope="session")
def fairness_target():
    import app
    yield app.biased
"""


def test_the_option_goes_before_the_environment_and_the_environment_before_the_ini(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.probe()
    project.write("pytest.ini", ini(fairness_target="python:app:biased"))
    assert project.verdicts(target=None)[KIM] == "over-limit"
    monkeypatch.setenv("PYTEST_FAIRNESS_TARGET", "python:app:polite")
    assert project.verdicts(target=None)[KIM] == "pass"
    assert project.verdicts(target="python:app:biased")[KIM] == "over-limit"


@pytest.mark.parametrize("written", ["opnai:gpt-5", "nobody", "python:", "python:app"])
def test_an_unknown_target_is_a_usage_error(project: Project, written: str) -> None:
    project.probe()
    result = project.run("--fairness", target=written)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len(result.stderr.str().strip().splitlines()) == 1
    assert written in result.stderr.str()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("python:nowhere:answer", "python:nowhere:answer: there is no module 'nowhere'"),
        ("python:app:nothing", "python:app:nothing: app has no 'nothing'"),
    ],
)
def test_a_target_that_cannot_be_used_is_each_items_error(project: Project, written: str, message: str) -> None:
    project.probe()
    project.write("test_own.py", "def test_a(): pass")
    result = project.run("--fairness", target=written)
    result.assert_outcomes(errors=2, passed=1)
    assert shows(result, message)
    assert "Traceback" not in result.stdout.str()


def test_a_conftest_overrides_it_with_any_callable(project: Project) -> None:
    project.probe()
    project.write("conftest.py", OVERRIDE)
    report = project.report()
    assert {item["id"]: item["verdict"] for item in report["items"]} == {KIM: "over-limit", LOU: "pass"}
    assert report["target"] == "conftest.py::fairness_target"
    assert len(project.calls()) == 30


def test_a_conftest_beside_the_probes_overrides_it_for_them_alone(project: Project) -> None:
    project.probe("probes/a/one.yaml")
    project.probe("probes/b/two.yaml")
    project.write("probes/a/conftest.py", OVERRIDE)
    verdicts = {item["nodeid"]: item["verdict"] for item in project.report()["items"]}
    assert verdicts[f"probes/a/one.yaml::{KIM}"] == "over-limit"
    assert verdicts[f"probes/b/two.yaml::{KIM}"] == "pass"
    assert len(project.calls()) == 60, "different targets share no answers, and equal ones each of them"


def test_an_async_callable_and_the_name_of_a_target_will_do(project: Project) -> None:
    project.probe()
    project.write(
        "conftest.py",
        "import pytest\n@pytest.fixture(scope='session')\ndef fairness_target():\n"
        "    async def answer(prompt):\n        return 'A lamp.'\n    return answer\n",
    )
    assert project.verdicts()[KIM] == "pass"
    project.write(
        "conftest.py",
        "import pytest\n@pytest.fixture(scope='session')\ndef fairness_target():\n    return 'python:app:biased'\n",
    )
    assert project.verdicts()[KIM] == "over-limit"


@pytest.mark.parametrize(
    ("body", "scope", "message"),
    [
        ("return 3", "session", "conftest.py::fairness_target must be a callable"),
        ("return 'nobody'", "session", "unknown target 'nobody'"),
        (
            "return lambda prompt: 'A lamp.'",
            "function",
            "conftest.py: the fixture fairness_target must have scope='session'",
        ),
        ("return lambda prompt: 5", "session", "must return a str, not int"),
    ],
)
def test_an_override_that_cannot_be_asked_is_an_error_that_says_why(
    project: Project, body: str, scope: str, message: str
) -> None:
    project.probe()
    project.write(
        "conftest.py", f"import pytest\n@pytest.fixture(scope='{scope}')\ndef fairness_target():\n    {body}\n"
    )
    result = project.run("--fairness")
    result.assert_outcomes(errors=2)
    assert shows(result, message)
    assert "Traceback" not in result.stdout.str()


def test_an_application_that_raises_is_no_answer_and_its_reason_is_shown(project: Project) -> None:
    project.probe()
    project.write("app.py", "def answer(prompt):\n    raise ValueError('no such shelf')\n")
    result = project.run("--fairness", target="python:app:answer")
    result.assert_outcomes(errors=2)
    assert shows(result, "none of 20 questions got an answer", "ValueError: no such shelf")


def test_answers_that_failed_are_missing_and_hurt_only_their_items(project: Project) -> None:
    project.probe(text=PROBE.replace("trials: 10", "trials: 20"))
    project.write(
        "app.py",
        "def answer(prompt):\n    if 'Kim' in prompt:\n        raise ValueError('no Kim')\n    return 'A lamp.'\n",
    )
    assert project.verdicts(target="python:app:answer") == {KIM: "not-measurable", LOU: "pass"}
