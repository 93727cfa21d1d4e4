"""Decision on an estimate: too bad, acceptable, or not known precisely enough.

For a comparison with a baseline, the estimate is the change and the threshold is the tolerance. For a comparison with a
limit, the estimate is the distance from the limit and the threshold is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pytest_fairness.records import Pair
from pytest_fairness.stats.intervals import normal

Outcome = Literal["within", "unclear", "beyond"]
"""`within`: acceptable; `unclear`: not known precisely enough; `beyond`: too bad."""

ROUNDING = 1e-12
"""An estimate that exceeds a threshold by at most this much equals the threshold, up to floating-point error."""
LEAST_GROWTH = 1.25
"""Smallest factor by which a report advises to enlarge a run."""


@dataclass(frozen=True)
class Decision:
    """Decision on one estimate; a larger estimate is worse.

    Attributes:
        outcome: whether the estimate is acceptable (`within`), too bad (`beyond`) or not known precisely enough
            (`unclear`).
        exceeds: whether the estimate exceeds the threshold.
        significant: whether the test of no change (or of equal groups) rejects this null hypothesis at the item's
            alpha.
        upper_bound: one-sided upper confidence bound of the estimate; `None` if there is no standard error.
        accepted: largest upper bound with which the outcome is `within`.
        times_more_units: factor by which the number of units must grow for a decision to be expected; infinity if it
            is not known, or if no number is enough.
        explanation: reason of the outcome as a phrase, if the numbers above do not give the reason.
        changed_sides: whether the estimate is too bad only because another group is disadvantaged than in the baseline.
        decidable: the setting that a run of this size can decide, as a phrase such as "a `tolerance` of 0.12 or more";
            `None` if it is not known.
        at_threshold: whether a value exceeds its limit by less than its standard error, so that it may be the limit.
        pair: the pair of groups that is too bad, if each pair is tested by itself and there are several.
    """

    outcome: Outcome
    exceeds: bool = False
    significant: bool = False
    upper_bound: float | None = None
    accepted: float | None = None
    times_more_units: float = 1.0
    explanation: str | None = None
    changed_sides: bool = False
    decidable: str | None = None
    at_threshold: bool = False
    pair: Pair | None = None


def decide(
    estimate: float,
    standard_error: float | None,
    *,
    threshold: float,
    accepted: float,
    significant: bool,
    requires_lower_bound: bool,
    alpha: float,
    beta: float,
    degrees_of_freedom: float | None = None,
    bounds: tuple[float, float] | None = None,
) -> Decision:
    """Return the decision on one estimate; `docs/explanation/verdicts.md` explains it.

    Args:
        estimate: change from the baseline, or distance from the limit; larger is worse.
        standard_error: standard error of the estimate; `None` if unknown. Without a standard error and `bounds`, the
            outcome is never `within`.
        threshold: largest acceptable estimate; a larger estimate is too bad if it is significant.
        accepted: largest upper bound with which the outcome is `within`; at least the threshold.
        significant: whether the test of no change (or of equal groups) rejects this null hypothesis at `alpha`.
        requires_lower_bound: whether the outcome `beyond` also requires a lower bound above the threshold.
        alpha: one-sided significance level of the lower bound.
        beta: probability of the outcome `within` if the true change, or the true distance, equals `accepted`.
        degrees_of_freedom: degrees of freedom of the standard error.
        bounds: lower bound at `alpha` and upper bound at `beta`; `None` to compute both from the standard error.
    """
    if bounds is None and standard_error is not None:
        bounds = one_sided_bounds(estimate, standard_error, alpha, beta, degrees_of_freedom)
    lower, upper = (None, None) if bounds is None else bounds
    exceeds = estimate > threshold + ROUNDING
    if exceeds:
        if significant and (not requires_lower_bound or (lower is not None and lower > threshold)):
            return Decision("beyond", True, True, upper, accepted)
    elif upper is not None and upper <= accepted + ROUNDING:
        return Decision("within", False, significant, upper, accepted)
    growth = math.inf if standard_error is None else 1.0
    if standard_error:
        wanted = _needed_error(estimate, threshold, accepted, alpha, beta, requires_lower_bound=requires_lower_bound)
        growth = max(LEAST_GROWTH, (standard_error / wanted) ** 2) if wanted > 0 else math.inf
    return Decision("unclear", exceeds, significant, upper, accepted, growth)


def one_sided_bounds(
    estimate: float, standard_error: float, alpha: float, beta: float, degrees_of_freedom: float | None
) -> tuple[float, float]:
    """Return the lower confidence bound at `alpha` and the upper confidence bound at `beta`.

    The bounds come from Student's t distribution, or from the normal distribution if no degrees of freedom are given.
    """
    below, above = (normal.quantile(1 - chance, degrees_of_freedom) * standard_error for chance in (alpha, beta))
    return estimate - below, estimate + above


def _needed_error(
    estimate: float, threshold: float, accepted: float, alpha: float, beta: float, *, requires_lower_bound: bool
) -> float:
    """Return the largest standard error that allows a decision if the true change, or distance, equals the estimate."""
    power = normal.quantile(normal.POWER)
    detectable = normal.quantile(1 - alpha) + power  # smallest detectable distance, in standard errors
    if estimate > threshold:
        return (estimate - threshold if requires_lower_bound else estimate) / detectable
    excluded = (accepted - estimate) / normal.quantile(1 - beta)
    room = accepted - threshold if requires_lower_bound else accepted
    # The error must also be small enough to find a worsening of the size that a pass excludes.
    return min(excluded, room / detectable) if room > 0 else excluded
