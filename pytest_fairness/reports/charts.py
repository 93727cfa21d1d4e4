"""Charts as Vega-Lite specifications, each with a table of the same numbers; plots for notebooks; trends."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from html import escape
from pathlib import Path

from pytest_fairness.errors import FairnessError
from pytest_fairness.records import Json, VerdictName, without_nonfinite
from pytest_fairness.reports import tables
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.report_items import KNOWN, Item, outcome, unit_of
from pytest_fairness.resources import replace_file

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


# Chart of an item's current value, its baseline, its limit and its tolerance.

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


# Chart of an item's value over the last runs.

MIN_RUNS = 2
"""Minimum number of runs with a value for which a trend is drawn."""


def trend(points: Sequence[Mapping[str, Json]]) -> Chart | None:
    """Return the chart of an item's values; `None` for fewer than `MIN_RUNS` runs with a value.

    Args:
        points: a mapping for each run, the oldest run first, with `started`, `tool`, `value`, `interval` and `verdict`;
            if the item is marked `xfail`, also with `status`.
    """
    measured = [point for point in points if as_float(point["value"]) is not None]
    if len(measured) < MIN_RUNS:
        return None
    rows = []
    for point in measured:
        ends = interval_of(point["interval"])
        colour, shape = MARKS[_outcome(point)]
        rows.append(
            {
                "run": point["started"],
                "value": point["value"],
                "colour": colour,
                "shape": shape,
                **({"low": ends[0], "high": ends[1]} if ends else {}),
            }
        )
    first, last = measured[0], measured[-1]
    # One label per day; Vega leaves out labels that would overlap.
    days = {point["started"][:10]: point["started"] for point in reversed(measured)}
    dates = (
        {"values": list(days.values()), "format": "%d %b %Y"}
        if len(days) > 1
        else {"format": "%d %b %H:%M", "values": [first["started"], last["started"]]}
    )
    run = {
        "field": "run",
        "type": "temporal",
        "scale": {"type": "utc"},
        "axis": {"title": None, "grid": False, "labelFlush": True, **dates},
    }
    amount = {
        "type": "quantitative",
        "scale": {"zero": False},
        "axis": {"title": None, "tickCount": 3, "grid": False},
    }
    spec = {
        **SMALL,
        "data": {"values": rows},
        "height": 70,
        "encoding": {"x": run},
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "color": QUIET},
                "encoding": {"y": {"field": "low", **amount}, "y2": {"field": "high"}},
            },
            {"mark": {"type": "line", "color": QUIET}, "encoding": {"y": {"field": "value", **amount}}},
            {
                "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
                "encoding": {
                    "y": {"field": "value", **amount},
                    "color": {"field": "colour", "type": "nominal", "scale": None},
                    "shape": {"field": "shape", "type": "nominal", "scale": None},
                },
            },
        ],
    }
    return Chart(
        f"Value in the last {len(measured)} runs with new answers",
        f"From {number(first['value'])} on {str(first['started'])[:10]} to {number(last['value'])} "
        f"on {str(last['started'])[:10]}; a cross marks a failure, a diamond an inconclusive verdict, a triangle a "
        "known failure, a circle without colour a value that was not judged.",
        Table(
            ("run", "value", "from", "to", "verdict", "tool"),
            [
                [
                    *(point["started"], point["value"], *(interval_of(point["interval"]) or (None, None))),
                    *(point["verdict"], point.get("tool")),
                ]
                for point in reversed(measured)
            ],
        ),
        spec,
    )


def _outcome(point: Mapping[str, Json]) -> str:
    """Return the outcome that selects a point's colour and shape; `measured` if the run had no valid baseline."""
    if point.get("status") == KNOWN:
        return "known"
    verdict = VerdictName(point["verdict"])
    return "measured" if verdict in (VerdictName.NO_BASELINE, VerdictName.STALE_BASELINE) else verdict.outcome


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
        try:
            replace_file(path, data)
        except OSError as error:
            raise FairnessError(f"{path}: cannot be written ({error.strerror or error}). Name another file.") from error

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
    """Return the SVG for a specification in JSON; equal specifications are drawn only once."""
    return draw(spec, vl_version="6.4", allowed_base_urls=[])
