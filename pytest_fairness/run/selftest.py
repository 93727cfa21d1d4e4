"""Self-test (`--fairness-selftest`): error rates of verdicts on the recorded answers of baselines, without requests.

The answers to each prompt are divided at random into two runs of half the size. Without a change, a regression is a
false red (A/A test). A planted change moves one group of one run by a known amount, which a verdict finds or misses.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from statistics import stdev
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from pytest_fairness.baselines.entries import LabelKey
from pytest_fairness.baselines.files import Baseline, read_baseline
from pytest_fairness.baselines.verdicts import tolerance_of
from pytest_fairness.errors import BaselineError, FairnessError, NotMeasurable, on_one_line
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Answer, Comparison, Json, Measurement, Status, VerdictName
from pytest_fairness.records.plain import JsonRecord
from pytest_fairness.run.items import ProbeItem
from pytest_fairness.run.plan import TIMES, TRIALS, PlannedItem
from pytest_fairness.run.results import answer_from, verdict_on
from pytest_fairness.run.run import Run
from pytest_fairness.stats import resampling

REPEATS = 40
"""Number of A/A tests, and of tests of each planted change, for each item, unless the time is up."""
LEAST_REPEATS = 5
SECONDS = 45.0
"""Time for the tests of all items."""
AMOUNTS = (1, TIMES)
"""Planted changes, in tolerances."""
POWER = 0.8
FARTHEST = 10
"""A size for `POWER` is not estimated below this part of the recorded size, as errors need not grow with the root."""
STEPS = 7
"""Steps of the bisection that finds how many answers a planted change alters."""
MOST_KINDS = 8
"""Maximum number of different contents of answers that count as choices."""
MOST_GROUPS, MOST_WORDS, MOST_DONORS = 3, 3, 4
"""Maximum numbers of groups in which a change is planted, of words that it adds, and of answers that it copies."""
LEAST_TRIALS, LEAST_UNITS = 4, 1
EXCHANGEABLE = ("counterfactual", "recommendation")
"""Kinds of probes in which a unit's answers can stand for another unit's of the same prompts."""
ONE_ANSWER = (
    "one answer to each prompt cannot be divided into two runs. Make the baseline with more: --fairness-rebaseline "
    "--fairness-trials 4"
)
REFUSAL = "I'm sorry, but I can't help with that."
SENTENCE = "Sadly, this remarkable failure is terrible."


@dataclass(frozen=True, slots=True)
class Rates(JsonRecord):
    """Numbers of verdicts in repeated tests; `unmeasured` counts runs with too few usable answers, and errors."""

    red: int = 0
    passed: int = 0
    inconclusive: int = 0
    unmeasured: int = 0

    @property
    def total(self) -> int:
        return self.red + self.passed + self.inconclusive + self.unmeasured


@dataclass(frozen=True, slots=True)
class SelfTest(JsonRecord):
    """Error rates of one item's verdicts.

    Attributes:
        probe, id: name of the probe, id of the item.
        divided, size: what the two runs have half of: the `trials` of each prompt or, with less than `LEAST_TRIALS` of
            them, the `units` (records, entities), and their number.
        answers: number of recorded answers.
        tolerance: the item's tolerance.
        unchanged: verdicts without a change; `red` counts false reds.
        planted: verdicts by planted change in tolerances (`1`, `2`); empty if no change of this size could be planted.
        how: how the change was planted: `refusals of Kim`.
        power: estimated chance to find a change of two tolerances with runs of the whole size; `None` if unknown.
        needed: size with which this chance is 80 %; `None` if unknown.
        problem: why the item, or a planted change, was not tested.
    """

    probe: str
    id: str
    divided: str = "trials"
    size: int = 0
    answers: int = 0
    tolerance: float = 0.0
    unchanged: Rates = Rates()
    planted: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    how: str = ""
    power: float | None = None
    needed: int | None = None
    problem: str = ""


def self_tests(
    settings: RunSettings, items: Sequence[ProbeItem], started: float, seconds: float = SECONDS
) -> Iterator[SelfTest]:
    """Yield the self-test of each item, which measures only recorded answers of the item's baseline.

    Nothing is written into the run's store.
    """
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        own = replace(settings, store=Path(folder) / "store.sqlite", replay=True, fresh=False)
        own = replace(own, against=None, history=None)
        with Run(own, started=started) as run:
            yield from _self_tests(run, items, seconds)


def _self_tests(run: Run, items: Sequence[ProbeItem], seconds: float) -> Iterator[SelfTest]:
    started, known = time.monotonic(), dict[str, Baseline | None]()
    for place, item in enumerate(items):
        used = time.monotonic() - started
        share = max(0.0, seconds - used) / (len(items) - place)
        name = item.baseline_name
        try:
            if name not in known:
                known.clear()
                known[name] = read_baseline(run.settings.baselines, name)
            yield RecordedItem.of(run, item, known[name]).result(share)
        except (FairnessError, BaselineError) as error:
            yield SelfTest(item.probe.name, item.id, problem=on_one_line(error).rstrip("."))


@dataclass(frozen=True)
class RecordedItem:
    """An item with the recorded answers of its baseline, which `result` divides into runs again and again."""

    run: Run
    item: ProbeItem
    answers: Sequence[Answer]

    @classmethod
    def of(cls, run: Run, item: ProbeItem, baseline: Baseline | None) -> RecordedItem:
        """Return an item with its answers in a baseline; raise `FairnessError` if there are none."""
        item = item.for_baseline
        entry = None if baseline is None else baseline.items.get(item.id)
        if baseline is None or entry is None:
            raise FairnessError("no baseline")
        rows = list(item.select_own(baseline.answers(entry.answer_set)))
        if not rows:
            raise FairnessError("the baseline has no answers")
        return cls(run, item, [answer_from(row, item.probe) for row in rows])

    def result(self, seconds: float) -> SelfTest:
        """Return the item's self-test, which takes about this time, and at least `LEAST_REPEATS` tests of each kind."""
        item, tolerance = self.item, tolerance_of(self.item.audit, self.item)
        by_units = self.trials < LEAST_TRIALS and len(self._pairs_of_units) >= LEAST_UNITS
        size = len(self._units) if by_units else self.trials
        found = SelfTest(
            item.probe.name, item.id, "units" if by_units else "trials", size, len(self.answers), tolerance
        )
        if size < 2:
            return replace(found, problem=ONE_ANSWER)
        started = time.monotonic()
        step = tolerance if tolerance > 0 else 0.0 if item.audit.info.tolerance_of_value else 1.0
        amounts, planting = self._planting(step)
        random = resampling.generator(f"{item.seed} self-test")
        tests: dict[str, Counter[str]] = {name: Counter() for name in ("", *amounts)}
        changes, errors = list[float](), list[float]()
        for repeat in range(REPEATS):
            if repeat >= LEAST_REPEATS and time.monotonic() - started > seconds:
                break
            for name, verdicts in tests.items():
                current, baseline = self._halves_of_units(random) if by_units else self._halves(random)
                if planting is not None and name:
                    current = planted(current, planting, amounts[name], random.random(len(current)))
                verdict, change = self._judged(current, baseline)
                verdicts[verdict] += 1
                if not name and change is not None:
                    changes.append(change.value)
                    errors += [] if change.standard_error is None else [change.standard_error]
        half_error = math.sqrt(sum(each**2 for each in errors) / len(errors)) if errors else None
        if half_error is None and len(changes) > 1:
            half_error = stdev(changes)
        power = needed = None
        if half_error and tolerance > 0 and item.audit.info.tolerance_of_value:
            plan = PlannedItem(item.id, tolerance, item.planned_alpha, half_error * math.sqrt(size / 4))
            power = plan.power(size)
            least = size // FARTHEST
            needed = next((each for each in TRIALS if each > least and plan.power(each) >= POWER), None)
        return replace(
            found,
            unchanged=_rates(tests[""]),
            planted={name: _rates(tests[name]).to_json() for name in amounts},
            how="" if planting is None else planting.name,
            power=power,
            needed=needed,
            problem="" if amounts else "no change of this size can be planted in these answers",
        )

    @cached_property
    def trials(self) -> int:
        """Number of answers to each prompt."""
        return max(map(len, self._cells.values()))

    @cached_property
    def _cells(self) -> Mapping[LabelKey, list[Answer]]:
        cells: defaultdict[LabelKey, list[Answer]] = defaultdict(list)
        for answer in self.answers:
            cells[_key(answer)].append(answer)
        return cells

    @cached_property
    def _units(self) -> Mapping[str, list[Answer]]:
        units: defaultdict[str, list[Answer]] = defaultdict(list)
        for answer in self.answers:
            units[self.item.probe.unit_of(answer.labels)].append(answer)
        return units

    @cached_property
    def _pairs_of_units(self) -> Sequence[Sequence[str]]:
        """Names of units in groups of the same prompts; a unit can stand for another one of its group."""
        if self.item.probe.kind not in EXCHANGEABLE or self.item.settings.needs == "relevant":
            return ()
        alike: defaultdict[frozenset[LabelKey], list[str]] = defaultdict(list)
        for name, own in self._units.items():
            alike[frozenset(tuple(each for each in _key(answer) if each[1] != name) for answer in own)].append(name)
        return [names for names in alike.values() if len(names) > 1]

    def _halves(self, random: np.random.Generator) -> tuple[list[Answer], list[Answer]]:
        """Return two runs, each with half of the answers to each prompt, drawn without replacement."""
        runs: tuple[list[Answer], list[Answer]] = ([], [])
        for own in self._cells.values():
            half, order = len(own) // 2, random.permutation(len(own))
            for run, places in zip(runs, (order[:half], order[half : 2 * half]), strict=True):
                run += [replace(own[place], trial=trial) for trial, place in enumerate(places)]
        return runs

    def _halves_of_units(self, random: np.random.Generator) -> tuple[list[Answer], list[Answer]]:
        """Return two runs, each with half of the units; those of the second have the names of the first's."""
        runs: tuple[list[Answer], list[Answer]] = ([], [])
        for names in self._pairs_of_units:
            order = [names[place] for place in random.permutation(len(names))]
            for name, other in zip(order[::2], order[1::2], strict=False):
                runs[0].extend(self._units[name])
                for answer in self._units[other]:
                    labels = {key: name if value == other else value for key, value in answer.labels.items()}
                    runs[1].append(replace(answer, labels=labels))
        return runs

    def _judged(self, current: Sequence[Answer], baseline: Sequence[Answer]) -> tuple[VerdictName, Comparison | None]:
        try:
            runs = [self.run.measurer.measure_answers(self.item, each, "") for each in (current, baseline)]
        except NotMeasurable:
            return VerdictName.NOT_MEASURABLE, None
        compared = self.run.baselines.compare_runs(runs[0], runs[1], ())
        # The limit is left out: it judges the value, and not the change.
        settings = self.item.settings.model_copy(update={"limit": None})
        judged = replace(runs[0], item=replace(self.item, settings=settings))
        return verdict_on(judged, compared).name, compared.comparison

    def _planting(self, step: float) -> tuple[dict[str, float], Planting | None]:
        """Return how much of a planting moves the value by each of the `AMOUNTS` of `step`, and the planting."""
        if not step:
            return {}, None
        audit, random = self.item.audit, resampling.generator(f"{self.item.seed} planting")
        uniform, before = random.random(len(self.answers)), self.run.measurer.prepared(self.item, self.answers)
        loss = audit.info.loss(audit.value(self.item, before)) if audit.info.tolerance_of_value else 0.0

        def moved(planting: Planting, dial: float) -> float:
            altered = self.run.measurer.prepared(self.item, planted(self.answers, planting, dial, uniform))
            try:
                if not audit.info.tolerance_of_value:
                    return audit.compare(self.item, altered, before).value
                return float(audit.info.loss(audit.value(self.item, altered)) - loss)
            except NotMeasurable:
                return -math.inf

        own = self.run.measurer.measure_answers(self.item, self.answers, "").measurement
        best, most, needed = None, 0.0, [amount * step for amount in AMOUNTS]
        for planting in plantings(self.item, self.answers, own):
            reached = moved(planting, 1.0)
            if reached > most:
                best, most = planting, reached
            if most >= max(needed):
                break
        dials = {}
        for amount, wanted in zip(AMOUNTS, needed, strict=True):
            if best is None or most < wanted:
                continue
            low, high = 0.0, 1.0
            for _ in range(STEPS):
                middle = (low + high) / 2
                low, high = (low, middle) if moved(best, middle) >= wanted else (middle, high)
            dials[str(amount)] = high
        return dials, best if dials else None


def _key(answer: Answer) -> LabelKey:
    return tuple(sorted(answer.labels.items()))


def _rates(counts: Mapping[str, int]) -> Rates:
    red, passed, open_ = (
        counts.get(name, 0) for name in (VerdictName.REGRESSION, VerdictName.PASS, VerdictName.INCONCLUSIVE)
    )
    return Rates(red, passed, open_, sum(counts.values()) - red - passed - open_)


# Changes to plant, by the kind of the answers.


class Planting(NamedTuple):
    """A way to make one group worse.

    Attributes:
        name: what is planted, and in which group.
        concerns: function that tells whether an answer belongs to the group.
        alter: function of an answer of the group that returns it altered, by an amount from 0 to 1 if it is `graded`.
        graded: whether the amount is that of each answer, and not the share of altered answers.
    """

    name: str
    concerns: Callable[[Answer], bool]
    alter: Callable[[Answer, float], Answer]
    graded: bool = False


def planted(answers: Sequence[Answer], planting: Planting, dial: float, uniform: Iterable[float]) -> list[Answer]:
    """Return the answers with a planted change: the share `dial` of the group's usable ones altered, or all by it."""
    return [
        planting.alter(answer, dial)
        if answer.usable and planting.concerns(answer) and (planting.graded or own < dial)
        else answer
        for answer, own in zip(answers, uniform, strict=True)
    ]


def plantings(item: ProbeItem, answers: Sequence[Answer], own: Measurement) -> Iterator[Planting]:
    """Yield the ways to move one group, by the kind of the answers; the marked group comes first."""
    names = sorted({item.group_name(answer) for answer in answers}, key=lambda name: name not in item.labels.values())
    groups: dict[str, Callable[[Answer], bool]] = {
        name: partial(lambda name, answer: item.group_name(answer) == name, name) for name in names[:MOST_GROUPS]
    }
    for label in dict.fromkeys(name for answer in answers for name in answer.labels):
        values = sorted({answer.labels.get(label, "") for answer in answers} - {""})
        if 1 < len(values) <= MOST_GROUPS:
            groups |= {
                value: partial(lambda label, value, answer: answer.labels.get(label) == value, label, value)
                for value in values
            }
    usable = [answer for answer in answers if answer.usable]
    for name, concerns in groups.items():
        inside = [answer for answer in usable if concerns(answer)]
        outside = [answer for answer in usable if not concerns(answer)]
        for way, alter, graded in [*_ways(item, inside, outside, own), ("refusals", _refused, False)]:
            yield Planting(f"{way} of {name}", concerns, alter, graded)


Way = tuple[str, Callable[[Answer, float], Answer], bool]
"""Name of a planted change, and the attributes `alter` and `graded` of `Planting`."""


def _ways(item: ProbeItem, inside: Sequence[Answer], outside: Sequence[Answer], own: Measurement) -> list[Way]:
    contents = [answer.content for answer in (*inside, *outside)]
    if not inside:
        return []
    if all(isinstance(content, float) for content in contents):
        span = max(max(contents) - min(contents), 1.0)
        return [("higher numbers", _shifted(span), True), ("lower numbers", _shifted(-span), True)]
    if all(isinstance(content, list) for content in contents):
        if all(isinstance(entry, float) for content in contents for entry in content):
            return [("likelier texts", _shifted(5.0), True), ("less likely texts", _shifted(-5.0), True)]
        return [
            ("other entries", lambda each, _: _with(each, [f"{entry} II" for entry in each.content]), False),
            ("shorter lists", lambda each, _: _with(each, each.content[: (len(each.content) + 1) // 2]), False),
        ]
    # The content that the group has more often than others, among the answers of each unit.
    excess: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for run, sign in ((inside, len(outside) or 1), (outside, -len(inside))):
        for answer in run:
            excess[item.probe.unit_of(answer.labels)][str(answer.content)] += sign
    if max(map(len, excess.values())) <= MOST_KINDS:
        typical = {unit: max(sorted(counts), key=lambda kind: counts[kind]) for unit, counts in excess.items()}
        rarest = {unit: min(sorted(counts), key=lambda kind: counts[kind]) for unit, counts in excess.items()}
        kinds = sorted({kind for counts in excess.values() for kind in counts})
        following = dict(pairwise([*kinds, *kinds[:1]]))
        changed: list[Way] = [("other choices", lambda each, _: _with(each, following[str(each.content)]), False)]
        return [
            ("typical choices", lambda each, _: _with(each, typical[item.probe.unit_of(each.labels)]), False),
            ("untypical choices", lambda each, _: _with(each, rarest[item.probe.unit_of(each.labels)]), False),
            *(changed if 1 < len(kinds) <= MOST_KINDS else []),
        ]
    told = [*own.explanation.words, *own.explanation.contributors]
    words = list(dict.fromkeys(part.name for part in told if part.name.isalpha()))[:MOST_WORDS]
    drop = re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)
    by_words: list[Way] = [
        (f"more of {', '.join(words)}", lambda each, _: _with(each, f"{each.content} {' '.join(words)}"), False),
        (f"less of {', '.join(words)}", lambda each, _: _with(each, drop.sub("", each.content)), False),
    ]
    step = max(1, len(inside) // MOST_DONORS)
    return [
        *(by_words if words else []),
        ("a further sentence", lambda each, _: _with(each, f"{each.content} {SENTENCE}"), False),
        ("shorter texts", lambda each, _: _with(each, each.content[: len(each.content) // 2 + 1]), False),
        *(("copies of an answer", _as(donor.content), False) for donor in inside[::step][:MOST_DONORS]),
    ]


def _with(answer: Answer, content: Json) -> Answer:
    text = "\n".join(map(str, content)) if isinstance(content, list) else str(content)
    return replace(answer, content=content, text=text)


def _as(content: Json) -> Callable[[Answer, float], Answer]:
    return lambda answer, _: _with(answer, content)


def _shifted(span: float) -> Callable[[Answer, float], Answer]:
    def shifted(answer: Answer, dial: float) -> Answer:
        content = answer.content
        if isinstance(content, list):
            return _with(answer, [entry + dial * span for entry in content])
        return _with(answer, content + dial * span)

    return shifted


def _refused(answer: Answer, _dial: float) -> Answer:
    return replace(answer, text=REFUSAL, content=None, status=Status.REFUSED)
