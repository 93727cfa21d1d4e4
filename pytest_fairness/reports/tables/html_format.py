"""Tables as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pytest_fairness.reports.formatting import number, printable

SHOWN_ROWS = 60


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return an HTML table of the first rows; every heading and cell is escaped."""
    head = "".join(f"<th>{escape(printable(column))}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:SHOWN_ROWS])
    more = len(rows) - SHOWN_ROWS
    note = f"<p>… and {more:,} more rows; <code>to_pandas()</code> has all.</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _cell(value: object) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int | float):
        return f'<td style="text-align: right">{number(value)}</td>'
    return f'<td style="text-align: left">{escape(printable(str(value)))}</td>'
