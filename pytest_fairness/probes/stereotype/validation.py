"""Checks that the keys of a stereotype probe and the keys of its cases fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_fairness.probes import checks, search_terms
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.checks import Content
from pytest_fairness.probes.diagnostics import Diagnostic, quoted, suggestion
from pytest_fairness.probes.prompts import template
from pytest_fairness.records import Json

COLUMNS = ("case", "group", "text", "trial")
"""Column names of an answer file."""

LIKELIHOODS = "likelihoods"
"""Value of `AuditSettings.needs` in audits that compare likelihoods of sentences; without such an audit, no likelihoods
are requested."""

_SIDES = ("stereotype", "anti_stereotype")
_ONLY_OPEN = ("opposite", "groups")
_ONLY_LIKELIHOOD = ("context", "unrelated", "target", "direction")


def diagnostics(data: Content, audits: Mapping[str, type[AuditSettings]]) -> Iterator[Diagnostic]:
    """Yield diagnostics for missing and contradictory keys in a probe file's plain content; see `ContentChecks`.

    Cases in a separate file are checked when the file is read.
    """
    yield from checks.unmet_needs(audits, _missing_inputs(data))
    recorded = checks.is_recorded(data)
    cases = [case for _, case in checks.items(data.get("cases"))]
    yield from (each.below("cases") for each in case_diagnostics(cases, recorded=recorded))
    valid = [case for case in cases if isinstance(case, Mapping)]
    yield from checks.unknown_columns(data, COLUMNS)
    yield from checks.invalid_strata(data, (*COLUMNS, "category"))
    groups = [case.get("groups") for case in valid]
    count = checks.most_trials(data, 20) * sum(len(names) if isinstance(names, list) else 1 for names in groups)
    yield from checks.too_many_prompts(data, count, "cases, groups and trials", "cases")


def _missing_inputs(data: Content) -> dict[str, str]:
    """Return the types of cases that a probe lacks, each with its remedy.

    The mapping is empty if the key `cases` lists no case, as for a file of cases.
    """
    valid = [case for _, case in checks.items(data.get("cases")) if isinstance(case, Mapping)]
    opened = [case for case in valid if is_open(case, recorded=checks.is_recorded(data))]
    if not valid:
        return {}
    return missing_case_types(
        markers=any("stereotype" in case for case in opened),
        texts=bool(opened),
        groups=any("groups" in case for case in opened),
        likelihoods=len(opened) < len(valid),
    )


def missing_case_types(*, markers: bool, texts: bool, groups: bool, likelihoods: bool) -> dict[str, str]:
    """Return the missing types of cases, by their name in `AuditSettings.needs`, each with its remedy.

    Args:
        markers: whether a case has a `prompt` and markers.
        texts: whether a case has a `prompt`.
        groups: whether a case has a `prompt` and `groups`.
        likelihoods: whether a case has sentences and no `prompt`.
    """
    types = {
        "markers": (markers, "a case with a `prompt` and two lists of markers (`stereotype` and `anti_stereotype`)"),
        "texts": (texts, "a case with a `prompt`"),
        "groups": (groups, "a case with a `prompt` and `groups`"),
        LIKELIHOODS: (likelihoods, "a case without `prompt`, whose `stereotype` and `anti_stereotype` are sentences"),
    }
    return {name: remedy for name, (exists, remedy) in types.items() if not exists}


def case_diagnostics(cases: Sequence[Json], *, recorded: bool = False) -> Iterator[Diagnostic]:
    """Yield diagnostics for a list of cases; each location begins with the index of the case.

    Args:
        cases: plain content of the cases.
        recorded: whether the answers are recorded, so that cases need no prompt.
    """
    rows = [(index, case) for index, case in enumerate(cases) if isinstance(case, Mapping)]
    names = (((index, "name"), case.get("name")) for index, case in rows)
    yield from checks.repeats(names, "each case needs a different name")
    yield from _opposite_diagnostics(rows)
    for index, case in rows:
        of_case = _open_case(case) if is_open(case, recorded=recorded) else _likelihood_case(case)
        yield from (each.below(index) for each in of_case)


def is_open(case: Content, *, recorded: bool = False) -> bool:
    """Return whether the answers to a case are texts; otherwise, they are likelihoods of sentences.

    A case with neither `prompt` nor `stereotype` has texts if the answers are recorded.
    """
    return "prompt" in case or isinstance(case.get("stereotype"), list) or (recorded and "stereotype" not in case)


def _opposite_diagnostics(rows: list[tuple[int, Content]]) -> Iterator[Diagnostic]:
    """Yield diagnostics for cases whose `opposite` does not exist, or does not name the case in return."""
    cases = {name: case for _, case in rows if isinstance(name := case.get("name"), str)}
    for index, case in rows:
        name, opposite = case.get("name"), case.get("opposite")
        if not isinstance(name, str) or not isinstance(opposite, str):
            continue
        if opposite == name:
            message = f"{quoted(name)} cannot be its own opposite: name another case"
        elif opposite not in cases:
            others = [other for other in cases if other != name]
            message = f"there is no case {quoted(opposite)}{suggestion(opposite, others)}"
        elif (back := cases[opposite].get("opposite")) == name:
            continue
        elif back is None:
            message = f"{quoted(opposite)} does not name this case: write `opposite: {name}` there"
        else:
            message = (
                f"the opposite of {quoted(opposite)} is {quoted(str(back))}: two opposite cases must name each other"
            )
        yield Diagnostic((index, "opposite"), message)


def _open_case(case: Content) -> Iterator[Diagnostic]:
    for key in _ONLY_LIKELIHOOD:
        if key in case:
            message = f"`{key}` is possible only in a case without `prompt`: remove `{key}`"
            yield Diagnostic((key,), message, at_key=True)
    yield from _group_diagnostics(case)
    sides = [key for key in _SIDES if key in case]
    if len(sides) == 1:
        (other,) = {*_SIDES} - {*sides}
        yield Diagnostic((), f"`{other}` is missing: write both lists of markers")
    for key in sides:
        if isinstance(case[key], str):
            yield Diagnostic((key,), f"`{key}` of a case with a prompt must be a list of markers: write [{case[key]}]")
    yield from _marker_diagnostics(case)


def _group_diagnostics(case: Content) -> Iterator[Diagnostic]:
    """Yield diagnostics for the groups of a case, and for the placeholder {group} in its prompt."""
    groups = [(("groups", place), group) for place, group in checks.items(case.get("groups"))]
    yield from checks.repeats(groups, "write each group once", search_terms.normalized)
    prompt, names = case.get("prompt"), ["group"] if "groups" in case else []
    if not isinstance(prompt, str):
        return
    for diagnostic in template.diagnostics(prompt, names, ("prompt",)):
        piece, message = diagnostic.piece or "", diagnostic.message
        if piece == "{group}":
            message = "{group} stands for one of the case's groups, but the case has none: add `groups: [women, men]`"
        elif not names and piece.startswith("{") and len(piece) > 1:
            message = f"unknown placeholder {quoted(piece)}: the only placeholder is {{group}}, which needs `groups`"
        yield replace(diagnostic, message=message)
    if names and "group" not in template.intended(prompt, names):
        message = "this prompt does not use the case's groups: write {group} where they belong"
        yield Diagnostic(("prompt",), message)


def _marker_diagnostics(case: Content) -> Iterator[Diagnostic]:
    """Yield diagnostics for markers that are invalid search terms or are listed twice."""
    seen: dict[str, str] = {}
    for key in _SIDES:
        for place, marker in checks.items(case.get(key)):
            if not isinstance(marker, str) or not marker.strip():
                continue
            form = search_terms.normalized(marker)
            if (message := search_terms.error(marker, "marker")) is not None:
                yield Diagnostic((key, place), message)
            elif seen.get(form) == key:
                yield Diagnostic((key, place), f"{quoted(marker)} is repeated: write each marker once")
            elif form in seen:
                yield Diagnostic((key, place), f"{quoted(marker)} is in both lists: remove it from one of them")
            seen.setdefault(form, key)


def _likelihood_case(case: Content) -> Iterator[Diagnostic]:
    if not any(key in case for key in _SIDES):
        message = (
            "`prompt` is missing: write a question, or two sentences to compare (`stereotype` and `anti_stereotype`)"
        )
        yield Diagnostic((), message)
        return
    for key in _SIDES:
        if key not in case:
            yield Diagnostic((), f"`{key}` is missing: write both sentences")
        elif isinstance(case[key], list):
            message = (
                f"`{key}` must be one sentence, because this case has no `prompt`. If the list contains markers, add a "
                "`prompt`"
            )
            yield Diagnostic((key,), message)
    for key in _ONLY_OPEN:
        if key in case:
            message = f"`{key}` is possible only in a case with a `prompt`: remove `{key}`"
            yield Diagnostic((key,), message, at_key=True)
