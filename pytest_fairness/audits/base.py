"""Base classes of audits: the test item, the decision rule and the audit method, and decisions on estimates."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pytest_fairness.audits.info import AuditInfo, Direction, axis_of
from pytest_fairness.errors import significant
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.field_types import AuditSettings
from pytest_fairness.records import (
    Answer,
    Answers,
    Comparison,
    Concern,
    Contributor,
    Explanation,
    ItemResult,
    Json,
    Measurement,
    Pair,
    Reversal,
    item_id,
)
from pytest_fairness.stats import intervals
from pytest_fairness.stats.intervals import Estimate

# Base classes of audits: the test item, the decision rule and the audit method.

BETA = 0.05
"""Probability that an item passes although its true value is worse than the baseline, or than the limit, by twice the
tolerance."""

UNREAD_TIMES = 10.0
"""Without known bounds, unread answers count as at least so many times as bad as the tolerance or the limit allows."""

Example = tuple[str, Answer]
"""Name of a group, and an answer that is shown for this group."""

WordRows = list[dict[str, Json]]
"""Rows of the exported word table; see `pytest_fairness.audits.documents.Usage.rows`."""

ProbeT = TypeVar("ProbeT", bound=Probe)
SettingsT = TypeVar("SettingsT", bound=AuditSettings)
OwnProbe = TypeVar("OwnProbe", bound=Probe, covariant=True)
OwnSettings = TypeVar("OwnSettings", bound=AuditSettings, covariant=True)


@dataclass(frozen=True)
class AuditItem(Generic[OwnProbe, OwnSettings]):
    """One test item: an audit applied to one subject of a probe.

    Attributes:
        probe: the probe.
        audit_name: the audit's name.
        subject: text in brackets in the item's id (`race=Black`); `None` for an audit of the whole probe.
        labels: the subject as names and values (`{"race": "Black"}`).
        settings: the audit's settings in this probe.
        alpha: one-sided significance level of the item's tests: min(0.01, the probe's alpha / number of the probe's
            items). With interim analyses, the part of this level that the current analysis uses.
        beta: probability that the item passes although its true value is worse than the baseline, or than the limit, by
            twice the tolerance. With interim analyses, the part of this probability that the current analysis uses.
        seed: text that seeds all random draws of the item; the same in every run.
        target: name of the target that is asked; `None` if the only target has no name.
        total_alpha: alpha of all interim analyses together; `None` if there is only one analysis.
        final_analysis: whether this is the last analysis, after which no more requests are sent.
        stands_for: ids of items that the probe does not have, because their audits would measure the same number.
    """

    probe: OwnProbe
    audit_name: str
    subject: str | None
    labels: Mapping[str, str]
    settings: OwnSettings
    alpha: float = 0.01
    seed: str = ""
    target: str | None = None
    beta: float = BETA
    total_alpha: float | None = None
    final_analysis: bool = True
    stands_for: tuple[str, ...] = ()

    @property
    def planned_alpha(self) -> float:
        """Return the alpha for which the size of a run is planned: that of all interim analyses together."""
        return self.alpha if self.total_alpha is None else self.total_alpha

    @property
    def id(self) -> str:
        """Return the item's id: `svm[race=Black]`, or `svm` without a subject; see `item_id`."""
        return item_id(self.audit_name, self.subject, self.target)

    def group_of(self, answer: Answer) -> tuple[str, ...]:
        """Return the parts of the name of an answer's group: its values of the item's labels, then its label `value`.

        A part is empty if the answer lacks the label; the last one also if it lacks the label `attribute`.
        """
        labels = answer.labels
        value = labels.get("value", "") if "attribute" in labels else ""
        return (*(labels.get(name, "") for name in self.labels), value)

    def group_name(self, answer: Answer) -> str:
        """Return the name of an answer's group: of a record, the value that was shown; "all" without groups."""
        attribute = self.labels.get("attribute", "")
        if attribute in answer.labels:
            return answer.labels.get("to", answer.labels[attribute])
        return " ".join(filter(None, self.group_of(answer))) or "all"


@dataclass(frozen=True)
class Preparation:
    """A model, such as a classifier or an embedding model, that reads texts of the answers before the measurement.

    `measure`, `compare` and `value` then get answers that hold the model's output; see `gives`. An answer whose text
    the model fails to score becomes unreadable, with the reason as its `error`.

    Attributes:
        model: name of the model, as in the probe file.
        texts: function that returns one entry for each answer: the text that the model reads, or `None` to leave the
            answer out.
        gives: what the model returns. `embeddings` become the `embedding` of the answers. With `labels`, the content of
            an answer becomes `{"model": …, "scores": {label: probability}}`; with `score`, it becomes
            `{"model": …, "score": number}`. The content of an answer that is left out becomes `None`.
        label: for a model that gives `labels`, the label whose probability it must return.
    """

    model: str
    texts: Callable[[Answers], Sequence[str | None]]
    gives: Literal["embeddings", "labels", "score"] = "embeddings"
    label: str = ""


AnyItem = AuditItem[Probe, AuditSettings]
"""An item of any probe and audit, with only those settings that all audits have."""


class DecisionRule(ABC):
    """Rule that decides whether a change from the baseline is a regression, and whether a value exceeds its limit.

    `tested` says whether the decisions are based on statistical tests.
    """

    tested: ClassVar[bool] = True

    def for_gate(self, gate: str) -> DecisionRule:
        """Return the rule to use for this value of the probe's key `gate`; by default, the rule itself."""
        return self

    @abstractmethod
    def judge_change(
        self, audit: AnyAudit, item: AnyItem, comparison: Comparison, tolerance: float, difference: float
    ) -> Decision:
        """Return the decision on whether the change since the baseline is a regression.

        Args:
            audit, item: audit and item whose change is judged.
            comparison: comparison of this run with the baseline, over the units that both runs share.
            tolerance: largest acceptable change.
            difference: loss of this run minus loss of the baseline; each loss is computed from all units of its run.
        """

    @abstractmethod
    def judge_value(
        self, audit: AnyAudit, item: AnyItem, measurement: Measurement, limit: float, tolerance: float
    ) -> Decision:
        """Return the decision on whether the value exceeds the limit.

        Args:
            audit, item, measurement: audit, item and measurement of this run.
            limit: worst acceptable value.
            tolerance: largest acceptable change from the baseline; it sets the required precision of the value.
        """

    @abstractmethod
    def minimum_detectable(
        self, item: AnyItem, measurement: Measurement, comparison: Comparison | None, tolerance: float
    ) -> float | None:
        """Return the smallest true worsening that a run of this size detects with 80 % power; `None` if unknown.

        The worsening is measured from the baseline if there is a comparison, otherwise from the limit.
        """


class Audit(ABC, Generic[ProbeT, SettingsT]):
    """One audit method: which items it creates for a probe, which answers they need, and how the answers are measured.

    Measuring and comparing are pure functions: the same probe, answers and alpha give the same numbers on every
    machine.

    Class attributes:
        info: name, unit, direction, tolerance and explanation of the method.
        rule: decision rule of the items; see `audits.rules`.
        kind: kind of the probes that the audit measures.
        version: version of the code; it must be raised if a change of code changes numbers, because stored measurements
            are reused only for the same version.
        settings_model: settings that a probe file may give under `audits:` for this audit.
        counted: name of the units (`trials`, `entities`, `records`), for messages about too few units.
        grows_with_size: whether the value grows with the number of answers even for the same model. If so, only the
            final analysis can decide that the value is within a limit.
        closed_answers: whether prompts ask to choose one of a few answers, so that equal answers are normal.
        compares_sides: whether the value is the size of a gap between groups, which does not say who is ahead; see
            `tells_side`.
        phrase: template of the phrase that states the value, unless `explanation` has another one.
        change_phrase: template of the phrase that states a change, unless `explanation_of_change` has another one.
    """

    info: ClassVar[AuditInfo]
    phrase: ClassVar[str] = "{value:.3g} {unit}"
    change_phrase: ClassVar[str] = "{change}"
    rule: ClassVar[DecisionRule]
    kind: ClassVar[str]
    version: ClassVar[int]
    settings_model: ClassVar[type[AuditSettings]] = AuditSettings
    counted: ClassVar[str] = "trials"
    grows_with_size: ClassVar[bool] = False
    closed_answers: ClassVar[bool] = False
    compares_sides: ClassVar[bool] = False

    def tolerance_of(self, settings: AuditSettings) -> float:
        """Return the tolerance in the probe file or, by default, the audit's tolerance."""
        return float(self.info.tolerance if settings.tolerance is None else settings.tolerance)

    @abstractmethod
    def items(self, probe: ProbeT, settings: SettingsT) -> list[AuditItem[ProbeT, SettingsT]]:
        """Return the audit's items for this probe, in the probe's order; the caller sets `alpha` and `seed`."""

    @abstractmethod
    def uses(self, item: AuditItem[ProbeT, SettingsT], labels: Mapping[str, str]) -> bool:
        """Return whether the item needs the answers with these labels."""

    def counted_answers(self, item: AuditItem[ProbeT, SettingsT], answers: Answers) -> Answers:
        """Return the answers for the compared groups; only these answers are counted, checked and shown.

        Other answers for which `uses` is true only help the computation. For example, `marked_words` computes its prior
        from the words of all groups.
        """
        return answers

    def fingerprint(self, item: AuditItem[ProbeT, SettingsT]) -> dict[str, str]:
        """Return the settings and word lists that determine the value, by the names that messages use for them.

        A baseline whose fingerprint differs from the run's is stale, because its value is not comparable.
        """
        return {}

    def preparation(self, item: AuditItem[ProbeT, SettingsT]) -> Preparation | None:
        """Return the model that reads the answers before the measurement; `None` if there is no such model."""
        return None

    @abstractmethod
    def measure(self, item: AuditItem[ProbeT, SettingsT], answers: Answers) -> Measurement:
        """Return the measurement of one run, from its answers for which `uses` is true; their order has no influence.

        Raises:
            NotMeasurable: there are too few usable answers.
        """

    @abstractmethod
    def compare(self, item: AuditItem[ProbeT, SettingsT], current: Answers, baseline: Answers) -> Comparison:
        """Return the comparison of this run's answers with the baseline's answers; see `measure` for the arguments.

        Raises:
            NotMeasurable: there are too few usable answers in the baseline, or too few units that both runs share.
            BaselineStale: the baseline was made for other units or prompts.
        """

    def value(self, item: AuditItem[ProbeT, SettingsT], answers: Answers) -> float:
        """Return only the value that `measure` returns for these answers; a subclass may compute it faster.

        Raises:
            NotMeasurable: there are too few usable answers.
        """
        return self.measure(item, answers).value

    def explanation(self, item: AuditItem[ProbeT, SettingsT], measurement: Measurement) -> Explanation:
        """Return the value in words, what contributes to it (the strongest first), and what baselines store of it.

        It is made once, when the item was measured, and kept in the measurement; by default, `measure` made it.
        """
        if measurement.explanation.phrase:
            return measurement.explanation
        return Explanation(self.phrase.format(value=measurement.value, unit=self.info.unit).rstrip())

    def explanation_of_change(self, item: AuditItem[ProbeT, SettingsT], comparison: Comparison) -> Explanation:
        """Return what contributes to a change and, if `change_phrase` does not do, the change in words.

        It is made once, when the runs were compared, and kept in the comparison; by default, `compare` made it.
        """
        return comparison.explanation

    def contributors(self, measurement: Measurement, comparison: Comparison | None) -> Sequence[Contributor]:
        """Return what contributes most to the change, if the item became worse; otherwise, to the value."""
        if comparison is not None and comparison.value > 0 and (moved := comparison.explanation.contributors):
            return moved
        return measurement.explanation.contributors

    def finding(self, result: ItemResult) -> str:
        """Return in one or two sentences how the answers of a failed item differ; for reports."""
        axis = axis_of(result)
        return f"Answers depend on {axis}."

    def examples(
        self, item: AuditItem[ProbeT, SettingsT], measurement: Measurement, answers: Answers
    ) -> list[list[Example]]:
        """Return lists of example answers, the most typical first; reports show the answers of each list side by side.

        Each answer has the name of its group. Only for items that show examples; the answers are those of `measure`.
        """
        return []

    def word_rows(self, item: AuditItem[ProbeT, SettingsT], answers: Answers, details: Mapping[str, Json]) -> WordRows:
        """Return a row for each word of the answers of `measure`, for the exported word table.

        The details are those of the measurement.

        Raises:
            NotMeasurable: there are too few usable answers.
        """
        return []

    def concerns(self, item: AuditItem[ProbeT, SettingsT], answers: Answers, measurement: Measurement) -> list[Concern]:
        """Return this audit's own reasons to doubt the measurement; `answer_checks` has those common to all audits.

        The answers are those before a scoring, embedding or judge model has read them; see `preparation`.
        """
        return []

    def unread_shares(
        self, measurement: Measurement, n: Mapping[str, int], missing: Mapping[str, int]
    ) -> dict[str, float]:
        """Return the share of unread answers of each group that the value compares.

        `n` and `missing` are the numbers of read and of unread answers by group, of the current run or of its baseline.
        """
        counting = measurement.evidence.counting or {}
        read = {group: counting.get(group, 1.0) * n.get(group, 0) for group in missing}
        return {group: count / (count + read[group]) for group, count in missing.items() if count + read[group]}

    def unread_worsening(
        self,
        item: AuditItem[ProbeT, SettingsT],
        measurement: Measurement,
        shares: Mapping[str, float],
        scale: float,
        *,
        other_side: bool = False,
    ) -> float:
        """Return how far the loss could rise if these shares of the groups' answers are unread; see `audits.rules`.

        With `info.worst`, the unread answers count as the worst possible ones. The mean of a group is then (1 − share)
        times the mean of its read answers, plus share times the best or the worst possible score. Without it, they
        count as `unread_distance`.

        Args:
            item, measurement: item and measurement of the current run.
            shares: share of unread answers of each group; the largest is above 0.
            scale: tolerance or, for a value, the distance of the limit from the value of equal groups.
            other_side: for a signed gap, whether to return how far the gap could move to the other group's side.
        """
        share = max(shares.values())
        if self.info.worst is None:
            return share * self.unread_distance(item, measurement, scale)
        loss = self.info.loss(measurement.value)
        return share * max(0.0, self.info.loss(self.info.worst) - (-loss if other_side else loss))

    def unread_distance(self, item: AuditItem[ProbeT, SettingsT], measurement: Measurement, scale: float) -> float:
        """Return how far an unread answer may be from the read ones if `info.worst` does not bound the value."""
        return UNREAD_TIMES * scale

    def unread_improvement(
        self,
        item: AuditItem[ProbeT, SettingsT],
        measurement: Measurement,
        baseline: float,
        share: float,
        scale: float,
    ) -> float:
        """Return how far the loss of the baseline could fall if this share of a group's answers is unread.

        Its value cannot be better than that of equal groups.

        Args:
            item, measurement: item and measurement of the current run.
            baseline: value of the baseline.
            share: largest share of the unread answers of a group, above 0.
            scale: tolerance of the item.
        """
        info = self.info
        excess = max(0.0, info.loss(baseline) - info.least_loss)
        if info.worst is None:
            return min(excess, share * self.unread_distance(item, measurement, scale))
        # Unread answers can move a difference between groups to the best score of one and the worst score of another.
        apart = 0.0 if info.best_is_decidable else info.loss(info.worst) - info.least_loss
        return min(excess, share * (excess + apart))

    def score(self, item: AuditItem[ProbeT, SettingsT], answers: Answers) -> float:
        """Return the value of a small set of answers; `calibrate` computes the error rates of limits from such values.

        Raises:
            NotMeasurable: the answers contain nothing that the audit can measure.
        """
        return self.value(item, answers)

    def tells_side(self, measurement: Measurement) -> bool | None:
        """Return whether the sign of a value says which group is ahead; `None` if the audit compares no sides."""
        if self.info.better is not Direction.ZERO:
            return False if self.compares_sides and len(measurement.n) > 1 else None
        return self.info.value_range[0] < 0

    def compare_values(
        self, measurement: Measurement, value: float, standard_error: float | None, *, from_answers: bool
    ) -> Comparison:
        """Return the comparison of the values of two runs, without their answers; the runs count as independent.

        `value` and `standard_error` are those of the baseline. `from_answers` says whether they were measured from the
        baseline's answers, or stored.
        """
        reversal = None
        if self.tells_side(measurement) and measurement.value * value < 0:
            p_value = 1.0
            if measurement.standard_error is not None and standard_error is not None:
                error = math.hypot(measurement.standard_error, standard_error)
                p_value = 2 * intervals.upper_tail(abs(measurement.value - value) / error) if error > 0 else 0.0
            sides = f"the gap was {significant(value)} and is {significant(measurement.value)}"
            reversal = Reversal(abs(measurement.value), intervals.p_value_of_second_test(p_value), sides)
        if measurement.standard_error is None or standard_error is None:
            current, baseline = self._losses(measurement, value)
            return Comparison(current - baseline, from_answers=from_answers, reversal=reversal)
        estimate = self.change_of_values(measurement, value, standard_error)
        error = estimate.standard_error
        p_value = intervals.upper_tail(estimate.value / error) if error > 0 else float(estimate.value <= 0)
        return Comparison(
            estimate.value, estimate.interval, error, p_value, from_answers=from_answers, reversal=reversal
        )

    def change_of_values(self, measurement: Measurement, value: float, standard_error: float) -> Estimate:
        """Return the change of the loss between two independent runs; see `compare_values` for the arguments."""
        current, baseline = self._losses(measurement, value)
        return Estimate.difference(
            Estimate.of(current, measurement.standard_error or 0.0), Estimate.of(baseline, standard_error)
        )

    def _losses(self, measurement: Measurement, value: float) -> tuple[float, float]:
        """Return the losses of this run and of the baseline; of gaps with a sign, towards the side of their sum."""
        if not self.tells_side(measurement):
            return self.info.loss(measurement.value), self.info.loss(value)
        direction = 1.0 if measurement.value + value >= 0 else -1.0
        return direction * measurement.value, direction * value


AnyAudit = Audit[Any, Any]
"""An audit of any kind of probe, with any settings."""


# Decision on an estimate: too bad, acceptable, or not known precisely enough.
#
# For a comparison with a baseline, the estimate is the change and the threshold is the tolerance. For a comparison
# with a limit, the estimate is the distance from the limit and the threshold is 0.

Outcome = Literal["within", "unclear", "beyond"]
"""`within`: acceptable; `unclear`: not known precisely enough; `beyond`: too bad."""

LEAST_GROWTH = 1.25
"""Smallest factor by which a report advises to enlarge a run."""


@dataclass(frozen=True)
class Decision:
    """Decision on one estimate; a larger estimate is worse.

    Attributes:
        outcome: whether the estimate is acceptable (`within`), too bad (`beyond`) or not known precisely enough
            (`unclear`).
        exceeds: whether the estimate exceeds the threshold.
        significant: whether the test of no change (or of equal groups) rejects this null hypothesis at the item's
            alpha.
        upper_bound: one-sided upper confidence bound of the estimate; `None` if there is no standard error.
        accepted: largest upper bound with which the outcome is `within`.
        times_more_units: factor by which the number of units must grow for a decision to be expected; infinity if it is
            not known, or if no number is enough.
        explanation: reason of the outcome as a phrase, if the numbers above do not give the reason.
        changed_sides: whether the estimate is too bad only because another group is disadvantaged than in the baseline.
        decidable: the setting that a run of this size can decide, as a phrase such as "a `tolerance` of 0.12 or more";
            `None` if it is not known.
        at_threshold: whether a value exceeds its limit by less than its standard error, so that it may be the limit.
        pair: the pair of groups that is too bad, if each pair is tested by itself and there are several.
    """

    outcome: Outcome
    exceeds: bool = False
    significant: bool = False
    upper_bound: float | None = None
    accepted: float | None = None
    times_more_units: float = 1.0
    explanation: str | None = None
    changed_sides: bool = False
    decidable: str | None = None
    at_threshold: bool = False
    pair: Pair | None = None


def decide(
    estimate: float,
    standard_error: float | None,
    *,
    threshold: float,
    accepted: float,
    significant: bool,
    requires_lower_bound: bool,
    alpha: float,
    beta: float,
    degrees_of_freedom: float | None = None,
    bounds: tuple[float, float] | None = None,
) -> Decision:
    """Return the decision on one estimate; `docs/explanation/verdicts.md` explains it.

    Args:
        estimate: change from the baseline, or distance from the limit; larger is worse.
        standard_error: `None` if unknown. Without a standard error and `bounds`, the outcome is never `within`.
        threshold: largest acceptable estimate; a larger estimate is too bad if it is significant.
        accepted: largest upper bound with which the outcome is `within`; at least the threshold.
        significant: whether the test of no change (or of equal groups) rejects this null hypothesis at `alpha`.
        requires_lower_bound: whether the outcome `beyond` also requires a lower bound above the threshold.
        alpha: one-sided significance level of the lower bound.
        beta: probability of the outcome `within` if the true change, or the true distance, equals `accepted`.
        degrees_of_freedom: degrees of freedom of the standard error.
        bounds: lower bound at `alpha` and upper bound at `beta`; `None` to compute both from the standard error.
    """
    if bounds is None and standard_error is not None:
        bounds = one_sided_bounds(estimate, standard_error, alpha, beta, degrees_of_freedom)
    lower, upper = (None, None) if bounds is None else bounds
    exceeds = estimate > threshold + intervals.ROUNDING
    if exceeds:
        if significant and (not requires_lower_bound or (lower is not None and lower > threshold)):
            return Decision("beyond", True, True, upper, accepted)
    elif upper is not None and upper <= accepted + intervals.ROUNDING:
        return Decision("within", False, significant, upper, accepted)
    growth = math.inf if standard_error is None else 1.0
    if standard_error:
        wanted = _needed_error(estimate, threshold, accepted, alpha, beta, requires_lower_bound=requires_lower_bound)
        growth = max(LEAST_GROWTH, (standard_error / wanted) ** 2) if wanted > 0 else math.inf
    return Decision("unclear", exceeds, significant, upper, accepted, growth)


def one_sided_bounds(
    estimate: float, standard_error: float, alpha: float, beta: float, degrees_of_freedom: float | None
) -> tuple[float, float]:
    """Return the lower bound at `alpha` and the upper one at `beta`, by Student's t or, without degrees, the normal."""
    below, above = (intervals.quantile(1 - chance, degrees_of_freedom) * standard_error for chance in (alpha, beta))
    return estimate - below, estimate + above


def _needed_error(
    estimate: float, threshold: float, accepted: float, alpha: float, beta: float, *, requires_lower_bound: bool
) -> float:
    """Return the largest standard error that allows a decision if the truth equals the estimate."""
    power = intervals.quantile(intervals.POWER)
    detectable = intervals.quantile(1 - alpha) + power  # smallest detectable distance, in standard errors
    if estimate > threshold:
        return (estimate - threshold if requires_lower_bound else estimate) / detectable
    excluded = (accepted - estimate) / intervals.quantile(1 - beta)
    room = accepted - threshold if requires_lower_bound else accepted
    # The error must also be small enough to find a worsening of the size that a pass excludes.
    return min(excluded, room / detectable) if room > 0 else excluded
