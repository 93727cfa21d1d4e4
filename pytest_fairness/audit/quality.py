"""Who gets the better recommendations, as far as it is known what is relevant?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audit.base import AuditItem, Direction, Probe
from pytest_fairness.audit.closeness import MISSING, indirect, neutral_draws
from pytest_fairness.audit.entities import BetweenValues, values_of
from pytest_fairness.audit.lists import NEUTRAL, Lists, count, prepared
from pytest_fairness.audit.matrix import Matrix
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probe.settings import AuditSettings
from pytest_fairness.records import Answer, Measurement, Status
from pytest_fairness.stats import blocks, ranking

Floats = NDArray[np.float64]


class QualitySettings(AuditSettings):
    """The gap in quality takes no settings of its own; the probe's `relevant` says what is relevant."""


class Quality(BetweenValues[QualitySettings]):
    """Largest gap between values in NDCG@k, 0..1, over the entities of which it is known what is relevant."""

    name: ClassVar[str] = "quality"
    version: ClassVar[int] = 2
    settings_model: ClassVar[type[AuditSettings]] = QualitySettings
    better: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = ""
    default_tolerance: ClassVar[float] = 0.05
    quantity: ClassVar[str] = "ndcg"
    harmed: ClassVar[str] = "lowest"

    def table(self, probe: Probe, item: AuditItem[QualitySettings], answers: Sequence[Answer]) -> Matrix:
        """NDCG by entity and value."""
        if probe.relevant is None:
            raise NotMeasurable(
                "`quality` needs to know what is relevant: name a file of it as `relevant`", hopeless=True
            )
        attribute = item.labels["attribute"]
        values = values_of(probe, attribute)
        groups = (*values, NEUTRAL)
        lists = Lists.of(probe, answers)
        known = {entity: prepared(probe, probe.relevant.get(entity, ())) for entity in lists.entities}
        # A relevant title is known by the name that it was merged into.
        for merge in lists.merges:
            known[merge.entity] = tuple(merge.into if it == merge.item else it for it in known[merge.entity])
        conditioned = [draw for draw in lists.of_group(attribute) if draw.value in values]
        draws = [draw for draw in (*conditioned, *neutral_draws(probe, lists, attribute)) if known[draw.entity]]
        if not draws:
            raise NotMeasurable(
                "`relevant` names none of the entities: its names must be those of `entities`", hopeless=True
            )
        usable = [draw for draw in draws if draw.usable]
        found = ranking.quality([draw.items for draw in usable], [known[draw.entity] for draw in usable], probe.k)
        cells: dict[tuple[str, str], list[float]] = {}
        for draw, score in zip(usable, found.ndcg.tolist(), strict=True):
            cells.setdefault((draw.entity, draw.group), []).append(score)
        own = {group: np.array([draw.group == group for draw in usable], dtype=np.bool_) for group in groups}
        return Matrix.averaged(
            values,
            cells,
            entities=tuple(sorted({draw.entity for draw in draws})),
            domains=lists.domains,
            n=count(draws, groups, Status.OK),
            missing=count(draws, groups, *MISSING),
            details={
                "by_value": {
                    group: {
                        "precision": float(found.precision[rows].mean()),
                        "recall": float(found.recall[rows].mean()),
                        "ndcg": float(found.ndcg[rows].mean()),
                    }
                    for group, rows in own.items()
                    if rows.any()
                },
                "without_relevant": [entity for entity in lists.entities if not known[entity]],
                "indirect": indirect(draws, values),
                "merged": lists.merge_details(),
            },
        )

    def statistic(self, means: Floats) -> Floats:
        """Largest minus smallest."""
        return blocks.value_range(means)

    def describe(self, measurement: Measurement) -> str:
        """The gap, and the values furthest apart."""
        means = sorted((part["mean"], value) for value, part in measurement.details[self.quantity].items())
        (low, least), (high, most) = means[0], means[-1]
        return f"NDCG differs by {measurement.value:.3g} ({least} {low:.2f}, {most} {high:.2f})"
