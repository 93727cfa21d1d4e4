"""What does not fit together in a counterfactual probe, beyond types and ranges."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_fairness.probes import template
from pytest_fairness.probes.counterfactual.flips import ALONG, Flip
from pytest_fairness.probes.loading.diagnostics import Fault, Location, nearest, quoted, suggestion
from pytest_fairness.records import Json

if TYPE_CHECKING:
    from pytest_fairness.probes.base import Variant
    from pytest_fairness.probes.counterfactual.model import TruthSettings

LABELS = ("record", "form", "attribute", "to", "truth", "id", "answer", "text", "trial")
"""Names that answers have already."""

NEED_TRUTH = ("equalized_odds", "accuracy")


def find(data: Mapping[str, Json]) -> Iterator[Fault]:
    """The faults of a file's plain content, any part of which may be of a wrong type."""
    recorded = data.get("responses") is not None
    cures = {
        "prompt": "what is asked about each record, or `responses:` with answers that are there already",
        "records": "what is asked about: a list of mappings, `{file: …}` or `{openml: …}`",
    }
    for key, cure in cures.items():
        if key not in data and not recorded:
            yield Fault((), f"`{key}` is missing: {cure}")
    yield from _flip(data.get("flip"))
    yield from _answer(_mapping(data.get("answer")))
    audits = data.get("audits")
    for audit in NEED_TRUTH:
        if isinstance(audits, Mapping) and audit in audits and "truth" not in data:
            cure = "what is true of a record, `truth: {column: …, positive: …}`"
            yield Fault(("audits", audit), f"`{audit}` needs {cure}", at_key=True)
    flip = data.get("flip")
    yield from _columns(_mapping(data.get("responses")), [name for name in _mapping(flip) if name != ALONG])


def _flip(flip: Json) -> Iterator[Fault]:
    if not isinstance(flip, Mapping):
        return
    attributes = [name for name in flip if name != ALONG]
    if not attributes:
        yield Fault(("flip",), "no attribute is flipped: name one with its values, `sex: {Male: Female}`")
    for name in attributes:
        if name in LABELS:
            message = f"an attribute cannot be called {quoted(name)}: answers have that already"
            yield Fault(("flip", name), message, at_key=True)
        yield from _values(("flip", name), flip[name])
    if ALONG in flip:
        yield from _along(flip[ALONG], flip, attributes)


def _values(place: Location, values: Json) -> Iterator[Fault]:
    if isinstance(values, Mapping):
        if len(values) > 1:
            yield Fault(place, "one pair of values is flipped; more of them are a list, `[A, B, C]`")
        for first, second in values.items():
            if isinstance(second, Mapping):
                yield Fault((*place, first), "the value that it is flipped to must be text")
            elif first == second:
                yield Fault((*place, first), f"{quoted(first)} is flipped to itself")
    seen = set()
    for i, value in enumerate(values if isinstance(values, list) else ()):
        if isinstance(value, str) and value in seen:
            yield Fault((*place, i), f"{quoted(value)} is there already: each value is there once")
        seen.add(value if isinstance(value, str) else i)


def _along(along: Json, flip: Mapping[str, Json], attributes: list[str]) -> Iterator[Fault]:
    """What is wrong under `with`: columns with their pairs, under their attribute where there are several."""
    place: Location = ("flip", ALONG)
    if not isinstance(along, Mapping):
        yield Fault(place, "must be a mapping of columns, each with its pairs, `relationship: {Husband: Wife}`")
        return
    if len(attributes) == 1:
        yield from _pairs(place, along, attributes[0], flip)
        return
    for name, columns in along.items():
        if name not in attributes:
            cure = suggestion(name, attributes)
            reason = "of several attributes `with` names the one that it goes with"
            yield Fault((*place, name), f"unknown attribute {quoted(name)}{cure}; {reason}", at_key=True)
        elif isinstance(columns, Mapping):
            yield from _pairs((*place, name), columns, name, flip)
        else:
            yield Fault((*place, name), "must be a mapping of columns, each with its pairs")


def _pairs(place: Location, columns: Mapping[str, Json], attribute: str, flip: Mapping[str, Json]) -> Iterator[Fault]:
    values = flip[attribute]
    if isinstance(values, list) and len(values) > 2:
        yield Fault(place, f"`with` goes with a flip of two values; {quoted(attribute)} has {len(values)}")
    for column, pairs in columns.items():
        here = (*place, column)
        if column == attribute:
            yield Fault(here, f"{quoted(column)} is what is flipped", at_key=True)
        if not isinstance(pairs, Mapping) or not pairs:
            yield Fault(here, "must be a mapping of values, `{Husband: Wife}`")
            continue
        if any(not isinstance(value, str) for value in pairs.values()):
            yield Fault(here, "values are text")
        elif len({*pairs.values()}) < len(pairs):
            yield Fault(here, "two values are changed to the same one, which cannot be read the other way round")


def _answer(answer: Mapping[str, Json]) -> Iterator[Fault]:
    choices = answer.get("choices", ["yes", "no"])
    folded: set[str] = set()
    for i, choice in enumerate(choices if isinstance(choices, list) else ()):
        if isinstance(choice, str):
            name = " ".join(choice.casefold().split())
            if name in folded:
                yield Fault(("answer", "choices", i), f"{quoted(choice)} is there already: letter case does not matter")
            folded.add(name)
    positive = answer.get("positive")
    if isinstance(positive, str) and isinstance(choices, list) and positive not in choices:
        known = [choice for choice in choices if isinstance(choice, str)]
        yield Fault(("answer", "positive"), f"{quoted(positive)} is none of the choices{suggestion(positive, known)}")
    votes = answer.get("votes")
    if isinstance(votes, int) and votes % 2 == 0:
        yield Fault(("answer", "votes"), "must be odd, so that two choices cannot get the same number of votes")
    if "votes" in answer and answer.get("judge") is not True:
        yield Fault(("answer", "votes"), "only a judge votes: `judge: true`", at_key=True)


def _columns(responses: Mapping[str, Json], attributes: list[str]) -> Iterator[Fault]:
    known = ["id", *attributes, "answer", "truth", "trial"]
    for name in _mapping(responses.get("columns")):
        if name not in known:
            message = f"{quoted(name)} is no name of this probe{suggestion(name, known)}"
            yield Fault(("responses", "columns", name), message, at_key=True)
    if "strata" in responses:
        message = "answers are compared within their record: there are no strata"
        yield Fault(("responses", "strata"), message, at_key=True)


def against(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, str]],
    *,
    prompt: str | None,
    variants: Mapping[str, Variant],
    flips: Mapping[str, Flip],
    truth: TruthSettings | None,
) -> Iterator[Fault]:
    """The faults of a probe against the records that it asks about.

    Args:
        columns: of all records.
        rows: the records.
        prompt, variants, flips, truth: the probe's.
    """
    written: list[tuple[Location, Json]] = [(("prompt",), prompt)]
    written += [(("variants", name, "prompt"), variant.prompt) for name, variant in variants.items()]
    place: Location
    for place, text in written:
        if isinstance(text, str):
            yield from _prompt(place, text, columns, flips)
    for name, flip in flips.items():
        if name not in columns:
            yield Fault(("flip", name), f"no record has {quoted(name)}{suggestion(name, columns)}", at_key=True)
            continue
        yield from _unseen(("flip", name), flip.values, {row[name] for row in rows if name in row}, name)
        for column, pairs in flip.along.items():
            place = ("flip", ALONG, column) if len(flips) == 1 else ("flip", ALONG, name, column)
            if column not in columns:
                yield Fault(place, f"no record has {quoted(column)}{suggestion(column, columns)}", at_key=True)
            else:
                there = {row[column] for row in rows if column in row}
                yield from (
                    Fault(place, f"no record has the {column} {quoted(of)} or {quoted(to)}{suggestion(of, there)}")
                    for of, to in pairs.items()
                    if not {of, to} & there
                )
    if truth is not None:
        if truth.column not in columns:
            cure = suggestion(truth.column, columns)
            yield Fault(("truth", "column"), f"no record has {quoted(truth.column)}{cure}")
        else:
            there = {row[truth.column] for row in rows if truth.column in row}
            yield from _unseen(("truth", "positive"), [truth.positive], there, truth.column)


def _prompt(place: Location, text: str, columns: Sequence[str], flips: Mapping[str, Any]) -> Iterator[Fault]:
    for fault in template.faults(text, columns):
        yield Fault(place, fault.message, piece=fault.piece, occurrence=fault.occurrence)
    used = template.placeholders(text)
    meant = {*used, *(nearest(name, columns) for name in used[: template.MAX_FAULTS])}
    for name in flips:
        if name in columns and name not in meant:
            yield Fault(place, f"this prompt does not use {{{name}}}, which is flipped: write it where it belongs")


def _unseen(place: Location, values: Sequence[str], there: Collection[str], column: str) -> Iterator[Fault]:
    for value in values:
        if value not in there:
            known = sorted(there)
            cure = suggestion(value, known) if len(known) <= 20 or nearest(value, known) else ""
            yield Fault(place, f"no record has the {column} {quoted(value)}{cure}")


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}
