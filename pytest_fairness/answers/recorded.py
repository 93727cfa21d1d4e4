"""Files with recorded answers, which replace requests to a target: base classes of readers, checks of fields."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, tee
from typing import ClassVar, Generic, TypeVar

from pytest_fairness.answers import reading
from pytest_fairness.backends import chunks_of, map_chunks
from pytest_fairness.errors import ProbeError
from pytest_fairness.languages import Language
from pytest_fairness.probes import field_types, table
from pytest_fairness.probes.base import Probe, ResponsesSettings
from pytest_fairness.probes.diagnostics import raise_file_errors, suggestion
from pytest_fairness.probes.field_types import display_path
from pytest_fairness.probes.table import Row
from pytest_fairness.records import Answer, Json, OtherColumn, Prompt, RowsWithoutGroup

# Base classes of the readers of answer files.

SHOWN_VALUES = 5
"""Largest number of unknown values that a message names."""
LONGEST_VALUE = 100
"""Largest number of characters of an unknown value that are compared and shown."""
MOST_VALUES = 1000
"""Largest number of different unknown values that are counted one by one."""
OTHERS = ""
"""Key under which all further unknown values are counted together."""

AT_ONCE = 4096
"""Number of rows in a chunk; see `map_chunks`."""
FIRST_ROWS = 1000
"""Number of rows from which it is decided which unused columns repeat their values."""
MOST_COMBINATIONS = 20_000
"""Largest number of combinations of labels and value that are counted for an unused column."""

ProbeT = TypeVar("ProbeT", bound=Probe)
Labels = tuple[tuple[str, str], ...]
"""Names and values of the labels of a row."""
TextRow = tuple[Prompt, int, str | None]
"""Prompt with the labels of a row, trial number, and text."""


class Reader(ABC, Generic[ProbeT]):
    """Base class of the readers of answer files, which a probe names under `responses:`.

    Several files are read like one file with all of their rows.

    Attributes:
        probe, responses: the probe, and the value of its key `responses`.
        name: name of the file, or pattern of the files, for messages.
        content: columns and rows of the files.
        columns: name of each column in the files, by its name in the probe (an axis, `trial`, `text`, …).
        trial_numbers: trial numbers and errors of the rows.
        content_noun: what messages call the content of the rows; set by a class.
        duplicate_trial_remedy: end of the error message for a trial number that occurs twice; set by a class.

    Raises:
        ProbeError: a file cannot be read, or lacks a column.
    """

    content_noun: ClassVar[str] = "answers"
    duplicate_trial_remedy: ClassVar[str] = "; give one of the two rows another number"

    def __init__(self, probe: ProbeT, responses: ResponsesSettings) -> None:
        self.probe, self.responses = probe, responses
        self.name = display_path(responses.file, probe.source.root)
        files = [(file, display_path(file, probe.source.root)) for file in responses.files]
        self.content = table.TableFiles(files, self.content_noun)
        self.columns = self._columns()
        for name, columns in self.content.columns.items():
            require_columns(name, self.columns, columns, responses.strata)
        self.trial_numbers = TrialNumbers(self.name, self.columns.get("trial"), self.duplicate_trial_remedy)
        self._rows_without_group = 0
        self._columns_without_group: dict[str, None] = {}
        self._first_without_group: Row | None = None
        self._unknown: Counter[str] = Counter()
        self._ignored = {*map(field_types.folded, responses.ignore)}
        self._of_other_probes = 0

    @abstractmethod
    def answers(self) -> list[Answer]:
        """Return the answers of the probe; raise `ProbeError` if rows are invalid, or answers are lacking."""

    @property
    def other_columns(self) -> list[OtherColumn]:
        """Columns that the probe does not use, with their values by group; empty where answers come in pairs.

        A kind whose answers are compared only within the same entity, record or question needs none.
        """
        return []

    @property
    def without_group(self) -> RowsWithoutGroup | None:
        """Summary of the rows that `answers` left out because they name no group of the probe; `None` without any."""
        if self._first_without_group is None:
            return None
        return RowsWithoutGroup(
            rows=self._rows_without_group,
            of=self.content.count - self._of_other_probes,
            columns=tuple(self._columns_without_group),
            first_line=self._first_without_group.line,
            first_file=self._first_without_group.file if len(self.content.columns) > 1 else "",
            unknown=self._unknown.total(),
            values={name: count for name, count in self._unknown.most_common(SHOWN_VALUES) if name != OTHERS},
        )

    def rows(self) -> Iterator[Row]:
        return self.content.rows({*self.columns.values(), *self.responses.strata})

    def _leave_out(self, row: Row, columns: Collection[str], *, of_group: bool) -> None:
        """Count a row that is left out because columns are empty, or hold values that the probe does not have.

        It is a row without a group, unless it has values of something else (not `of_group`), or of a group that the key
        `responses.ignore` lists; then it belongs to another probe.
        """
        written = [value for column in columns if (value := row.fields.get(column)) is not None]
        values = [text[:LONGEST_VALUE] for value in written if (text := text_field(value).strip())]
        if values and (not of_group or self._ignored & {"*", *map(field_types.folded, values)}):
            self._of_other_probes += 1
            return
        self._rows_without_group += 1
        self._columns_without_group |= dict.fromkeys(columns)
        self._first_without_group = self._first_without_group or row
        if values:
            known = values[0] in self._unknown or len(self._unknown) < MOST_VALUES
            self._unknown[values[0] if known else OTHERS] += 1

    def _require_values(self, values_by_name: Mapping[str, Mapping[str, str]]) -> None:
        """Raise `ProbeError` unless each value is in a row; values are given by column in the probe and folded form."""
        faults = []
        for name, values in values_by_name.items():
            column = self.columns[name]
            texts = (text_field(value).strip() for row in self.rows() if (value := row.fields.get(column)) is not None)
            existing = {field_types.folded(text): text for text in texts}
            others = [text for folded, text in existing.items() if text and folded not in values][:10]
            hint = f"; further values in this column: {', '.join(map(repr, others))}" if others else ""
            faults += [
                f"{self.name}:1: no row has {value!r} in the column {column!r}{hint}. Write the value in the probe "
                "as in the file, add such rows, or remove the value from the probe"
                for folded, value in values.items()
                if folded not in existing
            ]
        raise_file_errors(faults, self.name)

    @abstractmethod
    def _columns(self) -> dict[str, str]:
        """Return the columns to read: for each column's name in the probe, its name in the files."""

    def _column_names(self, needed: Iterable[str], optional: Sequence[str] = ()) -> dict[str, str]:
        """Return, for each column's name in the probe, its name in the files; leave out missing optional columns."""
        written = self.responses.columns
        existing = [name for name in optional if name in written or self.has_column(name)]
        return {name: written.get(name, name) for name in [*needed, *existing]}

    def has_column(self, column: str) -> bool:
        return any(column in columns for columns in self.content.columns.values())


class TextReader(Reader[ProbeT]):
    """Base class of the readers of files with one text per row; every row must have all columns.

    `_texts` returns the answers of the rows that belong to the probe; it raises `ProbeError` if a row lacks a column,
    or has an invalid or repeated trial number.
    """

    def __init__(self, probe: ProbeT, responses: ResponsesSettings) -> None:
        super().__init__(probe, responses)
        self._unused = {column: Counter[tuple[Labels, str]]() for column in self._repeating_columns()}

    @property
    def group_labels(self) -> tuple[str, ...]:
        """Names of the labels that hold the group of a row; empty if the groups are compared in pairs of rows."""
        return ()

    @property
    def other_columns(self) -> list[OtherColumn]:
        """Unused columns whose values repeat, with their values by group, for each label of groups."""
        return [_by_group(name, label, counts) for label in self.group_labels for name, counts in self._unused.items()]

    def _repeating_columns(self) -> list[str]:
        """Return the unused columns whose values repeat: no identifiers, long texts or lists."""
        if not self.group_labels:
            return []
        used = {*self.columns.values(), *self.responses.strata}
        unused = dict.fromkeys(
            name for columns in self.content.columns.values() for name in columns if name not in used
        )
        first = list(islice(self.content.rows(unused), FIRST_ROWS)) if unused else []
        values = {name: [row.fields.get(name) for row in first] for name in unused}
        return [
            name
            for name, own in values.items()
            if not any(isinstance(value, list | dict) for value in own) and 2 * len({*map(text_field, own)}) <= len(own)
        ]

    def _count_unused(self, row: Row, labels: Mapping[str, str]) -> None:
        """Count the row's values of the unused columns; give up on a column with too many of them."""
        combination = tuple(labels.items())
        for name, counts in [*self._unused.items()]:
            counts[combination, text_field(row.fields.get(name))[:LONGEST_VALUE].strip()] += 1
            if len(counts) > MOST_COMBINATIONS:
                del self._unused[name]

    def _texts(self) -> list[Answer]:
        answers = []
        chunks, sent = tee(chunks_of(self._rows_of_probe(), AT_ONCE))
        for rows, found in zip(chunks, map_chunks(partial(_read, language=self.probe.language), sent), strict=True):
            for (prompt, trial, written), answer in zip(rows, found, strict=True):
                # Another process returns copies. Equal texts are kept once, to save memory.
                text = written if answer.text == written else answer.text
                content = text if answer.content == text else answer.content
                answers.append(replace(answer, labels=prompt.labels, trial=trial, text=text, content=content))
        self.trial_numbers.raise_errors()
        return answers

    def _rows_of_probe(self) -> Iterator[TextRow]:
        """Yield the rows that belong to the probe; add the errors of invalid rows to `trial_numbers`."""
        # Answers with equal labels share them, to save memory.
        shared: dict[tuple[str, ...], Prompt] = {}
        for row in self.content.rows({*self.columns.values(), *self.responses.strata, *self._unused}):
            if self.trial_numbers.lacks(row, self.columns.values()):
                continue
            labels = self._labels(row)
            if labels is None:
                continue
            if self._unused:
                self._count_unused(row, labels)
            cell = tuple(labels.values())
            prompt = shared.get(cell) or shared.setdefault(cell, self.probe.reading.recorded_prompt(labels, 0))
            trial = self.trial_numbers.number(row, cell, (f"{name} {value}" for name, value in labels.items()))
            if trial is not None:
                written = row.fields[self.columns["text"]]
                yield prompt, trial, None if written is None else text_field(written)

    @abstractmethod
    def _labels(self, row: Row) -> dict[str, str] | None:
        """Return the labels of a row; `None` if the row is left out, because it does not belong to the probe."""


def _by_group(name: str, label: str, counts: Mapping[tuple[Labels, str], int]) -> OtherColumn:
    """Return the counts of a column's values by stratum, group and value; the other labels are the stratum."""
    found: Counter[tuple[Hashable, str, str]] = Counter()
    for (combination, value), count in counts.items():
        labels = dict(combination)
        if label in labels:
            group = labels.pop(label)
            found[tuple(labels.items()), group, value] += count
    return OtherColumn(name, label, found)


def _read(rows: Sequence[TextRow], language: Language) -> list[Answer]:
    """Return the answer in each row, without labels, which are long and need no copy in another process."""
    return [replace(reading.recorded(prompt, text, language), labels={}) for prompt, _, text in rows]


# Conversion and checks of fields in answer files: texts, numbers, required columns, and answers.


def text_field(value: Json) -> str:
    return reading.whole_characters(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def whole_number(value: Json) -> int | None:
    """Return the whole number ≥ 0 (at most 15 digits) that a field contains as a number or text, otherwise `None`."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value.strip()) <= 15:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15 else None


def require_columns(
    file: str, columns: Mapping[str, str], existing: Sequence[str], unmapped: Sequence[str] = ()
) -> None:
    faults = []
    for name, column in columns.items():
        if column not in existing:
            near = suggestion(column, existing)
            near = near if "did you mean" in near else ""
            remedy = "" if name in unmapped else f"; set `responses.columns.{name}` to the name of the right column"
            faults.append(
                f"{file}:1: no column {column!r}{near} (the columns are {', '.join(map(repr, existing))}){remedy}"
            )
    if faults:
        raise ProbeError("\n".join(faults))


def answer_field(written: Json, labels: Mapping[str, str], trial: int, probe: Probe) -> Answer:
    """Return the answer in a field; `None` (JSON `null`) is a missing response."""
    return reading.recorded(
        probe.reading.recorded_prompt(labels, trial), None if written is None else text_field(written), probe.language
    )


# Assignment of trial numbers to the rows of an answer file, and collection of errors in the rows.


class TrialNumbers:
    """Trial numbers of the rows, counted in each cell (combination of labels), and `errors` as `file:line: message`.

    Without a `column`, the rows of a cell are numbered in the file's order.
    """

    def __init__(self, name: str, column: str | None, duplicate_remedy: str = "") -> None:
        self.errors: list[str] = []
        self._name, self._column, self._duplicate_remedy = name, column, duplicate_remedy
        self._counted: Counter[Hashable] = Counter()
        self._places: dict[Hashable, dict[int, tuple[str, int]]] = {}

    def add_error(self, row: Row, message: str) -> None:
        self.errors.append(f"{row.file}:{row.line}: {message}")

    def raise_errors(self) -> None:
        raise_file_errors(self.errors, self._name)

    def lacks(self, row: Row, columns: Iterable[str]) -> bool:
        """Return whether a row lacks any of these columns, which is one of the `errors`."""
        lacking = [column for column in columns if column not in row.fields]
        if lacking:
            self.add_error(row, f"this row has no {', '.join(map(repr, lacking))}; each row needs a value")
        return bool(lacking)

    def written_number(self, row: Row, default: int) -> int | None:
        """Return the number in a row, or `default` without a column of numbers; `None` with an error if invalid."""
        if self._column is None:
            return default
        number = whole_number(row.fields.get(self._column))
        if number is None:
            self.add_error(row, f"{self._column!r} must be a whole number, at least 0")
        return number

    def number(self, row: Row, cell: Hashable, where: Iterable[str]) -> int | None:
        """Return the trial number of a row, from 0; `None` with an error if it is invalid or twice in the cell."""
        number = self.written_number(row, self._counted[cell])
        self._counted[cell] += 1
        if number is None or self._column is None:
            return number
        file, line = self._places.setdefault(cell, {}).setdefault(number, (row.file, row.line))
        if (file, line) != (row.file, row.line):
            place = f"line {line}" if file == row.file else f"{file}:{line}"
            self.add_error(
                row, f"trial {number} of {', '.join(filter(None, where))} is also in {place}{self._duplicate_remedy}"
            )
            return None
        return number
