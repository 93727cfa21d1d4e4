"""An item's scored answers, and its complete cases (cases with enough scored answers)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.audits.stereotypes.scores import Column, Scores
from pytest_fairness.probes.stereotype.cases import Case
from pytest_fairness.records import Answer, Answers

MINIMUM_RESPONSES = 8
"""Smallest number of scored answers of a group, case or category; see `ScoredAnswers.with_too_few_answers`."""
MINIMUM_OF_A_CASE = 2
"""A case counts in its category only if it has at least this number of scored answers of each group."""


@dataclass(frozen=True)
class ScoredAnswers:
    """The scored answers of an item.

    Attributes:
        scores: scores of the answers that have a score.
        scored: number of scored answers by column (case and group), including repeated answers.
        n, missing: number of usable and of missing answers, by group if groups are compared, otherwise by case.
        groups: groups that are compared; empty if the item compares no groups.
    """

    scores: Scores
    scored: Counter[Column]
    n: Mapping[str, int]
    missing: Mapping[str, int]
    groups: tuple[str, ...]

    def complete_cases(self, cases: Sequence[Case]) -> list[str]:
        """Return the names of the cases with enough scored answers of each group, sorted.

        A case is complete only if its opposite also has enough scored answers. Without the opposite, a model that gives
        the same answers for both cases would not have the value 0.5.
        """
        groups = self.groups or ("",)
        enough = {
            case.name for case in cases if all(self.scored[case.name, group] >= MINIMUM_OF_A_CASE for group in groups)
        }
        opposites = {case.name: case.opposite for case in cases}
        return sorted(name for name in enough if opposites[name] not in opposites or opposites[name] in enough)

    def with_too_few_answers(
        self, labels: Mapping[str, str], cases: Sequence[Case], complete: Sequence[str]
    ) -> dict[str, int]:
        """Return the number of scored answers of each group that has fewer scored answers than `MINIMUM_RESPONSES`.

        If the item does not compare groups, each of its cases is counted or, in an item for a category, all cases
        together.

        Args:
            labels: labels of the item.
            cases: cases of the item.
            complete: names of the complete cases.
        """
        if self.groups:
            counts = {group: sum(self.scored[name, group] for name in complete) for group in self.groups}
        elif "case" in labels:
            counts = {case.name: self.scored[case.name, ""] for case in cases}
        else:
            counts = {labels["category"]: sum(self.scored[name, ""] for name in complete)}
        return {name: count for name, count in counts.items() if count < MINIMUM_RESPONSES}


def sorted_answers(answers: Answers) -> list[Answer]:
    """Return the answers in a fixed order, by labels, trial and text."""
    return sorted(answers, key=lambda answer: (sorted(answer.labels.items()), answer.trial, answer.text or ""))


def stratum_of(answer: Answer, column: Column) -> str:
    """Return the name of the answer's stratum: all its labels but case, category and, if groups are compared, group."""
    of_column = {"case", "category", "group"} if column[1] else {"case", "category"}
    return "; ".join(f"{name}={label}" for name, label in sorted(answer.labels.items()) if name not in of_column)
