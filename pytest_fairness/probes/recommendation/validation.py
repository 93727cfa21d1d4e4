"""Checks that the keys of a recommendation probe fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pytest_fairness.probes import checks
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.checks import Content
from pytest_fairness.probes.diagnostics import Diagnostic, Location, quoted, suggestion
from pytest_fairness.probes.prompts import template
from pytest_fairness.records import Json

COLUMNS = ("entity", "attribute", "value", "items", "rank", "trial", "domain")
"""Names of columns that the reader of recorded lists uses."""

_OPTIONAL = {
    "relevant": "the relevant items of each entity, `relevant: {file: …}`",
    "perturbations": "other wordings, `perturbations: {typo: {rate: 0.1}}`",
}
"""Optional keys that some audits need (see `AuditSettings.needs`), each with its remedy."""
_PLACEHOLDERS = {"prompt": ("value", "entity", "k"), "neutral": ("entity", "k")}
_CONTENTS = {"value": "the attribute's value belongs", "entity": "the entity's name belongs"}
"""Placeholders that a prompt must contain, each with the end of the message "write {entity} where …"."""


def diagnostics(data: Content, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
    """Yield diagnostics for missing and contradictory keys in a probe file's plain content; see `ContentChecks`."""
    yield from checks.unmet_needs(audits, {key: cure for key, cure in _OPTIONAL.items() if key not in data})
    yield from checks.missing_keys(
        data,
        {
            "prompt": "the request with {value} for the person's attribute, or `responses:` with recorded lists",
            "neutral": "the same request without {value}, for comparison",
            "entities": "the subjects of the recommendations, as a list or `{file: …}`",
        },
    )
    yield from _prompt_diagnostics((), data)
    for key in ("perturbations", "variants"):
        for name, wording in checks.mappings(data.get(key)):
            yield from _prompt_diagnostics((key, name), wording)
    entities = list(_names_of_items(("entities",), data.get("entities"), "name"))
    yield from checks.repeats(entities, "write each entity once")
    attributes = checks.mapping(data.get("attributes"))
    yield from _attribute_diagnostics(attributes)
    yield from _cross_diagnostics(data, list(attributes))
    yield from _translation_diagnostics(data, attributes)
    yield from _audit_diagnostics(data, [*attributes, *("+".join(names) for _, names in _crosses(data))])
    yield from checks.unknown_columns(data, COLUMNS)
    yield from checks.forbid_strata(data, "lists are compared only with lists about the same entity")
    yield from checks.too_many_prompts(
        data, len(entities) * _lists_of_an_entity(data, attributes), "entities, values and trials", "entities"
    )


def _prompt_diagnostics(location: Location, wording: Content) -> Iterator[Diagnostic]:
    """Yield diagnostics for the placeholders in `prompt` and `neutral`."""
    for key, names in _PLACEHOLDERS.items():
        text = wording.get(key)
        if not isinstance(text, str):
            continue
        for diagnostic in template.diagnostics(text, names, (*location, key)):
            if key == "neutral" and diagnostic.piece == "{value}":
                message = "the neutral prompt names no value of an attribute: remove the placeholder {value}"
                diagnostic = replace(diagnostic, message=message)
            yield diagnostic
        used = template.intended(text, names)
        for name, content in _CONTENTS.items():
            if name in names and name not in used:
                yield Diagnostic((*location, key), f"this prompt does not use {{{name}}}: write it where {content}")


def _attribute_diagnostics(attributes: Content) -> Iterator[Diagnostic]:
    """Yield diagnostics for reserved attribute names, and for repeated values."""
    for name, written in attributes.items():
        if name.casefold() == "neutral":
            message = "rename the attribute 'neutral': this is the name of the neutral lists"
            yield Diagnostic(("attributes", name), message, at_key=True)
        labels = _names_of_items(("attributes", name), written, "label")
        yield from checks.repeats(labels, "list each value of an attribute only once")


def _names_of_items(location: Location, written: Json, key: str) -> Iterator[tuple[Location, Json]]:
    """Yield the location and name of each item of a list: the item itself or, for a mapping, its value under `key`."""
    for i, item in checks.items(written):
        yield ((*location, i), item) if isinstance(item, str) else ((*location, i, key), checks.mapping(item).get(key))


def _crosses(data: Content) -> Iterator[tuple[int, list[str]]]:
    """Yield the index and the attribute names of each list under `cross`."""
    for i, names in checks.items(data.get("cross")):
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            yield i, names


def _cross_diagnostics(data: Content, attributes: list[str]) -> Iterator[Diagnostic]:
    """Yield diagnostics for unknown and repeated attributes under `cross`."""
    seen: set[frozenset[str]] = set()
    for i, names in _crosses(data):
        for j, name in enumerate(names):
            if name not in attributes:
                yield Diagnostic(("cross", i, j), f"unknown attribute {quoted(name)}{suggestion(name, attributes)}")
            elif name in names[:j]:
                message = f"{quoted(name)} is repeated: name different attributes"
                yield Diagnostic(("cross", i, j), message)
        if frozenset(names) in seen:
            message = f"{' and '.join(map(quoted, names))} are already combined by another list: remove this list"
            yield Diagnostic(("cross", i), message)
        seen.add(frozenset(names))


def _translation_diagnostics(data: Content, attributes: Content) -> Iterator[Diagnostic]:
    """Yield diagnostics for translated values that do not match the attributes."""
    for name, perturbation in checks.mappings(data.get("perturbations")):
        for attribute, words in checks.mapping(perturbation.get("attributes")).items():
            location = ("perturbations", name, "attributes", attribute)
            if attribute not in attributes:
                message = f"unknown attribute {quoted(attribute)}{suggestion(attribute, attributes)}"
                yield Diagnostic(location, message, at_key=True)
                continue
            values = attributes[attribute]
            if isinstance(words, list) and isinstance(values, list) and words and len(words) != len(values):
                message = (
                    f"{attribute} has {len(values)} values, but {len(words)} translations: write one translation for "
                    "each value, in the same order"
                )
                yield Diagnostic(location, message)


def _audit_diagnostics(data: Content, attributes: list[str]) -> Iterator[Diagnostic]:
    """Yield diagnostics for audits that name an unknown attribute."""
    for audit, settings in checks.mappings(data.get("audits")):
        named: list[tuple[Location, object]] = [(("attribute",), settings.get("attribute"))]
        named += [(("attributes", i), name) for i, name in checks.items(settings.get("attributes"))]
        for location, name in named:
            if isinstance(name, str) and name not in attributes:
                message = f"unknown attribute {quoted(name)}{suggestion(name, attributes)}"
                yield Diagnostic(("audits", audit, *location), message)


def _lists_of_an_entity(data: Content, attributes: Content) -> int:
    """Return the number of lists for one entity: one for each value, and a neutral list, in each wording and trial."""
    lengths = {name: len(values) for name, values in attributes.items() if isinstance(values, list)}
    values = sum(lengths.values()) + sum(
        checks.capped_product(lengths.get(name, 1) for name in names) for _, names in _crosses(data)
    )
    wordings = 1 + len(checks.mapping(data.get("perturbations")))
    return (values + 1) * wordings * checks.most_trials(data, 1)
