"""What the engine, the store and the client cost: CPU time of a request beside the SDK's alone, and the time of a run.

    python -m benchmarks.engine

A server in a process of its own answers each request after a fixed time. The ideal time is requests x time / in flight.
The bare SDK is `openai.AsyncOpenAI` with its aiohttp transport and a semaphore. `--litellm PYTHON` also measures
LiteLLM, with the Python of a virtual environment of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import openai

from benchmarks.timing import fastest
from pytest_fairness.asking.engine import Engine
from pytest_fairness.asking.store import Store
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response, Sampling
from pytest_fairness.targets import open_target

MOST, MOST_OF_MANY = 1.15, 1.5
MOST_CPU = 1.2
PROMPT = "Recommend ten products, and explain each in two sentences. " * 4


def main() -> None:
    """Measure, print the ratios, and end with 1 if one is too high."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, help="default: 2,000, and at least ten for each in flight")
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 1000])
    parser.add_argument("--delay", type=float, default=0.5, help="seconds the server takes for each answer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--litellm", metavar="PYTHON", help="a Python with LiteLLM")
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
    """Measure engine and SDK in turns, print the fastest round of each, and return whether a goal is missed."""
    number = given.requests or max(2000, 10 * in_flight)
    seconds: list[float] = []
    engine_cpu, sdk_cpu = fastest(
        given.rounds,
        lambda: seconds.append(_engine(url, number, in_flight)),
        lambda: asyncio.run(_sdk(url, number, in_flight)),
        clock=time.process_time,
    )
    ideal, most = number * given.delay / in_flight, MOST if in_flight <= 64 else MOST_OF_MANY
    ratio, cpu_ratio = min(seconds) / ideal, engine_cpu / sdk_cpu
    print(f"{number} requests of {given.delay} s, {in_flight} in flight, CPU milliseconds a request:")
    print(f"  engine {1000 * engine_cpu / number:.2f}")
    sdk = f"openai {openai.__version__}"
    print(f"  {sdk} {1000 * sdk_cpu / number:.2f}, engine to SDK {cpu_ratio:.2f} (at most {MOST_CPU})")
    if given.litellm:
        script = str(Path(__file__).parent / "peers" / "litellm_requests.py")
        command = [given.litellm, script, url, str(number), str(in_flight)]
        found = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - as the user says
        version, milliseconds = found.stdout.splitlines()[-1].split()
        print(f"  litellm {version} {float(milliseconds):.2f}")
    print(f"  ideal {ideal:.2f} s, measured {min(seconds):.2f} s, ratio {ratio:.3f} (at most {most})")
    return ratio > most or cpu_ratio > MOST_CPU


def _engine(url: str, number: int, in_flight: int) -> float:
    """Ask through the engine into a new store, and return the seconds until all answers are there."""
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "responses.sqlite") as store:
        settings = RunSettings(root=Path(folder), base_url=url, concurrency=in_flight)
        sampling = Sampling(temperature=1.0, max_tokens=900)
        requests = [Request(f"{PROMPT}({place})", sampling=sampling) for place in range(number)]
        started = time.time()
        engine = Engine(store, open_target("openai:model", settings), settings, oldest=0.0, owner="benchmark")
        answers = engine.answers(requests)
        seconds = time.time() - started
        engine.stop()
        assert all(isinstance(answer, Response) for answer in answers)
    return seconds


async def _sdk(url: str, number: int, in_flight: int) -> None:
    """Send the same requests with the SDK alone."""
    slots = asyncio.Semaphore(in_flight)
    async with openai.AsyncOpenAI(base_url=url, api_key="none", http_client=openai.DefaultAioHttpClient()) as client:

        async def one(place: int) -> None:
            async with slots:
                await client.chat.completions.create(
                    model="model",
                    messages=[{"role": "user", "content": f"{PROMPT}({place})"}],
                    temperature=1.0,
                    max_tokens=900,
                )

        await asyncio.gather(*map(one, range(number)))


if __name__ == "__main__":
    main()
