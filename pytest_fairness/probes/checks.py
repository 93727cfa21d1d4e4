"""Checks between keys of a probe file that several kinds share.

They read the plain content of the file before it is validated, so that one error does not hide the others: any part of
the content may be of a wrong type, which pydantic reports.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.diagnostics import Diagnostic, Location, quoted, suggestion
from pytest_fairness.records import Json

Content = Mapping[str, Json]
"""The plain content of a probe file, or of a mapping in it."""

MAX_PROMPTS = 1_000_000
"""Most prompts of one probe; a larger number is more likely a typing error than an intention."""


def mapping(value: Json) -> Content:
    """Return the value if it is a mapping, else an empty mapping."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Json) -> Iterator[tuple[str, Content]]:
    """Yield key and value of those entries of a mapping that are mappings themselves."""
    yield from ((name, inner) for name, inner in mapping(value).items() if isinstance(inner, Mapping))


def items(value: Json) -> Iterator[tuple[int, Any]]:
    """Yield index and value of the items of a list; nothing if the value is no list."""
    yield from enumerate(value if isinstance(value, list) else ())


def folded(text: str) -> str:
    """Return the text as names are compared: without letter case and repeated blanks."""
    return " ".join(text.casefold().split())


def is_recorded(data: Content) -> bool:
    """Return whether the probe reads recorded answers, so that nothing is sent."""
    return data.get("responses") is not None


def missing_keys(data: Content, remedies: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each key that a probe without recorded answers must have.

    Args:
        data: the content.
        remedies: the keys, each with what to write.
    """
    for key, remedy in remedies.items():
        if key not in data and not is_recorded(data):
            yield Diagnostic((), f"`{key}` is missing: {remedy}")


def repeats(
    named: Iterable[tuple[Location, Json]], rule: str, form: Callable[[str], str] = folded
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each name that repeats an earlier one.

    Args:
        named: location and name; what is no text is passed over.
        rule: the rule that the repeated name breaks.
        form: returns the form in which names are compared.
    """
    seen: set[str] = set()
    for location, name in named:
        if isinstance(name, str):
            if form(name) in seen:
                yield Diagnostic(location, f"{quoted(name)} is repeated: {rule}")
            seen.add(form(name))


def unmet_needs(
    audits: Mapping[str, AuditSettings | type[AuditSettings]], lacking: Mapping[str, str]
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each audit that needs what the probe lacks.

    Args:
        audits: the probe's audits by name: their settings, or the models of these.
        lacking: see `Probe.lacking`.
    """
    for name, settings in audits.items():
        if settings.needs in lacking:
            yield Diagnostic(("audits", name), f"`{name}` needs {lacking[settings.needs]}", at_key=True)


def unknown_columns(data: Content, names: Collection[str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each key of `responses.columns` that is not one of the names."""
    for name in mapping(mapping(data.get("responses")).get("columns")):
        if name not in names:
            message = f"{quoted(name)} is no name of this probe{suggestion(name, names)}"
            yield Diagnostic(("responses", "columns", name), message, at_key=True)


def no_strata(data: Content, reason: str) -> Iterator[Diagnostic]:
    """Yield a diagnostic for `responses.strata` of a kind that has no strata, for the reason given."""
    if "strata" in mapping(data.get("responses")):
        yield Diagnostic(("responses", "strata"), f"{reason}: there are no strata", at_key=True)


def taken_strata(data: Content, names: Collection[str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each of `responses.strata` that has one of the names or repeats an earlier one."""
    taken = {*names}
    for place, stratum in items(mapping(data.get("responses")).get("strata")):
        if isinstance(stratum, str):
            if stratum in taken:
                message = f"{quoted(stratum)} is a name of the answers already, and no further stratum"
                yield Diagnostic(("responses", "strata", place), message)
            taken.add(stratum)


def most_trials(data: Content, default: int) -> int:
    """Return the most trials that the content asks for; 0 if `trials` is invalid."""
    trials = data.get("trials", default)
    most = trials.get("max") if isinstance(trials, Mapping) else trials
    return most if isinstance(most, int) and most <= MAX_TRIALS else 0


def capped_product(sizes: Iterable[int]) -> int:
    """Return the product of sizes, or a number above `MAX_PROMPTS` if it is larger than that."""
    product = 1
    for size in sizes:
        # Larger products are not worked out: a hostile file could make their digits fill the memory.
        product = min(product * size, MAX_PROMPTS + 1)
    return product


def too_many_prompts(data: Content, count: int, factors: str, key: str) -> Iterator[Diagnostic]:
    """Yield a diagnostic at a key if the probe would send more than a million prompts.

    Args:
        data: the content.
        count: the number of prompts.
        factors: the factors of the number, for the message.
        key: the key that the diagnostic is at.
    """
    if count > MAX_PROMPTS and not is_recorded(data):
        message = f"the {factors} make more than {MAX_PROMPTS:,} prompts: reduce one of them"
        yield Diagnostic((key,), message, at_key=True)


def canonical(value: Json) -> str:
    """Return the JSON text of a value, equal for equal values."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
