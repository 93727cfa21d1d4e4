"""Values as a page shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta

from pytest_fairness.records import Json
from pytest_fairness.reports.formatting import escaped
from pytest_fairness.reports.formatting import number as short_number

NOTHING = "–"


def number(value: Json) -> str:
    """A number at 3 significant digits with a real minus sign; a dash where there is none."""
    return NOTHING if value is None else short_number(float(value)).replace("-", "−")


def signed(value: Json) -> str:
    """The same, with a plus sign where it is above 0."""
    shown = number(value)
    return shown if shown in (NOTHING, "0") or shown.startswith("−") else f"+{shown}"


def cell(value: Json) -> str:
    """Any JSON value in a cell of a table."""
    match value:
        case None | "":
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return number(value)
        case str():
            return value
        case [*parts] if not any(isinstance(part, Mapping | list | tuple) for part in parts):
            return ", ".join(map(cell, parts)) or NOTHING
        case Mapping() if not any(isinstance(part, Mapping | list | tuple) for part in value.values()):
            return "; ".join(f"{name} {cell(part)}" for name, part in value.items()) or NOTHING
        case _:
            return json.dumps(value, ensure_ascii=False)


def plain(name: str) -> str:
    """A detail's or count's name as words."""
    return name.replace("_", " ")


def duration(seconds: float) -> str:
    """Seconds below two minutes, hours and minutes above."""
    return f"{seconds:.1f} s" if seconds < 120 else str(timedelta(seconds=round(seconds)))


def clean(value: Json) -> Json:
    r"""The same JSON without characters that a page cannot hold, or that would change how the rest of it is read.

    Control characters, lone surrogates and marks of writing direction are shown by their code (`\x1b`); line ends
    stay.
    """
    if isinstance(value, str):
        return "\n".join(escaped(line) for line in value.replace("\r\n", "\n").split("\n"))
    if isinstance(value, Mapping):
        return {clean(str(key)): clean(part) for key, part in value.items()}
    if isinstance(value, Sequence):
        return [clean(part) for part in value]
    return value
