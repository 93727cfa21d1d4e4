"""Perturbations of prompts of recommendation probes: typing errors, or translations."""

from __future__ import annotations

import random
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from pytest_fairness.probes import prompts
from pytest_fairness.probes.field_types import Identifier, Line, ProbeModel, Text
from pytest_fairness.records import Json

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
