"""What an audit method is: the protocol that every file of this folder fills in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pytest_fairness.probe.settings import AuditSettings
from pytest_fairness.records import Answer, Comparison, Measurement

Direction = Literal["lower", "higher", "zero", "fifty"]
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
        level: one-sided level of its tests, min(0.01, alpha / number of the probe's items).
        seed: text from which all its resampling is seeded; the same in every run.
    """

    audit: str
    subject: str | None
    labels: Mapping[str, str]
    settings: SettingsT
    level: float = 0.01
    seed: str = ""

    @property
    def id(self) -> str:
        """`svm[race=Black]`, or `svm` where there is no subject."""
        return self.audit if self.subject is None else f"{self.audit}[{self.subject}]"


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
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    version: ClassVar[int]
    settings_model: ClassVar[type[AuditSettings]]
    better: ClassVar[Direction]
    unit: ClassVar[str]
    default_tolerance: ClassVar[float]

    @abstractmethod
    def items(self, probe: Probe, settings: SettingsT) -> list[AuditItem[SettingsT]]:
        """The audit's items in this probe, in the probe's own order; `level` and `seed` are filled in by the caller."""

    @abstractmethod
    def uses(self, item: AuditItem[SettingsT], labels: Mapping[str, str]) -> bool:
        """Whether answers with these labels are measured by the item."""

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
