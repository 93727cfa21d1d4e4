"""Tables as CSV, Parquet, LaTeX, HTML and data frames."""

from __future__ import annotations

import csv
import io
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from pytest_fairness.errors import FairnessError
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
        r"\textbackslash{}input\{x\} 5\% \& \$a\_b\textasciicircum{}c\$ \#1 \textasciitilde{} "
        r"\textless{}b\textgreater{}\textbar{} & -0.5 \\"
    )
    assert text[7:] == [r"{}[x] next & -0.5 \\", r"two lines & -0.5 \\", r"\bottomrule", r"\end{tabular}}"]


def test_a_latex_table_that_is_too_wide_breaks_the_lines_of_its_widest_columns() -> None:
    paper = (("A heading of many words", lambda _: "0.5"), *PAPER, ("Value", lambda _: "-0.1 [-0.2, -0.05]"))
    long = "a title that is much too long for one line " * 2
    text = DataTable(COLUMNS, table(f"{long}jsd_word[race=Black]").rows, paper).to_latex()
    widths = [float(width) for width in re.findall(r"p\{([\d.]+)\\linewidth\}", text)]
    assert widths[1] > max(widths[0], widths[2], widths[3]), "the title needs most space"
    space = 6 * (len(widths) - 1) / 345
    assert sum(widths) + space == pytest.approx(1, abs=0.005), "the table is as wide as the text of an article"
    assert r"jsd\_\allowbreak{}word[\allowbreak{}race=\allowbreak{}Black] & -0.5 & -0.1 \mbox{[-0.2, -0.05]} \\" in text


def test_a_latex_table_of_many_long_columns_is_set_smaller_and_keeps_intervals_together() -> None:
    paper = [(f"{number}", lambda _: "-0.12345 [-0.22345, -0.05345]") for number in range(4)]
    text = DataTable(COLUMNS, table("a").rows, paper).to_latex()
    assert r"{\scriptsize" in text
    assert text.count(r"-0.12345 \mbox{[-0.22345, -0.05345]}") == 4


def test_a_latex_table_that_would_be_too_wide_breaks_intervals_and_names_at_hyphens() -> None:
    paper = [*((f"{number}", lambda _: "-0.12345 [-0.22345, -0.05345]") for number in range(6)), PAPER[0]]
    text = DataTable(COLUMNS, table("Middle-Eastern").rows, paper).to_latex()
    widths = [float(width) for width in re.findall(r"p\{([\d.]+)\\linewidth\}", text)]
    assert r"{\scriptsize\setlength{\tabcolsep}{2pt}%" in text
    assert r"-0.12345 [-0.22345, -0.05345] & Middle-Eastern \\" in text
    assert len(widths) == 7
    assert sum(widths) + 4 * 6 / 345 < 1.005


def test_a_long_latex_table_breaks_over_pages() -> None:
    text = table(*map(str, range(100))).to_latex()
    assert r"\begin{longtable}{@{}ll@{}}" in text
    assert r"\endhead" in text
    assert r"\usepackage{array,booktabs,longtable}" in text


def test_html_escapes_and_shows_the_first_rows() -> None:
    html = table("<script>", *map(str, range(99)))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert html.count("<tr>") == 61
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


@pytest.mark.parametrize(("package", "what"), [("pandas", "a data frame"), ("pyarrow", "a Parquet file")])
def test_a_missing_package_is_one_sentence(
    package: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(FairnessError) as raised:
        table("a").to_pandas() if package == "pandas" else table("a").write(tmp_path / "t.parquet")
    assert str(raised.value) == (
        f"{what} needs the package {package}, which is not installed. Install the extra `tables`: "
        'pip install "pytest-fairness[tables]"'
    )
