"""Fingerprints of an item's inputs, and comparison of the inputs with the inputs of its baseline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

from pytest_fairness.baselines.entries import Entry, rounded
from pytest_fairness.records import Json

NOT_SET = "not set"
NAMES = {"system": "system prompt"}
"""Names of inputs for readers, where the stored name is not clear."""


def fingerprints(parts: Mapping[str, Json]) -> dict[str, str]:
    """Return a fingerprint of each input: the first 12 hexadecimal digits of the SHA-256 of its sorted JSON."""
    return {
        part: sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12] for part, content in parts.items()
    }


def stale_parts(entry: Entry, parts: Mapping[str, Json]) -> list[str]:
    """Return the sorted names of the inputs that differ from the baseline's inputs.

    Args:
        entry: the baseline's entry.
        parts: inputs of this run, by name; see `Entry.fingerprint`.

    Returns:
        Names of changed inputs; the name of an added input ends in ` (added)`, of a removed input in ` (removed)`.
    """
    return changed_parts(fingerprints(parts), entry.fingerprint)


def changed_parts(current: Mapping[str, str], baseline: Mapping[str, str]) -> list[str]:
    """Return the sorted names of the inputs whose fingerprints differ; see `stale_parts`."""

    def name(part: str) -> str:
        note = " (added)" if part not in baseline else " (removed)" if part not in current else ""
        return f"{NAMES.get(part, part)}{note}"

    return sorted(name(part) for part in {*current, *baseline} if current.get(part) != baseline.get(part))


def changed_sampling(entry: Entry, sampling: Mapping[str, float]) -> list[str]:
    """Return the sampling parameters that differ from the baseline, each as `temperature 1.0 → 0.7`.

    A different seed does not count as a difference, because it only draws another sample from the same distribution.

    Args:
        entry: the baseline's entry.
        sampling: the sampling parameters that this run sets.
    """
    current, baseline = rounded(sampling), rounded(entry.sampling)
    return [
        f"{name} {baseline.get(name, NOT_SET)} → {current.get(name, NOT_SET)}"
        for name in sorted({*current, *baseline} - {"seed"})
        if current.get(name) != baseline.get(name)
    ]
