"""Recorded lists of a recommendation probe: one a row, or one item a row with its rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_fairness.answers.recorded import fields
from pytest_fairness.answers.recorded.draws import Draws
from pytest_fairness.probes.data_file import as_line
from pytest_fairness.probes.field_types import shown
from pytest_fairness.probes.loading import table
from pytest_fairness.probes.loading.diagnostics import raise_file_errors
from pytest_fairness.probes.recommendation.model import NEUTRAL
from pytest_fairness.records import Answer, Json

if TYPE_CHECKING:
    from pytest_fairness.probes.loading.table import Row, Table
    from pytest_fairness.probes.recommendation.model import RecommendationProbe

Cell = tuple[str, str, str, int]
"""Entity, attribute, value and trial."""


def rows(probe: RecommendationProbe) -> list[Answer]:
    """Return the lists of a probe's `responses:` file, in the file's order.

    A row holds a list as JSON or as a model wrote it, or, where there is a column `rank`, one item. Neutral rows have
    the attribute `neutral`. Rows of other attributes, values or entities than the probe's are left out.

    Raises:
        ProbeError: the file cannot be read, lacks a column, or holds no row for a value of the probe, or none that is
            neutral.
    """
    return _Reader(probe).answers()


class _Reader:
    """Reader of one file for one probe."""

    def __init__(self, probe: RecommendationProbe) -> None:
        assert probe.responses is not None  # noqa: S101 - `kinds.rows` checks it
        self.probe = probe
        self.file = probe.responses.file
        self.columns = probe.responses.columns
        self.name = shown(probe.responses.file, probe.root)
        self.values = {
            (fields.folded(attribute.name), fields.folded(value.label)): (attribute.name, value.label)
            for attribute in probe.attributes.values()
            for value in attribute.values
        }
        self.entities = {fields.folded(entity.name): entity for entity in probe.entities}

    def answers(self) -> list[Answer]:
        content = table.read(self.file, self.name, "lists")
        columns = self._columns(content)
        self.draws = Draws(self.name, columns.get("trial"))
        found = self._ranked(content, columns) if "rank" in columns else self._whole(content, columns)
        self.draws.raise_errors()
        self._require_values(content, columns, {labels["value"] and _named(labels) for _, labels, _ in found})
        return [fields.answer(written, labels, trial, self.probe.answer_format) for written, labels, trial in found]

    def _columns(self, content: Table) -> dict[str, str]:
        """Return the file's columns by those of the probe's names that the file has."""
        columns = {name: self.columns.get(name, name) for name in ("entity", "attribute", "value", "items")}
        for name in ("trial", "domain", "rank"):
            if name in self.columns or name in content.columns:
                columns[name] = self.columns.get(name, name)
        if "rank" in columns and "items" not in self.columns and "item" in content.columns:
            columns["items"] = "item"
        fields.require_columns(self.name, columns, content.columns)
        return columns

    def _whole(self, content: Table, columns: Mapping[str, str]) -> list[tuple[Json, dict[str, str], int]]:
        """Return the lists of rows with one list each."""
        found = []
        for row in content.rows:
            labels = self._labels(row, columns)
            if labels is None:
                continue
            group = (labels["entity"], labels["attribute"], labels["value"])
            trial = self.draws.number(row, group, ", ".join(filter(None, group)))
            if trial is not None:
                found.append((row.fields.get(columns["items"]), labels, trial))
        return found

    def _ranked(self, content: Table, columns: Mapping[str, str]) -> list[tuple[Json, dict[str, str], int]]:
        """Return the lists of rows with one item each, ordered by rank."""
        found: dict[Cell, tuple[dict[str, str], dict[int, str]]] = {}
        for row in content.rows:
            labels = self._labels(row, columns)
            trial = None if labels is None else self.draws.written(row, 0)
            if labels is None or trial is None:
                continue
            rank = fields.whole_number(row.fields.get(columns["rank"]))
            if rank is None:
                self.draws.add_error(row, f"{columns['rank']!r} must be a whole number from 0")
                continue
            cell = (labels["entity"], labels["attribute"], labels["value"], trial)
            _, items = found.setdefault(cell, (labels, {}))
            if rank in items:
                self.draws.add_error(row, f"rank {rank} of {', '.join(filter(None, cell[:3]))} is there already")
            items[rank] = as_line(row.fields.get(columns["items"]))
        return [
            ([items[rank] for rank in sorted(items) if items[rank]], labels, cell[3])
            for cell, (labels, items) in found.items()
        ]

    def _labels(self, row: Row, columns: Mapping[str, str]) -> dict[str, str] | None:
        """Return the labels of a row, or `None` for a row with an error or of another probe."""
        written = {name: as_line(row.fields.get(columns[name])) for name in ("entity", "attribute", "value")}
        if not written["entity"] or not written["attribute"]:
            lacking = "entity" if not written["entity"] else "attribute"
            self.draws.add_error(row, f"no {columns[lacking]!r} in this row")
            return None
        attribute = fields.folded(written["attribute"])
        named = (NEUTRAL, "") if attribute == NEUTRAL else self.values.get((attribute, fields.folded(written["value"])))
        entity = self.entities.get(fields.folded(written["entity"]))
        if named is None or (self.entities and entity is None):
            return None
        domain = as_line(row.fields.get(columns["domain"])) if "domain" in columns else entity and entity.domain
        labels = {"entity": entity.name if entity else written["entity"], "attribute": named[0], "value": named[1]}
        return labels | ({"domain": domain} if domain else {})

    def _require_values(self, content: Table, columns: Mapping[str, str], there: set[str]) -> None:
        written = dict.fromkeys(
            f"{as_line(row.fields.get(columns['attribute']))} {as_line(row.fields.get(columns['value']))}".strip()
            for row in content.rows
        )
        others = ", ".join(map(repr, list(written)[:10]))
        missing = [
            f"{attribute} {value}" for attribute, value in self.values.values() if f"{attribute} {value}" not in there
        ]
        faults = [f"{self.name}:1: no row has the attribute and value {name!r}; there are {others}" for name in missing]
        if "" not in there:
            faults.append(f"{self.name}:1: no row has the attribute 'neutral'; there are {others}")
        raise_file_errors(faults, self.name)


def _named(labels: Mapping[str, str]) -> str:
    return f"{labels['attribute']} {labels['value']}"
