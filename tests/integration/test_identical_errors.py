"""Errors that many items share: once, with their number."""

from __future__ import annotations

import re

import pytest

from tests.support.projects import PROBE, Project, shows
from tests.support.servers import ChatServer, Reply

WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two workers"])


@WORKERS
@pytest.mark.parametrize("verbose", [(), ("-v",)], ids=["short", "verbose"])
def test_a_wrong_key_is_told_once_for_all_items(
    project: Project, workers: tuple[str, ...], verbose: tuple[str, ...]
) -> None:
    project.probe("probes/a.yaml")
    project.probe("probes/b.yaml", PROBE.replace("would you recommend", "might you give"))
    with ChatServer(lambda *_: Reply("no", status=401)) as server:
        arguments = ("--fairness", "--fairness-base-url", server.url, "--junitxml", "junit.xml", *workers, *verbose)
        result = project.run(*arguments, target="openai:tiny")
    result.assert_outcomes(errors=4)
    assert sum(line.startswith("ERROR probes/") for line in result.outlines[-8:]) == 1
    assert shows(result, "ERROR probes/", "and 3 more: openai:tiny: ")
    text = result.stdout.str()
    assert ("= ERRORS =" in text) == bool(verbose), "the summary of ours has the error"
    assert len(re.findall("ERROR at setup of", text)) == len(verbose)
    assert (project.path / "junit.xml").read_text("utf-8").count("<error ") == 4


@WORKERS
def test_python_tests_too(project: Project, workers: tuple[str, ...]) -> None:
    project.write(
        "test_own.py",
        "import pytest\n"
        "@pytest.mark.parametrize('number', range(5))\n"
        "def test_a(number, llm_client):\n"
        "    pass\n"
        "def test_b(other):\n"
        "    pass\n",
    )
    project.write(
        "conftest.py",
        "import pytest\n"
        "from pytest_fairness import FairnessError\n"
        "@pytest.fixture\n"
        "def fairness_target():\n"
        "    raise FairnessError('no model today')\n"
        "@pytest.fixture\n"
        "def other():\n"
        "    raise ValueError('mine')\n",
    )
    result = project.run("--fairness", *workers)
    result.assert_outcomes(errors=6)
    text = result.stdout.str()
    assert len(re.findall("ERROR at setup of test_a", text)) == 1
    assert len(re.findall("^and 4 more: no model today$", text, re.MULTILINE)) == 1
    assert len(re.findall("ERROR at setup of test_b", text)) == 1, "an error of the user's is shown as ever"
    assert shows(result, "ERROR test_own.py::test_a[", "and 4 more: no model today")


def test_different_errors_are_all_shown(project: Project) -> None:
    project.probe("probes/a.yaml", PROBE.replace("trials: 10", "trials: 2"))
    project.probe("probes/b.yaml", PROBE.replace("trials: 10", "trials: 3"))
    result = project.run("--fairness")
    result.assert_outcomes(errors=4)
    assert sum(line.startswith("ERROR probes/") for line in result.outlines[-8:]) == 2


def test_several_errors_of_an_answer_file_are_numbered_and_name_the_file_as_target(project: Project) -> None:
    project.probe(text=PROBE.replace("prompt: What would you recommend to {name}?", "responses: {file: data.csv}"))
    text = (project.path / "probes/gifts.yaml").read_text("utf-8").replace("trials: 10\n", "")
    project.probe(text=text)
    project.write("probes/data.csv", "who,said\nAlex,A lamp.\n")
    result = project.run("--fairness", "--fairness-report", "report.json", target="openai:my-model")
    report = project.read("report.json")
    assert report["target"] == "data.csv"
    reason = report["items"][0]["reason"]
    assert "(1) probes/data.csv:1: no column 'name'" in reason
    assert " (2) probes/data.csv:1: no column 'text'" in reason
    assert "my-model" not in result.stdout.str()
