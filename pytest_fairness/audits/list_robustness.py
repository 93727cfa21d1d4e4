"""Audits `robustness` and `uncertainty`: how much recommended lists vary between equal or similar questions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from pytest_fairness.audits import list_audit
from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.info import AuditInfo, Direction, cohens_d, subject_of
from pytest_fairness.audits.list_audit import FAIRLLM, EntityAudit, ListItem, Pairs, SimilaritySettings
from pytest_fairness.audits.list_gaps import known_attributes
from pytest_fairness.audits.list_tables import NEUTRAL, Lists, Matrix, RecommendedList, count, relevant_items
from pytest_fairness.audits.unit_audit import MINIMUM_UNITS, PERMUTATIONS, UnitTable
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.recommendation import RecommendationProbe, RepeatSettings
from pytest_fairness.records import MISSING, Answers, Explanation, Finding, ItemResult, Json, Measurement, Status
from pytest_fairness.stats import ranked_lists, resampling
from pytest_fairness.stats.gaps import value_range
from pytest_fairness.stats.resampling import Floats
from pytest_fairness.stats.unit_statistics import LargestGap
from pytest_fairness.stats.unit_tables import Mean, UnitStatistic

# Audit `robustness`: similarity between lists for perturbed questions (a typo, a translation) and original
# questions.
#
# The details also hold each attribute's SNSR for original and for perturbed questions.

CLEAN, PERTURBED = "clean", "perturbed"


class RobustnessSettings(SimilaritySettings):
    """Settings of `robustness`: how lists are compared."""

    needs: ClassVar[str] = "perturbations"


class Robustness(EntityAudit[SimilaritySettings]):
    """Audit that usually compares neutral lists; the value is 0..1 with the setting `variant: normalized`.

    If a perturbation changes only the words for the attribute, the neutral question stays the same; the audit then
    compares lists for the same attribute value.
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
        return [
            AuditItem(probe, self.info.name, name, {"perturbation": name}, settings) for name in probe.perturbations
        ]

    def uses(self, item: ListItem[SimilaritySettings], labels: Mapping[str, str]) -> bool:
        return labels.get("perturbation", "") in ("", item.labels["perturbation"])

    def matrix(self, item: ListItem[SimilaritySettings], answers: Answers) -> Matrix:
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
            floors |= list_audit.neutral_similarities(item.probe, item.settings, floor)
            merged += lists.merge_details()
            parts.append(
                Matrix.averaged(
                    (PERTURBED,),
                    list_audit.pair_similarities(item.probe, item.settings, _pairs_of_lists(clean, perturbed)),
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
                "noise_floor": list_audit.noise_floor(floors),
                "merged": merged,
            },
        )

    def statistic(self, columns: int) -> UnitStatistic:
        return Mean(higher_is_better=True)

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """Return `None`: there is no test, because a perturbed question need not get exactly the same lists."""
        return None

    def finding(self, result: ItemResult) -> Finding:
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

    def explanation(self, item: ListItem[SimilaritySettings], measurement: Measurement) -> Explanation:
        floor = measurement.details["noise_floor"]
        noise = "" if floor is None else f", noise floor {floor['mean']:.2f} (two neutral lists)"
        compared = f"{item.settings.similarity} similarity of perturbed and original lists"
        return replace(super().explanation(item, measurement), phrase=f"{compared} {measurement.value:.3g}{noise}")


def _pairs_of_lists(clean: Sequence[RecommendedList], perturbed: Sequence[RecommendedList]) -> Pairs:
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
    """Return how many trials are compared, without further ones for `uncertainty`; infinity (all) of a file."""
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
    """
    values = tuple(value.label for value in item.probe.attributes[attribute].values)
    clean, perturbed = (
        list_audit.similarity_to_neutral(
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
    random = resampling.generator(f"{item.seed}/{attribute}")
    drawn = resampling.bootstrap_means(np.hstack([first, second]), BOOTSTRAPS, random)
    swapped = resampling.swapped_means(first, second, PERMUTATIONS, random)

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
        "p_value": resampling.p_value(change(swapped[0], swapped[1]), observed, exact=swapped[2]),
        "entities": len(shared),
    }


# Audit `uncertainty`: how much the lists for a repeated question vary.
#
# For an attribute, the audit measures whether the lists vary more for some values than for others.


class UncertaintySettings(RepeatSettings):
    """Settings of `uncertainty`: number of repeats, and attributes for which an item is created."""


class Uncertainty(EntityAudit[UncertaintySettings]):
    info = AuditInfo(
        name="uncertainty",
        title="Lists that vary between repeats",
        question="How much do lists vary when the same question is asked again?",
        formula="mean over entities of H = −Σ p log₂ p; p = share of an item among all items of the entity's lists",
        meaning="Bits; log₂ k = always the same k items, more = lists vary. For an attribute: the largest minus the "
        "smallest mean entropy of its values.",
        source="Shannon 1948",
        better=Direction.LOWER,
        unit="bits",
        tolerance=0.5,
        value_range=(0, math.inf),
        effect=cohens_d(),
    )
    version = 5
    settings_model = UncertaintySettings
    quantity = "entropy_by_value"
    harmed = "highest"

    def items(self, probe: RecommendationProbe, settings: UncertaintySettings) -> list[ListItem[UncertaintySettings]]:
        attributes = known_attributes(probe, self.info.name, settings.attributes)
        return [
            AuditItem(probe, self.info.name, None, {}, settings),
            *(
                AuditItem(probe, self.info.name, attribute, {"attribute": attribute}, settings)
                for attribute in attributes
            ),
        ]

    def uses(self, item: ListItem[UncertaintySettings], labels: Mapping[str, str]) -> bool:
        return not labels.get("perturbation") and labels["attribute"] == item.labels.get("attribute", NEUTRAL)

    def finding(self, result: ItemResult) -> Finding:
        if result.labels:
            return super().finding(result)
        return Finding(
            "The same question gets a different list each time.", "Give the same answer each time to the same question."
        )

    def matrix(self, item: ListItem[UncertaintySettings], answers: Answers) -> Matrix:
        """Return the entropy by entity and attribute value, for entities with at least two lists."""
        attribute = item.labels.get("attribute", NEUTRAL)
        values = list_audit.values_of(item.probe, attribute) if attribute != NEUTRAL else (NEUTRAL,)
        variations: dict[tuple[str, str], ranked_lists.Variation] = {}
        ndcg: dict[str, float] = {}
        parts: list[Matrix] = []
        merged: list[dict[str, str]] = []
        for lists in Lists.parts(item.probe, answers):
            compared = [
                each
                for each in lists.of_group(attribute)
                if each.group in values and (item.probe.responses is not None or each.trial < item.settings.repeats)
            ]
            cells: dict[tuple[str, str], list[RecommendedList]] = {}
            for each in compared:
                if each.usable:
                    cells.setdefault((each.entity, each.group), []).append(each)
            own = {
                key: variation
                for key, group in cells.items()
                if (variation := ranked_lists.variation([each.items for each in group])) is not None
            }
            if attribute == NEUTRAL and item.probe.relevant is not None:
                ndcg |= _mean_ndcg(item.probe, lists, [each for key in own for each in cells[key]])
            variations |= own
            merged += lists.merge_details()
            parts.append(
                Matrix.averaged(
                    values,
                    {key: [variation.entropy] for key, variation in own.items()},
                    entities=(each.entity for each in compared),
                    domains=lists.domains,
                    n=count(compared, values, Status.OK),
                    missing=count(compared, values, *MISSING),
                )
            )
        if not variations:
            raise NotMeasurable("no question has two usable lists: raise `repeats`, or check the answers")
        by_entity: dict[str, list[float]] = {}
        for (entity, _), variation in variations.items():
            by_entity.setdefault(entity, []).append(variation.entropy)
        return Matrix.joined(
            values,
            values,
            parts,
            details={
                "instability": _mean([variation.instability for variation in variations.values()]),
                "item_entropy": _mean([variation.item_entropy for variation in variations.values()]),
                "instability_by_value": {
                    value: _mean([variation.instability for key, variation in variations.items() if key[1] == value])
                    for value in values
                },
                "entropy": {entity: _mean(entropies) for entity, entropies in by_entity.items()},
                "merged": merged,
                **(
                    _ndcg_correlation(by_entity, ndcg)
                    if attribute == NEUTRAL and item.probe.relevant is not None
                    else {}
                ),
            },
        )

    def statistic(self, columns: int) -> UnitStatistic:
        return Mean() if columns == 1 else LargestGap(columns)

    def comparable(
        self, item: ListItem[UncertaintySettings], current: Answers, baseline: Answers
    ) -> tuple[Answers, Answers]:
        """Cut both runs to the same number of trials: more lists have more different items."""
        return list_audit.with_equal_trials(current, baseline)

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        return super().p_value(table, random) if len(table.columns) > 1 else None

    def explanation(self, item: ListItem[UncertaintySettings], measurement: Measurement) -> Explanation:
        """Return the value (an entropy, or a gap between entropies) and the instability as a phrase.

        The instability is 0 if all lists of an entity have the same items, and 1 if no item is in two of these lists.
        """
        details = measurement.details
        instability = f"instability {details['instability']:.2f}"
        phrase = f"entropy {measurement.value:.3g} bits ({instability})"
        if "worst" in details:
            phrase = (
                f"entropies differ by {measurement.value:.3g} bits (highest entropy: {details['worst']['value']}; "
                f"{instability})"
            )
        return replace(super().explanation(item, measurement), phrase=phrase)


def _mean_ndcg(probe: RecommendationProbe, lists: Lists, compared: Sequence[RecommendedList]) -> dict[str, float]:
    relevant = relevant_items(probe, lists)
    quality = ranked_lists.quality(
        [each.items for each in compared], [relevant[each.entity] for each in compared], probe.k
    )
    by_entity: dict[str, list[float]] = {}
    for each, score in zip(compared, quality.ndcg.tolist(), strict=True):
        if relevant[each.entity]:
            by_entity.setdefault(each.entity, []).append(score)
    return {entity: float(np.mean(scores)) for entity, scores in by_entity.items()}


def _ndcg_correlation(entropies: Mapping[str, Sequence[float]], ndcg: Mapping[str, float]) -> dict[str, Json]:
    """Return Spearman's rank correlation, over entities, between entropy and NDCG of the neutral lists.

    The detail is `None` for fewer than three entities, or if all entities have the same entropy or the same NDCG.
    """
    # Deferred, as scipy.stats takes half a second to import and only measuring needs it.
    from scipy.stats import spearmanr

    pairs = np.array([(entropies[entity][0], score) for entity, score in sorted(ndcg.items())])
    if len(pairs) < 3 or (np.ptp(pairs, axis=0) == 0).any():
        return {"quality_correlation": None}
    correlation = spearmanr(pairs[:, 0], pairs[:, 1])
    return {
        "quality_correlation": {
            "spearman": float(correlation.statistic),
            "p_value": float(correlation.pvalue),
            "entities": len(pairs),
        }
    }


def _mean(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None
