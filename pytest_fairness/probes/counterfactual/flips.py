"""What is flipped in a record: one attribute, and what hangs on it. The record is edited, never the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from pytest_fairness.probes.base import Line
from pytest_fairness.probes.counterfactual.records import Fields
from pytest_fairness.records import Json

ALONG = "with"
"""The key under `flip` for what is changed along with an attribute; no attribute can be called that."""

Pairs = dict[Line, Line]


def _written_as(value: object) -> str:
    return "mapping" if isinstance(value, Mapping) else "list"


# What stands under `with` is a level or two deeper than values are; `counterfactual_faults` tells which.
WrittenFlip = Annotated[
    Annotated[dict[Line, Line | dict[Line, Line | Pairs]], Tag("mapping"), Field(min_length=1)]
    | Annotated[tuple[Line, ...], Tag("list"), Field(min_length=2)],
    Discriminator(_written_as),
]


@dataclass(frozen=True, slots=True)
class Flip:
    """An attribute, its values, and what is changed along with it.

    Attributes:
        attribute: the column.
        values: at least two; of two, the first is the one that differences are taken from.
        along: column to value to value, as they go from the first value to the second; read the other way round back.
    """

    attribute: str
    values: tuple[str, ...]
    along: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def others(self, value: str) -> tuple[str, ...]:
        """The values that a record with this one is flipped to."""
        return tuple(other for other in self.values if other != value)

    def apply(self, fields: Fields, value: str) -> dict[str, str]:
        """A record's fields as they are when the attribute has another value."""
        forward = value != self.values[0]
        edited = {**fields, self.attribute: value}
        for column, pairs in self.along.items():
            turned = pairs if forward else {to: of for of, to in pairs.items()}
            if fields.get(column) in turned:
                edited[column] = turned[fields[column]]
        return edited

    def to_json(self) -> Json:
        """Everything of it, in an order of its own."""
        values: Any = list(self.values) if self.along or len(self.values) == 2 else sorted(self.values)
        return {"values": values, "with": {column: dict(sorted(pairs.items())) for column, pairs in self.along.items()}}


def flips_of(written: Mapping[str, Any]) -> dict[str, Flip]:
    """The flips by attribute. `with` holds columns where one attribute is flipped, else attributes with columns."""
    attributes = [name for name in written if name != ALONG]
    along = written.get(ALONG, {})
    found = {}
    for name in attributes:
        values = written[name]
        if isinstance(values, Mapping):
            values = next(iter(values.items()))
        own = along if len(attributes) == 1 else _mapping(along).get(name, {})
        found[name] = Flip(
            name, tuple(values), {column: pairs for column, pairs in _mapping(own).items() if _pairs(pairs)}
        )
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    # What is of another form is a fault already, and is looked at with the others.
    return value if isinstance(value, Mapping) else {}


def _pairs(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(to, str) for to in value.values())
