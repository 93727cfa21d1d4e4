"""Rows of files with recorded answers: the rules for their columns, which each kind of probe has as one table."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, Generic, Literal, NamedTuple, TypeVar

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import table
from pytest_fairness.probes.base import Probe, ResponsesSettings
from pytest_fairness.probes.diagnostics import raise_file_errors, suggestion
from pytest_fairness.probes.field_types import display_path, folded
from pytest_fairness.probes.table import Row
from pytest_fairness.records import Json, OtherColumn, RowsWithoutGroup

SHOWN_VALUES = 5
"""Largest number of unknown values that a message names."""
LONGEST_VALUE = 100
"""Largest number of characters of an unknown value that are compared and shown."""
MOST_VALUES = 1000
"""Largest number of different unknown values that are counted one by one."""
OTHERS = ""
"""Key under which all further unknown values are counted together."""
FIRST_ROWS = 1000
"""Number of rows from which it is decided which unused columns repeat their values."""
MOST_COMBINATIONS = 20_000
"""Largest number of combinations of labels and value that are counted for an unused column."""

ProbeT = TypeVar("ProbeT", bound=Probe)
Labels = dict[str, str]


@dataclass(frozen=True, slots=True)
class Column:
    """Rule for one column of a file of answers.

    Attributes:
        name: the column's name in the probe; `responses.columns` maps it to the column's name in the file.
        values: the valid values; `None` if any text is valid. Letter case and blanks around a value do not matter.
        unknown: what a row with another value is: a row without a group of the probe (it is counted), a row of another
            probe, or an error.
        every: whether each of `values` must be in a row.
        optional: whether a file may lack the column.
        filled: whether an empty cell is an error.
        is_label: whether the value is a label of the answer.
    """

    name: str
    values: Collection[str] | None = None
    unknown: Literal["group", "other", "error"] = "group"
    every: bool = False
    optional: bool = False
    filled: bool = False
    is_label: bool = True


TRIAL = Column("trial", optional=True, is_label=False)


class RecordedRow(NamedTuple):
    """Row of the probe: the labels and the trial number of its answer, and the answer as it is written."""

    labels: Labels
    trial: int
    content: Json


class Rows(ABC, Generic[ProbeT]):
    """Rows of the files that a probe names under `responses:`; several files are read like one with all of their rows.

    A subclass for each kind of probe has the table of its columns, and what their values mean together.

    Attributes:
        noun: what messages call the content of the rows.
        content_column: name of the column with the answers.
        duplicate_remedy: end of the message about a trial number that occurs twice.
        complete: whether every row must have all columns, if only with an empty value.
        columns: name of each column in the files, by its name in the probe.
        errors: errors of the rows as `file:line: message`.

    Raises:
        ProbeError: a file cannot be read, or lacks a column.
    """

    noun: ClassVar[str] = "answers"
    content_column: ClassVar[str] = "text"
    duplicate_remedy: ClassVar[str] = "; give one of the two rows another number"
    complete: ClassVar[bool] = False

    def __init__(self, probe: ProbeT, responses: ResponsesSettings) -> None:
        self.probe, self.responses = probe, responses
        self.name = display_path(responses.file, probe.source.root)
        files = [(file, display_path(file, probe.source.root)) for file in responses.files]
        self.content = table.TableFiles(files, self.noun)
        strata = [Column(stratum) for stratum in responses.strata]
        rules = sorted([*self.rules(), *strata], key=lambda rule: not rule.is_label)
        self.table = {rule.name: rule for rule in rules if self._is_read(rule)}
        self.columns = {name: responses.columns.get(name, name) for name in self.table} | self.other_names()
        for name, existing in self.content.columns.items():
            self._require_columns(name, existing)
        self._spellings = {
            rule.name: {folded(value): value for value in rule.values}
            for rule in self.table.values()
            if rule.values is not None
        }
        self._seen: dict[str, dict[str, str]] = {rule.name: {} for rule in self.table.values() if rule.every}
        self._filled = [rule.name for rule in self.table.values() if rule.filled]
        self.errors: list[str] = []
        self._counted: Counter[Hashable] = Counter()
        self._places: dict[Hashable, tuple[str, int]] = {}
        self._unused = {column: Counter[tuple[tuple[tuple[str, str], ...], str]]() for column in self._repeating()}
        self._left_out: defaultdict[str, LeftOut] = defaultdict(LeftOut)
        self._ignored = {*map(folded, responses.ignore)}

    @abstractmethod
    def rules(self) -> Sequence[Column]:
        """Return the table of the columns."""

    @property
    def group_labels(self) -> Sequence[str]:
        """Names of the labels that hold the group of a row; empty if the groups are compared in pairs of rows."""
        return ()

    def other_names(self) -> dict[str, str]:
        """Return columns whose name in the files differs from their name in the probe without `responses.columns`."""
        return {}

    def labels_of(self, row: Row, labels: Labels) -> Labels | None:
        """Return the labels of a row with these values; `None` if the row has an error, or belongs to another probe."""
        return labels

    def check(self, existing: Sequence[Labels]) -> None:
        """Raise `ProbeError` if answers are lacking; `existing` are the different labels of all rows."""

    def recorded(self) -> Iterator[RecordedRow]:
        """Yield the rows that belong to the probe; raise `ProbeError` for invalid rows, or if answers are lacking."""
        shared: dict[tuple[tuple[str, str], ...], Labels] = {}  # equal labels are one object, to save memory
        for row, found in self._labelled():
            labels = shared.setdefault(tuple(found.items()), found)
            trial = self.trial(row, labels)
            if trial is not None:
                yield RecordedRow(labels, trial, row.fields.get(self.columns[self.content_column]))
        self.finish(list(shared.values()))

    def finish(self, existing: Sequence[Labels]) -> None:
        """Raise `ProbeError` for the errors of rows, for values without rows, and for lacking answers."""
        faults = []
        for name, seen in self._seen.items():
            values, column = self._spellings[name], self.columns[name]
            others = [text for form, text in seen.items() if text and form not in values][:10]
            hint = f"; further values in this column: {', '.join(map(repr, others))}" if others else ""
            faults += [
                f"{self.name}:1: no row has {value!r} in the column {column!r}{hint}. Write the value in the probe "
                "as in the file, add such rows, or remove the value from the probe"
                for form, value in values.items()
                if form not in seen
            ]
        raise_file_errors([*faults, *self.errors], self.name)
        self.check(existing)

    def rows(self) -> Iterator[Row]:
        return self.content.rows({*self.columns.values(), *self._unused})

    def cell(self, row: Row, name: str) -> str:
        """Return the value in a column as text; an empty text for a missing value."""
        value = row.fields.get(self.columns[name]) if name in self.columns else None
        return "" if value is None else text_field(value).strip()

    def values_of(self, row: Row) -> tuple[Labels, list[Column]]:
        """Return a row's values by label, in the spelling of the probe, and the columns that have unknown values."""
        values, unknown = {}, []
        for name, rule in self.table.items():
            if not rule.is_label:
                continue
            written = self.cell(row, name)
            if rule.every:
                self._seen[name].setdefault(folded(written), written)
            if rule.values is not None:
                found = self._spellings[name].get(folded(written))
                if found is None:
                    unknown.append(rule)
                values[name] = written if found is None else found
            else:
                values[name] = written
        return values, unknown

    def _labelled(self) -> Iterator[tuple[Row, Labels]]:
        for row in self.rows():
            values, unknown = self.values_of(row)
            if self.lacks_value(row):
                continue
            if unknown and all(rule.unknown == "error" for rule in unknown):
                for rule in unknown:
                    self.not_one_of(row, rule.name, rule.values or ())
            elif unknown:
                left = [rule for rule in unknown if rule.unknown != "error"]
                self.leave_out(row, *(rule.name for rule in left), of_group=all(r.unknown == "group" for r in left))
            if not unknown and (labels := self.labels_of(row, values)) is not None:
                self._count_unused(row, labels)
                yield row, labels

    def lacks_value(self, row: Row) -> bool:
        """Return whether a row lacks a column that it must have, which is an error."""
        needed = self.columns.values() if self.complete else ()
        lacking = [column for column in needed if column not in row.fields]
        lacking += [self.columns[name] for name in self._filled if not self.cell(row, name)]
        if lacking:
            self.error(row, f"this row has no {', '.join(map(repr, lacking))}; each row needs a value")
        return bool(lacking)

    def error(self, row: Row, message: str) -> None:
        self.errors.append(f"{row.file}:{row.line}: {message}")

    def not_one_of(self, row: Row, name: str, values: Iterable[str]) -> None:
        valid = " or ".join(map(repr, values))
        self.error(row, f"{self.columns[name]!r} must be {valid}, not {self.cell(row, name)[:60]!r}")

    def trial(self, row: Row, labels: Labels, named: str = "") -> int | None:
        """Return the trial number of a row; `None` with an error if it is invalid, or twice for the same labels.

        Without a column of trial numbers, the rows with the same labels are numbered in the order of the file.
        """
        cell = tuple(labels.items())
        if "trial" not in self.columns:
            self._counted[cell] += 1
            return self._counted[cell] - 1
        number = self.number(row, "trial")
        if number is None:
            return None
        file, line = self._places.setdefault((cell, number), (row.file, row.line))
        if (file, line) == (row.file, row.line):
            return number
        place = f"line {line}" if file == row.file else f"{file}:{line}"
        where = named or ", ".join(f"{name} {value}" for name, value in labels.items() if value and name != "wording")
        self.error(row, f"trial {number} of {where} is also in {place}{self.duplicate_remedy}")
        return None

    def number(self, row: Row, name: str) -> int | None:
        """Return the whole number in a column; 0 without the column, and `None` with an error if it is invalid."""
        if name not in self.columns:
            return 0
        number = whole_number(row.fields.get(self.columns[name]))
        if number is None:
            self.error(row, f"{self.columns[name]!r} must be a whole number, at least 0")
        return number

    # Columns of the files.

    def _is_read(self, column: Column) -> bool:
        return not column.optional or column.name in self.responses.columns or self.has_column(column.name)

    def has_column(self, column: str) -> bool:
        return any(column in columns for columns in self.content.columns.values())

    def _require_columns(self, file: str, existing: Sequence[str]) -> None:
        faults = []
        for name, column in self.columns.items():
            if column not in existing:
                near = suggestion(column, existing)
                near = near if "did you mean" in near else ""
                remedy = f"; set `responses.columns.{name}` to the name of the right column"
                faults.append(
                    f"{file}:1: no column {column!r}{near} (the columns are {', '.join(map(repr, existing))})"
                    f"{'' if name in self.responses.strata else remedy}"
                )
        if faults:
            raise ProbeError("\n".join(faults))

    def _repeating(self) -> list[str]:
        """Return the unused columns whose values repeat: no identifiers, long texts or lists."""
        used = {*self.columns.values()}
        every = (name for columns in self.content.columns.values() for name in columns)
        unused = dict.fromkeys(name for name in every if name not in used) if self.group_labels else {}
        first = list(islice(self.content.rows(unused), FIRST_ROWS)) if unused else []
        values = {name: [row.fields.get(name) for row in first] for name in unused}
        return [
            name
            for name, own in values.items()
            if not any(isinstance(value, list | dict) for value in own) and 2 * len({*map(text_field, own)}) <= len(own)
        ]

    def _count_unused(self, row: Row, labels: Labels) -> None:
        """Count the row's values of the unused columns; give up on a column with too many of them."""
        for name, counts in [*self._unused.items()]:
            counts[tuple(labels.items()), text_field(row.fields.get(name))[:LONGEST_VALUE].strip()] += 1
            if len(counts) > MOST_COMBINATIONS:
                del self._unused[name]

    @property
    def other_columns(self) -> list[OtherColumn]:
        """Unused columns whose values repeat, with their values by stratum and group, for each label of groups."""
        found = []
        for label in self.group_labels:
            for name, counted in self._unused.items():
                counts: Counter[tuple[Hashable, str, str]] = Counter()
                for (combination, value), count in counted.items():
                    labels = dict(combination)
                    if label in labels:
                        group = labels.pop(label)
                        counts[tuple(labels.items()), group, value] += count
                found.append(OtherColumn(name, label, counts))
        return found

    # Rows that are left out.

    def leave_out(self, row: Row, *names: str, of_group: bool, attribute: str = "") -> None:
        """Count a row that is left out because columns are empty, or hold values that the probe does not have.

        It is left out of all items, or only of those of an attribute. It is a row without a group, unless it has values
        of something else (not `of_group`), or of a group that the key `responses.ignore` lists; then it belongs to
        another probe.
        """
        left_out = self._left_out[attribute]
        values = [text[:LONGEST_VALUE] for name in names if (text := self.cell(row, name))]
        if values and (not of_group or self._ignored & {"*", *map(folded, values)}):
            left_out.of_other_probes += 1
            return
        left_out.rows += 1
        left_out.columns |= dict.fromkeys(self.columns[name] for name in names)
        left_out.first = left_out.first or row
        if values:
            known = values[0] in left_out.unknown or len(left_out.unknown) < MOST_VALUES
            left_out.unknown[values[0] if known else OTHERS] += 1

    @property
    def without_group(self) -> RowsWithoutGroup | None:
        """Summary of the rows that were left out because they name no group of the probe; `None` without any."""
        return self.without_group_of.get("")

    @property
    def without_group_of(self) -> dict[str, RowsWithoutGroup]:
        """Return the same by attribute, for rows that have no group of the attribute; all items have an empty name."""
        return {
            attribute: RowsWithoutGroup(
                rows=left_out.rows,
                of=self.content.count - left_out.of_other_probes,
                columns=tuple(left_out.columns),
                first_line=left_out.first.line,
                first_file=left_out.first.file if len(self.content.columns) > 1 else "",
                unknown=left_out.unknown.total(),
                values={name: count for name, count in left_out.unknown.most_common(SHOWN_VALUES) if name != OTHERS},
            )
            for attribute, left_out in self._left_out.items()
            if left_out.first is not None
        }


@dataclass
class LeftOut:
    """Counts of the rows that are left out; see `RowsWithoutGroup`."""

    rows: int = 0
    of_other_probes: int = 0
    columns: dict[str, None] = field(default_factory=dict)
    first: Row | None = None
    unknown: Counter[str] = field(default_factory=Counter)


def text_field(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return whole_characters(text)


def whole_characters(text: str) -> str:
    """Return the text with lone surrogates replaced, because they cannot be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def whole_number(value: Json) -> int | None:
    """Return the whole number ≥ 0 (at most 15 digits) that a field contains as a number or text, otherwise `None`."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value.strip()) <= 15:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15 else None
