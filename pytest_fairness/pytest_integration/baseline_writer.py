"""Writer of new baselines at the end of a run, and of the lines about them in the terminal summary."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial

from pytest_fairness.baselines.changes import ignoring_pattern
from pytest_fairness.baselines.entries import Entry, Row
from pytest_fairness.baselines.files import Baseline, read_baseline, update_baseline
from pytest_fairness.errors import BaselineError, FairnessError, counted
from pytest_fairness.pytest_integration.item_results import Record
from pytest_fairness.pytest_integration.items import PROBE_SUFFIXES
from pytest_fairness.records import ItemResult
from pytest_fairness.reports.formatting import number, printable
from pytest_fairness.reports.terminal import Line
from pytest_fairness.run import Run


def write_baseline(
    run: Run,
    name: str,
    records: Sequence[Record],
    rebaseline_command: Callable[[str], Sequence[str] | None],
    *,
    rebaseline: bool,
) -> list[Line]:
    """Write the new entries of a baseline, if there are any; return the summary's lines about the baseline.

    Raises:
        BaselineError: there are new entries, but the old files are damaged or the new files cannot be written.
    """
    folder = run.settings.baselines
    siblings: Mapping[str, bool] = next((record["siblings"] for record in records if record.get("siblings")), {})
    new = {record["result"]["id"]: record for record in records if record.get("entry")}
    try:
        old = read_baseline(folder, name)
    except BaselineError:
        if new:
            raise
        return []  # each item of the probe has reported the error
    file = records[0]["result"]["nodeid"].partition("::")[0]
    own = {
        item
        for item, entry in (old.items if old else {}).items()
        if entry.file in (None, file) or not (run.settings.root / entry.file).is_file()
    }
    without_item = sorted(own - set(siblings)) if siblings else []
    is_complete = bool(siblings) and all(skipped or item in new for item, skipped in siblings.items())
    lines = []
    if new:
        update_baseline(
            folder,
            name,
            {item: Entry.from_json(record["entry"]) for item, record in new.items()},
            _rows(run, new.values()),
            remove=without_item if is_complete else (),
            keep_answers=run.settings.baseline_responses,
        )
        written = read_baseline(folder, name)
        for item, entry in (written.items if written else {}).items():
            if item in new:
                new[item]["result"]["baseline"] = entry.for_reports()
        lines += _entry_lines(name, new, old, written)
        if written and (pattern := ignoring_pattern(written.answers_path)):
            text = f"git ignores {written.answers_path.name} ({pattern}), so other checkouts lack it: commit it"
            lines.append(Line(printable(text), {"yellow": True}))
    if rebaseline:
        lines += _unjudgeable_item_lines(name, [record for record in records if not record.get("entry")])
    return [*lines, *_orphaned_entry_lines(name, without_item, None if is_complete else rebaseline_command(file))]


def orphans(run: Run, records: Iterable[Record], *, all_targets: bool) -> list[str]:
    """Return the baselines that belong to no item, as `probe: item`, or as `probe` if no item is left.

    An entry of a probe file that this run did not select is not judged. A baseline whose probe file is gone belongs to
    the probe of the same name, if there is one.
    """
    known: dict[str, set[str]] = defaultdict(set)
    files = set()
    for record in records:
        known[record["baseline"]] |= {record["result"]["id"], *(record.get("siblings") or ())}
        files.add(record["result"]["nodeid"].partition("::")[0])
    names = cache(partial(_probe_names, run))

    def is_lost(name: str, probe: str, file: str) -> bool:
        """Return whether no item is left for an entry of this file: its probe was read, or the file is gone."""
        if (run.settings.root / file).is_file():
            return file in files and not file.endswith(".py")  # of a test file, only some tests may have been selected
        return name in known or probe not in names()

    found = []
    for path in sorted(run.settings.baselines.glob("*.json")):
        name, probe, target = path.stem, *path.stem.rpartition("@")[::2]
        try:
            baseline = read_baseline(run.settings.baselines, name)
        except BaselineError:  # the items of the probe report the error
            continue
        if baseline is None or (probe and target not in run.settings.targets and not all_targets):
            continue
        of_probe = {f"{probe}@{each}" for each in run.settings.targets}
        if name in of_probe - known.keys() and of_probe & known.keys():
            continue  # the run has selected items of other targets only
        without = [
            item
            for item, entry in sorted(baseline.items.items())
            if entry.file is not None and item not in known.get(name, ()) and is_lost(name, probe or name, entry.file)
        ]
        found += [name] if len(without) == len(baseline.items) else [f"{name}: {item}" for item in without]
    return found


def _probe_names(run: Run) -> set[str]:
    names = set()
    for folder in run.settings.probes:
        for path in (folder, *folder.rglob("*")):
            if path.suffix.lower() in PROBE_SUFFIXES:
                names.add(path.stem)
                with suppress(FairnessError):
                    names.add(run.load(path).name)
    return names


def _rows(run: Run, records: Iterable[Record]) -> list[Row]:
    return [
        Row(labels, trial, text, judged, refused)
        for key in sorted({record["answers"] for record in records})
        for labels, trial, text, judged, refused in run.store.cache.get_answers(key)
    ]


def _entry_lines(name: str, records: Mapping[str, Record], old: Baseline | None, new: Baseline | None) -> list[Line]:
    """Return lines about the new entries of a baseline: old and new value of each changed entry.

    `records` has the items with new entries, by id; `old` and `new` are the baseline before and after the entries were
    written. Unchanged entries are only counted.
    """
    before = old.items if old else {}
    after = {item: entry for item, entry in (new.items if new else {}).items() if item in records}
    changed = {item: entry for item, entry in sorted(after.items()) if entry != before.get(item)}
    unchanged = [Line(f"{counted(len(after) - len(changed), 'baseline')} of {printable(name)} unchanged")]
    if not changed:
        return unchanged
    lines = [Line(f"new baselines of {printable(name)}:")]
    for item, entry in changed.items():
        was = number(before[item].value) if item in before else "none"
        lines.append(Line(f"  {printable(item)}: {was} -> {number(entry.value)}{_run_to_run_phrase(records[item])}"))
    return [*lines, *(unchanged if len(changed) < len(after) else [])]


def _unjudgeable_item_lines(name: str, records: Sequence[Record]) -> list[Line]:
    results = [ItemResult.from_json(record["result"]) for record in records]
    return [
        Line(
            f"no baseline written for {printable(result.id)} of {printable(name)}: "
            f"{printable(result.measurement.concerns[0].message)}",
            {"yellow": True},
        )
        for result in results
        if result.measurement is not None and not result.measurement.judgeable
    ]


def _run_to_run_phrase(record: Record) -> str:
    """Return a phrase with the standard deviation between runs; an empty text if the standard deviation is unknown.

    The phrase also suggests a larger tolerance if the tolerance is below two standard deviations.
    """
    spread = record["entry"].get("run_to_run")
    if spread is None:
        return ""
    least, tolerance = 2 * spread["sd"], record["result"]["tolerance"]
    advice = (
        "" if tolerance >= least else f"; the tolerance {number(tolerance)} is too small, {number(least)} is enough"
    )
    return f" (standard deviation between {spread['runs']} runs {number(spread['sd'])}{advice})"


def _orphaned_entry_lines(name: str, entries: Sequence[str], command: Sequence[str] | None) -> list[Line]:
    """Return lines about a baseline's entries whose items no longer exist."""
    if not entries:
        return []
    text = f"baselines of {printable(name)} that belong to no item of the probe: {', '.join(map(printable, entries))}"
    if command is None:
        return [Line(f"{text} (removed)", {"yellow": True})]
    return [
        Line(f"{text}. To remove them, rebaseline the whole probe:", {"yellow": True}),
        Line(shlex.join(command)),
    ]
