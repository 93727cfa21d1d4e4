"""Chart of the distribution of answers that are numbers, by group."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import FIRST, QUIET, SECOND, Chart, Table, as_float
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.items.report_items import Item

HEIGHT = 200
"""Height of the chart in pixels before scaling."""
COLOURS = (FIRST, SECOND)
DASHES: tuple[list[int], list[int]] = ([], [6, 3])
"""Dashes of the lines for the two compared groups, in the order of `COLOURS`; lines for other groups are grey."""


def by_group(item: Item, detail: Json) -> Chart | None:
    """Return a chart with a line of quantiles for each group; where two lines lie apart, the groups differ.

    The result is `None` if a group lacks quantiles, or if the groups have different numbers of quantiles.

    Args:
        item: item of the report document.
        detail: by group, the quantiles of its numbers at equally spaced probabilities from 0 to 1.
    """
    if not isinstance(detail, Mapping) or not detail:
        return None
    groups = {
        str(name): [as_float(value) for value in values] for name, values in detail.items() if isinstance(values, list)
    }
    sizes = {len(values) for values in groups.values()}
    if len(groups) < len(detail) or len(sizes) != 1 or min(sizes) < 2 or None in chain.from_iterable(groups.values()):
        return None
    compared = [str(name) for name in item["details"].get("values", [])][:2]
    order = [*(name for name in compared if name in groups), *(name for name in groups if name not in compared)]
    shares = [place / (min(sizes) - 1) for place in range(min(sizes))]
    rows = [
        {"group": name, "share": share, "number": value}
        for name in order
        for share, value in zip(shares, groups[name], strict=True)
    ]
    unit = str(item["details"].get("unit") or "number")
    others = len(order) - len(compared)
    legend = {"orient": "top", "title": None, "columnPadding": 22, "columns": 3, "symbolType": "stroke"}
    by_name = {"field": "group", "type": "nominal", "sort": None, "legend": legend}
    colours, dashes = [*COLOURS[: len(compared)], *[QUIET] * others], [*DASHES[: len(compared)], *[[2, 2]] * others]
    spec = {
        "height": HEIGHT,
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 2, "interpolate": "monotone"},
        "encoding": {
            "x": {
                "field": "share",
                "type": "quantitative",
                "axis": {"title": "share of records with a smaller number", "format": "%", "tickCount": 6},
            },
            "y": {
                "field": "number",
                "type": "quantitative",
                "scale": {"zero": False},
                "axis": {"title": unit, "tickCount": 5},
            },
            "color": {**by_name, "scale": {"domain": order, "range": colours}},
            "strokeDash": {**by_name, "scale": {"domain": order, "range": dashes}},
        },
    }
    middle = min(sizes) // 2
    medians = ", ".join(f"{name} {number(groups[name][middle] or 0.0)}" for name in order)
    return Chart(
        "Distribution of the numbers, by value of the attribute",
        f"Medians: {medians}.",
        Table(
            ("share of records with a smaller number", *order),
            [[share, *(groups[name][place] for name in order)] for place, share in enumerate(shares)],
        ),
        spec,
    )
