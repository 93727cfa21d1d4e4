"""What tests of asking share: settings, stores, engines, and questions to put to them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_fairness.asking.claims import RunId
from pytest_fairness.asking.engine import Engine
from pytest_fairness.asking.freshness import EVERY
from pytest_fairness.asking.store import Store
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response, Sampling
from pytest_fairness.targets import Target, open_target

FOREVER = EVERY


def settings_in(folder: Path, base_url: str | None = None, **more: Any) -> RunSettings:
    """A run's settings with everything inside `folder`, and little patience."""
    given = {"concurrency": 8, "timeout": 10.0, "give_up": 10.0, "store": folder / ".fairness" / "responses.sqlite"}
    return RunSettings(root=folder, base_url=base_url, **{**given, **more})


def questions(count: int, **sampling: Any) -> list[Request]:
    """That many different requests."""
    return [Request(f"question {number}", sampling=Sampling(**sampling), trial=number % 3) for number in range(count)]


@contextmanager
def engine_for(
    settings: RunSettings,
    target: Target | str = "openai:model",
    *,
    oldest: float = FOREVER.oldest,
    run: tuple[str, str] | None = None,
) -> Iterator[Engine]:
    """An engine on the settings' store, stopped at the end."""
    opened = open_target(target, settings) if isinstance(target, str) else target
    with Store(settings.store) as store:
        engine = Engine(store, opened, settings, oldest=oldest, owner="test", run=run and RunId(*run))
        try:
            yield engine
        finally:
            engine.stop(grace=0)


def texts(answers: list[Any]) -> list[str]:
    """The texts of answers, all of which must have come."""
    assert all(isinstance(answer, Response) for answer in answers), answers
    return [answer.text for answer in answers]


def wait_until(condition: Any, seconds: float = 10.0) -> None:
    """Wait for something to become true in another thread."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.005)
