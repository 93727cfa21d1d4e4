"""Processor time of a suite of 500 probe files with 10 items each, when everything is recorded and measured already.

    python -m benchmarks.suites

The run has baselines. Its time is compared with that of as many plain tests in as many files, which is what pytest
itself takes. A second number is the same run with an HTML report.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.timing import fastest, processor_seconds, pytest_command, run
from pytest_fairness import kinds, probes
from pytest_fairness.asking.store import response_key
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Response
from pytest_fairness.run import Run

MOST_SECONDS = 6.0
MOST_SECONDS_HTML = 20.0

PROBE = """\
kind: generation
prompt: Write three sentences about {{person}}, who works in office {number}.
axes:
  person: {{unmarked: Joseph, marked: [Kelly, Asha]}}
trials: 12
audits:
  jsd: {{tolerance: 0.5}}
  marked_words:
  mmd: {{tolerance: 1}}
  svm: {{tolerance: 0.5}}
  refusals: {{tolerance: 0.5}}
"""
TEST = """\
import pytest


@pytest.mark.parametrize("number", range(10))
def test_number(number):
    pass
"""
TARGET = "python:model:answer"
WORDS = (
    "careful",
    "calm",
    "clever",
    "kind",
    "keen",
    "patient",
    "warm",
    "strong",
    "gifted",
    "honest",
    "loyal",
    "lively",
)


def main() -> None:
    """Measure, print the times, and end with 1 if one is too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3, help="of which the fastest counts")
    parser.add_argument("--folder", type=Path, help="where to make the suite, or where an earlier call made it")
    parser.add_argument("--quick", action="store_true", help="small, to see that it works; no goal counts")
    given = parser.parse_args()
    count, rounds = (5, 1) if given.quick else (given.probes, given.rounds)
    with tempfile.TemporaryDirectory() as name:
        folder = given.folder or Path(name)
        if not (folder / "baselines").exists():
            prepare(folder, count)
        count = len(list((folder / "probes").iterdir()))
        plain = ["tests"]
        again = ["probes", "--fairness", "--fairness-replay"]
        html = [*again, "--fairness-report", "report.html"]
        works = [partial(run, folder, pytest_command(*arguments)) for arguments in (plain, again, html)]
        tests, cached, report = fastest(rounds, *works, clock=processor_seconds)
    print(f"{count} probe files with 10 items each, recorded and measured: {cached:.2f} s (at most {MOST_SECONDS:g} s)")
    print(f"with an HTML report {report:.2f} s (at most {MOST_SECONDS_HTML:g} s)")
    print(f"as many plain tests {tests:.2f} s, ratio {cached / tests:.1f}")
    sys.exit(not given.quick and (cached > MOST_SECONDS or report > MOST_SECONDS_HTML))


def prepare(folder: Path, count: int) -> None:
    """Write probes, plain tests and recorded answers; make baselines, and measure everything once."""
    for part in ("probes", "tests"):
        (folder / part).mkdir(parents=True)
    (folder / "pytest.ini").write_text(f"[pytest]\nfairness_target = {TARGET}\nfairness_target_version = 1\n")
    (folder / "model.py").write_text("def answer(prompt):\n    raise AssertionError(prompt)\n")
    store = folder / ".fairness" / "responses.sqlite"
    settings = RunSettings(root=folder, target=TARGET, target_version="1", store=store)
    randomness = random.Random(0)  # noqa: S311 - simulated answers
    with Run(settings) as own:
        sys.path.insert(0, str(folder))
        identity = own.targets.named().identity

        def record_all() -> None:
            for path in sorted((folder / "probes").iterdir()):
                for prompt in probes.load(path, kinds.schemas()).prompts():
                    text = " ".join(randomness.choices(WORDS, k=30))
                    key = response_key(identity, prompt.request)
                    own.store.record(key, prompt.request, identity, Response(text, "stop", created=time.time()))

        for number in range(count):
            (folder / "probes" / f"probe_{number}.yaml").write_text(PROBE.format(number=number))
            (folder / "tests" / f"test_{number}.py").write_text(TEST)
        own.store.database.write(record_all)
    run(folder, pytest_command("probes", "--fairness-rebaseline", "--fairness-replay"))
    run(folder, pytest_command("probes", "--fairness", "--fairness-replay"))


if __name__ == "__main__":
    main()
