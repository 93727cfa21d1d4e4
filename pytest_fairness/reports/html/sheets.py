"""Tables of the HTML report, and the details of an item as values and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import Table
from pytest_fairness.reports.html import filters
from pytest_fairness.reports.items.report_items import mappings_in

MAX_ROWS = 200
"""Maximum number of rows of a table; the JSON report has all rows."""


@dataclass(frozen=True)
class Sheet:
    """Table with its title; `left_out` is the number of further rows, which only the JSON report has."""

    title: str
    table: Table
    left_out: int = 0


def sheet_of(title: str, table: Table) -> Sheet:
    """Return the first `MAX_ROWS` rows of the table, with its title."""
    left_out = max(0, len(table.rows) - MAX_ROWS)
    columns = [filters.plain(column) for column in table.columns]
    return Sheet(title, Table(columns, table.rows[:MAX_ROWS]), left_out)


def facts_and_sheets(details: Mapping[str, Json]) -> tuple[dict[str, Json], list[Sheet]]:
    """Return the details in two parts: plain values by name, and a table of each mapping or list of mappings."""
    facts: dict[str, Json] = {}
    sheets: list[Sheet] = []
    for name, value in details.items():
        title = filters.plain(name)
        if isinstance(value, Mapping):
            if value:
                sheets.append(sheet_of(title, _table_of_mapping(value)))
        elif rows := mappings_in(value):
            columns = _columns(rows)
            sheets.append(sheet_of(title, Table(columns, [[row.get(column) for column in columns] for row in rows])))
        elif not (isinstance(value, list) and not value):
            facts[title] = value
    return facts, sheets


def _table_of_mapping(value: Mapping[str, Json]) -> Table:
    if not all(isinstance(part, Mapping) for part in value.values()):
        return Table(("", "value"), [[name, part] for name, part in value.items()])
    columns = _columns(value.values())
    return Table(("", *columns), [[name, *(part.get(column) for column in columns)] for name, part in value.items()])


def _columns(rows: Iterable[Mapping[str, Json]]) -> list[str]:
    return list(dict.fromkeys(column for row in rows for column in row))
