"""What the plugin adds to pytest's start where it is not used: one empty test, with and without `-p no:fairness`.

    python benchmarks/startup.py

Both commands take turns, so that a busy machine slows both alike; the medians of their processor times count.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MOST = 1.05

OTHERS_OFF = ("-p", "no:randomly", "-p", "no:hypothesispytest", "-p", "no:xdist", "-p", "no:timeout", "-p", "no:anyio")


def seconds(folder: str, *arguments: str) -> float:
    """Processor time of one run of pytest."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *OTHERS_OFF, *arguments]
    # Bytecode is written, as it is for users: without it every start would compile.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)  # noqa: S603 - our own words
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    """Measure, print the ratio, and end with 1 if it is too high."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25, help="runs of each command")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pytest.ini").write_text("[pytest]\n")
        Path(folder, "test_empty.py").write_text("def test_nothing():\n    pass\n")
        seconds(folder), seconds(folder, "-p", "no:fairness")  # what is read for the first time is read slowly
        with_it, without = [], []
        for _ in range(rounds):
            with_it.append(seconds(folder))
            without.append(seconds(folder, "-p", "no:fairness"))
    present, absent = statistics.median(with_it), statistics.median(without)
    print(f"with the plugin     {present:.3f} s (fastest {min(with_it):.3f} s)")
    print(f"-p no:fairness      {absent:.3f} s (fastest {min(without):.3f} s)")
    print(f"ratio of medians    {present / absent:.3f}")
    print(f"ratio of fastest    {min(with_it) / min(without):.3f}")
    sys.exit(present / absent > MOST)


if __name__ == "__main__":
    main()
