"""The base class of audits of pronoun resolution."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar

from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.findings import Finding
from pytest_fairness.audits.pronouns.coded_answers import Coded, became_worse, code
from pytest_fairness.audits.unit_audit import UnitAudit
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.coreference.model import CoreferenceProbe
from pytest_fairness.records import Answer, Comparison, ItemResult

SettingsT = TypeVar("SettingsT", bound=AuditSettings)


class PronounAudit(UnitAudit[CoreferenceProbe, SettingsT]):
    """An audit of the people that answers name, with one item for the whole probe."""

    kind: ClassVar[str] = "coreference"
    closed_answers: ClassVar[bool] = True

    @abstractmethod
    def loss_of_answers(
        self, probe: CoreferenceProbe, item: AuditItem[SettingsT], current: Sequence[Answer]
    ) -> Callable[[Coded], int]:
        """Return the function from a coded answer of either run to its loss, by what `current` shows to be worse."""

    def items(self, probe: CoreferenceProbe, settings: SettingsT) -> list[AuditItem[SettingsT]]:
        """Return one item for the whole probe."""
        return [AuditItem(self.info.name, None, {}, settings)]

    def comparable(
        self, current: Sequence[Answer], baseline: Sequence[Answer]
    ) -> tuple[Sequence[Answer], Sequence[Answer]]:
        """Return both runs with the same number of trials, without baseline answers to other wordings."""
        wordings = {_unit(answer): answer.labels.get("wording") for answer in current}
        baseline = [answer for answer in baseline if wordings.get(_unit(answer)) == answer.labels.get("wording")]
        if not baseline:
            return current, []
        trials = min(max((answer.trial + 1 for answer in run), default=0) for run in (current, baseline))
        first, second = ([answer for answer in run if answer.trial < trials] for run in (current, baseline))
        return first, second

    def compare(
        self,
        probe: CoreferenceProbe,
        item: AuditItem[SettingsT],
        current: Sequence[Answer],
        baseline: Sequence[Answer],
    ) -> Comparison:
        """Return the change, with the sentences whose answers became worse in the details."""
        comparison = super().compare(probe, item, current, baseline)
        first, second = (code(probe, run) for run in self.comparable(current, baseline))
        worse = became_worse(first, second, self.loss_of_answers(probe, item, current))
        return replace(comparison, details={**comparison.details, "changed_sentences": worse})

    def finding(self, result: ItemResult) -> Finding:
        """Return that pronouns follow the stereotype; see `Audit.finding`."""
        return Finding(
            "Pronouns are understood by what is usual for a man or a woman in an occupation.",
            "An occupation says nothing about anybody's gender. Take a pronoun for the person that the sentence allows "
            "by its grammar and sense; where it allows both, say that it is unclear.",
        )


def _unit(answer: Answer) -> str:
    return answer.labels.get("item") or answer.labels["line"]
