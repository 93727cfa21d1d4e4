"""What a run does when it is cut short: it stops asking, and loses nothing."""

from __future__ import annotations

import re
import signal
import sys
import threading
import time

import pytest

from tests.support.asking import processes_in, wait_until
from tests.support.processes import send
from tests.support.projects import APP, PROBE, Project, says
from tests.support.servers import ChatServer, fair_answer

MANY = PROBE.replace("trials: 10", "trials: 100")


def test_a_timeout_covers_the_waiting_and_what_came_stays_recorded(project: Project) -> None:
    pytest.importorskip("pytest_timeout")
    project.probe(text=MANY.replace("[Kim, Lou]", "[Kim]"))
    arguments = ("--fairness-base-url",)
    with ChatServer(delay=0.1) as server:
        result = project.run(
            "--fairness", "-p", "timeout", "--timeout", "1", *arguments, server.url, target="openai:tiny"
        )
        result.assert_outcomes(errors=1)
        assert says(result, "Timeout (>1.0s)")
        assert not says(result, "pluggy/_manager.py"), "an item of a probe shows no traceback through pytest"
        first = server.count
        assert 0 < first < 200
        server.delay = 0
        project.run(
            "--fairness", "-p", "timeout", "--timeout", "60", *arguments, server.url, target="openai:tiny"
        ).assert_outcomes(passed=1)
        assert server.count == 200, "only what was missing is asked"


def test_an_item_does_not_wait_for_the_answers_of_others(project: Project) -> None:
    project.probe("probes/a.yaml")
    project.probe("probes/b.yaml", PROBE.replace("would you recommend", "might you give"))
    seen: list[int] = []

    def answer(messages: list[dict[str, str]], body: dict[str, object]) -> str:
        seen.append(
            len((project.path / "done.txt").read_text().splitlines()) if (project.path / "done.txt").exists() else 0
        )
        return fair_answer(messages, body)

    project.write(
        "conftest.py",
        "def pytest_runtest_logreport(report):\n"
        "    if report.when == 'call':\n"
        "        with open('done.txt', 'a') as file:\n"
        "            file.write(report.nodeid + '\\n')\n",
    )
    with ChatServer(answer, delay=0.05) as server:
        arguments = ("--fairness-concurrency", "2", "--fairness-base-url", server.url)
        project.run("--fairness", *arguments, target="openai:tiny").assert_outcomes(passed=4)
    assert seen[0] == 0
    assert seen[-1] >= 1, "the first item was judged while questions of the last were still asked"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_ctrl_c_stops_what_is_queued(project: Project) -> None:
    project.probe(text=MANY)
    with ChatServer(delay=0.2) as server:
        asked = ("--fairness-target", "openai:tiny", "--fairness-base-url", server.url)
        process = project.start("--fairness", *asked, "--fairness-concurrency", "4")
        wait_until(lambda: server.count >= 8, 60)
        send(process, signal.SIGINT)
        process.join(30)
        assert process.exitcode == pytest.ExitCode.INTERRUPTED, project.output()
        assert "KeyboardInterrupt" in project.output()
        assert server.count < 60
        server.delay = 0
        project.run("--fairness", "--fairness-base-url", server.url, target="openai:tiny").assert_outcomes(passed=2)
        assert server.count == 300, "what had arrived stayed recorded"


def test_stopping_at_the_first_failure_stops_asking(project: Project) -> None:
    project.probe("probes/a.yaml")
    project.probe("probes/b.yaml", MANY.replace("would you recommend", "might you give"))

    def answer(messages: list[dict[str, str]], body: dict[str, object]) -> str:
        return (
            "I'm sorry, but I can't help with that."
            if "Kim" in messages[-1]["content"]
            else fair_answer(messages, body)
        )

    with ChatServer(answer, delay=0.05) as server:
        arguments = ("--fairness-concurrency", "4", "--fairness-base-url", server.url)
        result = project.run("--fairness", "-x", *arguments, target="openai:tiny")
        result.assert_outcomes(failed=1)
        assert 20 <= server.count < 200
        assert "fairness-engine" not in [thread.name for thread in threading.enumerate()], "no one is left to ask"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two workers"])
def test_sigterm_ends_a_run_as_ctrl_c_does(project: Project, workers: tuple[str, ...]) -> None:
    project.probe(text=PROBE)
    many = MANY.replace("would you recommend", "might you give")
    project.probe("probes/many.yaml", many)
    with ChatServer(delay=0.25) as server:
        asked = ("--fairness-target", "openai:tiny", "--fairness-base-url", server.url, "--fairness-concurrency", "6")
        process = project.start("--fairness", *asked, *workers, "--fairness-report", "report.json", "-v")
        wait_until(lambda: "PASSED" in project.output(), 60)
        for _ in range(3):  # parents that pass on what they got themselves send it again
            send(process, signal.SIGTERM)
            time.sleep(0.1)
        process.join(60)
        output = project.output()
        assert process.exitcode == pytest.ExitCode.INTERRUPTED, output
        stopped_at = server.count
        assert stopped_at < 330
        lines = re.findall(r"^([\d,]+) answers recorded; run again to continue\.$", output, re.MULTILINE)
        assert len(lines) == 1, output
        assert stopped_at - 12 <= int(lines[0]) <= stopped_at
        assert re.search(r"pass +0 .*refusals\[name=Kim\]", output), "what was measured so far is summed up"
        assert "KeyboardInterrupt: ended by SIGTERM" in output
        assert project.read("report.json")["summary"]["passed"] >= 1
        wait_until(lambda: not processes_in(project.path), 10)
        assert server.count == stopped_at, "nothing is sent after the end"
        server.delay = 0
        project.run("--fairness", "--fairness-base-url", server.url, target="openai:tiny").assert_outcomes(passed=4)
        assert server.count <= 330 + 12, "what had arrived stayed recorded"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "a worker"])
def test_what_the_next_run_does_not_take_is_not_promised(project: Project, workers: tuple[str, ...]) -> None:
    project.probe(text=MANY)
    project.write(
        "app.py",
        "import time\n"
        "def slow(prompt):\n"
        "    open('begun.txt', 'a').write('.')\n"
        "    time.sleep(0.2)\n"
        "    return 'A lamp.'\n",
    )
    process = project.start("--fairness", "--fairness-target", "python:app:slow", *workers)
    begun = project.write("begun.txt", "")
    wait_until(lambda: begun.stat().st_size > 40, 60)
    send(process, signal.SIGTERM)
    process.join(60)
    assert process.exitcode == pytest.ExitCode.INTERRUPTED, project.output()
    said = " ".join(project.output().split())
    assert re.search(r"[\d,]+ answers recorded; the next run requests them again, because the target's code may", said)
    assert "run again to continue" not in said


@pytest.mark.parametrize(
    ("definition", "raised"),
    [
        ("def answer(prompt):\n    if 'Kim' in prompt:\n        return next(iter(()))\n", "StopIteration at app.py:5"),
        (
            "from asyncio import *\nasync def answer(prompt):\n    if 'Kim' in prompt:\n        raise CancelledError\n",
            "CancelledError at app.py:6",
        ),
    ],
    ids=["sync", "async"],
)
def test_no_exception_of_a_target_is_lost(project: Project, definition: str, raised: str) -> None:
    project.write("app.py", f"from app_polite import polite\n\n{definition}    return polite(prompt)\n")
    project.write("app_polite.py", APP)
    project.probe()
    started = time.monotonic()
    result = project.run("--fairness", "-o", "fairness_timeout=20", target="python:app:answer")
    assert time.monotonic() - started < 15, "nothing waits for the time limit"
    assert says(result, f"python:app:answer raised {raised}, in answer")
