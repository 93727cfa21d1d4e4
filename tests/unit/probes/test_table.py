"""Tables in CSV as programs write it, Excel and Parquet; rows are tested with the answers that they hold, too."""

from __future__ import annotations

import csv
import datetime as dt
import json
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import table
from tests.support.projects import THINGS_TABLE, Project, says, shows
from tests.support.workbooks import workbook


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
    project.probe("probes/other.yaml", f"{probe}responses: {{file: things.txt}}\n")
    project.write("probes/things.txt", "")
    result = project.run("--fairness", "probes/other.yaml")
    assert shows(result, "things.txt", "is not a file of answers")


# CSV as programs write it

TEXT = st.text(st.characters(codec="utf-8"))
ROWS = [("Kim", "Ä lamp"), ("Lou", "one; two, three|four")]


def fields_of(path: Path) -> list[tuple[object, ...]]:
    return [tuple(row.fields.values()) for row in table.read(path, path.name).rows]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("stated", [True, False])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_encoding_and_line_ends_are_recognised(
    delimiter: str, stated: bool, end: str, encoding: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", encoding=encoding, newline="") as file:
        file.write(f"sep={delimiter}{end}" if stated else "")
        csv.writer(file, delimiter=delimiter, lineterminator=end).writerows([("name", "text"), *ROWS])
    assert fields_of(path) == ROWS
    assert [row.line for row in table.read(path, "a").rows] == ([3, 4] if stated else [2, 3])
    assert any("Windows-1252" in note for note in table.notes(path)) == (encoding == "cp1252")
    path.write_bytes(
        path.read_bytes()
        + f"Sam{end}".encode({"utf-16": "utf-16-le"}.get(encoding, encoding if "-16" in encoding else "ascii"))
    )
    with pytest.raises(ProbeError, match=rf"^a:{5 if stated else 4}: the row has 1 field, but the header has 2"):
        table.read(path, "a")


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1), st.sampled_from(",;\t|"))
def test_all_texts_are_read_as_they_are_written(rows: list[tuple[str, str]], delimiter: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
        assert table.notes(path) or fields_of(path) == rows, "numbers with decimal commas are no texts"


def test_decimal_commas_of_semicolon_files_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("name;score;mixed;id\nKim;1.234,5;3,5;7\nLou;-4;x;8\nSam;N/A;1;9\n", "utf-8")
    assert fields_of(path)[:2] == [("Kim", "1234.5", "3,5", "7"), ("Lou", "-4", "x", "8")]
    assert table.notes(path) == ["has numbers with decimal commas in the columns score"]
    path.write_text('name,score\nKim,"3,5"\n', "utf-8")
    assert fields_of(path) == [("Kim", "3,5")]
    assert table.notes(path) == []


@pytest.mark.parametrize("cell", ["", "  ", "N/A", "#N/A", "#NAME?", "#DIV/0!", "NaN"])
def test_cells_without_a_value_are_missing_answers(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"name,text\nKim,{cell}\nLou,none\n", "utf-8")
    rows = table.TableFiles([(path, "a.csv")]).rows(["name", "text"])
    assert [row.fields["text"] for row in rows] == ["", "none"]


def test_a_file_that_is_no_text_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"name,text\nKim,lamp\nLou,\x81\n")
    with pytest.raises(ProbeError, match=r"^a:3: not UTF-8 text: save the file in the encoding UTF-8"):
        table.read(tmp_path / "a.csv", "a")


# Excel


def test_the_first_sheet_of_an_excel_file_is_a_table(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    rows: list[list[object]] = [["name", " text ", "n", None], ["Kim", "A lamp.", 1, "left out"], [None] * 4]
    path = workbook(tmp_path / "a.xlsx", [[None] * 4, *rows, ["Lou", "#NAME?", 2.5, None], ["Sam", "N/A", True, None]])
    found = table.read(path, "a.xlsx")
    assert found.columns == ("name", "text", "n")
    assert [(row.line, *row.fields.values()) for row in found.rows] == [
        (3, "Kim", "A lamp.", 1),
        (5, "Lou", "", 2.5),
        (6, "Sam", "", True),
    ]
    with pytest.raises(ProbeError, match=r"a.xlsx:1: the column 'a' occurs twice"):
        table.read(workbook(path, [["a", "a"], [1, 2]]), "a.xlsx")
    with pytest.raises(ProbeError, match="the file holds no answers"):
        table.read(workbook(path, [["a", "b"]]), "a.xlsx")


def test_excel_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.xlsx"
    broken.write_text("name,text\n", "utf-8")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "python_calamine", None)
        with pytest.raises(ProbeError, match=r"need the package python-calamine\. Install it: `pip install \"pytest"):
            table.read(broken, "broken.xlsx")
    pytest.importorskip("python_calamine")
    for name, message in [("broken.xlsx", "cannot be read as Excel"), ("none.xlsx", "No such file")]:
        with pytest.raises(ProbeError, match=message):
            table.read(tmp_path / name, name)


def test_the_header_says_what_was_assumed_of_a_file(project: Project) -> None:
    rows = [f"{name};Une lampe très claire numéro {number};0,5" for name in ("Alex", "Kim") for number in range(10)]
    path = project.write("probes/said.csv", "")
    path.write_bytes("\r\n".join(["name;text;score", *rows]).encode("cp1252"))
    probe = "kind: generation\naxes:\n  name: {unmarked: Alex, marked: [Kim]}\naudits: {refusals: {limit: 0.5}}\n"
    project.probe(text=f"{probe}language: fr\nresponses: {{file: said.csv}}\n")
    result = project.run("--fairness", "--fairness-report", "report.json", target=None)
    assert says(result, "fairness: probes/said.csv is not UTF-8 and is read as Windows-1252")
    assert says(result, "fairness: probes/said.csv has numbers with decimal commas in the columns score")
    notes = [note["text"] for note in project.read("report.json")["notes"] if note["kind"] == "data-file"]
    assert [note.partition(" has ")[2] for note in notes] == ["", "numbers with decimal commas in the columns score."]
    (item,) = project.read("report.json")["items"]
    assert item["n"] == {"Alex": 10, "Kim": 10}
    assert item["missing"] == {"Alex": 0, "Kim": 0}
