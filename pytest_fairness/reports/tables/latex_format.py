"""Tables as LaTeX for the packages array and booktabs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

from pytest_fairness.reports.formatting import printable

LONG = 40
"""Minimum number of rows of a table that may be broken over several pages."""
SIZES = {"footnotesize": 84, "scriptsize": 96}
"""Font sizes, the larger first, with the number of characters on a line of 345 points, the width of an article."""
SEPARATION = 1.5
"""Width between two columns in characters: `\\tabcolsep` of 3 points on either side."""

_INTERVAL = re.compile(r"(\[[-+\d][^\]]*\])")
_BREAKS = re.compile(r"(?<=[_=\[])(?=[A-Za-z])")
"""Positions inside a name at which a column with line breaks may break the line: `jsd[race=Black]`."""

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
    size, widths = _layout(cells)
    wrapped = [width < max(map(len, column)) for width, column in zip(widths, cells, strict=True)]
    alignments = [
        rf">{{\raggedright\arraybackslash}}p{{{width / SIZES[size]:.3f}\linewidth}}" if wraps else "l"
        for width, wraps in zip(widths, wrapped, strict=True)
    ]
    return "\n".join(
        [
            rf"% Needs {needed} and \usepackage[T1]{{fontenc}}; LuaLaTeX for letters that are not Latin.",
            rf"{{\{size}\setlength{{\tabcolsep}}{{3pt}}",
            rf"\begin{{{environment}}}{{{''.join(alignments)}}}",
            r"\toprule",
            _line(columns, wrapped),
            r"\midrule",
            *([r"\endhead"] if long else []),
            *(_line(row, wrapped) for row in rows),
            r"\bottomrule",
            rf"\end{{{environment}}}}}",
            "",
        ]
    )


def _layout(cells: Sequence[Sequence[str]]) -> tuple[str, list[int]]:
    """Return the font size of a table and the widths of its columns in characters; the widest columns are wrapped."""
    narrowest = [max(map(_longest_part, column)) for column in cells]
    whole = [max(map(len, column)) for column in cells]
    # A heading breaks first, so that it makes no column of short cells wide.
    below = [max(_longest_part(heading), *map(len, column), 0) for heading, *column in cells]
    for size in SIZES:
        room = SIZES[size] - SEPARATION * len(cells)
        fitting = whole if sum(whole) <= room else list(below)
        while sum(fitting) > room and (
            wrappable := [index for index, width in enumerate(fitting) if width > narrowest[index]]
        ):
            fitting[max(wrappable, key=fitting.__getitem__)] -= 1
        if sum(fitting) <= room:
            break
    return size, fitting


def escaped(cell: str) -> str:
    """Return text as one line, with LaTeX's special characters escaped."""
    return printable(cell).translate(_ESCAPES)


def _line(cells: Sequence[str], wrapped: Sequence[bool]) -> str:
    line = " & ".join(map(_cell, cells, wrapped))
    # A bracket after `\\` would be read as the argument of `\\`.
    return (f"{{}}{line}" if line.startswith(("[", "*")) else line) + r" \\"


def _cell(cell: str, wraps: bool) -> str:
    """Return an escaped cell; in a column with line breaks, lines break inside names but never inside intervals."""
    if not wraps:
        return escaped(cell)
    return "".join(
        rf"\mbox{{{escaped(part)}}}"
        if _INTERVAL.fullmatch(part)
        else r"\allowbreak{}".join(map(escaped, _BREAKS.split(part))) + " " * part.endswith(" ")
        for part in _INTERVAL.split(cell)
    )


def _longest_part(cell: str) -> int:
    """Return the length of the longest part of a cell that no line break divides."""
    parts = [[part] if _INTERVAL.fullmatch(part) else _BREAKS.sub(" ", part).split() for part in _INTERVAL.split(cell)]
    return max(map(len, chain.from_iterable(parts)), default=0)
