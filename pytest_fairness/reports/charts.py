"""Charts as Vega-Lite specifications, each with a table of the same numbers: three drawings for all audits; plots."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from html import escape
from pathlib import Path

from pytest_fairness.audits.info import DRAWINGS, Drawing
from pytest_fairness.errors import FairnessError, joined
from pytest_fairness.records import Json, VerdictName, without_nonfinite
from pytest_fairness.reports import tables
from pytest_fairness.reports.formatting import as_float, interval_of, number, rows_of, with_arrow
from pytest_fairness.reports.view import KNOWN, ItemView, group_names

# Classes `Chart` and `Table`, and parts of Vega-Lite specifications that charts share.

Spec = dict[str, Json]
"""A Vega-Lite specification, to which `svg` adds the style; its colours are CSS variables of the page."""

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


# The three drawings: bars, intervals and lines.

_LOOKS = {"color": "colour", "shape": "shape"}
"""Key of a row by the channel of Vega-Lite that it sets."""


def bars(rows: Sequence[Mapping[str, Json]], axis: str, colours: Mapping[str, str], *, legend: bool = False) -> Spec:
    """Return a chart of horizontal bars on both sides of 0, in the order of the rows; bars of one name are stacked.

    Args:
        rows: mappings with the keys `name`, `amount` (its sign selects the side), `part` (selects the colour) and
            `strong` (whether the bar is filled, rather than outlined).
        axis: title of the axis.
        colours: colour of each part.
        legend: whether a legend names the parts.
    """
    colour = {
        "field": "part",
        "type": "nominal",
        "sort": None,
        "scale": {"domain": list(colours), "range": list(colours.values())},
        "legend": {"orient": "top", "title": None, "columnPadding": 22, "columns": 3} if legend else None,
    }
    return {
        "data": {"values": [{**row, "place": place} for place, row in enumerate(rows)]},
        "mark": {"type": "bar", "height": {"band": 0.72}, "strokeWidth": 1.2},
        "encoding": {
            "y": _names_axis(rows),
            "x": {
                "field": "amount",
                "type": "quantitative",
                "stack": "zero",
                "axis": {"title": axis, "labelExpr": "format(abs(datum.value), '.3~g')", "tickCount": 6},
            },
            "color": colour,
            "stroke": {**colour, "legend": None},
            "order": {"field": "place"},
            "fillOpacity": {"condition": {"test": "datum.strong", "value": 0.85}, "value": 0.12},
        },
    }


def intervals(
    rows: Sequence[Mapping[str, Json]],
    axis: str | None,
    *,
    domain: Sequence[float] | None = None,
    band: Sequence[float] | None = None,
    lines: Iterable[tuple[float, str]] = (),
) -> Spec:
    """Return a chart with a row for each name: a point, and a line for its interval.

    Args:
        rows: mappings with the keys `name`, `mean`, for a name with an interval `low` and `high`, and for a point that
            is not a blue circle `colour` and `shape`.
        axis: title of the axis.
        domain: lowest and highest number on the axis; by default the axis includes 0 and all numbers.
        band: ends of a shaded range.
        lines: numbers that a dashed line marks, with their labels.
    """
    scale: Spec = {"zero": True} if domain is None else {"domain": list(domain), "zero": False, "nice": False}
    amount = {"type": "quantitative", "scale": scale, "axis": {"title": axis, "tickCount": 6}}
    looks = {name: {"field": field, "type": "nominal", "scale": None} for name, field in _LOOKS.items()}
    values = [{"colour": FIRST, "shape": "circle", **row} for row in rows]
    layers: list[Spec] = []
    if band is not None:
        layers.append(
            {
                "data": {"values": [{"start": band[0], "end": band[1]}]},
                "mark": {"type": "rect", "fill": BAND, "stroke": QUIET, "strokeDash": [2, 3], "strokeWidth": 1},
                "encoding": {"x": {"field": "start", **amount}, "x2": {"field": "end"}},
            }
        )
    layers += [
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {
                "y": _names_axis(rows),
                "x": {"field": "low", **amount},
                "x2": {"field": "high"},
                "color": looks["color"],
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
            "encoding": {"y": _names_axis(rows), "x": {"field": "mean", **amount}, **looks},
        },
    ]
    # Vega draws a layer without its own data once for each row of the chart.
    once: Spec = {"data": {"values": [{}]}}
    for number_, label in lines:
        at = {"datum": number_, "type": "quantitative"}
        above = {"align": "center", "baseline": "bottom", "dy": -3, "fontSize": 12, "color": TEXT}
        layers += [
            {**once, "mark": {"type": "rule", "color": TEXT, "strokeDash": [4, 3]}, "encoding": {"x": at}},
            {**once, "mark": {"type": "text", "text": label, **above}, "encoding": {"x": at, "y": {"value": 0}}},
        ]
    return {"data": {"values": values}, "layer": layers}


def line_plot(rows: Sequence[Mapping[str, Json]], x: Spec, y: Spec, colours: Mapping[str, str]) -> Spec:
    """Return a chart with a line for each name, in a colour of its own; or one grey line of marked points.

    Args:
        rows: mappings with the keys `x`, `y`, and either `name`, or for a marked point `colour`, `shape` and, if it has
            an interval, `low` and `high`.
        x, y: types and axes of both directions.
        colours: colour of each name's line; empty for marked points.
    """
    across, up = {"field": "x", **x}, {"type": "quantitative", **y}
    place = {"x": across, "y": {"field": "y", **up}}
    if colours:
        legend = {"orient": "top", "title": None, "columnPadding": 22, "columns": 3, "symbolType": "stroke"}
        by_name = {"field": "name", "type": "nominal", "sort": None, "legend": legend}
        dashes = [[], [6, 3], *[[2, 2]] * len(colours)][: len(colours)]
        scales = {"color": list(colours.values()), "strokeDash": dashes}
        looks = {look: {**by_name, "scale": {"domain": list(colours), "range": own}} for look, own in scales.items()}
        mark = {"type": "line", "strokeWidth": 2, "interpolate": "monotone"}
        return {"height": 200, "data": {"values": list(rows)}, "mark": mark, "encoding": {**place, **looks}}
    looks = {name: {"field": field, "type": "nominal", "scale": None} for name, field in _LOOKS.items()}
    layers: list[Spec] = [
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "color": QUIET},
            "encoding": {"x": across, "y": {"field": "low", **up}, "y2": {"field": "high"}},
        },
        {"mark": {"type": "line", "color": QUIET}, "encoding": place},
        {"mark": {"type": "point", "filled": True, "size": 80, "opacity": 1}, "encoding": {**place, **looks}},
    ]
    return {"height": 70, "data": {"values": list(rows)}, "layer": layers}


def _names_axis(rows: Sequence[Mapping[str, Json]]) -> Spec:
    order = list(dict.fromkeys(row["name"] for row in rows))
    axis = {"title": None, "ticks": False, "domain": False}
    # `sort` with a list would become an expression, which Vega cannot parse if a name is `if`.
    return {"field": "name", "type": "nominal", "sort": None, "scale": {"domain": order}, "axis": axis}


# Charts of an item's value: next to its baseline, limit and tolerance, and over the last runs.

MARGIN = 0.08
"""Space at each end of the axis, as a share of the range of the shown numbers."""
EVIDENCE = (0.001, 1e6)
"""Smallest and largest evidence that a chart shows."""
MIN_RUNS = 2
"""Minimum number of runs with a value for which a trend is drawn."""


def baseline_change(view: ItemView) -> Chart | None:
    """Return the chart of an item's value and baseline; `None` if the item has no value.

    Without a description of the item's audit, no tolerance is shown.
    """
    item = view.item
    value, ends, limit = as_float(item["value"]), interval_of(item["interval"]), as_float(item["limit"])
    if value is None:
        return None
    baseline = as_float((item["baseline"] or {}).get("value"))
    allowed = None if baseline is None else _allowed(view, baseline)
    table: list[list[Json]] = [] if baseline is None else [["baseline", baseline, None, None]]
    table.append(["current", value, *(ends or (None, None))])
    numbers = [cell for _, *cells in table for cell in cells if cell is not None]
    numbers += [end for end in (limit, *(allowed or ())) if end is not None]
    domain = _with_margin(numbers, MARGIN)
    words = f"Current value {number(value)}"
    words += f", 95 % confidence interval {number(ends[0])} to {number(ends[1])}" if ends else ""
    words += f"; baseline {number(baseline)}" if baseline is not None else "; no baseline"
    words += f"; limit {number(limit)}" if limit is not None else ""
    band = None
    if allowed is not None:
        at_least, at_most = allowed
        words += "; within tolerance"
        words += "" if at_least is None else f" from {number(at_least)}"
        words += "" if at_most is None else f" up to {number(at_most)}"
        band = (domain[0] if at_least is None else at_least, domain[1] if at_most is None else at_most)
    colour, shape = MARKS[view.outcome]
    looks = {"baseline": {"colour": QUIET, "shape": "square"}, "current": {"colour": colour, "shape": shape}}
    rows = [_point(name, mean, (low, high)) | looks[name] for name, mean, low, high in table]
    lines = [] if limit is None else [(limit, "limit")]
    unit = view.unit
    title = "Current value" if baseline is None else "Current value and baseline"
    title += f"{f' ({unit})' if unit else ''}{'' if allowed is None else '; shaded: within tolerance'}"
    spec = {**SMALL, **intervals(rows, None, domain=domain, band=band, lines=lines)}
    return Chart(title, f"{words}.", Table(("", "value", "from", "to"), table), spec)


def values_of_audit(views: Sequence[ItemView]) -> Chart:
    """Return the chart of the values of an audit's items with their intervals, in the given order."""
    probes = len({view.item["probe"] for view in views}) > 1
    table = [
        [
            view.name(with_probe=probes, separator=" "),
            view.item["value"],
            *(interval_of(view.item["interval"]) or (None, None)),
        ]
        for view in views
    ]
    first = views[0]
    title = f"{first.title}{f' ({first.unit})' if first.unit else ''}"
    text = f"{number(table[0][1])} for {table[0][0]}, {number(table[-1][1])} for {table[-1][0]}."
    rows = [_point(name, value, (low, high)) for name, value, low, high in table[: 2 * SHOWN]]
    return Chart(title, text, Table(("item", "value", "from", "to"), table), intervals(rows, None))


def _allowed(view: ItemView, baseline: float) -> tuple[float | None, float | None] | None:
    """Return the lowest and the highest value within the tolerance; `None` for a side on which any value is allowed.

    The whole result is `None` if there is no tolerance, or if the audit's change is not the difference of two values.
    """
    tolerance = as_float(view.item["tolerance"])
    if not view.method.get("tolerance_of_value") or tolerance is None:
        return None
    match view.method.get("better"):
        case "lower":
            return None, baseline + tolerance
        case "higher":
            return baseline - tolerance, None
        case "zero":
            return -abs(baseline) - tolerance, abs(baseline) + tolerance
        case "fifty":
            return 50 - abs(baseline - 50) - tolerance, 50 + abs(baseline - 50) + tolerance
    return None


def trend(points: Sequence[Mapping[str, Json]]) -> Chart | None:
    """Return the chart of an item's values over the last runs; `None` for fewer than `MIN_RUNS` runs with a value.

    Args:
        points: a mapping for each run, the oldest run first, with `started`, `tool`, `value`, `interval` and `verdict`;
            if the item is marked `xfail`, also with `status`.
    """
    measured = [point for point in points if as_float(point["value"]) is not None]
    if len(measured) < MIN_RUNS:
        return None
    rows = []
    for point in measured:
        low, high = interval_of(point["interval"]) or (None, None)
        colour, shape = MARKS[_outcome(point)]
        rows.append(
            {"x": point["started"], "y": point["value"], "low": low, "high": high} | {"colour": colour, "shape": shape}
        )
    first, last = measured[0], measured[-1]
    # One label per day; Vega leaves out labels that would overlap.
    days = {point["started"][:10]: point["started"] for point in reversed(measured)}
    dates = (
        {"values": list(days.values()), "format": "%d %b %Y"}
        if len(days) > 1
        else {"format": "%d %b %H:%M", "values": [first["started"], last["started"]]}
    )
    axis = {"title": None, "grid": False, "labelFlush": True, **dates}
    run = {"type": "temporal", "scale": {"type": "utc"}, "axis": axis}
    amount = {"scale": {"zero": False}, "axis": {"title": None, "tickCount": 3, "grid": False}}
    table = [
        [*(row[name] for name in ("x", "y", "low", "high")), point["verdict"], point.get("tool")]
        for row, point in zip(reversed(rows), reversed(measured), strict=True)
    ]
    return Chart(
        f"Value in the last {len(measured)} runs with new answers",
        f"From {number(first['value'])} on {str(first['started'])[:10]} to {number(last['value'])} "
        f"on {str(last['started'])[:10]}; a cross marks a failure, a diamond an inconclusive verdict, a triangle a "
        "known failure, a circle without colour a value that was not judged.",
        Table(("run", "value", "from", "to", "verdict", "tool"), table),
        {**SMALL, **line_plot(rows, run, amount, {})},
    )


def evidence(view: ItemView) -> Chart | None:
    """Return the chart of the growing evidence of all runs since the baseline; `None` for fewer than `MIN_RUNS`."""
    runs = view.item.get("runs")
    if not runs or len(runs["dates"]) < MIN_RUNS:
        return None
    grown, needed = "evidence of a worsening", "a regression needs"
    low, high = EVIDENCE
    points = list(zip(runs["dates"], (min(high, max(low, each)) for each in runs["growth"]), strict=True))
    rows = [{"x": date, "y": value, "name": grown} for date, value in points]
    rows += [{"x": date, "y": runs["needed"], "name": needed} for date, _ in (points[0], points[-1])]
    x = {"type": "temporal", "scale": {"type": "utc"}, "axis": {"title": None, "grid": False, "format": "%d %b"}}
    y = {"scale": {"type": "log"}, "axis": {"title": None, "tickCount": 4, "grid": False, "format": "~g"}}
    return Chart(
        f"Evidence of {runs['runs']:,} runs since the baseline",
        f"Now {number(points[-1][1])}; a regression needs {number(runs['needed'])}. Likeliest worsening: since "
        f"{runs['since']}.",
        Table(("run", "evidence"), [list(point) for point in reversed(points)]),
        {**SMALL, **line_plot(rows, x, y, {grown: FIRST, needed: QUIET}), "height": 90},
    )


def _outcome(point: Mapping[str, Json]) -> str:
    if point.get("status") == KNOWN:
        return "known"
    verdict = VerdictName(point["verdict"])
    return "measured" if verdict in (VerdictName.NO_BASELINE, VerdictName.STALE_BASELINE) else verdict.outcome


def _with_margin(numbers: Sequence[float], margin: float) -> tuple[float, float]:
    low, high = min(numbers), max(numbers)
    space = (high - low or abs(high) or 1.0) * margin
    return low - space, high + space


def _point(name: str, mean: float, ends: tuple[float | None, float | None] | None) -> dict[str, Json]:
    low, high = ends or (None, None)
    return {"name": name, "mean": mean} | ({} if low is None else {"low": low, "high": high})


# Details of an item as tables, and the drawings of these tables; see `audits.info.Drawing`.

SHOWN_ELSEWHERE = ("examples", "intersections")
"""Details that reports show without a table."""
COUNT_COLOURS = (FIRST, SECOND, SECOND, QUIET, QUIET, LINE, LINE)
"""Colours of the parts of a bar, in the order of the drawing's columns."""
CLOSE = 0.25
"""Numbers above 1 whose range is a smaller share of the largest number get an axis that does not begin at 0."""


def detail_charts(view: ItemView) -> tuple[list[Chart], dict[str, Json]]:
    """Return the charts of an item's details, whose drawings its audit names, and the details without a chart."""
    named = view.method.get("charts", {})
    details = {name: detail for name, detail in view.item["details"].items() if name not in SHOWN_ELSEWHERE}
    drawn: list[Chart] = []
    rest: dict[str, Json] = {}
    for name in dict.fromkeys([*(name for name in named if name in details), *details]):
        drawing = DRAWINGS.get(named.get(name, name))
        rows = rows_of(details[name]) if isinstance(details[name], Mapping) else []
        if drawing is None and rows and all(as_float(row.get("mean")) is not None for row in rows):
            drawing = Drawing(kind="intervals", title=f"{name.replace('_', ' ').capitalize()}, by name")
        chart = drawing and _chart(view, name, drawing)
        if chart:
            drawn.append(chart)
        else:
            rest[name] = details[name]
    return drawn, rest


def table_of(rows: Sequence[Mapping[str, Json]]) -> Table:
    """Return a table with all columns of the rows, in the order of their first appearance."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return Table(
        [column.replace("_", " ") for column in columns], [[row.get(column) for column in columns] for row in rows]
    )


def _chart(view: ItemView, detail: str, drawing: Drawing) -> Chart | None:
    item = view.item
    rows = rows_of(item["details"][detail])
    if drawing.kind == "lines":
        return _quantiles(drawing, item["details"][detail], view.unit)
    groups = dict(zip(("marked", "unmarked"), group_names(item), strict=True))
    for row in rows:
        row |= {column: with_arrow(row[column]) for column in drawing.changes if column in row}
    table = _declared_table(rows, drawing, groups)
    if not rows or drawing.kind == "table":
        return Chart(drawing.title, f"{drawing.title}: {len(rows)}.", table) if rows else None
    if drawing.kind == "counts":
        return _counts(drawing, rows, table)
    numbers = [as_float(row.get(drawing.value, row.get("mean", row.get("value")))) for row in rows]
    names = [", ".join(str(row.get(column)) for column in drawing.names) for row in rows]
    known = [(name, value, row) for name, value, row in zip(names, numbers, rows, strict=True) if value is not None]
    if not known:
        return None
    if drawing.kind == "bars":
        return _sided_bars(drawing, known, table, groups)
    known.sort(key=lambda each: each[1])
    points = [_point(name, value, interval_of(row.get(drawing.interval))) for name, value, row in known]
    lines = [drawing.line] if drawing.line else []
    words = f"Lowest first: {joined([f'{name} {number(value)}' for name, value, _ in known])}."
    limit, (name, label) = as_float(item["limit"]), drawing.reference or ("", "")
    if drawing.shows_limit and limit is not None:
        lines.append((limit, "limit"))
    reference = item["details"].get(name)
    if isinstance(reference, Mapping) and (mean := as_float(reference.get("mean"))) is not None:
        lines.append((mean, label))
    words = " ".join([words, *(f"Dashed line: {label} {number(value)}." for value, label in lines)])
    axis = (detail if drawing.value == "mean" else drawing.value).replace("_", " ")
    spec = intervals(points[: 2 * SHOWN], axis, domain=_domain(points), lines=lines)
    title = f"{drawing.title}, with 95 % confidence intervals" if any("low" in row for row in points) else drawing.title
    return Chart(title, words, table, spec)


def _declared_table(rows: Sequence[dict[str, Json]], drawing: Drawing, groups: Mapping[str, str]) -> Table:
    """Return the table with the columns of a drawing that the rows have, under their headings."""
    if not drawing.columns:
        return table_of(rows)
    named = [{**row, **({"side": groups.get(str(row["side"]), row["side"])} if "side" in row else {})} for row in rows]
    columns = [column for column in drawing.columns if any(column in row for row in rows)]
    heads = [drawing.columns[column].format(**groups) for column in columns]
    return Table(heads, [[row.get(column) for column in columns] for row in named])


def _sided_bars(
    drawing: Drawing, known: Sequence[tuple[str, float, Mapping[str, Json]]], table: Table, groups: Mapping[str, str]
) -> Chart | None:
    signs = {"marked": 1, "unmarked": -1}
    amounts = [
        (name, signs[side] * abs(value) if (side := str(row.get("side"))) in signs else value, row)
        for name, value, row in known
    ]
    right = sorted((each for each in amounts if each[1] > 0), key=lambda each: -each[1])[:SHOWN]
    left = sorted((each for each in amounts if each[1] < 0), key=lambda each: each[1])[:SHOWN]
    rows = [
        {"name": name, "amount": amount, "part": str(amount > 0)}
        | {"strong": not drawing.filled or bool(row.get(drawing.filled))}
        for name, amount, row in [*right, *reversed(left)]
    ]
    if not rows:
        return None
    sides = ((groups["marked"], right), (groups["unmarked"], left))
    text = "; ".join(f"more in {name}: {joined([word for word, _, _ in side])}" for name, side in sides if side)
    ends = (
        f"← more in {groups['unmarked']}" if left else "",
        drawing.value,
        f"more in {groups['marked']} →" if right else "",
    )
    spec = bars(rows, " · ".join(filter(None, ends)), {"True": FIRST, "False": SECOND})
    return Chart(drawing.title, f"{text}.", table, spec)


def _counts(drawing: Drawing, rows: Sequence[Mapping[str, Json]], table: Table) -> Chart | None:
    parts = {
        heading: (column, colour)
        for (column, heading), colour in zip(list(drawing.columns.items())[1:], COUNT_COLOURS, strict=True)
        if any(as_float(row.get(column)) is not None for row in rows)
    }
    bars_of_rows = [
        {"name": str(row.get("")), "amount": as_float(row.get(column)) or 0.0, "part": part, "strong": True}
        for row in rows
        for part, (column, _) in parts.items()
    ]
    if not bars_of_rows:
        return None
    totals = [
        f"{number(sum(as_float(row.get(column)) or 0.0 for row in rows))} {part}" for part, (column, _) in parts.items()
    ]
    spec = bars(bars_of_rows, "answers", {part: colour for part, (_, colour) in parts.items()}, legend=True)
    return Chart(drawing.title, f"Total: {', '.join(totals)}.", table, spec)


def _quantiles(drawing: Drawing, detail: Json, unit: str) -> Chart | None:
    quantiles = {
        str(name): [as_float(value) for value in values]
        for name, values in (detail.items() if isinstance(detail, Mapping) else ())
        if isinstance(values, list)
    }
    sizes = {len(values) for values in quantiles.values()}
    if (
        len(sizes) != 1
        or len(quantiles) < len(detail)
        or min(sizes) < 2
        or any(None in own for own in quantiles.values())
    ):
        return None
    shares = [place / (min(sizes) - 1) for place in range(min(sizes))]
    rows = [
        {"name": name, "x": share, "y": value}
        for name, values in quantiles.items()
        for share, value in zip(shares, values, strict=True)
    ]
    colours = dict(zip(quantiles, [FIRST, SECOND, *[QUIET] * len(quantiles)], strict=False))
    x = {"type": "quantitative", "axis": {"title": drawing.value, "format": "%", "tickCount": 6}}
    y = {"scale": {"zero": False}, "axis": {"title": unit or "number", "tickCount": 5}}
    medians = ", ".join(f"{name} {number(values[len(values) // 2])}" for name, values in quantiles.items())
    table = Table(
        (drawing.value, *quantiles),
        [[share, *(values[place] for values in quantiles.values())] for place, share in enumerate(shares)],
    )
    return Chart(drawing.title, f"Medians: {medians}.", table, line_plot(rows, x, y, colours))


def _domain(points: Sequence[Mapping[str, Json]]) -> tuple[float, float] | None:
    numbers = [point[name] for point in points for name in ("mean", "low", "high") if name in point]
    if min(numbers) >= 0 and max(numbers) <= 1:
        return 0, 1
    is_close = min(numbers) > 1 and max(numbers) - min(numbers) < CLOSE * max(numbers)
    return _with_margin(numbers, 0.05) if is_close else None


# Class `Plot`: a chart for a notebook or a file, with fixed colours instead of CSS variables.

COLOURS = {
    "page": "#ffffff",
    "text": "#1a1f26",
    "line": "#d5dbe1",
    "quiet": "#6d7882",
    "first": "#1461b0",
    "second": "#a8480a",
    "band": "#dcebdd",
    "passed": "#17692b",
    "failed": "#b3161f",
    "inconclusive": "#7a5600",
    "error": "#7a2a8c",
    "known": "#0a6070",
}
"""Colours of the HTML report in light mode, by the names of its CSS variables."""


@dataclass(frozen=True, repr=False)
class Plot:
    """Chart of an item, which a notebook shows; `save("words.svg")` writes the chart to a file.

    Attributes:
        chart: title, description in words, table of the numbers, and Vega-Lite specification.
    """

    chart: Chart

    def __repr__(self) -> str:
        return f"<Plot {self.title!r}>"

    @property
    def title(self) -> str:
        """Return the caption."""
        return self.chart.title

    @property
    def spec(self) -> Spec:
        """Return the Vega-Lite specification, for other tools such as Altair; empty if the chart is only a table."""
        coloured: Spec = json.loads(_coloured(json.dumps(self.chart.spec)))
        return coloured

    def svg(self) -> str:
        """Return the chart as SVG.

        Raises:
            FairnessError: the chart consists of a table only, or the extra `report` is not installed.
        """
        if not self.chart.spec:
            raise FairnessError(f"{self.title!r} is a table without a drawing. Its numbers are in `plot.chart.table`.")
        try:
            # A white background, because the colours are made for light mode.
            drawn = svg(replace(self.chart, spec={**self.chart.spec, "background": "#ffffff"}), "plot")
        except ImportError as error:
            raise FairnessError(
                "A drawing needs the package vl-convert-python, which is not installed. Install the extra `report`: "
                'pip install "pytest-fairness[report]"'
            ) from error
        return _coloured(drawn)

    def save(self, path: str | Path) -> None:
        """Write the chart to a file in the format of its suffix: `.svg`, `.png` or `.pdf`.

        Raises:
            FairnessError: the chart cannot be drawn (see `svg`), the suffix is unknown, or the file cannot be written.
        """
        path = Path(path)
        drawn = self.svg()
        # Deferred: vl-convert is an optional dependency of 30 MB.
        import vl_convert

        match path.suffix.lower():
            case ".svg":
                data = drawn.encode()
            case ".png":
                data = vl_convert.svg_to_png(drawn, scale=2)
            case ".pdf":
                data = vl_convert.svg_to_pdf(drawn)
            case _:
                raise FairnessError(f"{path}: the suffix selects the format of a chart and must be .svg, .png or .pdf.")
        tables.write_file(path, data)

    def _repr_html_(self) -> str:
        try:
            drawn = self.svg()
        except FairnessError:
            drawn = tables.as_html(self.chart.table.columns, self.chart.table.rows)
        return f"<figure><figcaption>{escape(self.title)}</figcaption>{drawn}</figure>"


def _coloured(text: str) -> str:
    return re.sub(r"var\(--([a-z-]+)\)", lambda name: COLOURS[name[1]], text)


# Rendering of charts as SVG by Vega (Satyanarayan et al. 2017) through vl-convert, without browser or network.
#
# Colours are CSS variables of the page, so that a chart follows light mode, dark mode and print. The SVG contains no
# inline style, because the page's content security policy forbids it.

WIDTH, ROW = 520, 22
"""Width of a chart and height of one of its rows, in pixels before scaling."""

LETTER_PADDING = 1.2
"""Additional pixels for each letter of a name, because the reader's font may be wider than vl-convert's font."""

KEPT = 32
"""Number of drawings that are kept for equal charts; drawing takes about 20 ms."""

CONFIG: Spec = {
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "mark": {"aria": False},
    "axis": {
        "aria": False,
        "labelColor": "var(--text)",
        "titleColor": "var(--text)",
        "gridColor": "var(--line)",
        "tickColor": "var(--quiet)",
        "domainColor": "var(--quiet)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelLimit": 200,
        "labelOverlap": "greedy",
        "labelSeparation": 8,
    },
    "legend": {"aria": False, "labelColor": "var(--text)", "labelFontSize": 12},
}


def svg(chart: Chart, name: str) -> str:
    """Return the chart as an SVG element with title and description.

    Args:
        chart: a chart with a `spec`.
        name: prefix of the element's ids, unique on the page.
    """
    longest_name = max((min(28, len(str(row.get("name", "")))) for row in chart.spec["data"]["values"]), default=0)
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": WIDTH,
        "height": {"step": ROW},
        "padding": {"left": 4 + LETTER_PADDING * longest_name, "right": 16, "top": 4, "bottom": 2},
        "autosize": {"type": "fit-x", "contains": "padding"},
        "background": None,
        "config": CONFIG,
        **chart.spec,
    }
    # Deferred: vl-convert is an optional dependency of 30 MB.
    import vl_convert

    drawn = _drawn(vl_convert.vegalite_to_svg, json.dumps(without_nonfinite(spec)))
    start = drawn.index("<svg")
    head, body = drawn[start : drawn.index(">", start)], drawn[drawn.index(">", start) + 1 :]
    return (
        f'{head} role="img" aria-labelledby="{name}-title {name}-text">'
        f'<title id="{name}-title">{escape(chart.title)}</title>'
        f'<desc id="{name}-text">{escape(chart.text)}</desc>{body}'
    )


@lru_cache(KEPT)
def _drawn(draw: Callable[..., str], spec: str) -> str:
    return draw(spec, vl_version="6.4", allowed_base_urls=[])
