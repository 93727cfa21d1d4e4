"""Prompts of recommendation probes: entities, perturbations with typing errors, follow-ups."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, ValidationInfo, field_validator

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import field_types, prompts, table
from pytest_fairness.probes.diagnostics import errors_at, suggestion
from pytest_fairness.probes.field_types import Identifier, Line, ProbeModel, Text, display_path, mapping_or_other
from pytest_fairness.probes.prompts import FollowUps
from pytest_fairness.probes.table import DataFile, Table, as_items, as_line
from pytest_fairness.records import Answer, Json, Prompt

# Entities and their relevant items, written in the probe or in files in the probe's folder.


class Entity(ProbeModel):
    """Entity: one subject of the recommendations, such as an artist, a director or a hobby."""

    name: Line = Field(description="The entity's name, which replaces {entity}.")
    domain: Line | None = Field(
        default=None, description="The entity's domain, such as pop; reports also show the results of each domain."
    )


def _table(path: Path, info: ValidationInfo, holds: str) -> Table:
    """Return the table in a file that a probe names; errors of the file become errors of the key that names it."""
    with errors_at():
        return table.read(path, display_path(path, field_types.probe_source(info).root), holds)


def _require_column(name: str, content: Table) -> None:
    if name not in content.columns:
        raise ValueError(f"the file has no column {name!r}{suggestion(name, content.columns)}")


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
                raise ValueError(f"the file holds only {available} entities: lower `sample`")
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
        """Return the relevant items by entity, without duplicates; names and order are as in the file."""
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
    if file.suffix.casefold() != ".json":
        return False
    try:
        return isinstance(json.loads(file.read_text("utf-8-sig")), Mapping)
    except (OSError, ValueError, RecursionError):
        return False


def _from_name(written: object) -> object:
    return written if isinstance(written, Mapping | Entity) else {"name": written}


InlineEntity = Annotated[Entity, BeforeValidator(_from_name, json_schema_input_type=Line | Entity)]
Entities = Annotated[
    Annotated[tuple[InlineEntity, ...], Tag("other"), Field(min_length=1)] | Annotated[EntitiesFile, Tag("mapping")],
    Discriminator(mapping_or_other),
]
"""Type of the key `entities`: a list of names, a list of names with domains, or a file."""


# Perturbations of prompts: typing errors, or a translation.

TRANSLATED = frozenset({"prompt", "neutral", "attributes"})


Operation = Literal["swap", "drop", "insert", "replace"]


class Typos(ProbeModel):
    """Settings of typing errors, which are the same in every run and never concern the entity's name."""

    rate: float = Field(
        default=0.1, gt=0, le=1, description="Share of letters that get an error; at least one letter gets an error."
    )
    seed: int = Field(default=0, ge=0, description="Seed of the errors: the same seed makes the same errors.")
    operations: tuple[Operation, ...] = Field(
        default=("swap", "drop", "insert", "replace"),
        min_length=1,
        description="Kinds of error: swap two letters, or drop, insert or replace a letter.",
    )
    where: Literal["attribute", "text"] = Field(
        default="text",
        description="Which part of the prompt gets errors. attribute: the words for the attribute's value. text: all "
        "words outside placeholders.",
    )

    def template(self, clean: str) -> Perturbed:
        return typos_in_template(clean, self.rate, self.seed, self.operations)

    def value(self, clean: str) -> Perturbed:
        return typos(clean, self.rate, self.seed, self.operations)


class Translation(ProbeModel):
    """Settings of a translation: the prompts in another language or in other words."""

    prompt: Text = Field(description="The translated prompt, with {value}, {entity} and {k}.")
    neutral: Text = Field(description="The translated neutral prompt, with {entity} and {k}.")
    attributes: dict[Identifier, Annotated[tuple[Line, ...], Field(min_length=1)]] = Field(
        default_factory=dict,
        min_length=1,
        description="Translated values of each attribute, in the order of its values. Attributes without an entry keep "
        "their values untranslated.",
    )


def _typos_or_translation(value: object) -> str:
    translated = isinstance(value, Mapping) and bool(TRANSLATED & value.keys())
    return "translation" if translated or isinstance(value, Translation) else "typos"


Perturbation = Annotated[
    Annotated[Typos, Tag("typos")] | Annotated[Translation, Tag("translation")],
    Discriminator(_typos_or_translation),
]
"""Type of a perturbation: a translation if it has one of the keys `TRANSLATED`, otherwise typing errors."""


# Reproducible typing errors in a given share of a text's letters, with a list of the errors for reports.


@dataclass(frozen=True, slots=True)
class Edit:
    """One typing error: at `position` of the clean text, `before` became `after`."""

    operation: Operation
    position: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Perturbed:
    """Text with typing errors: `text` is the result, `edits` lists the errors by position."""

    clean: str
    text: str
    edits: tuple[Edit, ...]

    def to_json(self) -> dict[str, Json]:
        return {"clean": self.clean, "text": self.text, "edits": [asdict(edit) for edit in self.edits]}


def error_count(letters: int, rate: float) -> int:
    """Return the number of typing errors in a text with `letters` letters: `rate` times the letters, at least one."""
    return min(letters, max(1, round(rate * letters)))


def typos(text: str, rate: float, seed: int, operations: Sequence[Operation]) -> Perturbed:
    """Return a text with `error_count` typing errors, or fewer if no more fit; each letter is in at most one."""
    return _perturbed(text, range(len(text)), rate, seed, operations)


def typos_in_template(text: str, rate: float, seed: int, operations: Sequence[Operation]) -> Perturbed:
    """Return a prompt template with typing errors in its text; placeholders stay unchanged."""
    inside = {position for start, end in prompts.template_spans(text) for position in range(start, end)}
    return _perturbed(text, [place for place in range(len(text)) if place not in inside], rate, seed, operations)


def _perturbed(text: str, allowed: Iterable[int], rate: float, seed: int, operations: Sequence[Operation]) -> Perturbed:
    rng = random.Random(f"{seed}/{text}")  # noqa: S311 - reproducible errors, no secrets
    letters = [place for place in allowed if text[place].isalpha()]
    unused = set(letters)
    edits: list[Edit] = []
    count = error_count(len(letters), rate) if letters else 0
    for place in rng.sample(letters, len(letters)):
        if len(edits) == count:
            break
        if place not in unused:
            continue
        for operation in rng.sample(operations, len(operations)):
            edit = _edit(text, place, operation, unused, rng)
            if edit is not None:
                edits.append(edit)
                unused -= set(range(place, place + len(edit.before)))
                break
    edits.sort(key=lambda edit: edit.position)
    return Perturbed(text, _with_edits(text, edits), tuple(edits))


def _edit(text: str, place: int, operation: Operation, unused: set[int], rng: random.Random) -> Edit | None:
    """Return a typing error at an index, if the operation is possible there with the `unused` letters."""
    letter = text[place]
    other = rng.choice([choice for choice in string.ascii_lowercase if choice != letter.casefold()])
    other = other.upper() if letter.isupper() else other
    match operation:
        case "swap":
            following = text[place + 1 : place + 2]
            if place + 1 not in unused or following == letter:
                return None
            return Edit("swap", place, letter + following, following + letter)
        case "drop":
            return Edit("drop", place, letter, "")
        case "insert":
            return Edit("insert", place, letter, letter + other)
        case "replace":
            return Edit("replace", place, letter, other)


def _with_edits(text: str, edits: Iterable[Edit]) -> str:
    pieces, end = [], 0
    for edit in edits:
        pieces += [text[end : edit.position], edit.after]
        end = edit.position + len(edit.before)
    return "".join([*pieces, text[end:]])


# Follow-up prompts: the same prompt after a short list, and the prompt with the indirect wording after a refusal.
#
# A probe file writes the indirect wording of an attribute's value under the key `indirect`.

PromptKey = tuple[tuple[tuple[str, str], ...], int]
"""Key of a prompt and its follow-up prompts: the sorted labels without `requery` and `form`, and the trial number."""


@dataclass(frozen=True)
class ListFollowUps(FollowUps):
    """Follow-up prompts of a probe of lists: up to `requery` after lists of fewer than `k` items.

    After a refusal, a pair of attribute and value in `indirect` has a prompt with the indirect wording.
    """

    possible = True

    prompt: Callable[[Mapping[str, str], int], Prompt]
    k: int
    requery: int
    indirect: Collection[tuple[str, str]]

    def next_prompts(self, answers: Sequence[Answer]) -> list[Prompt]:
        if not self.requery and not self.indirect:
            return []
        found = map(self._next_labels, _attempts_by_prompt(answers).values())
        return [self.prompt(*labels_and_trial) for labels_and_trial in found if labels_and_trial is not None]

    def _next_labels(self, attempts: Sequence[Answer]) -> tuple[dict[str, str], int] | None:
        """Return the labels and the trial number of the next follow-up prompt; `None` if none is needed."""
        current = [answer for answer in attempts if answer.labels.get("form") == "indirect"]
        first = attempts[0]
        if not current:
            current = list(attempts)
            value = (first.labels["attribute"], first.labels["value"])
            # A perturbed prompt with the indirect wording would be another perturbation.
            has_indirect = value in self.indirect and "perturbation" not in first.labels
            if has_indirect and all(answer.refused for answer in attempts):
                return {**first.labels, "form": "indirect"}, first.trial
        if len(current) <= self.requery and all(_is_short(answer, self.k) for answer in current):
            return {**current[0].labels, "requery": str(len(current))}, first.trial
        return None


def _attempts_by_prompt(answers: Sequence[Answer]) -> dict[PromptKey, list[Answer]]:
    """Group answers by prompt: first the answer to the prompt, then the answers to its follow-up prompts in order."""
    attempts_by_prompt: dict[PromptKey, list[Answer]] = {}
    for answer in answers:
        attempts_by_prompt.setdefault((_without_attempt(answer.labels), answer.trial), []).append(answer)
    for attempts in attempts_by_prompt.values():
        attempts.sort(key=_attempt_order)
    return attempts_by_prompt


def _without_attempt(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(item for item in labels.items() if item[0] not in ("requery", "form")))


def _attempt_order(answer: Answer) -> tuple[bool, int]:
    return "form" in answer.labels, int(answer.labels.get("requery", "0"))


def _is_short(answer: Answer, k: int) -> bool:
    return answer.usable and len({item.casefold() for item in answer.content}) < k
