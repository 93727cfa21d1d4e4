"""Rules of the command `sample`: which recorded answers can be exchanged between groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

from pytest_fairness.probes.base import Probe
from pytest_fairness.probes.counterfactual.model import AGAIN, OWN, CounterfactualProbe
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.probes.recommendation.model import NEUTRAL, RecommendationProbe
from pytest_fairness.records import Answer

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
