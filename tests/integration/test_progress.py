"""The line of progress: on a terminal only, and gone when it is over."""

from __future__ import annotations

import os
import re
import sys
from multiprocessing.connection import wait

import pytest

from pytest_fairness.pytest_integration.terminal import duration, text_of
from tests.support.projects import PROBE, Project

DRAWN = re.compile(r"\n\r\x1b\[2K([^\x1b]*)\x1b\[1A\r(?:\x1b\[\d+C)?")
"""One line down, the text, and back to where pytest was."""
SLOW = """
import itertools
import time
COUNT = itertools.count()
def answer(prompt):
    time.sleep(0.15)
    number = next(COUNT)
    return "A lamp and " + "abcdefghij"[number % 10] * (3 + number // 10)
"""


def on_a_terminal(project: Project, *arguments: str) -> str:
    """Return what pytest writes to a terminal of its own."""
    terminal, end = os.openpty()
    asked = ("--fairness", "--fairness-concurrency", "2", "--fairness-target", "python:app:answer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setenv("COLUMNS", "100")
        process = project.start(*asked, *arguments, output=os.ttyname(end))
    written = b""
    while terminal in wait([terminal, process.sentinel]):
        written += os.read(terminal, 1 << 16)
    for number in (terminal, end):
        os.close(number)
    return written.decode().replace("\r\n", "\n")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("options", [(), ("-v", "-s")])
def test_it_shows_rate_and_time_left_and_leaves_pytests_lines_whole(project: Project, options: tuple[str, ...]) -> None:
    project.probe(text=PROBE)
    project.write("app.py", SLOW)
    output = on_a_terminal(project, *options)
    shown = DRAWN.findall(output)
    assert len(shown) >= 3
    assert re.fullmatch(r"\d+ of 30 answers, \d+\.\d a second, \d+ s left", shown[1])
    assert shown[-1] == "", "it is taken away again"
    rest = re.sub(r"\x1b\[[\d;]*m", "", DRAWN.sub("", output))
    expected = r"gifts\.yaml::refusals\[name=Kim\] PASSED" if options else r"\nprobes/gifts\.yaml \.\."
    assert re.search(expected, rest)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_workers_are_followed_together(project: Project) -> None:
    project.probe(text=PROBE)
    project.write("app.py", SLOW)
    output = on_a_terminal(project, "-v", "-n", "2")
    shown = DRAWN.findall(output)
    assert any(re.fullmatch(r"\d+ of 30 answers, \d+\.\d a second, \d+ s left", text) for text in shown), shown
    assert shown[-1] == "", "it is taken away again"
    rest = re.sub(r"\x1b\[[\d;]*m", "", DRAWN.sub("", output))
    for name in ("Kim", "Lou"):
        assert re.search(rf"\[gw\d\] \[ *\d+%\] PASSED probes/gifts\.yaml::refusals\[name={name}\] \n", rest)


def test_it_is_silent_where_there_is_no_terminal(project: Project) -> None:
    project.probe(text=PROBE.replace("[Kim, Lou]", "[Kim]"))
    project.write("app.py", SLOW)
    result = project.run("--fairness", "--fairness-concurrency", "2", target="python:app:answer")
    result.assert_outcomes(passed=1)
    assert "answers," not in result.stdout.str() + result.stderr.str()


def test_its_words() -> None:
    def words(settled: int, planned: int, rate: float, failed: int = 0) -> str:
        return text_of({"settled": settled, "planned": planned, "failed": failed}, rate)

    assert words(412, 2000, 31.46) == "412 of 2,000 answers, 31.5 a second, 50 s left"
    assert words(0, 10, 0.0) == "0 of 10 answers"
    assert words(5, 10, 1.0, 3) == "5 of 10 answers (3 failed), 1.0 a second, 5 s left"
    assert [duration(seconds) for seconds in (0.4, 99, 240, 7800)] == ["0 s", "99 s", "4 min", "2 h 10 min"]
