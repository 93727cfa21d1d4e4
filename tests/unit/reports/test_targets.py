"""Several targets in the reports."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft7Validator

from pytest_fairness.reports import files, markdown, report_items, terminal
from pytest_fairness.reports.document import report_document
from pytest_fairness.reports.formatting import width_of
from pytest_fairness.reports.report_items import target_name
from tests.support.results import result

NAMES = [f"model-{number}" for number in range(6)]


def report(names: list[str], **more: Any) -> dict[str, Any]:
    items = [
        replace(found, id=f"{found.id}@{name}", nodeid=f"{found.nodeid}@{name}", **more)
        for name in names
        for found in (result(value="Black"), result(value="Asian"))
    ]
    whose = {name: f"openai:{name}" for name in names}
    return report_document(items, tool_version="1", target="all", started=0.0, seconds=1.0, requests={}, targets=whose)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("jsd[race=Black]@small", "small"),
        ("uncertainty@small", "small"),
        ("jsd[race=Black]", None),
        ("jsd[name=a@b]", None),
        ("jsd[name=a@b]@c", "c"),
        ("@small", None),
    ],
)
def test_the_target_name_is_read_from_the_item_id(name: str, target: str | None) -> None:
    assert target_name(name) == target


def test_the_document_matches_the_schema_and_counts_by_target() -> None:
    written = report(NAMES)
    Draft7Validator(json.loads(files.schema_text())).validate(written)
    assert list(written["summary"]["by_target"]) == NAMES
    assert written["summary"]["by_target"]["model-3"]["total"] == 2
    assert written["summary"]["by_target"]["model-3"]["by_audit"]["jsd"]["total"] == 2


def test_an_unnamed_target_has_no_counts_by_target_and_no_table() -> None:
    written = report_document([result()], tool_version="1", target="local", started=0.0, seconds=1.0, requests={})
    assert "by_target" not in written["summary"]
    assert report_items.items_by_target(written) == ([], [])


def test_the_table_has_a_row_per_item_and_a_column_per_target() -> None:
    names, rows = report_items.items_by_target(report(["b", "a"]))
    assert names == ["a", "b"]
    assert [title for title, _ in rows] == ["jsd[race=Asian]", "jsd[race=Black]"]
    assert {name: item["id"] for name, item in rows[0][1].items()} == {
        "a": "jsd[race=Asian]@a",
        "b": "jsd[race=Asian]@b",
    }


@pytest.mark.parametrize("width", [50, 80, 200])
def test_the_table_fits_the_terminal(width: int) -> None:
    lines = [line.text for line in terminal.summary(report(NAMES), width)]
    assert "audits by target" in lines
    assert max(map(width_of, lines)) <= width


def test_a_single_named_target_has_no_table() -> None:
    assert "audits by target" not in [line.text for line in terminal.summary(report(["only"]), 80)]
    assert "Audits by target" not in markdown.report(report(["only"]))
