"""Recorded answers of a generation probe: one text a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_fairness.answers.recorded import fields
from pytest_fairness.answers.recorded.draws import Draws
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes.field_types import shown
from pytest_fairness.probes.loading import table
from pytest_fairness.records import Answer

if TYPE_CHECKING:
    from pytest_fairness.probes.generation.model import GenerationProbe
    from pytest_fairness.probes.loading.table import Row, Table


def rows(probe: GenerationProbe) -> list[Answer]:
    """Return the answers of a probe's `responses:` file, in the file's order.

    Rows whose value on an axis is not in the probe are left out; letter case and blanks around a value do not matter.
    Without a `trial` column the answers of a cell are numbered in the file's order. `text` that is `null` in JSON Lines
    is an answer that never came.

    Raises:
        ProbeError: the file cannot be read, lacks a column, or holds no row for one of the probe's values.
    """
    return _Reader(probe).answers()


class _Reader:
    """Reader of one file for one probe."""

    def __init__(self, probe: GenerationProbe) -> None:
        assert probe.responses is not None  # noqa: S101 - `kinds.rows` checks it
        self.probe = probe
        self.responses = probe.responses
        self.name = shown(self.responses.file, probe.root)

    def answers(self) -> list[Answer]:
        content = table.read(self.responses.file, self.name)
        columns = self._columns(content)
        values = {
            axis: {fields.folded(value): value for value in values.values} for axis, values in self.probe.axes.items()
        }
        self._require_values(content, columns, values)
        draws = Draws(
            self.name, columns.get("trial"), "; a column that tells them apart belongs under `responses.strata`"
        )
        answers = []
        for row in content.rows:
            if draws.lacks(row, columns.values()):
                continue
            labels = self._labels(row, columns, values)
            if labels is None:
                continue
            where = ", ".join(f"{name} {value}" for name, value in labels.items())
            trial = draws.number(row, tuple(labels.values()), where)
            if trial is not None:
                answers.append(fields.answer(row.fields[columns["text"]], labels, trial, self.probe.answer_format))
        draws.raise_errors()
        return answers

    def _columns(self, content: Table) -> dict[str, str]:
        """Return the file's columns by the probe's names, in the order of the labels; strata have their own names."""
        mapped = self.responses.columns
        needed = [*self.probe.axes, *(("prompt",) if "prompt" in mapped else ())]
        columns = {name: mapped.get(name, name) for name in needed}
        columns |= {stratum: stratum for stratum in self.responses.strata}
        columns["text"] = mapped.get("text", "text")
        if "trial" in mapped or "trial" in content.columns:
            columns["trial"] = mapped.get("trial", "trial")
        fields.require_columns(self.name, columns, content.columns, self.responses.strata)
        return columns

    def _require_values(
        self, content: Table, columns: Mapping[str, str], values: Mapping[str, Mapping[str, str]]
    ) -> None:
        faults = []
        for axis, known in values.items():
            there: dict[str, str] = {}
            for row in content.rows:
                written = fields.text(row.fields.get(columns[axis]))
                there.setdefault(fields.folded(written), written)
            for folded, value in known.items():
                if folded not in there:
                    others = [written for other, written in there.items() if other not in known and written][:10]
                    found = f"; the column also has {', '.join(map(repr, others))}" if others else ""
                    faults.append(f"{self.name}:1: no row has {value!r} in the column {columns[axis]!r}{found}")
        if faults:
            raise ProbeError("\n".join(faults))

    def _labels(
        self, row: Row, columns: Mapping[str, str], values: Mapping[str, Mapping[str, str]]
    ) -> dict[str, str] | None:
        labels = {}
        for name, column in columns.items():
            if name in ("text", "trial"):
                continue
            written = fields.text(row.fields[column])
            if name in values:
                value = values[name].get(fields.folded(written))
                if value is None:
                    return None
                written = value
            labels[name] = written.strip()
        return labels
