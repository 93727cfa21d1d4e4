"""What pytest takes of memory and time for a probe with very many recorded answers, lists of ten titles each.

    python -m benchmarks.memory [--answers 100000 1000000]

Each size is recorded, run without a baseline, made the baseline, and compared with it, each in a process of its own.
Five items measure the answers, three of them all of them. A line an item says what its stages took. The comparison is
with the very same answers, but they are measured anew, as those of a new run would be. Seconds are processor time,
which must grow with the number of answers and no faster.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from benchmarks.replay import ANSWERS, QUESTIONS
from benchmarks.timing import OTHERS_OFF
from pytest_fairness import kinds, probes
from pytest_fairness.asking.store import response_key
from pytest_fairness.options import DEFAULT_STORE, RunSettings
from pytest_fairness.records import Response
from pytest_fairness.run import Run
from pytest_fairness.run.measuring import Measurer
from pytest_fairness.run.results import Baselines

MOST_MEBIBYTES = 1024
"""Of a run without a baseline."""
MOST_GROWTH = 1.5
"""Processor seconds an answer of the largest run against those of the smallest one."""

PROBE = f"""\
{QUESTIONS}
relevant: {{file: relevant.json}}
audits:
  snsr: {{}}
  shortfall: {{}}
  quality: {{}}
  uncertainty: {{repeats: 2, attributes: [age]}}
"""
TITLES = 50_000
RUNS: dict[str, list[str]] = {
    "run": [],
    "rebaseline": ["--fairness-rebaseline"],
    "compare": [],
}
STAGES = (
    (Run, "plan", "planned"),
    (Measurer, "answers", "read"),
    (Measurer, "measure", "measured"),
    (Baselines, "compare", "compared"),
    (Baselines, "new_baseline", "compared"),
)
"""Methods of a run's parts, and what the lines call their stage."""


def main() -> None:
    """Measure, print a line an item, and end with 1 if memory or time grow too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--only", choices=[*RUNS], nargs="+", default=[*RUNS], help="which runs, in this order")
    parser.add_argument("--quick", action="store_true", help="small, to see that it works; no goal counts")
    parser.add_argument("--work", choices=["record", *RUNS], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work == "record":
        record(given.folder, given.answers[0])
        return
    if given.work:
        run(given.folder, given.work)
        return
    sizes = [480] if given.quick else given.answers
    taken = {size: measured(size, given.only) for size in sizes}
    missed = False
    for what in given.only:
        first, last = taken[sizes[0]][what], taken[sizes[-1]][what]
        growth = (last[1] / sizes[-1]) / (first[1] / sizes[0])
        goal = f" (at most {MOST_MEBIBYTES})" if what == "run" else ""
        print(f"{what}: most memory {last[0]:.0f} MiB{goal}; time an answer grows by {growth:.2f} ", end="")
        print(f"from {sizes[0]} to {sizes[-1]} answers (at most {MOST_GROWTH:g})")
        missed |= growth > MOST_GROWTH or (what == "run" and last[0] > MOST_MEBIBYTES)
    sys.exit(missed and not given.quick)


def measured(count: int, runs: list[str]) -> dict[str, tuple[float, float]]:
    """Record so many answers; mebibytes and seconds of each run of them."""
    root = Path(__file__).parents[1]
    taken = {}
    with tempfile.TemporaryDirectory() as folder:
        for what in ("record", *runs):
            command = [sys.executable, "-m", "benchmarks.memory", "--folder", folder, "--answers", str(count)]
            print(f"{count} answers: {what}", flush=True)
            subprocess.run([*command, "--work", what], check=True, cwd=root)  # noqa: S603 - our own
            if what != "record":
                taken[what] = tuple(json.loads((Path(folder) / "taken.json").read_text()))
    return taken


def record(folder: Path, count: int) -> None:
    """Write the probe, and an answer to everything that it asks."""
    draw = random.Random(0)  # noqa: S311 - no secrets
    singers = [f"Singer {number}" for number in range(count // ANSWERS)]
    (folder / "singers.csv").write_text("name\n" + "".join(f"{singer}\n" for singer in singers))
    relevant = {singer: [f"Song {number}" for number in draw.sample(range(TITLES), 5)] for singer in singers}
    (folder / "relevant.json").write_text(json.dumps(relevant))
    (folder / "songs.yaml").write_text(PROBE)
    (folder / "nobody.py").write_text("def answer(prompt):\n    raise AssertionError(prompt)\n")
    (folder / "pytest.ini").write_text("[pytest]\nfairness_target = python:nobody:answer\n")
    sys.path.insert(0, str(folder))
    settings = RunSettings(root=folder, store=folder / DEFAULT_STORE, target="python:nobody:answer")
    with Run(settings) as asking:
        identity = asking.targets.named().identity

        def record_all() -> None:
            places = {singer: place for place, singer in enumerate(singers)}
            for prompt in probes.load(folder / "songs.yaml", kinds.schemas()).prompts():
                # Of a singer's songs some are named again and again, so that lists are alike.
                own = 7 * places[prompt.labels["entity"]]
                titles = [f"Song {(own + number) % TITLES}" for number in draw.sample(range(20), 10)]
                text = "\n".join(f"{rank}. {title}" for rank, title in enumerate(titles, start=1))
                key = response_key(identity, prompt.request)
                asking.store.record(key, prompt.request, identity, Response(text, "stop", created=time.time()))

        asking.store.database.write(record_all)


def run(folder: Path, what: str) -> None:
    """In a process of its own: run pytest, print what each item took, and leave the sums behind."""
    store = folder / DEFAULT_STORE
    with sqlite3.connect(store) as connection:
        # Measured anew, as a run with new answers would have to.
        connection.execute("DELETE FROM measurements")
    connection.close()
    stages = Stages()
    arguments = [str(folder / "songs.yaml"), "--rootdir", str(folder), "-c", str(folder / "pytest.ini")]
    options = ["--fairness", "--fairness-replay", *RUNS[what], "-p", "no:cacheprovider", "-p", "no:terminal"]
    with stages.watched():
        ended = pytest.main([*arguments, *options, *OTHERS_OFF], plugins=[stages])
    if ended not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        sys.exit(f"pytest ended with {ended!r}")
    stages.line("reports, baseline")
    (folder / "taken.json").write_text(json.dumps([peak(), time.process_time() - stages.began]))


class Stages:
    """A plugin of pytest that notes what the stages of each item take."""

    def __init__(self) -> None:
        self.began = self._last = time.process_time()
        self._seconds: dict[str, float] = {}

    def watched(self) -> ExitStack:
        """A context in which the stages of runs are timed."""
        watched = ExitStack()
        for part, name, stage in STAGES:
            watched.enter_context(patch.object(part, name, self._timed(getattr(part, name), stage)))
        return watched

    def _timed(self, method: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            began = time.process_time()
            try:
                return method(*arguments, **named)
            finally:
                self._seconds[stage] = self._seconds.get(stage, 0.0) + time.process_time() - began

        return timed

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """An item is done with."""
        self.line(nodeid.partition("::")[2])

    def line(self, name: str) -> None:
        """Print what was taken since the last line."""
        total, self._last = time.process_time() - self._last, time.process_time()
        parts = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in self._seconds.items())
        print(f"  {name}: {total:.1f} s{f' ({parts})' if parts else ''}, peak so far {peak():.0f} MiB", flush=True)
        self._seconds.clear()


def peak() -> float:
    """Mebibytes of memory that this process has had at most."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1 << 20 if sys.platform == "darwin" else 1 << 10)


if __name__ == "__main__":
    main()
