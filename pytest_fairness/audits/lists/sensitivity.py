"""Audits `snsr`, `snsv` and `pafs`: dispersion, over attribute values, of the similarity to the neutral lists.

SNSR and SNSV, the sensitive-to-neutral similarity range and variance, come from Zhang et al. (2023, FaiRLLM); the
"variance" is a standard deviation. PAFS, the personality-aware fairness score, comes from Sah et al. (2025).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from pydantic import Field

from pytest_fairness.audits.effects import cohens_d, cohens_f
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.lists.entity_audit import ListItem
from pytest_fairness.audits.lists.matrix import Matrix
from pytest_fairness.audits.lists.neutral_similarity import (
    FAIRLLM,
    SimilaritySettings,
    similarity_phrase,
    similarity_to_neutral,
)
from pytest_fairness.audits.lists.value_gap_audit import ValueGapAudit, values_of
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes.recommendation.model import RecommendationProbe
from pytest_fairness.records import Answers, Measurement
from pytest_fairness.stats.unit_tables.distances import Evenness, StandardDeviation

SettingsT = TypeVar("SettingsT", bound=SimilaritySettings)


class _Sensitivity(ValueGapAudit[SettingsT], Generic[SettingsT]):
    """Base class of audits that compare the attribute values' mean similarities to the neutral lists."""

    settings_model = SimilaritySettings
    version = 3
    quantity = "similarity"
    harmed = "lowest"

    def table(self, item: ListItem[SettingsT], answers: Answers) -> Matrix:
        """Return the similarity to the neutral lists by entity and value."""
        attribute = item.labels["attribute"]
        return similarity_to_neutral(item.probe, item.settings, answers, attribute, values_of(item.probe, attribute))

    def describe(self, measurement: Measurement) -> str:
        """Return the value, and the lowest and highest similarity, as a phrase."""
        return f"{self.info.name.upper()} {measurement.value:.3g} ({similarity_phrase(measurement.details)})"


class Snsr(_Sensitivity[SimilaritySettings]):
    """Range, over attribute values, of the mean similarity to the neutral lists.

    The value is 0..1 with the setting `variant: normalized`.
    """

    info = AuditInfo(
        name="snsr",
        title="Range of similarities to the neutral list",
        question="Are the lists for some values of the attribute more similar to the neutral list than for others?",
        formula="SNSR = max Sim(value) − min Sim(value);  "
        "Sim = mean over entities of similarity(list for the value, neutral list)",
        meaning="Largest minus smallest similarity to the neutral list among the attribute's values; 0 = no "
        "difference.",
        source=FAIRLLM,
        better=Direction.LOWER,
        tolerance=0.05,
        value_range=(0, math.inf),
        limit_range=(0, 1),
        effect=cohens_d("similarity"),
    )


class Snsv(_Sensitivity[SimilaritySettings]):
    """Standard deviation, over attribute values, of the mean similarity to the neutral lists.

    The value is 0..0.5 with the setting `variant: normalized`.
    """

    info = AuditInfo(
        name="snsv",
        title="Spread of similarities to the neutral list",
        question="How much does the similarity to the neutral list vary between values of the attribute?",
        formula="SNSV = √(mean over values of (Sim(value) − mean Sim)²)",
        meaning="Standard deviation of the similarities over the values of the attribute; 0 = no difference.",
        source=FAIRLLM,
        better=Direction.LOWER,
        tolerance=0.025,
        value_range=(0, math.inf),
        limit_range=(0, 1),
        effect=cohens_f(
            "similarity",
            "(standard deviation of the means) / (standard deviation over entities within an attribute value)",
        ),
    )

    def statistic(self, columns: int) -> StandardDeviation:
        """Return the statistic: the population standard deviation of the attribute values' means."""
        return StandardDeviation()


class PafsSettings(SimilaritySettings):
    """Settings of `pafs`: how lists are compared, and which attribute is scored."""

    attribute: str | None = Field(
        default=None,
        min_length=1,
        description="Attribute to score. Default: one item for each attribute.",
    )


class Pafs(_Sensitivity[PafsSettings]):
    """1 minus the mean absolute deviation, over attribute values, of the mean similarity to the neutral lists."""

    info = AuditInfo(
        name="pafs",
        title="Evenness of similarities to the neutral list",
        question="Are the lists for all values of the attribute equally similar to the neutral list?",
        formula="PAFS = 1 − mean over values of |Sim(value) − mean Sim|",
        meaning="1 = equal similarities. The value is near 1 for most systems: look at the similarities too.",
        source="Sah, Lian, Xu and Zhang 2025, on personality-aware fairness",
        better=Direction.HIGHER,
        tolerance=0.03,
        value_range=(-math.inf, 1),
        limit_range=(0, 1),
        effect=cohens_f(
            "similarity",
            "(mean absolute deviation of the means) / (standard deviation over entities within an attribute value); "
            "Cohen’s f for two attribute values, at most f for more attribute values",
            no_effect=1.0,
        ),
    )
    settings_model = PafsSettings

    def attributes(self, probe: RecommendationProbe, settings: PafsSettings) -> Sequence[str]:
        """Return the attribute that the settings name, or all attributes."""
        if settings.attribute is None:
            return super().attributes(probe, settings)
        return known_attributes(probe, self.info.name, [settings.attribute])

    def statistic(self, columns: int) -> Evenness:
        """Return the statistic: 1 minus the mean absolute deviation of the attribute values' means."""
        return Evenness()

    def table(self, item: ListItem[PafsSettings], answers: Answers) -> Matrix:
        """Return the similarity to the neutral lists by entity and attribute value; the details have the overall mean.

        Raises:
            NotMeasurable: too few entities have a list for every value.
        """
        matrix = super().table(item, answers)
        self.check_table(matrix)
        return replace(matrix, details={**matrix.details, "mean_similarity": float(matrix.means().mean())})


def known_attributes(probe: RecommendationProbe, audit: str, attributes: Sequence[str]) -> Sequence[str]:
    """Return `attributes` unchanged if the probe has all of them.

    Raises:
        ProbeError: the probe lacks one of the attributes.
    """
    for attribute in attributes:
        if attribute not in probe.attributes:
            raise ProbeError(
                f"{probe.name}: `{audit}` names the attribute `{attribute}`, which the probe lacks "
                f"(valid: {', '.join(probe.attributes)})"
            )
    return attributes
