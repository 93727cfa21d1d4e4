"""Baseline files: reader and writer of a repository's baselines, and fingerprints of probes."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from pytest_fairness.baselines import entries
from pytest_fairness.baselines.entries import (
    SCHEMA_VERSION,
    SUMMARY,
    Entry,
    Row,
    answer_set_for,
    first_error,
    write_answers,
)
from pytest_fairness.errors import BaselineError
from pytest_fairness.probes.field_types import display_path, name_key, name_problem
from pytest_fairness.records import Json, current_id
from pytest_fairness.resources import replace_file
from pytest_fairness.version import __version__

# Reader of the baselines of a repository: for each probe, a readable summary and the answers that were measured.
#
# `<probe>.json` is the summary, in a form that is easy to read in a diff. `<probe>.responses.jsonl` holds the answers
# in answer sets, many of them compressed as `.gz`. An entry of the summary names the answer set of its measurement.

Stamp = tuple[int, int]


@dataclass(frozen=True)
class Baseline:
    """Baseline of one probe; equal objects have the same answers, because equal `stamps` mean unchanged files.

    Attributes:
        items: entries of the summary, by item id.
        summary_path: path of the summary.
        stamps: modification time (ns) and size (bytes) of each of `paths`; `None` for a file that does not exist.
    """

    items: Mapping[str, Entry]
    summary_path: Path
    stamps: Sequence[Stamp | None]

    def answers(self, answer_set: str | None) -> list[Row]:
        """Return an answer set's sorted answers, if kept; raise `BaselineError` if the file is damaged or lacks it."""
        if answer_set is None or self.answer_sets is None:
            return []
        if answer_set not in self.answer_sets:
            raise BaselineError(
                f"{self.answers_path}: the answer set {answer_set}, to which {self.summary_path.name} refers, is "
                "missing. Restore both files from the same commit, or delete both and make new ones with "
                "--fairness-rebaseline.",
                fixed_by_rebaseline=True,
            )
        return list(self.answer_sets[answer_set])

    @property
    def answers_path(self) -> Path:
        """Return the path of the file of answers, which may be absent."""
        path = _answers_path(self.summary_path)
        return entries.compressed(path) if entries.compressed(path).exists() and not path.exists() else path

    @property
    def size(self) -> int:
        return sum(map(len, (self.answer_sets or {}).values()))

    @cached_property
    def answer_sets(self) -> Mapping[str, Sequence[Row]] | None:
        """Answers by answer set, read at the first access; `None` if the file is absent."""
        return entries.read_answers(_answers_path(self.summary_path))


def read_baseline(folder: Path, name: str, known: Baseline | None = None) -> Baseline | None:
    """Return the probe's baseline, if there is one; `known`, which was read before, if its files are unchanged.

    Raises:
        BaselineError: the summary cannot be read or is not valid, or its probe's name differs from `name` only by case.
    """
    summary_path, *_ = files = paths(folder, name)
    stamps = tuple(map(_stamp, files))
    if known is not None and (known.summary_path, known.stamps) == (summary_path, stamps):
        return known
    try:
        text = summary_path.read_text("utf-8-sig")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BaselineError(
            f"{summary_path}: cannot be read ({error.strerror}). Make it readable, or move it away."
        ) from error
    except UnicodeDecodeError as error:
        raise entries.damaged_file_error(summary_path, "is not UTF-8") from error
    stored, items = parse_summary(summary_path, text)
    if stored != name and name_key(stored) == name_key(name):
        raise _case_error(summary_path, stored, name)
    return Baseline(items, summary_path, stamps)


def require_own(baseline: Baseline | None, item: str, file: Path, root: Path) -> None:
    """Raise `BaselineError` if the item's baseline belongs to another existing probe file or Python test file.

    Tests in different Python files may share a baseline; then only the entry of this item is checked. Paths in entries
    are relative to `root`.
    """
    if baseline is None:
        return
    own = display_path(file, root)
    for other in sorted({entry.file for entry in baseline.items.values() if entry.file is not None} - {own}):
        path = root / other
        shared = file.suffix == path.suffix == ".py"
        if shared and (item not in baseline.items or baseline.items[item].file != other):
            continue
        if path.is_file() and not (file.is_file() and file.samefile(path)):
            raise BaselineError(
                f"{own}: {baseline.summary_path} is already the baseline of {other!r}. Rename the probe or test in one "
                f"of the two files. If {other!r} no longer uses this name, delete the baseline first."
            )


def require_distinct(folder: Path, name: str) -> None:
    """Raise `BaselineError` if the folder has a baseline whose name differs from `name` only by case."""
    for path in folder.glob("*.json"):
        if path.stem != name and name_key(path.stem) == name_key(name):
            raise _case_error(path, path.stem, name)


def _case_error(path: Path, stored: str, name: str) -> BaselineError:
    return BaselineError(
        f"{path}: holds the baseline of {stored!r}. This name differs from {name!r} only by case, and Windows and "
        f"macOS treat both names as one file. Rename one of the two probes. If {stored!r} was renamed, rename the "
        "baseline's files, too."
    )


def paths(folder: Path, name: str) -> tuple[Path, Path, Path]:
    """Return the paths of the summary, of the answers as text and of compressed answers.

    Raises:
        BaselineError: the name cannot be that of a file.
    """
    if (problem := name_problem(name)) is not None:
        raise BaselineError(f"A baseline cannot be named {name!r}: {problem}. Choose another name.")
    summary = folder / f"{name}.json"
    answers = _answers_path(summary)
    return summary, answers, entries.compressed(answers)


def _answers_path(summary: Path) -> Path:
    return summary.with_suffix(".responses.jsonl")


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:  # the reader of the file reports the error
        return None
    return status.st_mtime_ns, status.st_size


def parse_summary(path: Path, text: str) -> tuple[str, Mapping[str, Entry]]:
    """Return the name of the probe and the entries in the text of a summary; raise `BaselineError` if it is invalid."""
    conflict = re.search(r"^(<<<<<<<|>>>>>>>) ", text, re.MULTILINE)
    if conflict:
        raise entries.damaged_file_error(
            path, "holds an unresolved merge conflict", text.count("\n", 0, conflict.start()) + 1
        )
    try:
        data = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        raise entries.damaged_file_error(path, f"is not JSON ({error.msg})", error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise entries.damaged_file_error(path, f"is not a baseline ({error})") from error
    version = data.get("schema") if isinstance(data, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise BaselineError(
            f"{path}: the file has the schema {version} of a newer pytest-fairness; version {__version__} reads schema "
            f"{SCHEMA_VERSION}. Upgrade pytest-fairness."
        )
    if version != SCHEMA_VERSION:
        raise entries.damaged_file_error(path, f'is not a baseline ("schema" is not {SCHEMA_VERSION})')
    try:
        summary = SUMMARY.validate_python(data)
    except ValidationError as error:
        raise entries.damaged_file_error(path, f"is not a baseline ({entries.first_error(error)})") from error
    # A file of version 0.2 with a named target has ids in their former form.
    return summary.probe, {current_id(item): entry for item, entry in summary.items.items()}


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for name, value in pairs:
        if name in result:
            raise ValueError(f"the key {name!r} occurs twice")
        result[name] = value
    return result


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a finite number")


# Writer of the baselines of a repository, which replaces a file only if its content changes.


def update_baseline(
    folder: Path,
    name: str,
    entries: Mapping[str, Entry],
    rows: Iterable[Row],
    *,
    remove: Collection[str] = (),
    keep_answers: bool = True,
) -> None:
    """Write new entries into a probe's baseline; the other entries and their answers stay as they are.

    The folder is created, and files without entries are removed. An item with the same measurement keeps its old entry
    and `date`, so that the same answers change no byte.

    Raises:
        BaselineError: the old files or the new content are not valid (the old files then stay unchanged), another
            baseline's name differs from `name` only by case, or the new files cannot be written.
    """
    summary_path, answers_path, _ = paths(folder, name)
    require_distinct(folder, name)
    old = read_baseline(folder, name)
    old_items = old.items if old else {}
    kept = {item: entry for item, entry in old_items.items() if item not in entries and item not in remove}
    answer_sets: dict[str, Sequence[Row]] = {}
    if old is not None and old.answer_sets is None:
        # Somebody removed the file of answers: kept entries can refer to no answer set any more.
        kept = {item: replace(entry, answer_set=None) for item, entry in kept.items()}
    elif old is not None:
        needed = {entry.answer_set for entry in kept.values() if entry.answer_set is not None}
        answer_sets = {answer_set: old.answers(answer_set) for answer_set in needed}
    new_rows = list(rows)
    digest = answer_set_for(new_rows, {})
    new_rows = new_rows if keep_answers else []
    answer_set = answer_set_for(new_rows, answer_sets)
    if answer_set is not None:
        answer_sets.setdefault(answer_set, new_rows)
    sealed = {item: replace(entry, answer_set=answer_set).sealed(digest) for item, entry in entries.items()}
    new = {
        item: old_items[item] if item in old_items and entry.same_measurement(old_items[item]) else entry
        for item, entry in sealed.items()
    }
    summary = {
        "schema": SCHEMA_VERSION,
        "probe": name,
        "items": {item: entry.to_json() for item, entry in sorted({**kept, **new}.items())},
    }
    try:
        SUMMARY.validate_python(summary)
    except ValidationError as error:
        raise BaselineError(
            f"{summary_path} was not written, because its new content would be invalid ({first_error(error)}); the old "
            "file is unchanged. If the audits and scorers are not your own, please report this error."
        ) from error
    try:
        # The first write keeps the old answer sets, too: the old summary stays valid if the run is killed in between.
        write_answers(answers_path, {**((old and old.answer_sets) or {}), **answer_sets})
        if summary["items"]:
            replace_file(summary_path, _summary_bytes(summary))
        else:
            summary_path.unlink(missing_ok=True)
        write_answers(answers_path, answer_sets)
    except OSError as error:
        raise BaselineError(
            f"{error.filename or summary_path}: cannot be written ({error.strerror}). Make it writable."
        ) from error


def _summary_bytes(summary: Mapping[str, Json]) -> bytes:
    text = json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    # Python escapes a lone surrogate in the same way as JSON.
    return text.encode("utf-8", "backslashreplace")


# Fingerprints of the parts of a probe that affect an item, and their comparison with the item's baseline.

NOT_SET = "not set"
PROMPTS = {"prompt", "neutral", "system"}
"""Parts whose change leaves groups, audits and the reading of answers as they are."""
NAMES = {"system": "system prompt"}
"""Names of parts for readers, where the stored name is not clear."""


def fingerprints(parts: Mapping[str, Json]) -> dict[str, str]:
    """Return the first 12 hex digits of the SHA-256 of each part's sorted JSON."""
    return {
        part: sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12] for part, content in parts.items()
    }


def stale_parts(entry: Entry, parts: Mapping[str, Json]) -> list[str]:
    """Return the sorted names of the probe's parts that differ from the baseline, with ` (added)` or ` (removed)`."""
    return changed_parts(fingerprints(parts), entry.fingerprint)


def changed_parts(current: Mapping[str, str], baseline: Mapping[str, str]) -> list[str]:
    """Return the sorted names of the parts whose fingerprints differ, as `stale_parts` does."""

    def name(part: str) -> str:
        note = " (added)" if part not in baseline else " (removed)" if part not in current else ""
        return f"{NAMES.get(part, part)}{note}"

    return sorted(name(part) for part in {*current, *baseline} if current.get(part) != baseline.get(part))


def changed_sampling(entry: Entry, sampling: Mapping[str, Json]) -> list[str]:
    """Return the sampling parameters and further fields that differ, each as `temperature OLD → NEW`.

    A different seed is no difference, because it only draws another sample from the same distribution.
    """

    def shown(fields: Mapping[str, Json], name: str) -> str:
        return json.dumps(fields[name], ensure_ascii=False) if name in fields else NOT_SET

    current, baseline = entries.rounded(sampling), entries.rounded(entry.sampling)
    return [
        f"{name} {shown(baseline, name)} → {shown(current, name)}"
        for name in sorted({*current, *baseline} - {"seed"})
        if current.get(name) != baseline.get(name)
    ]
