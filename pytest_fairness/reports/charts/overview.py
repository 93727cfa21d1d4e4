"""All items of a probe on one scale: how far each moved, in tolerances."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_fairness.reports.charts.base import Picture, Table, finite, pair, rule, whiskers
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.report_items import Item

FEWEST = 2
"""Items to be worth a picture."""
WIDEST = 6.0
"""Tolerances; what is further off is drawn at the edge."""


def overview(items: Sequence[Item]) -> Picture | None:
    """The items' changes in tolerances: beyond 1 is worse than tolerated."""
    rows, table, outside = [], [], 0
    for item in items:
        change, tolerance = item["change"] or {}, finite(item["tolerance"])
        moved = finite(change.get("value"))
        if moved is None or not tolerance:
            continue
        ends = pair(change.get("interval"))
        table.append([item["id"], moved, *(ends or (None, None)), tolerance, moved / tolerance, item["verdict"]])
        outside += moved > tolerance
        rows.append({"name": item["id"], "mean": _cut(moved / tolerance)})
        if ends:
            rows[-1] |= {"low": _cut(ends[0] / tolerance), "high": _cut(ends[1] / tolerance)}
    if len(rows) < FEWEST:
        return None
    edge = any(abs(row[5]) > WIDEST for row in table)
    spec = whiskers(
        rows, "worse by, in tolerances" + (f"; what is beyond {WIDEST:g} stands at the edge" if edge else "")
    )
    spec["layer"] += rule(1.0, "tolerance", align="left")
    spec["layer"] += rule(0.0, "baseline", dash=(1, 0), align="right")
    farthest = max(table, key=lambda row: float(row[5]))
    return Picture(
        "Change since the baseline, in tolerances",
        f"{outside} of {len(table)} items are beyond their tolerance; furthest is {farthest[0]} "
        f"at {number(float(farthest[5]))} tolerances.",
        Table(("item", "worse by", "from", "to", "tolerance", "in tolerances", "verdict"), table),
        spec,
    )


def _cut(value: float) -> float:
    return max(-WIDEST, min(WIDEST, value))
