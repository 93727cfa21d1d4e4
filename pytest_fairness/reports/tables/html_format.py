"""Tables as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pytest_fairness.reports.formatting import number, printable

SHOWN_ROWS = 60


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return an HTML table of the first `SHOWN_ROWS` rows; every heading and cell is escaped."""
    head = "".join(f"<th>{escape(printable(column))}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:SHOWN_ROWS])
    more = len(rows) - SHOWN_ROWS
    note = f"<p>… and {more:,} more; <code>to_pandas()</code> has all rows.</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _cell(value: object) -> str:
    text = number(value) if isinstance(value, float) else "" if value is None else str(value)
    return f'<td style="text-align: left">{escape(printable(text))}</td>'
