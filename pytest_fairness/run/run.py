"""One run in one process: the store, the engines that ask, and everything that is measured once."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import cast

from pytest_fairness import kinds, probes
from pytest_fairness.asking.engine import Engine
from pytest_fairness.asking.freshness import Freshness
from pytest_fairness.asking.processes import this_process
from pytest_fairness.asking.runs import RunId
from pytest_fairness.asking.store import Store
from pytest_fairness.asking.timing import DEFAULT_TIMING
from pytest_fairness.audits import answer_checks
from pytest_fairness.baselines import files
from pytest_fairness.baselines.answers import Row
from pytest_fairness.closing import Closing
from pytest_fairness.errors import (
    AnswersMissing,
    BaselineError,
    BaselineStale,
    FairnessError,
    NotMeasurable,
    ProbeError,
    StoreError,
)
from pytest_fairness.options import RunSettings
from pytest_fairness.probes.base import Probe, ResponsesSettings, shown
from pytest_fairness.records import Answer, Comparison, Measurement, Request, Response
from pytest_fairness.run import noise, stored_values
from pytest_fairness.run.embedding import embedded
from pytest_fairness.run.judging import judged, open_judge
from pytest_fairness.run.probe_items import Before, Measured, ProbeItem, digest, key_of, read_all
from pytest_fairness.run.results import settled
from pytest_fairness.run.scoring import scored
from pytest_fairness.targets import likelihoods, open_target
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.python_callable import Application, CallableTarget

READ_AT_ONCE = 4_000
"""Questions of an item whose responses are in memory together: what is gone of many at once leaves gaps behind."""

KEPT_ANSWERS = 100_000
"""Answers of a baseline that is kept for the next item of its probe."""


class Run(Closing):
    """One run in one process: the store, one engine a target, and everything that is measured once.

    Args:
        settings: the run's settings.
        started: when the run began, in seconds since the epoch; the same in all processes of a run.
        addresses: where models of this machine are served, if another process serves them, by target as the user named
            it.
        run: the whole run that this is a part of; one of its own where not given.
    """

    def __init__(
        self,
        settings: RunSettings,
        *,
        started: float | None = None,
        addresses: Mapping[str, str] | None = None,
        run: Sequence[str] | None = None,
    ) -> None:
        self.settings = settings
        self.started = time.time() if started is None else started
        self.addresses = addresses or {}
        self.id = RunId(*run) if run else RunId.new()
        self._owner = uuid.uuid4().hex
        self._opened: dict[str, Target] = {}
        self._embedders: dict[tuple[str, Path], Target] = {}
        self._engines: dict[int, tuple[Target, Engine]] = {}
        self._rows: dict[int, tuple[Probe, list[Answer]]] = {}
        self._last: tuple[ProbeItem, Target, list[Answer]] | None = None
        self._kept: files.Baseline | None = None

    @cached_property
    def store(self) -> Store:
        """The recorded responses; opened when first used."""
        return Store(self.settings.store)

    def load(self, path: Path) -> Probe:
        """The probe in a file; see `probe.load`."""
        return probes.load(path, kinds.schemas(), root=self.settings.root)

    def open_target(self, name: str | None = None) -> Target:
        """The target that the settings name; of several the one of this name. Two names of one target share it."""
        spec = self.settings.target if name is None else self.settings.targets[name]
        if spec not in self._opened:
            self._opened[spec] = self._open(spec)
        return self._opened[spec]

    @property
    def asked(self) -> str:
        """Who is audited, as reports show it."""
        named = [f"{name}={self.open_target(name).name}" for name in self.settings.targets]
        return ", ".join(named) or self.open_target().name

    def _open(self, spec: str) -> Target:
        return open_target(spec, self.settings, self.addresses.get(spec.strip()))

    @cached_property
    def judge(self) -> Target | None:
        """The judge model that the settings name."""
        return open_judge(self.settings, self.addresses)

    def embedder(self, part: ProbeItem) -> Target | None:
        """Return the model that embeds an item's answers; `None` where none does.

        Raises:
            TargetError: there is no such model.
        """
        if part.embedder is None:
            return None
        folder = part.probe.path.parent
        if (part.embedder, folder) not in self._embedders:
            # Deferred, as few probes have any.
            from pytest_fairness.targets.embedders import open_embedder

            self._embedders[part.embedder, folder] = open_embedder(part.embedder, self.settings, folder)
        return self._embedders[part.embedder, folder]

    def require_judge(self, probe: Probe) -> None:
        """Raise `ProbeError` where a probe's answers are read by a judge, and the settings name none."""
        if probe.judging is not None and self.settings.judge is None:
            raise ProbeError(
                f"{shown(probe.path, probe.root)}: its answers are read by a judge model (`answer: {{judge: true}}`), "
                "and none is named: set `fairness_judge` in the ini file, for instance `fairness_judge = openai:MODEL`"
            )

    def target_of(self, value: object, name: str) -> Target:
        """Whoever a user handed over: a target's name, a callable, or a target as it is.

        Raises:
            TargetError: it is none of these.
        """
        if isinstance(value, str):
            return self._open(value)
        if hasattr(value, "ask") and hasattr(value, "identity"):
            return cast("Target", value)
        return CallableTarget(cast("Application", value), name, version=self.settings.target_version)

    def engine(self, target: Target) -> Engine:
        """The one engine that asks this target."""
        if id(target) not in self._engines:
            oldest = self.fresh(target).oldest
            engine = Engine(self.store, target, self.settings, oldest=oldest, owner=self._owner, run=self.id)
            self._engines[id(target)] = target, engine
        return self._engines[id(target)][1]

    def fresh(self, target: Target) -> Freshness:
        """Return which recorded answers of a target this run accepts; the same in all of its processes."""
        if self.settings.replay:
            return Freshness(self.id.name, -math.inf)
        if getattr(target, "lasting", False) and not self.settings.fresh:
            return Freshness(self.id.name, -math.inf)
        if self.settings.fresh or not target.reusable:
            return Freshness(self.id.name, math.inf)
        return Freshness(self.id.name, self.started - self.settings.max_age_hours * 3600)

    def recorded(self, target: Target, keys: Sequence[str]) -> set[str]:
        """Return those of the keys whose recorded answers this run reuses; a store that is not there is not made."""
        return self.store.recorded(keys, self.fresh(target)) if self.settings.store.exists() else set()

    def oldest_of(self, keys: Iterable[str]) -> float | None:
        """Return when the oldest answer to these keys came, in seconds since the epoch; `None` where there is none."""
        rest, found = iter(keys), []
        while self.settings.store.exists() and (part := list(islice(rest, READ_AT_ONCE))):
            found.append(self.store.oldest_of(part))
        return min((created for created in found if created is not None), default=None)

    def answers(self, part: ProbeItem, target: Target | None) -> list[Answer]:
        """The answers that an item is measured from; blocks until they are there.

        Raises:
            ModelError: the model that scores answers cannot be used; nothing is asked then.
            TargetError: there is no such model of embeddings; nothing is asked then.
            FairnessError: answers that could have been had are missing: not recorded, given up, or none came at all.
        """
        part.require()
        self.embedder(part)
        if target is None:
            if id(part.probe) not in self._rows:
                self._rows[id(part.probe)] = part.probe, kinds.rows(part.probe)
            return self._read(part, [answer for answer in self._rows[id(part.probe)][1] if part.uses(answer.labels)])
        if self._last is not None:
            other, asked, answers = self._last
            if asked is target and part.stands_on_answers_of(other):
                return answers
            # Gone before the next ones are read: there may be room for one item's answers only.
            del answers
            self._last = None
        answers = self._first_answers(part, target)
        while more := part.follow_ups(answers):
            answers += read_all(more, self.ask(target, [prompt.request for prompt in more]))
        answers = self._read(part, answers)
        self._last = part, target, answers
        return answers

    def _first_answers(self, part: ProbeItem, target: Target) -> list[Answer]:
        """To what is asked in any case. Responses are read in slices, as very many are smaller when they are read."""
        answers: list[Answer] = []
        failures: list[FairnessError] = []
        questions = part.questions()
        while prompts := list(islice(questions, READ_AT_ONCE)):
            if not answers and len(prompts) == READ_AT_ONCE:
                self.plan(target, part.requests)
            responses = self.ask(target, [prompt.request for prompt in prompts])
            answers += read_all(prompts, responses)
            failures += [response for response in responses if isinstance(response, FairnessError)]
        if failures and len(failures) == len(answers):
            whole = f"none of {len(failures)} questions got an answer; the first"
            raise AnswersMissing(f"{whole if len(failures) > 1 else 'the only question got no answer'}: {failures[0]}")
        return answers

    def _read(self, part: ProbeItem, answers: list[Answer]) -> list[Answer]:
        """The answers as the judge reads them, where one does."""
        judging = part.probe.judging
        if judging is None:
            return answers
        self.require_judge(part.probe)
        return judged(answers, judging, cast("Target", self.judge), self.ask)

    def measure(self, part: ProbeItem, target: Target | None) -> Measured:
        """Ask, wait and measure, each of them only where it was not done before.

        Raises:
            NotMeasurable: too few usable answers.
            FairnessError: as in `answers`.
        """
        answers = self.answers(part, target)
        if target is None:
            return self.measured(part, answers, cast("ResponsesSettings", part.probe.responses).file.name)
        return self.measured(part, answers, target.name)

    def measured(self, part: ProbeItem, answers: Sequence[Answer], target: str) -> Measured:
        """Measure these answers.

        Raises:
            NotMeasurable: too few usable answers.
        """
        key = self.key_of("measure", part, answers)
        kept = self.store.cache.get(key, Measurement.from_json)
        if kept is not None:
            return Measured(part, target, answers, kept)
        readable = self.prepared(part, answers)
        about = part.audit.about(part.probe, part.item, answers)
        try:
            measurement = part.audit.measure(part.probe, part.item, readable)
        except NotMeasurable as error:
            failed = answer_checks.failed_requests(about)
            if failed is not None:
                error.args = (f"{str(error).rstrip('.')}. {failed.message}.",)
            raise
        if (cut := answer_checks.truncated(part.probe, about))["answers"]:
            measurement = replace(measurement, details={**measurement.details, "truncated": cut})
        if (moved := noise.paraphrases(part, readable)) is not None:
            measurement = replace(measurement, details={**measurement.details, "paraphrases": moved})
        concerns = answer_checks.concerns(part.probe, part.audit, part.item, about, measurement)
        measurement = replace(measurement, concerns=concerns)
        self.store.cache.put(key, measurement.to_json())
        return Measured(part, target, answers, measurement)

    def look(self, part: ProbeItem, target: Target | None, *, rebaseline: bool = False) -> tuple[Measured, Before]:
        """Measure an item and set it beside its baseline; ask for more as long as its verdict is open and more may be.

        Args:
            part: the item.
            target: whom to ask; `None` where the probe brings its answers along.
            rebaseline: set it beside the baseline that it will be, made of everything that may be asked.

        Raises:
            NotMeasurable: too few usable answers.
            FairnessError: as in `answers`.
        """
        looks = part.looks[-1:] if rebaseline else part.looks
        for look in looks[:-1]:
            if (found := self._settled(look, target)) is not None:
                return found
        measured = self.measure(looks[-1], target)
        return measured, self.as_baseline(measured) if rebaseline else self.before(measured)

    def _settled(self, look: ProbeItem, target: Target | None) -> tuple[Measured, Before] | None:
        """A look that decides, or `None`: nothing of it is in the way of the next one's answers then."""
        try:
            measured = self.measure(look, target)
        except NotMeasurable as error:
            if error.hopeless:
                raise
            return None
        before = self.before(measured)
        return (measured, before) if settled(measured, before) else None

    def before(self, measured: Measured) -> Before:
        """The item's baseline, and the change since.

        Raises:
            BaselineError: the baseline's files cannot be understood.
        """
        part = measured.part
        baseline = self._baseline(part)
        entry = baseline.items.get(part.id) if baseline else None
        if baseline is None or entry is None:
            return Before()
        stale = files.stale_parts(entry, part.shape)
        if part.asks and part.probe.compare_sampling:
            stale += files.changed_sampling(entry, part.probe.sampling.to_json())
        if stale:
            return Before(entry, stale)
        stored_values.require_possible(part, baseline, entry)
        try:
            rows = baseline.answers(entry.generation)
            then = _answers(part, rows)
            whole = part.whole
            # There may be room for one copy of the answers only.
            everything = then if part.stage == whole.stage else _answers(whole, rows)
            del rows
            entry, note = self._checked(whole, baseline, entry, everything)
            del everything
            # Read again for each item where it is large: between two items, nothing of it need be kept.
            self._kept = baseline if baseline.size <= KEPT_ANSWERS else None
            del baseline
            return Before(entry, (), self._compare(measured, entry, then), then, note)
        except BaselineStale as error:
            return Before(entry, error.parts)

    def _checked(
        self, whole: ProbeItem, baseline: files.Baseline, entry: files.Entry, answers: Sequence[Answer]
    ) -> tuple[files.Entry, str | None]:
        """Return the entry with the value that its own answers give, if there are any; see `stored_values.checked`."""
        if not answers:
            return entry, None
        key = self.key_of("value", whole, answers)
        own = self.store.cache.get(key, float)
        if own is None:
            try:
                own = float(whole.audit.value(whole.probe, whole.item, self.prepared(whole, answers)))
            except NotMeasurable as error:
                raise BaselineError(
                    f"{baseline.answers_path}: the answers of {whole.id} cannot be measured: {error} Make a new "
                    "baseline with --fairness-rebaseline.",
                    remade=True,
                ) from error
            self.store.cache.put(key, own)
        return stored_values.checked(whole, baseline, entry, own)

    def _baseline(self, part: ProbeItem) -> files.Baseline | None:
        """The item's baseline: the one that was read last, where it is still that."""
        baseline = files.read(self.settings.baselines, part.baseline)
        return self._kept if baseline == self._kept else baseline

    def as_baseline(self, measured: Measured) -> Before:
        """Return the baseline that this measurement becomes; it is not compared with itself."""
        part = measured.part
        sampling = part.probe.sampling.to_json() if part.asks else {}
        date = datetime.fromtimestamp(self.started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        entry = files.Entry.measured(
            measured.measurement,
            target=measured.target,
            sampling=sampling,
            shape=part.shape,
            date=date,
            run_to_run=noise.run_to_run(part, self.prepared(part, measured.answers)),
            measured_by=part.measured_by,
            served=measured.served,
        )
        return Before(entry, new=True)

    def _compare(self, measured: Measured, entry: files.Entry, then: Sequence[Answer]) -> Comparison:
        part = measured.part
        # As baselines keep it, or a run would differ from itself by rounding.
        rounded = replace(measured.measurement, value=files.rounded(measured.value))
        by_value = partial(part.audit.compare_values, rounded, entry.value, entry.standard_error)
        if not then:
            return by_value(paired=False)
        key = self.key_of("compare", part, measured.answers, then)
        kept = self.store.cache.get(key, Comparison.from_json)
        if kept is not None:
            return kept
        try:
            comparison = part.audit.compare(
                part.probe, part.item, self.prepared(part, measured.answers), self.prepared(part, then)
            )
        except NotMeasurable:
            return by_value(paired=False)
        if digest(then) == digest(measured.answers):
            comparison = _unchanged(comparison)
        self.store.cache.put(key, comparison.to_json())
        return comparison

    def prepared(self, part: ProbeItem, answers: Sequence[Answer]) -> Sequence[Answer]:
        """Return the answers as the item's audit measures them, scored or embedded where it takes that.

        Raises:
            ModelError: the model that scores answers cannot be loaded.
            FairnessError: there is no such embedder, or a text has no embedding.
        """
        embedder = self.embedder(part)
        if embedder is not None:
            return embedded(part, answers, embedder, self.ask)
        return scored(part, answers, self.store)

    def key_of(self, what: str, part: ProbeItem, *answers: Sequence[Answer]) -> str:
        """Return the name of a measurement in the store; see `parts.key_of`."""
        embedder = self.embedder(part)
        return key_of(what, part, *answers, embedder=None if embedder is None else embedder.identity)

    def plan(self, target: Target, requests: Iterable[Request]) -> None:
        """Have these requests asked in the background, in their order; see `Engine.plan`."""
        answerable = (request for request in requests if likelihoods.can_be_asked(target, request))
        self.engine(target).plan(answerable)

    def ask(self, target: Target, requests: Sequence[Request]) -> list[Response | FairnessError]:
        """Plan and wait; see `Engine.answers`.

        Raises:
            TargetError: likelihoods are asked of a target that gives none.
        """
        likelihoods.require(target, requests)
        return self.engine(target).answers(requests)

    def newly_planned(self) -> dict[str, bool]:
        """The keys of requests planned since this was called last, and whether each was recorded already."""
        news: dict[str, bool] = {}
        for _, engine in self._engines.values():
            for key, recorded in engine.newly_planned().items():
                news[key] = recorded and news.get(key, True)
        return news

    def stop(self, grace: float = DEFAULT_TIMING.stop_grace) -> None:
        """Send nothing more from this process, and keep no answers for further items.

        Args:
            grace: seconds that are waited for what is in flight.
        """
        self._last = self._kept = None
        for _, engine in self._engines.values():
            engine.stop(grace)

    def stop_all(self) -> None:
        """Send nothing more from any process of the run, at once."""
        if self.settings.store.exists():
            self.store.runs.stop(self.id)
        self.stop()

    def close(self) -> None:
        """Stop, and give back what was opened."""
        self.stop()
        if self._engines and self.id.process == this_process():
            with suppress(StoreError):  # whoever asked has been told
                self.store.runs.stop(self.id)
        if "store" in self.__dict__:
            self.store.close()


def _answers(part: ProbeItem, rows: Iterable[Row]) -> list[Answer]:
    """The answers of an item's baseline."""
    return [part.read(row) for row in rows if part.uses(row.labels)]


def _unchanged(comparison: Comparison) -> Comparison:
    """The comparison of a run with itself: no change, whatever its resampling drew, and as sure of it as of any."""
    shift = comparison.value
    interval = comparison.interval and (comparison.interval[0] - shift, comparison.interval[1] - shift)
    return replace(comparison, value=0.0, interval=interval, p_value=1.0)
