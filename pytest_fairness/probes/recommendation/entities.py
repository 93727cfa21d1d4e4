"""Entities and their relevant items, written in the probe or in files in the probe's folder."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import table
from pytest_fairness.probes.audit_settings import ProbeModel, mapping_or_other
from pytest_fairness.probes.data_file import DataFile, as_items, as_line
from pytest_fairness.probes.diagnostics import errors_at, suggestion
from pytest_fairness.probes.field_types import Line, display_path, probe_source
from pytest_fairness.probes.table import Table


class Entity(ProbeModel):
    """Entity: one subject of the recommendations, such as an artist, a director or a hobby."""

    name: Line = Field(description="The entity's name, which replaces {entity}.")
    domain: Line | None = Field(
        default=None, description="The entity's domain, such as pop; reports also show the results of each domain."
    )


def _table(path: Path, info: ValidationInfo, holds: str) -> Table:
    """Return the table in a file that a probe names; errors of the file become errors of the key that names it."""
    with errors_at():
        return table.read(path, display_path(path, probe_source(info).root), holds)


def _require_column(name: str, content: Table) -> None:
    if name not in content.columns:
        raise PydanticCustomError(
            "column", "the file has no column {named}{cure}",
            {"named": repr(name), "cure": suggestion(name, content.columns)},
        )  # fmt: skip


class EntitiesFile(DataFile):
    """Entities in a file: all entities of the file, or a sample."""

    column: Line = Field(default="name", validate_default=True, description="The column with the entities' names.")
    domain: Line | None = Field(default=None, description="The column with the entities' domains.")
    sample: int | None = Field(default=None, ge=1, description="Number of entities in the sample. Default: all.")
    seed: int = Field(default=0, ge=0, description="Seed of the sample: the same seed draws the same entities.")
    start: int | None = Field(
        default=None,
        ge=4,
        description="Number of entities at the first interim analysis; the number grows by up to half each time "
        "while an item's verdict is inconclusive. Default: all.",
    )

    @field_validator("column", "domain")
    @classmethod
    def _is_in_file(cls, name: str | None, info: ValidationInfo) -> str | None:
        if name is not None and "file" in info.data:
            _require_column(name, _table(info.data["file"], info, "entities"))
        return name

    @field_validator("sample")
    @classmethod
    def _fits_the_file(cls, sample: int | None, info: ValidationInfo) -> int | None:
        if sample is not None and {"file", "column"} <= info.data.keys():
            available = len(_entities(_table(info.data["file"], info, "entities"), info.data["column"], None))
            if sample > available:
                message = "the file holds only {available} entities: lower `sample`"
                raise PydanticCustomError("sample", message, {"available": available})
        return sample

    def read(self) -> tuple[Entity, ...]:
        """Return the entities, or a seeded sample if `sample` is set, in the file's order and without duplicates."""
        found = _entities(table.read(self.file, self.file.name, "entities"), self.column, self.domain)
        if self.sample is not None:
            drawn = random.Random(self.seed).sample(range(len(found)), self.sample)  # noqa: S311 - no secrets
            found = [found[place] for place in sorted(drawn)]
        return tuple(found)


def _entities(content: Table, column: str, domain: str | None) -> list[Entity]:
    entities: dict[str, Entity] = {}
    for row in content.rows:
        name = as_line(row.fields.get(column))
        if name:
            domain_name = as_line(row.fields.get(domain)) if domain is not None else ""
            entities.setdefault(name.casefold(), Entity(name=name, domain=domain_name or None))
    return list(entities.values())


class RelevantFile(DataFile):
    """File with the relevant items of each entity."""

    @field_validator("file")
    @classmethod
    def _has_columns(cls, file: Path, info: ValidationInfo) -> Path:
        if not _is_mapping(file):
            content = _table(file, info, "relevant items")
            _require_column("entity", content)
            _require_column("item" if "item" in content.columns else "items", content)
        return file

    def read(self) -> dict[str, tuple[str, ...]]:
        """Return the relevant items by entity, without duplicates; names and order are as in the file.

        Raises:
            ProbeError: the file cannot be read, or a row's items are neither a list of texts nor a text.
        """
        found: dict[str, list[str]] = {}
        if _is_mapping(self.file):
            rows = [(name, items, 1) for name, items in json.loads(self.file.read_text("utf-8-sig")).items()]
        else:
            content = table.read(self.file, self.file.name, "relevant items")
            column = "item" if "item" in content.columns else "items"
            rows = [(row.fields.get("entity"), row.fields.get(column), row.line) for row in content.rows]
        for entity, written, line in rows:
            items = as_items(written)
            if items is None:
                raise ProbeError(f"{self.file.name}:{line}: the relevant items must be a list of texts, or one text")
            found.setdefault(as_line(entity), []).extend(items)
        return {entity: tuple(dict.fromkeys(items)) for entity, items in found.items()}


def _is_mapping(file: Path) -> bool:
    """Return whether a file holds one JSON object, whose keys are entities."""
    if file.suffix.casefold() != ".json":
        return False
    try:
        return isinstance(json.loads(file.read_text("utf-8-sig")), Mapping)
    except (OSError, ValueError, RecursionError):
        return False


InlineEntity = Annotated[
    Annotated[Line, Tag("other")] | Annotated[Entity, Tag("mapping")],
    Discriminator(mapping_or_other),
]
Entities = Annotated[
    Annotated[tuple[InlineEntity, ...], Tag("other"), Field(min_length=1)] | Annotated[EntitiesFile, Tag("mapping")],
    Discriminator(mapping_or_other),
]
"""Type of the key `entities`: a list of names, a list of names with domains, or a file."""


def entities_of(written: Entities | None) -> tuple[Entity, ...]:
    """Return the entities that the key `entities` lists or that its file holds; an empty tuple without the key."""
    if written is None:
        return ()
    if isinstance(written, EntitiesFile):
        return written.read()
    return tuple(Entity(name=entity) if isinstance(entity, str) else entity for entity in written)
