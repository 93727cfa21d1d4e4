"""Lists of records and sentences: there is nothing to draw of them, but they are what a reader wants to see."""

from __future__ import annotations

from pytest_fairness.records import Json
from pytest_fairness.report.order import Item, mappings
from pytest_fairness.report.pictures.base import Picture, Table


def flips(_item: Item, detail: Json) -> Picture | None:
    """The records whose answer changes when only the attribute is flipped."""
    return _listing(detail, "Records whose answer changes when flipped", "records are answered otherwise when flipped")


def changed_sentences(_item: Item, detail: Json) -> Picture | None:
    """The sentences whose answers became worse since the baseline."""
    return _listing(detail, "Sentences whose answers became worse", "sentences are answered worse than in the baseline")


def _listing(detail: Json, title: str, told: str) -> Picture | None:
    found = mappings(detail)
    if not found:
        return None
    columns = list(dict.fromkeys(column for record in found for column in record))
    heads = [column.replace("_", " ") for column in columns]
    return Picture(
        title, f"{len(found)} {told}.", Table(heads, [[record.get(column) for column in columns] for record in found])
    )
