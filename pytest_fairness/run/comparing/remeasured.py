"""Changes of items between two baselines, measured again from the answers of both baselines, as a run measures them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_fairness import kinds, probes
from pytest_fairness.baselines.changes import ItemChange
from pytest_fairness.baselines.fingerprints import stale_parts
from pytest_fairness.baselines.revisions import Snapshot
from pytest_fairness.errors import FairnessError
from pytest_fairness.run.comparing.baseline_rows import answer_from, require_same_judge
from pytest_fairness.run.items.probe_items import ProbeItem, items_of

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

    Args:
        changes: the changes, the most important first.
        old, new: the snapshots with the old and with the new answers.
        root: folder to which the paths of probe files in baselines are relative.
    """
    items: dict[str, Mapping[str, ProbeItem]] = {}
    found = []
    for place, change in enumerate(changes):
        file = None if change.new is None else change.new.file
        if file is not None and _value_changed(change) and (place < MOST_CHANGES or _needs_answers(change)):
            if file not in items:
                items[file] = _items(root / file, root)
            # The id in the baseline may end with the name of a target.
            item = items[file].get(change.id) or items[file].get(change.id.rpartition("@")[0])
            found.append(change if item is None else _with_comparison(change, item, old, new))
        else:
            found.append(change)
    return found


def _value_changed(change: ItemChange) -> bool:
    if change.old is None or change.new is None or change.info is None:
        return False
    return change.old.value != change.new.value


def _needs_answers(change: ItemChange) -> bool:
    """Return whether the size of the change cannot be computed from the two values, as for `marked_words`."""
    return change.info is not None and not change.info.tolerance_of_value


def _items(path: Path, root: Path) -> Mapping[str, ProbeItem]:
    """Return the items of a probe file by id; an empty mapping if the file is missing or has errors."""
    try:
        return {item.id: item.for_baseline for item in items_of(probes.load(path, kinds.schemas(), root=root))}
    except FairnessError:
        return {}


def _with_comparison(change: ItemChange, item: ProbeItem, old: Snapshot, new: Snapshot) -> ItemChange:
    """Return the change with the comparison of both answer sets; unaltered if the sets cannot be compared."""
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
        comparison = item.audit.compare(item, *runs)
    except FairnessError:
        return change
    return replace(change, comparison=comparison, description=item.audit.describe_change(comparison))
