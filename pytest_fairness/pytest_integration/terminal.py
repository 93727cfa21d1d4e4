"""Terminal output of a run: progress line, guarded output, merged errors."""

from __future__ import annotations

import copy
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

# Private classes, as in pytest's own doctest items: no public class shows an error without a traceback.
from _pytest._code.code import ReprFileLocation, TerminalRepr

from pytest_fairness.reports.formatting import without_commands, without_controls

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter
    from _pytest.terminal import TerminalReporter


# Progress line on the terminal, with the number of answers, the answers per second and the remaining time.

UPDATE_INTERVAL = 0.25
"""Seconds between two updates of the line."""
RATE_WINDOW = 30.0
"""Seconds over which the rate is measured."""
SHOW_AFTER = 1.0
"""Seconds of waiting after which the line appears."""


class ProgressLine:
    """Progress line below pytest's own line, shown only on a terminal."""

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
        """Return a context in which the line is shown."""
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


# Terminal output without workflow commands, which a CI runner would execute, and without control characters.
#
# GitHub's runner executes a line that begins with `::`, with or without blanks before it, and `##[` anywhere in a
# line. Azure Pipelines executes `##vso[`, and TeamCity executes `##teamcity[`. Texts of models, servers and probe
# files reach the log in many ways (reasons, node ids, assertions, wrapped lines). All of these texts are written to
# the terminal's file, so `GuardedFile` takes the place of this file and checks the texts.

WITHOUT_SYMBOLS = {"± ": "+-", "≤ ": "<=", "→ ": "->"} | dict(zip("✗✓·…−“”’▲▼", 'x+.~-""\'^v', strict=True))
"""Replacement of the same width for each symbol, for a terminal whose encoding lacks the symbols."""
KEPT = 200
"""Maximum number of characters of an unfinished line that are kept, because a command may be written in pieces."""


class GuardedFile:
    """Text file that breaks up the commands of CI runners in the text that is written to it.

    Args:
        file: file that receives the text; all other attributes are delegated to it.

    Attributes:
        unguarded: the file, for this plugin's own control characters and commands.
    """

    def __init__(self, file: Any) -> None:
        self._file = self.unguarded = file
        self._line = ""
        self._replaced = {} if _can_write_symbols(file) else WITHOUT_SYMBOLS

    def write(self, text: str) -> int:
        """Write a text with a space in each command of a CI runner, such as `::error`, so that no command is executed.

        Symbols that the terminal lacks are replaced; control and direction characters are escaped. Return the length of
        the given text, as files do.
        """
        guarded = without_commands(self._line + text)
        written = guarded[len(self._line) :]
        line_start = max(guarded.rfind("\n"), guarded.rfind("\r")) + 1
        # The beginning of a long line has been checked: it is no command.
        self._line = guarded[line_start:] if len(guarded) - line_start <= KEPT else "…" + guarded[-KEPT:]
        for symbol, replacement in self._replaced.items():
            written = written.replace(symbol, replacement)
        self._file.write(without_controls(written))
        return len(text)

    def write_commands(self, commands: Iterable[str]) -> None:
        """Write this plugin's own workflow commands unchanged, one per line, so that the runner executes them."""
        self._file.write("".join(f"{command}\n" for command in commands))

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _can_write_symbols(file: Any) -> bool:
    try:
        "".join(WITHOUT_SYMBOLS).encode(getattr(file, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


# Merging of identical errors in pytest's summary: an error of several items is shown once, with the number of items.
#
# The counts in pytest's last line, JUnit files and other plugins still have one error for each item.


def merged(reports: Iterable[pytest.TestReport]) -> list[pytest.TestReport]:
    """Return the reports; reports with the same error of this plugin are merged into one."""
    by_error: dict[object, list[pytest.TestReport]] = {}
    for report in reports:
        by_error.setdefault(getattr(report, "fairness_error", None) or id(report), []).append(report)
    return [same[0] if len(same) == 1 else _counted(same[0], len(same)) for same in by_error.values()]


def _counted(report: pytest.TestReport, number: int) -> pytest.TestReport:
    first = copy.copy(report)
    crash = getattr(report.longrepr, "reprcrash", None)
    message = f"and {number - 1} more: {vars(report)['fairness_error']}"
    path, line = (crash.path, crash.lineno) if crash else (report.location[0], (report.location[1] or 0) + 1)
    first.longrepr = Message(message, ReprFileLocation(path, line, " ".join(message.split())))
    return first


class Message(TerminalRepr):
    """Message of an error with the file and line that pytest's short summary shows."""

    def __init__(self, message: str, reprcrash: ReprFileLocation) -> None:
        self._message, self.reprcrash = message, reprcrash

    def toterminal(self, tw: TerminalWriter) -> None:
        """Write the message in red; called by pytest."""
        for line in self._message.splitlines():
            tw.line(line, red=True)
