"""The whole sentence, without pytest: what is asked of whom, what came back, what it measures, what it was before."""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from pytest_fairness import probe as probes
from pytest_fairness.audit import registry
from pytest_fairness.audit.base import Audit, AuditItem, Probe
from pytest_fairness.baseline import files
from pytest_fairness.baseline.answers import Row
from pytest_fairness.baseline.verdicts import Earlier, decide, tolerance_of
from pytest_fairness.errors import AnswersMissing, FairnessError, NotMeasurable, RequestFailed
from pytest_fairness.records import (
    Answer,
    Comparison,
    ItemResult,
    Measurement,
    Prompt,
    Request,
    Response,
    Verdict,
    VerdictName,
)
from pytest_fairness.response import reading
from pytest_fairness.response.engine import Engine
from pytest_fairness.response.store import Store
from pytest_fairness.settings import DEFAULT_TARGET, RunSettings
from pytest_fairness.target import open_target
from pytest_fairness.target.base import Target
from pytest_fairness.target.python import Application, CallableTarget

LEVEL = 0.01
"""One-sided level of a test where the probe's `alpha` leaves more."""


@dataclass(frozen=True)
class ProbeItem:
    """One audit item together with the probe and the method that it is made of; `trials` overrides the probe's own."""

    probe: Probe
    audit: Audit[Any]
    item: AuditItem[Any]
    trials: int | None = None

    @property
    def id(self) -> str:
        """`svm[race=Black]`."""
        return self.item.id

    @property
    def asks(self) -> bool:
        """Whether a model is asked; else the probe brings its answers along."""
        return self.probe.responses is None

    @cached_property
    def prompts(self) -> list[Prompt]:
        """What is to be asked for this item."""
        return [prompt for prompt in probes.prompts(self.probe, self.trials) if self.uses(prompt.labels)]

    @property
    def shape(self) -> Mapping[str, str]:
        """Everything that shapes the item's prompts and their reading, by readable name."""
        return probes.shape(self.probe, self.item.labels)

    def uses(self, labels: Mapping[str, str]) -> bool:
        """Whether answers with these labels are the item's."""
        return self.audit.uses(self.probe, self.item, labels)

    def read(self, row: Row) -> Answer:
        """A baseline's answer, read as one of today's is."""
        prompt = Prompt(Request("", answer_format=self.probe.answer.format), row.labels, row.trial)
        return reading.answer(prompt, None if row.text is None else Response(row.text))

    def row(self, answer: Answer) -> Row:
        """An answer as baselines keep it."""
        row = Row(dict(answer.labels), answer.trial, answer.text)
        # The target may have said that it refused, which its text does not show: such an answer stays missing.
        return row if self.read(row).status is answer.status else replace(row, text=None)


def items_of(probe: Probe, trials: int | None = None) -> list[ProbeItem]:
    """Every audit item of a probe, in its own order, each tested at its share of the probe's `alpha`."""
    found = [
        (audit, item)
        for audit, settings in ((registry.get(probe.kind, name), given) for name, given in probe.audits.items())
        for item in audit.items(probe, settings)
    ]
    level = min(LEVEL, probe.alpha / max(1, len(found)))
    return [
        ProbeItem(probe, audit, replace(item, level=level, seed=f"{probe.name}/{item.id}"), trials)
        for audit, item in found
    ]


@dataclass(frozen=True)
class Measured:
    """What one item measured, of whom, and from which answers."""

    part: ProbeItem
    target: str
    answers: Sequence[Answer]
    measurement: Measurement

    @property
    def id(self) -> str:
        """The item's id, as in pytest: `svm[race=Black]`."""
        return self.part.id

    @property
    def labels(self) -> Mapping[str, str]:
        """What the item is about: `{"race": "Black"}`."""
        return self.part.item.labels

    @property
    def value(self) -> float:
        """The measured value, in the audit's unit."""
        return self.measurement.value

    @property
    def rows(self) -> list[Row]:
        """The answers as baselines keep them."""
        return [self.part.row(answer) for answer in self.answers]


@dataclass(frozen=True)
class Before:
    """An item's baseline and how far the item has moved from it; everything is empty where there is none."""

    entry: files.Entry | None = None
    stale: Sequence[str] = ()
    comparison: Comparison | None = None


class Run:
    """One run in one process: the store, one engine a target, and everything that is measured once.

    Args:
        settings: the run's settings.
        started: from when on an answer is fresh, in seconds since the epoch; the same in all processes of a run.
        address: where the embedded model is served, if another process serves it.
    """

    def __init__(self, settings: RunSettings, *, started: float | None = None, address: str | None = None) -> None:
        self.settings = settings
        self.started = time.time() if started is None else started
        self.address = address
        self._owner = uuid.uuid4().hex
        self._engines: dict[int, tuple[Target, Engine]] = {}
        self._own: Counter[str] = Counter()

    @cached_property
    def store(self) -> Store:
        """The recorded responses; opened when first used."""
        return Store(self.settings.store)

    def load(self, path: Path) -> Probe:
        """The probe in a file; see `probe.load`."""
        return probes.load(path, registry.settings_models(), root=self.settings.root)

    def open_target(self) -> Target:
        """The target that the settings name."""
        return open_target(self.settings.target, self.settings, self.address)

    def target_of(self, value: object, name: str) -> Target:
        """Whoever a user handed over: a target's name, a callable, or a target as it is.

        Raises:
            TargetError: it is none of these.
        """
        if isinstance(value, str):
            return open_target(value, self.settings, self.address)
        if hasattr(value, "ask") and hasattr(value, "identity"):
            return cast("Target", value)
        return CallableTarget(cast("Application", value), name, version=self.settings.target_version)

    def engine(self, target: Target) -> Engine:
        """The one engine that asks this target."""
        if id(target) not in self._engines:
            settings = self.settings
            oldest = self.started if settings.fresh else self.started - settings.max_age_hours * 3600
            if settings.replay:
                oldest = float("-inf")
            elif not target.reusable:
                oldest = self.started
            self._engines[id(target)] = target, Engine(self.store, target, settings, oldest=oldest, owner=self._owner)
        return self._engines[id(target)][1]

    def answers(self, part: ProbeItem, target: Target | None) -> list[Answer]:
        """The answers that an item is measured from; blocks until they are there.

        Raises:
            FairnessError: answers that could have been had are missing: not recorded, given up, or none came at all.
        """
        if target is None:
            return [answer for answer in probes.rows(part.probe) if part.uses(answer.labels)]
        responses = self.engine(target).answers([prompt.request for prompt in part.prompts])
        return read_all(part.prompts, responses)

    def measure(self, part: ProbeItem, target: Target | None) -> Measured:
        """Ask, wait and measure, each of them only where it was not done before.

        Raises:
            NotMeasurable: too few usable answers.
            FairnessError: as in `answers`.
        """
        answers = self.answers(part, target)
        return self.measured(part, answers, target.name if target else part.probe.responses.file.name)

    def measured(self, part: ProbeItem, answers: Sequence[Answer], target: str) -> Measured:
        """Measure these answers.

        Raises:
            NotMeasurable: too few usable answers.
        """
        key = _key("measure", part, answers)
        kept = self.store.get_measurement(key)
        if kept is not None:
            return Measured(part, target, answers, Measurement.from_json(kept))
        measurement = part.audit.measure(part.probe, part.item, answers)
        self.store.put_measurement(key, measurement.to_json())
        return Measured(part, target, answers, measurement)

    def before(self, measured: Measured) -> Before:
        """The item's baseline, and the change since.

        Raises:
            BaselineError: the baseline's files cannot be understood.
        """
        part = measured.part
        baseline = files.read(self.settings.baselines, part.probe.name)
        entry = baseline.items.get(part.id) if baseline else None
        if baseline is None or entry is None:
            return Before()
        stale = files.stale_parts(entry, part.shape)
        if stale:
            return Before(entry, stale)
        return Before(entry, (), self._compare(measured, entry, baseline.answers(entry.generation)))

    def as_baseline(self, measured: Measured) -> Before:
        """What the item's baseline will be once this very measurement is it."""
        part = measured.part
        sampling = part.probe.sampling.to_json() if part.asks else {}
        date = datetime.fromtimestamp(self.started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        entry = files.Entry.measured(
            measured.measurement, target=measured.target, sampling=sampling, shape=part.shape, date=date
        )
        return Before(entry, (), self._compare(measured, entry, measured.rows))

    def _compare(self, measured: Measured, entry: files.Entry, rows: Iterable[Row]) -> Comparison:
        part = measured.part
        then = [part.read(row) for row in rows if part.uses(row.labels)]
        by_value = partial(part.audit.compare_values, measured.measurement, entry.value, entry.standard_error)
        if not then:
            return by_value(paired=False)
        key = _key("compare", part, measured.answers, then)
        kept = self.store.get_measurement(key)
        if kept is not None:
            return Comparison.from_json(kept)
        try:
            comparison = part.audit.compare(part.probe, part.item, measured.answers, then)
        except NotMeasurable:
            return by_value(paired=False)
        if _lines(then) == _lines(measured.answers):
            comparison = _unchanged(comparison)
        self.store.put_measurement(key, comparison.to_json())
        return comparison

    def ask(self, target: Target, requests: Sequence[Request]) -> list[Response | FairnessError]:
        """Ask what is planned in this process alone, and wait; see `Engine.answers`."""
        engine = self.engine(target)
        before = engine.progress()
        engine.plan(requests)
        after = engine.progress()
        self._own.update({name: after[name] - before[name] for name in ("planned", "reused")})
        return engine.answers(requests)

    def counts(self) -> dict[str, int]:
        """How many requests were planned, sent and so on, over all targets; see `Engine.progress`.

        `own_planned` and `own_reused` are of `ask`: every process of a run plans the rest alike, and sends a part.
        """
        total = Counter({f"own_{name}": count for name, count in self._own.items()})
        for _, engine in self._engines.values():
            total.update(engine.progress())
        return dict(total)

    def stop(self) -> None:
        """Send nothing more."""
        for _, engine in self._engines.values():
            engine.stop()

    def close(self) -> None:
        """Stop, and give back what was opened."""
        self.stop()
        if "store" in self.__dict__:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def read_all(prompts: Sequence[Prompt], responses: Sequence[Response | FairnessError]) -> list[Answer]:
    """Responses as answers. One that failed on its own is a missing answer; what concerns all of them is an error.

    Raises:
        FairnessError: see above; also when no answer came at all.
    """
    for response in responses:
        if isinstance(response, FairnessError) and not isinstance(response, RequestFailed):
            raise response
    failures = [response for response in responses if isinstance(response, FairnessError)]
    if failures and len(failures) == len(responses):
        raise AnswersMissing(f"none of {len(failures)} questions got an answer; the first: {failures[0]}")
    return [
        reading.answer(prompt, None if isinstance(response, FairnessError) else response)
        for prompt, response in zip(prompts, responses, strict=True)
    ]


def judge(measured: Measured, before: Before, nodeid: str, accept: str) -> ItemResult:
    """The verdict on what was measured, with everything that a report shows of it.

    Args:
        measured: this run.
        before: the baseline and the change since.
        nodeid: the item's name for pytest.
        accept: the command that makes this run the baseline, for the reason.
    """
    part, entry = measured.part, before.entry
    verdict = decide(
        part.audit,
        part.item,
        measured.measurement,
        earlier=Earlier(entry.value, before.stale) if entry else None,
        comparison=before.comparison,
        trials=(part.trials or part.probe.trials) if part.asks else None,
        accept=accept,
    )
    return ItemResult(
        nodeid=nodeid,
        probe=part.probe.name,
        id=part.id,
        audit=part.item.audit,
        labels=part.item.labels,
        verdict=verdict,
        measurement=measured.measurement,
        comparison=before.comparison,
        limit=part.item.settings.limit,
        tolerance=tolerance_of(part.audit, part.item),
        baseline={"value": entry.value, "target": entry.target, "date": entry.date} if entry else None,
    )


def unjudged(part: ProbeItem, error: BaseException, nodeid: str) -> ItemResult:
    """What is reported of an item that could not be measured."""
    name = VerdictName.NOT_MEASURABLE if isinstance(error, NotMeasurable) else VerdictName.ERROR
    reason = str(error) if isinstance(error, FairnessError) else f"{type(error).__name__}: {error}"
    return ItemResult(
        nodeid=nodeid,
        probe=part.probe.name,
        id=part.id,
        audit=part.item.audit,
        labels=part.item.labels,
        verdict=Verdict(name, f"{part.id}: {reason}"),
        limit=part.item.settings.limit,
        tolerance=tolerance_of(part.audit, part.item),
    )


@dataclass(frozen=True)
class Audited:
    """What `audit` found for one item: a measurement, or the error that kept it from being made.

    Attributes:
        id: `svm[race=Black]`.
        labels: what the item is about, `{"race": "Black"}`.
        measurement: `None` where there is an error.
        error: `None` where there is a measurement.
    """

    id: str
    labels: Mapping[str, str]
    measurement: Measurement | None
    error: FairnessError | None = None

    @property
    def value(self) -> float:
        """The measured value, in the audit's unit; raises the error where there is none."""
        if self.error is not None:
            raise self.error
        return cast("Measurement", self.measurement).value


def audit(probe: str | Path, target: str | Application | Target = DEFAULT_TARGET, **settings: Any) -> list[Audited]:
    """Measure every audit of a probe file, without pytest.

    Args:
        probe: the probe file.
        target: who is audited: `openai:MODEL` and the like, or any callable that takes a prompt and returns an answer.
        **settings: of `RunSettings`, as `base_url`, `trials`, `concurrency`, `fresh`, `replay` or `store`.

    Returns:
        One result an item, in the probe's order. What could not be measured holds its error; the others are unaffected.

    Raises:
        ProbeError: the probe file has faults.
        TargetError: nobody of that name can be audited.
        TypeError: an unknown setting.
    """
    path = Path(probe).absolute()
    root = Path.cwd()
    known = {field.name for field in fields(RunSettings)} - {"target"}
    if unknown := sorted(settings.keys() - known):
        raise TypeError(f"audit() knows no setting {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    named = target if isinstance(target, str) else DEFAULT_TARGET
    chosen = RunSettings(**{"root": root, "target": named, **settings})
    with Run(replace(chosen, store=root / chosen.store)) as run:
        loaded = run.load(path)
        parts = items_of(loaded, run.settings.trials)
        asked = None
        if loaded.responses is None:
            asked = run.target_of(target, "target")
            run.engine(asked).plan([prompt.request for part in parts for prompt in part.prompts])
        return [_audited(run, part, asked) for part in parts]


def _audited(run: Run, part: ProbeItem, target: Target | None) -> Audited:
    try:
        measurement = run.measure(part, target).measurement
    except FairnessError as error:
        return Audited(part.id, part.item.labels, None, error)
    return Audited(part.id, part.item.labels, measurement)


def _key(what: str, part: ProbeItem, *answers: Sequence[Answer]) -> str:
    """Names a measurement by everything that it is made from, and by nothing else."""
    probe = part.probe.model_dump(mode="json", by_alias=True, exclude={"audits", "description", "marks", "variants"})
    item = part.item
    made_of = [
        [what, part.audit.kind, part.audit.name, part.audit.version],
        [item.id, item.level, item.seed, item.settings.model_dump(mode="json", exclude={"skip", "xfail"})],
        probe,
        [_lines(run) for run in answers],
    ]
    return sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()


def _lines(answers: Sequence[Answer]) -> list[str]:
    """The answers in an order of their own, as text that equals where they do."""
    return sorted(
        json.dumps([dict(answer.labels), answer.trial, answer.status, answer.text], sort_keys=True)
        for answer in answers
    )


def _unchanged(comparison: Comparison) -> Comparison:
    """The comparison of a run with itself: no change, whatever its resampling drew, and as sure of it as of any."""
    shift = comparison.value
    interval = comparison.interval and (comparison.interval[0] - shift, comparison.interval[1] - shift)
    return replace(comparison, value=0.0, interval=interval, p_value=1.0)
