"""Audit `quality`: gap between attribute values in the relevance of the recommended items."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import numpy as np

from pytest_fairness.audits.effects import cohens_d
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.lists.entity_audit import ListItem, ValueGapAudit, values_of
from pytest_fairness.audits.lists.entity_tables import Matrix, extreme_means
from pytest_fairness.audits.lists.neutral_similarity import indirect_lists, neutral_lists_to_compare, trials_of
from pytest_fairness.audits.lists.normalization import NEUTRAL, Lists, count, relevant_items
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.records import MISSING, Answers, Measurement, Status
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.lists import ranking

SCORES = ("precision", "recall", "ndcg")


class QualitySettings(AuditSettings):
    """Settings of `quality`: only the settings that every audit has.

    The probe's key `relevant` names the file that lists the relevant items.
    """

    needs: ClassVar[str] = "relevant"


class Quality(ValueGapAudit[QualitySettings]):
    """Largest gap between attribute values in mean NDCG@k, 0..1, over the entities whose relevant items are known."""

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
        effect=cohens_d("ndcg"),
    )
    version = 4
    settings_model = QualitySettings
    quantity = "ndcg"
    harmed = "lowest"

    def matrix(self, item: ListItem[QualitySettings], answers: Answers) -> Matrix:
        """Return the mean NDCG by entity and attribute value."""
        if item.probe.relevant is None:
            raise NotMeasurable(
                "`quality` needs the relevant items: set the probe's key `relevant` to a file that lists them",
                permanent=True,
            )
        attribute = item.labels["attribute"]
        values = values_of(item.probe, attribute)
        groups = (*values, NEUTRAL)
        trials = trials_of(answers, attribute)
        parts: list[Matrix] = []
        scores: dict[str, list[Floats]] = {group: [] for group in groups}
        unknown: list[str] = []
        indirect = Counter[str]()
        merged: list[dict[str, str]] = []
        for lists in Lists.parts(item.probe, answers):
            relevant = relevant_items(item.probe, lists)
            conditioned = [each for each in lists.of_group(attribute) if each.value in values]
            neutral = neutral_lists_to_compare(item.probe, lists.of_group(NEUTRAL), trials)
            compared = [each for each in (*conditioned, *neutral) if relevant[each.entity]]
            usable = [each for each in compared if each.usable]
            quality = ranking.quality(
                [each.items for each in usable], [relevant[each.entity] for each in usable], item.probe.k
            )
            cells: dict[tuple[str, str], list[float]] = {}
            for each, score in zip(usable, quality.ndcg.tolist(), strict=True):
                cells.setdefault((each.entity, each.group), []).append(score)
            by_list = np.stack([quality.precision, quality.recall, quality.ndcg])
            for group in groups:
                scores[group].append(by_list[:, [each.group == group for each in usable]])
            unknown += [entity for entity in lists.entities if not relevant[entity]]
            indirect.update(indirect_lists(compared, values))
            merged += lists.merge_details()
            parts.append(
                Matrix.averaged(
                    values,
                    cells,
                    entities=(each.entity for each in compared),
                    domains=lists.domains,
                    n=count(compared, groups, Status.OK),
                    missing=count(compared, groups, *MISSING),
                )
            )
        if not any(part.units for part in parts):
            raise NotMeasurable(
                "the file that the key `relevant` names contains none of the probe's entities: write their names as in "
                "the key `entities`",
                permanent=True,
            )
        joined = {group: np.concatenate(parts_of_group, axis=1) for group, parts_of_group in scores.items()}
        return Matrix.joined(
            values,
            groups,
            parts,
            details={
                "by_value": {
                    group: {name: float(row.mean()) for name, row in zip(SCORES, rows, strict=True)}
                    for group, rows in joined.items()
                    if rows.size
                },
                "without_relevant": unknown,
                "indirect": dict(indirect),
                "merged": merged,
            },
        )

    def describe(self, measurement: Measurement) -> str:
        """Return the gap, and the lowest and highest mean NDCG, as a phrase."""
        (least, low), (most, high) = extreme_means(measurement.details[self.quantity])
        return f"NDCG differs by {measurement.value:.3g} ({least} {low:.2f}, {most} {high:.2f})"
