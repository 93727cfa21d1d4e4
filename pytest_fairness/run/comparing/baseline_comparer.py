"""Comparison of measurements with their baselines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path

from pytest_fairness.audits.comparisons import shared_changes
from pytest_fairness.baselines.answer_sets import Row
from pytest_fairness.baselines.entries import Entry, rounded
from pytest_fairness.baselines.fingerprints import changed_sampling, fingerprints, stale_parts
from pytest_fairness.baselines.git import ignoring_pattern
from pytest_fairness.baselines.reading import Baseline, paths, read_baseline, require_own
from pytest_fairness.baselines.verdicts import tolerance_of
from pytest_fairness.errors import BaselineError, BaselineStale, NotMeasurable
from pytest_fairness.options import RunSettings
from pytest_fairness.probes import Probe
from pytest_fairness.probes.field_types import display_path
from pytest_fairness.recent import Recent
from pytest_fairness.records import Answer, Comparison
from pytest_fairness.run.comparing import stored_values
from pytest_fairness.run.comparing.baseline_rows import answer_from, require_same_judge
from pytest_fairness.run.items.probe_items import ProbeItem
from pytest_fairness.run.measuring import noise
from pytest_fairness.run.measuring.measurements import KEPT_ANSWERS, ItemMeasurement, digest
from pytest_fairness.run.measuring.measurer import Measurer


@dataclass(frozen=True)
class BaselineComparison:
    """Comparison of an item with its baseline; empty if the item has no baseline.

    Attributes:
        entry: the item's entry in the baseline.
        stale_parts: names of inputs that changed since the baseline was made; a stale baseline has no comparison.
        comparison: change of the item since the baseline.
        answers: the item's answers in the baseline.
        note: sentence about the baseline that is added to the verdict's reason.
        new: whether the current run becomes the baseline.
    """

    entry: Entry | None = None
    stale_parts: Sequence[str] = ()
    comparison: Comparison | None = None
    answers: Sequence[Answer] = ()
    note: str | None = None
    new: bool = False


class BaselineComparer:
    """Comparer of measurements with the baselines in a folder.

    Args:
        settings: the run's settings; the folder of the baselines and the root are used.
        started: start of the run, in seconds since the epoch; it becomes the date of new baselines.
        measurer: measurer that measures the answers of baselines.
        most_kept: number of answers up to which a baseline stays in memory for the next item of its probe; a larger
            baseline is read again.
    """

    def __init__(self, settings: RunSettings, started: float, measurer: Measurer, most_kept: int = 100_000) -> None:
        self._folder, self._root = settings.baselines, settings.root
        self._started, self._measurer, self._most_kept = started, measurer, most_kept
        self._kept: Baseline | None = None
        self._probe: Probe | None = None

    def compare(self, measured: ItemMeasurement) -> BaselineComparison:
        """Return the baseline of a measured item, and the item's change since the baseline.

        Raises:
            BaselineError: a file of the baseline is damaged or was edited, its answers cannot be measured, or the
                baseline belongs to another probe or test file.
        """
        item = measured.item
        baseline = self._read(item)
        entry = baseline.items.get(item.id) if baseline else None
        if baseline is None or entry is None:
            return BaselineComparison()
        stale = stale_parts(entry, item.fingerprint)
        if item.asks and item.probe.compare_sampling:
            stale += changed_sampling(entry, item.probe.sampling.to_json())
        if stale:
            return BaselineComparison(entry, stale)
        stored_values.require_possible(item, baseline, entry)
        try:
            rows = baseline.answers(entry.answer_set)
            answers = self._answers(item, rows)
            # Lists of answers are deleted as soon as possible, to save memory.
            all_answers = answers if item.stage == item.for_baseline.stage else self._answers(item.for_baseline, rows)
            del rows
            stored, (entry, note) = entry, self._with_checked_value(item.for_baseline, baseline, entry, all_answers)
            stored_values.require_unedited(item, baseline, stored)
            del all_answers
            # A large baseline is read again for each item, to save memory.
            self._kept = baseline if baseline.size <= self._most_kept else None
            path = baseline.answers_path
            del baseline
            return BaselineComparison(entry, (), self._change(measured, entry, answers, path), answers, note)
        except BaselineStale as error:
            return BaselineComparison(entry, error.parts)

    def new_baseline(self, measured: ItemMeasurement) -> BaselineComparison:
        """Return the measurement as a new baseline, without a comparison.

        Raises:
            BaselineError: the stored baseline belongs to another probe or test file.
        """
        item = measured.item
        try:
            stored = read_baseline(self._folder, item.baseline_name)
        except BaselineError:  # reported when the new baseline is written
            stored = None
        require_own(stored, item.id, item.file, self._root)
        entry = Entry.measured(
            measured.measurement,
            target=measured.target,
            sampling=item.probe.sampling.to_json() if item.asks else {},
            fingerprint=fingerprints(item.fingerprint),
            date=datetime.fromtimestamp(self._started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            run_to_run=noise.run_to_run(item, self._measurer.answers.prepared(item, measured.answers)),
            measured_by=stored_values.measured_by(item),
            served=measured.served,
            file=display_path(item.file, self._root),
            labels=item.labels,
            limit=item.settings.limit,
            tolerance=tolerance_of(item.audit, item),
            contributions=item.audit.contributions(measured.measurement),
        )
        return BaselineComparison(entry, new=True)

    def digest(self, item: ProbeItem) -> str:
        """Return a hash of the files of the item's baseline, with their paths."""
        digest = sha256()
        for path in paths(self._folder, item.baseline_name):
            digest.update(bytes(path) + b"\0")
            with suppress(FileNotFoundError):
                digest.update(sha256(path.read_bytes()).digest())
        return digest.hexdigest()

    def is_shared(self, item: ProbeItem) -> bool:
        """Return whether the item's baseline also has entries of another probe or test file."""
        baseline = read_baseline(self._folder, item.baseline_name, self._kept)
        own = display_path(item.file, self._root)
        return baseline is not None and any(entry.file not in (None, own) for entry in baseline.items.values())

    def forget(self) -> None:
        """Free the answers of the last baseline."""
        self._kept = self._probe = None

    def _read(self, item: ProbeItem) -> Baseline | None:
        """Return the item's baseline; the baseline in memory is used if its files are unchanged."""
        baseline = read_baseline(self._folder, item.baseline_name, self._kept)
        require_own(baseline, item.id, item.file, self._root)
        return baseline

    def _with_checked_value(
        self, item: ProbeItem, baseline: Baseline, entry: Entry, answers: Sequence[Answer]
    ) -> tuple[Entry, str | None]:
        """Return the entry with the value measured again from the answers, and a note if the stored value differs.

        Without answers, the entry is returned unchanged.
        """
        if not answers:
            return entry, None

        def value() -> float:
            return float(item.audit.value(item, self._measurer.answers.prepared(item, answers)))

        try:
            own = self._measurer.stored("value", item, [answers], float, value)
            if not stored_values.measured_alike(item, entry):
                # Answers that were unread then may be read now.
                measured = self._measurer.measure_answers(item, answers, entry.target).measurement
                entry = replace(entry, n=dict(measured.n), missing=dict(measured.missing))
        except NotMeasurable as error:
            reason = str(error).removesuffix(".")
            raise BaselineError(
                f"{baseline.answers_path}: the answers of {item.id} cannot be measured: {reason}. Make a new baseline "
                "with --fairness-rebaseline.",
                fixed_by_rebaseline=True,
            ) from error
        return stored_values.check_stored_value(item, baseline, entry, own)

    def _change(
        self, measured: ItemMeasurement, entry: Entry, answers: Sequence[Answer], answers_path: Path
    ) -> Comparison:
        """Return the change since the baseline: zero if the answers are the same as in the baseline.

        If the answers are missing or cannot be compared, only the values are compared.
        """
        item = measured.item
        # The value is rounded as in the baseline; otherwise a run would differ from its own baseline.
        measurement = replace(measured.measurement, value=rounded(measured.value))
        by_value = partial(
            item.audit.compare_values, measurement, entry.value, entry.standard_error, from_answers=False
        )
        if not answers and item.probe.equal_prompts.copies:
            # The stored standard error may be that of answers which several records shared.
            raise BaselineStale(["answers to equal prompts, which are no longer stored"])
        if not answers:
            found = by_value()
            pattern = None if answers_path.exists() else ignoring_pattern(answers_path)
            why = f"{answers_path.name} is absent, as git ignores it ({pattern})"
            return replace(found, details={"answers_not_compared": why}) if pattern else found

        def comparison() -> Comparison:
            require_same_judge(measured.answers, answers)
            runs = (self._measurer.answers.prepared(item, each) for each in (measured.answers, answers))
            found = item.audit.compare(item, *runs)
            if digest(answers) == digest(measured.answers):
                return _without_change(found)
            counted = (measured.counted_answers, item.audit.counted_answers(item, answers))
            return replace(found, shared_changes=shared_changes(item, *counted))

        try:
            return self._measurer.stored("compare", item, [measured.answers, answers], Comparison.from_json, comparison)
        except NotMeasurable as error:
            found = by_value()
            return replace(found, details={**found.details, "answers_not_compared": str(error).rstrip(".")})

    def _answers(self, item: ProbeItem, rows: Iterable[Row]) -> list[Answer]:
        if item.probe is not self._probe:
            self._probe, self._answer = item.probe, Recent(partial(answer_from, probe=item.probe), KEPT_ANSWERS)
        return list(map(self._answer, item.select_own(rows)))


def _without_change(comparison: Comparison) -> Comparison:
    """Return the comparison with a change of zero, for a run with the same answers as the baseline."""
    shift = comparison.value
    interval = comparison.interval and (comparison.interval[0] - shift, comparison.interval[1] - shift)
    return replace(comparison, value=0.0, interval=interval, p_value=1.0, same_answers=True)
