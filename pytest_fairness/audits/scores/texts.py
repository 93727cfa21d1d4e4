"""Audit `score` of texts: mean score of the marked group's texts minus mean score of the unmarked group's texts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pytest_fairness.audits.base import Preparation
from pytest_fairness.audits.scores import common
from pytest_fairness.audits.scores.score_audit import ScoreAudit
from pytest_fairness.audits.scores.settings import LABEL, ScoreSettings
from pytest_fairness.audits.text.document_value_audit import DocumentValueAudit
from pytest_fairness.audits.text.document_values import DocumentValues
from pytest_fairness.audits.text.documents import anonymizer
from pytest_fairness.audits.text.groups import Groups, TextItem, comparable, sides_and_strata
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Json
from pytest_fairness.stats.arrays import Bools, Floats


@dataclass(frozen=True)
class TextScores(DocumentValues):
    """Scores of the texts of two groups."""

    item: TextItem[ScoreSettings]

    def details(self) -> dict[str, Json]:
        """Return the groups' mean scores, the spread of the scores, and example answers; see `common.details`."""
        means = dict(zip(self.groups.names, self.means(), strict=True))
        return common.details(self.item, self.groups.answers, self._by_group(), means, pairing(self.groups))

    def change_details(self, baseline: TextScores) -> dict[str, Json]:
        """Return no details; raise `BaselineStale` if the current scores are on a smaller scale than the baseline's."""
        common.require_same_scale(self.item.labels[LABEL], self._by_group(), baseline._by_group())
        return {}

    def _by_group(self) -> dict[str, Floats]:
        """Return the scores of the marked and of the unmarked group, by the groups' names."""
        return dict(zip(self.groups.names, (self.values[self.marked], self.values[~self.marked]), strict=True))


class TextScore(ScoreAudit[GenerationProbe], DocumentValueAudit[ScoreSettings, TextScores]):
    """Mean score of the marked group's texts minus mean score of the unmarked group's texts, within strata."""

    version = 3
    settings_model = ScoreSettings
    reversed_gap = "in the baseline, the mean score was {before} higher for {less}; now it is {now} higher for {more}"

    def preparation(self, item: TextItem[ScoreSettings]) -> Preparation:
        """Return the scorer with the texts that it reads; see `Audit.preparation`."""
        return common.preparation(item, anonymizer(item.probe))

    def values(self, item: TextItem[ScoreSettings], groups: Groups) -> TextScores:
        """Return the scores; see `DocumentValueAudit.values`."""
        indices = comparable(groups)
        scores = np.array([common.score_of(groups.answers[index]) for index in indices])
        marked, strata, names = sides_and_strata(groups, indices)
        return TextScores(scores, marked, strata, names, _least_error(scores, marked), item, groups)


def pairing(groups: Groups) -> Callable[[Answer], tuple[str, str]]:
    """Return a function that maps an answer of these groups to its stratum and the name of its group."""
    names = {True: groups.marked_name, False: groups.unmarked_name}
    of = {
        id(answer): (stratum, names[marked])
        for answer, marked, stratum in zip(groups.answers, groups.marked, groups.strata, strict=True)
    }
    return lambda answer: of[id(answer)]


def _least_error(scores: Floats, marked: Bools) -> float:
    """Return the lower limit of the gap's standard error: 0, unless the scores have only two values.

    Even if all answers of a group have the same score, further answers could have the other score. The limit is the
    error that one such answer in each group would cause.
    """
    if len(np.unique(scores)) != 2:
        return 0.0
    sizes = (int(marked.sum()), int((~marked).sum()))
    return float(np.ptp(scores)) * math.hypot(*(1 / size for size in sizes))
