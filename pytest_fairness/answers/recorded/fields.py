"""Conversion and checks of fields in answer files: texts, numbers, required columns, and answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pytest_fairness.answers import reading
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.diagnostics import suggestion
from pytest_fairness.records import Answer, Json


def text(value: Json) -> str:
    """Return a field as text: a string unchanged, any other value as JSON."""
    return reading.whole_characters(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def whole_number(value: Json) -> int | None:
    """Return the whole number ≥ 0 (at most 15 digits) that a field contains as a number or text, otherwise `None`."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value.strip()) <= 15:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15 else None


def require_columns(
    file: str, columns: Mapping[str, str], existing: Sequence[str], unmapped: Sequence[str] = ()
) -> None:
    """Raise `ProbeError` if a file lacks a required column.

    Args:
        file: the file's name, for messages.
        columns: name of each required column in the file, by its name in the probe (an axis, `prompt`, `text`, …).
        existing: names of all columns in the file.
        unmapped: names in the probe that `responses.columns` cannot map to another column.
    """
    faults = []
    for name, column in columns.items():
        if column not in existing:
            near = suggestion(column, existing)
            near = near if "did you mean" in near else ""
            remedy = "" if name in unmapped else f"; set `responses.columns.{name}` to the name of the right column"
            faults.append(
                f"{file}:1: no column {column!r}{near} (the columns are {', '.join(map(repr, existing))}){remedy}"
            )
    if faults:
        raise ProbeError("\n".join(faults))


def answer(written: Json, labels: Mapping[str, str], trial: int, probe: Probe) -> Answer:
    """Return the answer that a field contains; a field that is `None` (JSON `null`) counts as a missing response."""
    return reading.recorded(
        probe.reading.recorded_prompt(labels, trial), None if written is None else text(written), probe.language
    )
