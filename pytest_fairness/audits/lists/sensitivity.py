"""Audits `snsr`, `snsv` and `pafs`: dispersion, over attribute values, of the similarity to the neutral lists.

SNSR and SNSV, the sensitive-to-neutral similarity range and variance, come from Zhang et al. (2023, FaiRLLM); the
"variance" is a standard deviation. PAFS, the personality-aware fairness score, comes from Sah et al. (2025).

With two attribute values, all three follow from one difference d between two means: SNSR is d, SNSV is d / 2, and PAFS
is 1 − d / 2. Such an attribute therefore has one item, that of the first of these audits which the probe has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np
from pydantic import Field

from pytest_fairness.audits.effects import cohens_d, cohens_f
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.lists.entity_audit import ListItem, ValueGapAudit, values_of
from pytest_fairness.audits.lists.entity_tables import Matrix
from pytest_fairness.audits.lists.neutral_similarity import (
    FAIRLLM,
    SimilaritySettings,
    similarity_phrase,
    similarity_to_neutral,
)
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.errors import ProbeError
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.recommendation.model import RecommendationProbe
from pytest_fairness.records import Answers, Json, Measurement
from pytest_fairness.stats.groups.distance_measures import evenness, value_range, value_sd
from pytest_fairness.stats.unit_tables.distances import Evenness, StandardDeviation

SettingsT = TypeVar("SettingsT", bound=SimilaritySettings)

OF_TWO_VALUES: Mapping[str, tuple[float, float]] = {"snsr": (0.0, 1.0), "snsv": (0.0, 0.5), "pafs": (1.0, -0.5)}
"""For two attribute values whose means differ by d, each audit's value is a + b × d; a and b by audit."""


class _Sensitivity(ValueGapAudit[SettingsT], Generic[SettingsT]):
    """Base class of audits that compare the attribute values' mean similarities to the neutral lists."""

    settings_model = SimilaritySettings
    version = 4
    quantity = "similarity"
    harmed = "lowest"

    def items(self, probe: RecommendationProbe, settings: SettingsT) -> list[ListItem[SettingsT]]:
        """Return one item for each attribute.

        An attribute with two values has an item of only one of the probe's audits `snsr`, `snsv` and `pafs`, with the
        strictest limit and the strictest tolerance of all three. Audits that compare lists in different ways, and
        skipped audits, have items of their own.
        """
        items = []
        for item in super().items(probe, settings):
            alike = _audits_of_one_number(probe, item.labels["attribute"], self.info.name, settings)
            first, *others = alike
            if first == self.info.name:
                items.append(
                    replace(
                        item,
                        settings=settings.model_copy(update=_strictest(probe.audits, alike)) if others else settings,
                        stands_for=tuple(f"{name}[{item.subject}]" for name in others),
                    )
                )
        return items

    def value_details(self, table: UnitTable, random: np.random.Generator) -> dict[str, Json]:
        """Return details: the values of `snsr`, `snsv` and `pafs`, the mean similarity, and those of every audit."""
        means = table.means()
        published = {"snsr": value_range(means), "snsv": value_sd(means), "pafs": evenness(means)}
        return {
            **super().value_details(table, random),
            "published": {name: float(value) for name, value in published.items()},
            "mean_similarity": float(means.mean()),
        }

    def matrix(self, item: ListItem[SettingsT], answers: Answers) -> Matrix:
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


def _audits_of_one_number(
    probe: RecommendationProbe, attribute: str, audit: str, settings: SimilaritySettings
) -> Sequence[str]:
    """Return the audits of the probe that measure the same number of an attribute as `audit`, which is one of them."""
    if len(probe.attributes[attribute].values) != 2 or settings.skip is not None:
        return [audit]

    def is_alike(other: AuditSettings | None) -> bool:
        return (
            isinstance(other, SimilaritySettings)
            and (other.similarity, other.variant) == (settings.similarity, settings.variant)
            and getattr(other, "attribute", None) in (None, attribute)
            and other.skip is None
        )

    return [name for name in OF_TWO_VALUES if name == audit or is_alike(probe.audits.get(name))]


def _strictest(audits: Mapping[str, AuditSettings], alike: Sequence[str]) -> dict[str, float]:
    """Return the strictest limit and tolerance that these audits of one number set, for the first of the audits."""
    equal, slope = OF_TWO_VALUES[alike[0]]
    limits, tolerances = [], []
    for name in alike:
        of_equal, own_slope = OF_TWO_VALUES[name]
        if (limit := audits[name].limit) is not None:
            limits.append((limit - of_equal) / own_slope)
        if (tolerance := audits[name].tolerance) is not None:
            tolerances.append(abs(tolerance / own_slope))
    return {
        **({"limit": round(equal + slope * min(limits), 12)} if limits else {}),
        **({"tolerance": round(abs(slope) * min(tolerances), 12)} if tolerances else {}),
    }


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
