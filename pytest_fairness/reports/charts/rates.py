"""Charts with one number per name: stereotype ratios by case, shares by group, impact ratios."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.plurals import joined
from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import (
    SHOWN,
    Chart,
    Table,
    as_float,
    interval_of,
    interval_plot,
    reference_line,
)
from pytest_fairness.reports.charts.means import means
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.items.report_items import Item, mappings_in


def by_case(item: Item, detail: Json) -> Chart | None:
    """Return a chart of each case's stereotype ratio, with a line at 0.5 (balance); `None` without ratios."""
    return _rates(item, detail, "ratio", "Stereotype ratio by case", balance=0.5)


def by_group(item: Item, detail: Json) -> Chart | None:
    """Return a chart with a share for each group, such as its share of refused answers; `None` without shares."""
    return _rates(item, detail, "share", "Share by group")


def impact_ratios(item: Item, detail: Json) -> Chart | None:
    """Return a chart of each group's impact ratio, with a line at the limit, if there is one; `None` without groups."""
    groups = mappings_in(detail)
    if not groups:
        return None
    rows: list[dict[str, Json]] = []
    table: list[list[Json]] = []
    highest = 1.0
    for group in groups:
        name, ratio, ends = str(group["group"]), as_float(group["ratio"]), interval_of(group["ratio_interval"])
        if ratio is not None:
            rows.append({"name": name, "mean": ratio, **({"low": ends[0], "high": ends[1]} if ends else {})})
        highest = max(highest, ends[1] if ends else 1.0)
        note = f"left out: {group['left_out']}" if group["left_out"] else "" if ends else "most selected"
        table.append([name, *(group[key] for key in ("records", "hits", "rate", "ratio", "ratio_interval")), note])
    spec = interval_plot(rows[: 2 * SHOWN], "impact ratio", domain=(0, highest))
    if (limit := as_float(item["limit"])) is not None:
        spec["layer"] += reference_line(limit, "limit")
    ratios = joined([f"{row['name']} {number(row['mean'])}" for row in sorted(rows, key=lambda row: row["mean"])])
    return Chart(
        "Impact ratio by group, with 95 % confidence intervals",
        f"Lowest first: {ratios}.",
        Table(("group", "records", "selected", "selection rate", "impact ratio", "95 % interval", "note"), table),
        spec,
    )


def _rates(item: Item, detail: Json, key: str, title: str, *, balance: float | None = None) -> Chart | None:
    if not isinstance(detail, Mapping) or not detail:
        return None
    known: dict[str, float] = {}
    for name, part in detail.items():
        value = as_float(part.get(key, part.get("mean"))) if isinstance(part, Mapping) else as_float(part)
        if value is not None:
            known[str(name)] = value
    if len(known) < len(detail):
        return means(item, key, detail)
    order = sorted(known, key=lambda name: -known[name])
    domain = (0, 1) if all(0 <= value <= 1 for value in known.values()) else None
    spec = interval_plot([{"name": name, "mean": known[name]} for name in order[: 2 * SHOWN]], key, domain=domain)
    if balance is not None:
        spec["layer"] += reference_line(balance, "balance")
    parts = [part for part in detail.values() if isinstance(part, Mapping)]
    columns = list(dict.fromkeys(column for part in parts for column in part))
    rows = [
        [name, *(detail[name].get(column) for column in columns)]
        if isinstance(detail.get(name), Mapping)
        else [name, known[name]]
        for name in order
    ]
    return Chart(
        title,
        f"Highest first: {joined([f'{name} {number(known[name])}' for name in order])}.",
        Table(("", *columns) if parts else ("", key), rows),
        spec,
    )
