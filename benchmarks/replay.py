"""How much longer a run of 32,000 recorded answers takes than reading the same rows with `sqlite3` and `json`.

    python -m benchmarks.replay [--profile]

The run makes every question of a probe, finds that all are recorded, and takes the responses out of the store: that is
the asking side, of which the ratio is. What it takes to read lists of titles from the responses, to measure them, and
to look the measurement up when nothing has changed, is shown as well. All of it is processor time of one process.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.timing import fastest, profiled
from pytest_fairness import kinds, probes
from pytest_fairness.asking.store import response_key
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Response
from pytest_fairness.run import Run, items_of
from pytest_fairness.run.items import ProbeItem
from pytest_fairness.targets.base import Target

MOST = 8.0

QUESTIONS = """\
kind: recommendation
prompt: Recommend {k} songs in the manner of {entity} to {value}.
neutral: Recommend {k} songs in the manner of {entity}.
entities: {file: singers.csv}
attributes:
  age: [a child, a teenager, a young adult, a parent, a pensioner, a student]
k: 10
trials: 2
neutral_trials: 4
"""
PROBE = QUESTIONS + "audits: {snsr: {}}\n"
ANSWERS = 16
"""Each entity's: six values twice, and four neutral ones."""


async def never(prompt: str) -> str:
    """Everything is recorded, so that nobody is asked."""
    raise AssertionError(prompt)


def main() -> None:
    """Measure, print the ratio, and end with 1 if it is too high."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=32_000)
    parser.add_argument("--rounds", type=int, default=5, help="of which the fastest counts")
    parser.add_argument("--profile", action="store_true", help="show what asking takes")
    parser.add_argument("--quick", action="store_true", help="small, to see that it works; no goal counts")
    given = parser.parse_args()
    count, rounds = (320, 1) if given.quick else (given.answers, given.rounds)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings, path = prepare(folder, count)
        record(settings, path)

        def ask() -> None:
            with Run(settings) as run:
                requests = [prompt.request for prompt in item(path).prompts()]
                assert len(run.engines.ask(target(run), requests)) == count

        def answer() -> None:
            with Run(settings) as run:
                assert len(run.measurer.answers(item(path), target(run))) == count

        def plain() -> None:
            assert len(read(settings.store)) == count

        asking, answering, reading = fastest(rounds, ask, answer, plain, clock=time.process_time)
        if given.profile:
            profiled("asking", ask)
            profiled("asking and reading", answer)
        with Run(settings) as run:
            part = item(path)
            answers = run.measurer.answers(part, target(run))
            if given.profile:
                profiled("measuring", lambda: part.audit.measure(part, answers))
            measuring, again = (
                fastest(1, lambda: run.measurer.measure_answers(part, answers, "nobody"), clock=time.process_time)[0]
                for _ in range(2)
            )
    ratio = asking / reading
    print(f"{count} recorded answers: read plainly {reading:.2f} s, asked for {asking:.2f} s")
    print(f"ratio {ratio:.1f} (at most {MOST:g}); with their lists read {answering:.2f} s, {answering / reading:.1f}")
    print(f"measured once {measuring:.2f} s, looked up {again:.2f} s")
    sys.exit(not given.quick and ratio > MOST)


def prepare(folder: Path, count: int) -> tuple[RunSettings, Path]:
    """A probe with about so many answers, and the settings of its runs."""
    path = folder / "songs.yaml"
    (folder / "singers.csv").write_text("name\n" + "".join(f"Singer {number}\n" for number in range(count // ANSWERS)))
    path.write_text(PROBE)
    return RunSettings(root=folder, store=folder / "responses.sqlite", target_version="1"), path


def item(path: Path) -> ProbeItem:
    """The one item of the probe, loaded anew."""
    (part,) = items_of(probes.load(path, kinds.schemas()))
    return part


def target(run: Run) -> Target:
    """Somebody who is never asked."""
    return run.targets.from_value(never, "nobody")


def record(settings: RunSettings, path: Path) -> None:
    """Write an answer to everything that the probe asks."""
    with Run(settings) as run:
        whom = target(run)

        def record_all() -> None:
            for number, prompt in enumerate(item(path).prompts()):
                titles = "\n".join(f"{rank}. Song {(number * 7 + rank * rank) % 997}" for rank in range(1, 11))
                key = response_key(whom.identity, prompt.request)
                run.store.record(key, prompt.request, whom.identity, Response(titles, "stop", created=time.time()))

        run.store.database.write(record_all)


def read(store: Any) -> list[dict[str, str]]:
    """The plain way: all rows, their JSON read."""
    connection = sqlite3.connect(store)
    found = [json.loads(text) for _, text in connection.execute("SELECT key, response FROM responses")]
    connection.close()
    return found


if __name__ == "__main__":
    main()
