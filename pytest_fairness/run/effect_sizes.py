"""Effect size of a measurement, for the report document and for tables in notebooks."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.audits.info import AuditInfo
from pytest_fairness.audits.measured_effect import effect_of
from pytest_fairness.baselines.verdicts import gravest_concern
from pytest_fairness.records import Json, Measurement


def effect_in_words(info: AuditInfo, measurement: Measurement) -> Mapping[str, Json] | None:
    """Return the effect size of a measurement, as a number and in words.

    The result is `None` if the audit has no effect size, or if the item compares no groups.
    """
    effect = effect_of(info.effect, lambda value: float(info.loss(value)), measurement, gravest_concern(measurement))
    return None if effect is None else effect.to_json()
