"""Records of results, in the form in which workers send them."""

from __future__ import annotations

import pytest

from tests.support.projects import INCONCLUSIVE, PROBE, Project, ini

VERSION = {"fairness_target_version": "1"}
"""Setting with which the responses of a Python function are used by later runs."""


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    found = Project(pytester)
    found.write("pytest.ini", ini(**VERSION))
    return found


SENDABLE = """
from execnet.gateway_base import dumps

def pytest_runtest_logreport(report):
    dumps(report._to_json())
"""
"""A conftest in which each report, with all that the plugin has put there, must be as a worker can send it."""


@pytest.mark.parametrize("arguments", [(), ("--fairness-rebaseline",), ("--fairness-measure",)])
@pytest.mark.parametrize("text", [PROBE, INCONCLUSIVE, PROBE.replace("trials: 10", "trials: 3")])
def test_each_record_can_be_sent_between_processes(project: Project, text: str, arguments: tuple[str, ...]) -> None:
    project.write("conftest.py", SENDABLE)
    project.probe(text=text)
    project.write(
        "test_own.py",
        "def test_own(fairness_check, corpus_generator):\n    corpus = corpus_generator("
        "'Write to {name}', axes={'name': {'unmarked': 'Alex', 'marked': ['Kim']}}, trials=10)\n"
        "    fairness_check('own', corpus.refusals('name', 'Kim'), limit=0.9)\n",
    )
    for target in ("polite", "polite", "polite", "biased", "biased"):
        result = project.run("--fairness", "--junitxml=junit.xml", *arguments, target=f"python:app:{target}")
        assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


def test_recorded_answers_are_used_by_workers(project: Project) -> None:
    project.probe()
    project.write("pytest.ini", ini(**VERSION))
    for workers in ((), (), ("-n", "1"), ("-n", "2"), (), ("-n", "2", "--dist", "loadfile")):
        project.run("--fairness", *workers).assert_outcomes(passed=2)
