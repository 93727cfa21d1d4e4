"""The records whose answer changed with one attribute."""

from __future__ import annotations

from pytest_fairness.records import Json
from pytest_fairness.report.order import Item, mappings
from pytest_fairness.report.pictures.base import Picture, Table


def table(_item: Item, detail: Json) -> Picture | None:
    """The flipped records, as they are listed; there is nothing to draw of them."""
    found = mappings(detail)
    if not found:
        return None
    columns = list(dict.fromkeys(column for record in found for column in record))
    return Picture(
        "Records whose answer changes when flipped",
        f"{len(found)} records are answered otherwise when only the attribute is flipped.",
        Table([column.replace("_", " ") for column in columns], [[r.get(column) for column in columns] for r in found]),
    )
