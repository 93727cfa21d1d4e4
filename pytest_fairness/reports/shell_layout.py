"""Layout of shell commands in messages and reports, and of reasons that end with a command."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence

from pytest_fairness.reports.formatting import escaped, printable
from pytest_fairness.reports.text_layout import width_of, wrap

WINDOWS = os.name == "nt"
_PLAIN_ON_WINDOWS = re.compile(r"[\w:./\\=+\[\]-]+")
PLACEHOLDER = "..."
"""Placeholder in a printed command for the reason of an acceptance; if a user leaves it, no reason is stored."""

_TRAILING_COMMAND = re.compile(r": (?P<command>(?:pytest --fairness-rebaseline|python -m pytest_fairness) .*)$")


def shell_lines(command: Sequence[str], width: int) -> list[str]:
    """Return the command in lines, broken between words at `width` columns; a backslash ends each line but the last.

    On Windows, whose shells continue lines in different ways, the command is one line.
    """
    if WINDOWS:
        return [escaped(shell_line(command))]
    lines: list[str] = []
    for word in (escaped(shell_word(word)) for word in command):
        longer = f"{lines[-1]} {word}" if lines else word
        # Two columns for the backslash.
        if not lines or width_of(longer) <= width - 2:
            lines[-1:] = [longer]
        else:
            lines.append(f"  {word}")
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def shell_line(command: Sequence[str]) -> str:
    """Return the command on one line."""
    return " ".join(map(shell_word, command))


def shell_word(word: str, *, windows: bool = WINDOWS) -> str:
    """Return a word of a command, in quotes if its characters mean something to a shell."""
    if word == PLACEHOLDER:
        return f'"{word}"'  # so that the user quotes the reason, too
    if not windows:
        return shlex.quote(word)
    # In cmd, single quotes are ordinary characters.
    return word if _PLAIN_ON_WINDOWS.fullmatch(word) else '"{}"'.format(word.replace('"', r"\""))


def reason_lines(reason: str, width: int) -> list[str]:
    """Return a verdict's reason in lines of at most `width` columns; a command at its end is not wrapped."""
    text = printable(reason)
    match = _TRAILING_COMMAND.search(text)
    if match is None:
        return wrap(text, width, hanging="  ")
    return [*wrap(text[: match.start() + 1], width, hanging="  "), match["command"]]
