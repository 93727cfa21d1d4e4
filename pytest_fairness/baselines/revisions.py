"""Two versions of a folder's baselines, each read from the working tree or from a commit of its git repository."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from pytest_fairness.baselines.answer_sets import Row, read_answers
from pytest_fairness.baselines.entries import Entry
from pytest_fairness.baselines.git import GitError, git
from pytest_fairness.baselines.reading import read_baseline
from pytest_fairness.errors import BaselineError, FairnessError

SUMMARY_SUFFIX, ANSWERS_SUFFIX = ".json", ".responses.jsonl.gz"
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
        """Return a baseline's answers by answer set; an empty mapping if the file is absent or cannot be read.

        A file that cannot be read is added to `problems`.
        """
        path = self.folder / f"{baseline}{ANSWERS_SUFFIX}"
        try:
            return read_answers(path, MOST_ANSWER_BYTES) or {}
        except BaselineError as error:
            self.problems.append(_problem(self.name, self.folder, error))
            return {}


@dataclass(frozen=True)
class Revisions:
    """The two revisions whose baselines are compared.

    Attributes:
        old, new: ids of the two commits; `new` is `None` for the working tree.
        old_name, new_name: the revisions as the user named them, with their commits.
    """

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
    """Yield the baselines of the old and of the new revision, for a `with` block.

    Args:
        folder: folder of the baselines; it may be missing in the working tree.
        revisions: `REV` (compared with the working tree), `A..B`, or `A...B` (the common ancestor compared with B).

    Raises:
        FairnessError: git is not installed, the folder is in no repository, a revision does not exist, or there is no
            common ancestor.
    """
    place, inside = _repository_of(folder)
    ends = Revisions.parse(place, revisions)
    with TemporaryDirectory() as temporary:
        before = _snapshot_of_commit(place, ends.old, inside, Path(temporary) / "old", ends.old_name)
        if ends.new is None:
            yield before, _snapshot(WORKING_TREE, folder)
        else:
            yield before, _snapshot_of_commit(place, ends.new, inside, Path(temporary) / "new", ends.new_name)


def _repository_of(folder: Path) -> tuple[Path, str]:
    """Return an existing folder of the git repository, and the path of `folder` from the root of the repository.

    Raises:
        FairnessError: git is not installed, or the folder is in no repository.
    """
    place = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    try:
        top = Path(git(place, "rev-parse", "--show-toplevel").decode("utf-8", "surrogateescape").rstrip("\n"))
    except GitError as error:
        raise FairnessError(f"{folder}: baselines cannot be compared with a git revision: {error}.") from error
    return place, Path(os.path.relpath(folder.resolve(), top.resolve())).as_posix()


def _commit_of(place: Path, revision: str) -> str:
    """Return the id of a revision's commit.

    Raises:
        FairnessError: the revision does not exist.
    """
    # A revision that starts with a dash would be an option of git.
    if not revision.startswith("-") and revision.isprintable():
        try:
            return git(place, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode("ascii").strip()
        except GitError:
            pass
    raise FairnessError(
        f"The git repository has no revision {revision!r}. `git log` lists its commits. In a CI job, fetch the whole "
        "history first (actions/checkout with `fetch-depth: 0`)."
    )


def _snapshot_of_commit(place: Path, commit: str, inside: str, copy: Path, name: str) -> Snapshot:
    """Copy the baseline files of a commit to the folder `copy`, and return a snapshot of the commit's baselines.

    Args:
        place: folder inside the repository.
        commit: id of the commit.
        inside: folder of the baselines, relative to the repository's root.
        copy: folder for the copies; it must not exist.
        name: name of the snapshot.
    """
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
        if not mode.startswith(b"100") or not file.endswith((SUMMARY_SUFFIX, ANSWERS_SUFFIX)):
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
    """Return the message of an error about a file, with the snapshot's name in place of the folder's path.

    A message about a commit omits the advice to restore the file.
    """
    message = str(error).replace(f"{folder}/", "")
    if name != WORKING_TREE:
        message = message.partition(". Restore it with")[0]
    return f"{name}, {message}"
