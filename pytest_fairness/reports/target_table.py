"""Several targets side by side: what each audit item measured of each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports.report_items import Item, target_of

Cells = Mapping[str, Item]
"""The items of one audit item, by the name of the target."""


def against_items(document: Mapping[str, Json]) -> tuple[list[str], list[tuple[str, Cells]]]:
    """Targets against audit items.

    Args:
        document: the report document.

    Returns:
        Names of the targets, and a row for each audit item, by probe and id: its name without that of a target, led by
        the probe's where there are several probes, and its items by target. Nothing where targets have no names.
    """
    names: list[str] = list(document["summary"].get("by_target", ()))
    rows: defaultdict[tuple[str, str], dict[str, Item]] = defaultdict(dict)
    for item in document["items"]:
        if (name := target_of(item["id"])) in names:
            rows[item["probe"], item["id"].removesuffix(f"@{name}")][str(name)] = item
    several = len({probe for probe, _ in rows}) > 1
    return names, [(f"{probe} {name}" if several else name, rows[probe, name]) for probe, name in sorted(rows)]


def passed(document: Mapping[str, Json], name: str) -> str:
    """How many of a target's items passed: `3 of 4 passed`."""
    counts = document["summary"]["by_target"][name]
    return f"{counts['passed']} of {counts['total']} passed"
