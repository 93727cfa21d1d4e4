"""Base class of the audits of pronoun resolution."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace

from pytest_fairness.audits.base import AuditItem, SettingsT
from pytest_fairness.audits.comparisons import with_same_wording
from pytest_fairness.audits.findings import Finding
from pytest_fairness.audits.pronouns.coded_answers import CodedAnswer, coded_answers, worse_sentences
from pytest_fairness.audits.unit_audit import UnitAudit
from pytest_fairness.probes.coreference.model import CoreferenceProbe
from pytest_fairness.records import Answer, Answers, Comparison, ItemResult

PronounItem = AuditItem[CoreferenceProbe, SettingsT]
"""An item of an audit of pronouns."""


class PronounAudit(UnitAudit[CoreferenceProbe, SettingsT]):
    """Base class of audits that count which person the answers name for a pronoun; each audit has one item."""

    kind = "coreference"
    closed_answers = True

    @abstractmethod
    def loss_of_answers(self, item: PronounItem[SettingsT], current: Answers) -> Callable[[CodedAnswer], int]:
        """Return the loss function for coded answers; the same function is applied to both runs.

        Args:
            item: item that is compared.
            current: answers of this run; an audit may use them to determine which answers count as worse.
        """

    def items(self, probe: CoreferenceProbe, settings: SettingsT) -> list[PronounItem[SettingsT]]:
        """Return one item for the whole probe."""
        return [AuditItem(probe, self.info.name, None, {}, settings)]

    def comparable(self, item: PronounItem[SettingsT], current: Answers, baseline: Answers) -> tuple[Answers, Answers]:
        """Return the answers to sentences with the same wording in both runs; see `with_same_wording`."""
        return with_same_wording(current, baseline, _unit)

    def compare(self, item: PronounItem[SettingsT], current: Answers, baseline: Answers) -> Comparison:
        """Return the comparison; its details list the sentences whose answers became worse."""
        comparison = super().compare(item, current, baseline)
        first, second = (coded_answers(item.probe, run) for run in self.comparable(item, current, baseline))
        worse = worse_sentences(first, second, self.loss_of_answers(item, current))
        return replace(comparison, details={**comparison.details, "changed_sentences": worse})

    def finding(self, result: ItemResult) -> Finding:
        """Return the finding that pronouns are resolved by stereotype; see `Audit.finding`."""
        return Finding(
            "Pronouns are resolved by gender stereotypes about occupations.",
            "An occupation says nothing about a person's gender. Decide whom a pronoun means by grammar and sense "
            "only. If both people are possible, answer that it is unclear.",
        )


def _unit(answer: Answer) -> str:
    return answer.labels.get("item") or answer.labels["line"]
