"""Checks that a counterfactual probe fits its records: attributes, values and columns exist."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pytest_fairness.probes.counterfactual.flips import WITH, Flip
from pytest_fairness.probes.counterfactual.settings import TruthSettings
from pytest_fairness.probes.diagnostics import Diagnostic, Location, nearest, quoted, suggestion
from pytest_fairness.probes.prompts import template

MAX_SUGGESTED = 20
"""Maximum number of different values of a column whose values a message lists."""

Values = Mapping[str, Collection[str]]
"""For each column of the records, its values."""

Located = list[tuple[Location, str]]
"""Templates of a conversation, each with its location in the probe file; a single prompt is one template."""


def diagnostics(
    rows: Sequence[Mapping[str, str]],
    *,
    conversations: Iterable[Located],
    flips: Mapping[str, Flip],
    truth: TruthSettings | None,
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each prompt, flip or truth column that does not fit the records.

    Args:
        rows: the fields of all records.
        conversations: templates and their locations, for the probe's conversation and for each variant.
        flips: the probe's flips by attribute.
        truth: value of the probe's key `truth`; `None` without this key.
    """
    values: dict[str, set[str]] = {}
    for row in rows:
        for column, value in row.items():
            values.setdefault(column, set()).add(value)
    columns = {part.attribute for flip in flips.values() for part in flip.columns}
    checked: set[Location] = set()
    for texts in conversations:
        yield from _template_diagnostics(texts, checked, values, sorted(columns))
        checked.update(location for location, _ in texts)
    for name, part in ((name, part) for name, flip in flips.items() for part in flip.columns):
        attribute = part.attribute
        place: Location = ("flip", name) if name == attribute else ("flip", name, attribute)
        if attribute not in values:
            yield _unknown_column(place, attribute, values, at_key=True)
            continue
        yield from _unknown_values(place, part.values, attribute, values)
        if attribute in flips and name != attribute:
            continue  # the dependent columns are checked with the attribute's own flip
        location = ("flip", WITH) if len(columns) == 1 else ("flip", WITH, attribute)
        yield from (each.below(*location) for each in _dependent_column_diagnostics(part, values))
    if truth is not None and truth.column not in values:
        yield _unknown_column(("truth", "column"), truth.column, values)
    elif truth is not None:
        yield from _unknown_values(("truth", "positive"), [truth.positive], truth.column, values)


def _template_diagnostics(
    texts: Located, checked: Collection[Location], values: Values, columns: Iterable[str]
) -> Iterator[Diagnostic]:
    """Yield diagnostics for invalid templates of a conversation, and for flipped columns that no template uses.

    Args:
        texts: the templates and their locations.
        checked: locations of templates that need no further check.
        values: the columns of the records, with their values.
        columns: the flipped columns.
    """
    for location, text in texts:
        if location not in checked:
            yield from template.diagnostics(text, values, location)
    used = {name for _, text in texts for name in template.intended(text, values)}
    for name in columns:
        if name in values and name not in used:
            which = "this prompt does not use" if len(texts) == 1 else "no message of this conversation uses"
            message = f"{which} {{{name}}}, which is flipped: write {{{name}}} where its values belong"
            yield Diagnostic(texts[0][0], message)


def _dependent_column_diagnostics(flip: Flip, values: Values) -> Iterator[Diagnostic]:
    for column, pairs in flip.dependents.items():
        if column not in values:
            yield _unknown_column((column,), column, values, at_key=True)
            continue
        for first, second in pairs.items():
            if first not in values[column] and second not in values[column]:
                cure = suggestion(first, values[column])
                message = f"no record has the {column} {quoted(first)} or {quoted(second)}{cure}"
                yield Diagnostic((column,), message)


def _unknown_column(location: Location, name: str, values: Values, *, at_key: bool = False) -> Diagnostic:
    return Diagnostic(location, f"no record has the field {quoted(name)}{suggestion(name, values)}", at_key)


def _unknown_values(location: Location, wanted: Iterable[str], column: str, values: Values) -> Iterator[Diagnostic]:
    known = sorted(values[column])
    for value in wanted:
        if value not in values[column]:
            cure = suggestion(value, known) if len(known) <= MAX_SUGGESTED or nearest(value, known) else ""
            yield Diagnostic(location, f"no record has the {column} {quoted(value)}{cure}")
