"""How much longer many requests take than they ideally would: what the engine, the store and the client cost.

    python benchmarks/engine.py

A server in a process of its own answers each request after a fixed time. The ideal is requests x time / in flight.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pytest_fairness.asking.engine import Engine
from pytest_fairness.asking.store.store import Store
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response, Sampling
from pytest_fairness.targets import open_target

MOST = 1.15


def main() -> None:
    """Measure, print the ratio, and end with 1 if it is too high."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--delay", type=float, default=0.5, help="seconds the server takes for each answer")
    given = parser.parse_args()
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "tests.support.servers", "--delay", str(given.delay)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as server,  # noqa: S603 - our own
        tempfile.TemporaryDirectory() as folder,
    ):
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        settings = RunSettings(root=Path(folder), base_url=url, concurrency=given.in_flight)
        sampling = Sampling(temperature=1.0, max_tokens=900)
        prompt = "Recommend ten products, and explain each in two sentences. " * 4
        requests = [Request(f"{prompt}({number})", sampling=sampling) for number in range(given.requests)]
        with Store(Path(folder) / "responses.sqlite") as store:
            started = time.time()
            engine = Engine(store, open_target("openai:model", settings), settings, oldest=0.0, owner="benchmark")
            answers = engine.answers(requests)
            seconds = time.time() - started
            engine.stop()
            assert all(isinstance(answer, Response) for answer in answers)
        with Store(Path(folder) / "responses.sqlite") as store:
            started = time.time()
            engine = Engine(store, open_target("openai:model", settings), settings, oldest=0.0, owner="benchmark")
            assert engine.answers(requests) == answers
            again = time.time() - started
        server.terminate()
    ideal = given.requests * given.delay / given.in_flight
    print(f"{given.requests} requests of {given.delay} s, {given.in_flight} in flight")
    print(f"ideal {ideal:.2f} s, measured {seconds:.2f} s, ratio {seconds / ideal:.3f} (at most {MOST})")
    print(f"the same again, all recorded: {again:.2f} s")
    sys.exit(seconds / ideal > MOST)


if __name__ == "__main__":
    main()
