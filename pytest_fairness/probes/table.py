"""Reader of tables in CSV, JSON Lines, JSON or Parquet files, with the line number of each row."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes.diagnostics import raise_file_errors
from pytest_fairness.records import MAX_LINE, Json

SEPARATORS = {";": "semicolons", "\t": "tabs"}
"""Characters that spreadsheets of some languages write between columns in place of commas."""


@dataclass(frozen=True, slots=True)
class Row:
    """Row of a table: the number of its first line in the file (from 1), and its fields by column.

    In JSON and Parquet files, which have no lines, the number is the position of the row.
    """

    line: int
    fields: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows of a file.

    `columns` are in the file's order; for JSON Lines, they are the columns of all rows together.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def read(path: Path, name: str, holds: str = "answers") -> Table:
    """Return the table in a file.

    Args:
        path: the file; the suffix `.csv` means CSV, `.json` means a JSON list, `.parquet` means Parquet, and any other
            suffix means JSON Lines.
        name: the file's name for messages.
        holds: the noun for the file's rows in messages.

    Raises:
        ProbeError: the file cannot be read, or rows are malformed; each line of the message is `file:line: message`.
    """
    suffix = path.suffix.casefold()
    if suffix == ".parquet":
        table = _parquet(path, name)
    else:
        readers = {".csv": _csv, ".json": _json}
        table = readers.get(suffix, _json_lines)(read_text(path, name), name)
    if not table.rows:
        raise ProbeError(f"{name}:1: the file holds no {holds}")
    return table


def read_text(path: Path, name: str) -> str:
    """Return the text of a data file.

    The length of lines is limited in CSV and JSON Lines; a JSON file may be one long line.

    Args:
        path: the file.
        name: the file's name for messages.

    Raises:
        ProbeError: the file cannot be read, is not UTF-8, or has a line that is too long.
    """
    most = -1 if path.suffix.casefold() == ".json" else MAX_LINE
    content = bytearray()
    try:
        with path.open("rb") as file:
            while line := file.readline(most):
                if len(line) == most and not line.endswith(b"\n"):
                    number = content.count(b"\n") + 1
                    raise ProbeError(f"{name}:{number}: a line of over {most:,} bytes; write one row per line")
                content += line
        return content.decode("utf-8-sig")
    except OSError as error:
        raise ProbeError(f"{name}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise ProbeError(f"{name}:{number}: not UTF-8 text: save the file in the encoding UTF-8") from None


def _csv(text: str, name: str) -> Table:
    before = csv.field_size_limit(MAX_LINE)  # the default limit of 128 KiB is shorter than a long answer
    try:
        return _csv_rows(text, name)
    finally:
        csv.field_size_limit(before)


def _csv_rows(text: str, name: str) -> Table:
    reader = csv.reader(_lines(text), strict=True)
    rows: list[Row] = []
    errors: list[str] = []
    columns: list[str] = []
    begins = 1
    try:
        for fields in reader:
            line, begins = begins, reader.line_num + 1
            if not fields:
                continue
            if not columns:
                columns = [column.strip() for column in fields]
                other = next((plural for mark, plural in SEPARATORS.items() if mark in columns[0]), None)
                if len(columns) == 1 and other:
                    raise ProbeError(f"{name}:{line}: the columns are separated by {other}; save the file with commas")
                repeated = sorted({column for column in columns if columns.count(column) > 1})
                if repeated:
                    errors.append(
                        f"{name}:{line}: the column {', '.join(map(repr, repeated))} occurs twice: rename one"
                    )
            elif len(fields) != len(columns):
                errors.append(
                    f"{name}:{line}: {len(fields)} fields where the header has {len(columns)}; "
                    "a field with a comma or line end needs quotes"
                )
            else:
                rows.append(Row(line, dict(zip(columns, fields, strict=True))))
    except csv.Error as error:
        errors.append(f"{name}:{begins}: not valid CSV: {error}")
    raise_file_errors(errors, name)
    return Table(tuple(columns), tuple(rows))


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text with their line ends, like a file opened with `newline=""`."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end + 1
        yield text[start:end]
        start = end


def _json_lines(text: str, name: str) -> Table:
    rows: list[Row] = []
    errors: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            errors.append(f"{name}:{number}:{error.colno}: not JSON: {error.msg}; write one JSON object per line")
            continue
        except (ValueError, RecursionError):
            errors.append(f"{name}:{number}: the JSON cannot be read: it is nested too deeply, or a number is too long")
            continue
        if isinstance(value, dict):
            rows.append(Row(number, value))
        else:
            errors.append(f"{name}:{number}: a line must hold one JSON object, not {json.dumps(value)[:40]}")
    raise_file_errors(errors, name)
    return Table(tuple(dict.fromkeys(column for row in rows for column in row.fields)), tuple(rows))


def _json(text: str, name: str) -> Table:
    """Return the table of a JSON list.

    Each item of the list is an object or a text; a text becomes the field `name` of its row. The line number of a row
    is the position of its item, from 1.
    """
    try:
        value = json.loads(text)
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
    rows = [Row(number, part) for number, part in enumerate(value, start=1)]
    return Table(tuple(dict.fromkeys(column for row in rows for column in row.fields)), tuple(rows))


def _parquet(path: Path, name: str) -> Table:
    """Return the table in a Parquet file; values that JSON does not know, such as dates, become text.

    Raises:
        ProbeError: the file cannot be read, or the package pyarrow is not installed.
    """
    try:
        import pyarrow as pa  # heavy, and needs the extra `tables`
        from pyarrow import parquet
    except ImportError:
        raise ProbeError(
            f"{name}: Parquet files need the package pyarrow. Install it: `pip install 'pytest-fairness[tables]'`."
        ) from None
    try:
        content = parquet.ParquetFile(path).read()
        rows = [Row(number, _plain(row)) for number, row in enumerate(content.to_pylist(), start=1)]
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
        raise ProbeError(f"{name}: cannot be read as Parquet: {reason}") from None
    columns = content.column_names
    repeated = [column for column in set(columns) if columns.count(column) > 1]
    raise_file_errors([f"{name}:1: the column {column!r} occurs twice: rename one" for column in repeated], name)
    return Table(tuple(columns), tuple(rows))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and math.isnan(value):
        return None  # how data frames write a missing value
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)
