"""Records of counterfactual probes, and flips of their attributes."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice, product, zip_longest
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Discriminator, Field, Tag

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import field_types, table
from pytest_fairness.probes.diagnostics import Diagnostic, Part, quoted, suggestion
from pytest_fairness.probes.field_types import Line, ProbeFile, ProbeModel, mapping_or_other
from pytest_fairness.probes.table import DataFile
from pytest_fairness.records import Json

# Records of a counterfactual probe: written in the probe, in a file in the probe's folder, or from OpenML.

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
    """Return the fields of all records, not only of the sample, as text; missing values are left out."""
    if isinstance(written, OpenmlRecords):
        rows: Iterable[Mapping[str, Json]] = _fetched(written)
    elif isinstance(written, RecordsFile):
        file = written.file
        uci = file.suffix.casefold() in UCI_SUFFIXES
        rows = _uci(file) if uci else [row.fields for row in table.read(file, file.name, "records").rows]
    else:
        rows = written
    return [{name: value for name, field in row.items() if (value := _text(field)) not in MISSING} for row in rows]


def sampled_records(written: WrittenRecords, rows: Sequence[Fields]) -> list[Record]:
    """Return all records, or a seeded sample, which does not depend on the records' order.

    If `balance` names columns, records are drawn in rounds: each round draws one record of each combination of values
    in these columns, until there are `sample` records. If `sample` is not set, each combination gives as many records
    as the rarest combination has.
    A record without a value in a column of `balance` is not drawn.
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


def _uci(file: Path) -> list[dict[str, Json]]:
    """Return the rows in UCI's format: no header, comments with `|`, labels that may end in `.`."""
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


# Flips: changes of one or several attributes of a record, and of the columns that depend on these attributes.

WITH = "with"
"""Key under `flip` whose value lists dependent columns; no attribute may have this name."""

LABELS = ("record", "form", "attribute", "to", "truth", "id", "answer", "text", "trial", "asked")
"""Names that no attribute may have, because they are names of labels or columns of answers."""

Pairs = dict[Line, Line]


# The content of `with` and the values of several attributes are nested deeper than the values of one attribute;
# `flip_faults` requires the right depth.
WrittenFlip = Annotated[
    Annotated[dict[Line, Line | tuple[Line, ...] | dict[Line, Line | Pairs]], Tag("mapping"), Field(min_length=1)]
    | Annotated[tuple[Line, ...], Tag("other"), Field(min_length=2)],
    Discriminator(mapping_or_other),
]


@dataclass(frozen=True, slots=True)
class Flip:
    """Flip of one attribute, or of several attributes at once, with the columns that depend on the attributes.

    Attributes:
        values: at least two values, in the probe's order; audits subtract the result for the later of two values from
            that for the earlier one. The values of several attributes are the combinations of their values, such as
            `Female; Black`.
        dependents: for each dependent column, its values and their replacements (`{"Husband": "Wife"}`) in a flip from
            the first value of the attribute to the second. The opposite flip reverses them.
        parts: the flips of the attributes that are flipped at once; empty for a single attribute.
        cells: for each of `values`, the single values that are combined, one of each flip in `parts`.
    """

    attribute: str
    values: tuple[str, ...]
    dependents: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    parts: tuple[Flip, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def combined(cls, parts: Sequence[Flip]) -> Self:
        cells = tuple(product(*(part.values for part in parts)))
        values = tuple("; ".join(cell) for cell in cells)
        return cls("+".join(part.attribute for part in parts), values, parts=tuple(parts), cells=cells)

    @property
    def columns(self) -> tuple[Flip, ...]:
        return self.parts or (self,)

    def others(self, value: str) -> tuple[str, ...]:
        return tuple(other for other in self.values if other != value)

    def value_of(self, fields: Fields) -> str | None:
        """Return the record's value of the attribute; `None` if the record has no value that the flip lists."""
        if not self.parts:
            value = fields.get(self.attribute)
            return value if value in self.values else None
        found = [part.value_of(fields) for part in self.parts]
        return None if None in found else "; ".join(map(str, found))

    def fields_of(self, value: str) -> dict[str, str]:
        """Return each column's content for this value: `{"sex": "Female", "race": "Black"}` for `Female; Black`."""
        if not self.parts:
            return {self.attribute: value}
        cell = self.cells[self.values.index(value)]
        return {part.attribute: content for part, content in zip(self.parts, cell, strict=True)}

    def apply(self, fields: Fields, value: str) -> dict[str, str]:
        """Return the fields of a record after a flip of the attribute to this value; dependent columns change, too."""
        flipped = self.fields_of(value)
        edited = {**fields, **flipped}
        for part in self.columns:
            if flipped[part.attribute] == fields.get(part.attribute):
                continue
            forward = flipped[part.attribute] != part.values[0]
            for column, pairs in part.dependents.items():
                replacements = pairs if forward else {second: first for first, second in pairs.items()}
                if fields.get(column) in replacements:
                    edited[column] = replacements[fields[column]]
        return edited

    def to_json(self) -> Json:
        """Return the flip as plain JSON.

        The JSON does not depend on the order of the replacements in a dependent column, and depends on the order of the
        attribute's values only if there are two.
        """
        if self.parts:
            return {part.attribute: part.to_json() for part in self.parts}
        values: Any = list(self.values) if self.dependents or len(self.values) == 2 else sorted(self.values)
        return {
            "values": values,
            "with": {column: dict(sorted(pairs.items())) for column, pairs in self.dependents.items()},
        }


def flips_of(written: Mapping[str, Any]) -> dict[str, Flip]:
    """Return the flips by attribute; `written` is the value of the key `flip`, which `flip_faults` has checked."""
    dependents = written.get(WITH, {})
    several = len(columns_of(written)) > 1

    def single(name: str, values: Any) -> Flip:
        if isinstance(values, Mapping):
            ((first, second),) = values.items()
            values = (first, second)
        return Flip(name, tuple(values), dependents.get(name, {}) if several else dependents)

    return {
        name: Flip.combined([single(*part) for part in values.items()])
        if _is_combined(values)
        else single(name, values)
        for name, values in written.items()
        if name != WITH
    }


def columns_of(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return each flipped column with its values as in the probe file; `sex+race` gives two columns."""
    found: dict[str, Any] = {}
    for name, values in written.items():
        if name != WITH:
            found |= values if _is_combined(values) else {name: values}
    return found


def _is_combined(values: Any) -> bool:
    """Return whether a value under `flip` names several attributes, as in `{sex: {Male: Female}, race: [A, B]}`."""
    return isinstance(values, Mapping) and any(not isinstance(value, str) for value in values.values())


def flip_faults(flip: Part) -> Iterator[Diagnostic]:
    """Yield diagnostics for the value of a probe's key `flip`.

    If one attribute is flipped, the key `with` lists its dependent columns. If several attributes are flipped, `with`
    lists the dependent columns of each attribute under the attribute's name.
    """
    attributes = [attribute for attribute in flip if attribute.name != WITH]
    for attribute in attributes:
        yield from _attribute_faults(attribute)
    if not attributes:
        yield flip.fault("no attribute is flipped: name an attribute with its values, `sex: {Male: Female}`")
    if WITH not in flip:
        return
    values, dependents = columns_of(flip.value), flip[WITH]
    if not isinstance(dependents.value, Mapping):
        yield dependents.fault(
            "must be a mapping of columns, each with its pairs of values, such as `relationship: {Husband: Wife}`"
        )
    elif len(values) == 1:
        yield from _dependent_column_faults(dependents, *values.items())
    else:
        for columns in dependents:
            if columns.name not in values:
                yield columns.key_fault(
                    "several attributes are flipped, so `with` must list each column under the attribute on which it "
                    f"depends, but {quoted(columns.name)} is no flipped attribute{suggestion(columns.name, values)}"
                )
            elif isinstance(columns.value, Mapping):
                yield from _dependent_column_faults(columns, (columns.name, values[columns.name]))
            else:
                yield columns.fault("must be a mapping of columns, each with its pairs of values")


def _attribute_faults(attribute: Part) -> Iterator[Diagnostic]:
    name, values = attribute.name, attribute.value
    if name in LABELS:
        yield attribute.key_fault(
            f"{quoted(name)} cannot be an attribute, because answers have a label of this name: rename it"
        )
    if _is_combined(values) and len(values) == 1 and "+" not in name:
        yield attribute[next(iter(values))].fault("the value after the flip must be text, as in `{Male: Female}`")
    elif _is_combined(values):
        if name != "+".join(values):
            yield attribute.key_fault(
                f"rename {quoted(name)} to {quoted('+'.join(values))}: a flip of several attributes is named after "
                "them, joined by +"
            )
        for part in attribute:
            if part.is_text or _is_combined(part.value):
                yield part.fault("values are missing: write a pair, `{Male: Female}`, or a list, `[A, B, C]`")
            elif len(part.value) < (1 if isinstance(part.value, Mapping) else 2):
                yield part.fault("needs at least two values")
            else:
                yield from _attribute_faults(part)
    elif not isinstance(values, Mapping):
        yield from field_types.repeats(attribute, "write each value once", str)
    else:
        if len(values) > 1:
            yield attribute.fault("a mapping has only one pair of values; write more values as a list, `[A, B, C]`")
        for value in attribute:
            if value.name == value.text:
                yield value.fault(f"{value.quoted} is flipped to itself: write two different values")


def _dependent_column_faults(columns: Part, flipped: tuple[str, Any]) -> Iterator[Diagnostic]:
    """Yield diagnostics for the dependent columns of one attribute; `flipped` is its name and its values."""
    attribute, values = flipped
    if not isinstance(values, Mapping) and len(values) > 2:
        yield columns.fault(
            f"`with` is possible only for an attribute with two values, and {quoted(attribute)} has {len(values)}: "
            "remove `with`"
        )
    for column in columns:
        pairs = column.value
        if column.name == attribute:
            yield column.key_fault(
                f"{quoted(attribute)} is the flipped attribute itself: name a column that depends on it"
            )
        if not isinstance(pairs, Mapping) or not pairs:
            yield column.fault("must be a mapping of values, such as `{Husband: Wife}`")
        elif any(not isinstance(value, str) for value in pairs.values()):
            yield column.fault("values must be text, as in `{Husband: Wife}`")
        elif len({*pairs.values()}) < len(pairs):
            yield column.fault(
                "two values have the same replacement, so that a flip cannot be reversed: write different replacements"
            )
