"""Formatting of numbers, escaping of text from models, and layout of text and shell commands in columns."""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence

import wcwidth

from pytest_fairness.records import Json
from pytest_fairness.stats.intervals import ROUNDING

# Formatting of numbers, and escaping of text from models, probes and servers.

_WORKFLOW_COMMAND = re.compile(
    r"(?:^|(?<=[\r\v\f\x1c-\x1e\x85\u2028\u2029]))(?:\s|\x1b\[[0-9;]*[A-Za-z])*:(?=:)", re.MULTILINE
)
"""Pattern of the first colon of a workflow command of GitHub Actions, with blanks and colour codes before it."""
_LOG_COMMAND = re.compile(r"##\w*(?=\[)")
"""Pattern of the start of a log command: `##[` (GitHub, Azure Pipelines), `##vso[` or `##teamcity[`."""
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\x1b(?!\[[0-9;]*[mK])"
)
"""Pattern of the control and direction characters, and of the line separators, that pytest itself does not write."""
JOINERS = "\u200c\u200d"  # Persian and Indic words and emoji need these harmless characters.
LARGE = 1e9
"""Absolute value from which large numbers are written with an exponent."""


def number(value: float | None) -> str:
    """Return the number with 3 significant digits, or from 1,000 up to 10⁹ as a whole number.

    The result is `-` for `None`, infinity and NaN.
    """
    if value is None or not math.isfinite(value):
        return "-"
    if abs(value) < ROUNDING:
        return "0"
    is_whole = abs(value) < LARGE and (value == int(value) or abs(value) >= 999.5)
    return f"{value:.0f}" if is_whole else f"{value:.3g}"


def signed(value: float | None) -> str:
    """Return the number with its sign, such as `+0.02`; 0 has no sign."""
    text = number(value)
    return text if text in ("0", "-") or text.startswith("-") else f"+{text}"


def spread(half_width: float) -> str:
    """Return half the width of an interval with 2 significant digits, or with all before the point: `540`, `0.056`."""
    return f"{half_width:{'.0f' if 99.5 <= half_width < LARGE else '.2g'}}"


def plus_minus(half_width: float | None) -> str:
    """Return half an interval's width to put after a number, as ` ± 0.014`; empty if it is not known."""
    return "" if half_width is None else f" ± {spread(half_width)}"


def with_interval(text: str, interval: Sequence[float | None] | None) -> str:
    """Return a formatted estimate, followed by its interval if there is one: `0.02 [0.01, 0.03]`."""
    return f"{text} [{number(interval[0])}, {number(interval[1])}]" if interval else text


def age(seconds: float) -> str:
    """Return an age in the largest unit that fits at least twice: `50 s`, `3 h`, `12 days`."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def money(cost: float) -> str:
    """Return an amount of money with two decimals; a small amount with two significant digits."""
    return f"{cost:,.2f}" if cost >= 1 or not cost else f"{cost:.2g}" if cost >= 0.0001 else f"{cost:.1e}"


def printable(text: str) -> str:
    """Return the text as one line with single spaces, in which control characters are escaped."""
    return escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    r"""Return the text with control and direction characters as codes (`\x1b`), which have no effect in a terminal."""
    # Most texts need no codes, and checking the whole text takes much less time than checking each character.
    return text if text.isprintable() else "".join(map(_escaped_character, text))


def without_commands(text: str) -> str:
    """Return the text with a space inside each command of CI services (`: :error`), so that no command is executed."""
    return _LOG_COMMAND.sub(r"\g<0> ", _WORKFLOW_COMMAND.sub(r"\g<0> ", text))


def without_controls(text: str) -> str:
    r"""Return a terminal's text, of which colours and line ends stay, with other control characters as in `escaped`."""
    return _CONTROLS.sub(lambda found: _escaped_character(found[0]), text)


def _escaped_character(character: str) -> str:
    if character.isprintable() or character in JOINERS:
        return character
    return " " if character.isspace() else character.encode("unicode_escape").decode("ascii")


# Layout of printable text in terminal columns: padding, cutting, wrapping and tables.

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
    there is room. Names that would then be equal begin, after an ellipsis, shortly before the place where they differ.
    """
    if all(width_of(name) <= width for name in names):
        return list(names)
    shown = [_cut_id(name, width) for name in names]
    for name in {name for name in shown if shown.count(name) > 1}:
        places = [place for place, own in enumerate(shown) if own == name]
        letters = zip(*(names[place] for place in places), strict=False)
        start = next((max(0, at - width // 4) for at, own in enumerate(letters) if len({*own}) > 1), 0)
        for place in places:
            shown[place] = cut("…" * bool(start) + names[place][start:], width)
    return shown


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
    """Return printable text in lines of at most `width` columns, broken between words where possible."""
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
    """Return the parts in lines of at most `width` columns; a part is broken only if it is wider than a line."""
    lines: list[str] = []
    for place, part in enumerate(parts, start=1):
        text = part if place == len(parts) else part + comma
        if lines and width_of(f"{lines[-1]} {text}") <= width:
            lines[-1] = f"{lines[-1]} {text}"
        else:
            lines += wrap(text, width)
    return lines


def text_table(rows: Sequence[Sequence[str]], width: int, *, right: Sequence[int] = ()) -> list[str]:
    """Return rows of printable cells as lines with aligned columns; lines that are too long are cut."""
    columns = [max(width_of(row[place]) for row in rows) for place in range(len(rows[0]))]
    cells = ([pad(cell, columns[place], right=place in right) for place, cell in enumerate(row)] for row in rows)
    return [cut("  ".join(row).rstrip(), width) for row in cells]


# Layout of shell commands in messages and reports, and of reasons that end with a command.

WINDOWS = os.name == "nt"
_PLAIN_ON_WINDOWS = re.compile(r"[\w:./\\=+\[\]-]+")
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
    return " ".join(map(shell_word, command))


def shell_word(word: str, *, windows: bool = WINDOWS) -> str:
    """Return a word of a command, in quotes if its characters mean something to a shell."""
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


# JSON data of a report as numbers, rows and texts.


def as_float(value: Json) -> float | None:
    """Return the value as a float; `None` if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def interval_of(value: Json) -> tuple[float, float] | None:
    """Return the bounds of an interval, or `None` if the value is not a pair of finite numbers."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    low, high = as_float(value[0]), as_float(value[1])
    return None if low is None or high is None else (low, high)


def rows_of(detail: Json) -> list[dict[str, Json]]:
    """Return the rows of a detail by column, the names of a mapping in a column without a name; empty for a value."""
    if isinstance(detail, list):
        return [dict(row) for row in detail] if all(isinstance(row, Mapping) for row in detail) else []
    if not isinstance(detail, Mapping):
        return []
    sided = [(side, rows_of(own)) for side, own in detail.items() if isinstance(own, list)]
    if detail and len(sided) == len(detail) and any(rows for _, rows in sided):
        return [{"side": side, **row} for side, rows in sided for row in rows]
    return [{"": name, **(own if isinstance(own, Mapping) else {"value": own})} for name, own in detail.items()]


def with_arrow(entries: Json) -> Json:
    """Return two entries as `before → after`, also inside a mapping: `sex: Male → Female`."""
    if isinstance(entries, Mapping):
        return "; ".join(f"{name}: {with_arrow(own)}" for name, own in entries.items())
    if isinstance(entries, list):
        return " → ".join(number(part) if isinstance(part, float) else str(part) for part in entries)
    return entries
