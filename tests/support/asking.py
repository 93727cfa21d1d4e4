"""Helpers for tests of requests: settings, engines, requests."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pytest_fairness.asking.claims import ANY_ANSWER, RunId
from pytest_fairness.asking.engine import Engine
from pytest_fairness.asking.limits import DEFAULT_TIMING, Timing
from pytest_fairness.asking.store import Store
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response, Sampling
from pytest_fairness.targets import Target, open_target


def settings_in(folder: Path, base_url: str | None = None, **more: Any) -> RunSettings:
    """Return settings with all files in `folder` and short time limits."""
    given = {"concurrency": 8, "timeout": 10.0, "give_up": 10.0, "store": folder / ".fairness" / "responses.sqlite"}
    return RunSettings(root=folder, base_url=base_url, **{**given, **more})


def ask_once(spec: str, settings: RunSettings, request: Request = Request("hello")) -> Response:  # noqa: B008 - immutable
    """Open the target of a name, send one request once, and close the target."""
    return answer_of(open_target(spec, settings), request)


def answer_of(target: Target, request: Request) -> Response:
    """Open a target, send one request once, and close the target."""

    async def once() -> Response:
        await target.open()
        try:
            return await target.ask(request)
        finally:
            await target.close()

    return asyncio.run(once())


def questions(count: int, **sampling: Any) -> list[Request]:
    """Return `count` different requests."""
    return [Request(f"question {number}", sampling=Sampling(**sampling), trial=number % 3) for number in range(count)]


@contextmanager
def engine_for(
    settings: RunSettings,
    target: Target | str = "openai:model",
    *,
    oldest: float = ANY_ANSWER.oldest,
    run: tuple[str, str] | None = None,
    timing: Timing = DEFAULT_TIMING,
) -> Iterator[Engine]:
    """Yield an engine that uses the store of the settings; stop it at the end."""
    opened = open_target(target, settings) if isinstance(target, str) else target
    with Store(settings.store) as store:
        run_id = run and RunId(*run)
        engine = Engine(store, opened, settings, oldest=oldest, owner="test", run=run_id, timing=timing)
        try:
            yield engine
        finally:
            engine.stop(grace=0)


def texts(answers: list[Any]) -> list[str]:
    """Return the texts of answers; fail if one of them is an error."""
    assert all(isinstance(answer, Response) for answer in answers), answers
    return [answer.text for answer in answers]


def wait_until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until another thread or process makes a condition true; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.005)


def processes_in(folder: Path) -> list[str]:
    """Return the ids of the other processes that run in a folder; an empty list on systems without `/proc`."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):  # the process has ended, or belongs to somebody else
            if place.parent.name != str(os.getpid()) and place.readlink() == folder:
                found.append(place.parent.name)
    return found
