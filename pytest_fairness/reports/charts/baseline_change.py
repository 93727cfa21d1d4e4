"""Where an item stands: its value with interval, its baseline, its limit, and what the tolerance allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import BAND, FIRST, QUIET, Picture, Spec, Table, finite, names_axis, pair, rule
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.report_items import Item

MARGIN = 0.08
"""Of the axis beyond the outermost number, as a share."""


def standing(item: Item, method: Mapping[str, Json] | None = None) -> Picture | None:
    """Return the chart of an item's value beside its baseline; `None` where nothing was measured.

    Args:
        item: item of the report document.
        method: description of the item's audit in the report document; without it the tolerance is not shown.
    """
    value, ends, limit = finite(item["value"]), pair(item["interval"]), finite(item["limit"])
    if value is None:
        return None
    then = finite((item["baseline"] or {}).get("value"))
    allowed = None if then is None else _allowed(item, method, then)
    rows: list[list[Json]] = [] if then is None else [["baseline", then, None, None]]
    rows.append(["now", value, *(ends or (None, None))])
    numbers = [cell for _, *cells in rows for cell in cells if cell is not None]
    numbers += [] if limit is None else [limit]
    numbers += [end for end in allowed or () if end is not None]
    low, high = min(numbers), max(numbers)
    margin = (high - low or abs(high) or 1.0) * MARGIN
    domain = (low - margin, high + margin)
    words = f"Now {number(value)}"
    words += f", 95 % interval {number(ends[0])} to {number(ends[1])}" if ends else ""
    words += f"; baseline {number(then)}" if then is not None else "; no baseline"
    words += f"; limit {number(limit)}" if limit is not None else ""
    if allowed is not None:
        at_least, at_most = allowed
        words += f"; the tolerance allows from {number(at_least)}" if at_least is not None else "; the tolerance allows"
        words += f" to {number(at_most)}" if at_most is not None else " on"
    return Picture(
        "Now" if then is None else "Now and before" + ("" if allowed is None else "; shaded: within tolerance"),
        f"{words}.",
        Table(("", "value", "from", "to"), rows),
        _spec(rows, domain, allowed, limit),
    )


def _allowed(item: Item, method: Mapping[str, Json] | None, then: float) -> tuple[float | None, float | None] | None:
    """Return the range within tolerance of the baseline; `None` where the tolerance is no distance between values."""
    tolerance = finite(item["tolerance"])
    if not method or not method.get("tolerance_of_value") or tolerance is None:
        return None
    match method.get("better"):
        case "lower":
            return None, then + tolerance
        case "higher":
            return then - tolerance, None
        case "zero":
            return -abs(then) - tolerance, abs(then) + tolerance
        case "fifty":
            return 50 - abs(then - 50) - tolerance, 50 + abs(then - 50) + tolerance
    return None


def _spec(
    rows: Sequence[Sequence[Json]],
    domain: tuple[float, float],
    allowed: tuple[float | None, float | None] | None,
    limit: float | None,
) -> Spec:
    amount = {"type": "quantitative", "scale": {"domain": list(domain), "zero": False, "nice": False}}
    axis = {"axis": {"title": None, "tickCount": 6}}
    layers: list[Spec] = []
    if allowed is not None:
        start = domain[0] if allowed[0] is None else allowed[0]
        end = domain[1] if allowed[1] is None else allowed[1]
        layers.append(
            {
                "data": {"values": [{"start": start, "end": end}]},
                "mark": {"type": "rect", "fill": BAND, "stroke": QUIET, "strokeDash": [2, 3], "strokeWidth": 1},
                "encoding": {"x": {"field": "start", **amount, **axis}, "x2": {"field": "end"}},
            }
        )
    values = [{"name": name, "mean": mean, "low": low, "high": high} for name, mean, low, high in rows]
    layers += [
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 2, "color": FIRST},
            "encoding": {"y": names_axis(values), "x": {"field": "low", **amount, **axis}, "x2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1, "color": FIRST},
            "encoding": {
                "y": names_axis(values),
                "x": {"field": "mean", **amount, **axis},
                "shape": {
                    "field": "name",
                    "type": "nominal",
                    "legend": None,
                    "scale": {"domain": ["baseline", "now"], "range": ["diamond", "circle"]},
                },
            },
        },
    ]
    if limit is not None:
        layers += rule(limit, "limit")
    return {"data": {"values": values}, "layer": layers}
