"""Records of a counterfactual probe: written in the probe, in a file in the probe's folder, or from OpenML."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice, zip_longest
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Discriminator, Field, Tag

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import table
from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.data_file import DataFile
from pytest_fairness.probes.diagnostics import quoted
from pytest_fairness.probes.field_types import Line, ProbeFile
from pytest_fairness.records import Json

UCI_SUFFIXES = (".data", ".test")
ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
)
"""Column names for UCI's `adult.data`, which has no header: the names in `adult.names`, and `income` for the label."""

MISSING = table.MISSING | {"?"}
ID_DIGITS = 10

Fields = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Record:
    """Record: its id, which is the same in every run, and its non-empty fields by column."""

    id: str
    fields: Fields


class SampleSettings(ProbeModel):
    """Base class of the settings of a file or data set of records, from which a sample may be drawn."""

    id: Line = Field(
        default="id",
        description="Column with the id of each record. If no record has this column, the id is a digest of the "
        "record's content.",
    )
    sample: int | None = Field(default=None, ge=1, description="Number of records in the sample. Default: all.")
    seed: int = Field(default=0, ge=0, description="Seed of the sample: the same seed draws the same records.")
    balance: tuple[Line, ...] = Field(
        default=(),
        min_length=1,
        description="Columns by which the sample is balanced: it holds the same number of records for each combination "
        "of their values. With `sample`, the numbers can differ.",
    )


class RecordsFile(SampleSettings, DataFile):
    """Records in a file in the probe's folder."""

    suffixes: ClassVar[tuple[str, ...]] = (*DataFile.suffixes, *UCI_SUFFIXES)
    holds: ClassVar[str] = "records"

    file: ProbeFile = Field(
        description="CSV (.csv), JSON Lines (.jsonl, .ndjson), a JSON list (.json), or UCI's adult.data (.data, .test)."
    )


class OpenmlRecords(SampleSettings):
    """Records of a data set on OpenML, which is fetched once and kept in scikit-learn's cache."""

    openml: Line = Field(description="Name of the data set on openml.org, such as `adult`.")
    version: int | None = Field(default=None, ge=1, description="Version of the data set. Default: the active version.")


def _list_file_or_openml(value: object) -> str:
    # When a model is serialised, pydantic passes the model instead of a mapping.
    if isinstance(value, OpenmlRecords) or (isinstance(value, Mapping) and "openml" in value):
        return "openml"
    return "file" if isinstance(value, Mapping | ProbeModel) else "list"


WrittenRecords = Annotated[
    Annotated[tuple[dict[Line, str | int | float | None], ...], Tag("list"), Field(min_length=1)]
    | Annotated[RecordsFile, Tag("file")]
    | Annotated[OpenmlRecords, Tag("openml")],
    Discriminator(_list_file_or_openml),
]
"""Type of the key `records`: a list of records, a file, or a data set of OpenML."""


def rows_of(written: WrittenRecords) -> list[dict[str, str]]:
    """Return the fields of all records, not only of the sample, as text; missing values are left out.

    Raises:
        ProbeError: the records cannot be read or fetched.
    """
    if isinstance(written, OpenmlRecords):
        rows: Iterable[Mapping[str, Json]] = _fetched(written)
    elif isinstance(written, RecordsFile):
        uci = written.file.suffix.casefold() in UCI_SUFFIXES
        rows = _uci(written.file) if uci else _table(written.file)
    else:
        rows = written
    return [{name: value for name, field in row.items() if (value := _text(field)) not in MISSING} for row in rows]


def sampled_records(written: WrittenRecords, rows: Sequence[Fields]) -> list[Record]:
    """Return all records, or a seeded sample, which does not depend on the records' order.

    If `balance` names columns, records are drawn in rounds: each round draws one record of each combination of values
    in these columns, until there are `sample` records. If `sample` is not set, each combination gives as many records
    as the rarest combination has.
    A record without a value in a column of `balance` is not drawn.

    Raises:
        ProbeError: two records have the same id, only some records have an id, there are too few records for the
            sample, or no record has a value in every column of `balance`.
    """
    if not isinstance(written, SampleSettings):
        return _with_ids(rows, "id")
    records = _with_ids(rows, written.id)
    if written.sample is None and not written.balance:
        return records
    places = {record.id: place for place, record in enumerate(records)}
    shuffled = sorted(records, key=lambda record: sha256(f"{written.seed}/{record.id}".encode()).digest())
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in shuffled:
        if all(column in record.fields for column in written.balance):
            groups.setdefault(tuple(record.fields[column] for column in written.balance), []).append(record)
    columns = ", ".join(written.balance)
    if columns and not groups:
        raise ProbeError(f"no record has a value in every column of `balance` ({columns}): correct the columns")
    available = sum(map(len, groups.values()))
    count = len(groups) * min(map(len, groups.values())) if written.sample is None else written.sample
    if count > available:
        with_values = f" with {columns}" if columns else ""
        raise ProbeError(f"there are only {available} records{with_values}, but `sample` is {count}: lower `sample`")
    # The order of the groups within a round matters only in the last round.
    rounds = zip_longest(*(groups[name] for name in sorted(groups)))
    in_turn = (record for records_ in rounds for record in records_ if record)
    return sorted(islice(in_turn, count), key=lambda record: places[record.id])


def _with_ids(rows: Sequence[Fields], column: str) -> list[Record]:
    """Return the records with their ids.

    The id of a record is its value in `column`. If no record has this column, the id is a digest of the record's
    content, with a number added if several records have the same content.

    Raises:
        ProbeError: two records have the same id, or only some records have an id.
    """
    if not any(column in row for row in rows):
        seen: Counter[str] = Counter()
        records = []
        for row in rows:
            digest = sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()[:ID_DIGITS]
            seen[digest] += 1
            records.append(Record(digest if seen[digest] == 1 else f"{digest}-{seen[digest]}", row))
        return records
    first: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        if column not in row:
            raise ProbeError(f"record {number} has no value of {column!r}, but other records have one: add the value")
        if first.setdefault(row[column], number) != number:
            same = f"the same {column} {quoted(row[column])}: change one of them"
            raise ProbeError(f"records {first[row[column]]} and {number} have {same}")
    return [Record(row[column], row) for row in rows]


def _text(value: Json) -> str:
    """Return a field as one line of text; an empty text for a missing value or NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).split())


def _table(file: Path) -> list[dict[str, Json]]:
    return [row.fields for row in table.read(file, file.name, "records").rows]


def _uci(file: Path) -> list[dict[str, Json]]:
    """Return the rows of a file in UCI's format.

    The file has no header. It has blanks after commas, comments with `|`, and labels that may end in `.`.
    """
    lines = table.read_text(file, file.name).replace("\r\n", "\n").split("\n")
    rows: list[dict[str, Json]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("|"):
            continue
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(ADULT_COLUMNS):
            raise ProbeError(
                f"{file.name}:{number}: the line has {len(fields)} fields, but UCI's adult.data has "
                f"{len(ADULT_COLUMNS)}; a file with other columns needs a header and the suffix .csv"
            )
        fields[-1] = fields[-1].rstrip(".")
        rows.append(dict(zip(ADULT_COLUMNS, fields, strict=True)))
    if not rows:
        raise ProbeError(f"{file.name}:1: the file holds no records")
    return rows


def _fetched(data_set: OpenmlRecords) -> list[dict[str, Json]]:
    """Return the rows of a data set of OpenML, from scikit-learn's cache or from the network."""
    # The import takes a second, and only probes of OpenML records need it.
    from sklearn.datasets import fetch_openml

    version: int | str = "active" if data_set.version is None else data_set.version
    called = f"{data_set.openml} (version {version})"
    try:
        with warnings.catch_warnings():
            # scikit-learn warns if several versions are active; a probe can name one.
            warnings.simplefilter("ignore", UserWarning)
            found = fetch_openml(
                data_set.openml, version=version, as_frame=False, target_column=None, parser="liac-arff", n_retries=1
            )
    except Exception as error:  # network, proxy, half-written cache and unknown formats raise various errors
        argument = f"version={version}" if data_set.version is not None else "version='active'"
        raise ProbeError(
            f"the data set {called} cannot be fetched from openml.org ({type(error).__name__}: {error}). (1) On a "
            f'machine with a network, run: python -c "from sklearn.datasets import fetch_openml; '
            f"fetch_openml('{data_set.openml}', {argument}, as_frame=False, parser='liac-arff')\". (2) Copy the folder "
            "~/scikit_learn_data, scikit-learn's cache, from there to this machine. Instead of both steps, you can "
            "download the records as a file and name the file: `records: {file: adult.data}`"
        ) from error
    categories: Mapping[str, Sequence[str]] = found.categories or {}
    return [
        {name: _decoded(value, categories.get(name)) for name, value in zip(found.feature_names, row, strict=True)}
        for row in found.data.tolist()
    ]


def _decoded(value: Json, categories: Sequence[str] | None) -> Json:
    """Return the name of a category that scikit-learn encoded as a number; return any other value unchanged."""
    if categories is None or not isinstance(value, float | int) or math.isnan(value):
        return value
    return categories[int(value)]
