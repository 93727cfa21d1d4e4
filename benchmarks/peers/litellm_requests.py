"""Requests through LiteLLM: print the version and the CPU milliseconds a request.

    PYTHON litellm_requests.py URL REQUESTS IN_FLIGHT

Runs with a Python of its own, because LiteLLM needs older packages than the plugin.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import sys
import time

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # nothing is downloaded
import litellm

PROMPT = "Recommend ten products, and explain each in two sentences. " * 4


async def ask(url: str, number: int, in_flight: int) -> None:
    """Send the requests, at most `in_flight` at a time."""
    slots = asyncio.Semaphore(in_flight)

    async def one(place: int) -> None:
        async with slots:
            await litellm.acompletion(
                model="openai/model",
                api_base=url,
                api_key="none",
                messages=[{"role": "user", "content": f"{PROMPT}({place})"}],
                temperature=1.0,
                max_tokens=900,
            )

    await asyncio.gather(*map(one, range(number)))


if __name__ == "__main__":
    url, number, in_flight = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    asyncio.run(ask(url, 10, 10))
    started = time.process_time()
    asyncio.run(ask(url, number, in_flight))
    milliseconds = 1000 * (time.process_time() - started) / number
    print(importlib.metadata.version("litellm"), milliseconds)
