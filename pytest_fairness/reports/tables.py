"""Tables of measurements and words, for export as CSV, Parquet, LaTeX, HTML and pandas data frames."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_fairness.errors import FairnessError, counted
from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import number, printable, signed, with_interval
from pytest_fairness.reports.report_items import UNKNOWN, Item, grown_words, unit_of
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
        """Return the table as a pandas data frame with nullable types.

        Raises:
            FairnessError: pandas is not installed.
        """
        pandas = _imported("pandas", "a data frame")
        values = {
            column.name: pandas.array(self._values(column), dtype=PANDAS_TYPES[column.type]) for column in self.columns
        }
        frame: pd.DataFrame = pandas.DataFrame(values)
        return frame

    def to_csv(self) -> str:
        """Return the table as CSV; text that a spreadsheet would read as a formula begins with an apostrophe."""
        return as_csv([column.name for column in self.columns], self._cells())

    def to_latex(self) -> str:
        """Return the table as a LaTeX `tabular` (if it is long, a `longtable`) for the packages array and booktabs."""
        return as_latex(*self._for_paper())

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
        try:
            replace_file(path, data)
        except OSError as error:
            raise FairnessError(f"{path}: cannot be written ({error.strerror or error}). Name another file.") from error

    def _repr_html_(self) -> str:
        return as_html(*self._for_paper())

    def _for_paper(self) -> tuple[list[str], list[list[str]]]:
        """Return the headings and cells of the columns for a paper, without columns that are empty in every row."""
        columns = [
            (heading, cells)
            for heading, text in self.paper_columns
            if any(cells := [text(row) for row in self.rows]) or not self.rows
        ]
        return [heading for heading, _ in columns], [
            list(row) for row in zip(*(cells for _, cells in columns), strict=True)
        ]

    def _values(self, column: Column) -> list[Cell]:
        return [row[column.name] for row in self.rows]

    def _cells(self) -> list[list[Cell]]:
        return [[row[column.name] for column in self.columns] for row in self.rows]

    def _parquet(self) -> bytes:
        pyarrow = _imported("pyarrow", "a Parquet file")
        # Made from a data frame, so that pandas restores the nullable types when it reads the file.
        table = pyarrow.Table.from_pandas(self.to_pandas(), preserve_index=False)
        fields = [
            field.with_metadata({"description": column.meaning})
            for field, column in zip(table.schema, self.columns, strict=True)
        ]
        file = io.BytesIO()
        described = table.cast(pyarrow.schema(fields, metadata=table.schema.metadata))
        import_module("pyarrow.parquet").write_table(described, file)
        return file.getvalue()


def require_writable(path: Path) -> None:
    """Raise an error if a table cannot be written to this file; called before any work is done.

    Raises:
        FairnessError: the suffix is unknown, or the extra `tables` is not installed.
    """
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet", ".tex"):
        raise FairnessError(f"{path}: the suffix selects the format of a table and must be .csv, .parquet or .tex.")
    if suffix == ".parquet":
        for package in ("pandas", "pyarrow"):
            _imported(package, "a Parquet file")


def _imported(package: str, needed_for: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise FairnessError(
            f"{needed_for} needs the package {package}, which is not installed. Install the extra `tables`: "
            'pip install "pytest-fairness[tables]"'
        ) from error


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
        "change_unit": GROWN_WORDS if grown_words(item) else unit,
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


# Tables as LaTeX for the packages array and booktabs.

LONG = 40
"""Minimum number of rows of a table that may be broken over several pages."""
WIDTH = 345
"""Width of an article's text in points."""
SIZES = {"footnotesize": 82, "scriptsize": 93}
"""Font sizes, the larger first, with the number of characters on a line of the width `WIDTH`."""
LAYOUTS = (("footnotesize", 3, True), ("scriptsize", 3, True), ("scriptsize", 2, False))
"""Layouts in the order in which they are tried: font size, half the space between two columns in points (`tabcolsep`),
and whether lines are never broken inside intervals."""

_INTERVAL = re.compile(r"(\[[-+\d][^\]]*\])")
_BREAKS = re.compile(r"(?<=[_=\[])(?=[A-Za-z])")
"""Positions inside a name at which a column with line breaks may break the line: `jsd[race=Black]`."""
_HYPHENS = re.compile(r"(?<=[A-Za-z]-)(?=[A-Za-z])")
"""Positions at which LaTeX breaks lines by itself: `Middle-Eastern`."""

_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedbl{}",
        "`": r"\textasciigrave{}",
        "−": "-",
        "²": r"\textsuperscript{2}",
        "₂": r"\textsubscript{2}",
        "η": r"$\eta$",
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)


def as_latex(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows of plain text as a LaTeX table; every heading and cell is escaped.

    The font size and the columns with line breaks are chosen so that the table fits the width of an article's page.
    """
    long = len(rows) >= LONG
    environment = "longtable" if long else "tabular"
    needed = r"\usepackage{array,booktabs,longtable}" if long else r"\usepackage{array,booktabs}"
    cells = list(zip(columns, *rows, strict=True))
    (size, space, keeps), widths = _layout(cells)
    wraps = any(width < max(map(len, column)) for width, column in zip(widths, cells, strict=True))
    # The columns fill the line: characters differ in width, so that columns of their natural width may be too wide.
    scale = max(1.0, _room(size, space, len(cells)) / sum(widths))
    alignments = [
        rf">{{\raggedright\arraybackslash}}p{{{scale * width / SIZES[size]:.3f}\linewidth}}" if wraps else "l"
        for width in widths
    ]
    return "\n".join(
        [
            rf"% Needs {needed} and \usepackage[T1]{{fontenc}}; LuaLaTeX for letters that are not Latin.",
            rf"{{\{size}\setlength{{\tabcolsep}}{{{space}pt}}%",  # the sign keeps the line end from becoming a space
            rf"\begin{{{environment}}}{{@{{}}{''.join(alignments)}@{{}}}}",
            r"\toprule",
            _line(columns, wraps, keeps),
            r"\midrule",
            *([r"\endhead"] if long else []),
            *(_line(row, wraps, keeps) for row in rows),
            r"\bottomrule",
            rf"\end{{{environment}}}}}",
            "",
        ]
    )


def _layout(cells: Sequence[Sequence[str]]) -> tuple[tuple[str, int, bool], list[int]]:
    """Return a layout and the columns' widths in characters.

    The layout is the first of `LAYOUTS` in which the table fits, or else the last. Lines are broken in the widest
    columns, as far as this is needed.
    """
    unwrapped = [max(map(len, column)) for column in cells]
    for layout in LAYOUTS:
        size, space, keeps = layout
        narrowest = [max(_longest_part(cell, keeps) for cell in column) for column in cells]
        # A heading breaks first, so that it makes no column of short cells wide.
        wrapped_headings = [max(_longest_part(heading, keeps), *map(len, column), 0) for heading, *column in cells]
        room = _room(size, space, len(cells))
        fitting = unwrapped if sum(unwrapped) <= room else list(wrapped_headings)
        while sum(fitting) > room and (
            wrappable := [index for index, width in enumerate(fitting) if width > narrowest[index]]
        ):
            fitting[max(wrappable, key=fitting.__getitem__)] -= 1
        if sum(fitting) <= room:
            break
    return layout, fitting


def _room(size: str, space: int, columns: int) -> float:
    """Return the number of characters that fit on a line, without the space between the columns."""
    return SIZES[size] * (1 - 2 * space * (columns - 1) / WIDTH)


def escaped(cell: str) -> str:
    """Return text as one line, with LaTeX's special characters escaped."""
    return printable(cell).translate(_ESCAPES)


def _line(cells: Sequence[str], wraps: bool, keeps_intervals: bool) -> str:
    line = " & ".join(_latex_cell(cell, wraps, keeps_intervals) for cell in cells)
    # A bracket after `\\` would be read as the argument of `\\`.
    return (f"{{}}{line}" if line.startswith(("[", "*")) else line) + r" \\"


def _latex_cell(cell: str, wraps: bool, keeps_intervals: bool) -> str:
    """Return an escaped cell.

    Args:
        cell: the text.
        wraps: whether lines may break inside names and, without `keeps_intervals`, inside intervals.
        keeps_intervals: whether lines are never broken inside intervals.
    """
    if not wraps:
        return escaped(cell)
    return "".join(
        rf"\mbox{{{escaped(part)}}}"
        if keeps_intervals and _INTERVAL.fullmatch(part)
        else r"\allowbreak{}".join(map(escaped, _BREAKS.split(part))) + " " * part.endswith(" ")
        for part in _INTERVAL.split(cell)
    )


def _longest_part(cell: str, keeps_intervals: bool) -> int:
    """Return the length of the longest part of a cell that must stay on one line."""
    parts = [
        [part] if keeps_intervals and _INTERVAL.fullmatch(part) else _HYPHENS.sub(" ", _BREAKS.sub(" ", part)).split()
        for part in _INTERVAL.split(cell)
    ]
    return max(map(len, chain.from_iterable(parts)), default=0)


# Tables as CSV that is safe to open in a spreadsheet.

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a text that spreadsheets evaluate as a formula (OWASP, "CSV Injection")."""


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV with a line of headings; `None` becomes an empty cell."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([defused(cell) for cell in row] for row in rows)
    return file.getvalue()


def defused(cell: object) -> object:
    """Return the cell, with an apostrophe before text that a spreadsheet would execute as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


# Tables as HTML for notebooks.

SHOWN_ROWS = 60


def as_html(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return an HTML table of the first `SHOWN_ROWS` rows; every heading and cell is escaped."""
    head = "".join(f"<th>{escape(printable(column))}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in rows[:SHOWN_ROWS])
    more = len(rows) - SHOWN_ROWS
    note = f"<p>… and {more:,} more; <code>to_pandas()</code> has all rows.</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _html_cell(value: object) -> str:
    text = number(value) if isinstance(value, float) else "" if value is None else str(value)
    return f'<td style="text-align: left">{escape(printable(text))}</td>'
