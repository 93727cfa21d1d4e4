"""Merging of identical errors in pytest's summary: an error of several items is shown once, with the number of items.

The counts in pytest's last line, JUnit files and other plugins still have one error for each item.
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING

import pytest

# Private classes, as in pytest's own doctest items: no public class shows an error without a traceback.
from _pytest._code.code import ReprFileLocation, TerminalRepr

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter
    from _pytest.terminal import TerminalReporter


class IdenticalErrors:
    """Hook that merges identical errors in pytest's summary."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> Generator[None]:
        """Show each error message only once while pytest writes its summary."""
        stats = terminalreporter.stats
        errors = stats.get("error", [])
        if errors:
            stats["error"] = merged(errors)
        try:
            return (yield)
        finally:
            if errors:
                stats["error"] = errors


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
