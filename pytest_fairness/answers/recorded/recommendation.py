"""Reader of the recorded lists of a recommendation probe: one list per row, or one item and its rank per row."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from pytest_fairness.answers.recorded import fields
from pytest_fairness.answers.recorded.reader import Reader
from pytest_fairness.probes import checks
from pytest_fairness.probes.data_file import as_line
from pytest_fairness.probes.diagnostics import raise_file_errors
from pytest_fairness.probes.recommendation.entities import Entity
from pytest_fairness.probes.recommendation.model import NEUTRAL, RecommendationProbe
from pytest_fairness.probes.table import Row
from pytest_fairness.records import Answer, Json

Cell = tuple[str, str, str, int]
"""Entity, attribute, value and trial number of one list."""


class RecommendationReader(Reader[RecommendationProbe]):
    """Reader of a recommendation probe's answer file, with one list per row, or one item and its rank per row.

    Without a column `rank`, a row holds a whole list (JSON, or as the model wrote it). With this column, a row holds
    one item of a list. Rows of neutral prompts have the attribute `neutral`. Rows whose attribute, value or entity is
    not in the probe are left out.
    """

    content_noun: ClassVar[str] = "lists"

    @cached_property
    def _values(self) -> dict[tuple[str, str], tuple[str, str]]:
        """The probe's pairs of attribute and value by their folded form; see `probes.checks.folded`."""
        return {
            (checks.folded(attribute.name), checks.folded(value.label)): (attribute.name, value.label)
            for attribute in self.probe.attributes.values()
            for value in attribute.values
        }

    @cached_property
    def _entities(self) -> dict[str, Entity]:
        """The probe's entities by the folded form of their names; see `probes.checks.folded`."""
        return {checks.folded(entity.name): entity for entity in self.probe.entities}

    def answers(self) -> list[Answer]:
        """Return the lists of the probe; see `Reader.answers`."""
        found = self._ranked_lists() if "rank" in self.columns else self._whole_lists()
        self.trial_numbers.raise_errors()
        self._require_pairs({f"{labels['attribute']} {labels['value']}" for _, labels, _ in found})
        return [fields.answer(written, labels, trial, self.probe) for written, labels, trial in found]

    def _columns(self) -> dict[str, str]:
        columns = self._column_names(["entity", "attribute", "value", "items"], ["trial", "domain", "rank"])
        if "rank" in columns and "items" not in self.responses.columns and self.has_column("item"):
            columns["items"] = "item"
        return columns

    def _whole_lists(self) -> list[tuple[Json, dict[str, str], int]]:
        """Return the content, labels and trial number of each list in a file with one list per row."""
        found = []
        for row in self.rows():
            labels = self._labels(row)
            if labels is None:
                continue
            group = (labels["entity"], labels["attribute"], labels["value"])
            trial = self.trial_numbers.number(row, group, group)
            if trial is not None:
                found.append((row.fields.get(self.columns["items"]), labels, trial))
        return found

    def _ranked_lists(self) -> list[tuple[Json, dict[str, str], int]]:
        """Return the content, labels and trial number of each list in a file with one item and its rank per row."""
        found: dict[Cell, tuple[dict[str, str], dict[int, str]]] = {}
        for row in self.rows():
            labels = self._labels(row)
            trial = None if labels is None else self.trial_numbers.written_number(row, 0)
            if labels is None or trial is None:
                continue
            rank = fields.whole_number(row.fields.get(self.columns["rank"]))
            if rank is None:
                self.trial_numbers.add_error(row, f"{self.columns['rank']!r} must be a whole number, at least 0")
                continue
            cell = (labels["entity"], labels["attribute"], labels["value"], trial)
            _, items = found.setdefault(cell, (labels, {}))
            if rank in items:
                self.trial_numbers.add_error(
                    row,
                    f"rank {rank} of {', '.join(filter(None, cell[:3]))} occurs twice. Give each item of a list its "
                    "own rank, and each list of the same request its own number in a column `trial`",
                )
            items[rank] = as_line(row.fields.get(self.columns["items"]))
        return [
            ([items[rank] for rank in sorted(items) if items[rank]], labels, cell[3])
            for cell, (labels, items) in found.items()
        ]

    def _labels(self, row: Row) -> dict[str, str] | None:
        """Return a row's labels; `None` if the row has an error, or the probe lacks its entity, attribute or value."""
        written = {name: as_line(row.fields.get(self.columns[name])) for name in ("entity", "attribute", "value")}
        if not written["entity"] or not written["attribute"]:
            lacking = "entity" if not written["entity"] else "attribute"
            self.trial_numbers.add_error(row, f"this row has no {self.columns[lacking]!r}; each row needs a value")
            return None
        attribute = checks.folded(written["attribute"])
        pair = (NEUTRAL, "") if attribute == NEUTRAL else self._values.get((attribute, checks.folded(written["value"])))
        entity = self._entities.get(checks.folded(written["entity"]))
        if pair is None or (self._entities and entity is None):
            known = [
                attribute == NEUTRAL or any(attribute == name for name, _ in self._values),
                pair is not None,
                entity is not None or not self._entities,
            ]
            names = ("attribute", "value", "entity")
            unknown = [name for name, is_known in zip(names, known, strict=True) if not is_known]
            self._leave_out(row, [self.columns[name] for name in unknown], of_group=unknown == ["value"])
            return None
        domain = (
            as_line(row.fields.get(self.columns["domain"])) if "domain" in self.columns else entity and entity.domain
        )
        labels = {"entity": entity.name if entity else written["entity"], "attribute": pair[0], "value": pair[1]}
        return labels | ({"domain": domain} if domain else {})

    def _require_pairs(self, existing: set[str]) -> None:
        columns = [self.columns[name] for name in ("attribute", "value")]
        written = dict.fromkeys(
            " ".join(as_line(row.fields.get(column)) for column in columns).strip() for row in self.rows()
        )
        others = ", ".join(map(repr, list(written)[:10]))
        missing = [
            f"{attribute} {value}"
            for attribute, value in self._values.values()
            if f"{attribute} {value}" not in existing
        ]
        faults = [
            f"{self.name}:1: no row has the attribute and value {name!r}; the file has {others}. Write both in "
            "the probe as in the file, add such rows, or remove the value from the probe"
            for name in missing
        ]
        if f"{NEUTRAL} " not in existing:
            faults.append(
                f"{self.name}:1: no row has the attribute 'neutral'; the file has {others}. Add the lists for prompts "
                "that name no attribute, with which the other lists are compared"
            )
        raise_file_errors(faults, self.name)
