"""Base classes of audits: a test item, a decision rule and an audit method."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from pytest_fairness.audits.decision import Decision
from pytest_fairness.audits.findings import Finding, axis_of
from pytest_fairness.audits.info import AuditInfo
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.base import Probe
from pytest_fairness.records import Answer, Comparison, Concern, ItemResult, Json, Measurement
from pytest_fairness.stats.intervals import normal

BETA = 0.05
"""Chance that an item passes although it is worse by twice the tolerance."""

Example = tuple[str, Answer]
"""An answer and the group that it stands for."""

ProbeT = TypeVar("ProbeT", bound=Probe)
SettingsT = TypeVar("SettingsT", bound=AuditSettings)
OwnSettings = TypeVar("OwnSettings", bound=AuditSettings, covariant=True)


@dataclass(frozen=True)
class AuditItem(Generic[OwnSettings]):
    """One test item: an audit applied to one subject of a probe.

    Attributes:
        audit_name: the audit's name.
        subject: what stands in brackets in the item's id (`race=Black`), or `None` for an audit of the whole probe.
        labels: the subject as names and values, for reports.
        settings: the audit's settings in this probe.
        alpha: one-sided significance level of its tests, min(0.01, the probe's alpha / number of the probe's items); at
            an interim analysis, that analysis's share.
        beta: chance that the item passes although it is worse by twice the tolerance; at an interim analysis, that
            analysis's share.
        seed: text from which all its resampling is seeded; the same in every run.
        target: the name of the one of several targets that is asked; `None` where targets have no names.
        total_alpha: alpha of all interim analyses together; `None` where there is only one analysis.
        last_look: whether this is the last analysis, after which no more answers are asked for.
    """

    audit_name: str
    subject: str | None
    labels: Mapping[str, str]
    settings: OwnSettings
    alpha: float = 0.01
    seed: str = ""
    target: str | None = None
    beta: float = BETA
    total_alpha: float | None = None
    last_look: bool = True

    @property
    def planned_alpha(self) -> float:
        """Return the alpha for planning how large a run must be: that of all interim analyses together."""
        return self.alpha if self.total_alpha is None else self.total_alpha

    @property
    def id(self) -> str:
        """`svm[race=Black]`, or `svm` where there is no subject; `svm@small` of a target that has a name."""
        name = self.audit_name if self.subject is None else f"{self.audit_name}[{self.subject}]"
        return name if self.target is None else f"{name}@{self.target}"


@dataclass(frozen=True)
class Preparation:
    """A model that reads texts of the answers, so that `measure`, `compare` and `value` get what it returns.

    Attributes:
        model: the model, as the probe names it.
        texts: function from answers to the text of each that the model reads; `None` for an answer to leave out.
        label: label whose probability a classifier must give. The answers then have the content `{"model": …, "scores":
            {label: probability}}`, or `None` if left out. Without a label, the answers have an `embedding`.
    """

    model: str
    texts: Callable[[Sequence[Answer]], Sequence[str | None]]
    label: str | None = None


AnyItem = AuditItem[AuditSettings]
"""An item of any audit: its settings are those that all audits have."""


class DecisionRule(ABC):
    """Rule that decides whether a change is a regression and whether a value exceeds its limit.

    Class attributes:
        tested: whether decisions rest on statistical tests.
    """

    tested: ClassVar[bool] = True

    def for_gate(self, gate: str) -> DecisionRule:
        """Return the variant of the rule that a probe's `gate` names; by default the rule itself."""
        return self

    @abstractmethod
    def judge_change(
        self, audit: AnyAudit, item: AnyItem, comparison: Comparison, tolerance: float, difference: float
    ) -> Decision:
        """Decide whether the change since the baseline is a regression.

        Args:
            audit: the method.
            item: the item.
            comparison: of this run with the baseline, over what both runs share.
            tolerance: largest acceptable change.
            difference: by how much the run's own value is worse than the baseline's own value.
        """

    @abstractmethod
    def judge_value(
        self, audit: AnyAudit, item: AnyItem, measurement: Measurement, limit: float, tolerance: float
    ) -> Decision:
        """Decide whether the value exceeds the limit."""

    @abstractmethod
    def minimum_detectable(
        self, item: AnyItem, measurement: Measurement, comparison: Comparison | None, tolerance: float
    ) -> float | None:
        """Return the smallest true worsening that a run of this size finds with 80 % power; `None` if not known.

        The worsening is measured from the baseline where there is a comparison, else from the limit.
        """


class Audit(ABC, Generic[ProbeT, SettingsT]):
    """One audit method: which items it makes of a probe, what they need, and what they measure.

    Measuring and comparing are pure: the same probe, answers and level give the same numbers everywhere.

    Class attributes:
        info: name, unit, direction, tolerance and note of the method.
        rule: decision rule of its items; see `decision_rules`.
        kind: kind of the probes that the audit measures.
        version: part of every recorded measurement's key; raised when a change of code changes numbers.
        settings_model: settings that `audits:` accepts under the audit's name.
        counted: name of the units of which a small run needs more: `trials`, `entities`, `records`.
        grows_with_size: whether the value grows with the number of answers whatever the model, so that an early interim
            analysis does not pass a limit.
        closed_answers: whether prompts ask to choose one of few answers, so that many answers may be equal.
    """

    info: ClassVar[AuditInfo]
    rule: ClassVar[DecisionRule]
    kind: ClassVar[str]
    version: ClassVar[int]
    settings_model: ClassVar[type[AuditSettings]]
    counted: ClassVar[str] = "trials"
    grows_with_size: ClassVar[bool] = False
    closed_answers: ClassVar[bool] = False

    @abstractmethod
    def items(self, probe: ProbeT, settings: SettingsT) -> list[AuditItem[SettingsT]]:
        """Return the audit's items in this probe, in the probe's own order; the caller sets `alpha` and `seed`."""

    @abstractmethod
    def uses(self, probe: ProbeT, item: AuditItem[SettingsT], labels: Mapping[str, str]) -> bool:
        """Return whether the item measures answers with these labels."""

    def about(self, probe: ProbeT, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> Sequence[Answer]:
        """Return those of the item's answers that its value is about, to be counted, checked and shown.

        Others that `uses` lets through only help to measure them, as the counts of a prior do.
        """
        return answers

    def fingerprint(self, probe: ProbeT, item: AuditItem[SettingsT]) -> dict[str, str]:
        """Settings and lists that the item's answers are read by, by readable name: others make a baseline stale."""
        return {}

    def preparation(self, probe: ProbeT, item: AuditItem[SettingsT]) -> Preparation | None:
        """Return the model that reads the answers before they are measured; `None` without one."""
        return None

    @abstractmethod
    def measure(self, probe: ProbeT, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> Measurement:
        """Measure one run.

        Args:
            probe: the probe.
            item: the item.
            answers: those of the run that `uses` lets through, in any order; the result does not depend on it.

        Raises:
            NotMeasurable: too few usable answers.
        """

    @abstractmethod
    def compare(
        self, probe: ProbeT, item: AuditItem[SettingsT], current: Sequence[Answer], baseline: Sequence[Answer]
    ) -> Comparison:
        """Compare this run's answers with the baseline's, both of them as in `measure`.

        Raises:
            NotMeasurable: the baseline holds too few usable answers.
        """

    def value(self, probe: ProbeT, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> float:
        """Return the value that `measure` gives these answers, without what belongs to it; quicker where it can be.

        Raises:
            NotMeasurable: too few usable answers.
        """
        return self.measure(probe, item, answers).value

    def concerns(
        self, probe: ProbeT, item: AuditItem[SettingsT], answers: Sequence[Answer], measurement: Measurement
    ) -> list[Concern]:
        """Return reasons to doubt the measurement that only this audit knows; see `answer_checks` for all others.

        Args:
            probe: the probe.
            item: the item.
            answers: as they were read, before any classifier.
            measurement: what `measure` returned for them.
        """
        return []

    def score(self, probe: ProbeT, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> float:
        """Return the value of the few answers that one human label describes, for the choice of a limit.

        Raises:
            NotMeasurable: there is nothing to measure in them.
        """
        return self.value(probe, item, answers)

    def compare_values(
        self, measurement: Measurement, value: float, standard_error: float | None, *, paired: bool
    ) -> Comparison:
        """Compare by values and standard errors alone, as independent runs: the baseline's answers are absent."""
        change = self.info.loss(measurement.value) - self.info.loss(value)
        if measurement.standard_error is None or standard_error is None:
            return Comparison(value=change, interval=None, standard_error=None, p_value=None, paired=paired)
        error = math.hypot(measurement.standard_error, standard_error)
        return Comparison(
            value=change,
            interval=normal.interval(change, error),
            standard_error=error,
            p_value=normal.upper_tail(change / error) if error > 0 else float(change <= 0),
            paired=paired,
        )

    def describe(self, measurement: Measurement) -> str:
        """Return the value as a phrase for a verdict's reason."""
        return f"{measurement.value:.3g} {self.info.unit}".rstrip()

    def describe_change(self, comparison: Comparison) -> str:
        """Return the change as a phrase for a verdict's reason."""
        if not comparison.value:
            return "unchanged"
        if comparison.reversal is not None:
            return f"moved by {abs(comparison.value):.3g} to the other side"
        return f"{'worse' if comparison.value > 0 else 'better'} by {abs(comparison.value):.3g}"

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """Return the words, groups or records that contribute most to the value, the strongest first."""
        return []

    def contributions(self, measurement: Measurement) -> Mapping[str, float]:
        """Return the words, groups or records that the value is made of, each with its number, for baselines."""
        return {}

    def word_rows(
        self, probe: ProbeT, item: AuditItem[SettingsT], answers: Sequence[Answer], details: Mapping[str, Json]
    ) -> list[dict[str, Json]]:
        """Return a row for each word of the answers, for tables to take away; see `text.word_rows`.

        Args:
            probe: the probe.
            item: the item.
            answers: as in `measure`.
            details: of the item's measurement.

        Raises:
            NotMeasurable: too few usable answers.
        """
        return []

    def finding(self, result: ItemResult) -> Finding:
        """Return what a failed item found, in words, and an instruction against it; for the suggestions of reports."""
        axis = axis_of(result)
        return Finding(
            f"Answers depend on {axis}.", f"Treat everybody alike: {axis} must make no difference to your answer."
        )

    def examples(
        self, probe: ProbeT, item: AuditItem[SettingsT], measurement: Measurement, answers: Sequence[Answer]
    ) -> list[list[Example]]:
        """Return answers for a side-by-side view in reports, each with its group's name, the most typical first.

        Args:
            probe: the probe.
            item: the item.
            measurement: what was measured of the answers.
            answers: as in `measure`.
        """
        return []


AnyAudit = Audit[Any, Any]
"""An audit of any kind of probe, with any settings."""
