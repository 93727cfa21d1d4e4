"""Checks that keys of a probe file fit together; several kinds of probe share these checks.

The checks read the plain content of the file before pydantic validates it, so that one error does not hide the others.
Any part of the content may have a wrong type, which pydantic reports separately.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from pytest_fairness.options import MAX_TRIALS
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.diagnostics import Diagnostic, Location, quoted, suggestion
from pytest_fairness.records import Json

Content = Mapping[str, Json]
"""Plain content of a probe file, or of a mapping in it."""

MAX_PROMPTS = 1_000_000
"""Maximum number of prompts of one probe; a larger number is more likely a typing error than intended."""


def mapping(value: Json) -> Content:
    """Return the value if it is a mapping; return an empty mapping for any other value."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Json) -> Iterator[tuple[str, Content]]:
    """Yield the key and the value of each entry whose value is a mapping; nothing if `value` is no mapping."""
    yield from ((name, inner) for name, inner in mapping(value).items() if isinstance(inner, Mapping))


def items(value: Json) -> Iterator[tuple[int, Any]]:
    """Yield the index and the value of each element of a list; nothing for a value that is no list."""
    yield from enumerate(value if isinstance(value, list) else ())


def folded(text: str) -> str:
    """Return the text in the form in which names are compared: composed (NFC), in lower case, with single blanks."""
    composed = text if text.isascii() else unicodedata.normalize("NFC", text)
    return " ".join(composed.casefold().split())


def is_recorded(data: Content) -> bool:
    """Return whether the probe reads recorded answers, so that no requests are sent."""
    return data.get("responses") is not None


def missing_keys(data: Content, remedies: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each missing key of `remedies`; no key is required if answers are recorded.

    Args:
        data: the file's plain content.
        remedies: for each required key, what to write (a phrase that follows "write" in the message).
    """
    for key, remedy in remedies.items():
        if key not in data and not is_recorded(data):
            yield Diagnostic((), f"`{key}` is missing: write {remedy}")


def repeats(
    named: Iterable[tuple[Location, Json]], rule: str, form: Callable[[str], str] = folded
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each name that repeats an earlier name.

    Args:
        named: location and name of each entry; names that are not text are skipped.
        rule: the rule that a repeated name breaks, for the message.
        form: function that returns the form in which names are compared.
    """
    seen: set[str] = set()
    for location, name in named:
        if isinstance(name, str):
            if form(name) in seen:
                yield Diagnostic(location, f"{quoted(name)} is repeated: {rule}")
            seen.add(form(name))


def unmet_needs(
    audits: Mapping[str, AuditSettings | type[AuditSettings]], missing: Mapping[str, str]
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each audit whose required input the probe lacks; see `AuditSettings.needs`.

    Args:
        audits: settings of the probe's audits, or the models of the settings, by audit name.
        missing: the inputs that the probe lacks, each with its remedy.
    """
    for name, settings in audits.items():
        if settings.needs in missing:
            yield Diagnostic(("audits", name), f"`{name}` needs {missing[settings.needs]}", at_key=True)


def unknown_columns(data: Content, names: Collection[str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each key of `responses.columns` that is not in `names`, the columns that a probe reads."""
    for name in mapping(mapping(data.get("responses")).get("columns")):
        if name not in names:
            message = f"{quoted(name)} is not a column that this probe reads{suggestion(name, names)}"
            yield Diagnostic(("responses", "columns", name), message, at_key=True)


def forbid_strata(data: Content, reason: str) -> Iterator[Diagnostic]:
    """Yield a diagnostic if `responses.strata` is set; `reason` says why this kind of probe has no strata."""
    if "strata" in mapping(data.get("responses")):
        yield Diagnostic(("responses", "strata"), f"{reason}: remove `strata`", at_key=True)


def invalid_strata(data: Content, names: Collection[str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each repeated column in `responses.strata`, and for each column that is also in `names`.

    `names` are the columns that the probe uses in another way.
    """
    taken = {*names}
    for place, stratum in items(mapping(data.get("responses")).get("strata")):
        if isinstance(stratum, str):
            if stratum in taken:
                message = f"the probe already uses the column {quoted(stratum)}: remove it from `strata`"
                yield Diagnostic(("responses", "strata", place), message)
            taken.add(stratum)


def most_trials(data: Content, default: int) -> int:
    """Return the number of trials (the maximum, if the number grows) under a file's key `trials`.

    Return `default` if the file has no such key, and 0 if its value is invalid.
    """
    trials = data.get("trials", default)
    most = trials.get("max") if isinstance(trials, Mapping) else trials
    return most if isinstance(most, int) and most <= MAX_TRIALS else 0


def capped_product(sizes: Iterable[int]) -> int:
    """Return the product of the sizes, but at most `MAX_PROMPTS` + 1."""
    product = 1
    for size in sizes:
        # Stop early: in a hostile file, the product could have so many digits that it fills the memory.
        product = min(product * size, MAX_PROMPTS + 1)
    return product


def too_many_prompts(data: Content, count: int, factors: str, key: str) -> Iterator[Diagnostic]:
    """Yield a diagnostic at a key if the probe would send more than a million prompts.

    Args:
        data: the file's plain content.
        count: the number of prompts.
        factors: phrase that names the factors whose product is `count`, for the message.
        key: the key at which the diagnostic is reported.
    """
    if count > MAX_PROMPTS and not is_recorded(data):
        message = f"the {factors} make more than {MAX_PROMPTS:,} prompts: reduce one of them"
        yield Diagnostic((key,), message, at_key=True)


def canonical(value: Json) -> str:
    """Return the JSON text of a value; equal values give equal texts."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
