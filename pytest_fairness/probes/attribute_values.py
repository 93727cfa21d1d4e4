"""Attributes of people and their values, as a probe file lists them, in combinations, and as words of a prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Discriminator, Field, Tag

from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.field_types import Line

_ARTICLE = re.compile(r"an?\s+(?=\S)", re.IGNORECASE)


class ValueSettings(ProbeModel):
    """Attribute value written as a mapping: its name, its words in the prompt, and optional indirect words."""

    label: Line = Field(description="The value's name in reports and baselines.")
    text: Line = Field(description="The words that replace {value}.")
    indirect: Line | None = Field(
        default=None,
        description="Other words for the value, used if the answer to the prompt with the direct words is a refusal.",
    )


@dataclass(frozen=True, slots=True)
class Value:
    """One value of an attribute: its name, its words in a prompt, and optional indirect words."""

    label: str
    text: str
    indirect: str | None = None


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute and its values; `parts` holds the names of the combined attributes, or only its own name."""

    name: str
    values: tuple[Value, ...]
    parts: tuple[str, ...]


def _written_as(value: object) -> str:
    # Serialisation passes the model itself.
    return "mapping" if isinstance(value, Mapping | ProbeModel) else "text"


WrittenValue = Annotated[
    Annotated[Line, Tag("text")] | Annotated[ValueSettings, Tag("mapping")],
    Discriminator(_written_as),
]
"""Value in a probe file: the words, which are also the name, or a mapping with both."""


def plain(name: str, written: Sequence[str | ValueSettings]) -> Attribute:
    """Return an uncombined attribute with the values that a probe file lists."""
    values = (
        Value(value, value) if isinstance(value, str) else Value(value.label, value.text, value.indirect)
        for value in written
    )
    return Attribute(name, tuple(values), (name,))


def crossed(attributes: Sequence[Attribute]) -> Attribute:
    """Return the attribute of all combinations of several attributes' values, named `age+personality`."""
    combined: list[tuple[Value, ...]] = [()]
    for attribute in attributes:
        combined = [(*before, value) for before in combined for value in attribute.values]
    values = (Value("; ".join(value.label for value in parts), _joined(parts)) for parts in combined)
    return Attribute("+".join(attribute.name for attribute in attributes), tuple(values), _names(attributes))


def _names(attributes: Sequence[Attribute]) -> tuple[str, ...]:
    return tuple(attribute.name for attribute in attributes)


def _joined(values: Sequence[Value]) -> str:
    """Return the words of combined values with one article: `a young, extraverted`."""
    first, *others = (value.text for value in values)
    return ", ".join([first, *(_ARTICLE.sub("", text, count=1) if _ARTICLE.match(text) else text for text in others)])
