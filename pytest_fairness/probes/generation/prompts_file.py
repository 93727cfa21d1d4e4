"""Prompts of a generation probe in a file, such as a log of real prompts with placeholders."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from hashlib import sha256
from typing import ClassVar, NamedTuple

from pydantic import Field

from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import table
from pytest_fairness.probes.data_file import DataFile
from pytest_fairness.probes.diagnostics import quoted, raise_file_errors, suggestion
from pytest_fairness.probes.field_types import Line
from pytest_fairness.probes.prompts import template
from pytest_fairness.records import Json

ID_DIGITS = 8


class PromptRow(NamedTuple):
    """Prompt: its text, and its line in the file (or its number in the probe's list of prompts)."""

    text: str
    line: int

    @property
    def id(self) -> str:
        """Digest of the text, which does not depend on the order of the file."""
        return sha256(self.text.encode()).hexdigest()[:ID_DIGITS]


class PromptsFile(DataFile):
    """Prompts in a file: all different prompts of the file, or a sample."""

    holds: ClassVar[str] = "prompts"

    column: Line = Field(default="text", description="The column with the prompts.")
    sample: int | None = Field(default=None, ge=1, description="Number of prompts in the sample. Default: all.")
    seed: int = Field(default=0, ge=0, description="Seed of the sample: the same seed draws the same prompts.")

    def read(self, axes: Collection[str], elsewhere: Collection[str] = ()) -> dict[str, str]:
        """Return the prompt templates by id, in the file's order; equal prompts are one prompt.

        The sample does not depend on the order of the file, and keeps most of its prompts if prompts are added to
        the file.

        Args:
            axes: names of the probe's axes.
            elsewhere: names of the axes that the turns after the prompt use; each prompt must use all other axes.

        Raises:
            ProbeError: the file cannot be read, lacks the column, holds fewer prompts than the sample, or a prompt is
                not a valid template.
        """
        name = self.file.name
        order = self.in_sample_order()
        in_file = sorted(order, key=lambda row: row.line)
        raise_file_errors([error for row in in_file for error in _errors(row, name, axes, elsewhere)], name)
        if self.sample is not None and len(order) < self.sample:
            message = f"the file holds only {len(order)} different prompts: set `sample` to at most {len(order)}"
            raise ProbeError(f"{name}:1: {message}")
        drawn = {row.id for row in order[: self.sample]}
        return {row.id: row.text for row in in_file if row.id in drawn}

    def in_sample_order(self) -> list[PromptRow]:
        """Return the different prompts of the file, in the order in which a sample draws them.

        Raises:
            ProbeError: the file cannot be read, lacks the column, or holds no texts in the column.
        """
        name = self.file.name
        content = table.read(self.file, name, self.holds)
        if self.column not in content.columns:
            near = suggestion(self.column, content.columns)
            cure = f"set `prompts.column` to the column with the prompts{near}"
            raise ProbeError(f"{name}:1: no column {quoted(self.column)}; {cure}")
        rows: dict[str, PromptRow] = {}
        for row in _prompt_rows(content, self.column):
            rows.setdefault(row.id, row)
        if not rows:
            cure = "set `prompts.column` to the column with the prompts"
            raise ProbeError(f"{name}:1: the column {quoted(self.column)} holds no texts; {cure}")
        return [rows[id_] for id_ in sorted(rows, key=lambda id_: sha256(f"{self.seed}/{id_}".encode()).digest())]


def _prompt_rows(content: table.Table, column: str) -> Iterator[PromptRow]:
    for row in content.rows:
        text: Json = row.fields.get(column)
        if isinstance(text, str) and text.strip():
            yield PromptRow(text.strip(), row.line)


def _errors(row: PromptRow, name: str, axes: Collection[str], elsewhere: Collection[str]) -> Iterator[str]:
    """Yield the errors of a prompt's template, each with its place in the file."""
    messages = [diagnostic.message for diagnostic in template.diagnostics(row.text, axes)]
    used = template.intended(row.text, axes)
    messages += [
        f"the prompt does not use the axis {quoted(axis)}: write {{{axis}}} where its values belong"
        for axis in axes
        if axis not in used and axis not in elsewhere
    ]
    yield from (f"{name}:{row.line}: {message}" for message in messages)
