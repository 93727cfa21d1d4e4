"""What does not fit together in a recommendation probe, beyond types and ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pytest_fairness.probes import template
from pytest_fairness.probes.loading.diagnostics import Fault, Location, nearest, quoted, suggestion
from pytest_fairness.records import Json

MAX_QUESTIONS = 1_000_000
"""Most questions that one probe may ask; beyond it a typing error is likelier than an intention."""

COLUMNS = ("entity", "attribute", "value", "items", "rank", "trial", "domain")
"""What a file of lists may hold."""

_PROMPT = ("value", "entity", "k")
_NEUTRAL = ("entity", "k")


def find(data: Mapping[str, Json]) -> Iterator[Fault]:
    """The faults of a file's plain content, any part of which may be of a wrong type."""
    recorded = data.get("responses") is not None
    attributes = _mapping(data.get("attributes"))
    names = [*attributes, *("+".join(names) for _, names in _crosses(data))]
    yield from _missing(data, recorded=recorded)
    for place, texts in (((), data), *((("perturbations", n), p) for n, p in _mappings(data.get("perturbations")))):
        yield from _prompt(place, "prompt", texts, _PROMPT, ("value", "entity"))
        yield from _prompt(place, "neutral", texts, _NEUTRAL, ("entity",))
    for name, variant in _mappings(data.get("variants")):
        yield from _prompt(("variants", name), "prompt", variant, _PROMPT, ("value", "entity"))
    yield from _entities(data.get("entities"))
    yield from _values(attributes)
    yield from _cross(data, list(attributes))
    yield from _translations(data, attributes)
    yield from _audits(data, names)
    yield from _columns(data)
    yield from _size(data, attributes)


def _missing(data: Mapping[str, Json], *, recorded: bool) -> Iterator[Fault]:
    cures = {
        "prompt": "what is asked for each value, or `responses:` with lists that are there already",
        "neutral": "the same question without a value, which the others are compared with",
        "entities": "what is recommended from, as a list or `{file: …, column: …}`",
    }
    for key, cure in cures.items():
        if key not in data and not recorded:
            yield Fault((), f"`{key}` is missing: {cure}")


def _prompt(
    place: Location, key: str, texts: Mapping[str, Json], names: Iterable[str], needed: Iterable[str]
) -> Iterator[Fault]:
    """What is wrong with one template."""
    text = texts.get(key)
    if not isinstance(text, str):
        return
    used = template.placeholders(text)
    for fault in template.faults(text, names):
        message = fault.message
        if key == "neutral" and fault.piece == "{value}":
            message = "the neutral prompt names no value: leave out {value}"
        yield Fault((*place, key), message, piece=fault.piece, occurrence=fault.occurrence)
    meant = {*used, *(nearest(name, names) for name in used[: template.MAX_FAULTS])}
    reasons = {"value": "its values belong", "entity": "the entity's name belongs"}
    for name in needed:
        if name not in meant:
            yield Fault((*place, key), f"this prompt does not use {{{name}}}: write it where {reasons[name]}")


def _entities(entities: Json) -> Iterator[Fault]:
    names = [
        ((i,), entity) if isinstance(entity, str) else ((i, "name"), _mapping(entity).get("name"))
        for i, entity in enumerate(entities if isinstance(entities, list) else ())
    ]
    yield from _repeated(names, ("entities",), "each entity is there once")


def _values(attributes: Mapping[str, Json]) -> Iterator[Fault]:
    for name, written in attributes.items():
        place = ("attributes", name)
        if name.casefold() == "neutral":
            yield Fault(
                place, "an attribute cannot be called 'neutral': the neutral lists are called that", at_key=True
            )
        if not isinstance(written, list):
            continue
        labels = [
            ((i,), value) if isinstance(value, str) else ((i, "label"), _mapping(value).get("label"))
            for i, value in enumerate(written)
        ]
        yield from _repeated(labels, place, "each value of an attribute is there once")


def _repeated(named: Iterable[tuple[Location, Json]], place: Location, rule: str) -> Iterator[Fault]:
    seen: set[str] = set()
    for inside, name in named:
        if isinstance(name, str):
            folded = " ".join(name.casefold().split())
            if folded in seen:
                yield Fault((*place, *inside), f"{quoted(name)} is there already: {rule}")
            seen.add(folded)


def _crosses(data: Mapping[str, Json]) -> Iterator[tuple[int, list[str]]]:
    cross = data.get("cross")
    for i, names in enumerate(cross if isinstance(cross, list) else ()):
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            yield i, names


def _cross(data: Mapping[str, Json], attributes: list[str]) -> Iterator[Fault]:
    seen: set[frozenset[str]] = set()
    for i, names in _crosses(data):
        for j, name in enumerate(names):
            if name not in attributes:
                yield Fault(("cross", i, j), f"unknown attribute {quoted(name)}{suggestion(name, attributes)}")
            elif name in names[:j]:
                yield Fault(("cross", i, j), f"{quoted(name)} is there already: an attribute is crossed with others")
        if frozenset(names) in seen:
            yield Fault(("cross", i), f"{' and '.join(map(quoted, names))} are crossed already")
        seen.add(frozenset(names))


def _translations(data: Mapping[str, Json], attributes: Mapping[str, Json]) -> Iterator[Fault]:
    for name, perturbation in _mappings(data.get("perturbations")):
        for attribute, words in _mapping(perturbation.get("attributes")).items():
            place = ("perturbations", name, "attributes", attribute)
            if attribute not in attributes:
                cure = suggestion(attribute, attributes)
                yield Fault(place, f"unknown attribute {quoted(attribute)}{cure}", at_key=True)
                continue
            values = attributes[attribute]
            if isinstance(words, list) and isinstance(values, list) and words and len(words) != len(values):
                message = f"{attribute} has {len(values)} values, and here are words for {len(words)}: one for each"
                yield Fault(place, message)


def _audits(data: Mapping[str, Json], names: list[str]) -> Iterator[Fault]:
    audits = data.get("audits")
    for audit, needs, cure in (
        ("quality", "relevant", "the right items of each entity, `relevant: {file: …}`"),
        ("robustness", "perturbations", "other wordings, `perturbations: {typo: {rate: 0.1}}`"),
    ):
        if isinstance(audits, Mapping) and audit in audits and needs not in data:
            yield Fault(("audits", audit), f"`{audit}` needs {cure}", at_key=True)
    for audit, settings in _mappings(audits):
        named: list[tuple[Location, Json]] = [(("attribute",), settings.get("attribute"))]
        several = settings.get("attributes")
        named += [(("attributes", i), name) for i, name in enumerate(several if isinstance(several, list) else ())]
        for place, name in named:
            if isinstance(name, str) and name not in names:
                yield Fault(("audits", audit, *place), f"unknown attribute {quoted(name)}{suggestion(name, names)}")


def _columns(data: Mapping[str, Json]) -> Iterator[Fault]:
    responses = _mapping(data.get("responses"))
    for name in _mapping(responses.get("columns")):
        if name not in COLUMNS:
            cure = suggestion(name, COLUMNS)
            message = f"{quoted(name)} is no name of this probe{cure}"
            yield Fault(("responses", "columns", name), message, at_key=True)
    if "strata" in responses:
        yield Fault(("responses", "strata"), "lists are compared within their entity: there are no strata", at_key=True)


def _size(data: Mapping[str, Json], attributes: Mapping[str, Json]) -> Iterator[Fault]:
    entities, trials = data.get("entities"), data.get("trials", 1)
    trials = trials.get("max") if isinstance(trials, Mapping) else trials
    if data.get("responses") is not None or not isinstance(entities, list) or not isinstance(trials, int):
        return
    lengths = {name: len(values) for name, values in attributes.items() if isinstance(values, list)}
    values = sum(lengths.values())
    for _, names in _crosses(data):
        product = 1
        for name in names:
            product = min(product * lengths.get(name, 1), MAX_QUESTIONS + 1)
        values += product
    wordings = 1 + len(_mapping(data.get("perturbations")))
    if len(entities) * (values + 1) * wordings * max(trials, 1) > MAX_QUESTIONS:
        message = f"the entities, values and trials make more than {MAX_QUESTIONS:,} questions: ask fewer"
        yield Fault(("entities",), message, at_key=True)


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Json) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """The entries of a mapping that are mappings themselves."""
    yield from ((name, inner) for name, inner in _mapping(value).items() if isinstance(inner, Mapping))
