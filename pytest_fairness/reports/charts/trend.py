"""Chart of an item's value over the last runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.records import Json, VerdictName
from pytest_fairness.reports.charts.base import MARKS, QUIET, SMALL, Chart, Table, as_float, interval_of
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.items.report_items import KNOWN

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
