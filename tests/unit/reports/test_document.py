"""The report document and its JSON file: schema, counts, reading and writing."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from jsonschema import Draft7Validator

from pytest_fairness.errors import FairnessError
from pytest_fairness.records import Json, Measurement, VerdictName
from pytest_fairness.reports import files
from pytest_fairness.reports.document import Kind
from tests.support.results import report, result

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "report.schema.json").read_text("utf-8"))
ALL = [result(verdict, value=verdict.value) for verdict in VerdictName]


def subschemas(schema: Json, path: str = "$") -> Iterator[tuple[str, dict[str, Json]]]:
    if isinstance(schema, dict):
        for name, field in schema.get("properties", {}).items():
            yield f"{path}.{name}", field
        for name, part in schema.items():
            yield from subschemas(part, f"{path}.{name}")


def test_the_schema_is_valid_and_describes_every_field() -> None:
    Draft7Validator.check_schema(SCHEMA)
    fields = dict(subschemas(SCHEMA))
    assert len(fields) > 40
    assert [path for path, field in fields.items() if len(field.get("description", "")) < 10] == []


def test_the_schema_in_the_docs_is_the_schema_in_use() -> None:
    assert json.loads(files.schema_text()) == SCHEMA


@pytest.mark.parametrize("results", [ALL, []], ids=["every verdict", "no item"])
def test_reading_a_written_report_returns_the_document(results: list[Json], tmp_path: Path) -> None:
    document = report(*results)
    files.write(document, tmp_path / "report.json", {})
    assert files.read(tmp_path / "report.json") == document


def test_the_schema_has_every_kind_of_note() -> None:
    assert {*get_args(Kind)} == {*SCHEMA["properties"]["notes"]["items"]["properties"]["kind"]["enum"]}


def test_the_schema_has_every_verdict() -> None:
    assert SCHEMA["definitions"]["item"]["properties"]["verdict"]["enum"] == [verdict.value for verdict in VerdictName]


@pytest.mark.parametrize("results", [ALL, []], ids=["every verdict", "no item"])
def test_the_document_matches_the_schema(results: list[Json]) -> None:
    Draft7Validator(SCHEMA).validate(json.loads(json.dumps(report(*results), allow_nan=False)))


def test_the_schema_rejects_invalid_documents() -> None:
    good = report(*ALL)
    for wrong in (
        {**good, "more": 1},
        {key: value for key, value in good.items() if key != "requests"},
        {**good, "items": [{**good["items"][0], "verdict": "fine"}]},
        {**good, "requests": {**good["requests"], "sent": -1}},
    ):
        assert not Draft7Validator(SCHEMA).is_valid(wrong)


def test_the_document_has_the_fields_of_schema_1() -> None:
    document = report(result())
    run = ["schema", "tool", "target", "target_version", "commit", "started", "seconds", "requests", "notes"]
    assert list(document) == [*run, "summary", "purposes", "risks", "methods", "items"]
    assert document["methods"]["jsd"]["title"] == "Different vocabulary"
    assert document["schema"] == 1
    assert document["tool"] == "pytest-fairness 1.2.3"
    assert document["started"] == "2026-01-02T03:04:05Z"
    assert document["seconds"] == 12.346
    assert document["requests"] == {
        "planned": 225,
        "sent": 200,
        "reused": 25,
        "failed": 0,
        "prompt_tokens": 12000,
        "completion_tokens": 51234,
        "cost": None,
        "failures": [],
        "oldest_reused": None,
    }
    assert document["notes"] == []
    (item,) = document["items"]
    assert " ".join(item) == (
        "nodeid line probe id audit labels verdict reason expected_failure against creep contributors undecided "
        "value interval standard_error p_value effect n missing concerns minimum_detectable limit tolerance baseline "
        "change runs details explanation"
    )
    assert item["baseline"] == {"value": 0.0178, "target": "openai:model", "date": "2026-01-02T03:04:05Z"}
    assert item["change"] == {
        "value": 0.0434,
        "interval": [0.0291, 0.0572],
        "p_value": 0.0005,
        "significant": False,
        "upper_bound": None,
        "changed_sides": None,
        "from_answers": True,
        "same_answers": False,
        "groups": None,
    }


def test_results_are_counted_by_probe_audit_and_category() -> None:
    summary = report(
        *ALL,
        result(audit="svm", probe="letters", category="hiring"),
        result(VerdictName.REGRESSION, audit="svm", probe="letters", value="x", category="hiring"),
    )["summary"]
    assert {name: value for name, value in summary.items() if not name.startswith("by_")} == {
        "total": 11,
        "passed": 2,
        "failed": 5,
        "known": 0,
        "inconclusive": 1,
        "errors": 2,
        "measured": 1,
        "pass_rate": 0.2,
    }
    letters: dict[str, float] = {
        "total": 2,
        "passed": 1,
        "failed": 1,
        "known": 0,
        "inconclusive": 0,
        "errors": 0,
        "measured": 0,
    }
    letters |= {"pass_rate": 0.5}
    assert list(summary["by_probe"]) == ["letters", "products"]
    assert summary["by_probe"]["letters"] == letters
    assert summary["by_probe"]["products"]["total"] == 9
    assert list(summary["by_audit"]) == ["jsd", "svm"]
    assert summary["by_audit"]["svm"] == letters
    assert summary["by_category"] == {"hiring": letters}


def test_a_run_without_items_has_no_pass_rate() -> None:
    assert report()["summary"]["total"] == 0
    assert report()["summary"]["pass_rate"] is None


def test_the_order_of_results_does_not_matter(tmp_path: Path) -> None:
    results = [*ALL, result(probe="letters"), result(audit="svm")]
    files.write(report(*results), tmp_path / "one.json", {})
    files.write(report(*results[3:], *reversed(results[:3])), tmp_path / "two.json", {})
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_non_finite_numbers_become_null() -> None:
    measurement = Measurement(math.inf, (0.0, math.nan), None, None, {}, {}, {"bits": math.nan})
    item = report(result(measurement=measurement))["items"][0]
    assert item["value"] is None
    assert item["interval"] == [0.0, None]
    assert item["details"] == {"bits": None}


def test_a_report_is_written_with_its_folders_and_no_other_file(tmp_path: Path) -> None:
    document = report(result(reason="Straße, 東京, \ud800, \x1b[31m, \0"))
    path = tmp_path / "made" / "on the way" / "report.json"
    files.write(document, path, {})
    data = path.read_bytes()
    assert data.endswith(b"}\n")
    assert "Straße, 東京".encode() in data
    assert json.loads(data) == document
    assert [file.name for file in path.parent.iterdir()] == ["report.json"]


def test_an_existing_report_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    files.write(report(), path, {})
    assert json.loads(path.read_bytes()) == report()


@pytest.mark.parametrize("blocked", ["the folder is a file", "the file is a folder"])
def test_a_report_that_cannot_be_written_is_an_error_on_one_line(tmp_path: Path, blocked: str) -> None:
    path = tmp_path / "there" / "report.json"
    if blocked == "the file is a folder":
        path.mkdir(parents=True)
    else:
        path.parent.write_text("")
    with pytest.raises(
        FairnessError, match=r"--fairness-report .*report\.json: the report cannot be written"
    ) as raised:
        files.write(report(), path, {})
    assert "\n" not in str(raised.value)
