"""How much longer the embedded model takes through the engine, the store and HTTP than by the bare runner.

    python -m benchmarks.local

Both load the model, and answer the same prompts with the same settings, as many at once. They take turns.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from pytest_fairness.asking.engine import Engine
from pytest_fairness.asking.store import Store
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response, Sampling
from pytest_fairness.targets import local, open_target
from pytest_fairness.targets.local import CONTEXT, QUIET, SLOTS

MOST = 1.15
SUBJECTS = (
    "a lighthouse",
    "a market",
    "a train ride",
    "a thunderstorm",
    "a bakery",
    "a long winter",
    "a river",
    "a zoo",
)


def main() -> None:
    """Measure, print the ratio, and end with 1 if it is too high."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=32, help="of each answer, at most")
    parser.add_argument("--rounds", type=int, default=3, help="of which the fastest counts")
    parser.add_argument("--quick", action="store_true", help="small, to see that it works; no goal counts")
    given = parser.parse_args()
    count, tokens, rounds = (8, 4, 1) if given.quick else (given.requests, given.tokens, given.rounds)
    # As the package itself has it, for both, as it is read once in a process.
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    model = local.embedded_model(sys.stderr)
    requests = [
        Request(
            f"Write a story about {SUBJECTS[number % len(SUBJECTS)]}.",
            sampling=Sampling(temperature=0.8, max_tokens=tokens),
            trial=number,
        )
        for number in range(count)
    ]
    times: dict[str, list[float]] = {"bare": [], "ours": []}
    written: dict[str, int] = {}
    works = {"bare": partial(bare, model, requests), "ours": partial(ours, requests)}
    for _ in range(rounds):
        for name, work in works.items():
            began = time.perf_counter()
            written[name] = work()
            times[name].append(time.perf_counter() - began)
    best = {name: min(seconds) for name, seconds in times.items()}
    for name, seconds in best.items():
        print(
            f"{name}: {count} answers, {written[name]} tokens, {seconds:.2f} s, {written[name] / seconds:.0f} a second"
        )
    # A token more or less is chance: what counts is the time that each takes.
    ratio = (best["ours"] / written["ours"]) / (best["bare"] / written["bare"])
    print(f"ratio {ratio:.3f} (at most {MOST})")
    sys.exit(not given.quick and ratio > MOST)


def bare(model: Path, requests: list[Request]) -> int:
    """Tokens that the runner's own server writes, asked from as many threads as it has slots."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.verbosity = QUIET
    parameters.model.path = str(model)
    parameters.n_parallel = SLOTS
    parameters.n_ctx = CONTEXT * SLOTS
    parameters.cpuparams.n_threads = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    )
    server: Any = xllamacpp.Server(parameters)

    def ask(request: Request) -> int:
        body = {"messages": [{"role": "user", "content": request.prompt}], "seed": request.trial}
        found = server.handle_chat_completions({**body, **request.sampling.to_json()})
        return int(found["usage"]["completion_tokens"])

    with ThreadPoolExecutor(SLOTS) as threads:
        return sum(threads.map(ask, requests))


def ours(requests: list[Request]) -> int:
    """Tokens that the same model writes when the engine asks for them, and records every answer."""
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "responses.sqlite") as store:
        settings = RunSettings(root=Path(folder))
        engine = Engine(store, open_target("local", settings), settings, oldest=0.0, owner="benchmark")
        answers = engine.answers(requests)
        engine.stop()
    return sum(answer.completion_tokens or 0 for answer in answers if isinstance(answer, Response))


if __name__ == "__main__":
    main()
