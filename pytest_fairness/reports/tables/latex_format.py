"""Tables as LaTeX for the package booktabs."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_fairness.reports.formatting import printable

LONG = 40
"""Minimum number of rows of a table that may be broken over several pages."""
WIDE, WRAPPED = 30, "p{3.5cm}"
"""Maximum number of characters of cells in a column without line breaks, and alignment of columns with line breaks."""

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
    """Return rows of plain text as a LaTeX table; every heading and cell is escaped."""
    long = len(rows) >= LONG
    environment = "longtable" if long else "tabular"
    needed = r"\usepackage{booktabs,longtable}" if long else r"\usepackage{booktabs}"
    return "\n".join(
        [
            rf"% Needs {needed} and \usepackage[T1]{{fontenc}}; LuaLaTeX for letters that are not Latin.",
            rf"\begin{{{environment}}}{{{''.join(map(_alignment, zip(columns, *rows, strict=True)))}}}",
            r"\toprule",
            _line(columns),
            r"\midrule",
            *([r"\endhead"] if long else []),
            *map(_line, rows),
            r"\bottomrule",
            rf"\end{{{environment}}}",
            "",
        ]
    )


def _alignment(cells: Sequence[str]) -> str:
    """Return the LaTeX alignment of a column, which allows line breaks if a cell is long."""
    return "l" if max(map(len, cells)) <= WIDE else WRAPPED


def escaped(cell: str) -> str:
    """Return text as one line, with LaTeX's special characters escaped."""
    return printable(cell).translate(_ESCAPES)


def _line(cells: Sequence[str]) -> str:
    # A bracket after `\\` would be read as the argument of `\\`.
    line = " & ".join(map(escaped, cells))
    return (f"{{}}{line}" if line.startswith(("[", "*")) else line) + r" \\"
