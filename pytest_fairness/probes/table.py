"""Reader of tables in CSV, JSON Lines, JSON or Parquet files, with the line number of each row."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import ProbeError
from pytest_fairness.plurals import counted
from pytest_fairness.probes.diagnostics import raise_file_errors, similar_file
from pytest_fairness.records import MAX_LINE, Json

if TYPE_CHECKING:
    from pyarrow import RecordBatch

BATCH = 4096
"""Maximum number of rows of a Parquet file that are in memory at a time."""
SEPARATORS = {";": "semicolons", "\t": "tabs"}
"""Characters that spreadsheets of some languages write between columns in place of commas."""


@dataclass(frozen=True, slots=True)
class Row:
    """Row of a table.

    Attributes:
        line: number of the row's first line in the file, from 1; in JSON and Parquet files, the position of the row.
        fields: value of each column.
        file: the file's name for messages.
    """

    line: int
    fields: dict[str, Json]
    file: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows of a file.

    `columns` are in the file's order; for JSON and JSON Lines, they are the columns of all rows together.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


class TableFiles:
    """Rows of one or several files; each call of `rows` reads the files again, row by row.

    Args:
        files: path of each file, and its name for messages; see `read` for the formats.
        holds: plural noun for the files' rows in messages, such as "answers".

    Attributes:
        columns: columns of each file, by the file's name.
        count: number of rows.

    Raises:
        ProbeError: a file cannot be read, has no rows, or has malformed rows.
    """

    def __init__(self, files: Sequence[tuple[Path, str]], holds: str = "answers") -> None:
        self._files = files
        self.columns: dict[str, tuple[str, ...]] = {}
        self.count = 0
        for path, name in files:
            columns: dict[str, None] = {}
            number = sum(1 for _ in _rows(path, name, columns, []))
            if not number:
                raise ProbeError(f"{name}:1: the file holds no {holds}")
            self.columns[name] = tuple(columns)
            self.count += number

    def rows(self, columns: Collection[str]) -> Iterator[Row]:
        """Yield the rows of all files, with only these columns; a row's `fields` omit columns that the row lacks."""
        for path, name in self._files:
            yield from _rows(path, name, {}, columns)


def read(path: Path, name: str, holds: str = "answers") -> Table:
    """Return the table in a file.

    Args:
        path: the file; the suffix `.csv` means CSV, `.json` means a JSON list, `.parquet` means Parquet, and any other
            suffix means JSON Lines.
        name: the file's name for messages.
        holds: plural noun for the file's rows in messages, such as "answers".

    Raises:
        ProbeError: the file cannot be read, has no rows, or has malformed rows; each line of the message is
            `file:line: message`.
    """
    columns: dict[str, None] = {}
    rows = tuple(_rows(path, name, columns))
    if not rows:
        raise ProbeError(f"{name}:1: the file holds no {holds}")
    return Table(tuple(columns), rows)


def _rows(path: Path, name: str, columns: dict[str, None], wanted: Collection[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a file; the errors of malformed rows are raised together, at the end.

    Args:
        path, name: as in `read`.
        columns: dictionary to which the file's columns are added as they are found.
        wanted: columns whose fields the rows get; `None` for all columns.
    """
    readers = {".csv": _csv, ".json": _json, ".parquet": _parquet}
    return readers.get(path.suffix.casefold(), _json_lines)(path, name, columns, wanted)


def read_text(path: Path, name: str) -> str:
    """Return the text of a data file.

    The length of lines is limited in CSV and JSON Lines; a JSON file may be one long line.

    Args:
        path: the file.
        name: the file's name for messages.

    Raises:
        ProbeError: the file cannot be read, is not UTF-8, or has a line that is too long.
    """
    return "".join(_lines(path, name))


def _lines(path: Path, name: str) -> Iterator[str]:
    """Yield the lines of a data file with their line ends; see `read_text`."""
    most = -1 if path.suffix.casefold() == ".json" else MAX_LINE
    number = 0
    try:
        with path.open("rb") as file:
            while line := file.readline(most):
                number += 1
                if len(line) == most and not line.endswith(b"\n"):
                    raise ProbeError(f"{name}:{number}: a line has more than {most:,} bytes: write one row per line")
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except OSError as error:
        cure = similar_file(path) or ": check its path and permissions"
        raise ProbeError(f"{name}: cannot be read ({error.strerror or error}){cure}") from None
    except UnicodeDecodeError:
        raise ProbeError(f"{name}:{number}: not UTF-8 text: save the file in the encoding UTF-8") from None


def _csv(path: Path, name: str, columns: dict[str, None], wanted: Collection[str] | None) -> Iterator[Row]:
    default_limit = csv.field_size_limit(MAX_LINE)  # the default of 128 KiB is shorter than a long answer
    try:
        yield from _csv_rows(path, name, columns, wanted)
    finally:
        csv.field_size_limit(default_limit)


def _csv_rows(path: Path, name: str, columns: dict[str, None], wanted: Collection[str] | None) -> Iterator[Row]:
    reader = csv.reader(_lines(path, name), strict=True)
    errors: list[str] = []
    header: list[str] = []
    selected: list[tuple[int, str]] = []
    next_line = 1
    try:
        for fields in reader:
            line, next_line = next_line, reader.line_num + 1
            if not fields:
                continue
            if not header:
                header = [column.strip() for column in fields]
                separator = next((plural for mark, plural in SEPARATORS.items() if mark in header[0]), None)
                if len(header) == 1 and separator:
                    raise ProbeError(
                        f"{name}:{line}: the columns are separated by {separator}; save the file with commas"
                    )
                errors += _repeated_columns(header, f"{name}:{line}")
                columns |= dict.fromkeys(header)
                selected = [(i, column) for i, column in enumerate(header) if wanted is None or column in wanted]
            elif len(fields) != len(header):
                errors.append(
                    f"{name}:{line}: the row has {counted(len(fields), 'field')}, but the header has {len(header)}: "
                    "write all fields, and put quotes around a field with a comma or line end"
                )
            else:
                yield Row(line, {column: fields[i] for i, column in selected}, name)
    except csv.Error as error:
        errors.append(f"{name}:{next_line}: not valid CSV: {error}")
    raise_file_errors(errors, name)


def _repeated_columns(names: Sequence[str], position: str) -> list[str]:
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    return [f"{position}: the column {name!r} occurs twice: rename one of the two columns" for name in repeated]


def _json_lines(path: Path, name: str, columns: dict[str, None], wanted: Collection[str] | None) -> Iterator[Row]:
    errors: list[str] = []
    for number, line in enumerate(_lines(path, name), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line.removesuffix("\n"), parse_constant=_constant)
        except json.JSONDecodeError as error:
            errors.append(f"{name}:{number}:{error.colno}: not JSON: {error.msg}; write one JSON object per line")
            continue
        except (ValueError, RecursionError):
            errors.append(f"{name}:{number}: the JSON cannot be read: it is nested too deeply, or a number is too long")
            continue
        if not isinstance(value, dict):
            errors.append(f"{name}:{number}: a line must hold one JSON object, not {json.dumps(value)[:40]}")
            continue
        columns |= dict.fromkeys(value)
        yield Row(number, _selected(value, wanted), name)
    raise_file_errors(errors, name)


def _json(path: Path, name: str, columns: dict[str, None], wanted: Collection[str] | None) -> Iterator[Row]:
    """Yield the rows of a JSON list.

    Each item of the list is an object or a text; a text becomes the field `name` of its row. The line number of a row
    is the position of its item, from 1.
    """
    try:
        value = json.loads(read_text(path, name), parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise ProbeError(f"{name}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError):
        raise ProbeError(
            f"{name}:1: the JSON cannot be read: it is nested too deeply, or a number is too long"
        ) from None
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = [{"name": part} for part in value]
    if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
        raise ProbeError(f"{name}:1: the file must hold a list of objects or of texts")
    for number, part in enumerate(value, start=1):
        columns |= dict.fromkeys(part)
        yield Row(number, _selected(part, wanted), name)


def _selected(fields: dict[str, Json], wanted: Collection[str] | None) -> dict[str, Json]:
    return fields if wanted is None else {column: fields[column] for column in fields if column in wanted}


def _parquet(path: Path, name: str, columns: dict[str, None], wanted: Collection[str] | None) -> Iterator[Row]:
    """Yield the rows of a Parquet file; values that JSON cannot hold, such as dates, become text.

    Raises:
        ProbeError: the file cannot be read, or the package pyarrow is not installed.
    """
    try:
        import pyarrow as pa  # heavy, and needs the extra `tables`
        from pyarrow import parquet
    except ImportError:
        raise ProbeError(
            f'{name}: Parquet files need the package pyarrow. Install it: `pip install "pytest-fairness[tables]"`.'
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            columns |= dict.fromkeys(names)
            raise_file_errors(_repeated_columns(names, f"{name}:1"), name)
            selected = [column for column in names if wanted is None or column in wanted]
            batches = map(_batch_rows, file.iter_batches(BATCH, columns=selected))
            for number, row in enumerate(chain.from_iterable(batches), start=1):
                yield Row(number, row, name)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
        raise ProbeError(
            f"{name}: the file cannot be read as Parquet ({reason}): correct it, or save it as CSV"
        ) from None


def _batch_rows(batch: RecordBatch) -> Iterator[dict[str, Json]]:
    if not batch.num_columns:
        return ({} for _ in range(batch.num_rows))
    names = batch.schema.names
    values = [map(_plain, column.to_pylist()) for column in batch.columns]
    return (dict(zip(names, row, strict=True)) for row in zip(*values, strict=True))


def _constant(written: str) -> float | None:
    """Return the value of `NaN`, `Infinity` or `-Infinity` in JSON; NaN is how data frames write a missing value."""
    return None if written == "NaN" else float(written)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and math.isnan(value):
        return None  # how data frames write a missing value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, bool | int | float) else str(value)
