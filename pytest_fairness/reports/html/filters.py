"""Template filters, which convert values to the texts that the HTML report shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta

from pytest_fairness.records import Json
from pytest_fairness.reports import formatting

MISSING = "–"


def number(value: Json) -> str:
    """Return the number as `formatting.number` does, but with a typographic minus sign; a dash for `None`."""
    return MISSING if value is None else formatting.number(float(value)).replace("-", "−")


def signed(value: Json) -> str:
    """Return the number as `formatting.signed` does, but with a typographic minus sign; a dash for `None`."""
    return MISSING if value is None else formatting.signed(float(value)).replace("-", "−")


def cell(value: Json) -> str:
    """Return a JSON value as the text of a table cell."""
    match value:
        case None | "":
            return MISSING
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return number(value)
        case str():
            return value
        case [*parts] if not any(isinstance(part, Mapping | list | tuple) for part in parts):
            return ", ".join(map(cell, parts)) or MISSING
        case Mapping() if not any(isinstance(part, Mapping | list | tuple) for part in value.values()):
            return "; ".join(f"{name} {cell(part)}" for name, part in value.items()) or MISSING
        case _:
            return json.dumps(value, ensure_ascii=False)


def plain(name: str) -> str:
    """Return the name of a detail with spaces in place of underscores."""
    return name.replace("_", " ")


def duration(seconds: float) -> str:
    """Return a duration as text: `75.0 s`; from two minutes, `H:MM:SS`."""
    return f"{seconds:.1f} s" if seconds < 120 else str(timedelta(seconds=round(seconds)))


def clean(value: Json) -> Json:
    r"""Return the JSON value with control and direction characters written as codes (`\x1b`).

    HTML cannot contain some of these characters, and others change the order of the text around them. Line ends are
    kept.
    """
    if isinstance(value, str):
        if value.isprintable():
            return value
        return "\n".join(formatting.escaped(line) for line in value.replace("\r\n", "\n").split("\n"))
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        return {clean(str(key)): clean(part) for key, part in value.items()}
    if isinstance(value, Sequence):
        return [clean(part) for part in value]
    return value
