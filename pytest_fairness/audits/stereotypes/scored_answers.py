"""Answers of an item with their scores, and the cases of which enough answers have a score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.audits.stereotypes.scores import Column, Scores
from pytest_fairness.probes.stereotype.cases import Case
from pytest_fairness.records import Answer

MINIMUM_RESPONSES = 8
"""Fewest scored answers of each side: of each case of an item, or of a category altogether."""
MINIMUM_OF_A_CASE = 2
"""Fewest scored answers of a case that counts in its category."""


@dataclass(frozen=True)
class ScoredAnswers:
    """The scored answers of an item.

    Attributes:
        scores: scores of the answers that have one.
        scored: number of scored answers by column, repeated answers included.
        n, missing: number of usable and of missing answers, by case, or by group where groups are compared.
        groups: groups that are compared; empty where an item compares no groups.
    """

    scores: Scores
    scored: Counter[Column]
    n: Mapping[str, int]
    missing: Mapping[str, int]
    groups: tuple[str, ...]

    def complete_cases(self, cases: Sequence[Case]) -> list[str]:
        """Return the names of the cases with enough scored answers of each group, sorted.

        A case is complete only together with its opposite: otherwise a model with one answer for every case would not
        have the value 0.5.
        """
        groups = self.groups or ("",)
        enough = {
            case.name for case in cases if all(self.scored[case.name, group] >= MINIMUM_OF_A_CASE for group in groups)
        }
        opposites = {case.name: case.opposite for case in cases}
        return sorted(name for name in enough if opposites[name] not in opposites or opposites[name] in enough)

    def short_sides(self, labels: Mapping[str, str], cases: Sequence[Case], complete: Sequence[str]) -> dict[str, int]:
        """Return the number of scored answers of each side that has too few of them.

        The sides are the groups, where groups are compared; the cases of an item about a case or a pair; or the whole
        category.

        Args:
            labels: of the item.
            cases: of the item.
            complete: names of the complete cases.
        """
        if self.groups:
            sides = {group: sum(self.scored[name, group] for name in complete) for group in self.groups}
        elif "case" in labels:
            sides = {case.name: self.scored[case.name, ""] for case in cases}
        else:
            sides = {labels["category"]: sum(self.scored[name, ""] for name in complete)}
        return {side: count for side, count in sides.items() if count < MINIMUM_RESPONSES}


def sorted_answers(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers in an order that does not depend on the order they came in."""
    return sorted(answers, key=lambda answer: (sorted(answer.labels.items()), answer.trial, answer.text or ""))


def stratum_of(answer: Answer, column: Column) -> str:
    """Return the stratum of an answer: labels of a file of answers, and the group unless the column holds it."""
    of_column = {"case", "category", "group"} if column[1] else {"case", "category"}
    return "; ".join(f"{name}={label}" for name, label in sorted(answer.labels.items()) if name not in of_column)
