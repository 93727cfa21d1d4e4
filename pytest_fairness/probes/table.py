"""Files of data beside a probe: tables in CSV, JSON Lines, JSON, Excel or Parquet files, and files of prompts.

Functions raise `ProbeError` for a file that cannot be read or has invalid rows.
"""

from __future__ import annotations

import codecs
import csv
import json
import math
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pydantic import Field, field_validator

from pytest_fairness.errors import ProbeError, counted, joined
from pytest_fairness.probes import prompts
from pytest_fairness.probes.diagnostics import quoted, raise_file_errors, similar_file, suggestion
from pytest_fairness.probes.field_types import Line, ProbeFile, ProbeModel, require_suffix
from pytest_fairness.records import MAX_LINE, Json

if TYPE_CHECKING:
    from pyarrow import RecordBatch


# Reader of tables in CSV, JSON Lines, JSON, Excel or Parquet files, with the line number of each row.

BATCH = 4096
"""Maximum number of rows of a Parquet file that are in memory at a time."""
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
"""Characters that may stand between the fields of CSV."""
MISSING = frozenset({"", "N/A", "#N/A", "NaN", "nan", "#NAME?", "#VALUE!", "#REF!", "#DIV/0!", "#NUM!", "#NULL!"})
"""Cells without a value: empty, as data frames write them, and Excel's errors."""
_SEPARATOR_LINE = re.compile(r"sep=(.)\s*", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?")


@dataclass(frozen=True, slots=True)
class Row:
    """Row of a table.

    Attributes:
        line: number of the row's first line in the file, from 1; in JSON and Parquet files, the position of the row.
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
    """Rows of one or several files; each call of `rows` reads the files again, row by row."""

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
        """Yield the rows of all files, with only these columns, as far as a row has them.

        Cells of CSV files without a value (`MISSING`) are empty texts; `read` leaves them as they are written.
        """
        for path, name in self._files:
            yield from _rows(path, name, {}, columns)


def read(path: Path, name: str, holds: str = "answers") -> Table:
    """Return the table in a file: CSV, a JSON list (`.json`), the first sheet of Excel, Parquet, or else JSON Lines."""
    columns: dict[str, None] = {}
    rows = tuple(_rows(path, name, columns))
    if not rows:
        raise ProbeError(f"{name}:1: the file holds no {holds}")
    return Table(tuple(columns), rows)


def _rows(path: Path, name: str, columns: dict[str, None], wanted: Collection[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a file, and add its columns to `columns`; errors of malformed rows are raised at the end.

    With `wanted`, rows have only these columns, and an empty text for cells of CSV without a value.
    """
    readers = {".csv": _csv, ".json": _json, ".parquet": _parquet, ".xlsx": _excel}
    return readers.get(path.suffix.casefold(), _json_lines)(path, name, columns, wanted)


def read_text(path: Path, name: str) -> str:
    """Return the text of a data file."""
    return "".join(_lines(path, name))


def notes(path: Path) -> list[str]:
    """Return what was assumed in order to read a file: its encoding, and numbers with a decimal comma."""
    found = []
    if path.suffix.casefold() not in (".parquet", ".xlsx") and encoding_of(path) == "cp1252":
        found.append("is not UTF-8 and is read as Windows-1252: check its accents and umlauts")
    if path.suffix.casefold() == ".csv":
        with _long_fields():
            columns = sorted(_csv_format(path, path.name).decimal_commas)
        found += [f"has numbers with decimal commas in the columns {joined(columns)}"] if columns else []
    return found


_BEGINNING = 4_000
"""Number of bytes at the beginning of a file by which UTF-16 without its mark is recognised."""


def encoding_of(path: Path) -> str:
    """Return the encoding of a text file: UTF-16 with or without its mark, else UTF-8, else Windows-1252."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        beginning = file.read(_BEGINNING)
        if beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        # Without its mark, UTF-16 shows by the zero byte of each letter of the Latin alphabet and of each delimiter.
        for encoding, zeros in (("utf-16-le", beginning[1::2]), ("utf-16-be", beginning[::2])):
            if zeros.count(0) > len(zeros) / 4 and beginning.count(0) == zeros.count(0):
                return encoding
        file.seek(0)
        try:
            while block := file.read(2**20):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8-sig"


def _lines(path: Path, name: str) -> Iterator[str]:
    most = -1 if path.suffix.casefold() == ".json" else MAX_LINE
    number = 0
    try:
        with path.open(encoding=encoding_of(path), newline="") as file:
            while line := file.readline(most):
                number += 1
                if len(line) == most and not line.endswith(("\n", "\r")):
                    raise ProbeError(
                        f"{name}:{number}: a line has more than {most:,} characters: write one row per line"
                    )
                yield line
    except OSError as error:
        cure = similar_file(path) or ": check its path and permissions"
        raise ProbeError(f"{name}: cannot be read ({error.strerror or error}){cure}") from None
    except UnicodeDecodeError:
        number = _line_that_is_no_text(path)
        raise ProbeError(f"{name}:{number}: not UTF-8 text: save the file in the encoding UTF-8") from None


def _line_that_is_no_text(path: Path) -> int:
    content = path.read_bytes()
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return 1 + content.count(b"\n", 0, error.start)
    return 1


class _CsvFormat(NamedTuple):
    """Delimiter of a CSV file, the number of lines before its header, and the columns with decimal commas."""

    delimiter: str
    skipped: int
    decimal_commas: frozenset[str] = frozenset()


def _csv_format(path: Path, name: str) -> _CsvFormat:
    """Return the format of a CSV file; its delimiter is that of the line `sep=;`, or the one that the header has most.

    Only files whose fields are separated by semicolons can have decimal commas. A column has them if all its cells are
    numbers, and some of them have a comma.
    """
    place, first = next(((place, line) for place, line in enumerate(_lines(path, name)) if line.strip()), (0, ""))
    if stated := _SEPARATOR_LINE.fullmatch(first):
        found = _CsvFormat(stated[1], place + 1)
    else:
        found = _CsvFormat(max(DELIMITERS, key=lambda mark: len(next(csv.reader([first], delimiter=mark), []))), 0)
    if found.delimiter != ";":
        return found
    numbers: dict[int, bool] = {}  # whether one of the column's numbers has a comma
    others: set[int] = set()
    rows = csv.reader(islice(_lines(path, name), found.skipped, None), delimiter=";")
    header = next(filter(None, rows), [])
    with suppress(csv.Error):  # reported with its line when the rows are read
        for cells in rows:
            for place, cell in enumerate(cells):
                if place in others or _is_missing(cell):
                    continue
                if _DECIMAL_COMMA.fullmatch(cell.strip()):
                    numbers[place] = numbers.get(place, False) or "," in cell
                else:
                    others.add(place)
    places = [place for place, comma in numbers.items() if comma and place not in others and place < len(header)]
    return found._replace(decimal_commas=frozenset(header[place].strip() for place in places))


def _is_missing(cell: Json) -> bool:
    return isinstance(cell, str) and cell.strip() in MISSING


def _csv(path: Path, name: str, columns: dict[str, None], wanted: Collection[str] | None) -> Iterator[Row]:
    with _long_fields():
        yield from _csv_rows(path, name, columns, wanted)


@contextmanager
def _long_fields() -> Iterator[None]:
    default_limit = csv.field_size_limit(MAX_LINE)  # the default of 128 KiB is shorter than a long answer
    try:
        yield
    finally:
        csv.field_size_limit(default_limit)


def _csv_rows(path: Path, name: str, columns: dict[str, None], wanted: Collection[str] | None) -> Iterator[Row]:
    form = _csv_format(path, name)
    reader = csv.reader(islice(_lines(path, name), form.skipped, None), delimiter=form.delimiter, strict=True)
    errors: list[str] = []
    header: list[str] = []
    selected: list[tuple[int, str]] = []
    next_line = 1 + form.skipped
    try:
        for fields in reader:
            line, next_line = next_line, reader.line_num + 1 + form.skipped
            if not fields:
                continue
            if not header:
                header = [column.strip() for column in fields]
                errors += _repeated_columns(header, f"{name}:{line}")
                columns |= dict.fromkeys(header)
                selected = [(i, column) for i, column in enumerate(header) if wanted is None or column in wanted]
            elif len(fields) != len(header):
                errors.append(
                    f"{name}:{line}: the row has {counted(len(fields), 'field')}, but the header has {len(header)}: "
                    f"write all fields, and put quotes around a field with a "
                    f"{DELIMITERS.get(form.delimiter, form.delimiter)} or line end"
                )
            else:
                cells: dict[str, Json] = {column: fields[i] for i, column in selected}
                for column in form.decimal_commas & cells.keys():
                    cells[column] = cells[column].strip().replace(".", "").replace(",", ".")
                if wanted is not None:
                    cells |= {column: "" for column, cell in cells.items() if cell.strip() in MISSING}
                yield Row(line, cells, name)
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
            value = json.loads(line.rstrip("\r\n"), parse_constant=_constant)
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
    """Yield the rows of a JSON list; a text becomes the field `name`, and a line number is a position."""
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


def _excel(path: Path, name: str, columns: dict[str, None], wanted: Collection[str] | None) -> Iterator[Row]:
    """Yield the rows of the first sheet of an Excel file; its first row that is not empty names the columns."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook  # needs the extra `tables`
    except ImportError:
        raise ProbeError(
            f"{name}: Excel files need the package python-calamine. Install it: "
            '`pip install "pytest-fairness[tables]"`.'
        ) from None
    try:
        sheet = CalamineWorkbook.from_path(path).get_sheet_by_index(0).to_python(skip_empty_area=False)
    except (CalamineError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ProbeError(
            f"{name}: the file cannot be read as Excel ({reason}): correct it, or save it as CSV"
        ) from None
    header: list[str] = []
    for line, cells in enumerate(sheet, start=1):
        # All numbers of Excel are floating-point numbers.
        whole = [int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in cells]
        values = ["" if _is_missing(cell) else _plain(cell) for cell in whole]
        if not any(value != "" for value in values):
            continue
        if not header:
            header = [str(value).strip() for value in values]
            columns |= dict.fromkeys(filter(None, header))
            raise_file_errors(_repeated_columns([*filter(None, header)], f"{name}:{line}"), name)
        else:
            row = {column: value for column, value in zip(header, values, strict=True) if column}
            yield Row(line, _selected(row, wanted), name)


def _parquet(path: Path, name: str, columns: dict[str, None], wanted: Collection[str] | None) -> Iterator[Row]:
    """Yield the rows of a Parquet file; values that JSON cannot hold, such as dates, become text."""
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


# Data files in a probe's folder, and the values of their fields.


class DataFile(ProbeModel):
    """Data file in the probe's folder.

    Class attributes:
        holds: plural noun for the file's rows in messages, such as "records".
    """

    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".jsonl", ".ndjson", ".json", ".xlsx", ".parquet")
    holds: ClassVar[str] = "data"

    file: ProbeFile = Field(
        description="CSV (.csv), JSON Lines (.jsonl, .ndjson), JSON (.json), Excel (.xlsx) or Parquet (.parquet) file "
        "in the probe's folder."
    )

    @field_validator("file")
    @classmethod
    def _has_known_suffix(cls, file: Path) -> Path:
        require_suffix(file, cls.suffixes, cls.holds)
        return file


def as_items(written: Json) -> list[str] | None:
    """Return the items in a field: a list of texts, a JSON list in a text, or one text; `None` for any other value."""
    if isinstance(written, str) and written.lstrip().startswith("["):
        try:
            written = json.loads(written)
        except (ValueError, RecursionError):
            return [written.strip()]
    if isinstance(written, str):
        return [written.strip()] if written.strip() else []
    if isinstance(written, list) and all(isinstance(item, str) for item in written):
        return [item.strip() for item in written if item.strip()]
    return None


def as_line(value: Json) -> str:
    """Return a field as one line of text; an empty text for a missing value."""
    if value is None:
        return ""
    return " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).split())


# Prompts of a generation probe in a file, such as a log of real prompts with placeholders.

ID_DIGITS = 8


class PromptRow(NamedTuple):
    """Prompt: its text, and its line in the file (or its number in the probe's list of prompts)."""

    text: str
    line: int

    @property
    def id(self) -> str:
        """Digest of the text, which does not depend on the order of the file."""
        return sha256(self.text.encode()).hexdigest()[:ID_DIGITS]


class PromptsFile(DataFile):
    """Prompts in a file: all different prompts of the file, or a sample."""

    holds: ClassVar[str] = "prompts"

    column: Line = Field(default="text", description="The column with the prompts.")
    sample: int | None = Field(default=None, ge=1, description="Number of prompts in the sample. Default: all.")
    seed: int = Field(default=0, ge=0, description="Seed of the sample: the same seed draws the same prompts.")

    def read(self, axes: Collection[str], elsewhere: Collection[str] = ()) -> dict[str, str]:
        """Return the prompt templates by id, in the file's order; equal prompts are one prompt.

        The sample does not depend on the order of the file, and keeps most of its prompts if prompts are added to
        the file.
        """
        name = self.file.name
        order = self.in_sample_order()
        in_file = sorted(order, key=lambda row: row.line)
        raise_file_errors([error for row in in_file for error in _errors(row, name, axes, elsewhere)], name)
        if self.sample is not None and len(order) < self.sample:
            message = f"the file holds only {len(order)} different prompts: set `sample` to at most {len(order)}"
            raise ProbeError(f"{name}:1: {message}")
        drawn = {row.id for row in order[: self.sample]}
        return {row.id: row.text for row in in_file if row.id in drawn}

    def in_sample_order(self) -> list[PromptRow]:
        """Return the different prompts of the file, in the order in which a sample draws them."""
        name = self.file.name
        content = read(self.file, name, self.holds)
        if self.column not in content.columns:
            near = suggestion(self.column, content.columns)
            cure = f"set `prompts.column` to the column with the prompts{near}"
            raise ProbeError(f"{name}:1: no column {quoted(self.column)}; {cure}")
        rows: dict[str, PromptRow] = {}
        for row in _prompt_rows(content, self.column):
            rows.setdefault(row.id, row)
        if not rows:
            cure = "set `prompts.column` to the column with the prompts"
            raise ProbeError(f"{name}:1: the column {quoted(self.column)} holds no texts; {cure}")
        return [rows[id_] for id_ in sorted(rows, key=lambda id_: sha256(f"{self.seed}/{id_}".encode()).digest())]


def _prompt_rows(content: Table, column: str) -> Iterator[PromptRow]:
    for row in content.rows:
        text: Json = row.fields.get(column)
        if isinstance(text, str) and text.strip():
            yield PromptRow(text.strip(), row.line)


def _errors(row: PromptRow, name: str, axes: Collection[str], elsewhere: Collection[str]) -> Iterator[str]:
    messages = [diagnostic.message for diagnostic in prompts.template_diagnostics(row.text, axes)]
    used = prompts.intended_placeholders(row.text, axes)
    messages += [
        f"the prompt does not use the axis {quoted(axis)}: write {{{axis}}} where its values belong"
        for axis in axes
        if axis not in used and axis not in elsewhere
    ]
    yield from (f"{name}:{row.line}: {message}" for message in messages)
