"""Lists of records and sentences: there is nothing to draw of them, but they are what a reader wants to see."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import Picture, Table
from pytest_fairness.reports.report_items import Item, mappings


def flips(_item: Item, detail: Json) -> Picture | None:
    """The records whose answer changes when only the attribute is flipped, with what was flipped and both answers."""
    rows: list[dict[str, Json]] = []
    for record in mappings(detail):
        row = dict(record)
        fields, answers = row.get("fields"), row.get("answers")
        if isinstance(fields, Mapping):
            row["fields"] = "; ".join(f"{name}: {_arrow(ends)}" for name, ends in fields.items())
        if isinstance(answers, list):
            row["answers"] = _arrow(answers)
        # The answers in full stand among the examples.
        row.pop("texts", None)
        rows.append(row)
    return _listing(rows, "Records whose answer changes when flipped", "records are answered otherwise when flipped")


def _arrow(ends: Json) -> str:
    return " → ".join(map(str, ends)) if isinstance(ends, list) else str(ends)


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
