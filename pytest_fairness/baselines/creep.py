"""Creep: the sum of the accepted changes of an item since its first baseline, from the git history of the baselines."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pytest_fairness.audits import registry
from pytest_fairness.baselines.changes import SUMMARY_SUFFIX, GitError, Key, git, repository_of
from pytest_fairness.baselines.entries import Entry
from pytest_fairness.baselines.files import PROMPTS, parse_summary
from pytest_fairness.errors import BaselineError, FairnessError
from pytest_fairness.records import Creep
from pytest_fairness.stats import intervals

MOST_AT_ONCE = 200
"""Maximum number of versions of files that git returns at a time."""


def creep_of(folder: Path, current: Mapping[Key, Entry], revision: str = "HEAD") -> dict[Key, Creep]:
    """Return the creep of each item with at least two accepted changes; empty without a git repository.

    The sum begins anew with a baseline of other groups or settings, but not of other prompts, and with one that was
    deleted before.

    Args:
        folder: folder of the baselines, in the working tree.
        current: the last entries, by name of the baseline and id of the item.
        revision: the last commit that counts.
    """
    accepted: defaultdict[Key, list[Entry]] = defaultdict(list)
    with suppress(FairnessError):
        for name, old_name, items in _versions(folder, revision):
            for key in [key for key in accepted if key[0] == old_name]:
                accepted[name, key[1]] = accepted.pop(key)
            for key in [key for key in accepted if key[0] == name and key[1] not in items]:
                del accepted[key]
            for item, entry in items.items():
                _accept(accepted[name, item], entry)
    found = {}
    for key, entry in current.items():
        _accept(accepted[key], entry)
        if (creep := _sum_of(key[1], accepted[key])) is not None:
            found[key] = creep
    return found


def is_shallow(folder: Path) -> bool:
    """Return whether the history of a folder's repository is incomplete or absent."""
    try:
        return git(repository_of(folder)[0], "rev-parse", "--is-shallow-repository").strip() != b"false"
    except FairnessError:
        return True


def _accept(entries: list[Entry], entry: Entry) -> None:
    if entries and (entries[-1].value, entries[-1].answers) == (entry.value, entry.answers):
        return
    if entries and _compared(entries[-1]) != _compared(entry):
        entries.clear()
    entries.append(entry)


def _compared(entry: Entry) -> dict[str, str]:
    return {part: digest for part, digest in entry.fingerprint.items() if part not in PROMPTS}


def _sum_of(item: str, entries: list[Entry]) -> Creep | None:
    info = registry.info_of(item.partition("[")[0])
    if len(entries) < 3 or info is None:  # a single change adds nothing up
        return None
    first, last = entries[0], entries[-1]
    errors = [entry.standard_error for entry in (first, last) if entry.standard_error is not None]
    return Creep(
        value=float(info.loss(last.value) - info.loss(first.value)),
        half_width=intervals.quantile(0.975) * math.hypot(*errors) if len(errors) == 2 else None,
        changes=len(entries) - 1,
        since=first.date[:10],
        tolerance=info.tolerance if last.tolerance is None else last.tolerance,
    )


def _versions(folder: Path, revision: str) -> Iterator[tuple[str, str | None, Mapping[str, Entry]]]:
    """Yield each version of each baseline, the oldest first: its name, its former name if renamed, and its entries.

    A deleted baseline has no entries.
    """
    place, inside = repository_of(folder)
    pattern = f":(top,glob){'' if inside == '.' else f'{inside}/'}*{SUMMARY_SUFFIX}"
    with suppress(GitError):  # no commit yet
        log = git(place, "log", "--reverse", "--format=", "--raw", "--no-abbrev", "-M", revision, "--", pattern)
        lines = [line.split("\t") for line in log.decode("utf-8", "replace").splitlines() if line.startswith(":")]
        for start in range(0, len(lines), MOST_AT_ONCE):
            some = [(facts.split(), paths) for facts, *paths in lines[start : start + MOST_AT_ONCE]]
            texts = _blobs(place, [facts[3] for facts, _ in some if facts[4] != "D"])
            for facts, paths in some:
                names = [Path(path).name.removesuffix(SUMMARY_SUFFIX) for path in paths]
                former = names[0] if len(names) > 1 else None
                with suppress(BaselineError):  # a version that was damaged, or of another format
                    yield names[-1], former, {} if facts[4] == "D" else parse_summary(Path(names[-1]), next(texts))[1]


def _blobs(place: Path, hashes: list[str]) -> Iterator[str]:
    """Yield the texts of git's objects with these hashes."""
    content = git(place, "cat-file", "--batch", given="".join(f"{each}\n" for each in hashes).encode())
    start = 0
    for _ in hashes:
        end = content.index(b"\n", start)
        size = int(content[start:end].split()[2])
        yield content[end + 1 : end + 1 + size].decode("utf-8", "replace")
        start = end + size + 2
