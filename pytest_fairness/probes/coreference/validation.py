"""What does not fit together in a coreference probe, beyond types and ranges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_fairness.probes import template
from pytest_fairness.probes.loading.diagnostics import Fault, Location, nearest, quoted, suggestion
from pytest_fairness.records import Json

PLACEHOLDERS = ("first", "second", "pronoun")
COLUMNS = ("item", "first", "pronoun", "text", "trial", "masculine", "feminine")
"""What a file of answers to ambiguous sentences may hold."""
WINOBIAS_COLUMNS = ("line", "version", "text", "trial")
"""What a file of answers to WinoBias sentences may hold."""

_MEANT = {
    "first": "the occupation that is named first belongs",
    "second": "the other occupation belongs",
    "pronoun": "`she` or `he` belongs",
}


def find(data: Mapping[str, Json]) -> Iterator[Fault]:
    """The faults of a file's plain content, any part of which may be of a wrong type."""
    items = data.get("items")
    if "items" not in data and data.get("responses") is None:
        message = (
            "a list of sentences, `{winobias: [pro file, anti file]}`, or `responses:` with answers that are there"
        )
        yield Fault((), f"`items` is missing: {message}")
    if isinstance(items, list):
        yield from _items([(("items", place), item) for place, item in enumerate(items) if isinstance(item, Mapping)])
    yield from _audits(data, items)
    yield from _responses(data, items)


def _items(items: Sequence[tuple[Location, Mapping[str, Json]]]) -> Iterator[Fault]:
    names: set[str] = set()
    for place, item in items:
        yield from _sentence((*place, "sentence"), item.get("sentence"))
        yield from _question((*place, "question"), item.get("question"))
        masculine, feminine = (item.get(key) for key in ("masculine", "feminine"))
        if not isinstance(masculine, str) or not isinstance(feminine, str):
            continue
        if _folded(masculine) == _folded(feminine):
            yield Fault(
                (*place, "feminine"), f"both occupations are {quoted(feminine)}: nobody could tell who is meant"
            )
        given = item.get("id")
        name = given if isinstance(given, str) else f"{masculine}/{feminine}"
        if _folded(name) in names:
            cure = "each item is there once" if isinstance(given, str) else "give this one an `id` of its own"
            yield Fault((*place, "id") if isinstance(given, str) else place, f"{quoted(name)} is there already: {cure}")
        names.add(_folded(name))


def _sentence(place: Location, text: Json) -> Iterator[Fault]:
    if not isinstance(text, str):
        return
    used = template.placeholders(text)
    for fault in template.faults(text, PLACEHOLDERS):
        yield Fault(place, fault.message, piece=fault.piece, occurrence=fault.occurrence)
    meant = {*used, *(nearest(name, PLACEHOLDERS) for name in used[: template.MAX_FAULTS])}
    for name in PLACEHOLDERS:
        if name not in meant:
            yield Fault(place, f"this sentence does not use {{{name}}}: write it where {_MEANT[name]}")


def _question(place: Location, text: Json) -> Iterator[Fault]:
    """A question with a placeholder would be another one in each prompt, and give the answer away."""
    for name in template.placeholders(text) if isinstance(text, str) else ():
        if name in PLACEHOLDERS:
            message = f"a question is the same in all four prompts, without {{{name}}}: ask `who …`"
            yield Fault(place, message, piece=f"{{{name}}}")


def _audits(data: Mapping[str, Json], items: Json) -> Iterator[Fault]:
    audits = data.get("audits")
    needs = {
        "coreference": (isinstance(items, Mapping), "sentences that may be read both ways, a list under `items`"),
        "accuracy_gap": (not isinstance(items, Mapping), "right answers, `items: {winobias: [pro file, anti file]}`"),
    }
    for audit, (unfit, cure) in needs.items():
        if unfit and isinstance(audits, Mapping) and audit in audits:
            yield Fault(("audits", audit), f"`{audit}` needs {cure}", at_key=True)


def _responses(data: Mapping[str, Json], items: Json) -> Iterator[Fault]:
    responses = data.get("responses")
    if not isinstance(responses, Mapping):
        return
    known = WINOBIAS_COLUMNS if isinstance(items, Mapping) else COLUMNS
    columns = responses.get("columns")
    for name in columns if isinstance(columns, Mapping) else ():
        if name not in known:
            message = f"{quoted(name)} is no name of this probe{suggestion(name, known)}"
            yield Fault(("responses", "columns", name), message, at_key=True)
    if "strata" in responses:
        message = "answers are compared within their sentence: there are no strata"
        yield Fault(("responses", "strata"), message, at_key=True)


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())
