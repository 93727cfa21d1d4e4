"""Pictures of one number a name: marker ratios by case, shares by group."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import SHOWN, Picture, Table, finite, listed, rule, whiskers
from pytest_fairness.reports.charts.means import means
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.report_items import Item


def by_case(item: Item, detail: Json) -> Picture | None:
    """The ratio of each case, with the middle drawn where stereotype and anti-stereotype would balance."""
    return _rates(item, detail, "ratio", "Stereotype ratio by case", middle=0.5)


def by_group(item: Item, detail: Json) -> Picture | None:
    """A share of each group."""
    return _rates(item, detail, "share", "Share by group")


def _rates(item: Item, detail: Json, key: str, title: str, *, middle: float | None = None) -> Picture | None:
    if not isinstance(detail, Mapping) or not detail:
        return None
    known: dict[str, float] = {}
    for name, part in detail.items():
        value = finite(part.get(key, part.get("mean"))) if isinstance(part, Mapping) else finite(part)
        if value is not None:
            known[str(name)] = value
    if len(known) < len(detail):
        return means(item, key, detail)
    order = sorted(known, key=lambda name: -known[name])
    spec = whiskers([{"name": name, "mean": known[name]} for name in order[: 2 * SHOWN]], key)
    if all(0 <= value <= 1 for value in known.values()):
        spec = whiskers([{"name": name, "mean": known[name]} for name in order[: 2 * SHOWN]], key, domain=(0, 1))
    if middle is not None:
        spec["layer"] += rule(middle, "balance")
    parts = [part for part in detail.values() if isinstance(part, Mapping)]
    columns = list(dict.fromkeys(column for part in parts for column in part))
    rows = [
        [name, *(detail[name].get(column) for column in columns)]
        if isinstance(detail.get(name), Mapping)
        else [name, known[name]]
        for name in order
    ]
    return Picture(
        title,
        f"Highest first: {listed([f'{name} {number(known[name])}' for name in order])}.",
        Table(("", *columns) if parts else ("", key), rows),
        spec,
    )
