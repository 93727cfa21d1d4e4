"""Class `DataTable`: rows with named and typed columns, which can be shown in a notebook or written to a file."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_fairness.atomic import replace_file
from pytest_fairness.errors import FairnessError
from pytest_fairness.reports.tables import csv_format, html_format, latex_format

if TYPE_CHECKING:
    import pandas as pd

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
        return csv_format.text([column.name for column in self.columns], self._cells())

    def to_latex(self) -> str:
        """Return the table as a LaTeX `tabular` (if it is long, a `longtable`) for the packages array and booktabs."""
        return latex_format.text(*self._for_paper())

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
        return html_format.table(*self._for_paper())

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
