"""What is named as different from the baseline: parts of the probe, and sampling parameters."""

from __future__ import annotations

from dataclasses import replace

from pytest_fairness.baselines.entries import Entry
from pytest_fairness.baselines.files import changed_sampling, fingerprints, stale_parts
from pytest_fairness.records import Measurement

PARTS = {"prompt": ["Imagine a {race} person."], "axis race": {"unmarked": "White"}}
ENTRY = Entry.measured(
    Measurement(0.0, None, None, None, {}, {}), target="", sampling={}, fingerprint=fingerprints(PARTS), date=""
)


def test_changed_sampling_is_named_with_both_values() -> None:
    drawn = replace(ENTRY, sampling={"temperature": 1.0, "max_tokens": 300, "seed": 1})
    assert changed_sampling(drawn, {"temperature": 1.0, "max_tokens": 300, "seed": 2}) == []
    assert changed_sampling(drawn, {"temperature": 0.7, "top_p": 0.9}) == [
        "max_tokens 300 → not set",
        "temperature 1.0 → 0.7",
        "top_p not set → 0.9",
    ]
    assert changed_sampling(replace(ENTRY, sampling={"temperature": 0.333333}), {"temperature": 1 / 3}) == []


def test_stale_parts_are_named() -> None:
    assert stale_parts(ENTRY, PARTS) == []
    assert stale_parts(ENTRY, {**PARTS, "prompt": ["Another."]}) == ["prompt"]
    assert stale_parts(ENTRY, {"prompt": PARTS["prompt"], "axis age": 1, "system": None}) == [
        "axis age (added)",
        "axis race (removed)",
        "system prompt (added)",
    ]


def test_fingerprints_do_not_depend_on_the_order_of_keys() -> None:
    assert fingerprints({"a": {"x": 1, "y": 2}}) == fingerprints({"a": {"y": 2, "x": 1}})
