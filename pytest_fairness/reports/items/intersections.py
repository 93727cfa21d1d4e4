"""Tables of intersections: the measured value of each cell, and its difference from the value of the reference cell.

A cell is a combination of values of several attributes, such as Black women.

An item that crosses attributes (kinds `counterfactual` and `recommendation`) holds all cells of a table. In probes of
kind `generation`, each cell is an item, whose value is the difference from the cell of the unmarked values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import number, printable, signed
from pytest_fairness.reports.items.report_items import Item, mappings_in, outcome, verdict_word

SIGNIFICANT = 0.05
"""Largest p-value with which a difference gets the marks ▲ or ▼."""
LEGEND = (
    "▲ or ▼: higher or lower than the reference (p ≤ 0.05); ▲▲: by more than the tolerance; ▲▲▲: by more than twice "
    "the tolerance."
)


@dataclass(frozen=True)
class Cell:
    """Cell of a table: its text, and how far the number is from the reference.

    Attributes:
        text: number, difference and marks.
        level: number of marks, from 0 to 3; negative if the number is lower than the reference.
    """

    text: str = ""
    level: int = 0


@dataclass(frozen=True)
class CellTable:
    """Table of the cells of one item, or of the items of one audit.

    Attributes:
        title: what the table shows.
        columns: headings; the first names the attributes of the rows.
        rows: heading and cells of each row.
        failed: whether an item of the table failed or is an error.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    failed: bool


def tables(items: Iterable[Item]) -> list[CellTable]:
    """Return the tables of all items that compare cells, the tables with failures first."""
    cell_tables: list[CellTable] = []
    of_items: defaultdict[tuple[str, ...], list[tuple[tuple[str, ...], Item]]] = defaultdict(list)
    for item in items:
        cell_tables += [_table_of_detail(item, detail) for detail in mappings_in(item["details"].get("intersections"))]
        names = [name for name, value in item["labels"].items() if f"{name}={value}" in item["id"]]
        if len(names) > 1:
            cell = tuple(str(item["labels"][name]) for name in names)
            _, _, target = item["id"].rpartition("]")
            others = (str(value) for name, value in item["labels"].items() if name not in names)
            audit = ", ".join([item["audit"], *others]) + target
            of_items[item["probe"], audit, *names].append((cell, item))
    cell_tables += [_table_of_items(key, cells) for key, cells in of_items.items()]
    return sorted(cell_tables, key=lambda table: not table.failed)


def _table_of_detail(item: Item, detail: Mapping[str, Json]) -> CellTable:
    """Return the table of one item whose details list the cells that it compares."""
    cells: dict[tuple[str, ...], Cell] = {}
    for entry in mappings_in(detail["cells"]):
        gap = entry.get("gap")
        level = _level(gap, entry.get("p_value"), item["tolerance"])
        parts = [number(entry["value"])]
        if gap is not None:
            parts += [signed(gap), _marks(level)]
        elif entry["cell"] == detail["reference"]:
            parts.append("(reference)")
        cells[tuple(entry["cell"])] = Cell(" ".join(filter(None, parts)), level)
    quantity = f", {detail['quantity']}" if detail["quantity"] else ""
    title = f"{item['probe']} {item['id']}{quantity}"
    reference = ", ".join(detail["reference"])
    return _grid(f"{title}: differences from {reference}", detail["attributes"], cells, _is_failed(item))


def _table_of_items(key: tuple[str, ...], items: Sequence[tuple[tuple[str, ...], Item]]) -> CellTable:
    """Return the table of an audit whose items each compare one cell with the unmarked values."""
    probe, audit, *names = key
    cells = {}
    for cell, item in items:
        level = _level(item["value"], item["p_value"], item["tolerance"])
        sign = "" if outcome(item) == "measured" else verdict_word(item).partition(" ")[0]
        cells[cell] = Cell(" ".join(filter(None, [number(item["value"]), _marks(level), sign])), level)
    failed = any(_is_failed(item) for _, item in items)
    return _grid(f"{probe} {audit}: each cell compared with the unmarked values", names, cells, failed)


def _is_failed(item: Item) -> bool:
    return outcome(item) in ("failed", "error")


def _grid(title: str, names: Sequence[str], cells: Mapping[tuple[str, ...], Cell], failed: bool) -> CellTable:
    """Return a table: a column for each value of the last attribute, a row for each combination of the other values."""
    heads = list(dict.fromkeys(cell[:-1] for cell in cells))
    columns = list(dict.fromkeys(cell[-1] for cell in cells))
    return CellTable(
        printable(title),
        (printable(", ".join(names[:-1])), *map(printable, columns)),
        [(printable(", ".join(head)), [cells.get((*head, column), Cell()) for column in columns]) for head in heads],
        failed,
    )


def _level(gap: float | None, p_value: float | None, tolerance: float | None) -> int:
    """Return the level of a gap (see `Cell`): 0 if the gap is not significant, otherwise ±1, ±2 or ±3.

    A gap larger than the tolerance has level ±2; a gap larger than twice the tolerance has level ±3.
    """
    if not gap or p_value is None or p_value > SIGNIFICANT:
        return 0
    size = abs(gap) / tolerance if tolerance else 0.0
    marks = 1 + (size > 1) + (size > 2)
    return marks if gap > 0 else -marks


def _marks(level: int) -> str:
    return "▲" * level or "▼" * -level
