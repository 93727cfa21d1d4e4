"""Chart of an item's current value, its baseline, its limit and its tolerance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import (
    BAND,
    MARKS,
    QUIET,
    SMALL,
    Chart,
    Spec,
    Table,
    as_float,
    interval_of,
    names_axis,
    reference_line,
)
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.items.report_items import Item, outcome, unit_of

MARGIN = 0.08
"""Space at each end of the axis, as a share of the range of the shown numbers."""


def baseline_change(item: Item, method: Mapping[str, Json]) -> Chart | None:
    """Return the chart of an item's value and baseline; `None` if the item has no value.

    Args:
        item: item of the report document.
        method: description of the item's audit in the report document; without a description, no tolerance is shown.
    """
    value, ends, limit = as_float(item["value"]), interval_of(item["interval"]), as_float(item["limit"])
    if value is None:
        return None
    baseline = as_float((item["baseline"] or {}).get("value"))
    allowed = None if baseline is None else _allowed(item, method, baseline)
    rows: list[list[Json]] = [] if baseline is None else [["baseline", baseline, None, None]]
    rows.append(["current", value, *(ends or (None, None))])
    numbers = [cell for _, *cells in rows for cell in cells if cell is not None]
    numbers += [] if limit is None else [limit]
    numbers += [end for end in allowed or () if end is not None]
    low, high = min(numbers), max(numbers)
    margin = (high - low or abs(high) or 1.0) * MARGIN
    domain = (low - margin, high + margin)
    words = f"Current value {number(value)}"
    words += f", 95 % confidence interval {number(ends[0])} to {number(ends[1])}" if ends else ""
    words += f"; baseline {number(baseline)}" if baseline is not None else "; no baseline"
    words += f"; limit {number(limit)}" if limit is not None else ""
    if allowed is not None:
        at_least, at_most = allowed
        words += "; within tolerance"
        words += "" if at_least is None else f" from {number(at_least)}"
        words += "" if at_most is None else f" up to {number(at_most)}"
    return Chart(
        _title(baseline, allowed, unit_of(item, method)),
        f"{words}.",
        Table(("", "value", "from", "to"), rows),
        _spec(rows, domain, allowed, limit, *MARKS[outcome(item)]),
    )


def _title(baseline: float | None, allowed: object, unit: str) -> str:
    values = "Current value" if baseline is None else "Current value and baseline"
    return f"{values}{f' ({unit})' if unit else ''}{'' if allowed is None else '; shaded: within tolerance'}"


def _allowed(item: Item, method: Mapping[str, Json], baseline: float) -> tuple[float | None, float | None] | None:
    """Return the lowest and the highest value within the tolerance; `None` for a side on which any value is allowed.

    The whole result is `None` if there is no tolerance, or if the audit's change is not the difference of two values.
    """
    tolerance = as_float(item["tolerance"])
    if not method.get("tolerance_of_value") or tolerance is None:
        return None
    match method.get("better"):
        case "lower":
            return None, baseline + tolerance
        case "higher":
            return baseline - tolerance, None
        case "zero":
            return -abs(baseline) - tolerance, abs(baseline) + tolerance
        case "fifty":
            return 50 - abs(baseline - 50) - tolerance, 50 + abs(baseline - 50) + tolerance
    return None


def _spec(
    rows: Sequence[Sequence[Json]],
    domain: tuple[float, float],
    allowed: tuple[float | None, float | None] | None,
    limit: float | None,
    colour: str,
    shape: str,
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
            "mark": {"type": "rule", "strokeWidth": 2, "color": colour},
            "encoding": {"y": names_axis(values), "x": {"field": "low", **amount, **axis}, "x2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
            "encoding": {
                "y": names_axis(values),
                "x": {"field": "mean", **amount, **axis},
                "color": {"condition": {"test": "datum.name == 'current'", "value": colour}, "value": QUIET},
                "shape": {"condition": {"test": "datum.name == 'current'", "value": shape}, "value": "square"},
            },
        },
    ]
    if limit is not None:
        layers += reference_line(limit, "limit")
    return {**SMALL, "data": {"values": values}, "layer": layers}
