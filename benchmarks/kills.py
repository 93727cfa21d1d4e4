"""Kill runs at random moments, and see whether anything that was recorded is lost or damaged.

    python benchmarks/kills.py --kills 50
    python benchmarks/kills.py --kills 40 --workers 4 --faults 0.25

Runs `pytest --fairness-rebaseline -n 2` against a server of its own, and kills the controller or a worker with SIGKILL
at a random moment, again and again on one store: mostly while it asks, else at any time from its start. After each kill
the database is whole, no answer that was recorded before is gone or different, what the server answered is recorded but
for what was in flight, and each baseline file is either absent or whole. Now and then all is asked afresh. A last run
goes through. With `--faults`, that share of the requests meets a status 503 or 429, a closed connection or half a body.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.servers import Body, ChatServer, Messages, Reply, fair_answer  # noqa: E402 - the checkout is on the path only now

PROBE = """
kind: generation
prompt: What would you recommend to {name}, who likes SOMETHING?
axes:
  name: {unmarked: Alex, marked: [Kim, Lou]}
trials: 100
audits:
  refusals: {limit: 0.5, gate: point}
"""
AFRESH_EVERY = 4
QUESTIONS = 600
IN_FLIGHT = 16
"""The default of `--fairness-concurrency`."""


FAULTS = (
    Reply("overloaded", status=503),
    Reply("slow down", status=429, headers={"Retry-After": "0.2"}),
    Reply(broken="reset"),
    Reply(broken="half"),
)


class FaultyAnswers:
    """Answers of a server of which a share is a fault; `given` counts the others."""

    def __init__(self, share: float, seed: int) -> None:
        self._share, self._random = share, random.Random(seed)  # noqa: S311 - nothing secret
        self.given = 0

    def __call__(self, messages: Messages, body: Body) -> str | Reply:
        if self._random.random() < self._share:
            return self._random.choice(FAULTS)
        self.given += 1
        return fair_answer(messages, body)


def main() -> None:
    """Kill, look, print what was seen, and end with 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=30.0, help="most seconds before a kill")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--faults", type=float, default=0.0, help="share of the requests that meet a fault")
    given = parser.parse_args()
    answers = FaultyAnswers(given.faults, given.seed)
    draw = random.Random(given.seed)  # noqa: S311 - nothing secret
    killed = {"controller": 0, "worker": 0, "ended before": 0}
    lost = twice = 0
    with tempfile.TemporaryDirectory() as name, ChatServer(answers, delay=0.1) as server:
        folder = Path(name)
        (folder / "probes").mkdir()
        for thing in ("tea", "chess"):
            (folder / "probes" / f"{thing}.yaml").write_text(PROBE.replace("SOMETHING", thing))
        (folder / "pytest.ini").write_text("[pytest]\n")
        before: dict[str, tuple[str, float]] = {}
        while (number := killed["controller"] + killed["worker"]) < given.kills:
            afresh = number % AFRESH_EVERY == 0 or len(before) == QUESTIONS
            sent, answered, started = server.count, answers.given, time.time()
            run = start(folder, server.url, given.workers, *(["--fairness-fresh"] if afresh else []))
            whom, asking = draw.choice(["controller", "worker"]), draw.random() < 0.8
            # All questions are asked only if they are asked afresh.
            moment = sent + draw.randint(0, 550 if afresh else 120)
            until = time.monotonic() + (given.longest if asking else draw.uniform(0.2, given.longest / 2))
            while time.monotonic() < until and run.poll() is None and not (asking and server.count > moment):
                time.sleep(0.005)
            workers = workers_of(run)
            whom = kill(run, whom)
            killed[whom] += 1
            run.wait(60)
            # Those that were left alone still write what had come.
            while any(map(is_alive, workers)):
                time.sleep(0.05)
            while server.in_flight:
                time.sleep(0.1)
            now = recorded(folder)
            # Asked afresh, a question may have another answer.
            kept = {
                key for key, (text, created) in now.items() if created >= started or before.get(key, (text,))[0] == text
            }
            gone = len(before.keys() - kept)
            new = sum(created >= started for _, created in now.values())
            unrecorded = answers.given - answered - new
            lost += gone + max(0, unrecorded - IN_FLIGHT)
            twice += unrecorded
            baselines = check_baselines(folder)
            print(
                f"kill {number + 1} ({whom}{', afresh' if afresh else ''}): {server.count - sent} sent, "
                f"{answers.given - answered} answered, {new} recorded, {unrecorded} in flight, "
                f"{gone} of {len(before)} gone; {baselines} whole baselines",
                flush=True,
            )
            before = now
        output = start(folder, server.url, given.workers).communicate(timeout=300)[0]
        assert "4 passed" in output, output
        check_baselines(folder)
        final = recorded(folder)
        asked = {json.dumps(body, sort_keys=True) for body in server.bodies}
        print(f"kills: {killed}; answers recorded: {len(final)} of {QUESTIONS}; lost: {lost}")
        print(f"requests: {server.count}, answers {answers.given}, distinct questions {len(asked)}; in flight: {twice}")
        sys.exit(bool(lost) or len(final) != QUESTIONS)


def start(folder: Path, url: str, workers: int, *arguments: str) -> subprocess.Popen[str]:
    """A rebaseline of all probes with so many workers."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", "-n", str(workers)]
    command += ["--fairness-rebaseline", "--fairness-target", "openai:tiny", "--fairness-base-url", url, *arguments]
    return subprocess.Popen(  # noqa: S603 - our own
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def kill(run: subprocess.Popen[str], whom: str) -> str:
    """Kill the controller or one of its workers; what came of it."""
    if run.poll() is not None:
        return "ended before"
    number = run.pid
    if whom == "worker":
        workers = workers_of(run)
        if not workers:
            whom = "controller"
        else:
            number = workers[0]
    try:
        os.kill(number, signal.SIGKILL)
    except ProcessLookupError:
        return "ended before"
    if whom == "worker":
        time.sleep(0.5)
        run.terminate()
    return whom


def workers_of(run: subprocess.Popen[str]) -> list[int]:
    """The process ids of a run's workers."""
    try:
        return [int(pid) for pid in Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that is over but not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def recorded(folder: Path) -> dict[str, tuple[str, float]]:
    """All recorded answers and when they came, by key, after a check of the whole database."""
    path = folder / ".fairness" / "responses.sqlite"
    if not path.exists():
        return {}
    connection = sqlite3.connect(path)
    try:
        (whole,) = connection.execute("PRAGMA integrity_check").fetchone()
        assert whole == "ok", whole
        try:
            rows = connection.execute("SELECT key, response, created FROM responses ORDER BY sequence")
            return {key: (response, created) for key, response, created in rows}
        except sqlite3.OperationalError:
            return {}  # killed before the tables were made
    finally:
        connection.close()


def check_baselines(folder: Path) -> int:
    """How many baselines there are; each of them whole."""
    paths = list((folder / "baselines").glob("*.json"))
    for path in paths:
        assert json.loads(path.read_text())["items"]
        answers = path.with_name(f"{path.stem}.responses.jsonl")
        if answers.exists():
            for line in answers.read_bytes().splitlines():
                json.loads(line)
    return len(paths)


if __name__ == "__main__":
    main()
