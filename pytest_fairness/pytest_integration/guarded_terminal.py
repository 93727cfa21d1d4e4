"""What a run writes to the terminal, kept from being obeyed by a CI runner that reads the log.

GitHub's runner obeys a line that begins with `::`, blanks before it or not, and `##[` anywhere in a line; Azure
Pipelines obeys `##vso[`, TeamCity `##teamcity[`. Texts of models, servers and probe files reach the log in many ways
(reasons, node ids, assertions, wrapped lines), so they are looked at where all of them pass: at the terminal's file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.reports.formatting import without_commands

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

KEPT = 200
"""Characters of an unfinished line that are remembered: a command that is written in pieces is one all the same."""


class GuardedFile:
    """Text file that breaks up the commands of CI runners in what is written to it.

    Args:
        file: where the text goes; everything but writing is its own.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._line = ""

    def write(self, text: str) -> int:
        """Write a text; a command in it gets a space in its middle."""
        whole = without_commands(self._line + text)
        found = whole[len(self._line) :]
        last = max(whole.rfind("\n"), whole.rfind("\r")) + 1
        # Of a long line the beginning is known: it is no command.
        self._line = whole[last:] if len(whole) - last <= KEPT else "…" + whole[-KEPT:]
        self._file.write(found)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class TerminalGuard:
    """Puts a `GuardedFile` in place of the terminal's file, as soon as there is a terminal."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Guard the terminal before its first line."""
        reporter: TerminalReporter | None = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and not isinstance(reporter._tw._file, GuardedFile):
            reporter._tw._file = GuardedFile(reporter._tw._file)
