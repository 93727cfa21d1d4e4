"""History of nightly runs: one line for each item and run, and the evidence of all runs since a baseline."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from pytest_fairness.answers import reading
from pytest_fairness.asking.claims import NIGHTS
from pytest_fairness.asking.store import Store
from pytest_fairness.audits.rules import SignificantChange, judge_runs, rule_of
from pytest_fairness.baselines.entries import Count, Deviation, Entry, Number, Text, first_error
from pytest_fairness.baselines.verdicts import tolerance_of
from pytest_fairness.errors import FairnessError, counted, joined, significant
from pytest_fairness.options import RunSettings
from pytest_fairness.probes.field_types import display_path
from pytest_fairness.records import AccumulatedEvidence, Comparison, Json
from pytest_fairness.resources import replace_file
from pytest_fairness.run.items import ProbeItem
from pytest_fairness.run.measuring import ItemMeasurement, digest
from pytest_fairness.stats import nights
from pytest_fairness.version import __version__

# Lines of a history: the change of one item in one run.

SCHEMA_VERSION = 1
IN_STORE = "store"
"""Value of `fairness_history` for a history in the store of the responses."""
CLOCKS_DIFFER = 3600.0
"""Seconds by which the clock of another machine may be fast; lines of a later date are not counted."""
SHOWN_RUNS = 60
"""Maximum number of runs whose evidence reports show."""
SHOWN_LINES = 5
"""Maximum number of lines of a history that a note names."""
CONFLICT_MARKS = ("<<<<<<<", "|||||||", "=======", ">>>>>>>")

Size = Annotated[int, Field(strict=True, ge=1)]
Seconds = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]


@dataclass(frozen=True, kw_only=True)
class Line:
    """Change of one item since its baseline, in one run.

    Attributes:
        run: identifier of the run.
        probe, item: name of the item's baseline, and id of the item.
        target: name of the target.
        fingerprint: hash of the baseline, and of the versions of the audit and of the reading of answers.
        started, oldest, newest: start of the run that sent the requests, and arrival of its first and its last answer,
            in seconds since the epoch.
        date: start of the run, for people.
        answers: hash of the answers with their times of arrival.
        changes: change and its standard error; several, by name, if an audit tests each pair of groups by itself. The
            change of a gap has a sign: it is positive towards the group that was ahead in the baseline.
        gap: size of the gap in the baseline, if the change has such a sign.
        n, baseline_n: numbers of answers that were compared, of the run and of the baseline.
        part, parts: number of the part of the units that was asked, and number of parts.
        prompts: hash of the prompts and of the reading of their answers.
        served: names of the models that the server reported.
        tool: version of pytest-fairness.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", defer_build=True)

    schema: Literal[1] = 1
    run: Text
    probe: Text
    item: Text
    target: Text
    fingerprint: Text
    started: Seconds
    oldest: Seconds
    newest: Seconds
    date: Text
    answers: Text
    gap: Deviation | None = None
    changes: Annotated[dict[Text, tuple[Number, Deviation]], Field(min_length=1)]
    n: Size
    baseline_n: Size
    part: Count = 0
    parts: Size = 1
    prompts: Text
    served: list[Text]
    tool: Text

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return what the lines of one history of an item share."""
        return self.probe, self.item, self.target, self.fingerprint


_LINE = TypeAdapter(Line)


def line_of(
    measured: ItemMeasurement, entry: Entry, comparison: Comparison, *, run: str, started: float
) -> Line | None:
    """Return the line of an item; `None` if its change has no standard error, or its answers no date.

    A change beyond its error gets at least the error that the comparison's test implies, because an error from few
    units may be too small.
    """
    item, audit = measured.item, measured.item.audit
    dates = [answer.created for answer in measured.answers if answer.created]
    judgeable = measured.measurement.judgeable and comparison.from_answers
    if not (dates and judgeable and accumulates(item)):
        return None
    gap = None
    found = [("", comparison.value, comparison.standard_error, comparison.p_value)]
    if comparison.pairs:
        found = [(str(pair), pair.value, pair.standard_error, pair.p_value) for pair in comparison.pairs]
    elif audit.tells_side(measured.measurement) is not None:
        gap = max(0.0, audit.info.loss(entry.value))
        if (reversal := comparison.reversal) is not None:
            found = [("", -gap - reversal.value, comparison.standard_error, reversal.p_value)]
    changes = {}
    for name, value, error, p_value in found:
        tail = 0.0 if p_value is None else min(p_value, 1 - p_value)
        if error is not None and tail and abs(value) > error:
            error = max(error, abs(value) / max(1.0, -NormalDist().inv_cdf(tail)))
        if error is not None:
            changes[name] = value, error
    sizes = comparison.evidence.compared or (sum(measured.measurement.n.values()), sum(entry.n.values()))
    if not changes or not all(sizes):
        return None
    content = f"{digest(measured.answers)} {sum(dates)!r}"
    part, parts = item.stage.part or (0, 1)
    if parts > 1 and comparison.evidence.compared is None:
        sizes = sizes[0], max(1, sizes[1] // parts)
    return Line(
        run=run,
        probe=item.baseline_name,
        item=item.id,
        target=measured.target,
        fingerprint=_hash(entry.seal, entry.value, entry.fingerprint, item.audit.version, reading.VERSION),
        started=started,
        oldest=min(dates),
        newest=max(dates),
        date=datetime.fromtimestamp(started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        answers=sha256(content.encode()).hexdigest()[:16],
        gap=gap,
        changes=changes,
        n=sizes[0],
        baseline_n=sizes[1],
        part=part,
        parts=parts,
        prompts=_hash(item.fingerprint),
        served=measured.served,
        tool=__version__,
    )


def accumulates(item: ProbeItem) -> bool:
    """Return whether the verdict on an item may use several runs: its rule tests a change with a standard error."""
    rule = rule_of(item.audit, item)
    return item.asks and isinstance(rule, SignificantChange) and not rule.bound


def _hash(*parts: object) -> str:
    return sha256(json.dumps(parts, sort_keys=True, default=dict).encode()).hexdigest()[:16]


def counted_lines(lines: Iterable[Line], now: float) -> tuple[list[Line], Counter[str]]:
    """Return the lines of one item that count, in the order of their answers, and why others do not count.

    Each answer counts once. A line counts if its run sent all of its requests, or if all of its answers are newer than
    those of the lines that count, as after a run that ended early.
    """
    found: list[Line] = []
    others: Counter[str] = Counter()
    runs, answers = set[str](), set[str]()
    for line in sorted(lines, key=lambda line: (line.newest, line.started, line.run)):
        if line.run in runs or line.answers in answers:
            others["counted already"] += 1
        elif max(line.started, line.newest) > now + CLOCKS_DIFFER:
            others["dated in the future"] += 1
        elif line.oldest < line.started and not (found and line.oldest > max(each.newest for each in found)):
            others["with answers of an earlier run"] += 1
        else:
            found.append(line)
            runs.add(line.run)
            answers.add(line.answers)
    return found, others


# Evidence of the lines of one item.


def evidence_of(
    lines: Sequence[Line], tolerance: float, alpha: float, served: Sequence[str] = (), shown: int = SHOWN_RUNS
) -> AccumulatedEvidence:
    """Return the evidence of an item's counted lines, and its growth over the last `shown` runs.

    `served` are the models that answered for the baseline. The pairs of groups of an audit, and the two sides of a gap,
    share alpha: the mean of their e-values is an e-value.
    """
    names = list(dict.fromkeys(name for line in lines for name in line.changes))
    growth: list[float] = []
    worst: nights.Evidence | None = None
    first = 0
    for count in range(max(1, len(lines) - shown + 1), len(lines) + 1):
        found = []
        for name in names:
            own = [line for line in lines[:count] if name in line.changes]
            changes = [nights.Change(*line.changes[name], line.n, line.baseline_n, line.part) for line in own]
            if changes:
                found.append((nights.evidence(changes, tolerance, own[-1].parts), own))
            if changes and own[-1].gap is not None:
                changes = [replace(change, value=-change.value) for change in changes]
                found.append((nights.evidence(changes, tolerance, own[-1].parts, own[-1].gap), own))
        growth.append(sum(each.e_value for each, _ in found) / max(len(names), len(found)))
        # The pair that is surely worse comes first, then the one whose level is highest.
        worst, own = max(found, key=lambda each: (each[0].e_value * (each[0].worsening > tolerance), each[0].level))
        first = lines.index(own[worst.first])
    assert worst is not None  # noqa: S101 - there is at least one line
    before = lines[first - 1] if first else None
    changed = [
        f"{what} {old} → {new}"
        for what, old, new in (
            ("served model", joined(before.served if before else served), joined(lines[first].served)),
            ("pytest-fairness", before and before.tool, lines[first].tool),
        )
        if old and new and old != new
    ]
    if before and before.prompts != lines[first].prompts:
        changed.append("prompts of the probe")
    return AccumulatedEvidence(
        runs=len(lines),
        e_value=growth[-1],
        needed=1 / alpha,
        since=lines[first].date,
        runs_since=len(lines) - first,
        drift=worst.drift,
        worsening=worst.worsening,
        highest=worst.highest,
        level=worst.level,
        level_error=worst.level_error,
        window=worst.window,
        changed=changed,
        dates=[line.date for line in lines[-len(growth) :]],
        growth=growth,
    )


def expected_failures(items: Iterable[tuple[float | None, float | None, float]], *, used: bool) -> str:
    """Return how often unchanged items fail by chance with one baseline and a run a night; empty without errors.

    `items` holds the standard error of the change, the tolerance and the alpha of each item; `used` says whether there
    is a history.
    """
    known = [(error, tolerance, alpha) for error, tolerance, alpha in items if error and tolerance is not None]
    if not known:
        return ""
    a_year = f"about {significant(nights.false_failures_a_year(known), 2)} a year"
    in_life = f"{sum(alpha for _, _, alpha in known):.2g} in the life of a baseline"
    by_history = f"at most {in_life}; without the history {a_year}"
    single = f"{a_year}; with fairness_history at most {in_life}"
    return f"false failures at this size, with one baseline and a run a night: {by_history if used else single}"


# The history: a file, a folder of files, or the store.


class NightHistory:
    """History of nightly runs, in the file, folder or store that `fairness_history` names; empty without it.

    A run that is judged by another git revision uses none.
    """

    def __init__(self, settings: RunSettings, run: str, started: float, store: Callable[[], Store]) -> None:
        self._settings, self._run, self._started, self._store = settings, run, started, store
        self._place = None if settings.history in (None, IN_STORE) else settings.root / str(settings.history)

    @property
    def used(self) -> bool:
        return self._settings.history is not None and self._settings.against is None

    def runs_of(
        self, measured: ItemMeasurement, entry: Entry, comparison: Comparison
    ) -> tuple[Line | None, AccumulatedEvidence | None]:
        """Return this run's line of an item if it counts, and the evidence of all counted lines since the baseline.

        There is no evidence if the verdict is on a single run, or if no line counts.
        """
        line = line_of(measured, entry, comparison, run=self._run, started=self._started) if self.used else None
        if line is None:
            return None, None
        before, _ = counted_lines(self._of_items.get(line.key, ()), self._started)
        sent_before = self._settings.replay or self._settings.in_batches
        if sent_before and not before and not comparison.same_answers:
            # A replay gives the verdicts on requests that shards or batches sent before it.
            line = replace(line, started=line.oldest)
        lines, others = counted_lines([*before, line], self._started)
        item, counts = measured.item, line in lines
        evidence = None
        if lines and (item.probe.verdict or self._settings.verdict) == "accumulate":
            tolerance, served = tolerance_of(item.audit, item), entry.served or ()
            evidence = evidence_of(lines, tolerance, item.planned_alpha, served, shown=1)
            if judge_runs(evidence, item, tolerance).outcome != "within":
                evidence = evidence_of(lines, tolerance, item.planned_alpha, served)
            evidence = evidence if counts else replace(evidence, not_counted=next(iter(others)))
        return line if counts else None, evidence

    def part_of(self, probe: str) -> tuple[int, int]:
        """Return the part of a probe's units that this run asks, and the number of parts; they rotate over runs."""
        parts = max(1, round(1 / self._settings.nightly_share))
        return len(self._runs.get(probe, ())) % parts, parts

    def add(self, lines: Iterable[Mapping[str, Json]]) -> None:
        """Add the lines of this run.

        Raises:
            FairnessError: the file cannot be written.
        """
        new = [_LINE.validate_python(line) for line in lines]
        if not new:
            return
        if self._place is None:
            # Machines that take part in one run have different items.
            self._store().cache.put(f"{NIGHTS}{_hash(self._run, [line.key for line in new])}", [*map(asdict, new)])
            return
        text = "".join(f"{json.dumps(asdict(line), sort_keys=True)}\n" for line in new).encode()
        try:
            if self._is_folder(self._place):
                replace_file(self._place / f"{new[0].date.replace(':', '')}-{self._run[:8]}.jsonl", text)
            else:
                _append(self._place, text)
        except OSError as error:
            raise FairnessError(
                f"fairness_history: {self._place} cannot be written ({error.strerror}). Make it writable; the answers "
                "of this run count in the next run with `--fairness-replay`."
            ) from error

    def notes(self) -> list[str]:
        """Return notes on lines that do not count for any item, and on why."""
        problems = [*self._read[1]]
        others = sum((counted_lines(own, self._started)[1] for own in self._of_items.values()), Counter[str]())
        problems += [f"{counted(count, 'line')} {why}" for why, count in others.items()]
        if not problems:
            return []
        return [f"{self._name}: not counted: {joined(problems, SHOWN_LINES)}."]

    def check(self) -> None:
        """Raise `FairnessError` if the history is a file or folder that cannot be read."""
        if self._place is not None:
            _ = self._read

    @property
    def _name(self) -> str:
        return "history" if self._place is None else display_path(self._place, self._settings.root)

    @cached_property
    def _of_items(self) -> Mapping[tuple[str, str, str, str], list[Line]]:
        """The lines by `Line.key`."""
        found: defaultdict[tuple[str, str, str, str], list[Line]] = defaultdict(list)
        for line in self._read[0]:
            found[line.key].append(line)
        return found

    @cached_property
    def _runs(self) -> Mapping[str, set[str]]:
        """The runs of each probe."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for line in self._read[0]:
            found[line.probe].add(line.run)
        return found

    @cached_property
    def _read(self) -> tuple[list[Line], list[str]]:
        """The lines of the history, and its lines that cannot be read, each with the reason."""
        if not self.used:
            return [], []
        if self._place is None:
            texts = [("store", json.dumps(line)) for lines in self._store().cache.nights() for line in lines]
        else:
            texts = []
            try:
                files = sorted(self._place.glob("*.jsonl")) if self._is_folder(self._place) else [self._place]
                for file in files:
                    content = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
                    texts += [(f"{file.name}:{number}", text) for number, text in enumerate(content.split("\n"), 1)]
            except OSError as error:
                raise FairnessError(
                    f"fairness_history: {self._place} cannot be read ({error.strerror}). Make it readable, or name "
                    "another file or folder."
                ) from error
        lines: list[Line] = []
        problems: list[str] = []
        for place, text in texts:
            if not text.strip():
                continue
            try:
                lines.append(_LINE.validate_json(text))
            except ValidationError as error:
                problems.append(f"{place} ({_problem(text, error)})")
        return lines, problems

    @staticmethod
    def _is_folder(place: Path) -> bool:
        return place.is_dir() or place.suffix != ".jsonl"


def _problem(text: str, error: ValidationError) -> str:
    if text.startswith(CONFLICT_MARKS):
        return "a mark of a merge conflict"
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        return "an incomplete line"
    if isinstance(plain, dict) and plain.get("schema") != SCHEMA_VERSION:
        return f"schema {plain.get('schema')}, of another version of pytest-fairness"
    return first_error(error)


def _append(path: Path, text: bytes) -> None:
    """Append whole lines at once, so that runs at the same time mix no lines; end an incomplete last line first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+", buffering=0) as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            text = text if file.read(1) == b"\n" else b"\n" + text
        file.write(text)
