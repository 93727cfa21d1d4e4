"""Layout of printable text in terminal columns: padding, cutting, wrapping and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

import wcwidth

LEAST_PROBE = 4
"""Minimum width of the probe's name in a name `probe::id` that is cut; if there is less room, the id is also cut."""
LEAST_VALUES = 6
"""Minimum width of an id's values with their brackets; if there is less room, the audit's name is cut too."""
_PROBE = re.compile(r"([^\[]*?)(::| )(.*)", re.DOTALL)
"""Probe and item's id in `probe::id` or `probe id`."""
_AXES = re.compile(r"(?<=[\[,])[^\[\]=,]+=")
"""Names of the axes in an item's id."""


def width_of(text: str) -> int:
    """Return the number of terminal columns that printable text occupies."""
    return wcwidth.width(text)


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return the text padded with spaces to a width in columns; `right` aligns it on the right."""
    return wcwidth.rjust(text, width) if right else wcwidth.ljust(text, width)


def cut(text: str, width: int) -> str:
    """Return the text cut to at most `width` columns; an ellipsis replaces the rest."""
    return text if width_of(text) <= width else wcwidth.clip(text, 0, width - 1).rstrip() + "…"


def cut_middle(text: str, width: int) -> str:
    """Return the text cut to at most `width` columns; an ellipsis replaces its middle."""
    total = width_of(text)
    if total <= width:
        return text
    head, tail = (width - 1) // 2, width // 2
    return wcwidth.clip(text, 0, head) + "…" + wcwidth.clip(text, total - tail, total).lstrip()


def cut_ids(names: Sequence[str], width: int) -> list[str]:
    """Return item ids, with or without the probe's name (`probe::id`), each cut to at most `width` columns.

    If one name is too wide, all names are written without their axes (`jsd[race=Black]` becomes `jsd[Black]`). If a
    name is still too wide, its probe's name is cut, and then the middle of its values. The audit's name is kept if
    there is room.
    """
    if all(width_of(name) <= width for name in names):
        return list(names)
    return [_cut_id(name, width) for name in names]


def _cut_id(name: str, width: int) -> str:
    match = _PROBE.match(name)
    probe, separator, item = match.groups() if match else ("", "", name)
    item = _AXES.sub("", item)
    probe = cut(probe, max(LEAST_PROBE, width - width_of(separator + item)))
    room = width - width_of(probe + separator)
    audit, bracket, values = item.partition("[")
    if bracket and width_of(item) > room >= width_of(audit) + LEAST_VALUES:
        item = f"{audit}[{cut_middle(values, room - width_of(audit) - 1)}"
    return f"{probe}{separator}{cut_middle(item, room)}"


def wrap(text: str, width: int, *, indent: str = "", hanging: str | None = None, lines: int | None = None) -> list[str]:
    """Return printable text in lines of at most `width` columns, broken between words where possible.

    Args:
        text: words separated by spaces.
        width: number of columns, including the indent.
        indent: prefix of the first line.
        hanging: prefix of the other lines; by default `indent`.
        lines: maximum number of lines; an ellipsis replaces the rest.
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
            # A word longer than a line is broken.
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


def fill(parts: Sequence[str], width: int, *, comma: str = ",") -> list[str]:
    """Return the parts in lines of at most `width` columns; a part is broken only if it is wider than a line.

    Args:
        parts: phrases.
        width: maximum width of a line.
        comma: text between the parts, before the blank; empty for phrases that end with their punctuation.
    """
    lines: list[str] = []
    for place, part in enumerate(parts, start=1):
        text = part if place == len(parts) else part + comma
        if lines and width_of(f"{lines[-1]} {text}") <= width:
            lines[-1] = f"{lines[-1]} {text}"
        else:
            lines += wrap(text, width)
    return lines


def table(rows: Sequence[Sequence[str]], width: int, *, right: Sequence[int] = ()) -> list[str]:
    """Return rows of printable cells as lines with aligned columns; lines that are too long are cut.

    Args:
        rows: rows of equal length; the first row has the headings.
        width: maximum width of a line.
        right: indexes of the right-aligned columns.
    """
    columns = [max(width_of(row[place]) for row in rows) for place in range(len(rows[0]))]
    cells = ([pad(cell, columns[place], right=place in right) for place, cell in enumerate(row)] for row in rows)
    return [cut("  ".join(row).rstrip(), width) for row in cells]
