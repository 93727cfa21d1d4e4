"""How much more processor time 1,000 probe files take to be collected than as many plain parametrized tests.

    python -m benchmarks.collection [--profile]

Each of the plain tests stands in a file of its own, as each probe does. How long they take in one file is shown as
well: what is left then is nearly pytest's start alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.timing import fastest, processor_seconds, profiled, pytest_command, run
from pytest_fairness import kinds, probes
from pytest_fairness.run import items_of

MOST = 3.0
MOST_MILLISECONDS = 3.0
"""For one probe file of ten lines: reading, checking, and making its items."""

PROBE = """\
kind: generation
prompt: Write three sentences about {{person}}. (No. {number})
axes:
  person:
    unmarked: Joseph
    marked: [Kelly]
trials: 8
sampling: {{temperature: 0.8, max_tokens: 60}}
audits:
  jsd: {{tolerance: 0.05}}
"""
TEST = """\
import pytest


@pytest.mark.parametrize("number", range({count}))
def test_number(number):
    pass
"""


def main() -> None:
    """Measure, print the ratio, and end with 1 if it is too high."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5, help="of which the fastest counts")
    parser.add_argument("--profile", action="store_true", help="show what reading a probe takes")
    parser.add_argument("--quick", action="store_true", help="small, to see that it works; no goal counts")
    given = parser.parse_args()
    count, rounds = (20, 1) if given.quick else (given.probes, given.rounds)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\nfairness_probes = probes\n")
        for part in ("probes", "files", "one"):
            (folder / part).mkdir()
        paths = [folder / "probes" / f"probe_{number}.yaml" for number in range(count)]
        for number, path in enumerate(paths):
            path.write_text(PROBE.format(number=number))
            (folder / "files" / f"test_{number}.py").write_text(TEST.format(count=1))
        (folder / "one" / "test_all.py").write_text(TEST.format(count=count))
        collect = [
            partial(run, folder, pytest_command("--collect-only", *arguments))
            for arguments in (("--fairness", "probes"), ("files",), ("one",))
        ]
        for work in [] if given.quick else collect:
            work()  # what is read for the first time is read slowly
        probes, files, one = fastest(rounds, *collect, clock=processor_seconds)
        (loading,) = fastest(rounds, lambda: load(paths), clock=processor_seconds)
        if given.profile:
            profiled("reading probes", lambda: load(paths))
    milliseconds = 1000 * loading / count
    print(
        f"{count} probes {probes:.2f} s, as many files with a test {files:.2f} s, as many tests in a file {one:.2f} s"
    )
    print(f"ratio to files {probes / files:.2f} (at most {MOST}), to a file {probes / one:.2f}")
    print(f"reading a probe of ten lines {milliseconds:.2f} ms (at most {MOST_MILLISECONDS})")
    sys.exit(not given.quick and (probes / files > MOST or milliseconds > MOST_MILLISECONDS))


def load(paths: list[Path]) -> None:
    """Read probes and make their items, as collecting does."""
    for path in paths:
        items_of(probes.load(path, kinds.schemas()))


if __name__ == "__main__":
    main()
