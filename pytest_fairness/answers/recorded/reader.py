"""Base classes of the readers of answer files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from typing import ClassVar, Generic, TypeVar

from pytest_fairness.answers.recorded import fields
from pytest_fairness.answers.recorded.draws import Draws
from pytest_fairness.probes import table
from pytest_fairness.probes.base import Probe, ResponsesSettings
from pytest_fairness.probes.field_types import shown
from pytest_fairness.probes.table import Row
from pytest_fairness.records import Answer, RowsWithoutGroup

ProbeT = TypeVar("ProbeT", bound=Probe)


class Reader(ABC, Generic[ProbeT]):
    """Base class of the readers of an answer file, which a probe names under `responses:`.

    Args:
        probe: the probe.
        responses: the value of the probe's key `responses`.

    Attributes:
        name: the file's name, for messages.
        content: the file's columns and rows.
        columns: the file's columns, by the probe's names for them (an axis, `trial`, `text`, …).
        draws: trial numbers and errors of the rows.

    Class attributes:
        holds: noun that messages use for the content of the rows, such as "answers".
        cure: remedy that is added to the error message for a trial number that occurs twice.

    Raises:
        ProbeError: the file cannot be read, or lacks a column.
    """

    holds: ClassVar[str] = "answers"
    cure: ClassVar[str] = ""

    def __init__(self, probe: ProbeT, responses: ResponsesSettings) -> None:
        self.probe, self.responses = probe, responses
        self.name = shown(responses.file, probe.root)
        self.content = table.read(responses.file, self.name, self.holds)
        self.columns = self._columns()
        fields.require_columns(self.name, self.columns, self.content.columns, responses.strata)
        self.draws = Draws(self.name, self.columns.get("trial"), self.cure)
        self._empty: list[tuple[int, Collection[str]]] = []
        self._of_other_probes = 0

    @abstractmethod
    def answers(self) -> list[Answer]:
        """Return the answers of the probe, in the file's order.

        Raises:
            ProbeError: rows are invalid, or the file lacks answers that the probe needs.
        """

    @property
    def without_group(self) -> RowsWithoutGroup | None:
        """Rows that `answers` left out because their field for the group is empty; `None` if there are no such rows."""
        if not self._empty:
            return None
        columns = dict.fromkeys(column for _, own in self._empty for column in own)
        of = len(self.content.rows) - self._of_other_probes
        return RowsWithoutGroup(len(self._empty), of, tuple(columns), self._empty[0][0])

    def _leave_out(self, row: Row, columns: Collection[str]) -> None:
        """Count a left-out row: as a row without a group if these columns are empty, else as a row of another probe."""
        if all(fields.is_empty(row.fields.get(column)) for column in columns):
            self._empty.append((row.line, columns))
        else:
            self._of_other_probes += 1

    @abstractmethod
    def _columns(self) -> dict[str, str]:
        """Return the file's columns by the probe's names for them; raise `ProbeError` if the file lacks a column."""

    def _mapped(self, needed: Iterable[str], optional: Sequence[str] = ()) -> dict[str, str]:
        """Return the file's columns by the probe's names for them; leave out optional names that have no column."""
        written = self.responses.columns
        there = [name for name in optional if name in written or name in self.content.columns]
        return {name: written.get(name, name) for name in [*needed, *there]}


class TextReader(Reader[ProbeT]):
    """Base class of the readers of files with one text per row; no row may lack one of the columns."""

    def _texts(self) -> list[Answer]:
        """Return the answers of the rows for which `_labels` returns labels.

        Raises:
            ProbeError: a row lacks a column, or has an invalid or repeated trial number.
        """
        answers = []
        for row in self.content.rows:
            if self.draws.lacks(row, self.columns.values()):
                continue
            labels = self._labels(row)
            if labels is None:
                continue
            where = ", ".join(f"{name} {value}" for name, value in labels.items())
            trial = self.draws.number(row, tuple(labels.values()), where)
            if trial is not None:
                text = row.fields[self.columns["text"]]
                answers.append(fields.answer(text, labels, trial, self.probe.format_of(labels)))
        self.draws.raise_errors()
        return answers

    @abstractmethod
    def _labels(self, row: Row) -> dict[str, str] | None:
        """Return the labels of a row; `None` if the row is left out, see `_leave_out`."""
