"""Similarity between the lists for a value of an attribute and the neutral lists of the same entity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from pydantic import Field

from pytest_fairness.audits.lists.entity_tables import Matrix, extreme_means
from pytest_fairness.audits.lists.normalization import NEUTRAL, Lists, RecommendedList, count
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.recommendation.model import RecommendationProbe
from pytest_fairness.records import MISSING, REFUSALS, Answer, Answers, Json, Status
from pytest_fairness.stats.lists.similarity import Measure, Variant, similarities

FAIRLLM = "Zhang, Bao, Zhang, Wang, Feng and He 2023, “Is ChatGPT Fair for Recommendation?” (FaiRLLM)"


class SimilaritySettings(AuditSettings):
    """Settings of the similarity between lists."""

    similarity: Measure = Field(
        default="jaccard",
        description="How two lists are compared. jaccard: by their common items. serp: by their common items, weighted "
        "by rank. prag: by the pairs of items that have the same order in both lists.",
    )
    variant: Variant = Field(
        default="normalized",
        description="Formula of the similarity. normalized: identical lists have the similarity 1. fairllm, langfair: "
        "the formula of the package of this name, which is not normalised.",
    )


Pairs = dict[tuple[str, str], list[tuple[RecommendedList, RecommendedList]]]
"""Pairs of lists to compare, by entity and attribute value."""


def similarity_to_neutral(
    probe: RecommendationProbe,
    settings: SimilaritySettings,
    answers: Answers,
    attribute: str,
    values: Sequence[str],
    perturbation: str = "",
) -> Matrix:
    """Return the table of similarities between each attribute value's lists and the neutral lists, by entity and value.

    Each list is compared with each neutral list of the same entity and perturbation; similarities are averaged. The
    details contain the noise floor: the mean similarity between two neutral lists.

    Args:
        probe: probe of the answers.
        settings: settings of the similarity.
        answers: answers for the attribute and neutral answers.
        attribute: name of the attribute.
        values: values of the attribute.
        perturbation: name of the perturbation; empty for unperturbed questions.
    """
    trials = trials_of(answers, attribute, perturbation)
    groups = (*values, NEUTRAL)
    parts: list[Matrix] = []
    floors: dict[str, float] = {}
    refused, indirect = Counter(dict.fromkeys(groups, 0)), Counter[str]()
    merged: list[dict[str, str]] = []
    for lists in Lists.parts(probe, answers):
        neutral = neutral_lists_to_compare(probe, lists.of_group(NEUTRAL, perturbation), trials)
        conditioned = [each for each in lists.of_group(attribute, perturbation) if each.value in values]
        pairs: Pairs = {}
        for each, other in usable_pairs(conditioned, neutral):
            pairs.setdefault((each.entity, each.value), []).append((each, other))
        every = [*conditioned, *neutral]
        floors |= neutral_similarities(probe, settings, neutral)
        refused.update(count(every, groups, *REFUSALS))
        indirect.update(indirect_lists(every, values))
        merged += lists.merge_details()
        parts.append(
            Matrix.averaged(
                values,
                pair_similarities(probe, settings, pairs),
                entities=(each.entity for each in every),
                domains=lists.domains,
                n=count(every, groups, Status.OK),
                missing=count(every, groups, *MISSING),
            )
        )
    return Matrix.joined(
        values,
        groups,
        parts,
        details={
            "measure": settings.similarity,
            "variant": settings.variant,
            "noise_floor": noise_floor(floors),
            "refused": dict(refused),
            "indirect": dict(indirect),
            "merged": merged,
        },
    )


def trials_of(answers: Iterable[Answer], attribute: str, perturbation: str = "") -> int:
    """Return the number of trials of the attribute's lists; 1 if there are no lists."""
    asked = (attribute, perturbation)
    return 1 + max(
        (each.trial for each in answers if (each.labels["attribute"], each.labels.get("perturbation", "")) == asked),
        default=0,
    )


def neutral_lists_to_compare(
    probe: RecommendationProbe, neutral: list[RecommendedList], trials: int
) -> list[RecommendedList]:
    """Return the neutral lists to compare with the lists of an attribute that has this number of trials.

    Further neutral lists, which were requested for the audit `uncertainty` only, are left out. Of a file of recorded
    lists, all neutral lists are compared.
    """
    if probe.responses is not None:
        return neutral
    return [each for each in neutral if each.trial < max(probe.neutral_trials, trials)]


def usable_pairs(
    lists: Sequence[RecommendedList], neutral: Sequence[RecommendedList]
) -> list[tuple[RecommendedList, RecommendedList]]:
    """Return all pairs of a usable list and a usable neutral list of the same entity."""
    by_entity: dict[str, list[RecommendedList]] = {}
    for other in neutral:
        if other.usable:
            by_entity.setdefault(other.entity, []).append(other)
    return [(each, other) for each in lists if each.usable for other in by_entity.get(each.entity, ())]


def pair_similarities(
    probe: RecommendationProbe, settings: SimilaritySettings, pairs: Pairs
) -> dict[tuple[str, str], list[float]]:
    """Return the similarities of all pairs of lists, by entity and attribute value."""
    flat = [pair for group in pairs.values() for pair in group]
    numbers = iter(
        similarities(
            [each.items for each, _ in flat],
            [other.items for _, other in flat],
            measure=settings.similarity,
            variant=settings.variant,
            k=probe.k,
        ).tolist()
    )
    return {key: [next(numbers) for _ in group] for key, group in pairs.items()}


def noise_floor(similarities: Mapping[str, float]) -> dict[str, Json] | None:
    """Return the noise floor: the mean similarity between two neutral lists of the same entity.

    The similarity between lists for a value and neutral lists is hardly ever larger than the noise floor.

    Args:
        similarities: mean similarity between two neutral lists, by entity.

    Returns:
        the mean and the number of entities; `None` if no entity has several neutral lists.
    """
    if not similarities:
        return None
    return {"mean": sum(similarities.values()) / len(similarities), "entities": len(similarities)}


def neutral_similarities(
    probe: RecommendationProbe, settings: SimilaritySettings, neutral: Sequence[RecommendedList]
) -> dict[str, float]:
    """Return, for each entity with several neutral lists, the mean similarity between two of these lists."""
    pairs: Pairs = {}
    by_entity: dict[str, list[RecommendedList]] = {}
    for each in neutral:
        if each.usable:
            by_entity.setdefault(each.entity, []).append(each)
    for entity, lists in by_entity.items():
        if len(lists) > 1:
            # In both orders, as not every measure is symmetric.
            pairs[entity, ""] = [(one, other) for one, other in product(lists, lists) if one is not other]
    numbers = pair_similarities(probe, settings, pairs)
    return {entity: sum(own) / len(own) for (entity, _), own in numbers.items()}


def indirect_lists(lists: Sequence[RecommendedList], values: Sequence[str]) -> dict[str, int]:
    """Return, by attribute value, the number of lists that answer the indirect wording; empty if all are 0."""
    counts = dict.fromkeys(values, 0)
    for each in lists:
        if each.indirect and each.value in counts:
            counts[each.value] += 1
    return counts if any(counts.values()) else {}


def similarity_phrase(details: Mapping[str, Json]) -> str:
    """Return a phrase with the attribute values of lowest and of highest similarity, and the noise floor."""
    (lowest, low), (highest, high) = extreme_means(details["similarity"])
    floor = details["noise_floor"]
    noise = "" if floor is None else f"; noise floor {floor['mean']:.2f}"
    return (
        f"{details['measure']} similarity to neutral lists: {lowest} {low:.2f} (lowest), {highest} {high:.2f} "
        f"(highest){noise}"
    )
