"""Perturbations of prompts: typing errors, or another language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.field_types import Identifier, Line, Text
from pytest_fairness.probes.recommendation.typos import Operation, Perturbed, typos, typos_in_template

TRANSLATED = frozenset({"prompt", "neutral", "attributes"})


class Typos(ProbeModel):
    """Typing errors, the same in every run; the entity's name is never changed."""

    rate: float = Field(
        default=0.1, gt=0, le=1, description="Share of the letters with an error; at least one letter has an error."
    )
    seed: int = Field(default=0, ge=0, description="The same seed makes the same errors.")
    operations: tuple[Operation, ...] = Field(
        default=("swap", "drop", "insert", "replace"),
        min_length=1,
        description="swap two letters, drop one, insert one, or replace one.",
    )
    where: Literal["attribute", "text"] = Field(
        default="text", description="attribute: in the words for the value. text: in the rest of the prompt."
    )

    def template(self, clean: str) -> Perturbed:
        """Return a prompt with typing errors."""
        return typos_in_template(clean, self.rate, self.seed, self.operations)

    def value(self, clean: str) -> Perturbed:
        """Return the words for a value with typing errors."""
        return typos(clean, self.rate, self.seed, self.operations)


class Translation(ProbeModel):
    """The prompts in another language or other words."""

    prompt: Text = Field(description="The prompt in these words, with {value}, {entity} and {k}.")
    neutral: Text = Field(description="The neutral prompt in these words, with {entity} and {k}.")
    attributes: dict[Identifier, Annotated[tuple[Line, ...], Field(min_length=1)]] = Field(
        default_factory=dict,
        min_length=1,
        description="The words for an attribute's values, in their order. Other attributes keep their words.",
    )


def _which(value: object) -> str:
    translated = isinstance(value, Mapping) and bool(TRANSLATED & value.keys())
    return "translation" if translated or isinstance(value, Translation) else "typos"


Perturbation = Annotated[
    Annotated[Typos, Tag("typos")] | Annotated[Translation, Tag("translation")],
    Discriminator(_which),
]
"""Typing errors, or a translation, which has its own prompt."""
