"""Fingerprints of what an item is measured from, and what differs from the baseline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

from pytest_fairness.baselines.entries import Entry, rounded
from pytest_fairness.records import Json

NOT_SET = "not set"


def fingerprints(parts: Mapping[str, Json]) -> dict[str, str]:
    """Return the fingerprint of each part: the first 12 hexadecimal digits of the SHA-256 of its sorted JSON."""
    return {
        part: sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12] for part, content in parts.items()
    }


def stale_parts(entry: Entry, parts: Mapping[str, Json]) -> list[str]:
    """Return the names of the parts that differ from the baseline's, sorted.

    Args:
        entry: the baseline's entry.
        parts: of this run, by readable name; see `Entry.fingerprint`.

    Returns:
        names of changed parts; names of added and of removed parts are followed by ` (new)` and ` (gone)`.
    """
    current, baseline = fingerprints(parts), entry.fingerprint
    return sorted(
        part if part in current and part in baseline else f"{part} (new)" if part in current else f"{part} (gone)"
        for part in {*current, *baseline}
        if current.get(part) != baseline.get(part)
    )


def changed_sampling(entry: Entry, sampling: Mapping[str, float]) -> list[str]:
    """Return the sampling parameters that differ from the baseline's, as `temperature 1.0 → 0.7`.

    Another seed draws another sample from the same distribution, so it is no difference.

    Args:
        entry: the baseline's entry.
        sampling: of this run; only what is set.
    """
    current, baseline = rounded(sampling), rounded(entry.sampling)
    return [
        f"{name} {baseline.get(name, NOT_SET)} → {current.get(name, NOT_SET)}"
        for name in sorted({*current, *baseline} - {"seed"})
        if current.get(name) != baseline.get(name)
    ]
