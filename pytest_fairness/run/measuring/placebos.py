"""Placebo of an item: the same audit, with prompts that name the unmarked group in other words.

The placebo's value is the noise floor of the item's value. If the placebo's value exceeds the tolerance, the audit
measures any rewording of the prompts. The item then fails only if its value is significantly worse than the placebo's.
"""

from __future__ import annotations

import math
from dataclasses import replace

from pytest_fairness.audits.decision_rules import rule_of
from pytest_fairness.baselines.verdicts import tolerance_of
from pytest_fairness.errors import FairnessError, on_one_line
from pytest_fairness.plurals import significant
from pytest_fairness.records import Concern, Json, Measurement
from pytest_fairness.run.items.probe_items import ProbeItem
from pytest_fairness.run.measuring.measurements import ItemMeasurement
from pytest_fairness.run.measuring.measurer import Measurer
from pytest_fairness.stats.intervals import normal
from pytest_fairness.targets.base import Target

PLACEBO_EFFECT = "placebo_effect"
"""Name of the concern that the placebo's value exceeds the tolerance."""
KEPT = ("value", "interval", "standard_error", "p_value", "n", "missing")
"""Numbers of the placebo's measurement that reports show."""


def placebo_of(item: ProbeItem) -> ProbeItem | None:
    """Return an item that measures the item's placebo swap, at the same interim or final analysis.

    Return `None` if the probe has no placebo, or has an answer file.
    """
    found = item.probe.placebo(item.labels) if item.asks else None
    if found is None:
        return None
    probe, labels = found
    return replace(item, probe=probe, labels=labels, subject=f"{item.subject}; placebo")


def with_placebo(measurer: Measurer, measured: ItemMeasurement, target: Target | None) -> ItemMeasurement:
    """Return the measurement with the placebo's result in its details (`placebo`), and with any concern about it.

    Without a placebo or a target, the measurement is returned unchanged. The placebo's result has the numbers in
    `KEPT`, or only an `error` if it could not be measured. Requests of the placebo are sent if their responses are not
    recorded.
    """
    item, measurement = measured.item, measured.measurement
    placebo = placebo_of(item)
    if placebo is None or target is None:
        return measured
    concerns = list(measurement.concerns)
    try:
        found = measurer.measure(placebo, target).measurement
    except FairnessError as error:
        result: dict[str, Json] = {"error": on_one_line(error).rstrip(".")}
    else:
        result = {name: value for name, value in found.to_json().items() if name in KEPT}
        if (concern := concern_of(item, measurement, found)) is not None:
            concerns.append(concern)
    details = {**measurement.details, "placebo": result}
    return replace(measured, measurement=replace(measurement, details=details, concerns=concerns))


def concern_of(item: ProbeItem, measurement: Measurement, placebo: Measurement) -> Concern | None:
    """Return the concern that the placebo's value exceeds the tolerance; `None` if it does not.

    If the item's decision rule uses a statistical test, the placebo's value must also be significant.
    """
    info, tested = item.audit.info, rule_of(item.audit, item).tested
    tolerance = tolerance_of(item.audit, item)
    no_effect = 0.0 if info.effect is None else info.effect.no_effect
    excess = info.loss(placebo.value) - info.loss(no_effect)
    is_chance = tested and placebo.p_value is not None and placebo.p_value > item.alpha
    if not excess > tolerance or is_chance:  # the tolerance may be NaN
        return None
    worse = info.loss(measurement.value) - info.loss(placebo.value)
    if tested and measurement.standard_error is not None and placebo.standard_error is not None:
        # Both values share the answers of the unmarked group, so that this standard error is rather too large.
        error = math.hypot(measurement.standard_error, placebo.standard_error)
        worse -= normal.quantile(1 - item.alpha) * error
    alone = (
        f"the placebo swap alone exceeds the tolerance (value {significant(placebo.value)}, tolerance "
        f"{significant(tolerance)})"
    )
    if worse > 0:
        message = f"{alone}, but the item's own value is worse than the placebo's"
        return Concern(PLACEBO_EFFECT, message, withholds="nothing")
    message = (
        f"{alone}, and the item's own value is not {'significantly ' if tested else ''}worse than the "
        "placebo's: the audit may measure the effect of any rewording, not of the group. Use more prompts, or a larger "
        "tolerance"
    )
    return Concern(PLACEBO_EFFECT, message, withholds="failure")
