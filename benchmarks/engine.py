"""What the engine, the store and the client cost: CPU time of a request beside the SDK's alone, and the time of a run.

    python -m benchmarks.engine

A server in a process of its own answers each request after a fixed time. The ideal time is requests x time / in flight.
The bare SDK is `openai.AsyncOpenAI` with its aiohttp transport and a semaphore. LiteLLM is measured, too, where it is
installed.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import openai

from pytest_fairness.asking.engine import Engine
from pytest_fairness.asking.store.store import Store
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response, Sampling
from pytest_fairness.targets import open_target

MOST = 1.15
MOST_CPU = 1.2
PROMPT = "Recommend ten products, and explain each in two sentences. " * 4
SAMPLING = {"temperature": 1.0, "max_tokens": 900}


def main() -> None:
    """Measure, print the ratios, and end with 1 if one is too high."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 1000])
    parser.add_argument("--delay", type=float, default=0.5, help="seconds the server takes for each answer")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "tests.support.servers", "--delay", str(given.delay)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as server:  # noqa: S603 - our own
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        missed = [_compare(url, given, in_flight) for in_flight in given.in_flight]
        server.terminate()
    sys.exit(any(missed))


def _compare(url: str, given: argparse.Namespace, in_flight: int) -> bool:
    """Measure each way to ask in turns, print the fastest round of each, and return whether a goal is missed."""
    ways: dict[str, Callable[[], float]] = {
        "engine": lambda: _engine(url, given.requests, in_flight),
        "bare SDK": lambda: asyncio.run(_sdk(url, given.requests, in_flight)),
    }
    if importlib.util.find_spec("litellm"):
        ways["litellm"] = lambda: asyncio.run(_litellm(url, given.requests, in_flight))
    for way in ways.values():
        way()  # imports
    cpu: dict[str, list[float]] = {name: [] for name in ways}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(given.rounds):
        for name, way in ways.items():
            started = time.process_time()
            seconds[name].append(way())
            cpu[name].append(1000 * (time.process_time() - started) / given.requests)
    ideal = given.requests * given.delay / in_flight
    ratio, cpu_ratio = min(seconds["engine"]) / ideal, min(cpu["engine"]) / min(cpu["bare SDK"])
    most = MOST if in_flight <= 64 else 1.5
    print(f"{given.requests} requests of {given.delay} s, {in_flight} in flight")
    for name in ways:
        version = "" if name == "engine" else importlib.metadata.version(name.split()[-1].lower().replace("sdk", "openai"))
        print(f"  {name} {version}: {min(cpu[name]):.2f} ms of CPU a request, {min(seconds[name]):.2f} s")
    print(f"  CPU a request, engine to bare SDK: {cpu_ratio:.2f} (at most {MOST_CPU})")
    print(f"  ideal {ideal:.2f} s, ratio {ratio:.3f} (at most {most} on two idle cores)")
    return ratio > most or cpu_ratio > MOST_CPU


def _engine(url: str, number: int, in_flight: int) -> float:
    """Ask through the engine into a new store, and return the seconds until all answers are there."""
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "responses.sqlite") as store:
        settings = RunSettings(root=Path(folder), base_url=url, concurrency=in_flight)
        requests = [Request(f"{PROMPT}({place})", sampling=Sampling(**SAMPLING)) for place in range(number)]  # type: ignore[arg-type] # numbers of both kinds
        started = time.time()
        engine = Engine(store, open_target("openai:model", settings), settings, oldest=0.0, owner="benchmark")
        answers = engine.answers(requests)
        seconds = time.time() - started
        engine.stop()
        assert all(isinstance(answer, Response) for answer in answers)
    return seconds


async def _sdk(url: str, number: int, in_flight: int) -> float:
    """Ask through the SDK alone, and return the seconds."""
    async with openai.AsyncOpenAI(base_url=url, api_key="none", http_client=openai.DefaultAioHttpClient()) as client:
        return await _gathered(
            lambda messages: client.chat.completions.create(model="model", messages=messages, **SAMPLING),
            number,
            in_flight,
        )


async def _litellm(url: str, number: int, in_flight: int) -> float:
    import litellm

    given = {"model": "openai/model", "api_base": url, "api_key": "none", **SAMPLING}
    return await _gathered(lambda messages: litellm.acompletion(messages=messages, **given), number, in_flight)


async def _gathered(ask: Callable[[Any], Awaitable[Any]], number: int, in_flight: int) -> float:
    """Await all requests, at most `in_flight` at a time, and return the seconds."""
    slots = asyncio.Semaphore(in_flight)

    async def one(place: int) -> None:
        async with slots:
            answer = await ask([{"role": "user", "content": f"{PROMPT}({place})"}])
            assert answer.choices[0].message.content

    started = time.time()
    await asyncio.gather(*map(one, range(number)))
    return time.time() - started


if __name__ == "__main__":
    main()
