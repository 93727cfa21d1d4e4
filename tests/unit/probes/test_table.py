"""Parquet files as tables; CSV and JSON Lines are tested with the answers that they hold."""

from __future__ import annotations

import datetime as dt
import json
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import table
from tests.support.projects import THINGS_TABLE, Project, shows


def written(path: Path, columns: dict[str, list[object]]) -> Path:
    parquet.write_table(pa.table(columns), path)
    return path


def test_rows_are_those_of_the_same_data_in_json_lines(tmp_path: Path) -> None:
    rows = [
        {"name": "Kim", "trial": 1, "text": "A lamp.", "share": 0.5, "items": ["a", "b"], "more": {"yes": True}},
        {"name": None, "trial": 2, "text": None, "share": 1.0, "items": [], "more": {"yes": None}},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    found = table.read(tmp_path / "a.parquet", "a.parquet")
    assert found == table.read(tmp_path / "a.jsonl", "a.jsonl")
    assert [row.line for row in found.rows] == [1, 2]


def test_values_that_json_does_not_know(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", {"day": [dt.date(2026, 1, 2)], "score": [float("nan")]})
    assert table.read(path, "a").rows[0].fields == {"day": "2026-01-02", "score": None}
    pd.DataFrame({"name": ["Kim", None], "n": [1, None]}).to_parquet(path)
    assert [row.fields for row in table.read(path, "a").rows] == [{"name": "Kim", "n": 1.0}, {"name": None, "n": None}]


def test_nan_in_json_is_missing_and_bytes_in_parquet_are_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": NaN}\n{"text": "A lamp."}\n', "utf-8")
    found = [row.fields["text"] for row in table.read(tmp_path / "a.jsonl", "a.jsonl").rows]
    path = written(tmp_path / "a.parquet", {"text": [None, b"A lamp."]})
    assert found == [row.fields["text"] for row in table.read(path, "a").rows] == [None, "A lamp."]


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_text("name,text\n", "utf-8")
    with pytest.raises(ProbeError, match=r"broken\.parquet: the file cannot be read as Parquet \(.*[Pp]arquet"):
        table.read(broken, "broken.parquet")
    whole = written(tmp_path / "cut.parquet", {"name": ["Kim"] * 1000}).read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ProbeError, match="cannot be read as Parquet"):
        table.read(tmp_path / "cut.parquet", "cut.parquet")
    with pytest.raises(ProbeError, match="the file holds no answers"):
        table.read(written(tmp_path / "empty.parquet", {"name": []}), "empty.parquet")
    with pytest.raises(ProbeError, match="No such file"):
        table.read(tmp_path / "none.parquet", "none.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ProbeError, match=r"need the package pyarrow\. Install it: `pip install \"pytest-fairness\[tab"):
        table.read(broken, "broken.parquet")


def test_a_probe_of_a_parquet_file_measures_the_same_as_the_csv_file(project: Project) -> None:
    project.write("probes/things.csv", THINGS_TABLE)
    pd.read_csv(project.path / "probes/things.csv").to_parquet(project.path / "probes/things.parquet")
    probe = "kind: generation\naxes:\n  name: {unmarked: Alex, marked: [Kim, Lou]}\naudits: {jsd: {limit: 0.5}}\n"
    values = []
    for suffix in ("csv", "parquet"):
        project.probe(f"probes/{suffix}.yaml", f"{probe}responses: {{file: things.{suffix}}}\n")
        items = project.report(f"probes/{suffix}.yaml", target=None)["items"]
        values.append([(item["id"], item["details"]["bits"]) for item in items])  # `value` depends on the probe's name
    assert values[0] == values[1]
    assert len(values[0]) == 2
    project.probe("probes/excel.yaml", f"{probe}responses: {{file: things.xlsx}}\n")
    project.write("probes/things.xlsx", "")
    result = project.run("--fairness", "probes/excel.yaml")
    assert shows(result, "things.xlsx", "is not a file of answers")
