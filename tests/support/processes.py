"""Processes that a server forks, which has loaded the modules of a run: importing them takes most of a short run."""

from __future__ import annotations

import gc
import multiprocessing
import multiprocessing.forkserver
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from execnet.gateway_base import ExecModel, Popen2IO
from execnet.gateway_io import Popen2IOMaster

from pytest_fairness import extensions

if sys.platform == "win32":
    _CONTEXT = multiprocessing.get_context("spawn")
else:
    _CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "pytest_fairness.pytest_integration.controller",
        "pytest_fairness.pytest_integration.session",
        "pytest_fairness.audits.texts",
        "pytest_fairness.targets.anthropic",
        "pytest_fairness.targets.openai",
        "pytest_fairness.reports.markdown",
        "pytest_fairness.reports.terminal",
        "httpcore2",
        "scipy.stats",
        "execnet.gateway_io",
        "pdb",
        "unittest",
        "preloaded",  # of this folder, in which the server starts
    ]
)

GARBAGE_THRESHOLDS = (20_000, 50, 10)
"""Thresholds of Python's garbage collector in tests.

With the default, 700, 10, 10, it takes a sixth of the processor time of tests that run pytest: it searches the loaded
modules and the collected tests, which are no garbage.
"""


def start(function: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Start a function in another process, which has the working folder and the environment of this process."""
    process = _CONTEXT.Process(target=_run, args=(Path.cwd(), dict(os.environ), function, *arguments), daemon=True)
    with chdir(Path(__file__).parent):  # the server stays in the folder in which the first process is started
        process.start()
    return process


def _run(folder: Path, environment: dict[str, str], function: Callable[..., None], *arguments: Any) -> None:
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    os.chdir(folder)
    if environment.get("PYTHONPATH") != os.environ.get("PYTHONPATH"):
        extensions.installed.cache_clear()
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    # This process may start further ones: the server that forked it forks them, in place of a server of its own.
    multiprocessing.current_process().daemon = False
    if sys.platform != "win32":
        vars(multiprocessing.forkserver._forkserver)["ensure_running"] = lambda: None
    function(*arguments)


def run_script(text: str) -> None:
    """Run the text of a program as `python -c` would."""
    sys.path.insert(0, "")
    exec(text, {"__name__": "__main__"})  # noqa: S102 - the text of a test


@contextmanager
def forked_workers() -> Iterator[None]:
    """Have the server fork the workers of pytest-xdist in this context; execnet would start Python anew."""
    with pytest.MonkeyPatch.context() as patch:
        if sys.platform != "win32":
            patch.setattr("execnet.gateway_io.Popen2IOMaster", ForkedWorker)
        yield


def send(process: BaseProcess, number: signal.Signals) -> None:
    """Send a signal to a process."""
    assert process.pid is not None
    os.kill(process.pid, number)


def kill(process: BaseProcess) -> None:
    """Kill a process and wait for its end; another thread may wait for its exit code, which can be read only once."""
    process.kill()
    wait([process.sentinel])


class ForkedWorker(Popen2IOMaster):
    """Worker of pytest-xdist that the server forks; see `forked_workers`."""

    def __init__(self, args: list[str], execmodel: ExecModel) -> None:
        requests, sent = _CONTEXT.Pipe(duplex=False)
        received, replies = _CONTEXT.Pipe(duplex=False)
        self._process = start(_work, requests, replies)
        requests.close()
        replies.close()
        streams = (os.fdopen(os.dup(sent.fileno()), "wb"), os.fdopen(os.dup(received.fileno()), "rb"))
        sent.close()
        received.close()
        Popen2IO.__init__(self, *streams, execmodel=execmodel)

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()


def _work(requests: Connection, replies: Connection) -> None:
    """Do what execnet has a new Python do: run the line of code that comes from the standard input."""
    os.dup2(requests.fileno(), 0)
    os.dup2(replies.fileno(), 1)
    requests.close()
    replies.close()
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    exec(eval(sys.stdin.readline()), {"__name__": "__main__"})  # noqa: S102, S307 - the line is execnet's
