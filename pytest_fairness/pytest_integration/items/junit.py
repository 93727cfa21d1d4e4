"""Entries of items in pytest's JUnit report: properties of a test case, and test cases that count as skipped."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import pytest
from _pytest.junitxml import bin_xml_escape, xml_key

from pytest_fairness.records import ItemResult
from pytest_fairness.reports.findings import finding


def skip(config: pytest.Config, report: pytest.TestReport, reason: str) -> None:
    """Count a passed test case in the JUnit report as skipped, with `reason` as its message."""
    xml = config.stash.get(xml_key, None)
    if xml is not None:
        skipped = Element("skipped", type="fairness.inconclusive", message=bin_xml_escape(reason))
        xml.node_reporter(report).append(skipped)
        xml.stats["passed"] -= 1  # pytest counts the report as passed


def properties(result: ItemResult, target: str | None) -> list[tuple[str, str | float]]:
    """Return the JUnit properties of a result as (name, value) pairs; pytest writes values with `str`.

    Args:
        result: the result.
        target: name of the target, or `None` if no requests were sent.
    """
    item = result.to_json()
    low, high = item["interval"] or (None, None)
    effect = item["effect"] or {}
    found = {
        "value": item["value"],
        "interval_low": low,
        "interval_high": high,
        "effect": effect.get("value"),
        "size": effect.get("size"),
        "baseline": (item["baseline"] or {}).get("value"),
        "limit": item["limit"],
        "verdict": item["verdict"],
        "finding": finding(item, result.method),
        "reason": item["reason"],
        "target": target,
    }
    return [(name, value) for name, value in found.items() if value is not None]
