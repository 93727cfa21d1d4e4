"""Tables as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a text that spreadsheets evaluate as a formula (OWASP, "CSV Injection")."""


def text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV with a line of headings; `None` becomes an empty cell."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([defused(cell) for cell in row] for row in rows)
    return file.getvalue()


def defused(cell: object) -> object:
    """Return the cell, with an apostrophe before text that a spreadsheet would execute as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell
