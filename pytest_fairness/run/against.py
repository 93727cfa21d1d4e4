"""Judging by the baselines of another git revision (`--fairness-against`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from pytest_fairness.baselines.changes import Key, changes, snapshots
from pytest_fairness.baselines.entries import Entry
from pytest_fairness.baselines.files import PROMPTS, changed_parts, fingerprints
from pytest_fairness.errors import BaselineError, FairnessError
from pytest_fairness.options import RunSettings
from pytest_fairness.probes.field_types import display_path
from pytest_fairness.records import Against
from pytest_fairness.reports.formatting import number, plus_minus
from pytest_fairness.reports.view import worse_by
from pytest_fairness.resources import Closing
from pytest_fairness.run.items import ProbeItem


class BaseRevision(Closing):
    """Baselines of a git revision beside those of the working tree; the files of the revision are copied.

    Attributes:
        revision, name: the revision as the user named it, without and with its commit.
        folder: folder of the copied files.
        is_empty: whether the revision has no baselines.

    Raises:
        FairnessError: there is no git repository, or no such revision.
    """

    def __init__(self, settings: RunSettings, revision: str) -> None:
        if ".." in revision:
            raise FairnessError(
                f"--fairness-against {revision}: a run is judged by one revision. Name it without dots, such as "
                "origin/main."
            )
        self.revision, self._root, self._stack = revision, settings.root, ExitStack()
        try:
            self._old, self._new = self._stack.enter_context(snapshots(settings.baselines, revision))
        except FairnessError as error:
            raise FairnessError(f"--fairness-against {revision}: {error}") from error
        self.name, self.folder = self._old.name, self._old.folder
        self.is_empty = not (self._old.items or self._old.unreadable)
        found = changes(self._old, self._new)
        self._changes = {(change.baseline, change.id): change for change in found}
        # An item whose probe was renamed has its baseline under the old name.
        self._by_file = {(entry.file, key[1]): key for key, entry in self._old.items.items()}

    def close(self) -> None:
        self._stack.close()

    def renamed(self, items: Iterable[tuple[str, str]]) -> set[Key]:
        """Return the keys in the revision of renamed baselines, and of `items` of a run, given by file and id."""
        keys = [change.old_key for change in self._changes.values()] + [self._by_file.get(item) for item in items]
        return {key for key in keys if key is not None}

    def key_of(self, item: ProbeItem) -> Key | None:
        """Return the baseline's name and the id under which the revision has an item; `None` for a new item."""
        own = item.baseline_name, item.id
        change = self._changes.get(own)
        if own[0] in self._old.unreadable or own in self._old.items:
            return own
        if change is not None and change.old_key is not None:
            return change.old_key
        return self._by_file.get((display_path(item.file, self._root), item.id))

    def changed_prompts(self, item: ProbeItem, entry: Entry) -> list[str]:
        """Return the changed parts of the probe in spite of which the item's answers are compared: its prompts."""
        current = fingerprints(item.fingerprint)
        both = {part for part in PROMPTS if part in current and part in entry.fingerprint}
        return changed_parts(*({part: side[part] for part in both} for side in (current, entry.fingerprint)))

    def error(self, error: BaselineError) -> BaselineError:
        """Return an error of the revision's files with the revision's name, and without advice to restore a file."""
        message = str(error).replace(f"{self.folder}/", "").partition(". Restore")[0].rstrip(".")
        return BaselineError(f"{self.name}, {message}. Repair the baseline in that revision, or judge by another one.")

    def relation(self, item: ProbeItem, entry: Entry | None, changed: Sequence[str] = ()) -> Against:
        """Return how an item is judged.

        Args:
            entry: the item's entry in the revision; `None` for an item that the revision does not have.
            changed: parts of the probe that differ from the revision's.
        """
        own, key = (item.baseline_name, item.id), self.key_of(item)
        now, change = self._new.items.get(own), self._changes.get(own)
        accepted, notes = "", list[str]()
        if entry is None or key is None:
            accepted = "" if now is None else f"new in this change, with the first baseline {number(now.value)}"
        elif now is None:
            notes += ["baseline removed in this change"] if change is not None and change.new is None else []
        elif (entry.value, entry.answers) != (now.value, now.answers):
            by = None if change is None else change.difference
            moved = "other value" if by is None else worse_by(by, item.audit.info.unit)
            width = plus_minus((change.half_width or None) if by and change else None)
            accepted = f"accepted in this change: {moved}{width} ({number(entry.value)} → {number(now.value)})"
        if key is not None and key != own:
            notes.append(f"renamed from {' '.join(key)}")
        tolerance = item.audit.tolerance_of(item.settings)
        if entry is not None and entry.tolerance is not None and number(entry.tolerance) != number(tolerance):
            notes.append(f"tolerance changed: {number(entry.tolerance)} → {number(tolerance)}")
        label = [f"{' and '.join(changed)} changed"] if changed else []
        return Against(self.name, changed, accepted, [*label, *filter(None, [accepted]), *notes])
