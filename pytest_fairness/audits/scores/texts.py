"""Audit `score` of texts: mean score of the marked group's texts minus mean score of the unmarked group's texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pytest_fairness.audits.base import Preparation
from pytest_fairness.audits.scores import common
from pytest_fairness.audits.scores.score_audit import ScoreAudit
from pytest_fairness.audits.scores.settings import LABEL, ScoreSettings
from pytest_fairness.audits.text.document_values import DocumentValueAudit
from pytest_fairness.audits.text.documents import anonymizer, text_of
from pytest_fairness.audits.text.groups import Groups, TextItem, comparable, sides_and_strata
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Json
from pytest_fairness.stats.arrays import Bools, Floats
from pytest_fairness.stats.groups.stratified_values import StratifiedValues


class TextScore(ScoreAudit[GenerationProbe], DocumentValueAudit[ScoreSettings, StratifiedValues]):
    """Mean score of the marked group's texts minus mean score of the unmarked group's texts, within strata."""

    settings_model = ScoreSettings
    reversed_gap = "in the baseline, the mean score was {before} higher for {less}; now it is {now} higher for {more}"

    def preparation(self, item: TextItem[ScoreSettings]) -> Preparation:
        """Return the scorer; see `Audit.preparation`."""
        return common.preparation(item, text_of, anonymizer(item.probe))

    def values(self, item: TextItem[ScoreSettings], groups: Groups) -> StratifiedValues:
        """Return the scores; see `DocumentValueAudit.values`."""
        kept = comparable(groups)
        scores = np.array([common.score_of(groups.answers[index]) for index in kept])
        marked, strata, names = sides_and_strata(groups, kept)
        return StratifiedValues(scores, marked, strata, names, _least_error(scores, marked))

    def details(self, item: TextItem[ScoreSettings], groups: Groups, values: StratifiedValues) -> dict[str, Json]:
        """Return the groups' mean scores, their spread and example answers; see `common.details`."""
        means = dict(zip(groups.names, values.means(), strict=True))
        return common.details(item, groups.answers, by_group(values, groups.names), means, pairing(groups))

    def change_details(
        self,
        item: TextItem[ScoreSettings],
        groups: Groups,
        current: StratifiedValues,
        baseline: StratifiedValues,
    ) -> dict[str, Json]:
        """Return no details; raise `BaselineStale` if the scales of the two runs differ."""
        common.require_same_scale(item.labels[LABEL], *(by_group(run, groups.names) for run in (current, baseline)))
        return {}


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


def by_group(found: StratifiedValues, names: Sequence[str]) -> dict[str, Floats]:
    """Return the scores of the marked and of the unmarked group, by the groups' names."""
    return dict(zip(names, (found.values[found.marked], found.values[~found.marked]), strict=True))
