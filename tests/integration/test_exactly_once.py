"""Several processes, one store: every question is asked once, within the limit of all of them together."""

from __future__ import annotations

import signal
import sys
from multiprocessing.process import BaseProcess

import pytest

from pytest_fairness.asking.limits import DEFAULT_TIMING
from pytest_fairness.asking.store import Store
from tests.support.asking import processes_in, wait_until
from tests.support.processes import send
from tests.support.projects import PROBE, Project
from tests.support.servers import ChatServer, Reply

SHARED = [PROBE.replace("[Kim, Lou]", names) for names in ("[Kim]", "[Kim, Lou]", "[Lou, Sam]", "[Kim, Sam]")]
"""Four probes with the same prompts for the same names: 80 questions in all, 10 each for Alex, Kim, Lou and Sam."""
DISTINCT = 40


def start(project: Project, server: ChatServer, *arguments: str) -> BaseProcess:
    asked = ("--fairness", "--fairness-target", "openai:tiny", "--fairness-base-url", server.url)
    return project.start(*asked, *arguments)


def write_shared(project: Project) -> None:
    for number, text in enumerate(SHARED):
        project.probe(f"probes/shared{number}.yaml", text)


def questions(server: ChatServer) -> dict[str, int]:
    asked: dict[str, int] = {}
    for body in server.bodies:
        asked[body["messages"][0]["content"]] = asked.get(body["messages"][0]["content"], 0) + 1
    return asked


@pytest.mark.timeout(200)
def test_two_runs_at_once_of_four_probes_that_share_prompts(project: Project) -> None:
    write_shared(project)
    with ChatServer(delay=0.1) as server:
        runs = [start(project, server, "--fairness-concurrency", "5", "-n", workers) for workers in ("2", "0")]
        for run in runs:
            run.join(180)
        assert [run.exitcode for run in runs] == [0, 0], project.output()
        assert server.count == DISTINCT
        assert set(questions(server).values()) == {10}
        assert server.most_in_flight <= 5


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.timeout(200)
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_workers_stop_with_the_process_that_the_user_started(project: Project, name: str) -> None:
    end = signal.Signals[name]  # Windows has no SIGKILL
    project.probe(text=PROBE.replace("trials: 10", "trials: 200"))
    with ChatServer(delay=1.0) as server:
        run = start(project, server, "--fairness-concurrency", "4", "--fairness-report", "report.json", "-n", "2")
        wait_until(lambda: server.count >= 8, 100)
        # The controller alone, not its group.
        send(run, end)
        stopped_at = server.count
        run.join(60)
        wait_until(lambda: not processes_in(project.path), 60)
        assert server.count <= stopped_at + 2 * 4, "one round may still go out, and no more"
        with Store(project.path / ".fairness" / "responses.sqlite") as store:
            assert len(list(store.all_recorded())) >= stopped_at - 4, "what had come is recorded"
        if end == signal.SIGINT:
            assert run.exitcode == pytest.ExitCode.INTERRUPTED, project.output()
            requests = project.read("report.json")["requests"]
            assert (requests["planned"], requests["reused"]) == (600, 0)
            assert stopped_at - 4 <= requests["sent"] <= server.count


@pytest.mark.timeout(120)
def test_a_worker_that_is_done_waits_for_what_others_need(project: Project) -> None:
    """Its own item is over at once, but it was the first to ask, and so for the other worker's item as well."""
    project.write(
        "conftest.py",
        "import os, time\n"
        "\n"
        "def pytest_runtestloop():\n"
        "    time.sleep(1.0 if os.environ.get('PYTEST_XDIST_WORKER') == 'gw1' else 0.0)\n",
    )
    project.probe("probes/quick.yaml", PROBE.replace("[Kim, Lou]", "[Kim]"))
    project.probe("probes/slow.yaml", PROBE.replace("[Kim, Lou]", "[Lou]").replace("Alex", "Sam"))
    longer_than_the_grace = DEFAULT_TIMING.stop_grace + 1
    with ChatServer(
        lambda messages, _: Reply(delay=longer_than_the_grace if "Sam" in str(messages) else 0.0)
    ) as server:
        run = start(project, server, "-n", "2", "--fairness-concurrency", "40")
        run.join(100)
        assert run.exitcode == 0, project.output()
        assert server.count == 4 * 10
