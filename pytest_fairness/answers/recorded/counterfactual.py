"""Reader of the recorded answers of a counterfactual probe, one answer per row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import sha256

from pytest_fairness.answers.recorded import fields
from pytest_fairness.answers.recorded.reader import Reader
from pytest_fairness.probes import checks
from pytest_fairness.probes.base import ASKED
from pytest_fairness.probes.counterfactual.model import AGAIN, FLIPPED, OWN, CounterfactualProbe
from pytest_fairness.probes.table import Row
from pytest_fairness.records import Answer

_NUMBER_OR_NO_DIGIT = re.compile(r"[-+]?[0-9]*\.?[0-9]+(?:e[-+]?[0-9]+)?|[^0-9]*", re.IGNORECASE)
_DECIMAL_POINT = re.compile(r"^[-+]?0?\.|\.(?![0-9]{2}0(?![0-9]))")
"""A point that cannot separate thousands, or does not stand before three digits of which the last is 0 (85.000)."""
_FINAL_ZEROS = re.compile(r"(\.[0-9]+?)0+(?![0-9])")
Values = dict[str, str]
"""Values of the flipped columns in a row, by column."""


class CounterfactualReader(Reader[CounterfactualProbe]):
    """Reader of a counterfactual probe's answer file, which has one answer per row.

    The first row of a record has the record's own values. This row and further rows with the same values are unflipped.
    A row with another value of one attribute, or of several attributes that the probe flips at once, is flipped. The
    number of a record's trials is the number of rows of its most frequent flip. If there are more unflipped rows, the
    additional rows are repetitions, which show how much answers differ by chance. Without flipped rows, all rows are
    trials. A row belongs to no group if the probe has none of its values.
    """

    @cached_property
    def _values(self) -> dict[str, dict[str, str]]:
        """For each flipped column, the probe's values by their folded form; see `probes.checks.folded`."""
        found: dict[str, dict[str, str]] = {}
        for part in (part for flip in self.probe.flips.values() for part in flip.columns):
            found.setdefault(part.attribute, {}).update({checks.folded(value): value for value in part.values})
        return found

    def answers(self) -> list[Answer]:
        """Return the answers of the probe; see `Reader.answers`."""
        by_record: dict[tuple[str, ...], list[tuple[Row, Values]]] = {}
        unlisted: dict[tuple[str, ...], list[Row]] = {}
        for row in self.rows():
            record = _cell(row, self.columns["id"])
            if not record:
                self.trial_numbers.add_error(row, f"this row has no {self.columns['id']!r}; each row needs a value")
                continue
            values = self._values_of(row)
            name = (record, *self._strata(row).values())
            if values:
                by_record.setdefault(name, []).append((row, values))
            else:
                unlisted.setdefault(name, []).append(row)
                self._leave_out(row, [self.columns[name] for name in self._values], of_group=True)
        if self.probe.reading.number is not None and self.probe.reading.number.decimal is None:
            self._read_as_programs_write([row for rows in by_record.values() for row, _ in rows])
        found = [answer for name, own in by_record.items() for answer in self._answers_about_record(name[0], own)]
        for name, rows in unlisted.items():
            if name not in by_record:
                found += self._answers_of_no_group(name[0], rows)
        self.trial_numbers.raise_errors()
        self._require_values(self._values)
        return found

    def _read_as_programs_write(self, rows: Sequence[Row]) -> None:
        """Remove final zeros of decimals, such as in 85.000, from the answers if a program wrote the column.

        The three decimals could otherwise be thousands. A program wrote the column if it holds numbers without
        separators of thousands and texts without digits, and at least one number has a decimal point for certain.
        """
        column = self.columns["answer"]
        written = {_cell(row, column) for row in rows}
        if all(map(_NUMBER_OR_NO_DIGIT.fullmatch, written)) and any(map(_DECIMAL_POINT.search, written)):
            for row in rows:
                if "." in (text := _cell(row, column)):
                    row.fields[column] = _FINAL_ZEROS.sub(r"\1", text)

    def _columns(self) -> dict[str, str]:
        truth, written = self.probe.truth, self.responses.columns
        names = ["id", *self._values, "answer", *(() if truth is None else ("truth",))]
        columns = self._column_names(names, ["trial", *({"prompt"} - {*names})])
        if truth is not None and "truth" not in written and self.has_column(truth.column):
            columns["truth"] = truth.column
        if "answer" not in written and not self.has_column("answer") and self.has_column("text"):
            columns["answer"] = "text"
        return columns

    def _values_of(self, row: Row) -> Values:
        found = {}
        for name, values in self._values.items():
            value = values.get(checks.folded(_cell(row, self.columns[name])))
            if value is not None:
                found[name] = value
        return found

    def _answers_about_record(self, record: str, rows: list[tuple[Row, Values]]) -> list[Answer]:
        """Return the answers about a record: unflipped answers, repetitions of them, and flipped answers."""
        first, own = rows[0]
        known = {name: value for name, flip in self.probe.flips.items() if (value := flip.value_of(own)) is not None}
        truth = self._truth(first)
        labels = {"record": record, **known, **({"truth": truth} if truth else {}), **self._strata(first)}
        found: list[tuple[Row, dict[str, str]]] = []
        for row, values in rows:
            if self._truth(row) != truth:
                self.trial_numbers.add_error(
                    row,
                    f"record {record} has another value of {self.columns['truth']!r} in line {first.line}. Write the "
                    "same value in all rows of a record",
                )
            elif values == own:
                found.append((row, {**labels, "form": OWN}))
            elif values.keys() != own.keys() or not (flipped := self._new_values_by_flip(own, known, values)):
                self.trial_numbers.add_error(
                    row,
                    f"record {record} differs from line {first.line}, but not by one flip. A flip changes one "
                    "attribute, or several that the probe flips at once (`sex+race`), to values of the probe: correct "
                    "the row",
                )
            else:
                found += [
                    (row, {**labels, "form": FLIPPED, "attribute": name, "to": value})
                    for name, value in flipped.items()
                ]
        return self._numbered_answers(found)

    def _answers_of_no_group(self, record: str, rows: list[Row]) -> list[Answer]:
        """Return the answers about a record that has none of the probe's values.

        No group is compared by them. They count among all records, such as for the median of all numbers.
        """
        labels = {"record": record, **self._strata(rows[0]), "form": OWN}
        return [
            fields.answer(row.fields.get(self.columns["answer"]), labels, trial, self.probe)
            for trial, row in enumerate(rows)
        ]

    def _new_values_by_flip(self, own: Values, known: Iterable[str], values: Values) -> dict[str, str]:
        """Return the new value of each flip that turns the record's own values into the values of another row.

        Args:
            own: the record's own values.
            known: names of the flips whose values include the record's own value.
            values: the values in another row of the record.
        """
        differing = {name for name in own if values.get(name) != own[name]}
        return {
            name: value
            for name in known
            if differing <= {part.attribute for part in self.probe.flips[name].columns}
            if (value := self.probe.flips[name].value_of(values)) is not None
        }

    def _numbered_answers(self, found: list[tuple[Row, dict[str, str]]]) -> list[Answer]:
        rows = Counter(tuple(labels.items()) for _, labels in found)
        flipped = [count for labels, count in rows.items() if ("form", FLIPPED) in labels]
        # If a record has more unflipped than flipped rows, the additional rows are repetitions of the request.
        trials = max(flipped, default=max(rows.values(), default=0))
        answers = []
        for row, labels in found:
            trial = self.trial_numbers.number(row, tuple(labels.items()), [f"record {labels['record']}"])
            if trial is None:
                continue
            if labels["form"] == OWN and trial >= trials:
                labels, trial = {**labels, "form": AGAIN}, trial - trials
            written = row.fields.get(self.columns["answer"])
            answers.append(fields.answer(written, labels | self._asked(row), trial, self.probe))
        return answers

    def _asked(self, row: Row) -> dict[str, str]:
        """Return the label with the digest of the row's prompt; empty if the file has no column with prompts."""
        asked = _cell(row, self.columns["prompt"]) if self.columns.get("prompt") not in (None, *self._values) else ""
        return {ASKED: sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:16]} if asked else {}

    def _strata(self, row: Row) -> dict[str, str]:
        """Return the row's values in the columns that the probe's key `responses.strata` names."""
        return {name: _cell(row, name) for name in self.responses.strata}

    def _truth(self, row: Row) -> str:
        return _cell(row, self.columns["truth"]) if "truth" in self.columns else ""


def _cell(row: Row, column: str) -> str:
    value = row.fields.get(column)
    return "" if value is None else fields.text(value).strip()
