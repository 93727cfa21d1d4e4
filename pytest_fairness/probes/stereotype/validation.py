"""What does not fit together in the cases of a stereotype probe, beyond types and ranges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.probes import search_terms, template
from pytest_fairness.probes.loading.diagnostics import Location, nearest, quoted, suggestion
from pytest_fairness.records import Json

LISTS = ("stereotype", "anti_stereotype")
_ONLY_OPEN = ("opposite", "groups")
_ONLY_LIKELIHOOD = ("context", "unrelated", "target", "direction")


@dataclass(frozen=True, slots=True)
class CaseFault:
    """What is wrong with one case: its place in the list, where in the case, and as in `Fault`."""

    index: int
    location: Location
    message: str
    at_key: bool = False
    piece: str | None = None
    occurrence: int = 0


def find(cases: Sequence[Json], *, recorded: bool = False) -> Iterator[CaseFault]:
    """The faults of a list of cases, any part of which may be of a wrong type.

    Args:
        cases: plain content.
        recorded: whether answers are there already, so that cases need no prompt.
    """
    rows = [(index, case) for index, case in enumerate(cases) if isinstance(case, Mapping)]
    yield from _names(rows)
    yield from _opposites(rows)
    for index, case in rows:
        if is_open(case, recorded=recorded):
            yield from _open(index, case)
        else:
            yield from _likelihood(index, case)


def is_open(case: Mapping[str, Json], *, recorded: bool = False) -> bool:
    """Whether a case asks for a text, rather than for the likelihood of sentences."""
    return "prompt" in case or isinstance(case.get("stereotype"), list) or (recorded and "stereotype" not in case)


def _names(rows: list[tuple[int, Mapping[str, Json]]]) -> Iterator[CaseFault]:
    seen: set[str] = set()
    for index, case in rows:
        name = case.get("name")
        if isinstance(name, str):
            if name.casefold() in seen:
                yield CaseFault(index, ("name",), f"{quoted(name)} is there already: each case has a name of its own")
            seen.add(name.casefold())


def _opposites(rows: list[tuple[int, Mapping[str, Json]]]) -> Iterator[CaseFault]:
    named = {name: case for _, case in rows if isinstance(name := case.get("name"), str)}
    for index, case in rows:
        name, opposite = case.get("name"), case.get("opposite")
        if not isinstance(name, str) or not isinstance(opposite, str):
            continue
        if opposite == name:
            message = f"{quoted(name)} is no opposite of itself: name another case"
        elif opposite not in named:
            others = [other for other in named if other != name]
            message = f"there is no case {quoted(opposite)}{suggestion(opposite, others)}"
        elif (back := named[opposite].get("opposite")) == name:
            continue
        elif back is None:
            message = f"{quoted(opposite)} does not name this case in turn: write `opposite: {name}` there"
        else:
            message = (
                f"{quoted(opposite)} has another opposite, {quoted(str(back))}: a case has one, and is its opposite"
            )
        yield CaseFault(index, ("opposite",), message)


def _open(index: int, case: Mapping[str, Json]) -> Iterator[CaseFault]:
    for key in _ONLY_LIKELIHOOD:
        if key in case:
            message = f"`{key}` belongs to cases of sentences, which have no `prompt`: leave it out here"
            yield CaseFault(index, (key,), message, at_key=True)
    yield from _prompt(index, case)
    there = [key for key in LISTS if key in case]
    if len(there) == 1:
        other = next(key for key in LISTS if key not in there)
        yield CaseFault(index, (), f"`{other}` is missing: markers of both sides are counted")
    for key in there:
        if isinstance(case[key], str):
            yield CaseFault(index, (key,), f"`{key}` of a case with a prompt is a list of markers: [{case[key]}]")
    yield from _markers(index, case)


def _prompt(index: int, case: Mapping[str, Json]) -> Iterator[CaseFault]:
    prompt, groups = case.get("prompt"), case.get("groups")
    seen: set[str] = set()
    for place, group in enumerate(groups if isinstance(groups, list) else ()):
        if isinstance(group, str):
            if search_terms.folded(group) in seen:
                yield CaseFault(index, ("groups", place), f"{quoted(group)} is there already: each group is there once")
            seen.add(search_terms.folded(group))
    if not isinstance(prompt, str):
        return
    names = ["group"] if "groups" in case else []
    used = {nearest(name, names) for name in template.placeholders(prompt)[: template.MAX_FAULTS]}
    for fault in template.faults(prompt, names):
        message = fault.message
        if fault.piece == "{group}":
            message = "{group} stands for one of the case's groups, and it has none: add `groups: [women, men]`"
        elif not names and fault.piece.startswith("{") and len(fault.piece) > 1:
            message = f"unknown placeholder {quoted(fault.piece)}: a prompt knows {{group}} alone, with `groups`"
        yield CaseFault(index, ("prompt",), message, piece=fault.piece, occurrence=fault.occurrence)
    if names and "group" not in used:
        message = "this prompt does not use the case's groups: write {group} where they belong"
        yield CaseFault(index, ("prompt",), message)


def _markers(index: int, case: Mapping[str, Json]) -> Iterator[CaseFault]:
    """A marker stands in one of the lists, once, and can be found in a text."""
    seen: dict[str, str] = {}
    for key in LISTS:
        written = case.get(key)
        for place, marker in enumerate(written if isinstance(written, list) else ()):
            if not isinstance(marker, str) or not marker.strip():
                continue
            form = search_terms.folded(marker)
            if (wrong := search_terms.fault(marker, "marker")) is not None:
                yield CaseFault(index, (key, place), wrong)
            elif seen.get(form) == key:
                yield CaseFault(index, (key, place), f"{quoted(marker)} is there already: each marker counts once")
            elif form in seen:
                message = f"{quoted(marker)} is in both lists: it marks one side, or none"
                yield CaseFault(index, (key, place), message)
            seen.setdefault(form, key)


def _likelihood(index: int, case: Mapping[str, Json]) -> Iterator[CaseFault]:
    there = [key for key in LISTS if key in case]
    if not there:
        message = "`prompt` is missing: what is asked; or `stereotype` and `anti_stereotype`, two sentences to compare"
        yield CaseFault(index, (), message)
        return
    for key in LISTS:
        if key not in case:
            yield CaseFault(index, (), f"`{key}` is missing: two sentences are compared")
        elif isinstance(case[key], list):
            message = f"`{key}` of a case without `prompt` is one sentence; for markers add a `prompt`"
            yield CaseFault(index, (key,), message)
    for key in _ONLY_OPEN:
        if key in case:
            message = f"`{key}` belongs to cases with a `prompt`: leave it out here"
            yield CaseFault(index, (key,), message, at_key=True)
