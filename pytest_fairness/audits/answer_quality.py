"""Quality of the answers of all groups together: it shows whether an attempt to reduce bias makes answers worse.

Quality is not an audit: audits measure differences between groups, and answers may be equally poor for all groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from pytest_fairness.audits.choices import coded_answers as choices
from pytest_fairness.audits.lists.normalization import Lists, relevant_items
from pytest_fairness.audits.pronouns.coded_answers import coded_answers
from pytest_fairness.probes.coreference.model import CoreferenceProbe
from pytest_fairness.probes.counterfactual.model import CounterfactualProbe
from pytest_fairness.probes.multiple_choice.model import MultipleChoiceProbe
from pytest_fairness.probes.recommendation.model import RecommendationProbe
from pytest_fairness.records import Answers
from pytest_fairness.stats.lists import ranking


@dataclass(frozen=True)
class AnswerQuality:
    """Quality of the usable answers of one run.

    Attributes:
        measure: name of the quality score (NDCG or accuracy); higher is better.
        scores: mean score of each unit (entity, record, sentence or template), 0..1, by the unit's name.
    """

    measure: str
    scores: Mapping[str, float]


def of_lists(probe: RecommendationProbe, answers: Answers) -> AnswerQuality | None:
    """Return the mean NDCG@k (Järvelin and Kekäläinen 2002) of each entity whose relevant items are known.

    Return `None` if there are no such entities, or if none of them has a usable list.
    """
    if probe.relevant is None:
        return None
    scored: list[tuple[str, float]] = []
    for lists in Lists.parts(probe, answers):
        relevant = relevant_items(probe, lists)
        usable = [each for each in lists.all if each.usable and relevant[each.entity]]
        quality = ranking.quality([each.items for each in usable], [relevant[each.entity] for each in usable], probe.k)
        scored += [(each.entity, score) for each, score in zip(usable, quality.ndcg.tolist(), strict=True)]
    return _by_unit("NDCG", scored)


def of_decisions(probe: CounterfactualProbe, answers: Answers) -> AnswerQuality | None:
    """Return the accuracy of the answers about each record; `None` if no answer can be scored.

    Answers about records with a flipped attribute are left out, because the right answer is not known.
    """
    return _by_unit(
        "accuracy",
        (
            (answer.labels["record"], float(right))
            for answer in answers
            if answer.usable and "to" not in answer.labels and (right := probe.is_right(answer)) is not None
        ),
    )


def of_resolutions(probe: CoreferenceProbe, answers: Answers) -> AnswerQuality | None:
    """Return the accuracy of the answers about each WinoBias sentence.

    Return `None` if the probe has other sentences, or if no answer can be scored.
    """
    if not probe.is_winobias:
        return None
    coded = [each for each in coded_answers(probe, answers) if each.choice is not None]
    return _by_unit("accuracy", ((each.labels["line"], float(each.choice == "first")) for each in coded))


def of_choices(probe: MultipleChoiceProbe, answers: Answers) -> AnswerQuality | None:
    """Return the accuracy of the answers to the questions of each template; `None` if no answer can be scored."""
    coded = [each for each in choices.code(probe, answers) if each.choice is not None]
    names = ((" ".join(filter(None, (each.question.category, each.question.template))), each.right) for each in coded)
    return _by_unit("accuracy", ((name, float(right)) for name, right in names))


def _by_unit(measure: str, scored: Iterable[tuple[str, float]]) -> AnswerQuality | None:
    """Return the mean score of each unit; `None` if there are no scores.

    Args:
        measure: name of the score.
        scored: for each answer, the name of its unit and its score, 0..1.
    """
    units: dict[str, list[float]] = defaultdict(list)
    for unit, score in scored:
        units[unit].append(score)
    if not units:
        return None
    return AnswerQuality(measure, {unit: float(np.mean(scores)) for unit, scores in sorted(units.items())})
