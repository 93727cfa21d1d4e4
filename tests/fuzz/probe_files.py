"""Coverage-guided fuzzing of the loader: any file gives a probe, or errors with positions.

Not part of the ordinary tests, which fuzz with Hypothesis: install `atheris` and run it by hand:

    python -m tests.fuzz.probe_files -atheris_runs=100000 -max_len=4000 /tmp/corpus probes

The last folder has the files to start from; new inputs are written to the first. Items, prompts and fingerprints are
computed of every probe that loads.
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
    """Load the content; any exception but `ProbeError` is a finding."""
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
    """Run the fuzzer with libFuzzer's arguments."""
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
