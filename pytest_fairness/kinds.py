"""Table of the probe kinds, `KINDS`, with each kind's answer quality and exchange of answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from pytest_fairness.answers.recorded import Reader
from pytest_fairness.answers.recorded_kinds import (
    CoreferenceReader,
    CounterfactualReader,
    GenerationReader,
    MultipleChoiceReader,
    RecommendationReader,
    StereotypeReader,
)
from pytest_fairness.audits import choice_answers, registry
from pytest_fairness.audits.antecedents import coded_answers
from pytest_fairness.audits.list_tables import Lists, relevant_items
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes import coreference, counterfactual, generation, multiple_choice, recommendation, stereotype
from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.coreference import CoreferenceProbe
from pytest_fairness.probes.counterfactual import AGAIN, OWN, CounterfactualProbe
from pytest_fairness.probes.generation import GenerationProbe
from pytest_fairness.probes.loading import ContentChecks, KindSchema
from pytest_fairness.probes.multiple_choice import MultipleChoiceProbe
from pytest_fairness.probes.recommendation import NEUTRAL, RecommendationProbe
from pytest_fairness.probes.stereotype import StereotypeProbe
from pytest_fairness.records import Answer, Answers
from pytest_fairness.stats import ranked_lists

# Rules of the command `sample`: which recorded answers can be exchanged between groups.

Position = tuple[Hashable, Hashable]
"""Key and group of a prompt; prompts that differ only in their group have the same key."""

ProbeT = TypeVar("ProbeT", bound=Probe)


class Exchange(ABC, Generic[ProbeT]):
    """Rules that say which answers to the prompt of one group also fit the prompt of another group.

    The command `sample` exchanges answers to balance its sample. Each kind of probe has its own rules.
    """

    @abstractmethod
    def position(self, probe: ProbeT, labels: Mapping[str, str]) -> Position | None:
        """Return the key and the group of the prompt with these labels; `None` if its answers cannot be exchanged.

        Answers are exchanged between prompts with the same key and different groups.
        """

    def group_names(self, probe: ProbeT) -> list[str]:
        """Return the words that name groups; a text with such a word does not fit the prompt of another group."""
        return []

    def is_wrong(self, probe: ProbeT, answer: Answer) -> bool:
        """Return whether a usable answer is known to be wrong."""
        return False


class TextExchange(Exchange[GenerationProbe]):
    """Rules for texts, which are exchanged between the values of the axes."""

    def position(self, probe: GenerationProbe, labels: Mapping[str, str]) -> Position | None:
        """Return the prompt's label `prompt` as the key, and the values of the axes as the group."""
        return labels.get("prompt", ""), tuple(labels[axis] for axis in probe.axes)

    def group_names(self, probe: GenerationProbe) -> list[str]:
        """Return the values of the axes, and the swapped terms that are single words."""
        words = sorted(term for term in probe.swapped_terms if " " not in term)
        return [*(value for axis in probe.axes.values() for value in axis.values), *words]


class ListExchange(Exchange[RecommendationProbe]):
    """Rules for lists: lists about the same entity are exchanged between the values of the attributes."""

    def position(self, probe: RecommendationProbe, labels: Mapping[str, str]) -> Position | None:
        """Return the entity as the key, and the attribute with its value as the group.

        Return `None` for follow-up prompts and perturbed prompts.
        """
        if {"perturbation", "form", "requery"} & labels.keys():
            return None
        return labels["entity"], (labels["attribute"], "" if labels["attribute"] == NEUTRAL else labels["value"])


class RecordExchange(Exchange[CounterfactualProbe]):
    """Rules for decisions: answers about the same record are exchanged between its unflipped and flipped forms."""

    def position(self, probe: CounterfactualProbe, labels: Mapping[str, str]) -> Position | None:
        """Return the record's id as the key, and its form as the group; `None` for repeated prompts.

        The form is the flipped attribute with its new value, or `OWN` for the unchanged record.
        """
        if labels["form"] == AGAIN:
            return None
        return labels["record"], OWN if labels["form"] == OWN else (labels["attribute"], labels["to"])

    def is_wrong(self, probe: CounterfactualProbe, answer: Answer) -> bool:
        """Return whether the answer contradicts the record's `truth`."""
        return probe.is_right(answer) is False


# Quality of the answers of all groups together: it shows whether an attempt to reduce bias makes answers worse.
#
# Quality is not an audit: audits measure differences between groups, and answers may be equally poor for all groups.


@dataclass(frozen=True)
class AnswerQuality:
    """Quality of the usable answers of one run.

    Attributes:
        measure: name of the quality score (NDCG or accuracy); higher is better.
        scores: mean score of each unit (entity, record, sentence or template), 0..1, by the unit's name.
    """

    measure: str
    scores: Mapping[str, float]


def quality_of_lists(probe: RecommendationProbe, answers: Answers) -> AnswerQuality | None:
    """Return the mean NDCG@k (Järvelin and Kekäläinen 2002) of each entity whose relevant items are known.

    Return `None` if there are no such entities, or if none of them has a usable list.
    """
    if probe.relevant is None:
        return None
    scored: list[tuple[str, float]] = []
    for lists in Lists.parts(probe, answers):
        relevant = relevant_items(probe, lists)
        usable = [each for each in lists.all if each.usable and relevant[each.entity]]
        quality = ranked_lists.quality(
            [each.items for each in usable], [relevant[each.entity] for each in usable], probe.k
        )
        scored += [(each.entity, score) for each, score in zip(usable, quality.ndcg.tolist(), strict=True)]
    return _by_unit("NDCG", scored)


def quality_of_decisions(probe: CounterfactualProbe, answers: Answers) -> AnswerQuality | None:
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


def quality_of_resolutions(probe: CoreferenceProbe, answers: Answers) -> AnswerQuality | None:
    """Return the accuracy of the answers about each WinoBias sentence.

    Return `None` if the probe has other sentences, or if no answer can be scored.
    """
    if not probe.is_winobias:
        return None
    coded = [each for each in coded_answers(probe, answers) if each.choice is not None]
    return _by_unit("accuracy", ((each.labels["line"], float(each.choice == "first")) for each in coded))


def quality_of_choices(probe: MultipleChoiceProbe, answers: Answers) -> AnswerQuality | None:
    """Return the accuracy of the answers to the questions of each template; `None` if no answer can be scored."""
    coded = [each for each in choice_answers.code_answers(probe, answers) if each.choice is not None]
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


# Table of the probe kinds; each kind is one entry of `KINDS`.


@dataclass(frozen=True)
class Kind(Generic[ProbeT]):
    """One kind of probe.

    Its audits are listed in `audits.registry`; its requests come from the method `prompts` of its model.

    Attributes:
        model: pydantic model that validates probe files of the kind.
        reader: reader of the answer file under `responses:`; `None` if the kind supports no answer files.
        checks: checks of several keys of a probe file together; `None` without such checks.
        exchange: rules by which the command `sample` exchanges recorded answers between groups; `None` if the command
            does not support the kind.
        quality: function that scores answers by the right answers in the probe; `None` if probes of the kind have no
            right answers.
    """

    model: type[ProbeT]
    reader: type[Reader[ProbeT]] | None = None
    checks: ContentChecks | None = None
    exchange: Exchange[ProbeT] | None = None
    quality: Callable[[ProbeT, Sequence[Answer]], AnswerQuality | None] | None = None


def kind_of(probe: ProbeT) -> Kind[ProbeT]:
    """Return the kind of a probe."""
    return KINDS[probe.kind]


def quality(probe: Probe, answers: Sequence[Answer]) -> AnswerQuality | None:
    """Return the quality of the usable answers: NDCG@k of lists, or accuracy of choices.

    The result is `None` if the probe does not state which items or choices are right.
    """
    score = kind_of(probe).quality
    return None if score is None else score(probe, answers)


KINDS: dict[str, Kind[Any]] = {
    "generation": Kind(GenerationProbe, GenerationReader, generation.content_diagnostics, exchange=TextExchange()),
    "recommendation": Kind(
        RecommendationProbe,
        RecommendationReader,
        recommendation.content_diagnostics,
        exchange=ListExchange(),
        quality=quality_of_lists,
    ),
    "coreference": Kind(
        CoreferenceProbe, CoreferenceReader, coreference.content_diagnostics, quality=quality_of_resolutions
    ),
    "counterfactual": Kind(
        CounterfactualProbe,
        CounterfactualReader,
        counterfactual.content_diagnostics,
        exchange=RecordExchange(),
        quality=quality_of_decisions,
    ),
    "stereotype": Kind(StereotypeProbe, StereotypeReader, stereotype.content_diagnostics),
    "multiple_choice": Kind(
        MultipleChoiceProbe, MultipleChoiceReader, multiple_choice.content_diagnostics, quality=quality_of_choices
    ),
}
"""Kinds of probes, by the value of the key `kind` in probe files."""


def schemas() -> dict[str, KindSchema]:
    """Return, for each kind, the pydantic models that validate its probes and the settings of its audits."""
    return {name: KindSchema(kind.model, registry.SettingsModels(name), kind.checks) for name, kind in KINDS.items()}


def recorded_answers(probe: Probe) -> list[Answer]:
    """Return the recorded answers of a probe, read from the file under `responses:`.

    Raises:
        ProbeError: the file cannot be read, lacks a column, has an invalid row, or lacks answers of the probe; or
            the probe's kind supports no recorded answers.
        ValueError: the probe has no `responses:`.
    """
    return reader(probe).answers()


def reader(probe: Probe) -> Reader[Any]:
    """Return the reader of the file under `responses:`.

    Raises:
        ProbeError: the file cannot be read, or lacks a column; or the probe's kind supports no recorded answers.
        ValueError: the probe has no `responses:`.
    """
    if probe.responses is None:
        raise ValueError(f"the probe {probe.name} has no `responses:`")
    reader_class = kind_of(probe).reader
    if reader_class is None:
        raise ProbeError(
            f"{probe.name}: probes of the kind {probe.kind!r} cannot read recorded answers. Remove the key `responses`."
        )
    return reader_class(probe, probe.responses)
