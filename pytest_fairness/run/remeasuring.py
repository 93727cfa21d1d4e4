"""Changes of items between two baselines, measured again from the answers of both baselines, as a run measures them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_fairness import kinds, probes
from pytest_fairness.baselines.changes import ItemChange, Snapshot
from pytest_fairness.baselines.files import stale_parts
from pytest_fairness.errors import FairnessError
from pytest_fairness.records import without_target
from pytest_fairness.run.items import ProbeItem, items_of
from pytest_fairness.run.results import answer_from, explained, require_same_judge

MOST_CHANGES = 50
"""Maximum number of changes that are measured again although the difference of the two values is a good estimate."""
MOST_ANSWERS = 5_000
"""Maximum number of answers, of both baselines together, from which a change is measured again although the difference
of the two values is a good estimate; a comparison of more answers takes long."""


def remeasured(changes: Iterable[ItemChange], old: Snapshot, new: Snapshot, root: Path) -> list[ItemChange]:
    """Return the changes; a change of a value is measured again from the answers of both baselines, as a run does.

    A change is returned unaltered if an answer set or the probe file is missing, the probe has changed, or a model must
    read the answers first. After `MOST_CHANGES` changes, and for changes with more than `MOST_ANSWERS` answers, only
    audits whose change is not the difference of two values are measured, such as `marked_words`.
    """
    items: dict[str, Mapping[str, ProbeItem]] = {}
    found = []
    for place, change in enumerate(changes):
        file = None if change.new is None else change.new.file
        has_changed = change.old and change.new and change.info and change.old.value != change.new.value
        if file is not None and has_changed and (place < MOST_CHANGES or _needs_answers(change)):
            if file not in items:
                items[file] = _items(root / file, root)
            # The id in the baseline may hold the name of a target.
            item = items[file].get(change.id) or items[file].get(
                without_target(change.id, change.baseline.rpartition("@")[2])
            )
            found.append(change if item is None else _with_comparison(change, item, old, new))
        else:
            found.append(change)
    return found


def _needs_answers(change: ItemChange) -> bool:
    """Return whether the size of the change cannot be computed from the two values, as for `marked_words`."""
    return change.info is not None and not change.info.tolerance_of_value


def _items(path: Path, root: Path) -> Mapping[str, ProbeItem]:
    try:
        return {item.id: item.for_baseline for item in items_of(probes.load(path, kinds.schemas(), root=root))}
    except FairnessError:
        return {}


def _with_comparison(change: ItemChange, item: ProbeItem, old: Snapshot, new: Snapshot) -> ItemChange:
    if item.models.preparation is not None:
        return change
    runs = []
    for entry, side, name in (
        (change.new, new, change.baseline),
        (change.old, old, change.old_key[0] if change.old_key else change.baseline),
    ):
        if entry is None or stale_parts(entry, item.fingerprint):
            return change
        rows = side.answers(name).get(entry.answer_set or "", ())
        runs.append([answer_from(row, item.probe) for row in item.select_own(rows)])
    if not all(runs) or (sum(map(len, runs)) > MOST_ANSWERS and not _needs_answers(change)):
        return change
    try:
        require_same_judge(*runs)
        comparison = explained(item, item.audit.compare(item, *runs))
    except FairnessError:
        return change
    return replace(change, comparison=comparison)
