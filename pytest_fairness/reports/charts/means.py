"""Pictures of means with intervals: similarity by value and whatever else is given by name."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import SHOWN, Picture, Table, finite, listed, pair, rule, whiskers
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.report_items import Item

TITLES = {
    "similarity": "Similarity to the neutral list, by value",
    "entropy": "Entropy in bits",
    "missing": "Share of missing items, by value",
    "ndcg": "NDCG, by value",
}


def means(item: Item, name: str, detail: Json) -> Picture | None:
    """A dot with its 95 % interval for each name that the detail gives a mean, the lowest first."""
    if not isinstance(detail, Mapping) or not detail:
        return None
    parts = {str(key): part for key, part in detail.items() if isinstance(part, Mapping)}
    known = {
        key: value for key, part in parts.items() if (value := finite(part.get("mean", part.get(name)))) is not None
    }
    if len(parts) < len(detail) or not known or len(known) < len(parts):
        return None
    order = sorted(known, key=lambda key: known[key])
    rows = []
    for key in order[: 2 * SHOWN]:
        ends = pair(parts[key].get("interval"))
        rows.append({"name": key, "mean": known[key], **({"low": ends[0], "high": ends[1]} if ends else {})})
    spec = whiskers(rows, name.replace("_", " "))
    floor = item["details"].get("noise_floor") if name == "similarity" else None
    between = finite(floor.get("mean")) if isinstance(floor, Mapping) else None
    noise = ""
    if between is not None:
        spec["layer"] += rule(between, "neutral to neutral")
        noise = f" Neutral lists are {number(between)} like each other."
    columns = list(dict.fromkeys(column for part in parts.values() for column in part))
    title = TITLES.get(name, f"{name.replace('_', ' ').capitalize()}, by name")
    return Picture(
        f"{title}, with 95 % intervals",
        f"Lowest first: {listed([f'{key} {number(known[key])}' for key in order])}.{noise}",
        Table(("", *columns), [[key, *(parts[key].get(column) for column in columns)] for key in order]),
        spec,
    )
