"""Chart of an item's value over the last runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import FIRST, Chart, Table, as_float, interval_of
from pytest_fairness.reports.formatting import number

MIN_RUNS = 2
"""Minimum number of runs with a value."""


def trend(points: Sequence[Mapping[str, Json]]) -> Chart | None:
    """Return the chart of an item's values; `None` for fewer than `MIN_RUNS` runs with a value.

    Args:
        points: `started`, `tool`, `value`, `interval` and `verdict` of each run, the oldest first.
    """
    measured = [point for point in points if as_float(point["value"]) is not None]
    if len(measured) < MIN_RUNS:
        return None
    rows = []
    for place, point in enumerate(measured):
        ends = interval_of(point["interval"])
        rows.append(
            {
                "run": place,
                "value": point["value"],
                "good": point["verdict"] in ("pass", "inconclusive"),
                **({"low": ends[0], "high": ends[1]} if ends else {}),
            }
        )
    first, last = measured[0], measured[-1]
    run = {"field": "run", "type": "quantitative", "axis": None}
    amount = {
        "type": "quantitative",
        "scale": {"zero": False},
        "axis": {"title": None, "tickCount": 3, "grid": False},
    }
    spec = {
        "data": {"values": rows},
        "height": 70,
        "encoding": {"x": run},
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "color": FIRST, "opacity": 0.5},
                "encoding": {"y": {"field": "low", **amount}, "y2": {"field": "high"}},
            },
            {"mark": {"type": "line", "color": FIRST}, "encoding": {"y": {"field": "value", **amount}}},
            {
                "mark": {"type": "point", "color": FIRST, "fill": "var(--page)", "size": 50, "opacity": 1},
                "encoding": {
                    "y": {"field": "value", **amount},
                    "shape": {"condition": {"test": "datum.good", "value": "circle"}, "value": "cross"},
                    "fill": {"condition": {"test": "datum.good", "value": FIRST}, "value": "var(--page)"},
                },
            },
        ],
    }
    return Chart(
        f"The last {len(measured)} runs",
        f"From {number(first['value'])} on {str(first['started'])[:10]} to {number(last['value'])} "
        f"on {str(last['started'])[:10]}; a cross marks a failed run.",
        Table(
            ("run", "value", "from", "to", "verdict", "tool"),
            [
                [p["started"], p["value"], *(interval_of(p["interval"]) or (None, None)), p["verdict"], p.get("tool")]
                for p in reversed(measured)
            ],
        ),
        spec,
    )
