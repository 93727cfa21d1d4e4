"""Invented records and systems that decide about them, fair or biased by a known amount."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pytest_fairness import kinds, probes
from pytest_fairness.answers import reading
from pytest_fairness.languages import ENGLISH
from pytest_fairness.probes import CounterfactualProbe
from pytest_fairness.records import Answer, Measurement, Response
from pytest_fairness.run import ProbeItem, items_of

GROUPS = ("Male", "Female")
Decide = Callable[[str, str], str | None]
"""Function that returns the answer for a record's name and the value in its prompt; `None` for a failed request."""


def probe(
    records: Sequence[tuple[str, str | None]], values: Sequence[str] = GROUPS, **more: Any
) -> CounterfactualProbe:
    """Return a probe of records.

    Args:
        records: group and truth ("rich", "poor" or unknown) of each record; the records are named 000, 001 and so on.
        values: values of the flipped attribute.
        more: further keys of the probe file; `None` leaves a key out.
    """
    written: dict[str, Any] = {
        "kind": "counterfactual",
        "name": "people",
        "prompt": "Record {id}; group is {group}. Yes or no?",
        "records": [
            {"id": f"{number:03}", "group": group, "truth": truth or "?"}
            for number, (group, truth) in enumerate(records)
        ],
        "flip": {"group": {values[0]: values[1]} if len(values) == 2 else list(values)},
        "truth": {"positive": "rich"},
        "audits": {"flip_rate": {}, "demographic_parity": {}, "equalized_odds": {}, "accuracy": {}},
        **more,
    }
    written = {key: value for key, value in written.items() if value is not None}
    found = probes.parse(json.dumps(written).encode(), Path("people.yaml"), kinds.schemas())
    assert isinstance(found, CounterfactualProbe)
    return found


def item_of(asked: CounterfactualProbe, name: str) -> ProbeItem:
    """Return the probe's item of the audit `name`."""
    return next(part for part in items_of(asked) if part.audit_name == name)


def answers(item: ProbeItem, decide: Decide, again: Decide | None = None) -> list[Answer]:
    """Return the answers of an item; `again` decides for repeated prompts (default: `decide`)."""
    found = []
    for prompt in item.prompts():
        labels = prompt.labels
        asked = again if again is not None and labels["form"] == "again" else decide
        text = asked(labels["record"], labels.get("to", labels["group"]))
        found.append(reading.answer(prompt, None if text is None else Response(text), ENGLISH))
    return found


def measure(item: ProbeItem, decide: Decide, again: Decide | None = None) -> Measurement:
    """Return the measurement of an item if a system decides as `decide` and, for repeated prompts, as `again`."""
    return item.audit.measure(item, answers(item, decide, again))
