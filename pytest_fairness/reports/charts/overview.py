"""Chart of all items of a probe: change since the baseline, as a multiple of the tolerance."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_fairness.reports.charts.base import (
    Chart,
    Table,
    as_float,
    interval_of,
    interval_plot,
    reference_line,
)
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.report_items import Item

MIN_ITEMS = 2
"""Minimum number of items for a chart."""
MAX_CHANGE = 6.0
"""Largest change on the axis, in tolerances; larger changes are drawn at the edge."""


def overview(items: Sequence[Item]) -> Chart | None:
    """Return the items' changes in tolerances; above 1 exceeds the tolerance."""
    rows, table, outside = [], [], 0
    for item in items:
        change, tolerance = item["change"] or {}, as_float(item["tolerance"])
        moved = as_float(change.get("value"))
        if moved is None or not tolerance:
            continue
        ends = interval_of(change.get("interval"))
        table.append([item["id"], moved, *(ends or (None, None)), tolerance, moved / tolerance, item["verdict"]])
        outside += moved > tolerance
        rows.append({"name": item["id"], "mean": _clip(moved / tolerance)})
        if ends:
            rows[-1] |= {"low": _clip(ends[0] / tolerance), "high": _clip(ends[1] / tolerance)}
    if len(rows) < MIN_ITEMS:
        return None
    edge = any(abs(row[5]) > MAX_CHANGE for row in table)
    spec = interval_plot(
        rows, "worse by, in tolerances" + (f"; larger than {MAX_CHANGE:g} drawn at the edge" if edge else "")
    )
    spec["layer"] += reference_line(1.0, "tolerance", align="left")
    spec["layer"] += reference_line(0.0, "baseline", dash=(1, 0), align="right")
    largest = max(table, key=lambda row: float(row[5]))
    return Chart(
        "Change since the baseline, in tolerances",
        f"{outside} of {len(table)} items exceed their tolerance; the largest change is that of {largest[0]}: "
        f"{number(float(largest[5]))} tolerances.",
        Table(("item", "worse by", "from", "to", "tolerance", "in tolerances", "verdict"), table),
        spec,
    )


def _clip(value: float) -> float:
    return max(-MAX_CHANGE, min(MAX_CHANGE, value))
