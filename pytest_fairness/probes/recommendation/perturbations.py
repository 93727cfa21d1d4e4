"""Perturbations of prompts: typing errors, or a translation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.field_types import Identifier, Line, Text
from pytest_fairness.probes.recommendation.typos import Operation, Perturbed, typos, typos_in_template

TRANSLATED = frozenset({"prompt", "neutral", "attributes"})


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
        """Return a prompt template with typing errors in its text; placeholders stay unchanged."""
        return typos_in_template(clean, self.rate, self.seed, self.operations)

    def value(self, clean: str) -> Perturbed:
        """Return the words for an attribute's value with typing errors."""
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
