"""Audits `quality`, `shortfall` and `uncertainty`: relevance, length and variation of recommended lists."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from pytest_fairness.audits.info import (
    AuditInfo,
    Direction,
    cohens_d,
    cohens_h,
)
from pytest_fairness.audits.lists import (
    ListAudit,
    ListItem,
    Lists,
    Matrix,
    MatrixBuilder,
    RecommendedList,
    compared_trials,
    known_attributes,
    qualities,
    relevant_items,
    usable_by,
    values_of,
)
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.field_types import AuditSettings
from pytest_fairness.probes.recommendation import NEUTRAL, RecommendationProbe, RepeatSettings
from pytest_fairness.records import (
    REFUSALS,
    Answers,
    ItemResult,
    Json,
    Status,
)
from pytest_fairness.stats import intervals, ranked_lists
from pytest_fairness.stats.unit_statistics import LargestGap
from pytest_fairness.stats.unit_tables import Mean, UnitStatistic

# Audit `quality`: gap between attribute values in the relevance of the recommended items.


class QualitySettings(AuditSettings):
    """Settings of `quality`: only the settings that every audit has.

    The probe's key `relevant` names the file that lists the relevant items.
    """

    needs: ClassVar[str] = "relevant"


class Quality(ListAudit[QualitySettings]):
    """Audit of mean NDCG@k, over the entities whose relevant items are known."""

    info = AuditInfo(
        name="quality",
        title="Unequally relevant lists",
        question="Does one value of the attribute get less relevant lists?",
        formula="largest − smallest mean NDCG@k among the attribute's values",
        meaning="Gap between mean NDCG scores, 0 to 1; 0 = no difference.",
        source="Järvelin and Kekäläinen 2002",
        better=Direction.LOWER,
        tolerance=0.05,
        value_range=(0, 1),
        worst=1,
        effect=cohens_d(),
    )
    version = 4
    settings_model = QualitySettings
    quantity = "ndcg"
    harmed = "lowest"
    phrase = "NDCG differs by {value:.3g} ({least} {low:.2f}, {most} {high:.2f})"

    def matrix(self, item: ListItem[QualitySettings], answers: Answers) -> Matrix:
        if item.probe.relevant is None:
            raise NotMeasurable(
                "`quality` needs the relevant items: set the probe's key `relevant` to a file that lists them",
                permanent=True,
            )
        attribute = item.labels["attribute"]
        values, trials = values_of(item.probe, attribute), compared_trials(item.probe, answers, attribute=attribute)
        table = MatrixBuilder(values, (*values, NEUTRAL))
        scores: dict[str, list[Sequence[float]]] = {group: [] for group in table.groups}
        unknown: list[str] = []
        for lists in table.parts(item.probe, answers):
            relevant = relevant_items(item.probe, lists)
            neutral = [each for each in lists.of_group(NEUTRAL) if each.trial < trials]
            conditioned = [each for each in lists.of_group(attribute) if each.value in values]
            compared = [each for each in (*conditioned, *neutral) if relevant[each.entity]]
            table.count(compared)
            for each, own in qualities(item.probe, relevant, compared):
                table.numbers.setdefault((each.entity, each.group), []).append(own[-1])
                scores[each.group].append(own)
            unknown += [entity for entity in lists.entities if not relevant[entity]]
        if not table.entities:
            raise NotMeasurable(
                "the file that the key `relevant` names contains none of the probe's entities: write their names as in "
                "the key `entities`",
                permanent=True,
            )
        means = {group: np.mean(own, axis=0).tolist() for group, own in scores.items() if own}
        details: dict[str, Json] = {
            "by_value": {
                group: dict(zip(("precision", "recall", "ndcg"), own, strict=True)) for group, own in means.items()
            },
            "without_relevant": unknown,
            "indirect": table.indirect,
        }
        return table.matrix(details)


# Audit `shortfall`: gap between attribute values in the share of missing items.
#
# The other audits of lists leave missing lists out.

RECEIVED = (Status.OK, *REFUSALS, Status.UNREADABLE)


class Shortfall(ListAudit[AuditSettings]):
    """Audit that counts a refused or unreadable list as one in which all items are missing.

    A failed request, and a text that was cut off before its first item, are left out. If the direct wording was
    refused, the list counts as missing even if the indirect wording got a list.
    """

    info = AuditInfo(
        name="shortfall",
        title="Unequally short lists",
        question="Does one value of the attribute get shorter lists?",
        formula="largest − smallest share of missing items among the attribute's values;  share = (items requested − "
        "items returned) / items requested",
        meaning="Largest gap between attribute values in the share of missing items; 0 = no gap. A refused list counts "
        "as a list without items.",
        source="Agresti and Caffo 2000 on differences between shares",
        better=Direction.ZERO,
        tolerance=0.10,
        value_range=(0, 1),
        worst=1,
        effect=cohens_h("the lowest and the highest share of missing items"),
    )
    version = 6
    quantity = "share_missing"
    harmed = "highest"
    phrase = "shares of missing list entries differ by {value:.3g} ({high:.0%} for {most}, {low:.0%} for {least})"

    def effect_basis(self, table: UnitTable) -> Sequence[float]:
        return [float(mean) for mean in table.means()]

    def check_table(self, table: UnitTable) -> None:
        """Raise `NotMeasurable` if too few entities have a number for every value, or if no answer is a list."""
        super().check_table(table)
        if not any(table.details["by_value"][value]["returned"] for value in table.columns):
            answers = sum(table.n.values()) + sum(table.details["unreadable"].values())
            raise NotMeasurable(
                f"none of {answers} answers is a list, so that the values cannot be compared. Check that "
                "the target works.",
                unusable=True,
            )

    def matrix(self, item: ListItem[AuditSettings], answers: Answers) -> Matrix:
        attribute = item.labels["attribute"]
        values = values_of(item.probe, attribute)
        table, neutral = MatrixBuilder(values), MatrixBuilder([NEUTRAL])
        returned = Counter[str]()
        for lists in table.parts(item.probe, answers, direct_only=True):
            compared = [each for each in lists.of_group(attribute) if each.value in values]
            table.count(compared)
            neutral.count(lists.of_group(NEUTRAL))
            for each in compared:
                if each.status in RECEIVED:
                    table.numbers.setdefault((each.entity, each.value), []).append(1 - each.returned / item.probe.k)
            for each in (*compared, *lists.of_group(NEUTRAL)):
                returned[each.group] += each.returned
        received, refused, unreadable = (
            table.lists(*statuses) | neutral.lists(*statuses) for statuses in (RECEIVED, REFUSALS, [Status.UNREADABLE])
        )
        # The table counts lists of the direct wording only.
        reworded = {answer.labels["entity"] for answer in answers if answer.labels.get("form")}
        indirect = MatrixBuilder(values)
        for lists in Lists.parts(item.probe, (answer for answer in answers if answer.labels["entity"] in reworded)):
            indirect.count(lists.all)
        matrix = table.matrix(
            {
                "by_value": {
                    group: {
                        "asked": item.probe.k * received[group],
                        "returned": returned[group],
                        "refused": refused[group],
                        "unreadable": unreadable[group],
                    }
                    for group in received
                },
                "indirect": indirect.indirect,
                "refused": {value: refused[value] for value in values},
                "unreadable": {value: unreadable[value] for value in values},
            },
            usable=(Status.OK, *REFUSALS),
            missing=(Status.UNREADABLE, Status.CUT_OFF, Status.FAILED),
        )
        return replace(matrix, least_error=intervals.least_difference_error(min(received[value] for value in values)))


# Audit `uncertainty`: how much the lists for a repeated question vary.
#
# For an attribute, the audit measures whether the lists vary more for some values than for others.


class UncertaintySettings(RepeatSettings):
    """Settings of `uncertainty`: number of repeats, and attributes for which an item is created."""


class Uncertainty(ListAudit[UncertaintySettings]):
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
    # The instability is 0 if all lists of an entity have the same items, and 1 if no item is in two of these lists.
    phrase = "entropy {value:.3g} bits (instability {instability:.2f})"
    gap_phrase = "entropies differ by {value:.3g} bits (highest entropy: {worst}; instability {instability:.2f})"
    depends_on_trials = True  # more lists have more different items

    def subjects(self, probe: RecommendationProbe, settings: UncertaintySettings) -> Iterable[str | None]:
        return (None, *known_attributes(probe, self.info.name, settings.attributes))

    def uses(self, item: ListItem[UncertaintySettings], labels: Mapping[str, str]) -> bool:
        return not labels.get("perturbation") and labels["attribute"] == item.labels.get("attribute", NEUTRAL)

    def statistic(self, columns: int) -> UnitStatistic:
        return Mean() if columns == 1 else LargestGap(columns)

    def matrix(self, item: ListItem[UncertaintySettings], answers: Answers) -> Matrix:
        """Return the entropy by entity and attribute value, for entities with at least two lists."""
        attribute = item.labels.get("attribute", NEUTRAL)
        values = values_of(item.probe, attribute) if attribute != NEUTRAL else (NEUTRAL,)
        trials = math.inf if item.probe.responses is not None else item.settings.repeats
        has_quality = attribute == NEUTRAL and item.probe.relevant is not None
        table = MatrixBuilder(values)
        variations: dict[tuple[str, str], ranked_lists.Variation] = {}
        ndcg: dict[str, list[float]] = {}
        for lists in table.parts(item.probe, answers):
            compared = [each for each in lists.of_group(attribute) if each.group in values and each.trial < trials]
            table.count(compared)
            repeated: list[RecommendedList] = []
            for key, own in usable_by(compared, "entity", "group").items():
                if (variation := ranked_lists.variation([each.items for each in own])) is not None:
                    variations[key] = variation
                    table.numbers[key] = [variation.entropy]
                    repeated += own
            if has_quality:
                for each, scores in qualities(item.probe, relevant_items(item.probe, lists), repeated):
                    ndcg.setdefault(each.entity, []).append(scores[-1])
        if not variations:
            raise NotMeasurable("no question has two usable lists: raise `repeats`, or check the answers")
        by_entity: dict[str, list[float]] = {}
        for (entity, _), variation in variations.items():
            by_entity.setdefault(entity, []).append(variation.entropy)
        details: dict[str, Json] = {
            "instability": _mean([variation.instability for variation in variations.values()]),
            "item_entropy": _mean([variation.item_entropy for variation in variations.values()]),
            "instability_by_value": {
                value: _mean([variation.instability for key, variation in variations.items() if key[1] == value])
                for value in values
            },
            "entropy": {entity: _mean(entropies) for entity, entropies in by_entity.items()},
        }
        if has_quality:
            pairs = [(by_entity[entity][0], float(np.mean(scores))) for entity, scores in sorted(ndcg.items())]
            details["quality_correlation"] = _rank_correlation(pairs)
        return table.matrix(details)

    def finding(self, result: ItemResult) -> str:
        if result.labels:
            return super().finding(result)
        return "The same question gets a different list each time."


def _rank_correlation(pairs: Sequence[tuple[float, float]]) -> dict[str, Json] | None:
    """Return Spearman's rank correlation of two numbers of each entity.

    It is `None` for fewer than three entities, or if one of the numbers is the same for all entities.
    """
    # Deferred, as scipy.stats takes half a second to import and only measuring needs it.
    from scipy.stats import spearmanr

    numbers = np.array(pairs)
    if len(numbers) < 3 or (np.ptp(numbers, axis=0) == 0).any():
        return None
    found = spearmanr(numbers[:, 0], numbers[:, 1])
    return {"spearman": float(found.statistic), "p_value": float(found.pvalue), "entities": len(numbers)}


def _mean(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None
