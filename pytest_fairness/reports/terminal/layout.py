"""Layout of printable text in terminal columns: padding, cutting, wrapping and tables."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from pytest_fairness.reports.formatting import JOINERS


def width_of(text: str) -> int:
    """Columns that printable text takes up on a terminal."""
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or character in JOINERS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Text filled up with spaces to a width in columns, on its left where `right` is set."""
    spaces = " " * max(0, width - width_of(text))
    return spaces + text if right else text + spaces


def cut(text: str, width: int) -> str:
    """Text of at most `width` columns, an ellipsis in place of what was cut off."""
    if width_of(text) <= width:
        return text
    used, kept = 1, []
    for character in text:
        used += _columns(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"


def wrap(text: str, width: int, *, indent: str = "", hanging: str | None = None, lines: int | None = None) -> list[str]:
    """Printable text in lines of at most `width` columns, broken between words where possible.

    Args:
        text: words divided by spaces.
        width: columns, the indent included.
        indent: put before the first line.
        hanging: put before the others; the indent where not given.
        lines: most lines; the last one then ends in an ellipsis if there would be more.
    """
    hanging = indent if hanging is None else hanging
    result: list[str] = []
    line, words = indent, text.split(" ")
    empty = True
    while words:
        word = words.pop(0)
        joined = line + word if empty else f"{line} {word}"
        if width_of(joined) <= width:
            line, empty = joined, False
        elif empty:
            # A word that is longer than a whole line.
            fitting = cut(word, width - width_of(line) + 1)[:-1] or word[:1]
            result.append(line + fitting)
            line = hanging
            words.insert(0, word[len(fitting) :])
        else:
            result.append(line)
            line, empty = hanging, True
            words.insert(0, word)
    if not empty:
        result.append(line)
    if lines is not None and len(result) > lines:
        result = [*result[: lines - 1], cut(f"{result[lines - 1]} {result[lines].strip()}", width)]
    return result


def table(rows: Sequence[Sequence[str]], width: int, *, right: Sequence[int] = ()) -> list[str]:
    """Rows of printable cells as lines of aligned columns, at most `width` columns wide.

    Args:
        rows: equally long; the head is the first of them.
        width: columns of the terminal.
        right: the columns that are aligned on their right.
    """
    columns = [max(width_of(row[place]) for row in rows) for place in range(len(rows[0]))]
    cells = ([pad(cell, columns[place], right=place in right) for place, cell in enumerate(row)] for row in rows)
    return [cut("  ".join(row).rstrip(), width) for row in cells]
