"""Progress line on the terminal, with the number of answers, the answers per second and the remaining time."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import pytest

from pytest_fairness.pytest_integration.guarded_terminal import GuardedFile

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

UPDATE_INTERVAL = 0.25
"""Seconds between two updates of the line."""
RATE_WINDOW = 30.0
"""Seconds over which the rate is measured."""
SHOW_AFTER = 1.0
"""Seconds of waiting after which the line appears."""


class ProgressLine:
    """Progress line below pytest's own line, shown only on a terminal.

    Args:
        config: pytest's configuration; its terminal reporter and capture manager are looked up when needed.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seen: deque[tuple[float, float]] = deque()
        # Reentrant, because a hook may report a test while it reports another test.
        self._drawing = threading.RLock()
        self._visible = False

    @property
    def _reporter(self) -> TerminalReporter | None:
        reporter: TerminalReporter | None = self._config.pluginmanager.get_plugin("terminalreporter")
        return reporter if reporter is not None and reporter.isatty and reporter.verbosity >= 0 else None

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Return a context in which the line is hidden, so that pytest can write its own lines."""
        reporter = self._reporter
        with self._drawing:
            if reporter is not None:
                self._draw(reporter, "")
            yield

    @contextmanager
    def shown(self, counts: Callable[[], Mapping[str, float]]) -> Iterator[None]:
        """Return a context in which the line is shown.

        Args:
            counts: function that returns the numbers of `planned`, `settled`, `reused` and `failed` requests (see
                `Engine.progress`); it is called in another thread.
        """
        reporter = self._reporter
        if reporter is None:
            yield
            return
        over = threading.Event()
        thread = threading.Thread(
            target=self._follow, args=(reporter, counts, over), name="fairness-progress", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _follow(
        self, reporter: TerminalReporter, counts: Callable[[], Mapping[str, float]], over: threading.Event
    ) -> None:
        if over.wait(SHOW_AFTER):
            return
        while not over.wait(UPDATE_INTERVAL):
            now = counts()
            rate = self._rate(now["settled"] - now["reused"])
            with self._drawing:
                # No line is shown after the last request, although measuring may continue.
                self._draw(reporter, text_of(now, rate) if now["settled"] < now["planned"] else "")
        with self._drawing:
            self._draw(reporter, "")

    def _rate(self, done: float) -> float:
        """Return the answers per second over the last `RATE_WINDOW` seconds; `done` counts the answers until now."""
        now = time.monotonic()
        self._seen.append((now, done))
        while len(self._seen) > 2 and (now - self._seen[0][0] > RATE_WINDOW or self._seen[1][1] == 0):
            self._seen.popleft()
        since, before = self._seen[0]
        return (done - before) / (now - since) if now > since else 0.0

    def _draw(self, reporter: TerminalReporter, text: str) -> None:
        """Write the text below pytest's line; an empty text removes the progress line."""
        if not text and not self._visible:
            return
        self._visible = bool(text)
        writer = reporter._tw
        column = max(0, writer.width_of_current_line)
        # Move one line down, then back up to the same column, so that pytest's own line stays unchanged.
        back = "\x1b[1A\r" + (f"\x1b[{column}C" if column else "")
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        with nullcontext() if capture is None else capture.global_and_fixture_disabled():
            # The guarded file would escape the movements of the cursor.
            file = writer._file.unguarded if isinstance(writer._file, GuardedFile) else writer._file
            file.write(f"\n\r\x1b[2K{text[: writer.fullwidth - 1]}{back}")
            file.flush()


class WorkersProgress:
    """Hooks that show the progress of all workers in the controller.

    Args:
        line: the progress line.
        counts: function that returns the numbers of `planned`, `settled`, `reused` and `failed` requests of all
            workers.
    """

    def __init__(self, line: ProgressLine, counts: Callable[[], Mapping[str, float]]) -> None:
        self._line = line
        self._counts = counts

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, bool | None, bool | None]:
        """Show the line while tests run."""
        with self._line.shown(self._counts):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None]:
        """Remove the line while pytest writes the name of a test."""
        with self._line.hidden():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self) -> Generator[None]:
        """Remove the line while pytest writes the outcome of a test."""
        with self._line.hidden():
            return (yield)


def text_of(counts: Mapping[str, float], rate: float) -> str:
    """Return the text of the line: `412 of 2,000 answers, 31.5 a second, 50 s left`."""
    settled, planned, failed = counts["settled"], counts["planned"], counts["failed"]
    text = f"{settled:,} of {planned:,} answers"
    if failed:
        text += f" ({failed:,} failed)"
    if rate > 0:
        text += f", {rate:.1f} a second, {duration((planned - settled) / rate)} left"
    return text


def duration(seconds: float) -> str:
    """Return a duration as text: `50 s`, `4 min` or `2 h 10 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
