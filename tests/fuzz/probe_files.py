"""Probe files that no person would write, found by coverage-guided fuzzing: faults with positions, and nothing else.

Not part of the ordinary tests (which fuzz a little with Hypothesis): needs `pip install atheris`, and runs by hand:

    python -m tests.fuzz.probe_files -atheris_runs=100000 -max_len=4000 /tmp/corpus probes

The folder that is named last holds files to begin with; what is found goes into the first. Every probe that loads is
also taken through everything that follows without asking anybody: its items, prompts and shapes.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["pytest_fairness", "ruamel"]):
    from pytest_fairness import kinds
    from pytest_fairness.errors import ProbeError
    from pytest_fairness.probes import parse
    from pytest_fairness.run import items_of

    SETTINGS = kinds.schemas()

HERE = Path("/nowhere/probes/fuzzed.yaml")
MOST_PROMPTS = 2_000


def check(content: bytes) -> None:
    """Anything but a `ProbeError` is a finding."""
    try:
        probe = parse(content, HERE, SETTINGS)
        parts = items_of(probe, 1)
    except ProbeError as error:
        for line in str(error).split("\n"):
            assert line.isprintable(), line
        return
    for part in parts[:20]:
        part.probe.fingerprint(part.labels)
        assert part.id.isprintable(), part.id
        if part.asks:
            for prompt in islice(part.prompts(), MOST_PROMPTS):
                assert isinstance(prompt.request.prompt, str)


def main() -> None:
    """Fuzz, with libFuzzer's own arguments."""
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
