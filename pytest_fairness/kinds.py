"""Table of the probe kinds, `KINDS`, with each kind's answer quality."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from pytest_fairness.answers.recorded import RecordedAnswers, read
from pytest_fairness.audits import multiple_choice as questions
from pytest_fairness.audits import registry
from pytest_fairness.audits.choices import coded_answers
from pytest_fairness.audits.lists import Lists, qualities, relevant_items
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.coreference import CoreferenceProbe, SentenceRows
from pytest_fairness.probes.counterfactual import CounterfactualProbe, RecordRows
from pytest_fairness.probes.generation import GenerationProbe, TextRows
from pytest_fairness.probes.loading import KindSchema
from pytest_fairness.probes.multiple_choice import MultipleChoiceProbe, QuestionRows
from pytest_fairness.probes.recommendation import ListRows, RecommendationProbe
from pytest_fairness.probes.recorded_rows import Rows
from pytest_fairness.probes.stereotype import CaseRows, StereotypeProbe
from pytest_fairness.records import Answer, Answers

ProbeT = TypeVar("ProbeT", bound=Probe)

# Quality of the answers of all groups together: it shows whether an attempt to reduce bias makes answers worse.
#
# Quality is not an audit: audits measure differences between groups, and answers may be equally poor for all groups.


@dataclass(frozen=True)
class AnswerQuality:
    """Quality of the usable answers of a run: each unit's mean score (NDCG or accuracy), 0..1; higher is better."""

    measure: str
    scores: Mapping[str, float]


def quality_of_lists(probe: RecommendationProbe, answers: Answers) -> AnswerQuality | None:
    """Return the mean NDCG@k (Järvelin and Kekäläinen 2002) of each entity whose relevant items are known."""
    if probe.relevant is None:
        return None
    scored: list[tuple[str, float]] = []
    for lists in Lists.parts(probe, answers):
        found = qualities(probe, relevant_items(probe, lists), lists.all)
        scored += [(each.entity, ndcg) for each, (_, _, ndcg) in found]
    return _by_unit("NDCG", scored)


def quality_of_decisions(probe: CounterfactualProbe, answers: Answers) -> AnswerQuality | None:
    """Return the accuracy of the answers about unflipped records; with a flip, the right answer is not known."""
    return _by_unit(
        "accuracy",
        (
            (answer.labels["record"], float(right))
            for answer in answers
            if answer.usable and "to" not in answer.labels and (right := probe.is_right(answer)) is not None
        ),
    )


def quality_of_resolutions(probe: CoreferenceProbe, answers: Answers) -> AnswerQuality | None:
    """Return the accuracy of the answers about each WinoBias sentence."""
    if not probe.is_winobias:
        return None
    coded = [each for each in coded_answers(probe, answers) if each.choice is not None]
    return _by_unit("accuracy", ((each.labels["line"], float(each.choice == "first")) for each in coded))


def quality_of_choices(probe: MultipleChoiceProbe, answers: Answers) -> AnswerQuality | None:
    """Return the accuracy of the answers to the questions of each template."""
    coded = [each for each in questions.code_answers(probe, answers) if each.choice is not None]
    names = ((" ".join(filter(None, (each.question.category, each.question.template))), each.right) for each in coded)
    return _by_unit("accuracy", ((name, float(right)) for name, right in names))


def _by_unit(measure: str, scored: Iterable[tuple[str, float]]) -> AnswerQuality | None:
    units: dict[str, list[float]] = defaultdict(list)
    for unit, score in scored:
        units[unit].append(score)
    if not units:
        return None
    return AnswerQuality(measure, {unit: float(np.mean(scores)) for unit, scores in sorted(units.items())})


# Table of the probe kinds; each kind is one entry of `KINDS`.


@dataclass(frozen=True)
class Kind(Generic[ProbeT]):
    """One kind of probe.

    Its audits are listed in `audits.registry`; its requests come from the method `prompts` of its model.

    Attributes:
        rows: rows of the files of answers under `responses:`; `None` if the kind supports no such files.
        quality: function that scores answers by the right answers in the probe.
    """

    model: type[ProbeT]
    rows: type[Rows[ProbeT]] | None = None
    quality: Callable[[ProbeT, Sequence[Answer]], AnswerQuality | None] | None = None


def kind_of(probe: ProbeT) -> Kind[ProbeT]:
    return KINDS[probe.kind]


def quality(probe: Probe, answers: Sequence[Answer]) -> AnswerQuality | None:
    """Return the quality of the usable answers; `None` if the probe does not say which items or choices are right."""
    score = kind_of(probe).quality
    return None if score is None else score(probe, answers)


KINDS: dict[str, Kind[Any]] = {
    "generation": Kind(GenerationProbe, TextRows),
    "recommendation": Kind(RecommendationProbe, ListRows, quality_of_lists),
    "coreference": Kind(CoreferenceProbe, SentenceRows, quality_of_resolutions),
    "counterfactual": Kind(CounterfactualProbe, RecordRows, quality_of_decisions),
    "stereotype": Kind(StereotypeProbe, CaseRows),
    "multiple_choice": Kind(MultipleChoiceProbe, QuestionRows, quality_of_choices),
}
"""Kinds of probes, by the value of the key `kind` in probe files."""


def schemas() -> dict[str, KindSchema]:
    return {name: KindSchema(kind.model, registry.SettingsModels(name)) for name, kind in KINDS.items()}


def recorded_answers(probe: Probe) -> list[Answer]:
    """Return the recorded answers of a probe; raise `ProbeError` as `recorded` does."""
    return recorded(probe).answers


def recorded(probe: Probe) -> RecordedAnswers:
    """Return the recorded answers of a probe, read from the files under `responses:`.

    Raises:
        ProbeError: a file cannot be read, lacks a column, has an invalid row, or lacks answers of the probe; or the
            probe's kind supports no recorded answers.
    """
    if probe.responses is None:
        raise ValueError(f"the probe {probe.name} has no `responses:`")
    rows = kind_of(probe).rows
    if rows is None:
        raise ProbeError(
            f"{probe.name}: probes of the kind {probe.kind!r} cannot read recorded answers. Remove the key `responses`."
        )
    return read(rows(probe, probe.responses))
