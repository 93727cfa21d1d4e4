"""Cases of a stereotype probe, written in the probe or in a file beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError, ValidationInfo, field_validator

from pytest_fairness.probes import table
from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.data_file import DataFile
from pytest_fairness.probes.diagnostics import file_errors, raise_file_errors
from pytest_fairness.probes.document import Document, Node
from pytest_fairness.probes.field_types import CaseName, Line, Loading, Text, Texts, loading, shown
from pytest_fairness.probes.loading import validation_messages
from pytest_fairness.probes.stereotype import published_files, validation
from pytest_fairness.probes.table import Row
from pytest_fairness.records import Json

_LISTS = ("stereotype", "anti_stereotype", "groups")


class Case(ProbeModel):
    """One case of a stereotype.

    An open case has a `prompt`: texts are generated, and their markers counted. A likelihood case has sentences without
    a prompt: their likelihood under the model is compared.
    """

    name: CaseName = Field(description="The case's name in item ids and baselines, unique in the probe.")
    category: CaseName | None = Field(
        default=None, description="Subject of the stereotype; the cases of a category are reported together."
    )
    prompt: Text | None = Field(
        default=None,
        description="The prompt. {group} stands for one of the case's groups; a brace that is meant as such is "
        "written {{ or }}. A case without a prompt holds sentences whose likelihood is asked for.",
    )
    stereotype: Texts | None = Field(
        default=None,
        description="With a prompt: words, phrases and stems (lead*) that mark the stereotype, a list. Without: the "
        "stereotyped sentence.",
    )
    anti_stereotype: Texts | None = Field(
        default=None,
        description="With a prompt: words, phrases and stems that mark the opposite, a list. Without: the sentence "
        "that goes against the stereotype.",
    )
    opposite: CaseName | None = Field(
        default=None,
        description="The case that this one is paired with, and which names this one: a model that always says the "
        "same is at 0.5 in the mean of both.",
    )
    groups: tuple[Line, ...] = Field(
        default=(), min_length=2, description="Groups that replace {group}, and are compared."
    )
    context: Text | None = Field(default=None, description="Without a prompt: the text before the sentences.")
    unrelated: Text | None = Field(
        default=None, description="Without a prompt: a sentence that has nothing to do with the context."
    )
    target: Line | None = Field(
        default=None, description="Without a prompt: the term that the stereotype is about; scores are averaged by it."
    )

    direction: Literal["stereo", "antistereo"] | None = Field(
        default=None,
        description="Without a prompt: whether the pair shows a stereotype of a disadvantaged group (stereo) or "
        "contradicts one (antistereo), as in CrowS-Pairs; only reported apart.",
    )

    @property
    def open(self) -> bool:
        """`True` if the answers are texts, `False` if they are likelihoods of sentences."""
        return self.prompt is not None or not isinstance(self.stereotype, str)

    @property
    def markers(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The stereotype and anti-stereotype markers of an open case; empty without markers."""
        first, second = (marks if isinstance(marks, tuple) else () for marks in (self.stereotype, self.anti_stereotype))
        return first, second


class CasesFile(DataFile):
    """Cases in a file, with the same keys."""

    @field_validator("file")
    @classmethod
    def _holds_cases(cls, file: Path, info: ValidationInfo) -> Path:
        with file_errors():
            read(file, shown(file, loading(info).root))
        return file


def _written_as(value: object) -> str:
    # Serialisation passes the model itself.
    return "mapping" if isinstance(value, Mapping | ProbeModel) else "list"


Cases = Annotated[
    Annotated[tuple[Case, ...], Tag("list"), Field(min_length=1)] | Annotated[CasesFile, Tag("mapping")],
    Discriminator(_written_as),
]
"""A list of cases, or a file of them."""


def cases_of(written: Cases) -> tuple[Case, ...]:
    """Return the cases of a list or file."""
    return read(written.file, written.file.name) if isinstance(written, CasesFile) else written


def read(path: Path, name: str) -> tuple[Case, ...]:
    """Return the cases of a file, in its order: JSON Lines, a JSON list of objects, or CSV with lists written as JSON.

    The published files of StereoSet (JSON) and CrowS-Pairs (CSV) are read as they are.

    Args:
        path: the file.
        name: the file as messages name it.

    Raises:
        ProbeError: the file has errors: `file:line: message`, one a line.
    """
    rows = [(row.line, _given(row.fields)) for row in _rows(path, name)]
    found: list[Case] = []
    errors: list[str] = []
    for line, fields in rows:
        try:
            found.append(Case.model_validate_json(json.dumps(fields), strict=True, context=Loading(path)))
        except ValidationError as error:
            errors += [f"{name}:{line}: {message}" for message in _messages(error, fields)]
    for each in validation.of_cases([fields for _, fields in rows]):
        line, _ = rows[int(each.location[0])]
        errors.append(f"{name}:{line}: {each.message}")
    raise_file_errors(errors, name)
    return tuple(found)


def _rows(path: Path, name: str) -> tuple[Row, ...]:
    if path.suffix.casefold() == ".json" and (found := published_files.stereoset(path, name)) is not None:
        return found
    content = table.read(path, name, "cases")
    return published_files.crows_pairs(content, name) if published_files.is_crows_pairs(content) else content.rows


def _given(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Return a row without empty fields, and with lists in place of their JSON text."""
    given = {name: value for name, value in fields.items() if value not in (None, "")}
    for name in _LISTS:
        written = given.get(name)
        if isinstance(written, str) and written.lstrip().startswith("["):
            try:
                given[name] = json.loads(written)
            except (ValueError, RecursionError):
                continue
    return given


def _messages(error: ValidationError, fields: Mapping[str, Json]) -> list[str]:
    document = Document("", _node(fields), [])
    details = error.errors(include_url=False, include_input=False)
    return [each.message for each in validation_messages.diagnostics(details, (), document, Case)]


def _node(value: Any) -> Node:
    """Return a row's value as a tree for messages, without positions."""
    written = None if isinstance(value, str) else json.dumps(value)
    if isinstance(value, Mapping):
        return Node({str(key): _node(inner) for key, inner in value.items()}, 0, 0)
    if isinstance(value, list):
        return Node([_node(inner) for inner in value], 0, 0)
    return Node(value, 0, 0, written=written)
