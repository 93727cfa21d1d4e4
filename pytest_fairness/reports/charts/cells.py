"""Chart of the answers by kind (such as `stereotypical`), for each type of sentence or question."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import FIRST, LINE, QUIET, SECOND, Chart, Table, as_float, names_axis
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.items.report_items import Item

ORDER = ("stereotypical", "anti_stereotypical", "ambiguous", "unknown", "person", "refused", "unparsed")
"""Kinds of answers in the order of the stacked bars; other kinds follow."""
COLOURS = {"stereotypical": FIRST, "ambiguous": QUIET, "unknown": QUIET, "refused": LINE, "unparsed": LINE}


def counts(_item: Item, detail: Json) -> Chart | None:
    """Return a chart with a stacked bar for each type of sentence or question; `None` if the detail has other content.

    The detail has the number of answers of each kind, either for each type of sentence or question or for all answers.
    """
    if not isinstance(detail, Mapping) or not detail:
        return None
    cells = {str(cell): kinds for cell, kinds in detail.items() if isinstance(kinds, Mapping)}
    if not cells:
        cells = {"all": detail}
    elif len(cells) < len(detail):
        return None
    numbers = {
        cell: {str(kind): count for kind, value in kinds.items() if (count := as_float(value)) is not None}
        for cell, kinds in cells.items()
    }
    used = {kind for count in numbers.values() for kind in count}
    kinds = [*(kind for kind in ORDER if kind in used), *sorted(used - {*ORDER})]
    if not kinds or any(len(numbers[cell]) < len(cells[cell]) for cell in cells):
        return None
    plain = {kind: kind.replace("_", "-") for kind in kinds}
    rows = [
        {"name": cell, "kind": plain[kind], "place": place, "amount": numbers[cell].get(kind, 0.0)}
        for cell in numbers
        for place, kind in enumerate(kinds)
    ]
    spec = {
        "data": {"values": rows},
        "encoding": {
            "y": names_axis(rows),
            "x": {
                "field": "amount",
                "type": "quantitative",
                "stack": "zero",
                "axis": {"title": "answers", "tickCount": 6},
            },
            "order": {"field": "place"},
        },
        "layer": [
            {
                "mark": {"type": "bar", "height": {"band": 0.72}, "stroke": "var(--page)", "strokeWidth": 1},
                "encoding": {
                    "color": {
                        "field": "kind",
                        "type": "nominal",
                        "sort": None,
                        "scale": {
                            "domain": list(plain.values()),
                            "range": [COLOURS.get(kind, SECOND) for kind in kinds],
                        },
                        "legend": {"orient": "top", "title": None, "columnPadding": 22, "columns": 3},
                    }
                },
            }
        ],
    }
    totals = {kind: sum(count.get(kind, 0.0) for count in numbers.values()) for kind in kinds}
    return Chart(
        "Kinds of answers, by type of sentence or question",
        "Total: " + ", ".join(f"{number(total)} {plain[kind]}" for kind, total in totals.items()) + ".",
        Table(
            ("type", *plain.values()),
            [[cell, *(count.get(kind, 0.0) for kind in kinds)] for cell, count in numbers.items()],
        ),
        spec,
    )
