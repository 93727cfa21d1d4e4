"""Recorded answers of a stereotype probe: one a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_fairness.answers.recorded import fields
from pytest_fairness.answers.recorded.draws import Draws
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes.data_file import as_line
from pytest_fairness.probes.field_types import shown
from pytest_fairness.probes.loading import table
from pytest_fairness.probes.loading.diagnostics import suggestion
from pytest_fairness.records import Answer

if TYPE_CHECKING:
    from pytest_fairness.probes.loading.table import Row, Table
    from pytest_fairness.probes.stereotype.model import StereotypeProbe


def rows(probe: StereotypeProbe) -> list[Answer]:
    """Return the answers of a probe's `responses:` file, in the file's order.

    Rows of other cases or groups than the probe's are left out; letter case and blanks around a name do not matter.
    Without a `trial` column the answers of a case and group are numbered in the file's order.

    Raises:
        ProbeError: the file cannot be read, lacks a column, or holds no row for any case of the probe.
    """
    return _Reader(probe).answers()


class _Reader:
    """Reader of one file for one probe."""

    def __init__(self, probe: StereotypeProbe) -> None:
        assert probe.responses is not None  # noqa: S101 - `kinds.rows` checks it
        self.probe = probe
        self.responses = probe.responses
        self.name = shown(probe.responses.file, probe.root)
        self.labels = {
            (fields.folded(case.name), fields.folded(group)): probe.labels(case, group or None)
            for case in probe.open_cases
            for group in case.groups or ("",)
        }

    def answers(self) -> list[Answer]:
        content = table.read(self.responses.file, self.name)
        columns = self._columns(content)
        draws = Draws(self.name, columns.get("trial"))
        answers = []
        for row in content.rows:
            if draws.lacks(row, columns.values()):
                continue
            labels = self._labels(row, columns)
            if labels is None:
                continue
            where = ", ".join(f"{name} {value}" for name, value in labels.items())
            trial = draws.number(row, tuple(labels.values()), where)
            if trial is not None:
                answers.append(fields.answer(row.fields[columns["text"]], labels, trial))
        draws.raise_errors()
        self._require_answers(content, columns, answers)
        return answers

    def _columns(self, content: Table) -> dict[str, str]:
        """Return the file's columns by the probe's names; strata have their own names."""
        mapped = self.responses.columns
        needed = ["case", *(["group"] if any(group for _, group in self.labels) else []), "text"]
        needed += ["trial"] if "trial" in mapped or "trial" in content.columns else []
        columns = {name: mapped.get(name, name) for name in needed}
        columns |= {stratum: stratum for stratum in self.responses.strata}
        fields.require_columns(self.name, columns, content.columns, self.responses.strata)
        return columns

    def _labels(self, row: Row, columns: Mapping[str, str]) -> dict[str, str] | None:
        """Return the labels of a row, or `None` for a row of another probe."""
        case, group = (
            fields.folded(as_line(row.fields[columns[name]])) if name in columns else "" for name in ("case", "group")
        )
        found = self.labels.get((case, group)) or self.labels.get((case, ""))
        if found is None:
            return None
        return found | {name: as_line(row.fields[name]) for name in self.responses.strata}

    def _require_answers(self, content: Table, columns: Mapping[str, str], answers: list[Answer]) -> None:
        """Raise `ProbeError` if the file has no answer of the probe; items report cases without answers."""
        if not answers:
            there = dict.fromkeys(as_line(row.fields.get(columns["case"])) for row in content.rows)
            names = ", ".join(map(repr, list(there)[:10]))
            near = suggestion(next(iter(there)), [case.name for case in self.probe.open_cases])
            raise ProbeError(f"{self.name}:1: no row has a case of the probe; there are {names}{near}")
