"""What an audit method is: the protocol that every file of this folder fills in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pytest_fairness.probe.settings import AuditSettings
from pytest_fairness.records import Answer, Comparison, Concern, Measurement
from pytest_fairness.stats import normal

Direction = Literal["lower", "higher", "zero", "fifty"]
Range = tuple[float, float]
"""Smallest and largest number that there can be."""
Standing = Literal["within", "unclear", "beyond"]
"""Of an estimate to a bar: not worse than it, worse but not beyond doubt, worse beyond doubt."""

RESOLVED = 0.005
"""Smallest p-value that the permutation counts in use resolve; no smaller one is demanded of them."""

Example = tuple[str, Answer]
"""An answer and the group that it stands for."""

SettingsT = TypeVar("SettingsT", bound=AuditSettings)
Probe = Any
"""A loaded probe of the audit's own kind; see `pytest_fairness.probe`."""


@dataclass(frozen=True)
class AuditItem(Generic[SettingsT]):
    """One test item: an audit applied to one subject of a probe.

    Attributes:
        audit: the method's name.
        subject: what stands in brackets in the item's id (`race=Black`), or `None` for an audit of the whole probe.
        labels: the subject as names and values, for reports.
        settings: the audit's settings in this probe.
        level: one-sided level of its tests, min(0.01, alpha / number of the probe's items); of answers that grow, what
            this look may take of it.
        seed: text from which all its resampling is seeded; the same in every run.
        target: the name of the one of several targets that is asked; `None` where targets have no names.
        whole_level: of all looks together; `None` where there is only one.
    """

    audit: str
    subject: str | None
    labels: Mapping[str, str]
    settings: SettingsT
    level: float = 0.01
    seed: str = ""
    target: str | None = None
    whole_level: float | None = None

    @property
    def planned_level(self) -> float:
        """The level by which it is told what a run of a size can see, however often it was looked at on the way."""
        return self.level if self.whole_level is None else self.whole_level

    @property
    def id(self) -> str:
        """`svm[race=Black]`, or `svm` where there is no subject; `svm@small` of a target that has a name."""
        name = self.audit if self.subject is None else f"{self.audit}[{self.subject}]"
        return name if self.target is None else f"{name}@{self.target}"


@dataclass(frozen=True)
class Detectable:
    """What a run was able to see.

    Attributes:
        effect: minimum detectable effect (power 80 % at the item's level), in the audit's unit; `None` if it has none.
        enough: whether that allows a `pass`.
        times_more_units: by which factor trials or entities must grow until it does; 1 where it does already.
    """

    effect: float | None
    enough: bool
    times_more_units: float


class Audit(ABC, Generic[SettingsT]):
    """One audit method: which items it makes of a probe, what they need, and what they measure.

    Measuring and comparing are pure: the same probe, answers and level give the same numbers everywhere.

    Class attributes:
        name, kind: as in probe files.
        version: part of every recorded measurement's key; raised when a change of code changes numbers.
        settings_model: what `audits:` takes under the audit's name.
        better: which values are better: lower, higher, nearer zero, nearer fifty.
        unit: of the value, for sentences; empty for a share or a score.
        default_tolerance: worst acceptable change where the probe names none.
        value_range: of the values that there can be; a baseline with another one is no baseline.
        limit_range: of the limits that a probe may set; `None` for the same as the values'.
        counted: what there must be more of where a run is too small: `trials`, `entities` or
            whatever else the units are.
        closed_answers: whether prompts ask to choose one of few answers, so that many may well get the same one.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    version: ClassVar[int]
    settings_model: ClassVar[type[AuditSettings]]
    better: ClassVar[Direction]
    unit: ClassVar[str]
    default_tolerance: ClassVar[float]
    value_range: ClassVar[Range]
    limit_range: ClassVar[Range | None] = None
    counted: ClassVar[str] = "trials"
    closed_answers: ClassVar[bool] = False

    @abstractmethod
    def items(self, probe: Probe, settings: SettingsT) -> list[AuditItem[SettingsT]]:
        """The audit's items in this probe, in the probe's own order; `level` and `seed` are filled in by the caller."""

    @abstractmethod
    def uses(self, probe: Probe, item: AuditItem[SettingsT], labels: Mapping[str, str]) -> bool:
        """Whether answers with these labels are measured by the item."""

    def shape(self, probe: Probe, item: AuditItem[SettingsT]) -> dict[str, str]:
        """Settings and lists that the item's answers are read by, by readable name: others make a baseline stale."""
        return {}

    def classifier(self, settings: SettingsT) -> tuple[str, str] | None:
        """The model that scores answers before they are measured, and a label that it must have; `None` without one."""
        return None

    def text_to_score(self, probe: Probe, item: AuditItem[SettingsT], answer: Answer) -> str | None:
        """What the classifier reads of a usable answer; `None` where it is too little to be scored.

        With a classifier, `measure` and `compare` get answers whose content is `{"model": …, "scores": {label:
        probability}}`, or `None` where nothing was scored.
        """
        return None

    @abstractmethod
    def measure(self, probe: Probe, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> Measurement:
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
        self, probe: Probe, item: AuditItem[SettingsT], now: Sequence[Answer], then: Sequence[Answer]
    ) -> Comparison:
        """Compare this run's answers with the baseline's, both of them as in `measure`.

        Raises:
            NotMeasurable: the baseline holds too few usable answers.
        """

    def value(self, probe: Probe, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> float:
        """Return the value that `measure` gives these answers, without what belongs to it; quicker where it can be.

        Raises:
            NotMeasurable: too few usable answers.
        """
        return self.measure(probe, item, answers).value

    def concerns(
        self, probe: Probe, item: AuditItem[SettingsT], answers: Sequence[Answer], measurement: Measurement
    ) -> list[Concern]:
        """Return reasons to doubt the measurement that only this audit knows; see `answer_checks` for all others.

        Args:
            probe: the probe.
            item: the item.
            answers: as they were read, before any classifier.
            measurement: what `measure` returned for them.
        """
        return []

    def score(self, probe: Probe, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> float:
        """The value of as few answers as one label of a person stands for, for choosing limits; no verdict.

        Raises:
            NotMeasurable: there is nothing to measure in them.
        """
        return self.measure(probe, item, answers).value

    def badness(self, value: float) -> float:
        """The value turned so that more is worse, on the same scale."""
        match self.better:
            case "lower":
                return value
            case "higher":
                return -value
            case "zero":
                return abs(value)
            case "fifty":
                return abs(value - 50)

    def compare_values(
        self, measurement: Measurement, value: float, standard_error: float | None, *, paired: bool
    ) -> Comparison:
        """Compare by values and standard errors alone, as independent runs: the baseline's answers are absent."""
        change = self.badness(measurement.value) - self.badness(value)
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

    def standing_to_limit(self, item: AuditItem[SettingsT], measurement: Measurement, limit: float) -> Standing:
        """Where the value stands to the limit, with a one-sided bound at the item's level."""
        excess = self.badness(measurement.value) - self.badness(limit)
        return _standing(excess, measurement.standard_error, item.level)

    def standing_to_baseline(self, item: AuditItem[SettingsT], comparison: Comparison, tolerance: float) -> Standing:
        """Where the change stands to the tolerance; beyond it takes a bound, and a change that chance does not give."""
        standing = _standing(comparison.value - tolerance, comparison.standard_error, item.level)
        return unless_by_chance(standing, comparison.p_value, item.level)

    def detectable(
        self,
        item: AuditItem[SettingsT],
        measurement: Measurement,
        comparison: Comparison | None,
        tolerance: float,
    ) -> Detectable:
        """The smallest worsening that would have been seen; twice the tolerance must be."""
        error = measurement.standard_error if comparison is None else comparison.standard_error
        if error is None:
            return Detectable(None, enough=True, times_more_units=1.0)
        effect = normal.minimum_detectable(error, item.planned_level)
        return Detectable(
            effect, enough=effect <= 2 * tolerance, times_more_units=normal.times_more_units(effect, 2 * tolerance)
        )

    def rules_out(self, comparison: Comparison, worsening: float, missed: float) -> bool:
        """Whether a worsening by so much can be excluded, with this chance to miss one that is there."""
        error = comparison.standard_error
        return error is None or comparison.value + normal.quantile(1 - missed) * error <= worsening

    def rules_out_beyond(self, measurement: Measurement, limit: float, room: float, missed: float) -> bool:
        """Whether a value that is worse than the limit by more than `room` can be excluded; `missed` as above.

        An audit whose value grows with the number of answers, whatever the model, can never say so.
        """
        error = measurement.standard_error
        excess = self.badness(measurement.value) - self.badness(limit)
        return error is None or excess + normal.quantile(1 - missed) * error <= room

    def describe(self, measurement: Measurement) -> str:
        """The value as a phrase for a verdict's reason."""
        return f"{measurement.value:.3g} {self.unit}".rstrip()

    def describe_change(self, comparison: Comparison) -> str:
        """The change as a phrase for a verdict's reason."""
        value, interval = comparison.value, comparison.interval
        direction, ends = ("better", interval and (-interval[1], -interval[0])) if value < 0 else ("worse", interval)
        span = "" if ends is None else f" [{ends[0]:.3g}, {ends[1]:.3g}]"
        return f"{direction} by {abs(value):.3g}{span}" if value else f"unchanged{span}"

    def describe_detectable(self, effect: float) -> str:
        """The minimum detectable effect as a phrase for a verdict's reason."""
        return f"{effect:.3g} {self.unit}".rstrip()

    def drivers(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """What the value comes from, the strongest first: words, groups, records; for a verdict's reason."""
        return []

    def examples(
        self, probe: Probe, item: AuditItem[SettingsT], measurement: Measurement, answers: Sequence[Answer]
    ) -> list[list[Example]]:
        """Answers to be read side by side, each with its group's name, the most telling ones first; for reports.

        Args:
            probe: the probe.
            item: the item.
            measurement: what was measured of the answers.
            answers: as in `measure`.
        """
        return []


def unless_by_chance(standing: Standing, p_value: float | None, level: float) -> Standing:
    """The standing, but `unclear` for one beyond the bar that chance may give as well, by a test at this level."""
    by_chance = p_value is not None and p_value > max(level, RESOLVED)
    return "unclear" if standing == "beyond" and by_chance else standing


def _standing(excess: float, standard_error: float | None, level: float) -> Standing:
    if excess <= 0:
        return "within"
    if standard_error is None:
        return "unclear"
    return "beyond" if excess > normal.quantile(1 - level) * standard_error else "unclear"
