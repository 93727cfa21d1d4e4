"""Engines that cannot start for lack of threads or file descriptors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.projects import Project, says
from tests.support.servers import ChatServer

SCRIPT = """
import resource, sys
from pathlib import Path
from tests.support.asking import engine_for, questions, settings_in

with engine_for(settings_in(Path(sys.argv[1]), "http://127.0.0.1:9/v1")) as engine:
    engine.answers([])
    {limit}
    for _ in range(2):
        for answer in engine.answers(questions(2)):
            print(type(answer).__name__, answer)
"""
FILES = """
    import os
    lowest = os.open("/dev/null", os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, lowest))
"""
THREADS = """
    import threading
    def refuse(self):
        raise RuntimeError("can't start new thread")
    threading.Thread.start = refuse
"""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX's")


@pytest.mark.parametrize(
    ("limit", "said"), [(FILES, "Too many open files"), (THREADS, "can't start new thread")], ids=["files", "threads"]
)
def test_an_engine_that_cannot_start_fails_every_request(tmp_path: Path, limit: str, said: str) -> None:
    command = [sys.executable, "-W", "error", "-c", SCRIPT.format(limit=limit), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("FairnessError openai:model cannot be asked: ") and said in line for line in lines)
    assert "ulimit -n" in run.stdout
    assert "Traceback" not in run.stderr


def test_a_run_without_file_descriptors_ends_with_a_message(project: Project) -> None:
    project.probe()
    project.write(
        "conftest.py",
        "import os, resource, threading\n"
        "start = threading.Thread.start\n"
        "def limited(thread):\n"
        "    if thread.name == 'fairness-engine':\n"
        "        lowest = os.open('/dev/null', os.O_RDONLY)\n"
        "        os.close(lowest)\n"
        "        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, lowest + 1))\n"
        "    start(thread)\n"
        "threading.Thread.start = limited\n",
    )
    with ChatServer() as server:
        result = project.run_forked("--fairness", "--fairness-base-url", server.url, target="openai:tiny", timeout=60)
    result.assert_outcomes(errors=2)
    assert says(result, "openai:tiny cannot be asked: Too many open files.")
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
