"""Classes `Chart` and `Table`, and parts of Vega-Lite specifications that charts share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_fairness.records import Json

Spec = dict[str, Json]
"""A Vega-Lite specification, to which `vega.svg` adds the style; its colours are CSS variables of the page."""

# The style sheet sets these variables, for light and for dark mode.
TEXT, QUIET, LINE, BAND = "var(--text)", "var(--quiet)", "var(--line)", "var(--band)"
FIRST, SECOND = "var(--first)", "var(--second)"

SMALL = {"width": 360}
"""Size of a chart that is shown beside another chart."""

SHOWN = 15
"""Maximum number of variants in a chart, and of bars on each side of 0; charts of means and rates have up to twice as
many rows. The table of a chart has all rows."""


CROSS = "M-1 -.6 -.6 -1 0 -.4 .6 -1 1 -.6 .4 0 1 .6 .6 1 0 .4 -.6 1 -1 .6 -.4 0Z"
MARKS = {
    "passed": ("var(--passed)", "circle"),
    "inconclusive": ("var(--inconclusive)", "diamond"),
    "known": ("var(--known)", "triangle-down"),
    "measured": (TEXT, "circle"),
    "failed": ("var(--failed)", CROSS),
    "error": ("var(--error)", "triangle-up"),
}
"""Colour and shape of a point, by the outcome of its item."""


@dataclass(frozen=True)
class Table:
    """Table with column headings; the first cell of a row is the row's heading."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Json]]


@dataclass(frozen=True)
class Chart:
    """One chart of an item.

    Attributes:
        title: caption.
        text: description in words, for screen readers.
        table: the numbers of the chart.
        spec: Vega-Lite specification; empty for a chart that consists of its table only.
    """

    title: str
    text: str
    table: Table
    spec: Spec = field(default_factory=dict)


def as_float(value: Json) -> float | None:
    """Return the value as a float; `None` if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def interval_of(value: Json) -> tuple[float, float] | None:
    """Return the bounds of an interval, or `None` if the value is not a pair of finite numbers."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    low, high = as_float(value[0]), as_float(value[1])
    return None if low is None or high is None else (low, high)


def diverging_bars(rows: Sequence[Mapping[str, Json]], axis: str) -> Spec:
    """Return a chart of horizontal bars on both sides of 0, in the order of the rows.

    Args:
        rows: mappings with the keys `name`, `amount` (its sign selects the side) and `strong` (whether the bar is
            filled, rather than outlined).
        axis: title of the axis.
    """
    return {
        "data": {"values": list(rows)},
        "mark": {"type": "bar", "height": {"band": 0.72}, "strokeWidth": 1.2},
        "encoding": {
            "y": names_axis(rows),
            "x": {
                "field": "amount",
                "type": "quantitative",
                "axis": {"title": axis, "labelExpr": "format(abs(datum.value), '.3~g')", "tickCount": 6},
            },
            "color": {"condition": {"test": "datum.amount < 0", "value": SECOND}, "value": FIRST},
            "stroke": {"condition": {"test": "datum.amount < 0", "value": SECOND}, "value": FIRST},
            "fillOpacity": {"condition": {"test": "datum.strong", "value": 0.85}, "value": 0.12},
        },
    }


def interval_plot(rows: Sequence[Mapping[str, Json]], axis: str, *, domain: Sequence[float] | None = None) -> Spec:
    """Return a chart with one row per name: a dot for the mean and a line for its interval.

    Args:
        rows: mappings with the keys `name`, `mean` and, for a name with an interval, `low` and `high`.
        axis: title of the axis.
        domain: lowest and highest value on the axis; by default the axis includes 0 and all values.
    """
    scale: Spec = {"zero": True} if domain is None else {"domain": list(domain), "zero": False}
    amount = {"type": "quantitative", "scale": scale, "axis": {"title": axis, "tickCount": 6}}
    return {
        "data": {"values": list(rows)},
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "strokeWidth": 2, "color": FIRST},
                "encoding": {"y": names_axis(rows), "x": {"field": "low", **amount}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1, "color": FIRST},
                "encoding": {"y": names_axis(rows), "x": {"field": "mean", **amount}},
            },
        ],
    }


def names_axis(rows: Sequence[Mapping[str, Json]]) -> Spec:
    """Return a vertical axis with the names of all rows in the given order, even if a layer of the chart omits rows."""
    order = list(dict.fromkeys(row["name"] for row in rows))
    axis = {"title": None, "ticks": False, "domain": False}
    # `sort` with a list would become an expression, which Vega cannot parse if a name is `if`.
    return {"field": "name", "type": "nominal", "sort": None, "scale": {"domain": order}, "axis": axis}


def reference_line(value: float, label: str) -> list[Spec]:
    """Return Vega-Lite layers: a dashed vertical line at the value, across all rows, and a label above the line."""
    at = {"datum": value, "type": "quantitative"}
    # Vega draws a layer without its own data once for each row of the chart.
    once: Spec = {"data": {"values": [{}]}}
    position = {"align": "center", "baseline": "bottom", "dy": -3}
    text = {"type": "text", "text": label, "color": TEXT, "fontSize": 12, **position}
    return [
        {**once, "mark": {"type": "rule", "color": TEXT, "strokeDash": [4, 3]}, "encoding": {"x": at}},
        {**once, "mark": text, "encoding": {"x": at, "y": {"value": 0}}},
    ]
