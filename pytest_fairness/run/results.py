"""Results of items: comparison with the baseline, verdict, and all data that reports show."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pytest_fairness.answers import reading
from pytest_fairness.audits.documents import as_written
from pytest_fairness.audits.unit_audit import shared_changes
from pytest_fairness.baselines.changes import ignoring_pattern
from pytest_fairness.baselines.entries import Entry, MeasuredBy, Row, compressed, rounded
from pytest_fairness.baselines.files import (
    Baseline,
    changed_sampling,
    fingerprints,
    read_baseline,
    require_own,
    stale_parts,
)
from pytest_fairness.baselines.verdicts import (
    BaselineEntry,
    change_text,
    decide,
    named_contributors,
    notes_on,
    tolerance_of,
)
from pytest_fairness.errors import BaselineError, BaselineStale, FairnessError, NotMeasurable, joined, on_one_line
from pytest_fairness.options import RunSettings
from pytest_fairness.probes import Probe
from pytest_fairness.probes.field_types import display_path
from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.records import (
    AccumulatedEvidence,
    Against,
    Answer,
    Comparison,
    Explanation,
    ItemResult,
    Json,
    Judged,
    Prompt,
    Quote,
    Size,
    Status,
    Verdict,
    VerdictName,
    reply_in,
)
from pytest_fairness.reports.document import explanation_of
from pytest_fairness.resources import Recent
from pytest_fairness.run import measuring
from pytest_fairness.run.against import BaseRevision
from pytest_fairness.run.items import ProbeItem, effect_in_words
from pytest_fairness.run.measuring import KEPT_ANSWERS, ItemMeasurement, Measurer, digest
from pytest_fairness.run.nights import Line, NightHistory
from pytest_fairness.version import __version__

# Result of one item: its verdict, and all data about the item that reports show.

_FINGERPRINT = re.compile(r" \([^()]*\)$")
SHOWN_MODELS = 3
"""Maximum number of served models that a text names."""


def result_of(measured: ItemMeasurement, compared: BaselineComparison, nodeid: str, accept: str) -> ItemResult:
    measured, compared = in_written_words(measured, compared)
    entry, verdict = compared.entry, verdict_on(measured, compared, accept)
    change = served_change(measured.served, (entry and entry.served) or ())
    # The reasons of the two excluded verdicts end in a command.
    if change and verdict.name not in (VerdictName.STALE_BASELINE, VerdictName.NO_BASELINE):
        verdict = replace(verdict, reason=f"{verdict.reason} Note: the served model changed: {change}.")
    result = _result(measured, compared, nodeid, verdict, change)
    if verdict.name not in (VerdictName.REGRESSION, VerdictName.OVER_LIMIT):
        return result
    explanation = with_shares_of_texts(result.explanation, measured, compared)
    finding = measured.measurement.explanation.finding or measured.item.audit.finding(result)
    return replace(result, explanation=replace(explanation, finding=finding))


def risk_of(probe: Probe) -> Mapping[str, Json] | None:
    """Return the block `risk` of a probe with the keys that are set, as plain JSON; `None` without the block."""
    return None if probe.risk is None else probe.risk.model_dump(mode="json", exclude_defaults=True)


def with_shares_of_texts(
    explanation: Explanation, measured: ItemMeasurement, compared: BaselineComparison
) -> Explanation:
    """Return the explanation whose words have the share of their group's texts with the word, now and in the baseline.

    The first contributor whose share changed comes first. Nothing changes without the baseline's answers, and for
    audits whose words have other numbers, which say more.
    """
    units = {word.unit for word in explanation.words}
    if not compared.answers or explanation.rates or not units or not units <= {"bits", "weight"}:
        return explanation
    item = measured.item
    try:
        now, before = (
            {str(row["word"]).casefold(): row for row in item.audit.word_rows(item, run, measured.measurement.details)}
            for run in (measured.answers, compared.answers)
        )
    except NotMeasurable:
        return explanation
    words = []
    for word in explanation.words:
        row, earlier = (rows.get(word.name.casefold(), {}) for rows in (now, before))
        share = f"share_{'marked' if word.group == row.get('marked') else 'unmarked'}"
        words.append(replace(word, now=row.get(share) or 0.0, before=earlier.get(share) or 0.0, unit="share of texts"))
    order = {part.name: place for place, part in enumerate(explanation.contributors)}
    words.sort(key=lambda word: (word.now == word.before, order.get(word.name, len(order))))
    return replace(explanation, words=words) if words[0].now != words[0].before else explanation


def measured_only(measured: ItemMeasurement, nodeid: str) -> ItemResult:
    """Return the result of an item without a verdict, baseline, limit and tolerance (`--fairness-measure`)."""
    measured, _ = in_written_words(measured, BaselineComparison())
    item, measurement = measured.item, measured.measurement
    result = _result(measured, BaselineComparison(), nodeid, Verdict(VerdictName.MEASURED, ""), None)
    reason, driven = f"{item.id}: {measurement.explanation.phrase}", []
    if result.effect is not None:
        reason = f"{reason}; {result.effect['description']}"
        # A value that may be due to chance has no contributors to name.
        if result.effect["size"] not in (None, Size.NONE):
            driven = named_contributors(item.audit, measurement, None)
    elif item.audit.info.no_effect_size:
        reason = f"{reason}; no effect size: {item.audit.info.no_effect_size}"
    verdict = replace(result.verdict, reason=f"{reason}.{notes_on(measurement)}", contributors=driven)
    return replace(result, verdict=verdict, limit=None, tolerance=None)


def in_written_words(
    measured: ItemMeasurement, compared: BaselineComparison
) -> tuple[ItemMeasurement, BaselineComparison]:
    """Return both with words as the answers write them; baselines and the store keep case-folded words."""
    found, change = measured.measurement, compared.comparison
    details = [found.details, {} if change is None else change.details]
    written = as_written(details, measured.item.probe, measured.counted_answers)
    if written is details:
        return measured, compared
    found = measuring.explained(measured.item, replace(found, details=written[0]))
    change = change and explained(measured.item, replace(change, details=written[1]))
    return replace(measured, measurement=found), replace(compared, comparison=change)


def explained(item: ProbeItem, comparison: Comparison) -> Comparison:
    return replace(comparison, explanation=item.audit.explanation_of_change(item, comparison))


def _about_names(item: ProbeItem) -> list[str]:
    """Return how to test a group, for an item that compares people by few names."""
    axis = item.probe.compared_names(item.labels) if isinstance(item.probe, GenerationProbe) else ""
    lists = "`{unmarked: {GROUP: [names]}, marked: {GROUP: [names]}}`"
    return (
        [f"about these names only; to test groups, list ten names of each under `axes.{axis}`: {lists}"] if axis else []
    )


def _result(
    measured: ItemMeasurement, compared: BaselineComparison, nodeid: str, verdict: Verdict, served: str | None
) -> ItemResult:
    item, entry, measurement = measured.item, compared.entry, measured.measurement
    effect = effect_in_words(item.audit.info, measurement)
    if measured.served:
        found = {
            "served_model": joined(measured.served, SHOWN_MODELS),
            **({"served_model_changed": served} if served else {}),
        }
        measurement = replace(measurement, details={**measurement.details, **found})
    result = replace(
        _unmeasured(item, nodeid, verdict),
        measurement=measurement,
        comparison=compared.comparison,
        runs=compared.runs,
        baseline=entry.for_reports() if entry else None,
        purpose=item.probe.description,
        risk=risk_of(item.probe),
        extra_fields=item.probe.sampling.extra_fields if item.asks else {},
        effect=effect,
        against=compared.against,
    )
    change = compared.comparison
    told = explanation_of(
        {
            "labels": item.labels,
            "n": measurement.n,
            "missing": measurement.missing,
            "change": change and {"value": change.value},
            "details": {**measurement.details, **(change.details if change else {})},
        }
    )
    with_numbers = {part.name: part for own in told.lists for part in own.parts}
    explanation = replace(
        told,
        phrase=measurement.explanation.phrase,
        change="" if change is None else change_text(item.audit, change),
        contributors=[with_numbers.get(part.name, part) for part in item.audit.contributors(measurement, change)],
        contributions=measurement.explanation.contributions,
        notes=[*told.notes, *(str(size) for size in measurement.samples if size.declared), *_about_names(item)],
        examples=() if verdict.name.outcome == "passed" else examples(measured, compared.answers),
    )
    return replace(result, explanation=explanation)


def served_change(current: Sequence[str], baseline: Sequence[str]) -> str | None:
    """Return the change of the models that the server reports, such as `gpt-x-2026-05 → gpt-x-2026-09`.

    The result is `None` if the models of a run are unknown, or if the models did not change. If only the system
    fingerprints changed, the text shows the names with their fingerprints.
    """
    if not current or not baseline or set(current) == set(baseline):
        return None
    before, after = (sorted({_FINGERPRINT.sub("", model) for model in models}) for models in (baseline, current))
    if before == after:
        before, after = list(baseline), list(current)
    return f"{joined(before, SHOWN_MODELS)} → {joined(after, SHOWN_MODELS)}"


def verdict_on(measured: ItemMeasurement, compared: BaselineComparison, accept: str = "") -> Verdict:
    item, entry = measured.item, compared.entry
    units = item.trial_count if item.audit.counted == "trials" else measured.measurement.evidence.units
    return decide(
        item.audit,
        item,
        measured.measurement,
        baseline=BaselineEntry(entry.value, compared.stale_parts, entry.n, entry.missing, compared.note, compared.new)
        if entry
        else None,
        comparison=compared.comparison,
        trials=units if item.asks else None,
        accept=accept,
        runs=compared.runs,
    )


def error_result(item: ProbeItem, error: BaseException, nodeid: str) -> ItemResult:
    name = VerdictName.NOT_MEASURABLE if isinstance(error, NotMeasurable) else VerdictName.ERROR
    reason = on_one_line(error) if isinstance(error, FairnessError) else f"{type(error).__name__}: {on_one_line(error)}"
    return _unmeasured(item, nodeid, Verdict(name, f"{item.id}: {reason}"))


def _unmeasured(item: ProbeItem, nodeid: str, verdict: Verdict) -> ItemResult:
    return ItemResult(
        nodeid=nodeid,
        probe=item.probe.name,
        id=item.id,
        audit=item.audit_name,
        labels=item.labels,
        verdict=verdict,
        limit=item.settings.limit,
        tolerance=tolerance_of(item.audit, item),
        category=item.labels.get("category"),
        method=item.audit.info.to_json(),
    )


# Examples of an item's answers for reports: current answers of several groups, and the baseline's answers.

SHOWN = 2
"""Maximum number of sets of example answers for each item."""
LONGEST = 4000
"""Maximum number of characters of an answer or a prompt."""


def examples(measured: ItemMeasurement, baseline: Iterable[Answer]) -> list[Quote]:
    """Return the answers that the item's audit selects as examples; reports show the answers of a set side by side."""
    item = measured.item
    selection = item.probe.reading.selection
    calls = selection is not None and selection.tool is not None
    chosen = item.audit.examples(item, measured.measurement, measured.counted_answers)[:SHOWN]
    if not chosen:
        return []
    shown = {_key(answer) for side_by_side in chosen for _, answer in side_by_side}
    more = "\n… (further turns follow)" if item.probe.follow_ups.are_turns else ""
    prompts = {
        key: prompt.request.shown_prompt + more
        for prompt in (item.prompts() if item.asks else ())
        if (key := _key(prompt)) in shown
    }
    before = {key: _shown(answer, calls=calls) for answer in baseline if (key := _key(answer)) in shown}
    found = []
    for number, side_by_side in enumerate(chosen, start=1):
        for group, answer in side_by_side:
            key = _key(answer)
            found.append(
                Quote(
                    group=group,
                    text=_shortened(_shown(answer, calls=calls)),
                    status=answer.status.value,
                    before=_shortened(before.get(key)),
                    prompt=_shortened(prompts.get(key)),
                    set=number,
                    labels=dict(answer.labels),
                    trial=answer.trial,
                )
            )
    return found


def _key(of: Answer | Prompt) -> tuple[tuple[tuple[str, str], ...], int]:
    return tuple(sorted(of.labels.items())), of.trial


def _shown(answer: Answer, *, calls: bool) -> str | None:
    """Return the text of an answer for reports; with `calls`, tool calls are written as text."""
    reply = reply_in(answer.text) if calls and answer.text is not None else None
    return answer.text if reply is None else reply.shown


def _shortened(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST else f"{text[:LONGEST]}…"


# Comparison of measurements with their baselines.


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
        against: how the item is judged by another git revision; `None` if the working tree's baseline judges it.
        line: line of this run in the history of nightly runs.
        runs: evidence of all runs since the baseline, if the verdict is based on them.
    """

    entry: Entry | None = None
    stale_parts: Sequence[str] = ()
    comparison: Comparison | None = None
    answers: Sequence[Answer] = ()
    note: str | None = None
    new: bool = False
    against: Against | None = None
    line: Line | None = None
    runs: AccumulatedEvidence | None = None


class Baselines:
    """Comparer of measurements with the baselines in a folder, or with those of another git revision (`base`)."""

    def __init__(
        self,
        settings: RunSettings,
        started: float,
        measurer: Measurer,
        nights: NightHistory | None = None,
        base: BaseRevision | None = None,
        most_kept: int = 100_000,
    ) -> None:
        self._nights, self._base = nights, base
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
        item, base = measured.item, self._base
        key = None if base is None else base.key_of(item)
        if base is None or key is None:
            compared = self._compare(measured, self._read(item), item.id)
            return compared if base is None else replace(compared, against=base.relation(item, None))
        try:
            baseline = read_baseline(base.folder, key[0], self._kept)
            entry = baseline.items.get(key[1]) if baseline else None
            changed = [] if entry is None else base.changed_prompts(item, entry)
            compared = self._compare(measured, baseline, key[1], ignored=changed)
        except BaselineError as error:
            raise base.error(error) from error
        against = base.relation(item, entry, changed)
        notes = [f"compared with the baseline of {base.name}", *against.phrases, *filter(None, [compared.note])]
        return replace(compared, note="; ".join(notes), against=against)

    def _compare(
        self, measured: ItemMeasurement, baseline: Baseline | None, item_id: str, ignored: Sequence[str] = ()
    ) -> BaselineComparison:
        """Return the comparison with an entry of a baseline, although the `ignored` parts of the probe changed."""
        item = measured.item
        entry = baseline.items.get(item_id) if baseline else None
        if baseline is None or entry is None:
            return BaselineComparison()
        stale = [part for part in stale_parts(entry, item.fingerprint) if part not in ignored]
        if item.asks and item.probe.compare_sampling:
            stale += changed_sampling(entry, item.probe.sampling.to_json())
        if stale:
            return BaselineComparison(entry, stale)
        require_possible(item, baseline, entry)
        try:
            rows = baseline.answers(entry.answer_set)
            answers = self._answers(item, rows)
            prompts = [{answer.labels.get("prompt") for answer in run} for run in (answers, measured.answers)]
            if ignored and answers and prompts[0] != prompts[1]:  # another number of prompts
                return BaselineComparison(entry, ignored)
            # Lists of answers are deleted as soon as possible, to save memory.
            all_answers = answers if item.stage == item.for_baseline.stage else self._answers(item.for_baseline, rows)
            del rows
            stored, (entry, note) = entry, self._with_checked_value(item.for_baseline, baseline, entry, all_answers)
            require_unedited(item, baseline, stored)
            del all_answers
            # A large baseline is read again for each item, to save memory.
            self._kept = baseline if baseline.size <= self._most_kept else None
            path = baseline.answers_path
            del baseline
            change = explained(item, self._change(measured, entry, answers, path))
            line, runs = (None, None) if self._nights is None else self._nights.runs_of(measured, entry, change)
            return BaselineComparison(entry, (), change, answers, note, line=line, runs=runs)
        except BaselineStale as error:
            return BaselineComparison(entry, error.parts)

    def compare_runs(
        self, measured: ItemMeasurement, other: ItemMeasurement, ignored: Sequence[str]
    ) -> BaselineComparison:
        """Return the change since another measurement of the run, although the `ignored` parts of the probe differ."""
        entry = Entry.measured(
            other.measurement,
            target=other.target,
            sampling=other.item.probe.sampling.to_json(),
            fingerprint=fingerprints(other.item.fingerprint),
            date=self._date,
        )
        stale = [part for part in stale_parts(entry, measured.item.fingerprint) if part not in ignored]
        if stale:
            return BaselineComparison(entry, stale)
        change = self._change(measured, entry, other.answers, self._folder)
        return BaselineComparison(entry, (), explained(measured.item, change), other.answers)

    @property
    def _date(self) -> str:
        return datetime.fromtimestamp(self._started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

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
            date=self._date,
            run_to_run=measuring.run_to_run_noise(item, self._measurer.prepared(item, measured.answers)),
            measured_by=measured_by(item),
            served=measured.served,
            file=display_path(item.file, self._root),
            labels=dict(item.labels),
            limit=item.settings.limit,
            tolerance=tolerance_of(item.audit, item),
            contributions=measured.measurement.explanation.contributions,
        )
        return BaselineComparison(entry, new=True)

    def errors_of_changes(self, items: Sequence[ProbeItem]) -> Iterator[tuple[float | None, float | None, float]]:
        """Yield the error that the change of each item with a baseline would have, its tolerance and its alpha."""
        for item in items:
            with suppress(BaselineError):  # the run reports the error
                baseline = read_baseline(self._folder, item.baseline_name, self._kept)
                entry = None if baseline is None else baseline.items.get(item.id)
                if entry is not None and entry.standard_error is not None:
                    yield math.sqrt(2) * entry.standard_error, tolerance_of(item.audit, item), item.planned_alpha

    def forget(self) -> None:
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

        measurer = self._measurer
        key = measurer.key("value", item, answers)
        try:
            own = measurer.kept(key, float)
            if own is None:
                own = measurer.keep(key, float(item.audit.value(item, measurer.prepared(item, answers))))
            if not measured_alike(item, entry):
                # Answers that were unread then may be read now.
                measured = measurer.measure_answers(item, answers, entry.target).measurement
                entry = replace(entry, n=dict(measured.n), missing=dict(measured.missing))
        except NotMeasurable as error:
            reason = str(error).removesuffix(".")
            raise BaselineError(
                f"{baseline.answers_path}: the answers of {item.id} cannot be measured: {reason}. Make a new baseline "
                "with --fairness-rebaseline.",
                fixed_by_rebaseline=True,
            ) from error
        return check_stored_value(item, baseline, entry, own)

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
            for path in () if answers_path.exists() else (answers_path, compressed(answers_path)):
                if pattern := ignoring_pattern(path):
                    return _by_value(found, f"{path.name} is absent, as git ignores it ({pattern})")
            return found

        key = self._measurer.key("compare", item, measured.answers, answers)
        if (kept := self._measurer.kept(key, Comparison.from_json)) is not None:
            return kept
        require_same_judge(measured.answers, answers)
        try:
            runs = (self._measurer.prepared(item, each) for each in (measured.answers, answers))
            found = item.audit.compare(item, *runs)
            if digest(answers) == digest(measured.answers):
                ends = found.interval and (found.interval[0] - found.value, found.interval[1] - found.value)
                unchanged = replace(found, value=0.0, interval=ends, p_value=1.0, same_answers=True)
                return self._measurer.keep(key, unchanged)
            counted = (measured.counted_answers, item.audit.counted_answers(item, answers))
            return self._measurer.keep(key, replace(found, shared_changes=shared_changes(item, *counted)))
        except NotMeasurable as error:
            return _by_value(by_value(), str(error).rstrip("."))

    def _answers(self, item: ProbeItem, rows: Iterable[Row]) -> list[Answer]:
        if item.probe is not self._probe:
            self._probe, self._answer = item.probe, Recent(partial(answer_from, probe=item.probe), KEPT_ANSWERS)
        return list(map(self._answer, item.select_own(rows)))


def _by_value(found: Comparison, why: str) -> Comparison:
    return replace(found, not_compared=why, details={"answers_not_compared": why})


# Checks of a baseline's stored values against its answers, so that an edited value cannot make an item pass.

ALLOWED_ERRORS = 0.1
"""Accepted difference between a stored and a measured value, in standard errors: numerical libraries may cause it."""


def measured_by(item: ProbeItem) -> MeasuredBy:
    return MeasuredBy(100 * reading.VERSION + item.audit.version, rounded(item.alpha))


def _edited(baseline: Baseline, problem: str, *, files: str = "the file") -> BaselineError:
    return BaselineError(
        f"{baseline.summary_path}: {problem}. Restore {files} from version control, or make a new "
        "baseline with --fairness-rebaseline.",
        fixed_by_rebaseline=True,
    )


def require_possible(item: ProbeItem, baseline: Baseline, entry: Entry) -> None:
    least, most = item.audit.info.value_range
    if not least <= entry.value <= most:
        bounds = f"between {least:g} and {most:g}"
        if not math.isfinite(least + most):
            bounds = f"at least {least:g}" if math.isfinite(least) else f"at most {most:g}"
        values = f"values of {item.audit.info.name} are {bounds}"
        raise _edited(baseline, f"the value of {item.id} is {entry.value:g}, but {values}")


def require_unedited(item: ProbeItem, baseline: Baseline, entry: Entry) -> None:
    """Raise `BaselineError` if the stored measurement or the hash of its answers was edited; see `Entry.seal`."""
    if entry.was_edited:
        numbers = f"the measurement of {item.id} (value, interval, standard error, answers)"
        raise _edited(baseline, f"{numbers} or the hash of its answers was edited")


def check_stored_value(
    item: ProbeItem, baseline: Baseline, entry: Entry, remeasured: float
) -> tuple[Entry, str | None]:
    """Return the entry with the value measured from its answers, and a note if the stored value differs.

    Raises:
        BaselineError: the stored value differs from the value of the baseline's answers, although this version of the
            package and of the audit measured both values, with the same alpha.
    """
    current = replace(entry, value=rounded(remeasured))
    allowed = max(1e-6, ALLOWED_ERRORS * (entry.standard_error or 0.0))
    if math.isclose(entry.value, remeasured, rel_tol=1e-5, abs_tol=allowed):
        return current, None
    if measured_alike(item, entry):
        problem = (
            f"the value of {item.id} is {entry.value:g}, but the baseline's own answers give {remeasured:.6g}. This "
            f"file or the file of the answers ({baseline.answers_path.name}) was edited, or the files are from "
            "different commits"
        )
        raise _edited(baseline, problem, files="both files")
    return current, (
        f"The baseline's stored value {entry.value:g} was measured by another version of pytest-fairness or of the "
        f"audit, or with another alpha. This run is compared with {remeasured:.3g}, measured again from the baseline's "
        "answers"
    )


def measured_alike(item: ProbeItem, entry: Entry) -> bool:
    """Return whether the entry was measured by this version of the package and the audit, with the same alpha.

    An entry without the audit's version and alpha counts as measured with the same version and alpha.
    """
    if entry.tool_version != __version__:
        return False  # the parsing of answers may have changed, too
    return entry.measured_by is None or entry.measured_by == measured_by(item)


# Conversion between answers and the rows of baselines.


def answer_from(row: Row, probe: Probe) -> Answer:
    """Return the answer in a baseline's row, parsed by the same rules as current answers."""
    prompt = probe.reading.recorded_prompt(row.labels, row.trial)
    answer = reading.recorded(prompt, row.text, probe.language, refused=row.refused)
    if row.judged is None:
        return answer
    judged = Judged.from_json(row.judged)
    if probe.reading.judging is None:
        return reading.with_refusal_class(answer, judged)
    return reading.with_majority_choice(answer, judged, probe.language)


def require_same_judge(current: Iterable[Answer], baseline: Iterable[Answer]) -> None:
    """Raise `BaselineStale` if the answers of two runs were classified by different models."""
    first, second = ({answer.judged.by for answer in run if answer.judged} for run in (current, baseline))
    if first != second:
        raise BaselineStale(["judge model"])


def row_from(answer: Answer, probe: Probe) -> Row:
    """Return an answer as a row of a baseline; `answer_from` restores the answer from this row.

    The text of an unusable answer can give another status when it is parsed again. Then the row is marked as `refused`
    if the answer is a refusal; otherwise the row has no text.
    """
    judged = answer.judged.to_json() if answer.judged else None
    row = Row(dict(answer.labels), answer.trial, answer.text, judged)
    # The row does not hold the finish reason. A usable text is parsed in the same way without it.
    if answer.status is Status.OK or answer_from(row, probe).status is answer.status:
        return row
    # The target may have reported a refusal that cannot be recognised from the text.
    refused = answer.refused
    return replace(row, text=answer.text if refused else None, judged=None, refused=refused)
