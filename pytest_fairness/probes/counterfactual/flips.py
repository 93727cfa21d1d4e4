"""Flips: changes of one or several attributes of a record, and of the columns that depend on these attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Annotated, Any, Self

from pydantic import Discriminator, Field, Tag

from pytest_fairness.probes import checks
from pytest_fairness.probes.audit_settings import mapping_or_other
from pytest_fairness.probes.counterfactual.records import Fields
from pytest_fairness.probes.diagnostics import Diagnostic, quoted, raise_diagnostics, suggestion
from pytest_fairness.probes.field_types import Line
from pytest_fairness.records import Json

WITH = "with"
"""Key under `flip` whose value lists dependent columns; no attribute may have this name."""

LABELS = ("record", "form", "attribute", "to", "truth", "id", "answer", "text", "trial", "asked")
"""Names that no attribute may have, because they are names of labels or columns of answers."""

Pairs = dict[Line, Line]


# The content of `with` and the values of several attributes are nested deeper than the values of one attribute;
# `check_flips` requires the right depth.
WrittenFlip = Annotated[
    Annotated[dict[Line, Line | tuple[Line, ...] | dict[Line, Line | Pairs]], Tag("mapping"), Field(min_length=1)]
    | Annotated[tuple[Line, ...], Tag("other"), Field(min_length=2)],
    Discriminator(mapping_or_other),
]


@dataclass(frozen=True, slots=True)
class Flip:
    """Flip of one attribute, or of several attributes at once, with the columns that depend on the attributes.

    Attributes:
        attribute: column of the attribute; several attributes are joined with `+`.
        values: at least two values, in the probe's order; audits subtract the result for the later of two values from
            that for the earlier one. The values of several attributes are the combinations of their values, such as
            `Female; Black`.
        dependents: for each dependent column, its values and their replacements (`{"Husband": "Wife"}`) in a flip from
            the first value of the attribute to the second. The opposite flip reverses them.
        parts: the flips of the attributes that are flipped at once; empty for a single attribute.
        cells: for each of `values`, the single values that are combined, one of each flip in `parts`.
    """

    attribute: str
    values: tuple[str, ...]
    dependents: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    parts: tuple[Flip, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def combined(cls, parts: Sequence[Flip]) -> Self:
        """Return the flip of several attributes at once."""
        cells = tuple(product(*(part.values for part in parts)))
        values = tuple("; ".join(cell) for cell in cells)
        return cls("+".join(part.attribute for part in parts), values, parts=tuple(parts), cells=cells)

    @property
    def columns(self) -> tuple[Flip, ...]:
        """The flips of the single attributes: `parts`, or this flip itself."""
        return self.parts or (self,)

    def others(self, value: str) -> tuple[str, ...]:
        """Return the values to which a record with this value is flipped: all other values."""
        return tuple(other for other in self.values if other != value)

    def value_of(self, fields: Fields) -> str | None:
        """Return the record's value of the attribute; `None` if the record has no value that the flip lists."""
        if not self.parts:
            value = fields.get(self.attribute)
            return value if value in self.values else None
        found = [part.value_of(fields) for part in self.parts]
        return None if None in found else "; ".join(map(str, found))

    def fields_of(self, value: str) -> dict[str, str]:
        """Return each column's content for this value: `{"sex": "Female", "race": "Black"}` for `Female; Black`."""
        if not self.parts:
            return {self.attribute: value}
        cell = self.cells[self.values.index(value)]
        return {part.attribute: content for part, content in zip(self.parts, cell, strict=True)}

    def apply(self, fields: Fields, value: str) -> dict[str, str]:
        """Return the fields of a record after a flip of the attribute to this value; dependent columns change, too."""
        flipped = self.fields_of(value)
        edited = {**fields, **flipped}
        for part in self.columns:
            if flipped[part.attribute] == fields.get(part.attribute):
                continue
            forward = flipped[part.attribute] != part.values[0]
            for column, pairs in part.dependents.items():
                replacements = pairs if forward else {second: first for first, second in pairs.items()}
                if fields.get(column) in replacements:
                    edited[column] = replacements[fields[column]]
        return edited

    def to_json(self) -> Json:
        """Return the flip as plain JSON.

        The JSON does not depend on the order of the replacements in a dependent column, and depends on the order of the
        attribute's values only if there are two.
        """
        if self.parts:
            return {part.attribute: part.to_json() for part in self.parts}
        values: Any = list(self.values) if self.dependents or len(self.values) == 2 else sorted(self.values)
        return {
            "values": values,
            "with": {column: dict(sorted(pairs.items())) for column, pairs in self.dependents.items()},
        }


def flips_of(written: Mapping[str, Any]) -> dict[str, Flip]:
    """Return the flips by attribute; `written` is the value of the key `flip`, which `check_flips` has checked."""
    dependents = written.get(WITH, {})
    several = len(columns_of(written)) > 1

    def single(name: str, values: Any) -> Flip:
        if isinstance(values, Mapping):
            ((first, second),) = values.items()
            values = (first, second)
        return Flip(name, tuple(values), dependents.get(name, {}) if several else dependents)

    return {
        name: Flip.combined([single(*part) for part in values.items()])
        if _is_combined(values)
        else single(name, values)
        for name, values in written.items()
        if name != WITH
    }


def columns_of(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return each flipped column with its values as in the probe file; `sex+race` gives two columns."""
    found: dict[str, Any] = {}
    for name, values in written.items():
        if name != WITH:
            found |= values if _is_combined(values) else {name: values}
    return found


def _is_combined(values: Any) -> bool:
    """Return whether a value under `flip` names several attributes, as in `{sex: {Male: Female}, race: [A, B]}`."""
    return isinstance(values, Mapping) and any(not isinstance(value, str) for value in values.values())


def check_flips(written: dict[str, Any]) -> dict[str, Any]:
    """Return `written`, the value of a probe's key `flip`, if it is valid.

    If one attribute is flipped, the key `with` lists its dependent columns. If several attributes are flipped, `with`
    lists the dependent columns of each attribute under the attribute's name.

    Raises:
        ValidationError: attributes, values and dependent columns contradict each other.
    """
    attributes = [name for name in written if name != WITH]
    found = [each.below(name) for name in attributes for each in _attribute_diagnostics(name, written[name])]
    if not attributes:
        found.append(
            Diagnostic((), "no attribute is flipped: name an attribute with its values, `sex: {Male: Female}`")
        )
    if WITH in written:
        found += [each.below(WITH) for each in _dependent_column_diagnostics(written[WITH], columns_of(written))]
    raise_diagnostics(found)
    return written


def _attribute_diagnostics(name: str, values: Any) -> Iterator[Diagnostic]:
    if name in LABELS:
        message = f"{quoted(name)} cannot be an attribute, because answers have a label of this name: rename it"
        yield Diagnostic((), message, at_key=True)
    if _is_combined(values) and len(values) == 1 and "+" not in name:
        yield Diagnostic(tuple(values), "the value after the flip must be text, as in `{Male: Female}`")
        return
    if _is_combined(values):
        if name != "+".join(values):
            message = (
                f"rename {quoted(name)} to {quoted('+'.join(values))}: a flip of several attributes is named after "
                f"them, joined by +"
            )
            yield Diagnostic((), message, at_key=True)
        for attribute, own in values.items():
            if isinstance(own, str) or _is_combined(own):
                yield Diagnostic(
                    (attribute,), "values are missing: write a pair, `{Male: Female}`, or a list, `[A, B, C]`"
                )
            elif len(own) < (1 if isinstance(own, Mapping) else 2):
                yield Diagnostic((attribute,), "needs at least two values")
            else:
                yield from (each.below(attribute) for each in _attribute_diagnostics(attribute, own))
        return
    if not isinstance(values, Mapping):
        located = (((place,), value) for place, value in enumerate(values))
        yield from checks.repeats(located, "write each value once", str)
        return
    if len(values) > 1:
        yield Diagnostic((), "a mapping has only one pair of values; write more values as a list, `[A, B, C]`")
    for first, second in values.items():
        if first == second:
            yield Diagnostic((first,), f"{quoted(first)} is flipped to itself: write two different values")


def _dependent_column_diagnostics(dependents: Any, values: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """Yield diagnostics for the value of `with`."""
    if not isinstance(dependents, Mapping):
        message = "must be a mapping of columns, each with its pairs of values, such as `relationship: {Husband: Wife}`"
        yield Diagnostic((), message)
        return
    if len(values) == 1:
        yield from _column_diagnostics(dependents, *values.items())
        return
    for name, columns in dependents.items():
        if name not in values:
            message = (
                "several attributes are flipped, so `with` must list each column under the attribute on which it "
                f"depends, but {quoted(name)} is no flipped attribute{suggestion(name, values)}"
            )
            yield Diagnostic((name,), message, at_key=True)
        elif isinstance(columns, Mapping):
            yield from (each.below(name) for each in _column_diagnostics(columns, (name, values[name])))
        else:
            yield Diagnostic((name,), "must be a mapping of columns, each with its pairs of values")


def _column_diagnostics(columns: Mapping[str, Any], flipped: tuple[str, Any]) -> Iterator[Diagnostic]:
    """Yield diagnostics for the dependent columns of one attribute; `flipped` is its name and its values."""
    attribute, values = flipped
    if not isinstance(values, Mapping) and len(values) > 2:
        message = (
            f"`with` is possible only for an attribute with two values, and {quoted(attribute)} has {len(values)}: "
            f"remove `with`"
        )
        yield Diagnostic((), message)
    for column, pairs in columns.items():
        if column == attribute:
            message = f"{quoted(column)} is the flipped attribute itself: name a column that depends on it"
            yield Diagnostic((column,), message, at_key=True)
        if not isinstance(pairs, Mapping) or not pairs:
            yield Diagnostic((column,), "must be a mapping of values, such as `{Husband: Wife}`")
        elif any(not isinstance(value, str) for value in pairs.values()):
            yield Diagnostic((column,), "values must be text, as in `{Husband: Wife}`")
        elif len({*pairs.values()}) < len(pairs):
            message = (
                "two values have the same replacement, so that a flip cannot be reversed: write different replacements"
            )
            yield Diagnostic((column,), message)
