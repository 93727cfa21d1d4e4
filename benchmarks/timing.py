"""What the benchmarks share: times side by side, the profile of what is left, and files of counts."""

from __future__ import annotations

import cProfile
import json
import os
import pstats
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any

_OTHERS = ("randomly", "hypothesispytest", "xdist", "timeout", "anyio", "faker", "syrupy")
OTHERS_OFF = tuple(word for name in _OTHERS for word in ("-p", f"no:{name}"))


def fastest(rounds: int, *works: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """Seconds of the fastest round of each; all take turns, so that a busy machine slows them alike.

    Args:
        rounds: how many.
        works: what is to be timed.
        clock: `time.process_time` where all of it is done by this process, and others on the machine are not to count.
    """
    seconds = [float("inf")] * len(works)
    for _ in range(rounds):
        for place, work in enumerate(works):
            began = clock()
            work()
            seconds[place] = min(seconds[place], clock() - began)
    return seconds


def processor_seconds() -> float:
    """Processor time of this process and of the processes that it started and that have ended, as a clock."""
    return sum(os.times()[:4])


def pytest_command(*arguments: str) -> list[str]:
    """Pytest without the plugins that others installed."""
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *OTHERS_OFF, *arguments]


def run(folder: Path, command: Sequence[str]) -> str:
    """What a command prints; bytecode is written, as it is for users: without it every start would compile."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)  # noqa: S603 - our own
    if found.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{found.stdout}{found.stderr}")
    return found.stdout


def profiled(name: str, work: Callable[[], Any], lines: int = 12) -> None:
    """Print where the time goes: the functions that take most of it themselves."""
    profile = cProfile.Profile()
    profile.enable()
    work()
    profile.disable()
    found = pstats.Stats(profile)
    # Its entries are made when its constructor has run, which its annotations do not say.
    entries: dict[tuple[str, int, str], tuple[int, int, float, float, Any]] = found.stats  # type: ignore[attr-defined]
    total = sum(entry[2] for entry in entries.values())
    print(f"profile of {name}, share of the time that each function takes itself:")
    for (path, line, function), entry in sorted(entries.items(), key=lambda item: -item[1][2])[:lines]:
        place = function if path == "~" else f"{'/'.join(Path(path).parts[-2:])}:{line} {function}"
        print(f"  {entry[2] / total:5.1%} {entry[0]:>9} calls  {place}")


def append_counts(work: Sequence[Future[list[dict[str, Any]]]], file: IO[str]) -> None:
    """Append the rows of each piece of work to a file as JSON Lines, in order, and show the progress."""
    for number, future in enumerate(work, start=1):
        file.writelines(json.dumps(row, sort_keys=True) + "\n" for row in future.result())
        file.flush()
        print(f"\r{number} of {len(work)}", end="", file=sys.stderr)
