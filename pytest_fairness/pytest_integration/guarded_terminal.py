"""Terminal output that breaks up workflow commands, which a CI runner would find in the log and execute.

GitHub's runner executes a line that begins with `::`, with or without blanks before it, and `##[` anywhere in a line;
Azure Pipelines executes `##vso[`, TeamCity `##teamcity[`. Texts of models, servers and probe files reach the log in
many ways (reasons, node ids, assertions, wrapped lines), so they are checked where all of them pass: at the terminal's
file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.reports.formatting import without_commands

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

WITHOUT_SYMBOLS = {"± ": "+-", "≤ ": "<=", "→ ": "->"} | dict(zip("✗✓·…−“”’", 'x+.~-""\'', strict=True))
"""Text in place of symbols, of the same width, for a terminal whose encoding lacks them."""
KEPT = 200
"""Maximum number of characters of an unfinished line that are kept: a command may be written in several pieces."""


class GuardedFile:
    """Text file that breaks up the commands of CI runners in the text that is written to it.

    Args:
        file: file that receives the text; all other attributes are delegated to it.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._line = ""
        self._replaced = {} if _has_symbols(file) else WITHOUT_SYMBOLS

    def write(self, text: str) -> int:
        """Write a text; insert a space into each command in it, and replace symbols that the terminal lacks."""
        whole = without_commands(self._line + text)
        found = whole[len(self._line) :]
        last = max(whole.rfind("\n"), whole.rfind("\r")) + 1
        # The beginning of a long line has been checked: it is no command.
        self._line = whole[last:] if len(whole) - last <= KEPT else "…" + whole[-KEPT:]
        for symbol, shown in self._replaced.items():
            found = found.replace(symbol, shown)
        self._file.write(found)
        return len(text)

    def write_commands(self, commands: Iterable[str]) -> None:
        """Write workflow commands of this plugin unchanged, each on a line; the runner executes them."""
        self._file.write("".join(f"{command}\n" for command in commands))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _has_symbols(file: Any) -> bool:
    try:
        "".join(WITHOUT_SYMBOLS).encode(getattr(file, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


class TerminalGuard:
    """Hook that replaces the terminal's file by a `GuardedFile` when the session starts."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Replace the terminal's file before the first line is written."""
        reporter: TerminalReporter | None = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and not isinstance(reporter._tw._file, GuardedFile):
            reporter._tw._file = GuardedFile(reporter._tw._file)
