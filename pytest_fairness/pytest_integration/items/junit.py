"""Entries of items in pytest's JUnit report: properties of a test case, and inconclusive test cases."""

from __future__ import annotations

import pytest
from _pytest.junitxml import bin_xml_escape, xml_key

from pytest_fairness.records import ItemResult
from pytest_fairness.reports.items.findings import finding


def count_inconclusive(config: pytest.Config, report: pytest.TestReport, reason: str | None) -> None:
    """Count an inconclusive test case as skipped with this reason, or as passed if `reason` is `None`.

    pytest has counted the report as skipped already.
    """
    xml = config.stash.get(xml_key, None)
    if xml is None:
        return
    nodes = xml.node_reporter(report).nodes
    [skipped] = (node for node in nodes if node.tag == "skipped")
    if reason is None:
        nodes.remove(skipped)
        xml.stats["skipped"] -= 1
        xml.stats["passed"] += 1
    else:
        skipped.text = None
        skipped.attrib |= {"type": "fairness.inconclusive", "message": bin_xml_escape(reason)}


def note_reused_answers(config: pytest.Config, text: str) -> None:
    """Add the phrase of `document.reused_answers`, unless it is empty, as a property `requests` of the test suite."""
    xml = config.stash.get(xml_key, None)
    if xml is not None and text:
        xml.add_global_property("requests", text)


def properties(result: ItemResult, target: str | None) -> list[tuple[str, str | float]]:
    """Return the JUnit properties of a result as (name, value) pairs; pytest writes values with `str`.

    Args:
        result: the result.
        target: name of the target or of the file with the answers; `None` leaves out this property.
    """
    item = result.to_json()
    low, high = item["interval"] or (None, None)
    effect = item["effect"] or {}
    values = {
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
    return [(name, value) for name, value in values.items() if value is not None]
