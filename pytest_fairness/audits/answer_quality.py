"""How good answers are, whoever they are for: what a mitigation may cost.

Nothing here is an audit: the audits measure how groups differ, and an answer may be equally poor for all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.audits.base import Probe
from pytest_fairness.audits.lists.normalization import Lists, relevant_items
from pytest_fairness.audits.pronouns.coded_answers import code
from pytest_fairness.probes.counterfactual.model import FLIPPED
from pytest_fairness.records import Answer
from pytest_fairness.stats import ranking

Scored = list[tuple[str, float]]
"""A score, 0..1, of each answer that has one, with the name of its unit."""


@dataclass(frozen=True)
class AnswerQuality:
    """How good the usable answers of one run are.

    Attributes:
        measure: name of the score; higher is better.
        scores: mean of the usable answers of each unit (entity, record, line), 0..1.
    """

    measure: str
    scores: Mapping[str, float]


def answer_quality(probe: Probe, answers: Sequence[Answer]) -> AnswerQuality | None:
    """How good these answers are; `None` where the probe does not say what is right or relevant."""
    if probe.kind not in _MEASURES:
        return None
    measure, scored = _MEASURES[probe.kind]
    units: dict[str, list[float]] = defaultdict(list)
    for unit, score in scored(probe, answers):
        units[unit].append(score)
    return (
        AnswerQuality(measure, {unit: float(np.mean(scores)) for unit, scores in sorted(units.items())})
        if units
        else None
    )


def _ndcg(probe: Probe, answers: Sequence[Answer]) -> Scored:
    """NDCG@k of each list, of the entities of which it is known what is relevant (Järvelin and Kekäläinen 2002)."""
    if probe.relevant is None:
        return []
    scored: Scored = []
    for lists in Lists.parts(probe, answers):
        known = relevant_items(probe, lists)
        draws = [draw for draw in lists.draws if draw.usable and known[draw.entity]]
        found = ranking.quality([draw.items for draw in draws], [known[draw.entity] for draw in draws], probe.k)
        scored += [(draw.entity, score) for draw, score in zip(draws, found.ndcg.tolist(), strict=True)]
    return scored


def _right_decisions(probe: Probe, answers: Sequence[Answer]) -> Scored:
    """Whether the answer is the true one, of records as they are: nothing is known of a flipped one."""
    if probe.truth is None:
        return []
    return [
        (
            answer.labels["record"],
            float((answer.content == probe.positive) == (answer.labels["truth"] == probe.truth.positive)),
        )
        for answer in answers
        if answer.usable and "truth" in answer.labels and answer.labels["form"] != FLIPPED
    ]


def _right_people(probe: Probe, answers: Sequence[Answer]) -> Scored:
    """Whether the right person is named, where only one is."""
    if not probe.is_winobias:
        return []
    return [
        (each.labels["line"], float(each.choice == "first")) for each in code(probe, answers) if each.choice is not None
    ]


_MEASURES: dict[str, tuple[str, Callable[[Probe, Sequence[Answer]], Scored]]] = {
    "recommendation": ("NDCG", _ndcg),
    "counterfactual": ("accuracy", _right_decisions),
    "coreference": ("accuracy", _right_people),
}
"""Kind of probe to the name of its score, and the score."""
