"""Terminal output without workflow commands, which a CI runner would execute, and without control characters.

GitHub's runner executes a line that begins with `::`, with or without blanks before it, and `##[` anywhere in a line.
Azure Pipelines executes `##vso[`, and TeamCity executes `##teamcity[`. Texts of models, servers and probe files reach
the log in many ways (reasons, node ids, assertions, wrapped lines). All of these texts are written to the terminal's
file, so `GuardedFile` takes the place of this file and checks the texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.reports.formatting import without_commands, without_controls

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

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
        """Write several texts."""
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


class TerminalGuard:
    """Hook that replaces the terminal's file by a `GuardedFile` when the session starts."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Replace the terminal's file before the first line is written."""
        reporter: TerminalReporter | None = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and not isinstance(reporter._tw._file, GuardedFile):
            reporter._tw._file = GuardedFile(reporter._tw._file)
