"""Settings of the audit `lexicon`: named lists of terms, in the probe file or in text files beside it."""

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
from pytest_fairness.probes.audit_settings import AuditSettings, ProbeModel, mapping_or_other
from pytest_fairness.probes.diagnostics import Diagnostic, errors_at, raise_diagnostics, raise_file_errors
from pytest_fairness.probes.field_types import Identifier, Line, ProbeFile, display_path, probe_source

COMMENT = "#"
SUFFIX = ".txt"

LABEL = "lexicon"
"""Name of an item's label that holds the name of its lexicon; the item also has a label for its axis."""


def _checked_terms(listed: tuple[str, ...]) -> tuple[str, ...]:
    raise_diagnostics(Diagnostic((place,), message) for place, message in search_terms.errors(listed))
    return listed


def _checked_term(term: str) -> str:
    if (message := search_terms.error(term)) is not None:
        raise PydanticCustomError("term", "{message}", {"message": message})
    return term


class LexiconFile(ProbeModel):
    """Terms in a text file, one in each line."""

    file: ProbeFile = Field(
        description="Text file (.txt) in the probe's folder, one term in each line; empty lines and lines that begin "
        "with # are ignored."
    )

    _terms: tuple[str, ...] = PrivateAttr(default=())

    @field_validator("file")
    @classmethod
    def _holds_terms(cls, file: Path, info: ValidationInfo) -> Path:
        """Return the path of the file; raise an error if it does not contain a list of valid terms."""
        if file.suffix.casefold() != SUFFIX:
            raise PydanticCustomError(
                "file", "{named} is not a text file with one term in each line: its name must end in {suffix}",
                {"named": repr(file.name), "suffix": SUFFIX},
            )  # fmt: skip
        with errors_at():
            read(file, display_path(file, probe_source(info).root))
        return file

    def model_post_init(self, context: Any, /) -> None:
        """Read the terms once, so that a change of the file during a run has no effect."""
        self._terms = read(self.file, self.file.name)

    @property
    def terms(self) -> tuple[str, ...]:
        """Return the file's terms, in the order of its lines."""
        return self._terms

    @model_serializer
    def _content(self) -> tuple[str, ...]:
        """Return the terms, which replace the path in serialised settings.

        The key of a stored measurement is computed from the serialised settings, so that it depends on the terms.
        """
        return self._terms


def read(path: Path, name: str) -> tuple[str, ...]:
    """Return the terms of a file.

    Args:
        path: path of the file.
        name: name of the file in messages.

    Raises:
        ProbeError: the file has errors; the message has a line `file:line: message` for each error.
    """
    lines = enumerate(table.read_text(path, name).splitlines(), start=1)
    rows = [(number, line.strip()) for number, line in lines if line.strip() and not line.lstrip().startswith(COMMENT)]
    invalid = search_terms.errors([term for _, term in rows])
    errors = [f"{name}:{rows[place][0]}: {message}" for place, message in invalid]
    raise_file_errors(errors if rows else [f"{name}:1: the file has no terms: write one in each line"], name)
    return tuple(term for _, term in rows)


Lexicon = Annotated[
    Annotated[
        tuple[Annotated[Line, AfterValidator(_checked_term)], ...],
        Field(min_length=1),
        AfterValidator(_checked_terms),
        Tag("other"),
    ]
    | Annotated[LexiconFile, Tag("mapping")],
    Discriminator(mapping_or_other),
]
"""A list of terms, or the name of a file with terms."""


class LexiconSettings(AuditSettings):
    """Settings of `lexicon`: lists of words, stems and phrases whose rates are compared between groups."""

    item_labels: ClassVar[tuple[str, ...]] = (LABEL,)

    lexicons: dict[Identifier, Lexicon] = Field(
        min_length=1,
        description="Lexicons by name, each a list of terms or {file: NAME.txt}. Terms are words, phrases, and "
        "stems such as lead*, which stand for all words with this beginning. Each lexicon becomes an item for each "
        "marked group.",
    )

    def terms(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """Return the terms of an item's lexicon, from the labels of the item."""
        lexicon = self.lexicons[labels[LABEL]]
        return lexicon.terms if isinstance(lexicon, LexiconFile) else lexicon
