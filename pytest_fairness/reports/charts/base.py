"""What a picture is, and the parts that pictures share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_fairness.records import Json

Spec = dict[str, Json]
"""A Vega-Lite specification, without its size and style; colours are the page's variables."""

# The page gives these their values, for light and for dark.
TEXT, QUIET, LINE, BAND = "var(--text)", "var(--quiet)", "var(--line)", "var(--band)"
FIRST, SECOND = "var(--first)", "var(--second)"

SHOWN = 15
"""Most bars on a side, or rows, of a picture; the table behind it has them all."""


@dataclass(frozen=True)
class Table:
    """Numbers as they are read: column heads, and rows of which the first cell is the head."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Json]]


@dataclass(frozen=True)
class Picture:
    """One picture of an item.

    Attributes:
        title: its caption.
        text: what is to be seen, in words, for whoever cannot see it.
        table: the numbers behind it.
        spec: how it is drawn; empty where the table says it best.
    """

    title: str
    text: str
    table: Table
    spec: Spec = field(default_factory=dict)


def finite(value: Json) -> float | None:
    """The number, or `None` for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def pair(value: Json) -> tuple[float, float] | None:
    """The ends of an interval, or `None` for anything that is none."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    low, high = finite(value[0]), finite(value[1])
    return None if low is None or high is None else (low, high)


def bars(rows: Sequence[Mapping[str, Json]], axis: str) -> Spec:
    """Horizontal bars to both sides of 0, in the order of the rows.

    Args:
        rows: `name`, `amount` (its sign is the side) and `strong` (filled, else an outline).
        axis: what the amount is.
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


def whiskers(rows: Sequence[Mapping[str, Json]], axis: str, *, domain: Sequence[float] | None = None) -> Spec:
    """A dot with its interval a row.

    Args:
        rows: `name`, `mean`, and `low` and `high` where there is an interval.
        axis: what the mean is.
        domain: of the axis; from 0 to the largest end where not given.
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
    """The vertical axis of rows, in the order in which they are given, whatever a layer leaves out."""
    order = list(dict.fromkeys(row["name"] for row in rows))
    axis = {"title": None, "ticks": False, "domain": False}
    return {"field": "name", "type": "nominal", "sort": order, "axis": axis}


def rule(value: float, label: str, *, dash: Sequence[int] = (4, 3), align: str = "center") -> list[Spec]:
    """A vertical line across all rows, with its name above; `align` is the side of the name that is at the line."""
    at = {"datum": value, "type": "quantitative"}
    # Data of its own, or it would be drawn once for every row.
    once: Spec = {"data": {"values": [{}]}}
    text = {
        "type": "text",
        "text": label,
        "align": align,
        "baseline": "bottom",
        "color": TEXT,
        "fontSize": 12,
        "dy": -3,
    }
    return [
        {**once, "mark": {"type": "rule", "color": TEXT, "strokeDash": list(dash)}, "encoding": {"x": at}},
        {**once, "mark": text, "encoding": {"x": at, "y": {"value": 0}}},
    ]


def listed(names: Sequence[str], most: int = 8) -> str:
    """The first names of many, for a sentence."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
