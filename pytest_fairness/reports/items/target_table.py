"""Table with a row for each audit item and a column for each target, for runs with several targets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pytest_fairness.records import Json
from pytest_fairness.reports.items.report_items import Item, target_name

Cells = Mapping[str, Item]
"""The results of one audit item, by name of the target."""


def items_by_target(document: Mapping[str, Json]) -> tuple[list[str], list[tuple[str, Cells]]]:
    """Return the names of the targets, and a row for each audit item; two empty lists if the run's target has no name.

    A row has a name and the item's results by target. The name is the item's id without the target's name; in a report
    with several probes, the name begins with the probe's name.
    """
    names: list[str] = list(document["summary"].get("by_target", ()))
    rows: defaultdict[tuple[str, str], dict[str, Item]] = defaultdict(dict)
    for item in document["items"]:
        if (name := target_name(item["id"])) in names:
            rows[item["probe"], item["id"].removesuffix(f"@{name}")][str(name)] = item
    several = len({probe for probe, _ in rows}) > 1
    return names, [(f"{probe} {name}" if several else name, rows[probe, name]) for probe, name in sorted(rows)]


def passed(document: Mapping[str, Json], name: str) -> str:
    """Return the number of a target's passed items: `3 of 4 passed`."""
    counts = document["summary"]["by_target"][name]
    return f"{counts['passed']} of {counts['total']} passed"
