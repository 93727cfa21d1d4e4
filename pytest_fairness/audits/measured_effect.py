"""Effect size of one measurement: whether a difference is found, and the size of the difference in words."""

from __future__ import annotations

import math
from collections.abc import Callable

from pytest_fairness.audits.effects import EffectSize
from pytest_fairness.records import Concern, Effect, Measurement, Size
from pytest_fairness.stats.intervals import normal

ALPHA = 0.05
"""Largest p-value with which a difference counts as found."""
ROUNDING = 12
"""Number of decimals to which numbers are rounded before a comparison, because of floating-point errors."""


def effect_of(
    effect_size: EffectSize | None, loss: Callable[[float], float], measurement: Measurement, doubt: Concern | None
) -> Effect | None:
    """Return the effect of a measurement; `None` if the audit has no effect size, or if the item compares no groups.

    Without a `doubt`, the size in words is "small", "moderate" or "large" if `_is_found` finds a difference, otherwise
    "none". With a `doubt`, the size is unknown (the value `None`) if no difference is found, or if the doubt withholds
    a verdict or the statistical test; see `Concern.withholds`.

    Args:
        effect_size: effect size of the audit; `None` if the audit has no effect size.
        loss: function that converts a value of the audit into a loss (larger is worse).
        measurement: the measurement.
        doubt: the most serious concern about the answers, if it rules out a pass; otherwise `None`.
    """
    value = None if effect_size is None else effect_size.of(measurement.value, measurement)
    if effect_size is None or value is None:
        return None
    interval = None
    if measurement.interval is not None:
        ends = [_nan_for_none(effect_size.of(bound, measurement)) for bound in measurement.interval]
        interval = (min(ends), max(ends))
    detectable = _detectable(effect_size, loss, measurement)
    found = _is_found(effect_size, loss, measurement, value)
    size: Size | None = effect_size.size(value) if found else Size.NONE
    if doubt is not None and (not found or doubt.withholds in ("test", "verdict")):
        size = None
    description = _description(effect_size, value, interval, size, detectable, sum(measurement.n.values()), doubt)
    return Effect(effect_size.name, value, interval, size, detectable, description)


def _is_found(effect_size: EffectSize, loss: Callable[[float], float], measurement: Measurement, value: float) -> bool:
    """Return whether the measurement shows a difference.

    The 95 % interval must exclude the value that means no effect, and the p-value must be at most 5 %. Without a
    p-value, the interval decides alone; without an interval, the p-value decides alone; without both, no difference is
    found. The p-value is ignored for a value that is better than no effect, because the test may be one-sided.
    """
    of_no_effect = _nan_for_none(effect_size.of(effect_size.no_effect, measurement))
    if round(value - of_no_effect, ROUNDING) == 0 or (measurement.interval is None and measurement.p_value is None):
        return False
    if measurement.interval is not None and measurement.interval[0] <= effect_size.no_effect <= measurement.interval[1]:
        return False
    # A one-sided test says nothing about a difference in the other direction.
    tested = loss(measurement.value) > loss(effect_size.no_effect)
    return measurement.p_value is None or not tested or measurement.p_value <= ALPHA


def _detectable(effect_size: EffectSize, loss: Callable[[float], float], measurement: Measurement) -> float | None:
    """Return the smallest effect size that is found with 80 % power; `None` if it cannot be computed."""
    if effect_size.detectable is not None:
        return effect_size.detectable(measurement)
    if measurement.standard_error is None:
        return None
    smallest_change = normal.minimum_detectable(
        measurement.standard_error, ALPHA / 2, degrees_of_freedom=measurement.degrees_of_freedom
    )
    higher, lower = effect_size.no_effect + smallest_change, effect_size.no_effect - smallest_change
    worse = higher if loss(higher) > loss(effect_size.no_effect) else lower
    effect = abs(_nan_for_none(effect_size.of(worse, measurement)))
    return effect if math.isfinite(effect) else None


def _description(
    effect_size: EffectSize,
    value: float,
    interval: tuple[float, float] | None,
    size: Size | None,
    detectable: float | None,
    answers: int,
    doubt: Concern | None,
) -> str:
    bounds = "" if interval is None else f" [{interval[0]:.2g}, {interval[1]:.2g}]"
    number = f"{effect_size.name} {value:.2g}{bounds}"
    if size is None and doubt is not None:
        return f"size not known: {doubt.message}"
    if size is Size.NONE:
        smallest = ""
        if detectable is not None:
            size_in_words = "" if detectable < effect_size.cutoffs[0] else f" ({effect_size.size(detectable)})"
            smallest = f"; {answers} answers can show a difference of about {detectable:.2g}{size_in_words}"
        return f"no difference found ({number}){smallest}"
    small = effect_size.cutoffs[0]
    below = f", below the cut-off {small:g} for a small effect" if abs(value) < small else ""
    but = "" if doubt is None else f"; but {doubt.message}"
    return f"{size} difference ({number}{below}){but}"


def _nan_for_none(effect: float | None) -> float:
    return math.nan if effect is None else effect
