"""Settings of the audit `lexicon`: lists of terms by name, in the probe or in text files beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationInfo,
    field_validator,
    model_serializer,
)
from pydantic_core import PydanticCustomError

from pytest_fairness.probes import search_terms, table
from pytest_fairness.probes.audit_settings import AuditSettings, ProbeModel
from pytest_fairness.probes.diagnostics import Diagnostic, file_errors, raise_diagnostics, raise_file_errors
from pytest_fairness.probes.field_types import Identifier, Line, ProbeFile, loading, shown

COMMENT = "#"
SUFFIX = ".txt"


def _once_each(listed: tuple[str, ...]) -> tuple[str, ...]:
    raise_diagnostics(Diagnostic((place,), message) for place, message in search_terms.errors(listed))
    return listed


def _term(term: str) -> str:
    if (message := search_terms.error(term)) is not None:
        raise PydanticCustomError("term", "{message}", {"message": message})
    return term


class LexiconFile(ProbeModel):
    """Terms that stand in a text file, one a line."""

    file: ProbeFile = Field(
        description="Text file (.txt) in the probe's folder, one term a line; empty lines and lines that begin with # "
        "are passed over."
    )

    _terms: tuple[str, ...] = PrivateAttr(default=())

    @field_validator("file")
    @classmethod
    def _holds_terms(cls, file: Path, info: ValidationInfo) -> Path:
        if file.suffix.casefold() != SUFFIX:
            raise PydanticCustomError(
                "file", "{named} is no text file with one term a line: its name must end in {suffix}",
                {"named": repr(file.name), "suffix": SUFFIX},
            )  # fmt: skip
        with file_errors():
            read(file, shown(file, loading(info).root))
        return file

    def model_post_init(self, context: Any, /) -> None:
        """Keep the terms, so that a file that changes during a run changes nothing."""
        self._terms = read(self.file, self.file.name)

    @property
    def terms(self) -> tuple[str, ...]:
        """Return the file's terms, in its order."""
        return self._terms

    @model_serializer
    def _content(self) -> tuple[str, ...]:
        """Return the terms, as measurements are cached by the content of files and not by their paths."""
        return self._terms


def read(path: Path, name: str) -> tuple[str, ...]:
    """Return the terms of a file.

    Args:
        path: the file.
        name: the file as messages name it.

    Raises:
        ProbeError: `file:line: message` for each fault, one a line.
    """
    lines = enumerate(table.read_text(path, name).splitlines(), start=1)
    rows = [(number, line.strip()) for number, line in lines if line.strip() and not line.lstrip().startswith(COMMENT)]
    found = search_terms.errors([term for _, term in rows])
    errors = [f"{name}:{rows[place][0]}: {message}" for place, message in found]
    raise_file_errors(errors if rows else [f"{name}:1: the file holds no terms: write one a line"], name)
    return tuple(term for _, term in rows)


def _written_as(value: object) -> str:
    # A model asks about itself when it is written out.
    return "mapping" if isinstance(value, Mapping | ProbeModel) else "list"


Lexicon = Annotated[
    Annotated[
        tuple[Annotated[Line, AfterValidator(_term)], ...],
        Field(min_length=1),
        AfterValidator(_once_each),
        Tag("list"),
    ]
    | Annotated[LexiconFile, Tag("mapping")],
    Discriminator(_written_as),
]
"""A list of terms, or a file of them."""


class LexiconSettings(AuditSettings):
    """Lists of words, stems and phrases, whose rates are compared between groups."""

    item_labels: ClassVar[tuple[str, ...]] = ("lexicon",)

    lexicons: dict[Identifier, Lexicon] = Field(
        min_length=1,
        description="Lists of terms by name, each a list or {file: NAME.txt}: words, phrases, and stems such as lead*, "
        "which stand for all words that begin so. Each list is measured for itself.",
    )

    def terms(self, name: str) -> tuple[str, ...]:
        """Return the terms of the lexicon of this name."""
        lexicon = self.lexicons[name]
        return lexicon.terms if isinstance(lexicon, LexiconFile) else lexicon
