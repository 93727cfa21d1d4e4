"""Tables of measurements and words, for export as CSV, Parquet, LaTeX, HTML and pandas data frames."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_fairness.errors import FairnessError, counted
from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import number, printable, signed, with_interval
from pytest_fairness.reports.view import UNKNOWN, Item, unit_of
from pytest_fairness.resources import replace_file

if TYPE_CHECKING:
    import pandas as pd


# Class `DataTable`: rows with named and typed columns, which can be shown in a notebook or written to a file.

Cell = str | int | float | bool | None
"""A value of a table; `None` for an unknown value."""
Row = Mapping[str, Cell]

PANDAS_TYPES = {str: "string", int: "Int64", float: "float64", bool: "boolean"}


class Column(NamedTuple):
    """Column of a table: its name, and the type and meaning of its values."""

    name: str
    type: type[str] | type[int] | type[float] | type[bool]
    meaning: str


@dataclass(frozen=True, repr=False)
class DataTable:
    """Rows with named and typed columns.

    A notebook shows the main columns. `to_pandas()` returns a data frame with all columns, `write("name.csv")` writes a
    file, and `rows` has plain Python values.

    Attributes:
        columns: the columns, in order.
        rows: rows; each maps the name of every column to a value.
        paper_columns: columns of the LaTeX table and of notebooks, each with its heading and a function from a row to
            the text of the cell.
    """

    columns: Sequence[Column]
    rows: Sequence[Row]
    paper_columns: Sequence[tuple[str, Callable[[Row], str]]]

    @classmethod
    def joined(cls, tables: Iterable[DataTable], empty: DataTable) -> DataTable:
        """Return one table with the rows of all tables and the columns of `empty`."""
        return cls(empty.columns, list(chain.from_iterable(table.rows for table in tables)), empty.paper_columns)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<DataTable of {len(self)} rows: {', '.join(column.name for column in self.columns)}>"

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas data frame with nullable types."""
        import pandas as pd

        names = [column.name for column in self.columns]
        frame = pd.DataFrame([*self.rows], columns=names, dtype=object)
        return frame.astype({column.name: PANDAS_TYPES[column.type] for column in self.columns})

    def to_csv(self) -> str:
        """Return the table as CSV; text that a spreadsheet would read as a formula begins with an apostrophe."""
        names = [column.name for column in self.columns]
        return as_csv(names, [[row[name] for name in names] for row in self.rows])

    def to_latex(self) -> str:
        """Return the table as a LaTeX `tabular` (if it is long, a `longtable`) for the packages array and booktabs."""
        return _as_latex(self._for_paper())

    def write(self, path: str | Path) -> None:
        """Write the table to a file in the format of its suffix (`.csv`, `.parquet` or `.tex`); create missing folders.

        Raises:
            FairnessError: the suffix is unknown, the extra `tables` is not installed, or the file cannot be written.
        """
        path = Path(path)
        require_writable(path)
        match path.suffix.lower():
            case ".csv":
                data = self.to_csv().encode("utf-8", "backslashreplace")
            case ".tex":
                data = self.to_latex().encode("utf-8", "backslashreplace")
            case _:
                data = self._parquet()
        write_file(path, data)

    def _repr_html_(self) -> str:
        frame = self._for_paper()
        return as_html([*frame.columns], frame.to_numpy().tolist())

    def _for_paper(self) -> pd.DataFrame:
        import pandas as pd

        columns = {heading: [text(row) for row in self.rows] for heading, text in self.paper_columns}
        return pd.DataFrame(
            {heading: cells for heading, cells in columns.items() if any(cells) or not self.rows}, dtype=object
        )

    def _parquet(self) -> bytes:
        import pyarrow as pa

        frame = self.to_pandas()
        described = [
            field.with_metadata({"description": column.meaning})
            for field, column in zip(pa.Schema.from_pandas(frame), self.columns, strict=True)
        ]
        return frame.to_parquet(index=False, schema=pa.schema(described))


def write_file(path: Path, data: bytes) -> None:
    try:
        replace_file(path, data)
    except OSError as error:
        raise FairnessError(f"{path}: cannot be written ({error.strerror or error}). Name another file.") from error


def require_writable(path: Path) -> None:
    """Raise an error if a table cannot be written to this file; called before any work is done.

    Raises:
        FairnessError: the suffix is unknown, or the extra `tables` is not installed.
    """
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet", ".tex"):
        raise FairnessError(f"{path}: the suffix selects the format of a table and must be .csv, .parquet or .tex.")
    if suffix == ".parquet" and find_spec("pyarrow") is None:
        raise FairnessError(
            f"{path}: a Parquet file needs the package pyarrow, which is not installed. Install the extra `tables`: "
            'pip install "pytest-fairness[tables]"'
        )


# Table of measurements: one row for each item of a report document.

MEASUREMENT_COLUMNS = (
    Column("probe", str, "name of the probe, or of the check (`fairness_check`) in a Python test"),
    Column("item", str, "id of the item, such as `jsd[race=Black]`"),
    Column("audit", str, "name of the audit"),
    Column("title", str, "title of the audit in plain words"),
    Column("groups", str, "groups that are compared, such as `Black vs White`"),
    Column("n", int, "usable answers of all groups together"),
    Column("missing", int, "answers that were refused, blocked, unreadable, cut off or failed"),
    Column("n_by_group", str, "usable answers by group, such as `Black 60, White 60`"),
    Column("missing_by_group", str, "missing answers by group"),
    Column("value", float, "estimate"),
    Column("unit", str, "unit of the columns value, limit and baseline; for a score, its name; empty for a share"),
    Column("standard_error", float, "standard error of the estimate"),
    Column("interval_low", float, "lower bound of the 95 % confidence interval of the estimate"),
    Column("interval_high", float, "upper bound of the 95 % confidence interval of the estimate"),
    Column("p_value", float, "p-value of the null hypothesis that the groups do not differ"),
    Column(
        "size", str, "size of the effect: none, small, moderate or large; empty if unknown or without an effect size"
    ),
    Column("effect", str, "name of the effect size, such as `Cohen’s h`"),
    Column("effect_value", float, "effect size"),
    Column("tolerance", float, "worst acceptable change from the baseline"),
    Column("limit", float, "worst acceptable value, if the probe sets a limit"),
    Column("baseline", float, "value in the baseline"),
    Column("change", float, "change since the baseline; above 0 is worse"),
    Column("change_unit", str, "unit of change and tolerance: the unit of the value, or `grown words`"),
    Column("change_low", float, "lower bound of the 95 % confidence interval of the change"),
    Column("change_high", float, "upper bound of the 95 % confidence interval of the change"),
    Column("change_p_value", float, "one-sided p-value of the null hypothesis that nothing changed"),
    Column("verdict", str, "verdict; empty or `measured` if the item was not judged"),
    Column("reason", str, "reason of the verdict, or the error"),
    Column("target", str, "audited target"),
    Column("date", str, "start of the run, in UTC"),
)


GROWN_WORDS = "grown words"
"""Unit of the change of an audit that counts words that grew since the baseline."""


def measurement_table(document: Mapping[str, Json]) -> DataTable:
    """Return the table of a report document's items, in the document's order."""
    methods = document.get("methods", {})
    run = {"target": document["target"], "date": document["started"]}
    return DataTable(
        MEASUREMENT_COLUMNS,
        [{**_row(item, methods.get(item["audit"], {})), **run} for item in document["items"]],
        [
            ("Audit", lambda row: f"{row['title']} ({row['audit']})"),
            ("Groups", lambda row: str(row["groups"])),
            ("n", lambda row: str(row["n"])),
            ("Estimate [95 % CI]", lambda row: _estimate(row, "value", "interval", number)),
            ("Unit", lambda row: str(row["unit"])),
            ("p", lambda row: _p_text(_number(row, "p_value"))),
            ("Effect size", _effect),
            ("Change [95 % CI]", _change),
            ("Verdict", lambda row: "" if row["verdict"] in (None, "measured") else str(row["verdict"])),
            ("Not measured because", lambda row: str(row["reason"] or "") if row["value"] is None else ""),
        ],
    )


def _row(item: Item, method: Mapping[str, Json]) -> dict[str, Cell]:
    change, effect, unit = item["change"] or {}, item.get("effect") or {}, unit_of(item, method)
    low, high = item["interval"] or (None, None)
    change_low, change_high = change.get("interval") or (None, None)
    groups = list(item["n"])
    return {
        "probe": item["probe"],
        "item": item["id"],
        "audit": item["audit"],
        "title": method.get("title") or item["audit"],
        "groups": (" vs " if len(groups) == 2 else ", ").join(groups),
        "n": sum(item["n"].values()),
        "missing": sum(item["missing"].values()),
        "n_by_group": _counts(item["n"]),
        "missing_by_group": _counts(item["missing"]),
        "value": item["value"],
        "unit": unit,
        "standard_error": item["standard_error"],
        "interval_low": low,
        "interval_high": high,
        "p_value": item["p_value"],
        "size": effect.get("size"),
        "effect": effect.get("name"),
        "effect_value": effect.get("value"),
        "tolerance": item["tolerance"],
        "limit": item["limit"],
        "baseline": (item["baseline"] or {}).get("value"),
        "change": change.get("value"),
        "change_unit": GROWN_WORDS if item["change"] and item["explanation"]["amount"] else unit,
        "change_low": change_low,
        "change_high": change_high,
        "change_p_value": change.get("p_value"),
        "verdict": item["verdict"],
        "reason": item["reason"],
    }


def _counts(by_group: Mapping[str, int]) -> str:
    return ", ".join(f"{group} {count}" for group, count in by_group.items())


def _estimate(row: Row, value: str, interval: str, shown: Callable[[float], str]) -> str:
    estimate, low, high = (_number(row, name) for name in (value, f"{interval}_low", f"{interval}_high"))
    if estimate is None:
        return ""
    return with_interval(shown(estimate), None if low is None or high is None else (low, high))


def _change(row: Row) -> str:
    """Return the change with its interval or, for an audit whose change is a number of words, as `2 grown words`."""
    change = _number(row, "change")
    if change is not None and row["change_unit"] == GROWN_WORDS:
        return counted(int(change), GROWN_WORDS.removesuffix("s"))
    return _estimate(row, "change", "change", signed)


def _effect(row: Row) -> str:
    """Return the effect size with its name and its size in words: `Cohen’s h 0.62 (moderate)`."""
    if row["effect"] is None:
        return ""
    value = _number(row, "effect_value")
    return f"{row['effect']} {'infinite' if value is None else number(value)} ({row['size'] or UNKNOWN})"


def _number(row: Row, name: str) -> float | None:
    value = row[name]
    return float(value) if isinstance(value, int | float) else None


def _p_text(value: float | None) -> str:
    if value is None:
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


# Table of words: one row for each word of each item that compares texts.

WORD_COLUMNS = (
    Column("probe", str, "name of the probe"),
    Column("item", str, "id of the item, such as `jsd[race=Black]`"),
    Column("word", str, "word, or term of a lexicon"),
    Column(
        "side",
        str,
        "group that uses the word more: it has the higher rate among all words of the group's texts or, if rates are "
        "equal, occurs in a larger share of the texts; for a marker, the list that contains it: `stereotype` or "
        "`anti_stereotype`",
    ),
    Column("statistic", str, "name of the statistic that the audit computes for each word"),
    Column(
        "value",
        float,
        "size of the statistic, with the sign of the side: above 0 for the marked group's words, below 0 for the "
        "unmarked group's; for a marker, the number of answers with it",
    ),
    Column("significant", bool, "whether the word is significant in a test of all words together; empty if not tested"),
    Column("marked", str, "marked group; in rows of markers, the stereotype case"),
    Column("unmarked", str, "unmarked group"),
    Column("uses_marked", int, "occurrences in the texts of the marked group"),
    Column("uses_unmarked", int, "occurrences in the texts of the unmarked group"),
    Column("texts_marked", int, "texts of the marked group that contain the word"),
    Column("texts_unmarked", int, "texts of the unmarked group that contain the word"),
    Column("share_marked", float, "share of the marked group's texts that contain the word"),
    Column("share_unmarked", float, "share of the unmarked group's texts that contain the word"),
)


def word_table(rows: Iterable[Mapping[str, Json]]) -> DataTable:
    """Return a table of words; each row maps the names of `COLUMNS` to values."""
    return DataTable(
        WORD_COLUMNS,
        list(rows),
        [
            ("Item", lambda row: str(row["item"])),
            ("Word", lambda row: str(row["word"])),
            ("More for", lambda row: str(row["side"])),
            ("Statistic", lambda row: f"{row['statistic']} {number(row['value'])}"),  # type: ignore[arg-type] # a float
            ("Texts of the marked group", lambda row: _texts(row, "marked")),
            ("Texts of the unmarked group", lambda row: _texts(row, "unmarked")),
        ],
    )


def _texts(row: Row, group: str) -> str:
    share = row[f"share_{group}"]
    return f"{row[f'texts_{group}']} ({share:.0%})" if isinstance(share, float) else ""


# What pandas does not do: tables for an article's page, cells that a spreadsheet does not run, cells of one line.

LONG = 40
"""Minimum number of rows of a LaTeX table that may be broken over several pages."""
LINE = 82
"""Number of characters on a line of an article, in the size `footnotesize`."""
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a text that spreadsheets evaluate as a formula (OWASP, "CSV Injection")."""
SHOWN_ROWS = 60
"""Maximum number of rows of an HTML table."""
_NOT_LATIN = str.maketrans({"−": "-", "²": r"\textsuperscript{2}", "₂": r"\textsubscript{2}", "η": r"$\eta$"})


def _as_latex(frame: pd.DataFrame) -> str:
    frame = frame.map(printable)
    long = len(frame) >= LONG
    text = frame.to_latex(index=False, escape=True, longtable=long, column_format=_column_format(frame))
    # A bracket after `\\\\` would be read as its argument.
    text = re.sub(r"^(?=[\[*])", "{}", text.translate(_NOT_LATIN), flags=re.MULTILINE)
    return (
        rf"% Needs \usepackage{{array,booktabs{',longtable' if long else ''}}} and \usepackage[T1]{{fontenc}}; "
        "LuaLaTeX for letters that are not Latin.\n"
        rf"{{\footnotesize\setlength{{\tabcolsep}}{{3pt}}%"  # the sign keeps the line end from becoming a space
        f"\n{text}}}\n"
    )


def _column_format(frame: pd.DataFrame) -> str:
    cells = [[heading, *frame[heading]] for heading in frame]
    widths = [max(map(len, column)) for column in cells]
    room = LINE - 1.5 * len(cells)
    if sum(widths) <= room:
        return "@{}" + "l" * len(cells) + "@{}"
    least = [max(len(word) for cell in column for word in cell.split() or [""]) for column in cells]
    while sum(widths) > room and (wide := [index for index, width in enumerate(widths) if width > least[index]]):
        widths[max(wide, key=widths.__getitem__)] -= 1
    line = max(LINE, sum(widths) + 1.5 * len(cells))
    shares = [rf"p{{{width / line:.3f}\linewidth}}" for width in widths]
    return "@{}" + "".join(rf">{{\raggedright\arraybackslash}}{share}" for share in shares) + "@{}"


def as_csv(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Return rows as CSV with a line of headings; `None` becomes an empty cell."""
    import pandas as pd

    frame = pd.DataFrame([*rows], columns=[*columns], dtype=object).map(defused)
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text


def defused(cell: Cell) -> Cell:
    """Return the cell, with an apostrophe before text that a spreadsheet would execute as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def as_html(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return an HTML table of the first `SHOWN_ROWS` rows; every heading and cell is escaped."""
    import pandas as pd

    texts = [
        [number(cell) if isinstance(cell, float) else "" if cell is None else printable(str(cell)) for cell in row]
        for row in rows[:SHOWN_ROWS]
    ]
    with pd.option_context("display.max_colwidth", None):
        table = pd.DataFrame(texts, columns=[*map(printable, columns)]).to_html(index=False, border=0, justify="left")
    more = len(rows) - SHOWN_ROWS
    return table + (f"<p>… and {more:,} more; <code>to_pandas()</code> has all rows.</p>" if more > 0 else "")
