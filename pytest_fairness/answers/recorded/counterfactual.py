"""Recorded answers of a counterfactual probe: one a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_fairness.answers.recorded import fields
from pytest_fairness.answers.recorded.draws import Draws
from pytest_fairness.probes.counterfactual.model import AGAIN, FLIPPED, OWN
from pytest_fairness.probes.field_types import shown
from pytest_fairness.probes.loading import table
from pytest_fairness.probes.loading.diagnostics import raise_file_errors
from pytest_fairness.records import Answer

if TYPE_CHECKING:
    from pytest_fairness.probes.counterfactual.model import CounterfactualProbe
    from pytest_fairness.probes.loading.table import Row, Table

Values = dict[str, str]
"""Value of each flipped attribute in a row."""


def rows(probe: CounterfactualProbe) -> list[Answer]:
    """Return the answers of a probe's `responses:` file, in the file's order.

    The first row of a record says what it is like. Rows with another value of an attribute are flipped ones. Further
    rows like the first were asked again, from as many on as there are flipped ones; without any they are trials. Rows
    with none of the probe's values are left out.

    Raises:
        ProbeError: the file cannot be read, lacks a column, holds no row for a value, or rows do not fit together.
    """
    return _Reader(probe).answers()


class _Reader:
    """Reader of one file for one probe."""

    def __init__(self, probe: CounterfactualProbe) -> None:
        assert probe.responses is not None  # noqa: S101 - `kinds.rows` checks it
        self.probe = probe
        self.file = probe.responses.file
        self.written = probe.responses.columns
        self.strata = probe.responses.strata
        self.name = shown(probe.responses.file, probe.root)
        self.values = {
            name: {fields.folded(value): value for value in flip.values} for name, flip in probe.flips.items()
        }

    def answers(self) -> list[Answer]:
        content = table.read(self.file, self.name)
        columns = self._columns(content)
        self.draws = Draws(self.name, columns.get("trial"))
        by_record: dict[tuple[str, ...], list[tuple[Row, Values]]] = {}
        for row in content.rows:
            record = _cell(row, columns["id"])
            if not record:
                self.draws.add_error(row, f"no {columns['id']!r} in this row")
                continue
            values = self._values(row, columns)
            if values:
                by_record.setdefault((record, *self._strata(row).values()), []).append((row, values))
        found = [answer for name, own in by_record.items() for answer in self._of_record(name[0], own, columns)]
        self.draws.raise_errors()
        self._require_values(content, columns)
        return found

    def _columns(self, content: Table) -> dict[str, str]:
        """Return the file's columns by those of the probe's names that the file has."""
        names = ["id", *self.probe.flips, "answer"]
        if self.probe.truth is not None:
            names.append("truth")
        columns = {name: self.written.get(name, name) for name in names}
        truth = self.probe.truth
        if truth is not None and "truth" not in self.written and truth.column in content.columns:
            columns["truth"] = truth.column
        if "answer" not in self.written and "answer" not in content.columns and "text" in content.columns:
            columns["answer"] = "text"
        if "trial" in self.written or "trial" in content.columns:
            columns["trial"] = self.written.get("trial", "trial")
        fields.require_columns(self.name, columns, content.columns)
        return columns

    def _values(self, row: Row, columns: Mapping[str, str]) -> Values:
        found = {}
        for name, values in self.values.items():
            value = values.get(fields.folded(_cell(row, columns[name])))
            if value is not None:
                found[name] = value
        return found

    def _of_record(self, record: str, rows_: list[tuple[Row, Values]], columns: Mapping[str, str]) -> list[Answer]:
        """Return a record's answers: those of its own values, the flipped ones, and repetitions of its own."""
        own = rows_[0][1]
        truth = self._truth(rows_[0][0], columns)
        labels = {"record": record, **own, **({"truth": truth} if truth else {}), **self._strata(rows_[0][0])}
        found: list[tuple[Row, dict[str, str]]] = []
        for row, values in rows_:
            other = [name for name in own if values.get(name) != own[name]]
            if self._truth(row, columns) != truth:
                self.draws.add_error(
                    row, f"record {record} has another {columns['truth']!r} in line {rows_[0][0].line}"
                )
            elif len(other) > 1 or values.keys() != own.keys():
                self.draws.add_error(
                    row, f"record {record} differs from line {rows_[0][0].line} in more than one attribute"
                )
            elif other:
                flipped = {"form": FLIPPED, "attribute": other[0], "to": values[other[0]]}
                found.append((row, {**labels, **flipped}))
            else:
                found.append((row, {**labels, "form": OWN}))
        return self._numbered(found, columns)

    def _numbered(self, found: list[tuple[Row, dict[str, str]]], columns: Mapping[str, str]) -> list[Answer]:
        draws = Counter(tuple(labels.items()) for _, labels in found)
        flipped = [count for labels, count in draws.items() if ("form", FLIPPED) in labels]
        # Own answers beyond the number of flipped ones are repetitions, which show how much answers differ by chance.
        paired = max(flipped, default=max(draws.values(), default=0))
        answers = []
        for row, labels in found:
            trial = self.draws.number(row, tuple(labels.items()), f"record {labels['record']}")
            if trial is None:
                continue
            if labels["form"] == OWN and trial >= paired:
                labels, trial = {**labels, "form": AGAIN}, trial - paired
            answers.append(self._answer(row, labels, trial, columns))
        return answers

    def _answer(self, row: Row, labels: Mapping[str, str], trial: int, columns: Mapping[str, str]) -> Answer:
        written = row.fields.get(columns["answer"])
        return fields.answer(written, labels, trial, choices=self.probe.choices)

    def _strata(self, row: Row) -> dict[str, str]:
        """Return the strata of a row, such as the labels of outputs from which limits are chosen."""
        return {name: _cell(row, name) for name in self.strata}

    def _truth(self, row: Row, columns: Mapping[str, str]) -> str:
        return _cell(row, columns["truth"]) if "truth" in columns else ""

    def _require_values(self, content: Table, columns: Mapping[str, str]) -> None:
        faults = []
        for name, values in self.values.items():
            written = [_cell(row, columns[name]) for row in content.rows]
            there = dict.fromkeys(filter(None, written))
            folded = {*map(fields.folded, there)}
            others = ", ".join(map(repr, list(there)[:10]))
            faults += [
                f"{self.name}:1: no row has {value!r} in the column {columns[name]!r}; there are {others}"
                for key, value in values.items()
                if key not in folded
            ]
        raise_file_errors(faults, self.name)


def _cell(row: Row, column: str) -> str:
    value = row.fields.get(column)
    return "" if value is None else fields.text(value).strip()
