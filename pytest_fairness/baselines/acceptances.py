"""Acceptances of baseline values over time, from the git history of the baseline files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from pytest_fairness.baselines.entries import Entry
from pytest_fairness.baselines.git import git
from pytest_fairness.baselines.reading import parse_summary
from pytest_fairness.baselines.revisions import SUMMARY_SUFFIX, WORKING_TREE, Revisions, commit_of, repository_of
from pytest_fairness.errors import BaselineError, FairnessError

Entries = Mapping[str, Entry]
"""Entries of a baseline, by item id."""
FileChange = tuple[str, Sequence[Entries | None], Entries | None]
"""Change of a baseline: its name, its entries in each parent commit, and its new entries.

`None` stands for the entries of a file that cannot be read.
"""


@dataclass(frozen=True)
class AcceptedItem:
    """Item of an acceptance.

    Attributes:
        baseline, id: name of the item's baseline, and id of the item.
        old: value before the acceptance; `None` if the baseline did not hold the item.
        new: accepted value; `None` if the item was removed from the baseline.
    """

    baseline: str
    id: str
    old: float | None
    new: float | None


@dataclass(frozen=True)
class Acceptance:
    """Values that one person accepted on one date for one reason.

    Attributes:
        date: date of the measurement, ISO 8601. Removed items have the date of the commit or, if the change is not
            committed, the current date.
        by, reason: the person and the reason; `None` if the baseline does not state them.
        commit: short id of the commit; `None` if the change is not committed.
        items: the accepted items, sorted by baseline and id.
    """

    date: str
    by: str | None
    reason: str | None
    commit: str | None
    items: Sequence[AcceptedItem]


@dataclass(frozen=True)
class AcceptanceLog:
    """Acceptances of a range of revisions.

    Attributes:
        acceptances: the acceptances, the latest first.
        revisions: the range as a phrase, such as `whole history`.
        problems: a sentence for each file that cannot be read.
    """

    acceptances: Sequence[Acceptance]
    revisions: str
    problems: Sequence[str]


def acceptance_log(folder: Path, revisions: str | None) -> AcceptanceLog:
    """Return the acceptances of baseline values in a range of revisions, the latest first.

    Args:
        folder: folder of the baselines; it may be missing in the working tree.
        revisions: `A..B`, `A...B` (from the common ancestor to B), `REV` (from REV to the working tree), or `None` (the
            whole history and the working tree).

    Raises:
        FairnessError: git is not installed, the folder is in no repository, a revision does not exist, the revisions
            have no common ancestor, or `revisions` is `None` and there has never been a baseline.
    """
    place, inside = repository_of(folder)
    history = _History(place, folder, inside)
    ends = Revisions.parse(place, revisions or "HEAD")
    last = ends.new or commit_of(place, "HEAD")
    acceptances = [
        acceptance
        for commit, date in history.commits(last if revisions is None else f"{ends.old}..{last}")
        for acceptance in _acceptances(history.changed_files(commit), date, commit[:7])
    ]
    if ends.new is None:
        now = datetime.now(UTC).isoformat()
        acceptances += _acceptances(history.uncommitted(last), now, None)
        phrase = "whole history" if revisions is None else f"from {ends.old_name} to {WORKING_TREE}"
    else:
        phrase = f"from {ends.old_name} to {ends.new_name}"
    if revisions is None and not acceptances and not history.problems:
        raise FairnessError(
            f"{folder}: neither the folder nor the git history has a baseline. Make baselines with "
            "`pytest --fairness-rebaseline`, or name another folder with --baselines DIR."
        )
    acceptances.reverse()
    acceptances.sort(key=lambda acceptance: acceptance.date, reverse=True)
    return AcceptanceLog(acceptances, phrase, history.problems)


class _History:
    """Baseline files of a folder in the commits of its repository.

    Args:
        place: an existing folder of the repository, in which git is run.
        folder: folder of the baselines.
        inside: path of `folder` from the root of the repository.

    Attributes:
        problems: a sentence for each file that cannot be read.
    """

    def __init__(self, place: Path, folder: Path, inside: str) -> None:
        self._place, self._folder, self._inside = place, folder, inside
        self._parent = "" if inside == "." else inside
        self._path = f":(top,literal){self._parent}"
        self.problems: list[str] = []
        self._entries_in_blob = cache(self._read_blob)

    def commits(self, revisions: str) -> list[tuple[str, str]]:
        """Return the id and the date of each commit that changed a file in the folder, the oldest commit first."""
        lines = git(self._place, "log", "--reverse", "--topo-order", "--format=%H %cI", revisions, "--", self._path)
        return [(commit, date) for commit, _, date in (line.partition(" ") for line in lines.decode().splitlines())]

    def changed_files(self, commit: str) -> Iterator[FileChange]:
        """Yield the changes of baselines in a commit.

        A merge commit changes a baseline only if the baseline differs from the baseline in every parent commit.
        """
        options = ("--root", "-r", "-c", "-z", "--no-commit-id", "--no-renames", "--no-abbrev")
        parts = git(self._place, "diff-tree", *options, commit, "--", self._path).split(b"\0")
        for facts, path in zip(parts[::2], parts[1::2], strict=False):
            parents = len(facts) - len(facts.lstrip(b":"))
            *before, after = facts.decode("ascii").split()[parents + 1 : 2 * parents + 2]
            if (name := self._baseline_name(path)) is not None:
                yield name, [self._entries_in_blob(name, blob) for blob in before], self._entries_in_blob(name, after)

    def uncommitted(self, commit: str) -> Iterator[FileChange]:
        """Yield the change of each baseline from a commit to the working tree; the commit is the only parent."""
        listed = git(self._place, "ls-tree", "-r", "-z", "--full-tree", commit, "--", self._inside)
        blobs = {}
        for line in filter(None, listed.split(b"\0")):
            facts, _, path = line.partition(b"\t")
            if (name := self._baseline_name(path)) is not None:
                blobs[name] = facts.split()[2].decode("ascii")
        files = {path.name.removesuffix(SUMMARY_SUFFIX): path for path in self._folder.glob(f"*{SUMMARY_SUFFIX}")}
        for name in sorted({*blobs, *files}):
            data = files[name].read_bytes() if name in files else None
            after = {} if data is None else self._parsed(name, data, "working tree")
            yield name, [self._entries_in_blob(name, blobs[name]) if name in blobs else {}], after

    def _baseline_name(self, path: bytes) -> str | None:
        """Return the name of the baseline, for the path of a summary in the folder; `None` for other paths."""
        folder, _, file = path.decode("utf-8", "surrogateescape").rpartition("/")
        return file.removesuffix(SUMMARY_SUFFIX) if file.endswith(SUMMARY_SUFFIX) and folder == self._parent else None

    def _read_blob(self, name: str, blob: str) -> Entries | None:
        if not blob.strip("0"):
            return {}
        return self._parsed(name, git(self._place, "cat-file", "blob", blob), f"git object {blob[:7]}")

    def _parsed(self, name: str, data: bytes, where: str) -> Entries | None:
        try:
            return parse_summary(Path(f"{name}{SUMMARY_SUFFIX}"), data.decode("utf-8"))[1]
        except (BaselineError, UnicodeDecodeError) as error:
            self.problems.append(f"{where}, {str(error).partition('. Restore it with')[0]}")
            return None


def _acceptances(files: Iterator[FileChange], date: str, commit: str | None) -> Iterator[Acceptance]:
    """Yield the acceptances of changed items, one acceptance for each date, person and reason.

    Items that were only renamed, and files that cannot be read, are left out.

    Args:
        files: the changed baseline files.
        date: date of acceptance of the items that were removed.
        commit: short id of the commit; `None` if the changes are not committed.
    """
    changed: list[tuple[str, str, Entry | None, Entry | None]] = []
    for name, parents, after in files:
        before = [entries for entries in parents if entries is not None]
        if after is None or not before:
            continue  # a file cannot be read; `_History.problems` has a sentence about it
        for item in sorted({*after, *before[0]}):
            old, new = before[0].get(item), after.get(item)
            if all(entries.get(item) != new for entries in before):
                changed.append((name, item, old, new))
    removed = [(item, old) for _, item, old, new in changed if new is None]
    renamed = [new for _, item, old, new in changed if old is None and (item, new) in removed]
    groups: dict[tuple[str, str | None, str | None], list[AcceptedItem]] = defaultdict(list)
    for name, item, old, new in changed:
        if (new or old) in renamed and (old is None or new is None):
            continue
        key = (date, None, None) if new is None else (new.date, new.accepted_by, new.reason)
        groups[key].append(AcceptedItem(name, item, *(None if entry is None else entry.value for entry in (old, new))))
    for (when, by, reason), items in groups.items():
        yield Acceptance(when, by, reason, commit, items)
