"""Items of a run: audit items with their probes, models that read their answers, and what notebooks show."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from zlib import crc32

from pytest_fairness import scorers
from pytest_fairness.audits import registry
from pytest_fairness.audits.base import BETA, AnyAudit, AnyItem, AuditItem, Preparation
from pytest_fairness.audits.info import AuditInfo, EffectSize
from pytest_fairness.audits.rules import rule_of
from pytest_fairness.baselines.entries import Row
from pytest_fairness.baselines.verdicts import gravest_concern
from pytest_fairness.errors import FairnessError, ModelError, NotMeasurable
from pytest_fairness.languages import ENGLISH
from pytest_fairness.probes import Probe, shared_keys
from pytest_fairness.probes.field_types import ProbeSource, canonical
from pytest_fairness.probes.shared_keys import Stage
from pytest_fairness.records import (
    Answer,
    Answers,
    Concern,
    Effect,
    ItemResult,
    Json,
    Measurement,
    Prompt,
    Request,
    Size,
    Verdict,
    VerdictName,
)
from pytest_fairness.reports.tables import DataTable, measurement_table, word_table
from pytest_fairness.scorers import Scorer
from pytest_fairness.stats import intervals, resampling

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.reports.charts import Plot


# Audit items of a probe, with all that is needed to request and measure their answers.

LabelledT = TypeVar("LabelledT", Prompt, Answer, Row)

FINAL_STAGE = Stage()
"""Stage of an item at its final analysis, when all prompts have been sent."""

MAX_ALPHA = 0.01
"""Maximum one-sided significance level of an item, even if few items share the probe's `alpha`."""


KEPT_BY_PROMPT = 2_000
"""Maximum number of answers to single prompts of a probe that are kept for its next item; they may be long."""
KEPT_PROMPTS = 200_000
"""Maximum number of prompts of a probe that are kept for its next item; there may be millions. The prompts of an axis
of 1,000 values with 200 trials fit (40 MB): each of its items would otherwise make the prompts of all items anew."""
ALL_KEPT_PROMPTS = 200_000
"""Maximum number of prompts of all probes that are kept, because a run goes through all probes several times: to count
the requests, to plan them, and to measure the answers."""


class RecentPrompts:
    """Prompts of the probes that were used last; all items of a probe select their prompts from these prompts."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], tuple[Probe, list[Prompt], list[Mapping[str, str]]]] = {}
        self._too_many: dict[tuple[int, int], tuple[Probe, list[Mapping[str, str]]]] = {}
        self._number = 0

    def prompts_of(self, probe: Probe, trials: int) -> Iterable[Prompt]:
        """Return all prompts of a probe, with this number of trials each.

        Raises:
            FairnessError: the prompts cannot be made.
        """
        if (id(probe), trials) in self._kept:
            return self._kept[id(probe), trials][1]
        if (id(probe), trials) in self._too_many:
            return probe.prompts(trials)
        rest = iter(probe.prompts(trials))
        first = list(islice(rest, KEPT_PROMPTS + 1))
        if len(first) > KEPT_PROMPTS:
            self._too_many[id(probe), trials] = probe, [prompt.labels for prompt in probe.prompts(1)]
            return chain(first, rest)
        if self._number + len(first) > ALL_KEPT_PROMPTS:
            self.forget()
        # All trials of a prompt share one object with the labels.
        labels = [next(group) for _, group in groupby((prompt.labels for prompt in first), key=id)]
        self._kept[id(probe), trials] = probe, first, labels
        self._number += len(first)
        return first

    def labels_of(self, probe: Probe, trials: int) -> Sequence[Mapping[str, str]]:
        """Return the different labels of a probe's prompts, in their order.

        Raises:
            FairnessError: the prompts cannot be made.
        """
        self.prompts_of(probe, trials)
        kept = self._kept.get((id(probe), trials)) or self._too_many[id(probe), trials]
        return kept[-1]

    def forget(self) -> None:
        """Free the prompts in memory."""
        self._kept.clear()
        self._too_many.clear()
        self._number = 0


RECENT = RecentPrompts()


@dataclass(frozen=True, kw_only=True)
class ProbeItem(AuditItem[Probe, Any]):
    """Audit item of a probe, with its audit and the stage at which it is measured.

    Attributes:
        trials: number of trials that overrides the probe's own number, or `None`.
        stage: numbers of trials and entities at this interim analysis; by default all.
        night: the only stage of a run that asks a part of the trials or units; `None` for all.
        test_file: the file of the Python test that checks the item; `None` for an item of a probe file.
    """

    audit: AnyAudit
    trials: int | None = None
    stage: Stage = FINAL_STAGE
    night: Stage | None = None
    test_file: Path | None = None

    @classmethod
    def made_of(cls, item: AnyItem, audit: AnyAudit, trials: int | None = None, **changes: Any) -> ProbeItem:
        """Return a probe item with the attributes of `item`, and with this audit and number of trials.

        Some of the attributes are replaced by `changes`.
        """
        inherited = {field.name: getattr(item, field.name) for field in fields(AuditItem)}
        return cls(**{**inherited, **changes}, audit=audit, trials=trials)

    @property
    def baseline_name(self) -> str:
        """Return the name of the item's baseline: `PROBE`, or `PROBE@TARGET` for one of several targets."""
        return self.probe.name if self.target is None else f"{self.probe.name}@{self.target}"

    @property
    def file(self) -> Path:
        """Return the probe file, or the file of the Python test."""
        return self.test_file or self.probe.source.path

    @property
    def asks(self) -> bool:
        """Return whether requests are sent; if not, the answers are in the probe's `responses:` file."""
        return self.probe.responses is None

    @property
    def trial_count(self) -> int:
        """Return the number of trials of each prompt."""
        return shared_keys.max_trials(
            self.probe.trials, self.trials if self.stage.trials is None else self.stage.trials
        )

    def prompts(self) -> Iterator[Prompt]:
        """Yield the prompts of the item one by one, because there may be millions."""
        prompts = RECENT.prompts_of(self.probe, self.trial_count)
        if isinstance(prompts, list):
            return self.select_own(prompts)
        return self.probe.prompts_with(self.uses, self.trial_count)

    def select_own(self, labelled: Iterable[LabelledT]) -> Iterator[LabelledT]:
        """Yield the prompts (or answers, or rows of a baseline) that the item uses."""
        return selected(labelled, self.uses)

    def requests(self) -> Iterator[Request]:
        """Yield the requests of the item; end at an error in its prompts, which the item's set-up reports."""
        with suppress(FairnessError):
            for prompt in self.prompts():
                yield prompt.request

    @cached_property
    def analyses(self) -> list[ProbeItem]:
        """Return one item for each interim analysis and, last, an item for the final analysis of all answers.

        A spending function divides alpha and beta (1 minus the power) among the analyses, so that all analyses together
        have the error rates of a single analysis; see `stats.resampling.interim_alphas`.
        """
        if not self.asks:
            return [self]
        if self.night is not None:
            return [replace(self, stage=self.night)]
        stages = self.probe.stages()
        if not rule_of(self.audit, self).tested:
            stages = stages[-1:]  # without a test, there are no error rates to divide
        if self.trials is not None:
            stages = list(dict.fromkeys(replace(stage, trials=None) for stage in stages))
        shares = shared_keys.information_fractions(stages)
        alphas, betas = (resampling.interim_alphas(shares, total) for total in (self.alpha, self.beta))
        return [
            replace(
                self, alpha=alpha, beta=beta, total_alpha=self.alpha, final_analysis=stage is stages[-1], stage=stage
            )
            for stage, alpha, beta in zip(stages, alphas, betas, strict=True)
        ]

    @property
    def for_baseline(self) -> ProbeItem:
        """Return the item at its final analysis, as it is measured for a baseline."""
        undivided = replace(self, alpha=self.planned_alpha, beta=BETA, total_alpha=None, stage=FINAL_STAGE, night=None)
        return undivided.analyses[-1]

    @property
    def fingerprint(self) -> Mapping[str, str]:
        """Return, by name, all inputs that determine the item's prompts and the parsing of its answers."""
        codes = self.probe.language.codes
        language = {} if codes == ENGLISH.codes else {"language": ", ".join(codes)}
        marks = self.probe.answer.thoughts
        return {
            **self.probe.fingerprint(self.labels),
            **language,
            **({"thoughts": canonical(marks)} if marks else {}),
            **self.audit.fingerprint(self),
            **self.models.fingerprint,
        }

    @cached_property
    def models(self) -> ItemModels:
        """Return the models that read the item's answers before the measurement; see `Audit.preparation`."""
        return ItemModels(self.audit.preparation(self), self.probe)

    def uses(self, labels: Mapping[str, str]) -> bool:
        """Return whether the item measures answers with these labels at its current stage."""
        if not (self.audit.uses(self, labels) and self.stage.includes(labels)):
            return False
        if self.stage.part is None:
            return True
        part, parts = self.stage.part
        return crc32(self.probe.unit_of(labels).encode("utf-8", "surrogatepass")) % parts == part

    def in_part(self, part: int, parts: int) -> ProbeItem:
        """Return the item for a night that asks one of several parts: fewer trials or, of few trials, some units."""
        trials = shared_keys.max_trials(self.probe.trials, self.trials)
        if parts == 1 or not self.asks:
            return self
        if trials >= parts:
            return replace(self, night=Stage(trials=round(trials / parts)))
        return replace(self, night=Stage(trials=trials, part=(part, parts)))


def selected(labelled: Iterable[LabelledT], uses: Callable[[Mapping[str, str]], bool]) -> Iterator[LabelledT]:
    """Yield the prompts (or answers, or rows of a baseline) with labels for which the function `uses` returns true."""
    last: Mapping[str, str] | None = None
    used = False
    for each in labelled:
        # All trials of a prompt share one object with the labels, so the labels are compared once.
        if each.labels is not last:
            last, used = each.labels, uses(each.labels)
        if used:
            yield each


def items_of(probe: Probe, trials: int | None = None) -> list[ProbeItem]:
    """Return all audit items of a probe, in the probe's order, each with its share of the probe's `alpha`."""
    found = [
        (item, audit)
        for audit, settings in ((registry.get(probe.kind, name), given) for name, given in probe.audits.items())
        for item in audit.items(probe, settings)
    ]
    alpha = min(MAX_ALPHA, probe.alpha / max(1, len(found)))
    return [ProbeItem.made_of(item, audit, trials, alpha=alpha, seed=item.id) for item, audit in found]


# Models that read the answers of one item before the measurement.


def refusal_scorer(probe: Probe) -> tuple[Scorer, str]:
    """Return the scorer that recognises refusals in a probe's answers, and the label whose score is used.

    The scorer's model is not loaded yet.

    Raises:
        ModelError: the scorer cannot be used.
    """
    return _declared(probe.reading.refusals.scorer or "", probe.source)


def _declared(name: str, source: ProbeSource) -> tuple[Scorer, str]:
    """Return the scorer that the ini file or an installed package declares under this name, and the label to use.

    Raises:
        ModelError: no scorer has this name, or the scorer cannot be used.
    """
    definition = (source.scorers or {}).get(name)
    if definition is None:
        raise ModelError(f"there is no scorer {name!r}. Declare it with fairness_scorers in the ini file.")
    return scorers.open_scorer(definition, source.root or Path.cwd())


@dataclass(frozen=True)
class ItemModels:
    """The scorer or the embedding model that an item's audit needs, and the scorer that recognises refusals.

    Attributes:
        preparation: the model and the texts that the model reads; `None` if the audit needs no model. An audit has at
            most one model.
        probe: the probe, to whose folder paths of models are relative.
    """

    preparation: Preparation | None
    probe: Probe

    @property
    def scorer(self) -> tuple[Scorer, str] | None:
        """Return the scorer of the item's answers, and the label whose score is used; `None` without a scorer.

        The scorer's model is not loaded yet.

        Raises:
            ModelError: a declared scorer cannot be used.
        """
        found = self.preparation
        if found is None or found.gives == "embeddings":
            return None
        if found.gives == "labels":
            return scorers.open_model(found.model, self.probe.source.path.parent), found.label
        return _declared(found.model, self.probe.source)

    @property
    def embedder(self) -> str | None:
        """Return the name, as in the probe, of the model that embeds the item's answers; `None` without a model."""
        found = self.preparation
        return found.model if found is not None and found.gives == "embeddings" else None

    def texts(self, answers: Answers) -> Sequence[str | None]:
        """Return, for each answer, the text that the scorer or embedding model reads; `None` without a text."""
        return [None] * len(answers) if self.preparation is None else self.preparation.texts(answers)

    @property
    def fingerprint(self) -> dict[str, str]:
        """Return the entries of the item's fingerprint for scorers and for the model that recognises refusals."""
        parts, settings = {}, self.probe.reading.refusals
        if settings.by == "scorer":
            scorer, label = refusal_scorer(self.probe)
            parts["refusals"] = f"{scorer.identity}:{label}, at least {settings.threshold:g}"
        elif settings.by == "judge":
            parts["refusals"] = f"judge model, votes: {settings.votes}"
        found, preparation = self.scorer, self.preparation
        if found is None or preparation is None:
            return parts
        scorer, label = found
        if preparation.gives == "labels":
            return {**parts, "model": scorer.identity}
        return {**parts, f"scorer {preparation.model}": f"{scorer.identity}:{label}"}

    def require(self) -> None:
        """Raise `ModelError` if a model that scores answers, or a package that the model needs, is missing."""
        if self.probe.reading.refusals.by == "scorer":
            scorers.require_scorer(*refusal_scorer(self.probe))
        if self.scorer is not None:
            scorers.require_scorer(*self.scorer)

    @property
    def available(self) -> bool:
        """Return whether the model that the item needs is available; without its model, an item sends no requests."""
        try:
            self.require()
        except ModelError:
            return False
        return True


# Base class of measured items, which notebooks show as tables and plots.
#
# The methods import the modules of tables and charts only when needed, because most pytest runs need neither.


class InspectedItem(ABC):
    """Base class of measured items, with the tables and plots that notebooks show.

    Attributes:
        item: the item.
        target: name of the target.
        measurement: the measurement; `None` if there is an error.
        error: the error that prevented the measurement; `None` if there is a measurement.
    """

    item: ProbeItem
    target: str
    measurement: Measurement | None
    error: FairnessError | None = None

    @abstractmethod
    def _answers(self) -> Sequence[Answer]:
        """Return the answers from which the item was measured."""

    @property
    def id(self) -> str:
        """Return the item's id, as in pytest: `svm[race=Black]`."""
        return self.item.id

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels of the item, such as its group: `{"race": "Black"}`."""
        return self.item.labels

    @property
    def value(self) -> float:
        """Return the measured value in the audit's unit; raise the item's error if it was not measured."""
        return self._measurement().value

    @property
    def table(self) -> DataTable:
        """Return the table of measurements with this item as its only row."""
        return table_of([self])

    def to_pandas(self) -> pd.DataFrame:
        """Return the item as a pandas data frame of one row."""
        return self.table.to_pandas()

    def words(self) -> DataTable:
        """Return a table of all words in the item's answers, with their counts by group.

        The table is empty if the audit uses no words.

        Raises:
            FairnessError: the item was not measured, or its answers are no longer recorded.
        """
        return words_of(self.item, self._answers(), self._measurement().details)

    @property
    def plots(self) -> list[Plot]:
        """Return the charts of the item, as the HTML report shows them; an empty list without a measurement."""
        from pytest_fairness.reports import charts, view

        found, _ = charts.detail_charts(view.ItemView(_document_item(self), self.item.audit.info.to_json()))
        return [charts.Plot(chart) for chart in found]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}: {self.error or self._measurement().explanation.phrase}>"

    def _repr_html_(self) -> str:
        drawn = next((plot._repr_html_() for plot in self.plots if plot.chart.spec), "")
        return self.table._repr_html_() + drawn

    def _measurement(self) -> Measurement:
        if self.measurement is None:
            raise cast("FairnessError", self.error)
        return self.measurement


def table_of(views: Sequence[InspectedItem], started: str | None = None) -> DataTable:
    """Return the table of measurements of these items; only items with an error have a verdict."""
    rows = [
        row
        for view in views
        for row in measurement_table(
            {
                "target": view.target,
                "started": started,
                "methods": {view.item.audit_name: view.item.audit.info.to_json()},
                "items": [_document_item(view)],
            }
        ).rows
    ]
    empty = measurement_table({"target": "", "started": None, "items": []})
    return DataTable(empty.columns, rows, empty.paper_columns)


def _document_item(view: InspectedItem) -> dict[str, Json]:
    item, error, measurement = view.item, view.error, view.measurement
    name = VerdictName.NOT_MEASURABLE if isinstance(error, NotMeasurable) else VerdictName.ERROR
    result = ItemResult(
        nodeid=item.id,
        probe=item.probe.name,
        id=item.id,
        audit=item.audit_name,
        labels=item.labels,
        verdict=Verdict(name, "" if error is None else str(error)),
        measurement=measurement,
        limit=item.settings.limit,
        effect=None if measurement is None else effect_in_words(item.audit.info, measurement),
    )
    return {**result.to_json(), **({"verdict": None} if error is None else {})}


# Table of the words in the answers of one item.


def words_of(item: ProbeItem, answers: Sequence[Answer], details: Mapping[str, Json]) -> DataTable:
    """Return the table of the words in an item's answers; empty if the audit uses no words.

    Raises:
        NotMeasurable: there are too few usable answers.
    """
    own = list(item.select_own(answers))
    rows = item.audit.word_rows(item, own, details)
    return word_table({"probe": item.probe.name, "item": item.id, **row} for row in rows)


# Effect size of a measurement, for the report document and for tables in notebooks.


def effect_in_words(info: AuditInfo, measurement: Measurement) -> Mapping[str, Json] | None:
    """Return the effect size of a measurement, as a number and in words.

    The result is `None` if the audit has no effect size, or if the item compares no groups.
    """
    effect = effect_of(info.effect, lambda value: float(info.loss(value)), measurement, gravest_concern(measurement))
    return None if effect is None else effect.to_json()


# Effect size of one measurement: whether a difference is found, and the size of the difference in words.

ALPHA = 0.05
"""Largest p-value with which a difference counts as found."""
ROUNDING = 12
"""Number of decimals to which numbers are rounded before a comparison, because of floating-point errors."""


def effect_of(
    effect_size: EffectSize | None, loss: Callable[[float], float], measurement: Measurement, doubt: Concern | None
) -> Effect | None:
    """Return the effect of a measurement; `None` if the audit has no effect size, or if the item compares no groups.

    Without a `doubt`, the size in words is "small", "moderate" or "large" if `_is_found` finds a difference, otherwise
    "none". With a `doubt`, the size is unknown (the value `None`) if no difference is found, or if the doubt withholds
    a verdict or the statistical test; see `Concern.withholds`.

    Args:
        effect_size: effect size of the audit; `None` if the audit has no effect size.
        loss: function that converts a value of the audit into a loss (larger is worse).
        measurement: the measurement.
        doubt: the most serious concern about the answers, if it rules out a pass; otherwise `None`.
    """
    value = None if effect_size is None else effect_size.of(measurement.value, measurement)
    if effect_size is None or value is None:
        return None

    def at(number: float) -> float:
        found = effect_size.of(number, measurement)
        return math.nan if found is None else found

    ends = None if measurement.interval is None else [*map(at, measurement.interval)]
    interval = None if ends is None else (min(ends), max(ends))
    detectable: float | None = None
    no_effect = effect_size.no_effect
    if effect_size.detectable is not None:
        detectable = effect_size.detectable(measurement)
    elif measurement.standard_error is not None:
        change = intervals.minimum_detectable(
            measurement.standard_error, ALPHA / 2, degrees_of_freedom=measurement.degrees_of_freedom
        )
        smallest = abs(at(no_effect + change if loss(no_effect + change) > loss(no_effect) else no_effect - change))
        detectable = smallest if math.isfinite(smallest) else None
    found = round(value - at(no_effect), ROUNDING) != 0 and _is_found(no_effect, loss, measurement)
    size: Size | None = effect_size.size(value) if found else Size.NONE
    if doubt is not None and (not found or doubt.withholds in ("test", "verdict")):
        size = None
    number = f"{effect_size.name} {value:.2g}" + ("" if not interval else f" [{interval[0]:.2g}, {interval[1]:.2g}]")
    small, but = effect_size.cutoffs[0], "" if doubt is None else doubt.message
    if size is None:
        text = f"size not known: {but}"
    elif size is Size.NONE:
        text = f"no difference found ({number})"
        if detectable is not None:
            in_words = "" if detectable < small else f" ({effect_size.size(detectable)})"
            answers = sum(measurement.n.values())
            text += f"; {answers} answers can show a difference of about {detectable:.2g}{in_words}"
    else:
        below = f", below the cut-off {small:g} for a small effect" if abs(value) < small else ""
        text = f"{size} difference ({number}{below}){but and f'; but {but}'}"
    return Effect(effect_size.name, value, interval, size, detectable, text)


def _is_found(no_effect: float, loss: Callable[[float], float], measurement: Measurement) -> bool:
    """Return whether the measurement shows a difference.

    The 95 % interval must exclude the value that means no effect, and the p-value must be at most 5 %. Without a
    p-value, the interval decides alone; without an interval, the p-value decides alone; without both, no difference is
    found. The p-value is ignored for a value that is better than no effect, because the test may be one-sided.
    """
    interval, p_value = measurement.interval, measurement.p_value
    if interval is None and p_value is None:
        return False
    if interval is not None and interval[0] <= no_effect <= interval[1]:
        return False
    # A one-sided test says nothing about a difference in the other direction.
    return p_value is None or loss(measurement.value) <= loss(no_effect) or p_value <= ALPHA
