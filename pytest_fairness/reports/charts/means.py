"""Charts of means with confidence intervals, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from pytest_fairness.reports.formatting import number
from pytest_fairness.reports.items.report_items import Item

TITLES = {
    "similarity": "Similarity to the neutral list, by value of the attribute",
    "entropy": "Entropy in bits",
    "missing": "Share of missing items, by value of the attribute",
    "ndcg": "NDCG, by value of the attribute",
    "scores": "Mean score, by group",
    "mean": "Mean of the numbers, by value of the attribute",
    "quantile": "Quantile of the numbers, by value of the attribute",
    "rank": "Mean rank as a share of the ranking's length, by value of the attribute",
}
NUMBERS = ("mean", "quantile")
"""Names of details whose numbers may have any unit; the axes of their charts need not include 0."""


def means(item: Item, name: str, detail: Json) -> Chart | None:
    """Return a chart of the means in a detail, with 95 % confidence intervals; `None` if the detail has other content.

    The lowest mean comes first.

    Args:
        item: item of the report document.
        name: name of the detail, such as `similarity`.
        detail: by name, such as the name of a group, a mapping with the mean and its interval.
    """
    if not isinstance(detail, Mapping) or not detail:
        return None
    parts = {str(key): part for key, part in detail.items() if isinstance(part, Mapping)}
    known = {
        key: value for key, part in parts.items() if (value := as_float(part.get("mean", part.get(name)))) is not None
    }
    if len(parts) < len(detail) or not known or len(known) < len(parts):
        return None
    order = sorted(known, key=lambda key: known[key])
    rows: list[dict[str, Json]] = []
    for key in order[: 2 * SHOWN]:
        ends = interval_of(parts[key].get("interval"))
        rows.append({"name": key, "mean": known[key], **({"low": ends[0], "high": ends[1]} if ends else {})})
    spec = interval_plot(rows, name.replace("_", " "), domain=_range(rows) if name in NUMBERS else None)
    floor = item["details"].get("noise_floor") if name == "similarity" else None
    between = as_float(floor.get("mean")) if isinstance(floor, Mapping) else None
    neutral = ""
    if between is not None:
        spec["layer"] += reference_line(between, "two neutral lists")
        neutral = f" Similarity of two neutral lists: {number(between)}."
    columns = list(dict.fromkeys(column for part in parts.values() for column in part))
    title = TITLES.get(name, f"{name.replace('_', ' ').capitalize()}, by name")
    return Chart(
        f"{title}, with 95 % confidence intervals",
        f"Lowest first: {joined([f'{key} {number(known[key])}' for key in order])}.{neutral}",
        Table(("", *columns), [[key, *(parts[key].get(column) for column in columns)] for key in order]),
        spec,
    )


def _range(rows: Sequence[Mapping[str, Json]]) -> tuple[float, float]:
    """Return the range of the means and intervals, with a margin of 5 % on either side."""
    ends = [row[name] for row in rows for name in ("mean", "low", "high") if name in row]
    margin = 0.05 * (max(ends) - min(ends)) or 1.0
    return min(ends) - margin, max(ends) + margin
