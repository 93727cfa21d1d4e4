"""Writer of the baselines of a repository, which replaces a file only if its content changes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from pytest_fairness.atomic import replace_file
from pytest_fairness.baselines.answer_sets import Row, answer_set_for, write_answers
from pytest_fairness.baselines.entries import SCHEMA_VERSION, SUMMARY, Entry, first_error
from pytest_fairness.baselines.reading import paths, read_baseline, require_distinct
from pytest_fairness.errors import BaselineError
from pytest_fairness.records import Json


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

    If no entry is left, the files are removed.

    If an item has the same measurement as before, and no new reason is given, its old entry is kept with its `date`,
    `accepted_by` and `reason`, so that the same answers change no byte of the files.

    Args:
        folder: folder of the baselines; it is created if it does not exist.
        name: the probe's name.
        entries: new entries by item id; their `answer_set` is ignored.
        rows: all answers from which the new entries were measured, in any order; duplicates are ignored.
        remove: item ids of the entries to delete.
        keep_answers: whether to write the answers; if not, the new entries name no answer set.

    Raises:
        BaselineError: the old files or the new content are not valid (the old files then stay unchanged), another
            baseline's name differs from `name` only by case, or the new files cannot be written.
    """
    summary_path, answers_path = paths(folder, name)
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
    new = {
        item: _entry_to_store(replace(entry, answer_set=answer_set).sealed(digest), old_items.get(item))
        for item, entry in entries.items()
    }
    summary = {
        "schema": SCHEMA_VERSION,
        "probe": name,
        "items": {item: entry.to_json() for item, entry in {**kept, **new}.items()},
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


def _entry_to_store(entry: Entry, old: Entry | None) -> Entry:
    """Return the old entry if the new entry has the same measurement and no new reason; otherwise the new entry."""
    if old is not None and entry.reason in (None, old.reason) and entry.same_measurement(old):
        return old
    return entry


def _summary_bytes(summary: Mapping[str, Json]) -> bytes:
    text = json.dumps(summary, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    # Python escapes a lone surrogate in the same way as JSON.
    return text.encode("utf-8", "backslashreplace")
