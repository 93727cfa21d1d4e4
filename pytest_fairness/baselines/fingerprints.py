"""Fingerprints of the parts of a probe that affect an item, and their comparison with the item's baseline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

from pytest_fairness.baselines.entries import Entry, rounded
from pytest_fairness.records import Json

NOT_SET = "not set"
NAMES = {"system": "system prompt"}
"""Names of parts for readers, where the stored name is not clear."""


def fingerprints(parts: Mapping[str, Json]) -> dict[str, str]:
    """Return the fingerprint of each part of a probe: the first 12 hex digits of the SHA-256 of its sorted JSON."""
    return {
        part: sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12] for part, content in parts.items()
    }


def stale_parts(entry: Entry, parts: Mapping[str, Json]) -> list[str]:
    """Return the sorted names of the probe's parts that differ from the baseline.

    Args:
        entry: the baseline's entry.
        parts: content of each part in this run, by the part's name; see `Entry.fingerprint`.

    Returns:
        The names of the changed parts; ` (added)` or ` (removed)` follows the name of an added or removed part.
    """
    return changed_parts(fingerprints(parts), entry.fingerprint)


def changed_parts(current: Mapping[str, str], baseline: Mapping[str, str]) -> list[str]:
    """Return the sorted names of the parts whose fingerprints differ, in the form of `stale_parts`.

    Args:
        current, baseline: fingerprint of each part, by the part's name.
    """

    def name(part: str) -> str:
        note = " (added)" if part not in baseline else " (removed)" if part not in current else ""
        return f"{NAMES.get(part, part)}{note}"

    return sorted(name(part) for part in {*current, *baseline} if current.get(part) != baseline.get(part))


def changed_sampling(entry: Entry, sampling: Mapping[str, Json]) -> list[str]:
    """Return the sampling parameters and further fields that differ from the baseline, each as `temperature OLD → NEW`.

    A different seed does not count as a difference, because it only draws another sample from the same distribution.

    Args:
        entry: the baseline's entry.
        sampling: the sampling parameters and further fields that this run sets.
    """

    def shown(fields: Mapping[str, Json], name: str) -> str:
        return json.dumps(fields[name], ensure_ascii=False) if name in fields else NOT_SET

    current, baseline = rounded(sampling), rounded(entry.sampling)
    return [
        f"{name} {shown(baseline, name)} → {shown(current, name)}"
        for name in sorted({*current, *baseline} - {"seed"})
        if current.get(name) != baseline.get(name)
    ]
