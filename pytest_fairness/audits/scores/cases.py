"""Audit `score` of cases: largest difference between the mean scores of the answers for two groups."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from pytest_fairness.audits.anonymizer import Anonymizer
from pytest_fairness.audits.base import Preparation
from pytest_fairness.audits.scores import common
from pytest_fairness.audits.scores.score_audit import ScoreAudit
from pytest_fairness.audits.scores.settings import LABEL, ScoreSettings
from pytest_fairness.audits.stereotypes.case_audit import CaseItem, ModelScoredAudit
from pytest_fairness.audits.stereotypes.scored_answers import stratum_of
from pytest_fairness.audits.stereotypes.scores import Scores
from pytest_fairness.probes.stereotype.cases import Case
from pytest_fairness.probes.stereotype.model import StereotypeProbe
from pytest_fairness.records import Answer, Answers, Comparison, Json


class CaseSettings(ScoreSettings):
    """Settings of `score`: one scorer or several scorers, and what their scores mean."""

    needs: ClassVar[str] = "groups"


class CaseScore(ScoreAudit[StereotypeProbe], ModelScoredAudit[ScoreSettings]):
    """Largest difference between the groups' mean scores; a group's mean is the mean over cases."""

    settings_model = CaseSettings
    added = None
    scored = "scored answers"

    def can_measure(self, case: Case) -> bool:
        """Return whether the case asks for free texts about groups."""
        return bool(case.open and case.groups)

    def preparation(self, item: CaseItem[ScoreSettings]) -> Preparation:
        """Return the scorer with the texts that it reads; see `Audit.preparation`."""
        groups = [group for case in self.cases(item) for group in case.groups]
        return common.preparation(item, Anonymizer(groups, item.probe.language))

    def score_of(self, item: CaseItem[ScoreSettings], answer: Answer) -> float | None:
        """Return the score of an answer; `None` if the answer or its score is missing."""
        return common.score_of(answer) if answer.usable else None

    def details(self, item: CaseItem[ScoreSettings], answers: Answers, scores: Scores) -> dict[str, Json]:
        """Return the groups' mean scores, the spread of the scores, and example answers; see `common.details`."""
        of_group = np.array([scores.columns[column][1] for column in scores.column])
        groups = {group: scores.values[of_group == group] for group in scores.groups}
        means = dict(zip(scores.groups, scores.group_means(scores.means()).tolist(), strict=True))

        def pairing(answer: Answer) -> tuple[tuple[str, str], str]:
            case, group = answer.labels["case"], answer.labels["group"]
            return (case, stratum_of(answer, (case, group))), group

        return common.details(item, answers, groups, means, pairing)

    def compare(self, item: CaseItem[ScoreSettings], current: Answers, baseline: Answers) -> Comparison:
        """Return the change over the cases that are complete in both runs; see `CaseAudit.compare`."""
        runs = (common.by_group(run, lambda answer: answer.labels["group"]) for run in (current, baseline))
        common.require_same_scale(item.labels[LABEL], *runs)
        return super().compare(item, current, baseline)
