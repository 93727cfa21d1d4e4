"""Cases of a stereotype probe, written in the probe or in a file in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, ValidationError, ValidationInfo, field_validator

from pytest_fairness.probes import table
from pytest_fairness.probes.audit_settings import ProbeModel, mapping_or_other
from pytest_fairness.probes.data_file import DataFile
from pytest_fairness.probes.diagnostics import errors_at, raise_file_errors
from pytest_fairness.probes.field_types import CaseName, Line, ProbeSource, Text, Texts, display_path, probe_source
from pytest_fairness.probes.loading.validation_messages import row_messages
from pytest_fairness.probes.stereotype import published_files, validation
from pytest_fairness.probes.table import Row
from pytest_fairness.records import Json

_LISTS = ("stereotype", "anti_stereotype", "groups")


class Case(ProbeModel):
    """One case of a stereotype probe.

    An open case has a `prompt`: the model generates texts, and the audit counts the markers in them. A likelihood case
    has sentences and no prompt: the audit compares the sentences' likelihoods for the model.
    """

    name: CaseName = Field(description="Name of the case in item ids and baselines; unique in the probe.")
    category: CaseName | None = Field(
        default=None, description="Subject of the stereotype, such as age; reports show the results of each category."
    )
    prompt: Text | None = Field(
        default=None,
        description="The prompt. {group} stands for one of the case's groups; a literal brace is written {{ or }}. A "
        "case without a prompt has two sentences, whose likelihoods are compared.",
    )
    stereotype: Texts | None = Field(
        default=None,
        description="With a prompt: a list of words, phrases and stems (lead*) that mark the stereotype. Without a "
        "prompt: the stereotyped sentence.",
    )
    anti_stereotype: Texts | None = Field(
        default=None,
        description="With a prompt: a list of words, phrases and stems that mark the opposite. Without a prompt: the "
        "sentence that contradicts the stereotype.",
    )
    opposite: CaseName | None = Field(
        default=None,
        description="Name of the opposite case, which must name this case in return. The scores of the two cases are "
        "averaged, so that a model that gives the same answer in both cases scores 0.5.",
    )
    groups: tuple[Line, ...] = Field(
        default=(), min_length=2, description="Groups that replace {group}; the answers about them are compared."
    )
    context: Text | None = Field(default=None, description="Without a prompt: text that comes before each sentence.")
    unrelated: Text | None = Field(
        default=None, description="Without a prompt: a sentence that is unrelated to the context."
    )
    target: Line | None = Field(
        default=None,
        description="Without a prompt: the term that the stereotype is about; the scores of all cases with the same "
        "term are averaged.",
    )

    direction: Literal["stereo", "antistereo"] | None = Field(
        default=None,
        description="Without a prompt, as in CrowS-Pairs: stereo if the pair of sentences shows a stereotype of a "
        "disadvantaged group, antistereo if the pair contradicts such a stereotype. Reports show the two kinds of "
        "pairs separately; the key has no other effect.",
    )

    @property
    def open(self) -> bool:
        """Return whether the answers are texts; otherwise, the answers are likelihoods of sentences."""
        return self.prompt is not None or not isinstance(self.stereotype, str)

    @property
    def markers(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The markers of the stereotype, and those of its opposite; two empty tuples if the case has no markers."""
        first, second = (marks if isinstance(marks, tuple) else () for marks in (self.stereotype, self.anti_stereotype))
        return first, second


class CasesFile(DataFile):
    """Cases in a file, whose rows have the keys of `Case`."""

    @field_validator("file")
    @classmethod
    def _holds_cases(cls, file: Path, info: ValidationInfo) -> Path:
        with errors_at():
            read(file, display_path(file, probe_source(info).root))
        return file


Cases = Annotated[
    Annotated[tuple[Case, ...], Tag("other"), Field(min_length=1)] | Annotated[CasesFile, Tag("mapping")],
    Discriminator(mapping_or_other),
]
"""Type of the key `cases`: a list of cases, or a file."""


def cases_of(written: Cases) -> tuple[Case, ...]:
    """Return the cases that the key `cases` lists, or the cases in the file that the key names."""
    return read(written.file, written.file.name) if isinstance(written, CasesFile) else written


def read(path: Path, name: str) -> tuple[Case, ...]:
    """Return the cases in a file, in the file's order.

    The file is JSON Lines, a JSON list of objects, or CSV in which lists are written as JSON; or a published file of
    StereoSet (JSON) or CrowS-Pairs (CSV), without changes.

    Args:
        path: the file.
        name: the file's name for messages.

    Raises:
        ProbeError: the file has errors; each line of the message is `file:line: message`.
    """
    rows = [(row.line, _nonempty_fields(row.fields)) for row in _rows(path, name)]
    cases: list[Case] = []
    errors: list[str] = []
    for line, fields in rows:
        try:
            cases.append(Case.model_validate_json(json.dumps(fields), strict=True, context=ProbeSource(path)))
        except ValidationError as error:
            errors += [f"{name}:{line}: {message}" for message in row_messages(error, fields, Case)]
    for diagnostic in validation.case_diagnostics([fields for _, fields in rows]):
        line, _ = rows[int(diagnostic.location[0])]
        errors.append(f"{name}:{line}: {diagnostic.message}")
    raise_file_errors(errors, name)
    return tuple(cases)


def _rows(path: Path, name: str) -> tuple[Row, ...]:
    if path.suffix.casefold() == ".json" and (found := published_files.stereoset(path, name)) is not None:
        return found
    content = table.read(path, name, "cases")
    return published_files.crows_pairs(content, name) or content.rows


def _nonempty_fields(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Return the non-empty fields of a row; a text with a JSON list in a field of `_LISTS` becomes a list."""
    given = {name: value for name, value in fields.items() if value not in (None, "")}
    for name in _LISTS:
        written = given.get(name)
        if isinstance(written, str) and written.lstrip().startswith("["):
            try:
                given[name] = json.loads(written)
            except (ValueError, RecursionError):
                continue
    return given
