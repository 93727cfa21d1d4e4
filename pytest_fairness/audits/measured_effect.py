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
    known: EffectSize | None, loss: Callable[[float], float], measurement: Measurement, doubt: Concern | None
) -> Effect | None:
    """Return the effect size of a measurement; `None` if the audit has none, or if the item compares no groups.

    A difference is found if the value's 95 % interval excludes the value that means no effect, and the p-value of the
    audit's test is at most 5 %. If no difference is found, the size is `none`, or unknown if there is a concern about
    the answers.

    Args:
        known: effect size of the audit; `None` if the audit has none.
        loss: function that converts a value of the audit into a loss (larger is worse).
        measurement: the measurement.
        doubt: the most serious concern about the answers, if it rules out a pass; otherwise `None`.
    """
    value = None if known is None else known.of(measurement.value, measurement)
    if known is None or value is None:
        return None
    interval = None
    if measurement.interval is not None:
        ends = [_nan_for_none(known.of(bound, measurement)) for bound in measurement.interval]
        interval = (min(ends), max(ends))
    detectable = _detectable(known, loss, measurement)
    found = _is_found(known, loss, measurement, value)
    size: Size | None = known.size(value) if found else Size.NONE
    if doubt is not None and (not found or doubt.withholds in ("test", "verdict")):
        size = None
    description = _description(known, value, interval, size, detectable, sum(measurement.n.values()), doubt)
    return Effect(known.name, value, interval, size, detectable, description)


def _is_found(known: EffectSize, loss: Callable[[float], float], measurement: Measurement, value: float) -> bool:
    """Return whether a difference is found; see `effect_of`."""
    without = _nan_for_none(known.of(known.no_effect, measurement))
    if round(value - without, ROUNDING) == 0 or (measurement.interval is None and measurement.p_value is None):
        return False
    if measurement.interval is not None and measurement.interval[0] <= known.no_effect <= measurement.interval[1]:
        return False
    # A one-sided test says nothing about a difference in the other direction.
    tested = loss(measurement.value) > loss(known.no_effect)
    return measurement.p_value is None or not tested or measurement.p_value <= ALPHA


def _detectable(known: EffectSize, loss: Callable[[float], float], measurement: Measurement) -> float | None:
    """Return the smallest effect size that is found with 80 % power; `None` if it cannot be computed."""
    if known.detectable is not None:
        return known.detectable(measurement)
    if measurement.standard_error is None:
        return None
    least = normal.minimum_detectable(
        measurement.standard_error, ALPHA / 2, degrees_of_freedom=measurement.degrees_of_freedom
    )
    higher, lower = known.no_effect + least, known.no_effect - least
    effect = abs(_nan_for_none(known.of(higher if loss(higher) > loss(known.no_effect) else lower, measurement)))
    return effect if math.isfinite(effect) else None


def _description(
    known: EffectSize,
    value: float,
    interval: tuple[float, float] | None,
    size: Size | None,
    detectable: float | None,
    answers: int,
    doubt: Concern | None,
) -> str:
    bounds = "" if interval is None else f" [{interval[0]:.2g}, {interval[1]:.2g}]"
    number = f"{known.name} {value:.2g}{bounds}"
    if size is None and doubt is not None:
        return f"size not known: {doubt.message}"
    if size is Size.NONE:
        smallest = ""
        if detectable is not None:
            words = _size_in_words(known, detectable)
            smallest = f"; {answers} answers can show a difference of about {detectable:.2g}{words}"
        return f"no difference found ({number}){smallest}"
    small = known.cutoffs[0]
    below = f", below the cut-off {small:g}" if abs(value) < small else ""
    but = "" if doubt is None else f"; but {doubt.message}"
    return f"{size} difference ({number}{below}){but}"


def _size_in_words(known: EffectSize, effect: float) -> str:
    return "" if effect < known.cutoffs[0] else f" ({known.size(effect)})"


def _nan_for_none(effect: float | None) -> float:
    return math.nan if effect is None else effect
