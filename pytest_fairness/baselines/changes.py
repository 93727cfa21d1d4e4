"""Changes between two versions of a folder's baselines, from the working tree or from git."""

from __future__ import annotations

import math
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, Self

from pytest_fairness.audits import registry
from pytest_fairness.audits.info import AuditInfo
from pytest_fairness.baselines.entries import Entry, Row, read_answers, row_key
from pytest_fairness.baselines.files import read_baseline
from pytest_fairness.errors import BaselineError, FairnessError
from pytest_fairness.records import Comparison, Creep
from pytest_fairness.stats import intervals

# Changes of items between an old and a new snapshot of the baselines.

State = Literal["worse", "other value", "new", "removed", "renamed", "rules", "better", "same value"]
"""State of an item in the new baselines.

If the value changed: `worse` or `better` if the audit's loss grew or fell, `same value` if the loss did not change,
`other value` if the audit is not installed. If the value did not change: `renamed` if the baseline or the item has a
new name, `rules` if only the limit or the tolerance changed, otherwise `same value`.
"""

ORDER: Sequence[State] = ("worse", "other value", "new", "removed", "renamed", "rules", "better", "same value")
"""Order in which items are listed."""

SHOWN_EXAMPLES = 2
SAME_VALUE = ("renamed", "rules", "same value")
"""States of changes that leave the value as it is, so that no examples of changed answers are shown."""
Key = tuple[str, str]


@dataclass(frozen=True)
class Example:
    """Texts of the answers to one request in both baselines; `None` without an answer or text."""

    labels: str
    old: str | None
    new: str | None


@dataclass(frozen=True)
class ItemChange:
    """Change of an item's entry between the old and the new baselines.

    Attributes:
        baseline, id: name of the baseline and id of the item.
        old, new: the entries; `old` is `None` for an added item, `new` for a removed item.
        old_key: old name of the baseline and old id of the item, if the item was renamed.
        info: description of the audit; `None` if the audit is not installed.
        examples: answers that differ.
        comparison: the change measured from the answers as in a run, if it was measured.
        creep: sum of the item's accepted changes, if it is known.
    """

    baseline: str
    id: str
    old: Entry | None
    new: Entry | None
    old_key: Key | None
    info: AuditInfo | None
    examples: Sequence[Example] = ()
    comparison: Comparison | None = None
    creep: Creep | None = None

    @cached_property
    def state(self) -> State:
        if self.old is None or self.new is None:
            return "new" if self.old is None else "removed"
        if self.old.value != self.new.value:
            worse = self.difference
            if self.comparison is not None and not worse and self.info is not None:
                return "better" if self.info.loss(self.new.value) < self.info.loss(self.old.value) else "same value"
            return "other value" if worse is None else "worse" if worse > 0 else "better" if worse < 0 else "same value"
        if self.old_key is not None:
            return "renamed"
        with_new_rules = replace(self.old, limit=self.new.limit, tolerance=self.new.tolerance)
        same = self.old.same_measurement(self.new) or not with_new_rules.same_measurement(self.new)
        return "same value" if same else "rules"

    @cached_property
    def difference(self) -> float | None:
        """Return the change of the loss; `None` for an added or removed item, or if the audit is not installed."""
        if self.old is None or self.new is None or self.info is None:
            return None
        if self.comparison is not None:
            return self.comparison.value
        return float(self.info.loss(self.new.value) - self.info.loss(self.old.value))

    @property
    def half_width(self) -> float | None:
        """Return half the change's 95 % interval; without measured answers, runs count as independent."""
        if self.comparison is not None:
            return intervals.half_width(self.comparison.interval)
        errors = [entry.standard_error for entry in (self.old, self.new) if entry is not None]
        known = [error for error in errors if error is not None]
        if len(known) < 2:
            return None
        width = intervals.quantile(0.975) * math.hypot(*known)
        return intervals.half_width((-width, width))

    @property
    def tolerance(self) -> float | None:
        """Return the tolerance; for files of earlier versions, the audit's default; `None` if unknown."""
        entry = self.new or self.old
        if entry is not None and entry.tolerance is not None:
            return entry.tolerance
        return None if self.info is None else self.info.tolerance

    @property
    def beyond_chance(self) -> bool:
        """Return whether the 95 % confidence interval of the change excludes 0."""
        width = self.half_width
        return self.difference is not None and width is not None and abs(self.difference) > width

    @property
    def changed_contributions(self) -> list[tuple[str, float | None, float | None]]:
        """Return words, groups or records with their old and new contributions that differ, the largest change first.

        A contribution that is not stored is `None`. The list is empty for a removed item, and if the value's change may
        be due to chance or has no known standard error.
        """
        if self.new is None or (self.old is not None and not self.beyond_chance and self.half_width != 0):
            return []
        return self._changed_contributions()

    @property
    def grown_contributions(self) -> list[str]:
        """Return the names of grown contributions; none if a change with a standard error may be due to chance."""
        changed = self._changed_contributions() if self.half_width is None else self.changed_contributions
        return [name for name, old, new in changed if abs(new or 0.0) > abs(old or 0.0)]

    def _changed_contributions(self) -> list[tuple[str, float | None, float | None]]:
        old, new = (entry.contributions or {} if entry else {} for entry in (self.old, self.new))
        changed = [(name, old.get(name), new.get(name)) for name in {*old, *new} if old.get(name) != new.get(name)]
        return sorted(changed, key=lambda part: (-abs((part[2] or 0.0) - (part[1] or 0.0)), part[0]))


def changes(old: Snapshot, new: Snapshot) -> list[ItemChange]:
    """Return the changes of all entries that differ and can be read in both snapshots, the most important first."""
    unreadable = {*old.unreadable, *new.unreadable}
    before, after = (
        {key: entry for key, entry in snapshot.items.items() if key[0] not in unreadable} for snapshot in (old, new)
    )
    old_keys = _old_keys(
        {key: entry for key, entry in before.items() if key not in after},
        {key: entry for key, entry in after.items() if key not in before},
    )
    kept = [_change(key, before.get(old_keys.get(key, key)), entry, old_keys.get(key)) for key, entry in after.items()]
    changed = [change for change in kept if change.old != change.new or change.old_key is not None]
    removed = before.keys() - after.keys() - set(old_keys.values())
    changed += [_change(key, before[key], None, None) for key in removed]
    return ordered(_with_examples(changed, old, new))


def ordered(item_changes: Iterable[ItemChange]) -> list[ItemChange]:
    """Sort by `ORDER` of the states and, for the same state, from worst to best."""
    return sorted(item_changes, key=_sort_key)


def _old_keys(removed: Mapping[Key, Entry], added: Mapping[Key, Entry]) -> dict[Key, Key]:
    """Return the old key (baseline and item id) of each renamed item, by its new key.

    An added item counts as renamed in two cases: a removed item has the same id and file; or only one removed item has
    the same measurement. If several removed items have the same measurement, only those with the same id are counted.
    """
    by_file = {(entry.file or "", key[1]): key for key, entry in removed.items() if entry.file is not None}
    by_numbers: dict[object, list[Key]] = defaultdict(list)
    for key, entry in removed.items():
        by_numbers[_measured_numbers(key, entry)].append(key)
    old_keys: dict[Key, Key] = {}
    for key, entry in added.items():
        same = by_numbers[_measured_numbers(key, entry)]
        same = [other for other in same if other[1] == key[1]] or same
        old_key = by_file.get((entry.file or "", key[1])) or (same[0] if len(same) == 1 else None)
        if old_key is not None and old_key not in old_keys.values():
            old_keys[key] = old_key
    return old_keys


def _measured_numbers(key: Key, entry: Entry) -> object:
    return _audit_name(key[1]), entry.value, entry.interval, entry.standard_error, *sorted(entry.n.values())


def _audit_name(item: str) -> str:
    return item.partition("[")[0]


def _change(key: Key, old: Entry | None, new: Entry | None, old_key: Key | None) -> ItemChange:
    return ItemChange(*key, old, new, old_key, registry.info_of(_audit_name(key[1])))


def _with_examples(item_changes: Iterable[ItemChange], old: Snapshot, new: Snapshot) -> list[ItemChange]:
    """Add examples; only one baseline's answers are in memory at a time."""
    result = []
    answers: tuple[Key, Mapping[str, Sequence[Row]], Mapping[str, Sequence[Row]]] | None = None
    for change in sorted(item_changes, key=lambda change: change.baseline):
        after = change.new
        if after is None or after.answer_set is None or change.state in SAME_VALUE:
            result.append(change)
            continue
        names = (change.old_key[0] if change.old_key else change.baseline, change.baseline)
        if answers is None or answers[0] != names:
            answers = (names, old.answers(names[0]), new.answers(names[1]))
        before = answers[1].get(change.old.answer_set or "", ()) if change.old is not None else ()
        shown = _examples(change, before, answers[2].get(after.answer_set, ()))
        result.append(replace(change, examples=shown))
    return result


def _examples(change: ItemChange, old: Sequence[Row], new: Sequence[Row]) -> list[Example]:
    before = {row_key(row): row for row in old}
    labels = (change.new and change.new.labels) or {}
    own = [row for row in new if all(row.labels.get(name, value) == value for name, value in labels.items())]
    differing = [row for row in own if row_key(row) not in before or before[row_key(row)].text != row.text]
    words = [re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE) for name in change.grown_contributions]

    def order(row: Row) -> tuple[bool, int]:
        # Requests without an old answer are last: they show no change of an answer.
        return row_key(row) not in before, -sum(word.search(row.text or "") is not None for word in words)

    return [
        Example(
            ", ".join([*(f"{name} {value}" for name, value in sorted(row.labels.items())), f"trial {row.trial}"]),
            before[row_key(row)].text if row_key(row) in before else None,
            row.text,
        )
        for row in sorted(differing, key=order)[:SHOWN_EXAMPLES]
    ]


def _sort_key(change: ItemChange) -> tuple[int, float, str, str]:
    worse = (change.difference or 0.0) / (change.tolerance or 1.0)
    return ORDER.index(change.state), -worse, change.baseline, change.id


# Two versions of a folder's baselines, each read from the working tree or from a commit of its git repository.

SUMMARY_SUFFIX, ANSWERS_SUFFIX = ".json", ".responses.jsonl"
WORKING_TREE = "working tree"
MOST_FILE_BYTES = 64 * 1024**2
"""Maximum size in bytes of a file that is read from a commit; larger files are not read."""
MOST_ANSWER_BYTES = 256 * 1024**2
"""Maximum size in bytes of a baseline's answers, after decompression; larger files of answers are not read."""


@dataclass(frozen=True)
class Snapshot:
    """All baselines of a folder, in the working tree or in one commit.

    Attributes:
        name: the revision as the user named it, with its commit, or `working tree`.
        folder: folder of the files; for a commit, a folder with copies of the files.
        items: the entries, by the name of the baseline and the id of the item.
        problems: a sentence for each file that cannot be read.
        unreadable: names of the baselines that cannot be read.
    """

    name: str
    folder: Path
    items: Mapping[tuple[str, str], Entry]
    problems: list[str] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)

    def answers(self, baseline: str) -> Mapping[str, Sequence[Row]]:
        """Return a baseline's answers by answer set; none if the file is absent or, with a problem, cannot be read."""
        path = self.folder / f"{baseline}{ANSWERS_SUFFIX}"
        try:
            return read_answers(path, MOST_ANSWER_BYTES) or {}
        except BaselineError as error:
            self.problems.append(_problem(self.name, self.folder, error))
            return {}


@dataclass(frozen=True)
class Revisions:
    """Ids of two commits (`new` is `None` for the working tree) with the names that the user gave them."""

    old: str
    new: str | None
    old_name: str
    new_name: str

    @classmethod
    def parse(cls, place: Path, revisions: str) -> Self:
        """Return the two revisions that an argument of the command `diff` names.

        `REV` stands for REV and the working tree, `A..B` for A and B, and `A...B` for the common ancestor and B.

        Raises:
            FairnessError: a revision does not exist, or there is no common ancestor.
        """
        first, dots, second = revisions.partition("...")
        if not dots:
            first, dots, second = revisions.partition("..")
        old = _commit_of(place, first or "HEAD")
        new = _commit_of(place, second or "HEAD") if dots else None
        name = first or "HEAD"
        if dots == "..." and new is not None:
            try:
                old = git(place, "merge-base", old, new).decode().strip()
            except GitError as error:
                raise FairnessError(
                    f"{revisions}: the two revisions have no common ancestor. Compare them with two dots: A..B."
                ) from error
            name = f"common ancestor of {name} and {second or 'HEAD'}"
        shown = WORKING_TREE if new is None else f"{second or 'HEAD'} ({new[:7]})"
        return cls(old, new, f"{name} ({old[:7]})", shown)


@contextmanager
def snapshots(folder: Path, revisions: str) -> Iterator[tuple[Snapshot, Snapshot]]:
    """Yield the baselines of the old and of the new revision; see `Revisions.parse`.

    The folder may be missing in the working tree.

    Raises:
        FairnessError: git is not installed, the folder is in no repository, a revision does not exist, or there is no
            common ancestor.
    """
    place, inside = repository_of(folder)
    ends = Revisions.parse(place, revisions)
    with TemporaryDirectory() as temporary:
        before = _snapshot_of_commit(place, ends.old, inside, Path(temporary) / "old", ends.old_name)
        if ends.new is None:
            yield before, _snapshot(WORKING_TREE, folder)
        else:
            yield before, _snapshot_of_commit(place, ends.new, inside, Path(temporary) / "new", ends.new_name)


@contextmanager
def worktree(root: Path, revision: str) -> Iterator[tuple[Path, Path]]:
    """Yield a temporary folder with all files of a revision of a folder's repository, and the repository's root.

    Raises:
        FairnessError: there is no such revision, or git cannot check it out.
    """
    top = Path(git(root, "rev-parse", "--show-toplevel").decode("utf-8", "surrogateescape").rstrip("\n")).resolve()
    commit = _commit_of(root, revision)
    with TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        tree = Path(temporary).resolve() / "tree"
        # Hooks of the user's repository must not run.
        git(root, "-c", f"core.hooksPath={os.devnull}", "worktree", "add", "--detach", str(tree), commit)
        try:
            yield tree, top
        finally:
            with suppress(GitError):
                git(root, "worktree", "remove", "--force", str(tree))


def repository_of(folder: Path) -> tuple[Path, str]:
    """Return the folder, or its nearest parent that exists, and the folder's path from the repository's root.

    Raises:
        FairnessError: the folder is in no repository, or git is not installed.
    """
    place = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    try:
        top = Path(git(place, "rev-parse", "--show-toplevel").decode("utf-8", "surrogateescape").rstrip("\n"))
    except GitError as error:
        raise FairnessError(f"{folder}: baselines cannot be compared with a git revision: {error}.") from error
    return place, Path(os.path.relpath(folder.resolve(), top.resolve())).as_posix()


def _commit_of(place: Path, revision: str) -> str:
    # A revision that starts with a dash would be an option of git.
    if not revision.startswith("-") and revision.isprintable():
        try:
            return git(place, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode("ascii").strip()
        except GitError:
            pass
    if git(place, "rev-parse", "--is-shallow-repository").strip() == b"true":
        raise FairnessError(
            f"The clone is shallow and lacks the revision {revision!r}. Fetch the whole history: `git fetch "
            "--unshallow`; in GitHub Actions, actions/checkout with `fetch-depth: 0`; in GitLab, `GIT_DEPTH: 0`."
        )
    raise FairnessError(
        f"The git repository has no revision {revision!r}. `git log` lists its commits. In a CI job, fetch the whole "
        "history first (actions/checkout with `fetch-depth: 0`)."
    )


def _snapshot_of_commit(place: Path, commit: str, inside: str, copy: Path, name: str) -> Snapshot:
    copy.mkdir()
    too_large = []
    try:
        listed = git(place, "ls-tree", "--full-tree", "-z", "-l", f"{commit}:{'' if inside == '.' else inside}")
    except GitError:  # the commit does not have the folder
        listed = b""
    for line in filter(None, listed.split(b"\0")):
        facts, _, path = line.partition(b"\t")
        mode, _, blob, size = facts.split()
        file = path.decode("utf-8", "surrogateescape")
        if not mode.startswith(b"100") or not file.endswith((SUMMARY_SUFFIX, ANSWERS_SUFFIX, f"{ANSWERS_SUFFIX}.gz")):
            continue  # a link, a folder, or a file that belongs to no baseline
        if int(size) > MOST_FILE_BYTES:
            too_large.append(file)
        else:
            (copy / file).write_bytes(git(place, "cat-file", "blob", blob.decode("ascii")))
    snapshot = _snapshot(name, copy)
    snapshot.problems.extend(
        f"{name}, {file}: not read, because it is larger than {MOST_FILE_BYTES:,} bytes" for file in too_large
    )
    snapshot.unreadable.update(file.removesuffix(SUMMARY_SUFFIX) for file in too_large)
    return snapshot


def _snapshot(name: str, folder: Path) -> Snapshot:
    items: dict[tuple[str, str], Entry] = {}
    snapshot = Snapshot(name, folder, items)
    for path in sorted(folder.glob(f"*{SUMMARY_SUFFIX}")):
        stem = path.name.removesuffix(SUMMARY_SUFFIX)
        try:
            baseline = read_baseline(folder, stem)
        except BaselineError as error:
            snapshot.problems.append(_problem(name, folder, error))
            snapshot.unreadable.add(stem)
            continue
        items |= {(stem, item): entry for item, entry in (baseline.items if baseline else {}).items()}
    return snapshot


def _problem(name: str, folder: Path, error: Exception) -> str:
    """Name the snapshot in an error's message, not its folder; of a commit, without advice to restore the file."""
    message = str(error).replace(f"{folder}/", "")
    if name != WORKING_TREE:
        message = message.partition(". Restore it with")[0]
    return f"{name}, {message}"


# Read-only access to the git repository of a folder, through the `git` command.

TIMEOUT = 60
"""Maximum duration of a git command in seconds."""


class GitError(FairnessError):
    """Failure of a `git` command, or absence of the program `git`."""


def git(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    """Return the output of a git command that is run in a folder, with `given` as its input.

    Raises:
        GitError: git cannot be run, the command failed (the message is git's own, on one line), or it took longer than
            `TIMEOUT`.
    """
    try:
        done = subprocess.run(  # noqa: S603 - no shell; callers check what may come from users
            ["git", *arguments],  # noqa: S607 - the git that the user's shell finds
            cwd=folder,
            capture_output=True,
            timeout=TIMEOUT,
            input=given,
            check=False,
        )
    except FileNotFoundError as error:
        raise GitError("git is not installed, or is not on the PATH") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise GitError(f"git cannot be run, or did not end ({error})") from error
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split()).removeprefix("fatal: ")
        raise GitError(said or f"git ended with the exit code {done.returncode}")
    return done.stdout


def commit_description(folder: Path) -> str | None:
    """Return the id of the commit, with a note on uncommitted changes; `None` if git finds no commit."""
    try:
        described = git(folder, "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty").decode("ascii").strip()
    except GitError:
        return None
    commit = described.removesuffix("-dirty")
    return commit if commit == described else f"{commit} with uncommitted changes"


@cache
def ignoring_pattern(path: Path) -> str | None:
    """Return place and pattern by which git ignores a file, as `.gitignore:3 *.gz`; `None` if it does not."""
    try:
        found = git(path.parent, "check-ignore", "--verbose", path.name).decode("utf-8", "replace")
    except GitError:
        return None
    file, line, pattern = found.partition("\t")[0].split(":", 2)
    return f"{file}:{line} {pattern}"
