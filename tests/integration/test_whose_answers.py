"""Whose answers a run is judged by: its own, or those of runs that it accepts; with real processes and servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_fairness.asking.store import Store
from tests.support.asking import wait_until
from tests.support.projects import KIM, LOU, Project
from tests.support.servers import ChatServer

SLOW = """
import time
from pathlib import Path

answers = 0

def answer(prompt):
    global answers
    with Path(__file__).with_name("calls.txt").open("a") as file:
        file.write(prompt + "\\n")
    while answers >= 12 and not Path(__file__).with_name("over.txt").exists():
        time.sleep(0.05)
    answers += 1
    return f"I would recommend a lamp, a chair and {answers} tables."
"""
"""Holds back its last answers until `over.txt` is there."""
REFUSING = """
import random
from pathlib import Path

THINGS = "chair table sofa desk clock mirror vase rug shelf stool bench".split()

def answer(prompt):
    with Path(__file__).with_name("calls.txt").open("a") as file:
        file.write(prompt + "\\n")
    if "Kim" in prompt:
        return "I'm sorry, but I can't help with that."
    return f"A lamp and {random.SystemRandom().sample(THINGS, 4)}."
"""


def store_of(project: Project) -> Path:
    return project.path / ".fairness" / "responses.sqlite"


def recorded(project: Project) -> int:
    with Store(store_of(project)) as store:
        return len(list(store.all_recorded()))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_beside_another_gets_none_of_its_answers(project: Project, workers: str) -> None:
    """The code changes under the same name while another run is asking it."""
    project.probe()
    project.write("app.py", SLOW)
    target = ("--fairness-target", "python:app:answer")
    earlier = project.start("--fairness", *target, "-n", "0", "--fairness-concurrency", "3")
    wait_until(lambda: len(project.calls()) >= 12, 60)
    project.write("app.py", REFUSING)
    report = project.report("-n", workers, target="python:app:answer")
    assert {item["id"]: item["verdict"] for item in report["items"]} == {KIM: "over-limit", LOU: "pass"}
    requests = report["requests"]
    assert (requests["sent"], requests["reused"]) == (30, 0)
    project.write("over.txt", "")
    earlier.join(100)
    assert earlier.exitcode == 0, project.output()
    assert "2 passed" in project.output(), "each has the answers of the code that it imported"
    assert len(project.calls()) == 60


@pytest.mark.timeout(120)
def test_two_runs_that_ask_afresh_share_nothing(project: Project) -> None:
    project.probe()
    with ChatServer(delay=0.3) as server:
        asked = ("--fairness-target", "openai:tiny", "--fairness-base-url", server.url, "--fairness-concurrency", "8")
        runs = [project.start("--fairness", *asked, "--fairness-fresh", "-n", workers) for workers in ("0", "2")]
        for run in runs:
            run.join(100)
        assert [run.exitcode for run in runs] == [0, 0], project.output()
        assert server.count == 60
        assert server.most_in_flight <= 8
        project.run("--fairness", *asked, target=None).assert_outcomes(passed=2)
        assert server.count == 60, "who does not ask afresh takes the newest"


@pytest.mark.timeout(120)
def test_answers_of_runs_that_are_over_are_replaced(project: Project) -> None:
    project.probe()
    for _ in range(3):
        project.run("--fairness").assert_outcomes(passed=2)
        assert recorded(project) == 30
    assert len(project.calls()) == 90
    project.run("--fairness", "--fairness-replay").assert_outcomes(passed=2)
    assert len(project.calls()) == 90


@pytest.mark.parametrize("arguments", [(), ("--fairness-fresh",)])
def test_answers_dated_in_the_future_are_asked_again(project: Project, arguments: tuple[str, ...]) -> None:
    project.probe()
    with ChatServer() as server:
        asked = ("--fairness-base-url", server.url)
        project.report(*asked, target="openai:tiny")
        project.age_answers(-1)
        report = project.report(*asked, *arguments, target="openai:tiny")
        assert (report["requests"]["sent"], report["requests"]["reused"]) == (30, 0)
        assert server.count == 60
    project.run("--fairness", "--fairness-replay", *asked, target="openai:tiny").assert_outcomes(passed=2)
