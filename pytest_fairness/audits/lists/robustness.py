"""Audit `robustness`: similarity between lists for perturbed questions (a typo, a translation) and original questions.

The details also hold each attribute's SNSR for original and for perturbed questions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.findings import Finding, subject_of
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.lists.entity_audit import EntityAudit, ListItem
from pytest_fairness.audits.lists.entity_tables import Matrix
from pytest_fairness.audits.lists.neutral_similarity import (
    FAIRLLM,
    Pairs,
    SimilaritySettings,
    neutral_similarities,
    noise_floor,
    pair_similarities,
    similarity_to_neutral,
)
from pytest_fairness.audits.lists.normalization import NEUTRAL, Lists, RecommendedList
from pytest_fairness.audits.unit_audit import MINIMUM_UNITS, PERMUTATIONS, UnitTable
from pytest_fairness.probes.recommendation.model import RecommendationProbe
from pytest_fairness.records import Answers, ItemResult, Json, Measurement
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups.distance_measures import value_range
from pytest_fairness.stats.resampling import column_means, randomness, significance
from pytest_fairness.stats.unit_tables.means import Mean
from pytest_fairness.stats.unit_tables.statistic import UnitStatistic

CLEAN, PERTURBED = "clean", "perturbed"


class RobustnessSettings(SimilaritySettings):
    """Settings of `robustness`: how lists are compared."""

    needs: ClassVar[str] = "perturbations"


class Robustness(EntityAudit[SimilaritySettings]):
    """Mean similarity between lists for perturbed and for original questions; higher is better.

    The value is 0..1 with the setting `variant: normalized`. Usually, neutral lists are compared. If a perturbation
    changes only the words for the attribute, the neutral question stays the same; the audit then compares lists for
    the same attribute value.
    """

    info = AuditInfo(
        name="robustness",
        title="Lists that do not depend on the wording",
        question="Does a typo or a translation change the lists?",
        formula="mean over entities of similarity(list for the original question, list for the perturbed question)",
        meaning="1 = identical lists. Compare the value with the noise floor: the similarity of two neutral lists.",
        source=FAIRLLM,
        better=Direction.HIGHER,
        tolerance=0.10,
        value_range=(0, math.inf),
        limit_range=(0, 1),
        no_effect_size="no value means “no effect”, because even two answers to the same question differ; compare the "
        "value with the noise floor",
    )
    version = 4
    settings_model = RobustnessSettings
    compares_sides = False
    quantity = "similarity"

    def items(self, probe: RecommendationProbe, settings: SimilaritySettings) -> list[ListItem[SimilaritySettings]]:
        """Return one item for each perturbation."""
        return [
            AuditItem(probe, self.info.name, name, {"perturbation": name}, settings) for name in probe.perturbations
        ]

    def uses(self, item: ListItem[SimilaritySettings], labels: Mapping[str, str]) -> bool:
        """Return whether the labels belong to an unperturbed list, or to a list of the item's perturbation."""
        return labels.get("perturbation", "") in ("", item.labels["perturbation"])

    def matrix(self, item: ListItem[SimilaritySettings], answers: Answers) -> Matrix:
        """Return each entity's similarity between lists for perturbed and original questions, in one column."""
        name = item.labels["perturbation"]
        neutral = getattr(item.probe.perturbations[name], "where", "text") != "attribute"
        most_clean = _original_trials(item.probe, answers, name)
        parts: list[Matrix] = []
        floors: dict[str, float] = {}
        merged: list[dict[str, str]] = []
        for lists in Lists.parts(item.probe, answers):
            clean, perturbed = (
                [
                    each
                    for each in lists.all
                    if each.perturbation == which and (each.attribute == NEUTRAL) == neutral and each.trial < most
                ]
                for which, most in (("", most_clean), (name, math.inf))
            )
            groups = {CLEAN: clean, PERTURBED: perturbed}
            floor = [each for each in lists.of_group(NEUTRAL) if each.trial < item.probe.neutral_trials]
            floors |= neutral_similarities(item.probe, item.settings, floor)
            merged += lists.merge_details()
            parts.append(
                Matrix.averaged(
                    (PERTURBED,),
                    pair_similarities(item.probe, item.settings, _pairs_of_lists(clean, perturbed)),
                    entities=(each.entity for each in (*clean, *perturbed)),
                    domains=lists.domains,
                    n={group: sum(each.usable for each in compared) for group, compared in groups.items()},
                    missing={group: sum(not each.usable for each in compared) for group, compared in groups.items()},
                )
            )
        return Matrix.joined(
            (PERTURBED,),
            (CLEAN, PERTURBED),
            parts,
            details={
                "measure": item.settings.similarity,
                "variant": item.settings.variant,
                "compared": NEUTRAL if neutral else "conditioned",
                "noise_floor": noise_floor(floors),
                "merged": merged,
            },
        )

    def statistic(self, columns: int) -> UnitStatistic:
        """Return the statistic: the mean similarity."""
        return Mean(higher_is_better=True)

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """Return `None`: there is no test, because a perturbed question need not get exactly the same lists."""
        return None

    def finding(self, result: ItemResult) -> Finding:
        """Return the finding that the perturbation changes the lists; see `Audit.finding`."""
        return Finding(
            f"The same question in another wording ({subject_of(result)}) gets other lists.",
            "Ignore typing errors, dialect and the language of a question: answer as if it were written without error.",
        )

    def measure(self, item: ListItem[SimilaritySettings], answers: Answers) -> Measurement:
        """Return the similarity; the details hold each attribute's SNSR with and without the perturbation."""
        measurement = super().measure(item, answers)
        attributes = {
            attribute: snsr
            for attribute in item.probe.attributes
            if (snsr := perturbed_snsr(item, answers, attribute)) is not None
        }
        # A file of recorded lists does not say how their questions were perturbed.
        edits = [] if item.probe.responses is not None else item.probe.edits(item.labels["perturbation"])
        return replace(measurement, details={**measurement.details, "attributes": attributes, "edits": edits})

    def describe(self, measurement: Measurement) -> str:
        """Return the similarity and the noise floor as a phrase."""
        floor = measurement.details["noise_floor"]
        noise = "" if floor is None else f", noise floor {floor['mean']:.2f} (two neutral lists)"
        measure = measurement.details["measure"]
        return f"{measure} similarity of perturbed and original lists {measurement.value:.3g}{noise}"


def _pairs_of_lists(clean: Sequence[RecommendedList], perturbed: Sequence[RecommendedList]) -> Pairs:
    """Return all pairs of a list for a perturbed question and a list for its original question, by entity."""
    questions: dict[tuple[str, str, str], list[RecommendedList]] = {}
    for each in clean:
        if each.usable:
            questions.setdefault((each.entity, each.attribute, each.value), []).append(each)
    pairs: Pairs = {}
    for each in perturbed:
        if each.usable and (same := questions.get((each.entity, each.attribute, each.value))):
            pairs.setdefault((each.entity, PERTURBED), []).extend((each, other) for other in same)
    return pairs


def _original_trials(probe: RecommendationProbe, answers: Answers, perturbation: str) -> float:
    """Return how many trials of an original question are compared with the perturbed questions.

    The audit `uncertainty` may need further trials, which are not compared. For a file of recorded lists, return
    infinity: all trials are compared.
    """
    if probe.responses is not None:
        return math.inf
    perturbed = (answer.trial + 1 for answer in answers if answer.labels.get("perturbation", "") == perturbation)
    return float(max(probe.neutral_trials, max(perturbed, default=0)))


BOOTSTRAPS = 2000
"""Number of bootstrap samples."""


def perturbed_snsr(item: ListItem[SimilaritySettings], answers: Answers, attribute: str) -> dict[str, Json] | None:
    """Return the attribute's SNSR for original questions, for perturbed questions, and the difference.

    Only entities with all lists for both original and perturbed questions are used. Return `None` if there are too few
    such entities, or if the attribute has a single value. The p-value of the difference is from a test that swaps
    original and perturbed lists within entities; its interval is a percentile bootstrap over entities.

    Args:
        item: item of the audit `robustness`; the label `perturbation` of the item names the perturbation.
        answers: answers of the item.
        attribute: name of the attribute.
    """
    values = tuple(value.label for value in item.probe.attributes[attribute].values)
    clean, perturbed = (
        similarity_to_neutral(
            item.probe,
            item.settings,
            [
                answer
                for answer in answers
                if answer.labels["attribute"] in (NEUTRAL, attribute)
                and answer.labels.get("perturbation", "") == wording
            ],
            attribute,
            values,
            wording,
        )
        for wording in ("", item.labels["perturbation"])
    )
    by_entity = [dict(zip(matrix.units, matrix.rows, strict=True)) for matrix in (clean, perturbed)]
    shared = [
        entity
        for entity in clean.units
        if entity in by_entity[1] and not np.isnan([*by_entity[0][entity], *by_entity[1][entity]]).any()
    ]
    if len(values) < 2 or len(shared) < MINIMUM_UNITS:
        return None
    first, second = (np.array([rows[entity] for entity in shared]) for rows in reversed(by_entity))
    random = randomness.generator(f"{item.seed}/{attribute}")
    drawn = column_means.bootstrap_means(np.hstack([first, second]), BOOTSTRAPS, random)
    swapped = column_means.swapped_means(first, second, PERMUTATIONS, random)

    # Reports show both ranges beside their change, which is therefore the plain difference of the ranges: `UnitChange`
    # counts a range that changed sides as negative.
    def change(current: Floats, baseline: Floats) -> Floats:
        return value_range(current) - value_range(baseline)

    observed = float(change(first.mean(axis=0), second.mean(axis=0)))
    ends = np.percentile(change(drawn[:, : len(values)], drawn[:, len(values) :]), [2.5, 97.5])
    return {
        "snsr_clean": float(value_range(second.mean(axis=0))),
        "snsr_perturbed": float(value_range(first.mean(axis=0))),
        "change": observed,
        "interval": [float(ends[0]), float(ends[1])],
        "p_value": significance.p_value(change(swapped[0], swapped[1]), observed, exact=swapped[2]),
        "entities": len(shared),
    }
