"""Audit `uncertainty`: how much the lists for a repeated question vary.

For an attribute, the audit measures whether the lists vary more for some values than for others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.effects import cohens_d
from pytest_fairness.audits.findings import Finding
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.lists.entity_audit import EntityAudit, ListItem, values_of, with_equal_trials
from pytest_fairness.audits.lists.entity_tables import Matrix
from pytest_fairness.audits.lists.normalization import NEUTRAL, Lists, RecommendedList, count, relevant_items
from pytest_fairness.audits.lists.sensitivity import known_attributes
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.recommendation.model import RecommendationProbe
from pytest_fairness.probes.recommendation.repeats import RepeatSettings
from pytest_fairness.records import MISSING, Answers, ItemResult, Json, Measurement, Status
from pytest_fairness.stats.lists import ranking
from pytest_fairness.stats.unit_tables.distances import LargestGap
from pytest_fairness.stats.unit_tables.means import Mean
from pytest_fairness.stats.unit_tables.statistic import UnitStatistic


class UncertaintySettings(RepeatSettings):
    """Settings of `uncertainty`: number of repeats, and attributes for which an item is created."""


class Uncertainty(EntityAudit[UncertaintySettings]):
    """Entropy, in bits, of the items in an entity's repeated lists, averaged over entities.

    In an item for an attribute, the value is the largest gap between the mean entropies of the attribute's values.
    """

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
        effect=cohens_d("entropy_by_value"),
    )
    version = 5
    settings_model = UncertaintySettings
    quantity = "entropy_by_value"
    harmed = "highest"

    def items(self, probe: RecommendationProbe, settings: UncertaintySettings) -> list[ListItem[UncertaintySettings]]:
        """Return one item for the neutral lists, and one for each attribute that the settings name."""
        attributes = known_attributes(probe, self.info.name, settings.attributes)
        return [
            AuditItem(probe, self.info.name, None, {}, settings),
            *(
                AuditItem(probe, self.info.name, attribute, {"attribute": attribute}, settings)
                for attribute in attributes
            ),
        ]

    def uses(self, item: ListItem[UncertaintySettings], labels: Mapping[str, str]) -> bool:
        """Return whether the labels belong to a list that the item needs: unperturbed, and for the item's attribute.

        If the item has no attribute, the list must be neutral.
        """
        return not labels.get("perturbation") and labels["attribute"] == item.labels.get("attribute", NEUTRAL)

    def finding(self, result: ItemResult) -> Finding:
        """Return the finding that lists vary; see `Audit.finding`.

        The finding of an item for an attribute names the attribute value whose lists vary most.
        """
        if result.labels:
            return super().finding(result)
        return Finding(
            "The same question gets a different list each time.", "Give the same answer each time to the same question."
        )

    def matrix(self, item: ListItem[UncertaintySettings], answers: Answers) -> Matrix:
        """Return the entropy by entity and attribute value, for entities with at least two lists."""
        attribute = item.labels.get("attribute", NEUTRAL)
        values = values_of(item.probe, attribute) if attribute != NEUTRAL else (NEUTRAL,)
        variations: dict[tuple[str, str], ranking.Variation] = {}
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
                if (variation := ranking.variation([each.items for each in group])) is not None
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
        """Return the statistic: the mean of the only column, or the range of the means of several columns."""
        return Mean() if columns == 1 else LargestGap(columns)

    def comparable(
        self, item: ListItem[UncertaintySettings], current: Answers, baseline: Answers
    ) -> tuple[Answers, Answers]:
        """Return the answers of both runs, cut to the same number of trials: more lists have more different items."""
        return with_equal_trials(current, baseline)

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """Return the p-value of a test of equal entropies for all attribute values; `None` for neutral lists."""
        return super().p_value(table, random) if len(table.columns) > 1 else None

    def describe(self, measurement: Measurement) -> str:
        """Return a phrase with the value (an entropy, or a gap between entropies) and the instability.

        The instability is 0 if all lists of an entity have the same items, and 1 if no item is in two of these lists.
        """
        details = measurement.details
        instability = f"instability {details['instability']:.2f}"
        if "worst" not in details:
            return f"entropy {measurement.value:.3g} bits ({instability})"
        return (
            f"entropies differ by {measurement.value:.3g} bits (highest entropy: {details['worst']['value']}; "
            f"{instability})"
        )


def _mean_ndcg(probe: RecommendationProbe, lists: Lists, compared: Sequence[RecommendedList]) -> dict[str, float]:
    """Return the mean NDCG of each entity's lists, for entities whose relevant items are known."""
    relevant = relevant_items(probe, lists)
    quality = ranking.quality([each.items for each in compared], [relevant[each.entity] for each in compared], probe.k)
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
