"""Decision on an estimate: whether the estimate is too bad, acceptable, or not known precisely enough.

Pure arithmetic on an estimate, its standard error and its p-value. Against a baseline the estimate is the change and
the threshold is the tolerance; against a limit the estimate is the distance from the limit and the threshold is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pytest_fairness.stats.intervals import normal

Outcome = Literal["within", "unclear", "beyond"]
"""`within`: acceptable; `unclear`: not known precisely enough; `beyond`: too bad."""

ROUNDING = 1e-12
"""Largest excess over a threshold that floating point arithmetic alone may cause."""
LEAST_GROWTH = 1.25
"""Smallest growth of a run that is worth advising."""


@dataclass(frozen=True)
class Decision:
    """Decision on one estimate; positive numbers are worse.

    Attributes:
        outcome: whether the estimate is too bad.
        exceeds: whether the estimate exceeds the threshold.
        significant: whether it is worse than no change, or than the groups being alike, at the item's alpha.
        upper_bound: one-sided upper confidence bound of the estimate; `None` where there is no standard error.
        accepted: largest upper bound of the outcome `within`.
        times_more_units: factor by which the run must grow for a decision to be expected.
        explanation: reason of the outcome, where the numbers above do not give it; for the verdict's reason.
        changed_sides: whether the estimate is too bad only because the disadvantage changed sides.
    """

    outcome: Outcome
    exceeds: bool = False
    significant: bool = False
    upper_bound: float | None = None
    accepted: float | None = None
    times_more_units: float = 1.0
    explanation: str | None = None
    changed_sides: bool = False


def decide(
    estimate: float,
    standard_error: float | None,
    *,
    threshold: float,
    accepted: float,
    significant: bool,
    proof: bool,
    alpha: float,
    beta: float,
    degrees_of_freedom: float | None = None,
    bounds: tuple[float, float] | None = None,
) -> Decision:
    """Return the decision on one estimate; `docs/explanation/verdicts.md` gives the reasons.

    Args:
        estimate: larger is worse.
        standard_error: of the estimate; without one nothing is `within`.
        threshold: an estimate above it is too bad if it is significant.
        accepted: the upper bound of an estimate that is `within`; at least the threshold.
        significant: whether the test against "no change" or "groups alike" rejects at `alpha`.
        proof: whether the lower bound at `alpha` must exceed the threshold too for `beyond`.
        alpha: one-sided level of the lower bound.
        beta: chance that an estimate whose true value is `accepted` ends up `within`.
        degrees_of_freedom: of the standard error.
        bounds: one-sided confidence bounds at `alpha` and `beta`, where the standard error does not give them.
    """
    if bounds is None and standard_error is not None:
        bounds = one_sided_bounds(estimate, standard_error, alpha, beta, degrees_of_freedom)
    lower, upper = (None, None) if bounds is None else bounds
    exceeds = estimate > threshold + ROUNDING
    if exceeds:
        proven = not proof or (lower is not None and lower > threshold)
        if significant and proven:
            return Decision("beyond", True, True, upper, accepted)
    elif upper is not None and upper <= accepted + ROUNDING:
        return Decision("within", False, significant, upper, accepted)
    growth = math.inf if standard_error is None else 1.0
    if standard_error:
        wanted = _wanted_error(estimate, threshold, accepted, alpha, beta, proof=proof)
        growth = max(LEAST_GROWTH, (standard_error / wanted) ** 2) if wanted > 0 else math.inf
    return Decision("unclear", exceeds, significant, upper, accepted, growth)


def one_sided_bounds(
    estimate: float, standard_error: float, alpha: float, beta: float, degrees_of_freedom: float | None
) -> tuple[float, float]:
    """Return the lower bound at `alpha` and the upper bound at `beta`; Student's t or, without degrees, the normal."""
    below, above = (normal.quantile(1 - chance, degrees_of_freedom) * standard_error for chance in (alpha, beta))
    return estimate - below, estimate + above


def _wanted_error(
    estimate: float, threshold: float, accepted: float, alpha: float, beta: float, *, proof: bool
) -> float:
    """Return the standard error at which a decision can be expected, if the truth is near the estimate."""
    power = normal.quantile(normal.POWER)
    found = normal.quantile(1 - alpha) + power
    if estimate > threshold:
        return (estimate - threshold if proof else estimate) / found
    excluded = (accepted - estimate) / normal.quantile(1 - beta)
    room = accepted - threshold if proof else accepted
    # Small enough also for finding the worsening that a pass excludes.
    return min(excluded, room / found) if room > 0 else excluded
