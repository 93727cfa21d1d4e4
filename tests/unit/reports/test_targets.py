"""Several targets in the reports."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft7Validator

from pytest_fairness.records import current_id, item_id, target_name, without_target
from pytest_fairness.reports import files, markdown, report_items, terminal
from pytest_fairness.reports.document import report_document
from pytest_fairness.reports.formatting import width_of
from pytest_fairness.reports.view import views
from tests.support.results import result

NAMES = [f"model-{number}" for number in range(6)]


def report(names: list[str], **more: Any) -> dict[str, Any]:
    items = [
        replace(found, id=f"{found.id[:-1]},target={name}]", nodeid=f"{found.nodeid[:-1]},target={name}]", **more)
        for name in names
        for found in (result(value="Black"), result(value="Asian"))
    ]
    whose = {name: f"openai:{name}" for name in names}
    return report_document(items, tool_version="1", target="all", started=0.0, seconds=1.0, requests={}, targets=whose)


@pytest.mark.parametrize(
    ("item", "labels", "target"),
    [
        (item_id("jsd", "race=Black", "small"), {"race": "Black"}, "small"),
        (item_id("uncertainty", None, "small"), {}, "small"),
        (item_id("jsd", "race=Black"), {"race": "Black"}, None),
        (item_id("uncertainty", None), {}, None),
        (item_id("jsd", "name=a@b"), {"name": "a@b"}, None),
        (item_id("jsd", "target=men"), {"target": "men"}, None),
        (item_id("jsd", "target=men", "men"), {"target": "men"}, "men"),
        (item_id("jsd", "target=men", "small"), {"target": "men"}, "small"),
    ],
)
def test_the_target_name_is_read_from_the_item_id(item: str, labels: dict[str, str], target: str | None) -> None:
    assert target_name(item, labels) == target


@pytest.mark.parametrize(
    ("former", "current"),
    [
        ("jsd[race=Black]@small", "jsd[race=Black,target=small]"),
        ("uncertainty@small", "uncertainty[target=small]"),
        ("jsd[name=a@b]@c", "jsd[name=a@b,target=c]"),
        ("jsd[name=a@b]", "jsd[name=a@b]"),
        ("jsd[race=Black,target=small]", "jsd[race=Black,target=small]"),
        ("@small", "@small"),
    ],
)
def test_a_former_id_is_read_as_the_current_one(former: str, current: str) -> None:
    assert current_id(former) == current


@pytest.mark.parametrize("item", ["jsd[race=Black]", "uncertainty", "jsd[target=small]"])
def test_the_name_of_the_target_can_be_taken_off(item: str) -> None:
    audit, _, subject = item.removesuffix("]").partition("[")
    assert without_target(item_id(audit, subject or None, "small"), "small") == item


def test_the_document_matches_the_schema_and_counts_by_target() -> None:
    written = report(NAMES)
    Draft7Validator(json.loads(files.schema_text())).validate(written)
    assert list(written["summary"]["by_target"]) == NAMES
    assert written["summary"]["by_target"]["model-3"]["total"] == 2
    assert written["summary"]["by_target"]["model-3"]["by_audit"]["jsd"]["total"] == 2


def test_an_unnamed_target_has_no_counts_by_target_and_no_table() -> None:
    written = report_document([result()], tool_version="1", target="local", started=0.0, seconds=1.0, requests={})
    assert "by_target" not in written["summary"]
    assert report_items.target_table(written, views(written), lambda view: view.verdict) is None


def test_the_table_has_a_row_per_item_and_a_column_per_target() -> None:
    table = report_items.target_table(report(["b", "a"]), views(report(["b", "a"])), lambda view: view.item["id"])
    assert table == (
        ["@a", "@b"],
        [
            ["jsd[race=Asian]", "jsd[race=Asian,target=a]", "jsd[race=Asian,target=b]"],
            ["jsd[race=Black]", "jsd[race=Black,target=a]", "jsd[race=Black,target=b]"],
        ],
        ["2 of 2 passed", "2 of 2 passed"],
    )


@pytest.mark.parametrize("width", [50, 80, 200])
def test_the_table_fits_the_terminal(width: int) -> None:
    lines = [line.text for line in terminal.summary(report(NAMES), width)]
    assert "audits by target" in lines
    assert max(map(width_of, lines)) <= width


def test_a_single_named_target_has_no_table() -> None:
    assert "audits by target" not in [line.text for line in terminal.summary(report(["only"]), 80)]
    assert "Audits by target" not in markdown.report(report(["only"]))
