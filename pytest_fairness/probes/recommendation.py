"""Probes of kind `recommendation`: ranked lists for people with a known attribute, and neutral lists."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, ValidationInfo, field_validator

from pytest_fairness.errors import ProbeError
from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes import field_types, prompts, shared_keys, table
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.diagnostics import Diagnostic, Part, errors_at, quoted, raise_file_errors, suggestion
from pytest_fairness.probes.field_types import AuditSettings, Identifier, Line, ProbeModel, Text, block_text, canonical
from pytest_fairness.probes.perturbations import Perturbation, Translation
from pytest_fairness.probes.prompts import FollowUps
from pytest_fairness.probes.recorded_rows import TRIAL, Column, Labels, RecordedRow, Rows
from pytest_fairness.probes.shared_keys import AnswerReading, Attribute, Stage, Trials, Value, WrittenValue, growing
from pytest_fairness.probes.table import DataFile, Row, Table, as_items, as_line
from pytest_fairness.records import Json, Prompt

NEUTRAL = "neutral"
"""Value of the label `attribute` for neutral lists, whose prompt names no attribute."""


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
        return table.read(path, field_types.display_path(path, field_types.probe_source(info).root), holds)


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
    Discriminator(field_types.mapping_or_other),
]
"""Type of the key `entities`: a list of names, a list of names with domains, or a file."""


@dataclass(frozen=True, slots=True)
class Wording:
    """Templates and words of the prompts, without or with a perturbation.

    Attributes:
        texts: for each attribute, the words for its values, in the order of the values.
    """

    prompt: str
    neutral: str
    texts: Mapping[str, tuple[str, ...]]


class RecommendationProbe(Probe):
    """Probe of ranked lists: each entity gets a prompt for every value of the attributes, and a neutral prompt."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["prompt", "neutral", "entities"]}, {"required": ["responses"]}]}
    )

    units = "entities"
    sent_keys: ClassVar[Mapping[str, str]] = {
        "prompt": "the request with {value} for the person's attribute, or `responses:` with recorded lists",
        "neutral": "the same request without {value}, for comparison",
        "entities": "the subjects of the recommendations, as a list or `{file: …}`",
    }
    no_strata = "lists are compared only with lists about the same entity"

    kind: Literal["recommendation"] = Field(
        description="Kind of the probe: compares ranked lists that are recommended to people with different attribute "
        "values."
    )
    prompt: Text | None = Field(
        default=None,
        description="Prompt that names an attribute of the person. {value} stands for its value, {entity} for "
        "the entity, {k} for the number of items; a literal brace is written {{ or }}.",
    )
    neutral: Text | None = Field(
        default=None,
        description="The same prompt without the person's attribute; it contains {entity} and {k}, but not {value}.",
    )
    written_entities: Entities | None = Field(
        default=None,
        alias="entities",
        description="Subjects of the recommendations, such as artists: a list or a file.",
    )
    written_attributes: dict[Identifier, Annotated[tuple[WrittenValue, ...], Field(min_length=1)]] = Field(
        alias="attributes", min_length=1, description="Attributes of a person by name, each with its values."
    )
    cross: tuple[Annotated[tuple[Identifier, ...], Field(min_length=2)], ...] = Field(
        default=(),
        min_length=1,
        description="Lists of attributes whose values are combined, such as [[age, personality]]; reports call this "
        "combination `age+personality`.",
    )
    k: int = Field(
        default=25, ge=1, le=1000, description="Number of items in a list; longer lists are cut to this number."
    )
    trials: Trials = Field(
        default=1,
        description="Number of lists for each value. With {start: 2, max: 8}, the number begins at 2, and grows up to "
        "8 while a verdict is inconclusive.",
    )
    neutral_trials: int = Field(
        default=2,
        ge=1,
        le=MAX_TRIALS,
        description="Number of neutral lists for each entity; with two or more, reports show how much lists differ by "
        "chance.",
    )
    requery: int = Field(
        default=0,
        ge=0,
        le=100,
        description="Maximum number of times that a list with fewer than k items is requested again.",
    )
    perturbations: dict[Identifier, Perturbation] = Field(
        default_factory=dict,
        min_length=1,
        description="Changes of the prompt's wording by name: typing errors or translations, such as {typo: {rate: "
        "0.1}}.",
    )
    relevant_file: RelevantFile | None = Field(
        default=None,
        alias="relevant",
        description="The relevant items of each entity, for audits that need them, such as `quality`.",
    )
    normalize: bool = Field(
        default=True,
        description="Whether items are compared without regard to letter case, punctuation and leading articles.",
    )
    fuzzy: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Minimum similarity (above 0, at most 1) at which two titles count as the same item. Default: "
        "titles must be equal.",
    )

    @classmethod
    def faults(cls, data: Part, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
        columns = ("entity", "attribute", "value", "items", "rank", "trial", "domain")
        missing = {key: cure for key, cure in _OPTIONAL.items() if key not in data}
        yield from cls._shared_faults(data, audits, columns, missing)
        for wording in (data, *data["perturbations"], *data["variants"]):
            yield from _prompt_faults(wording)
        entities = _names(data["entities"], "name")
        yield from field_types.repeats(entities, "write each entity once")
        yield from _attribute_faults(data)
        # An entity has a list for each value, and a neutral list, in each wording and trial.
        lengths = {each.name: len(each.value) for each in data["attributes"] if isinstance(each.value, list)}
        crossed = (field_types.capped_product(lengths.get(name, 1) for name in each.value) for each in _crosses(data))
        wordings = 1 + len(data["perturbations"].names)
        lists = (1 + sum(lengths.values()) + sum(crossed)) * wordings * field_types.most_trials(data, 1)
        yield from field_types.too_many_prompts(data, len(entities) * lists, "entities, values and trials", "entities")

    @cached_property
    def reading(self) -> AnswerReading:
        return replace(super().reading, format="titles")

    @cached_property
    def entities(self) -> tuple[Entity, ...]:
        """The entities that prompts are about; empty if recorded answers name them."""
        written = self.written_entities or ()
        return written.read() if isinstance(written, EntitiesFile) else written

    @cached_property
    def attributes(self) -> dict[str, Attribute]:
        return self._with_combinations(self._single_attributes)

    @cached_property
    def _single_attributes(self) -> dict[str, Attribute]:
        return {name: Attribute(name, values, (name,)) for name, values in self.written_attributes.items()}

    def _with_combinations(self, single: Mapping[str, Attribute]) -> dict[str, Attribute]:
        combined = [shared_keys.combined_attribute([single[name] for name in names]) for names in self.cross]
        return {attribute.name: attribute for attribute in (*single.values(), *combined)}

    @cached_property
    def relevant(self) -> dict[str, tuple[str, ...]] | None:
        """Relevant items of each entity, by the entity's name; `None` if the probe has no key `relevant`.

        If a name in the file differs from an entity's name in the probe only in letter case, the key is the name in
        the probe.
        """
        if self.relevant_file is None:
            return None
        names = {entity.name.casefold(): entity.name for entity in self.entities}
        return {names.get(entity.casefold(), entity): items for entity, items in self.relevant_file.read().items()}

    @cached_property
    def _wordings(self) -> dict[str | None, Wording]:
        """Wordings by name of the perturbation; the wording without perturbation has the key `None`."""
        prompt, neutral = block_text(self.prompt), block_text(self.neutral)
        single = self._single_attributes
        wordings: dict[str | None, Wording] = {None: Wording(prompt, neutral, self._texts_by_attribute(single))}
        for name, perturbation in self.perturbations.items():
            if isinstance(perturbation, Translation):
                prompt_, neutral_ = block_text(perturbation.prompt), block_text(perturbation.neutral)
                words = self._texts_by_attribute({**single, **_translated(single, perturbation.attributes)})
                wordings[name] = Wording(prompt_, neutral_, words)
            elif perturbation.where == "text":
                prompt_, neutral_ = perturbation.template(prompt).text, perturbation.template(neutral).text
                wordings[name] = Wording(prompt_, neutral_, wordings[None].texts)
            else:
                words = {
                    attribute: tuple(perturbation.value(text).text for text in clean)
                    for attribute, clean in wordings[None].texts.items()
                }
                wordings[name] = Wording(prompt, neutral, words)
        return wordings

    def _texts_by_attribute(self, single: Mapping[str, Attribute]) -> dict[str, tuple[str, ...]]:
        attributes = self._with_combinations(single)
        return {name: tuple(value.text for value in attribute.values) for name, attribute in attributes.items()}

    def edits(self, perturbation: str) -> list[dict[str, Json]]:
        """Return the perturbed texts as plain JSON: `clean` and perturbed `text`, and its typing errors (`edits`)."""
        clean, other = self._wordings[None], self._wordings[perturbation]
        settings = self.perturbations[perturbation]
        if isinstance(settings, Translation):
            pairs = [(clean.prompt, other.prompt), (clean.neutral, other.neutral)]
            pairs += [
                pair
                for attribute in self.written_attributes
                for pair in zip(clean.texts[attribute], other.texts[attribute], strict=True)
            ]
            return [{"clean": before, "text": after} for before, after in dict.fromkeys(pairs) if before != after]
        if settings.where == "text":
            return [settings.template(text).to_json() for text in (clean.prompt, clean.neutral)]
        return [settings.value(text).to_json() for texts in clean.texts.values() for text in texts]

    def unit_of(self, labels: Mapping[str, str]) -> str:
        return labels["entity"]

    def _owner(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        """Return the labels without the perturbation: a prompt that a perturbation does not change is asked once."""
        return {name: value for name, value in labels.items() if name != "perturbation"}

    def _written_prompts(self, trials: int | None) -> Iterator[Prompt]:
        for labels, count in self._prompt_labels(trials):
            yield from (self._prompt(labels, trial) for trial in range(count))

    def stages(self) -> list[Stage]:
        """Return one stage for each interim analysis; the numbers of trials and of entities may both grow."""
        trials = super().stages()
        written = self.written_entities
        if not isinstance(written, EntitiesFile) or written.start is None:
            return trials
        # The order in which entities are added is pseudo-random, but the same in every run.
        names = sorted((entity.name for entity in self.entities), key=lambda name: sha256(name.encode()).digest())
        entities = growing(written.start, len(names))
        longest = max(len(trials), len(entities))
        stages = []
        for place in range(longest):
            count = entities[min(place, len(entities) - 1)]
            stages.append(Stage(trials[min(place, len(trials) - 1)].trials, count, frozenset(names[count:])))
        return stages

    def _prompt_labels(self, trials: int | None) -> Iterator[tuple[dict[str, str], int]]:
        fewest = shared_keys.max_trials(self.trials, trials)
        repeated = [settings for settings in self.audits.values() if isinstance(settings, RepeatSettings)]
        neutral = max([self.neutral_trials, fewest, *(settings.repeats for settings in repeated)])
        conditioned = {
            name: max([fewest, *(settings.repeats for settings in repeated if name in settings.attributes)])
            for name in self.attributes
        }
        for entity in self.entities:
            about = {"entity": entity.name} | ({"domain": entity.domain} if entity.domain is not None else {})
            for perturbation in (None, *self.perturbations):
                clean = perturbation is None
                changed = {} if clean else {"perturbation": str(perturbation)}
                yield {**about, "attribute": NEUTRAL, "value": "", **changed}, neutral if clean else fewest
                for attribute in self.attributes.values():
                    count = conditioned[attribute.name] if clean else fewest
                    for value in attribute.values:
                        yield {**about, "attribute": attribute.name, "value": value.label, **changed}, count

    def _text(self, labels: Mapping[str, str]) -> str:
        wording = self._wordings[labels.get("perturbation")]
        words = {"entity": labels["entity"], "k": str(self.k)}
        text = wording.neutral
        if labels["attribute"] != NEUTRAL:
            attribute = self.attributes[labels["attribute"]]
            place = next(i for i, value in enumerate(attribute.values) if value.label == labels["value"])
            indirect = attribute.values[place].indirect if labels.get("form") == "indirect" else None
            words["value"] = wording.texts[attribute.name][place] if indirect is None else indirect
            text = wording.prompt
        return prompts.fill(text, words)

    def _prompt(self, labels: Mapping[str, str], trial: int) -> Prompt:
        # A list that is asked for again has a trial number above all others, so that it is a separate request.
        request_trial = trial + MAX_TRIALS * int(labels.get("requery", "0"))
        return Prompt(self._request(self._text(labels), request_trial, "titles"), labels, trial)

    @cached_property
    def follow_ups(self) -> FollowUps:
        """Prompts that repeat a prompt after a short list (up to `requery` times), or after a refusal.

        After a refusal, the prompt has the value's indirect wording.
        """
        if self.responses is not None:
            return FollowUps()
        indirect = {
            (attribute.name, value.label)
            for attribute in self.attributes.values()
            for value in attribute.values
            if value.indirect is not None
        }
        return prompts.ListFollowUps(self._follow_up, self.k, self.requery, indirect)

    def _follow_up(self, labels: Mapping[str, str], trial: int) -> Prompt:
        first = {name: value for name, value in labels.items() if name not in ("requery", "form")}
        return self._asked_separately(self._prompt(labels, trial), first)

    def fingerprint(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the texts that determine an item's prompts and how its answers are read; see `Probe.fingerprint`.

        Attributes that the item does not compare are left out. The entities are left out, too, because lists are
        compared entity by entity.
        """
        parts = {"k": str(self.k), "normalize": canonical(self.normalize), "fuzzy": canonical(self.fuzzy)}
        perturbation = labels.get("perturbation")
        attribute = labels.get("attribute")
        names = [attribute] if attribute in self.attributes else list(self.attributes) if perturbation else []
        clean, recorded = self._wordings[None], self.responses is not None
        parts |= self._source_fingerprint(
            neutral=clean.neutral, requery=str(self.requery), **({"prompt": clean.prompt} if names else {})
        )
        for name in names:
            values = self.attributes[name].values
            written = [value.label if recorded else [value.label, value.text, value.indirect or ""] for value in values]
            parts[f"attribute {name}"] = canonical(sorted(written))
        if perturbation in self._wordings and perturbation is not None and not recorded:
            other = self._wordings[perturbation]
            parts[f"perturbation {perturbation}"] = canonical(
                [other.prompt, other.neutral, {name: sorted(other.texts[name]) for name in names}]
            )
        return parts


def _translated(single: Mapping[str, Attribute], words: Mapping[str, Sequence[str]]) -> dict[str, Attribute]:
    """Return the attributes that are translated, with the translated words for their values."""
    return {
        name: Attribute(
            name,
            tuple(Value(label=value.label, text=text) for value, text in zip(single[name].values, texts, strict=True)),
            (name,),
        )
        for name, texts in words.items()
    }


# Checks that the keys of a recommendation probe fit together.

_OPTIONAL = {
    "relevant": "the relevant items of each entity, `relevant: {file: …}`",
    "perturbations": "other wordings, `perturbations: {typo: {rate: 0.1}}`",
}
"""Optional keys that some audits need (see `AuditSettings.needs`), each with its remedy."""
_PLACEHOLDERS = {"prompt": ("value", "entity", "k"), "neutral": ("entity", "k")}
_CONTENTS = {"value": "the attribute's value belongs", "entity": "the entity's name belongs"}
"""Placeholders that a prompt must contain, each with the end of the message "write {entity} where …"."""


def _prompt_faults(wording: Part) -> Iterator[Diagnostic]:
    for key, names in _PLACEHOLDERS.items():
        part = wording[key]
        for diagnostic in prompts.template_diagnostics(part.text, names, part.location):
            if key == "neutral" and diagnostic.piece == "{value}":
                message = "the neutral prompt names no value of an attribute: remove the placeholder {value}"
                diagnostic = replace(diagnostic, message=message)
            yield diagnostic
        used = prompts.intended_placeholders(part.text, names)
        for name, content in _CONTENTS.items():
            if part.is_text and name in names and name not in used:
                yield part.fault(f"this prompt does not use {{{name}}}: write it where {content}")


def _names(written: Part, key: str) -> list[Part]:
    """Return the name of each item of a list: the item itself or, for a mapping, its value under `key`."""
    return [item if item.is_text else item[key] for item in (written if isinstance(written.value, list) else ())]


def _crosses(data: Part) -> list[Part]:
    return [names for names in data["cross"] if isinstance(names.value, list) and all(name.is_text for name in names)]


def _attribute_faults(data: Part) -> Iterator[Diagnostic]:
    attributes = data["attributes"]
    known = attributes.names
    for attribute in attributes:
        if attribute.name.casefold() == NEUTRAL:
            yield attribute.key_fault("rename the attribute 'neutral': this is the name of the neutral lists")
        yield from field_types.repeats(_names(attribute, "label"), "list each value of an attribute only once")
    seen: set[frozenset[str]] = set()
    for names in _crosses(data):
        yield from _unknown_attributes(names, known)
        yield from field_types.repeats((name for name in names if name.text in known), "name different attributes", str)
        if frozenset(names.value) in seen:
            combined = " and ".join(map(quoted, names.value))
            yield names.fault(f"{combined} are already combined by another list: remove this list")
        seen.add(frozenset(names.value))
    for words in (words for perturbation in data["perturbations"] for words in perturbation["attributes"]):
        values = attributes[words.name].value
        if words.name not in known:
            near = suggestion(words.name, known)
            yield words.key_fault(f"unknown attribute {quoted(words.name)}{near}")
        elif (
            isinstance(words.value, list)
            and isinstance(values, list)
            and words.value
            and len(words.value) != len(values)
        ):
            yield words.fault(
                f"{words.name} has {len(values)} values, but {len(words.value)} translations: write one translation "
                "for each value, in the same order"
            )
    for settings in data["audits"]:
        combined_names = ["+".join(names.value) for names in _crosses(data)]
        yield from _unknown_attributes((settings["attribute"], *settings["attributes"]), [*known, *combined_names])


def _unknown_attributes(named: Iterable[Part], known: Sequence[str]) -> Iterator[Diagnostic]:
    for name in named:
        if name.is_text and name.text not in known:
            yield name.fault(f"unknown attribute {name.quoted}{suggestion(name.text, known)}")


# Settings of audits that compare several lists for the same prompt.


class RepeatSettings(AuditSettings):
    """Settings of an audit that compares repeated lists."""

    repeats: int = Field(default=10, ge=2, le=1000, description="Number of answers to each repeated prompt.")
    attributes: tuple[str, ...] = Field(
        default=(),
        description="Attributes whose prompts are repeated in addition to the neutral prompts; the audit then compares "
        "the values of each attribute.",
    )


# Rows of a file of recorded lists: one list per row or, with a column `rank`, one item of a list.


class ListRows(Rows[RecommendationProbe]):
    """Rows that name entity, attribute and value; those of neutral prompts have the attribute `neutral`.

    Rows whose entity, attribute or value is not in the probe are left out. A list is JSON, or as the model wrote it.
    """

    noun = "lists"
    content_column = "items"

    def rules(self) -> list[Column]:
        entities = [entity.name for entity in self.probe.entities] or None
        return [
            Column("attribute", [*self.probe.attributes, NEUTRAL], "other", filled=True),
            Column("entity", entities, "other", filled=True),
            Column("value"),
            Column("items", is_label=False),
            TRIAL,
            *(Column(name, optional=True, is_label=False) for name in ("domain", "rank")),
        ]

    def other_names(self) -> dict[str, str]:
        written = "rank" in self.table and "items" not in self.responses.columns and self.has_column("item")
        return {"items": "item"} if written else {}

    @cached_property
    def _domains(self) -> dict[str, str | None]:
        return {entity.name: entity.domain for entity in self.probe.entities}

    @cached_property
    def _values(self) -> dict[tuple[str, str], str]:
        return {
            (attribute.name, field_types.folded(value.label)): value.label
            for attribute in self.probe.attributes.values()
            for value in attribute.values
        }

    def labels_of(self, row: Row, labels: Labels) -> Labels | None:
        key = (labels["attribute"], field_types.folded(labels["value"]))
        value = "" if labels["attribute"] == NEUTRAL else self._values.get(key)
        if value is None:
            self.leave_out(row, "value", of_group=True)
            return None
        domain = self.cell(row, "domain") if "domain" in self.columns else self._domains.get(labels["entity"])
        found = {"entity": labels["entity"], "attribute": labels["attribute"], "value": value}
        return found | ({"domain": domain} if domain else {})

    def recorded(self) -> Iterator[RecordedRow]:
        if "rank" not in self.columns:
            yield from super().recorded()
            return
        lists: dict[tuple[str, ...], tuple[Labels, int, dict[int, str]]] = {}
        for row, labels in self._labelled():
            trial, rank = self.number(row, "trial"), self.number(row, "rank")
            if trial is None or rank is None:
                continue
            named = (labels["entity"], labels["attribute"], labels["value"])
            items = lists.setdefault((*named, str(trial)), (labels, trial, {}))[2]
            if rank in items:
                self.error(
                    row,
                    f"rank {rank} of {', '.join(filter(None, named))} occurs twice. Give each item of a list its own "
                    "rank, and each list of the same request its own number in a column `trial`",
                )
            items[rank] = as_line(row.fields.get(self.columns["items"]))
        for labels, trial, items in lists.values():
            yield RecordedRow(labels, trial, [items[rank] for rank in sorted(items) if items[rank]])
        self.finish([labels for labels, _, _ in lists.values()])

    def check(self, existing: Sequence[Labels]) -> None:
        found = {(labels["attribute"], labels["value"]) for labels in existing}
        needed = [(name, value) for (name, _), value in self._values.items()]
        missing = [pair for pair in (*needed, (NEUTRAL, "")) if pair not in found]
        if not missing:
            return
        pairs = (" ".join((self.cell(row, "attribute"), self.cell(row, "value"))).strip() for row in self.rows())
        others = ", ".join(map(repr, list(dict.fromkeys(pairs))[:10]))
        raise_file_errors(
            [
                f"{self.name}:1: no row has the attribute 'neutral'; the file has {others}. Add the lists for prompts "
                "that name no attribute, with which the other lists are compared"
                if name == NEUTRAL
                else f"{self.name}:1: no row has the attribute and value {f'{name} {value}'!r}; the file has {others}. "
                "Write both in the probe as in the file, add such rows, or remove the value from the probe"
                for name, value in missing
            ],
            self.name,
        )
