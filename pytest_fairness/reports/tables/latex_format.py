"""Tables as LaTeX for the packages array and booktabs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

from pytest_fairness.reports.formatting import printable

LONG = 40
"""Minimum number of rows of a table that may be broken over several pages."""
WIDTH = 345
"""Width of an article's text in points."""
SIZES = {"footnotesize": 82, "scriptsize": 93}
"""Font sizes, the larger first, with the number of characters on a line of the width `WIDTH`."""
LAYOUTS = (("footnotesize", 3, True), ("scriptsize", 3, True), ("scriptsize", 2, False))
"""Layouts in the order in which they are tried: font size, half the space between two columns in points (`tabcolsep`),
and whether lines are never broken inside intervals."""

_INTERVAL = re.compile(r"(\[[-+\d][^\]]*\])")
_BREAKS = re.compile(r"(?<=[_=\[])(?=[A-Za-z])")
"""Positions inside a name at which a column with line breaks may break the line: `jsd[race=Black]`."""
_HYPHENS = re.compile(r"(?<=[A-Za-z]-)(?=[A-Za-z])")
"""Positions at which LaTeX breaks lines by itself: `Middle-Eastern`."""

_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedbl{}",
        "`": r"\textasciigrave{}",
        "−": "-",
        "²": r"\textsuperscript{2}",
        "₂": r"\textsubscript{2}",
        "η": r"$\eta$",
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)


def text(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows of plain text as a LaTeX table; every heading and cell is escaped.

    The font size and the columns with line breaks are chosen so that the table fits the width of an article's page.
    """
    long = len(rows) >= LONG
    environment = "longtable" if long else "tabular"
    needed = r"\usepackage{array,booktabs,longtable}" if long else r"\usepackage{array,booktabs}"
    cells = list(zip(columns, *rows, strict=True))
    (size, space, keeps), widths = _layout(cells)
    wraps = any(width < max(map(len, column)) for width, column in zip(widths, cells, strict=True))
    # The columns fill the line: characters differ in width, so that columns of their natural width may be too wide.
    scale = max(1.0, _room(size, space, len(cells)) / sum(widths))
    alignments = [
        rf">{{\raggedright\arraybackslash}}p{{{scale * width / SIZES[size]:.3f}\linewidth}}" if wraps else "l"
        for width in widths
    ]
    return "\n".join(
        [
            rf"% Needs {needed} and \usepackage[T1]{{fontenc}}; LuaLaTeX for letters that are not Latin.",
            rf"{{\{size}\setlength{{\tabcolsep}}{{{space}pt}}%",  # the sign keeps the line end from becoming a space
            rf"\begin{{{environment}}}{{@{{}}{''.join(alignments)}@{{}}}}",
            r"\toprule",
            _line(columns, wraps, keeps),
            r"\midrule",
            *([r"\endhead"] if long else []),
            *(_line(row, wraps, keeps) for row in rows),
            r"\bottomrule",
            rf"\end{{{environment}}}}}",
            "",
        ]
    )


def _layout(cells: Sequence[Sequence[str]]) -> tuple[tuple[str, int, bool], list[int]]:
    """Return a layout and the columns' widths in characters.

    The layout is the first of `LAYOUTS` in which the table fits, or else the last. Lines are broken in the widest
    columns, as far as this is needed.
    """
    unwrapped = [max(map(len, column)) for column in cells]
    for layout in LAYOUTS:
        size, space, keeps = layout
        narrowest = [max(_longest_part(cell, keeps) for cell in column) for column in cells]
        # A heading breaks first, so that it makes no column of short cells wide.
        wrapped_headings = [max(_longest_part(heading, keeps), *map(len, column), 0) for heading, *column in cells]
        room = _room(size, space, len(cells))
        fitting = unwrapped if sum(unwrapped) <= room else list(wrapped_headings)
        while sum(fitting) > room and (
            wrappable := [index for index, width in enumerate(fitting) if width > narrowest[index]]
        ):
            fitting[max(wrappable, key=fitting.__getitem__)] -= 1
        if sum(fitting) <= room:
            break
    return layout, fitting


def _room(size: str, space: int, columns: int) -> float:
    """Return the number of characters that fit on a line, without the space between the columns."""
    return SIZES[size] * (1 - 2 * space * (columns - 1) / WIDTH)


def escaped(cell: str) -> str:
    """Return text as one line, with LaTeX's special characters escaped."""
    return printable(cell).translate(_ESCAPES)


def _line(cells: Sequence[str], wraps: bool, keeps_intervals: bool) -> str:
    line = " & ".join(_cell(cell, wraps, keeps_intervals) for cell in cells)
    # A bracket after `\\` would be read as the argument of `\\`.
    return (f"{{}}{line}" if line.startswith(("[", "*")) else line) + r" \\"


def _cell(cell: str, wraps: bool, keeps_intervals: bool) -> str:
    """Return an escaped cell.

    Args:
        cell: the text.
        wraps: whether lines may break inside names and, without `keeps_intervals`, inside intervals.
        keeps_intervals: whether lines are never broken inside intervals.
    """
    if not wraps:
        return escaped(cell)
    return "".join(
        rf"\mbox{{{escaped(part)}}}"
        if keeps_intervals and _INTERVAL.fullmatch(part)
        else r"\allowbreak{}".join(map(escaped, _BREAKS.split(part))) + " " * part.endswith(" ")
        for part in _INTERVAL.split(cell)
    )


def _longest_part(cell: str, keeps_intervals: bool) -> int:
    """Return the length of the longest part of a cell that must stay on one line."""
    parts = [
        [part] if keeps_intervals and _INTERVAL.fullmatch(part) else _HYPHENS.sub(" ", _BREAKS.sub(" ", part)).split()
        for part in _INTERVAL.split(cell)
    ]
    return max(map(len, chain.from_iterable(parts)), default=0)
