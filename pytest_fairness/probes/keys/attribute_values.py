"""Attributes of people, such as age, and their values; the values of several attributes can be combined."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Discriminator, Field, Tag

from pytest_fairness.probes.audit_settings import ProbeModel, mapping_or_other
from pytest_fairness.probes.field_types import Line

_ARTICLE = re.compile(r"an?\s+(?=\S)", re.IGNORECASE)


class ValueSettings(ProbeModel):
    """Attribute value that the probe file writes as a mapping."""

    label: Line = Field(description="The value's name in reports and baselines.")
    text: Line = Field(description="The words that replace {value}.")
    indirect: Line | None = Field(
        default=None,
        description="Indirect wording: other words for the value, for a second prompt after a refusal.",
    )


@dataclass(frozen=True, slots=True)
class Value:
    """One value of an attribute: its name, its words in a prompt, and its indirect wording (after a refusal)."""

    label: str
    text: str
    indirect: str | None = None


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute and its values.

    Attributes:
        name: name of the attribute; a combination of several attributes is named `age+personality`.
        values: the values, in the order of the probe file.
        parts: names of the attributes that are combined; for a single attribute, only its own name.
    """

    name: str
    values: tuple[Value, ...]
    parts: tuple[str, ...]


WrittenValue = Annotated[
    Annotated[Line, Tag("other")] | Annotated[ValueSettings, Tag("mapping")],
    Discriminator(mapping_or_other),
]
"""Type of an attribute value in a probe file: a text, which is its name and its words, or a mapping with separate keys
for name and words."""


def attribute_from_values(name: str, written: Sequence[str | ValueSettings]) -> Attribute:
    """Return an attribute with the values that a probe file lists."""
    values = (
        Value(value, value) if isinstance(value, str) else Value(value.label, value.text, value.indirect)
        for value in written
    )
    return Attribute(name, tuple(values), (name,))


def combined_attribute(attributes: Sequence[Attribute]) -> Attribute:
    """Return a combination of attributes, such as `age+personality`, with one value for each combination of values."""
    combinations: list[tuple[Value, ...]] = [()]
    for attribute in attributes:
        combinations = [(*before, value) for before in combinations for value in attribute.values]
    values = (Value("; ".join(value.label for value in parts), _joined(parts)) for parts in combinations)
    names = tuple(attribute.name for attribute in attributes)
    return Attribute("+".join(names), tuple(values), names)


def _joined(values: Sequence[Value]) -> str:
    """Return the words of several values, joined by commas; only the first value keeps its article.

    For `a young` and `an extraverted`, return `a young, extraverted`.
    """
    first, *others = (value.text for value in values)
    return ", ".join([first, *(_ARTICLE.sub("", text, count=1) if _ARTICLE.match(text) else text for text in others)])
