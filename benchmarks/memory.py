"""What a run of very many recorded answers, lists of ten titles each, takes of memory and time.

    python -m benchmarks.memory [--answers 10000 100000 1000000]

Each size is recorded, and then asked for and measured, in processes of their own. Both must grow with the number of
answers and no faster. Seconds are processor time.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.replay import item, prepare, record, target
from pytest_fairness.run import Run

MOST_MEBIBYTES = 1024
MOST_GROWTH = 1.5
"""Processor seconds an answer of the largest run against those of the smallest one that takes seconds at all."""
SECONDS_AT_LEAST = 3.0


class Peak(NamedTuple):
    """What one run took."""

    answers: int
    mebibytes: float
    seconds: float


def main() -> None:
    """Measure, print a line a size, and end with 1 if memory or time grow too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--quick", action="store_true", help="small, to see that it works; no goal counts")
    parser.add_argument("--work", choices=("record", "measure"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work, given.folder, given.answers[0])
        return
    peaks = [measured(count) for count in ([320] if given.quick else given.answers)]
    last = peaks[-1]
    timed = [peak for peak in peaks if peak.seconds >= SECONDS_AT_LEAST] or [last]
    growth = (last.seconds / last.answers) / (timed[0].seconds / timed[0].answers)
    print(f"most memory {last.mebibytes:.0f} MiB (at most {MOST_MEBIBYTES})")
    print(f"time an answer grows by {growth:.2f} from {timed[0].answers} to {last.answers} (at most {MOST_GROWTH:g})")
    sys.exit(not given.quick and (last.mebibytes > MOST_MEBIBYTES or growth > MOST_GROWTH))


def measured(count: int) -> Peak:
    """Record so many answers, and measure them in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--folder", folder, "--answers", str(count), "--work"]
        command = [sys.executable, "-m", "benchmarks.memory", *arguments]
        root = Path(__file__).parents[1]
        subprocess.run([*command, "record"], check=True, cwd=root)  # noqa: S603 - our own
        found = subprocess.run(  # noqa: S603 - our own
            [*command, "measure"], check=True, cwd=root, capture_output=True, text=True
        )
    print(found.stdout, end="", flush=True)
    mebibytes, seconds = found.stdout.splitlines()[-1].split("peak")[1].split()[0:3:2]
    return Peak(count, float(mebibytes), float(seconds))


def work(what: str, folder: Path, count: int) -> None:
    """In a process of its own: record, or ask and measure and print the peak."""
    settings, path = prepare(folder, count)
    if what == "record":
        record(settings, path)
        return
    began, before = time.process_time(), peak()
    with Run(settings) as run:
        part = item(path)
        answers = run.answers(part, target(run))
        asked, asking = peak(), time.process_time() - began
        run.measured(part, answers, "nobody")
    seconds = time.process_time() - began
    print(f"{count} answers: {before:.0f} MiB before, {asked:.0f} MiB and {asking:.1f} s when read, ", end="")
    print(f"peak {peak():.0f} MiB, {seconds:.1f} s with measuring")


def peak() -> float:
    """Mebibytes of memory that this process has had at most."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1 << 20 if sys.platform == "darwin" else 1 << 10)


if __name__ == "__main__":
    main()
