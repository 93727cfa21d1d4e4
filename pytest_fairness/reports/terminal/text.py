"""Text for a terminal: numbers, widths, and other people's words made harmless."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

_LEADING = re.compile(r"(?:^|(?<=[\r\v\f\x1c-\x1e\x85\u2028\u2029]))(?:\s|\x1b\[[0-9;]*[A-Za-z])*:(?=:)", re.MULTILINE)
"""GitHub's command at the start of a line, after blanks and colours."""
_MARKED = re.compile(r"##\w*(?=\[)")
"""`##[` of GitHub and Azure Pipelines, `##vso[`, `##teamcity[`."""
_JOINERS = "\u200c\u200d"  # wanted in Persian and Indic words and in emoji, and harmless


ROUNDING = 1e-12
"""What sums of fractions leave where nothing is."""


def number(value: float | None) -> str:
    """A number at 3 significant digits, whole numbers whole; `-` where there is none."""
    if value is None or not math.isfinite(value):
        return "-"
    if abs(value) < ROUNDING:
        return "0"
    return f"{value:.0f}" if value == int(value) or abs(value) >= 999.5 else f"{value:.3g}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural: `1 request`, `1,200 requests`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def age(seconds: float) -> str:
    """Return how old something is, in the largest unit of which there are at least two: `50 s`, `3 h`, `12 days`."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def printable(text: str) -> str:
    """Text on one line, its white space single spaces, that no terminal takes for a command."""
    return escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    r"""Text with control and direction characters shown (`\x1b`), so that they are not sent to a terminal."""
    return "".join(_shown(character) for character in text)


def without_commands(text: str) -> str:
    """Return the text with a space inside whatever the runner of a CI service would obey: `: :error`, `## [error]`."""
    return _MARKED.sub(r"\g<0> ", _LEADING.sub(r"\g<0> ", text))


def _shown(character: str) -> str:
    if character.isprintable() or character in _JOINERS:
        return character
    return " " if character.isspace() else character.encode("unicode_escape").decode("ascii")


def width_of(text: str) -> int:
    """Columns that printable text takes up on a terminal."""
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or character in _JOINERS:
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
