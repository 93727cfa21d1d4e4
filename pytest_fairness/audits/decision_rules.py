"""Decision rules: how a change from the baseline, and a value against a limit, are judged.

An audit names its rule in the class attribute `rule`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from pytest_fairness.audits.base import Audit, AuditItem, DecisionRule
from pytest_fairness.audits.decision import Decision, decide, one_sided_bounds
from pytest_fairness.records import Comparison, Measurement
from pytest_fairness.stats import normal
from pytest_fairness.stats.unit_change import needed_units


class SignificantChange(DecisionRule):
    """A change is a regression where it exceeds the tolerance and is significantly worse than no change.

    With `gate: bound` the lower bound of the change must exceed the tolerance too. A change is acceptable where its
    estimate is within the tolerance and its upper bound within twice the tolerance; with `gate: strict`, within the
    tolerance.
    """

    def judge_change(
        self, audit: Audit[Any, Any], item: AuditItem[Any], comparison: Comparison, tolerance: float
    ) -> Decision:
        """Decide whether the change since the baseline is a regression; see `decision.decide`.

        A gap that changed sides moved by more than it grew: it is worse by its present size at most, and beyond the
        tolerance it does not pass as a smaller gap on the old side. Where it is not known which side the gap is on
        (`details["either_side"]`), a worsening to either side must be excluded, each at half of the beta.
        """
        value, reversal = comparison.value, comparison.reversal
        beta = item.beta / 2 if comparison.details.get("either_side") else item.beta
        bounds = _change_bounds(item, comparison, beta) if reversal is None else None
        if reversal is not None:
            value = reversal.value if reversal.value > tolerance else min(value, reversal.value)
        return decide(
            value,
            comparison.standard_error,
            threshold=tolerance,
            accepted=tolerance if item.settings.gate == "strict" else 2 * tolerance,
            significant=comparison.p_value is not None and comparison.p_value <= item.alpha,
            proof=item.settings.gate == "bound",
            alpha=item.alpha,
            beta=beta,
            degrees_of_freedom=comparison.degrees_of_freedom,
            bounds=bounds,
        )

    def judge_value(
        self, audit: Audit[Any, Any], item: AuditItem[Any], measurement: Measurement, limit: float, tolerance: float
    ) -> Decision:
        """Decide whether the value exceeds the limit; see `decision.decide`.

        The value exceeds the limit where its lower bound does, and the groups differ significantly where there is a
        test of that. It is acceptable where the estimate is within the limit and its upper bound within the limit plus
        twice the tolerance; with `gate: strict`, within the limit.
        """
        decision = decide(
            audit.loss(measurement.value) - audit.loss(limit),
            measurement.standard_error,
            threshold=0.0,
            accepted=0.0 if item.settings.gate == "strict" else 2 * tolerance,
            significant=measurement.p_value is None or measurement.p_value <= item.alpha,
            proof=True,
            alpha=item.alpha,
            beta=item.beta,
            degrees_of_freedom=measurement.degrees_of_freedom,
            bounds=audit.distance_bounds(item, measurement, limit),
        )
        if decision.outcome == "within" and audit.grows_with_size and not item.last_look:
            return replace(decision, outcome="unclear")
        return decision

    def minimum_detectable(
        self, item: AuditItem[Any], measurement: Measurement, comparison: Comparison | None, tolerance: float
    ) -> float | None:
        """Return the smallest true worsening that a run of this size finds with 80 % power; `None` if not known."""
        estimate: Measurement | Comparison = measurement if comparison is None else comparison
        if estimate.standard_error is None:
            return None
        return normal.minimum_detectable(
            estimate.standard_error,
            item.planned_alpha,
            tolerance=0.0 if comparison is None else tolerance,
            degrees_of_freedom=estimate.degrees_of_freedom,
        )


class SignificantChangeOfUnits(SignificantChange):
    """The rule `SignificantChange`, which nothing passes where too few units could show a significant change."""

    def judge_change(
        self, audit: Audit[Any, Any], item: AuditItem[Any], comparison: Comparison, tolerance: float
    ) -> Decision:
        """Decide as `SignificantChange` does; a pass needs enough units for a test to reject."""
        decision = super().judge_change(audit, item, comparison, tolerance)
        units = comparison.details.get(f"compared_{audit.counted}")
        if decision.outcome != "within" or units is None or decision.accepted is None:
            return decision
        needed = needed_units(item.planned_alpha)
        if units < needed:
            return replace(
                decision,
                outcome="unclear",
                times_more_units=needed / units,
                explanation=f"no change could be significant in fewer than {needed} {audit.counted}",
            )
        # Where an answer either flips or does not, fewer flips than `needed` are never significant.
        fewest = needed * float(comparison.details.get("step", 0.0))
        if fewest > decision.accepted:
            return replace(
                decision,
                outcome="unclear",
                times_more_units=fewest / decision.accepted if decision.accepted else math.inf,
                explanation=f"no change smaller than {fewest:.3g} could be significant in {units} {audit.counted}",
            )
        return decision


def _change_bounds(item: AuditItem[Any], comparison: Comparison, beta: float) -> tuple[float, float] | None:
    """Return the one-sided bounds of the change at the item's alpha and at `beta`.

    `None` where the standard error gives the bounds. For a spread of several groups (`details["along_pattern"]`: the
    change along the pattern that both runs together show, and its error) the upper bound is the larger of two: the
    baseline's spread of groups that are alike is above 0 by chance, so that its growth is underestimated.
    """
    if comparison.standard_error is None or (along := comparison.details.get("along_pattern")) is None:
        return None
    changes = ((comparison.value, comparison.standard_error), along)
    bounds = [
        one_sided_bounds(value, error, item.alpha, beta, comparison.degrees_of_freedom) for value, error in changes
    ]
    return bounds[0][0], max(upper for _, upper in bounds)
