"""Base class of the audits of multiple-choice questions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.choices.choice_concerns import always_unknown, constant_places, unmatched
from pytest_fairness.audits.choices.coded_answers import Coded, became_worse, code
from pytest_fairness.audits.comparisons import with_same_wording
from pytest_fairness.audits.findings import Finding
from pytest_fairness.audits.unit_audit import SHARED_UNITS, UnitAudit, UnitTable
from pytest_fairness.errors import BaselineStale
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.multiple_choice.model import MultipleChoiceProbe
from pytest_fairness.probes.multiple_choice.question import Question
from pytest_fairness.records import Answer, Answers, Comparison, Concern, ItemResult, Json, Measurement
from pytest_fairness.stats.arrays import Floats

ChoiceItem = AuditItem[MultipleChoiceProbe, AuditSettings]
"""An item of an audit of multiple-choice questions."""


class ChoiceAudit(UnitAudit[MultipleChoiceProbe, AuditSettings]):
    """Base class of audits that count answers by the option that they name; the units are the templates.

    An item receives the answers to all questions of its category, also to questions that it does not measure: a system
    that always chooses `unknown` cannot be recognised from one type of question.

    Class attributes:
        bias: whether the audit measures agreement with the stereotype; questions that do not show which person the
            stereotype is about are then left out.
    """

    kind = "multiple_choice"
    closed_answers = True
    counted = "templates"
    usable = "have answers"
    bias: ClassVar[bool] = True

    def subjects(self, category: Mapping[str, str]) -> Iterable[dict[str, str]]:
        """Return the labels of the items of a category; `category` is empty if the probe has no categories."""
        return [dict(category)]

    @abstractmethod
    def measures(self, item: ChoiceItem, question: Question) -> bool:
        """Return whether the item measures the answers to a question."""

    def items(self, probe: MultipleChoiceProbe, settings: AuditSettings) -> list[ChoiceItem]:
        """Return the items of each category, in the probe's order."""
        return [
            AuditItem(probe, self.info.name, _subject(labels), labels, settings)
            for category in probe.categories
            for labels in self.subjects({"category": category} if category else {})
        ]

    def uses(self, item: ChoiceItem, labels: Mapping[str, str]) -> bool:
        """Return whether the labels belong to a question of the item's category."""
        question = item.probe.questions.get(labels.get("question", ""))
        return question is not None and question.category == item.labels.get("category", "")

    def unit_of(self, item: ChoiceItem, answer: Answer) -> str:
        """Return the template of the answer's question."""
        return item.probe.questions[_question_name(answer)].template

    def comparable(self, item: ChoiceItem, current: Answers, baseline: Answers) -> tuple[Answers, Answers]:
        """Return each run's answers to the questions that both runs ask in the same wording; see `with_same_wording`.

        Raises:
            BaselineStale: less than 80 % of the questions of the smaller run are in the other run, in the same wording.
        """
        fewest = min(len({*map(_question_name, run)}) for run in (current, baseline))
        current, baseline = with_same_wording(current, baseline, _question_name)
        both = {*map(_question_name, current)} & {*map(_question_name, baseline)}
        if len(both) < SHARED_UNITS * fewest:
            raise BaselineStale(["list of questions"])
        first, second = ([answer for answer in run if _question_name(answer) in both] for run in (current, baseline))
        return first, second

    def coded(self, item: ChoiceItem, answers: Answers) -> list[Coded]:
        """Return the coded answers that the item measures."""
        return [
            each
            for each in code(item.probe, answers)
            if self.measures(item, each.question) and not (self.bias and each.question.stereotypical is None)
        ]

    def compare(self, item: ChoiceItem, current: Answers, baseline: Answers) -> Comparison:
        """Return the comparison; its details list the questions whose answers became worse."""
        comparison = super().compare(item, current, baseline)
        first, second = (self.coded(item, run) for run in self.comparable(item, current, baseline))
        worse = became_worse(first, second, stereotypical=self.bias)
        return replace(comparison, details={**comparison.details, "changed_questions": worse})

    def change_details(
        self, table: UnitTable, units: Sequence[str], current: Floats, baseline: Floats
    ) -> dict[str, Json]:
        """Return details: the templates that made the value worse, the largest contribution to the change first."""
        statistic = self.statistic(len(table.columns))
        joint = (current.mean(axis=0) + baseline.mean(axis=0)) / 2
        moves = (current - baseline) @ statistic.loss_gradient(joint) / len(units)
        order = sorted(range(len(units)), key=lambda row: (-round(float(moves[row]), 12), units[row]))
        return {
            "moved_templates": [{"template": units[row], "adds": float(moves[row])} for row in order if moves[row] > 0]
        }

    def concerns(self, item: ChoiceItem, answers: Answers, measurement: Measurement) -> list[Concern]:
        """Return the concerns of `UnitAudit.concerns`, and the concerns of `choice_concerns`."""
        coded = code(item.probe, answers)
        scored = [each.question for each in coded if self.measures(item, each.question)] if self.bias else []
        return [
            *super().concerns(item, answers, measurement),
            *constant_places(item.probe, coded),
            *always_unknown(coded),
            *unmatched(scored),
        ]

    def finding(self, result: ItemResult) -> Finding:
        """Return the finding that questions are answered by stereotype, or wrongly; see `Audit.finding`."""
        return Finding(
            f"Questions about people are answered {'by a stereotype' if self.bias else 'wrongly'}.",
            "Answer from what the text says, and from nothing else. If the text does not say who is meant, answer that "
            "it is not known. If it does, choose that person, whether or not this agrees with a stereotype.",
        )

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """Return the templates that became worse since the baseline; empty if the audit's value did not."""
        if comparison is None or comparison.value <= 0:
            return []
        moved = comparison.details.get("moved_templates", [])
        return [f"template {part['template']} (adds {part['adds']:.2g} to the change)" for part in moved]


def _subject(labels: Mapping[str, str]) -> str | None:
    """Return the subject of an item, such as `category=age,ambiguous`; `None` if there are no labels."""
    parts = [value if name == "context" else f"{name}={value}" for name, value in labels.items()]
    return ",".join(parts) or None


def _question_name(answer: Answer) -> str:
    return answer.labels["question"]
