"""Fields of a table's rows as the reading of answers needs them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pytest_fairness.answers.reading import whole_characters
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes.loading.diagnostics import suggestion
from pytest_fairness.records import Json


def text(value: Json) -> str:
    """A field as text; JSON that is no text as JSON."""
    return whole_characters(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def folded(value: str) -> str:
    """A value as it is compared: letter case and blanks do not matter."""
    return " ".join(value.casefold().split())


def whole_number(value: Json) -> int | None:
    """A whole number from 0, written as such or as text; `None` for anything else."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value.strip()) <= 15:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15 else None


def require_columns(file: str, columns: Mapping[str, str], there: Sequence[str], unmapped: Sequence[str] = ()) -> None:
    """Raise `ProbeError` unless a file has these columns.

    Args:
        file: the file as messages name it.
        columns: the probe's names to the file's columns.
        there: the file's columns.
        unmapped: names that stand for themselves, so that mapping them is no cure.
    """
    faults = []
    for name, column in columns.items():
        if column not in there:
            near = suggestion(column, there)
            near = near if "did you mean" in near else ""
            cure = "" if name in unmapped else f"; name the right one as `responses.columns.{name}`"
            faults.append(f"{file}:1: no column {column!r}{near} (the columns are {', '.join(map(repr, there))}){cure}")
    if faults:
        raise ProbeError("\n".join(faults))
