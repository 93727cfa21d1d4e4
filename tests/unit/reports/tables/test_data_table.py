"""Tables as CSV, Parquet, LaTeX, HTML and data frames."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pandas as pd
import pytest

from pytest_fairness.errors import FairnessError
from pytest_fairness.reports import tables
from pytest_fairness.reports.tables import Column, DataTable

COLUMNS = (
    Column("name", str, "a text"),
    Column("count", int, "a whole number"),
    Column("value", float, "a number"),
    Column("sure", bool, "yes or no"),
)
PAPER = (("Name", lambda row: str(row["name"])), ("50% of {n}_1", lambda row: f"{row['value']}"))


def table(*names: str | None, value: float | None = -0.5) -> DataTable:
    rows = [{"name": name, "count": 3, "value": value, "sure": None} for name in names]
    return DataTable(COLUMNS, rows, PAPER)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_csv_defuses_texts_that_a_spreadsheet_would_run_and_keeps_numbers(start: str) -> None:
    text = f'{start}HYPERLINK("http://example.com")'
    header, row = csv.reader(io.StringIO(table(text).to_csv(), newline=""))
    assert header == ["name", "count", "value", "sure"]
    assert row == ["'" + text, "3", "-0.5", ""]


def test_csv_is_read_back_with_commas_quotes_and_lines() -> None:
    names = ['a, "b"\nc', "plain", "woman=1"]
    rows = list(csv.DictReader(io.StringIO(table(*names).to_csv(), newline="")))
    assert [row["name"] for row in rows] == names


def test_a_data_frame_has_nullable_types() -> None:
    frame = table("a", None, value=None).to_pandas()
    assert frame.dtypes.astype(str).to_dict() == {
        "name": "string", "count": "Int64", "value": "float64", "sure": "boolean",
    }  # fmt: skip
    assert frame["name"].isna().tolist() == [False, True]
    assert frame["value"].isna().all()
    assert table().to_pandas().columns.tolist() == ["name", "count", "value", "sure"]


def test_parquet_holds_the_same_and_describes_its_columns(tmp_path: Path) -> None:
    import pyarrow.parquet

    written = table("=1", "b")
    written.write(tmp_path / "t.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "t.parquet").to_pylist() == written.rows
    schema = pyarrow.parquet.read_schema(tmp_path / "t.parquet")
    assert schema.field("count").metadata == {b"description": b"a whole number"}
    assert str(schema.field("sure").type) == "bool"
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "t.parquet"), written.to_pandas())


def test_latex_escapes_every_special_character() -> None:
    text = table(r"\input{x} 5% & $a_b^c$ #1 ~ <b>|", "[x] next", "two\nlines").to_latex().splitlines()
    assert text[1:6] == [
        r"{\footnotesize\setlength{\tabcolsep}{3pt}%",
        r"\begin{tabular}{@{}ll@{}}",
        r"\toprule",
        r"Name & 50\% of \{n\}\_1 \\",
        r"\midrule",
    ]
    assert text[6] == (
        r"\textbackslash input\{x\} 5\% \& \$a\_b\textasciicircum c\$ \#1 \textasciitilde \space <b>| & -0.5 \\"
    )
    assert text[7:] == [r"{}[x] next & -0.5 \\", r"two lines & -0.5 \\", r"\bottomrule", r"\end{tabular}", "}"]


@pytest.mark.parametrize("columns", [2, 4, 6])
def test_a_latex_table_that_is_too_wide_breaks_the_lines_of_its_widest_columns(columns: int) -> None:
    paper = [
        ("Number", lambda _: "0.5"),
        *((f"{number}", lambda _: "-0.123 [-0.223, -0.053]") for number in range(columns)),
    ]
    long = "a title that is much too long for one line " * 2
    text = DataTable(COLUMNS, table(long).rows, [PAPER[0], *paper]).to_latex()
    title, number, *intervals = (float(width) for width in re.findall(r"p\{([\d.]+)\\linewidth\}", text))
    assert title > max(intervals) - 0.02 > number, "long cells have the most space"
    assert number >= len("Number") / 100, "a short column is not broken"
    between_columns = 6 * (columns + 1) / 345
    assert 0.9 < title + number + sum(intervals) + between_columns <= 1.01, "the table fills the text of an article"


def test_a_long_latex_table_breaks_over_pages() -> None:
    text = table(*map(str, range(100))).to_latex()
    assert r"\begin{longtable}{@{}ll@{}}" in text
    assert r"\endhead" in text
    assert r"\usepackage{array,booktabs,longtable}" in text


def test_html_escapes_and_shows_the_first_rows() -> None:
    html = table("<script>", *map(str, range(99)))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert html.count("</tr>") == 61
    assert "… and 40 more;" in html


def test_the_suffix_selects_the_format(tmp_path: Path) -> None:
    for name in ("t.csv", "t.TEX"):
        table("a").write(tmp_path / name)
        assert (tmp_path / name).read_text("utf-8") == (
            table("a").to_csv() if name == "t.csv" else table("a").to_latex()
        )
    with pytest.raises(
        FairnessError, match=r"t\.xlsx: the suffix selects the format of a table and must be \.csv, \.parquet or \.tex"
    ):
        table("a").write(tmp_path / "t.xlsx")
    table("a").write(tmp_path / "new" / "t.csv")
    assert (tmp_path / "new" / "t.csv").exists()
    with pytest.raises(FairnessError, match=r"cannot be written \(File exists\)"):
        table("a").write(tmp_path / "t.csv" / "t.csv")


def test_a_missing_package_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "find_spec", lambda _: None)
    with pytest.raises(FairnessError) as raised:
        table("a").write(tmp_path / "t.parquet")
    assert str(raised.value) == (
        f"{tmp_path / 't.parquet'}: a Parquet file needs the package pyarrow, which is not installed. "
        'Install the extra `tables`: pip install "pytest-fairness[tables]"'
    )
