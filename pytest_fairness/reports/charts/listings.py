"""Charts that consist of a table only: records, sentences and questions."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import Chart, Table
from pytest_fairness.reports.items.report_items import Item, mappings_in


def flips(_item: Item, detail: Json) -> Chart | None:
    """Return a table of the records whose answer changes with a flip, with the two answers; `None` without records."""
    rows: list[dict[str, Json]] = []
    for record in mappings_in(detail):
        row = dict(record)
        fields, answers = row.get("fields"), row.get("answers")
        if isinstance(fields, Mapping):
            row["fields"] = "; ".join(f"{name}: {_with_arrow(ends)}" for name, ends in fields.items())
        if isinstance(answers, list):
            row["answers"] = _with_arrow(answers)
        # The examples show the full answers.
        row.pop("texts", None)
        rows.append(row)
    return _listing(rows, "Records whose answer changes when the attribute is flipped")


def _with_arrow(ends: Json) -> str:
    return " → ".join(map(str, ends)) if isinstance(ends, list) else str(ends)


def changed_sentences(_item: Item, detail: Json) -> Chart | None:
    """Return a table of the sentences whose answers became worse than in the baseline; `None` without sentences."""
    return _listing(detail, "Sentences whose answers became worse than in the baseline")


def changed_questions(_item: Item, detail: Json) -> Chart | None:
    """Return a table of the questions whose answers became worse than in the baseline; `None` without questions."""
    return _listing(detail, "Questions whose answers became worse than in the baseline")


def _listing(detail: Json, title: str) -> Chart | None:
    records = mappings_in(detail)
    if not records:
        return None
    columns = list(dict.fromkeys(column for record in records for column in record))
    heads = [column.replace("_", " ") for column in columns]
    rows = [[record.get(column) for column in columns] for record in records]
    return Chart(title, f"{title}: {len(records)}.", Table(heads, rows))
