"""Attributes of people and their values: as they are written, combined, and put into words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Discriminator, Field, Tag

from pytest_fairness.probes.audit_settings import ProbeModel
from pytest_fairness.probes.base import Line

_ARTICLE = re.compile(r"an?\s+(?=\S)", re.IGNORECASE)


class ValueSettings(ProbeModel):
    """A value with a name of its own, and perhaps an indirect wording."""

    label: Line = Field(description="The value's name in reports and baselines.")
    text: Line = Field(description="What is put in for {value}.")
    indirect: Line | None = Field(
        default=None, description="What is put in instead where the answer to the direct wording is a refusal."
    )


@dataclass(frozen=True, slots=True)
class Value:
    """One value of an attribute: its name, the words for it, and perhaps indirect ones."""

    label: str
    text: str
    indirect: str | None = None


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute and its values; `parts` are the attributes that it combines, itself alone for a plain one."""

    name: str
    values: tuple[Value, ...]
    parts: tuple[str, ...]


def _written_as(value: object) -> str:
    # A model asks about itself when it is written out.
    return "mapping" if isinstance(value, Mapping | ProbeModel) else "text"


WrittenValue = Annotated[
    Annotated[Line, Tag("text")] | Annotated[ValueSettings, Tag("mapping")],
    Discriminator(_written_as),
]
"""A value as a probe file has it: its words, which are its name as well, or a mapping."""


def plain(name: str, written: Sequence[str | ValueSettings]) -> Attribute:
    """An attribute as it is written."""
    values = (
        Value(value, value) if isinstance(value, str) else Value(value.label, value.text, value.indirect)
        for value in written
    )
    return Attribute(name, tuple(values), (name,))


def crossed(attributes: Sequence[Attribute]) -> Attribute:
    """Every combination of the values of several attributes, named `age+personality`."""
    combined: list[tuple[Value, ...]] = [()]
    for attribute in attributes:
        combined = [(*before, value) for before in combined for value in attribute.values]
    values = (Value("; ".join(value.label for value in parts), _joined(parts)) for parts in combined)
    return Attribute("+".join(attribute.name for attribute in attributes), tuple(values), _names(attributes))


def _names(attributes: Sequence[Attribute]) -> tuple[str, ...]:
    return tuple(attribute.name for attribute in attributes)


def _joined(values: Sequence[Value]) -> str:
    """`a young, extraverted`: one article is enough."""
    first, *others = (value.text for value in values)
    return ", ".join([first, *(_ARTICLE.sub("", text, count=1) if _ARTICLE.match(text) else text for text in others)])
