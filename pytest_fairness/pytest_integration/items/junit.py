"""Properties of an item's JUnit test case."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.records import Json


def properties(item: Mapping[str, Json]) -> list[tuple[str, str | float]]:
    """Return value, baseline, limit and verdict of an item of the report document, if known, as flat pairs."""
    found = {
        "value": item["value"],
        "baseline": (item["baseline"] or {}).get("value"),
        "limit": item["limit"],
        "verdict": item["verdict"],
    }
    return [(name, value) for name, value in found.items() if value is not None]
