"""Base of the readers of answer files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Generic, TypeVar

from pytest_fairness.answers.recorded import fields
from pytest_fairness.answers.recorded.draws import Draws
from pytest_fairness.probes import table
from pytest_fairness.probes.base import Probe, ResponsesSettings
from pytest_fairness.probes.field_types import shown
from pytest_fairness.probes.table import Row
from pytest_fairness.records import Answer

ProbeT = TypeVar("ProbeT", bound=Probe)


class Reader(ABC, Generic[ProbeT]):
    """Reader of the file of one probe's `responses:`.

    Args:
        probe: the probe.
        responses: its `responses:`.

    Attributes:
        name: the file's name, for messages.
        content: the file's rows.
        columns: the file's columns by the probe's names.
        draws: trial numbers of the rows, and errors in rows.

    Class attributes:
        holds: the noun for the rows in messages.
        cure: advice for a trial that occurs twice.

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

    @abstractmethod
    def answers(self) -> list[Answer]:
        """Return the answers of the probe, in the file's order.

        Raises:
            ProbeError: rows are invalid, or the file lacks answers that the probe needs.
        """

    @abstractmethod
    def _columns(self) -> dict[str, str]:
        """Return the columns that the file must have, by the probe's names."""

    def _mapped(self, needed: Iterable[str], optional: Sequence[str] = ()) -> dict[str, str]:
        """Return the columns of these names, as `responses.columns` maps them; optional ones if the file has them."""
        written = self.responses.columns
        there = [name for name in optional if name in written or name in self.content.columns]
        return {name: written.get(name, name) for name in [*needed, *there]}


class TextReader(Reader[ProbeT]):
    """Reader of a file with one text a row, every column of which must be in every row."""

    def _texts(self) -> list[Answer]:
        """Return the answers of the rows that `_labels` recognises.

        Raises:
            ProbeError: a row lacks a column, or has an invalid or repeated trial.
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
        """Return the labels of a row; `None` for a row of another probe."""
