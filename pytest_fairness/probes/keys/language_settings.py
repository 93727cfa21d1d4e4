"""The key `language` of a probe: the languages of its answers, and words that the probe declares."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, cast

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator
from pydantic_core import PydanticCustomError

from pytest_fairness.languages.language import Language, language
from pytest_fairness.languages.names import NAMES
from pytest_fairness.languages.words import WITHOUT_BLANKS, can_segment
from pytest_fairness.probes.audit_settings import ProbeModel, text_or_other
from pytest_fairness.probes.diagnostics import quoted
from pytest_fairness.probes.field_types import ProbeFile, Text
from pytest_fairness.records import Json

Terms = Annotated[tuple[Text, ...], Field(min_length=1)]


def _known_code(code: str) -> str:
    codes = {name.casefold(): known for known, name in NAMES.items()}
    if code not in NAMES:
        cure = f"write {codes[code.casefold()]}" if code.casefold() in codes else "write an ISO 639 code, such as de"
        raise PydanticCustomError(
            "language", "{named} is not the code of a known language: {cure}", {"named": quoted(code), "cure": cure}
        )
    if code in WITHOUT_BLANKS and not can_segment():
        raise PydanticCustomError(
            "language",
            "{name} is written without blanks, and the package icu4py is needed to find its words: "
            'pip install "pytest-fairness[segmentation]"',
            {"name": NAMES[code]},
        )
    return code


Code = Annotated[str, AfterValidator(_known_code)]


class OwnWords(ProbeModel):
    """Words of a language that a probe declares, in addition to the built-in words."""

    identity_terms: Terms = Field(
        default=(), description="Terms that name a group; answers are measured without these terms."
    )
    function_words: Terms = Field(
        default=(), description="Words such as `the`; reports list them last among the words that explain a result."
    )
    refusals: Terms = Field(
        default=(),
        description="Phrases that mark a refusal: an answer is a refusal if its first sentence contains one of them.",
    )


class DeclaredLanguage(ProbeModel):
    """A language with words that the probe declares."""

    code: Code = Field(description="ISO 639 code of the language.")
    terms: Annotated[
        Annotated[OwnWords, Tag("other")] | Annotated[ProbeFile, Tag("text")], Discriminator(text_or_other)
    ] = Field(
        description="The words of the language, or a TOML file in the probe's folder with the keys `identity_terms`, "
        "`function_words` and `refusals`."
    )

    @field_validator("terms")
    @classmethod
    def _content(cls, terms: OwnWords | Path) -> OwnWords:
        """Return the declared words; read them from the file if `terms` is a path."""
        return terms if isinstance(terms, OwnWords) else OwnWords.model_validate(_read_toml(terms))

    def to_language(self) -> Language:
        """Return the language with the declared words."""
        return language(self.code).with_words(**dict(cast("OwnWords", self.terms)))


def _read_toml(path: Path) -> dict[str, Json]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        match error:
            case UnicodeDecodeError():
                reason = "it is not UTF-8 text. Save the file in the encoding UTF-8"
            case OSError():
                reason = f"{error.strerror or error}. Check its permissions"
            case _:
                syntax = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
                reason = f"{syntax}. Write lists such as refusals = ['I cannot', 'no way']"
        raise PydanticCustomError(
            "file", "{named} cannot be read as TOML: {reason}", {"named": quoted(path.name), "reason": reason}
        ) from None


def _one_several_or_declared(given: object) -> str:
    if isinstance(given, Mapping | DeclaredLanguage):
        return "declared"
    return "one" if isinstance(given, str) else "several"


Languages = Annotated[
    Annotated[Code, Tag("one")]
    | Annotated[tuple[Code, ...], Tag("several"), Field(min_length=1)]
    | Annotated[DeclaredLanguage, Tag("declared")],
    Discriminator(_one_several_or_declared),
]
"""Type of the key `language`: one code, several codes, or a code with words that the probe declares."""


def to_language(written: str | tuple[str, ...] | DeclaredLanguage) -> Language:
    """Return the language, or the combined languages, that the key `language` names."""
    if isinstance(written, DeclaredLanguage):
        return written.to_language()
    return language(*((written,) if isinstance(written, str) else dict.fromkeys(written)))
