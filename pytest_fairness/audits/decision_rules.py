"""Decision rules: how a change from the baseline, and a value against a limit, are judged.

An audit names its rule in the class attribute `rule`, and a probe's `gate` the variant of it; see `rule_of`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pytest_fairness.audits.base import AnyAudit, AnyItem, AuditItem, DecisionRule
from pytest_fairness.audits.decision import ROUNDING, Decision, decide, one_sided_bounds
from pytest_fairness.records import Comparison, Measurement
from pytest_fairness.stats.intervals import normal, proportions
from pytest_fairness.stats.texts.share_growth import smallest_share
from pytest_fairness.stats.unit_tables.change import needed_units

VISIBLE_SHARE = 0.35
"""Share of one group's texts in which a run must be able to find a new word before it may pass."""


def rule_of(audit: AnyAudit, item: AnyItem) -> DecisionRule:
    """Return the rule that decides the item: the audit's, in the variant that the probe's `gate` names."""
    gate = item.settings.gate
    return PointEstimate(audit.rule) if gate == "point" else audit.rule.for_gate(gate)


@dataclass(frozen=True)
class SignificantChange(DecisionRule):
    """A change is a regression where it exceeds the tolerance and is significantly worse than no change.

    A change is acceptable where its estimate is within the tolerance and its upper bound within twice the tolerance. No
    change passes in so few units (entities, records) that no change could be significant.

    Attributes:
        strict: whether the upper bound of an acceptable change, or of an acceptable value, must be within the tolerance
            or the limit itself (`gate: strict`).
    """

    strict: bool = False
    proof: ClassVar[bool] = False
    """Whether the lower bound of a regression must exceed the tolerance."""

    def for_gate(self, gate: str) -> DecisionRule:
        """Return the variant of the rule that a probe's `gate` names."""
        match gate:
            case "bound":
                return ChangeBound()
            case "strict":
                return SignificantChange(strict=True)
            case _:
                return self

    def judge_change(
        self, audit: AnyAudit, item: AnyItem, comparison: Comparison, tolerance: float, difference: float
    ) -> Decision:
        """Decide whether the change since the baseline is a regression; see `decision.decide`.

        A gap that changed sides moved by more than it grew: it is worse by its present size at most, and beyond the
        tolerance it does not pass as a smaller gap on the old side; if the change of sides is significant too, it is a
        regression. Where it is not known which side the gap is on (`details["either_side"]`), a worsening to either
        side must be excluded, each at half of the beta.
        """
        value, reversal = comparison.value, comparison.reversal
        beta = item.beta / 2 if comparison.details.get("either_side") else item.beta
        if reversal is not None:
            value = reversal.value if reversal.value > tolerance else min(value, reversal.value)
        decision = decide(
            value,
            comparison.standard_error,
            threshold=tolerance,
            accepted=tolerance if self.strict else 2 * tolerance,
            significant=comparison.p_value is not None and comparison.p_value <= item.alpha,
            proof=self.proof,
            alpha=item.alpha,
            beta=beta,
            degrees_of_freedom=comparison.degrees_of_freedom,
            bounds=_change_bounds(item, comparison, beta) if reversal is None else None,
        )
        if decision.outcome == "beyond":
            return decision
        if reversal is not None and reversal.value > tolerance + ROUNDING and reversal.p_value <= item.alpha:
            return replace(decision, outcome="beyond", changed_sides=True)
        return _unless_too_few_units(decision, audit, item, comparison)

    def judge_value(
        self, audit: AnyAudit, item: AnyItem, measurement: Measurement, limit: float, tolerance: float
    ) -> Decision:
        """Decide whether the value exceeds the limit; see `decision.decide`.

        The value exceeds the limit where its lower bound does, and the groups differ significantly where there is a
        test of that. It is acceptable where the estimate is within the limit and its upper bound within the limit plus
        twice the tolerance.
        """
        decision = decide(
            audit.info.loss(measurement.value) - audit.info.loss(limit),
            measurement.standard_error,
            threshold=0.0,
            accepted=0.0 if self.strict else 2 * tolerance,
            significant=measurement.p_value is None or measurement.p_value <= item.alpha,
            proof=True,
            alpha=item.alpha,
            beta=item.beta,
            degrees_of_freedom=measurement.degrees_of_freedom,
            bounds=_distance_bounds(item, measurement, audit.info.loss(limit)),
        )
        if decision.outcome == "within" and audit.grows_with_size and not item.last_look:
            return replace(decision, outcome="unclear")
        return decision

    def minimum_detectable(
        self, item: AnyItem, measurement: Measurement, comparison: Comparison | None, tolerance: float
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


@dataclass(frozen=True)
class ChangeBound(SignificantChange):
    """A change is a regression where its lower bound exceeds the tolerance too (`gate: bound`)."""

    proof: ClassVar[bool] = True


class GrownWords(DecisionRule):
    """A change is a regression where more words than the tolerance grew, each significantly and materially.

    A pass needs a run that would have found a new word.
    """

    def judge_change(
        self, audit: AnyAudit, item: AuditItem[Any], comparison: Comparison, tolerance: float, difference: float
    ) -> Decision:
        """Judge the number of words that grew, each of them significantly, family-wise, and by `min_share` or more.

        A pass excludes that a word is new in twice `min_share` of one group's texts: such a word would have grown more
        than any other word did, but for a chance of `item.beta`.
        """
        if not comparison.paired:
            return Decision(
                "unclear",
                times_more_units=math.inf,
                explanation="without enough of the baseline's answers, equal numbers of words may be other words",
            )
        if comparison.value > tolerance:
            return Decision("beyond", exceeds=True, significant=True)
        needed, documents = comparison.details["documents_to_stand_out"]
        missed = smallest_share((needed, documents), 1 - item.beta)
        return _unless_missed((needed, documents), missed, 2 * item.settings.min_share)

    def judge_value(
        self, audit: AnyAudit, item: AnyItem, measurement: Measurement, limit: float, tolerance: float
    ) -> Decision:
        """Judge the number of significant words; a pass takes a run that would have found a new one."""
        if measurement.value > limit:
            return Decision("beyond", exceeds=True, significant=True)
        if not item.last_look:
            return Decision("unclear")
        details = measurement.details
        return _unless_missed(details["documents_needed"], details["smallest_share"], VISIBLE_SHARE)

    def minimum_detectable(
        self, item: AnyItem, measurement: Measurement, comparison: Comparison | None, tolerance: float
    ) -> float | None:
        """Return the smallest share of one group's texts in which a new word is found with 80 % power."""
        details = measurement.details if comparison is None or not comparison.paired else comparison.details
        return float(details["smallest_share"])


@dataclass(frozen=True)
class PointEstimate(DecisionRule):
    """A change or a value is too bad where the bare number is, without any test (`gate: point`).

    Attributes:
        tested_rule: the audit's rule, for the smallest change that a test of this run finds.
    """

    tested_rule: DecisionRule
    tested: ClassVar[bool] = False

    def judge_change(
        self, audit: AnyAudit, item: AnyItem, comparison: Comparison, tolerance: float, difference: float
    ) -> Decision:
        """Decide whether the run's value is worse than the baseline's value by more than the tolerance."""
        return Decision("beyond" if difference > tolerance + ROUNDING else "within")

    def judge_value(
        self, audit: AnyAudit, item: AnyItem, measurement: Measurement, limit: float, tolerance: float
    ) -> Decision:
        """Decide whether the value is worse than the limit."""
        loss = audit.info.loss
        return Decision("beyond" if loss(measurement.value) > loss(limit) + ROUNDING else "within")

    def minimum_detectable(
        self, item: AnyItem, measurement: Measurement, comparison: Comparison | None, tolerance: float
    ) -> float | None:
        """Return the smallest worsening that a test would find; see `DecisionRule.minimum_detectable`."""
        return self.tested_rule.minimum_detectable(item, measurement, comparison, tolerance)


def _unless_too_few_units(decision: Decision, audit: AnyAudit, item: AnyItem, comparison: Comparison) -> Decision:
    """Return the decision; `unclear` in place of `within` where no change could be significant in so few units."""
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
    # Answers with two outcomes change the value by whole steps, and fewer steps than `needed` are never significant.
    fewest = needed * float(comparison.details.get("step", 0.0))
    if fewest > decision.accepted:
        return replace(
            decision,
            outcome="unclear",
            times_more_units=fewest / decision.accepted if decision.accepted else math.inf,
            explanation=f"no change smaller than {fewest:.3g} could be significant in {units} {audit.counted}",
        )
    return decision


def _change_bounds(item: AnyItem, comparison: Comparison, beta: float) -> tuple[float, float] | None:
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


def _distance_bounds(item: AnyItem, measurement: Measurement, limit: float) -> tuple[float, float] | None:
    """Return the one-sided bounds, at the item's alpha and beta, of how far the loss exceeds that of the limit.

    `None` where the standard error gives the bounds. An audit whose loss has other bounds puts them into
    `details["bounds"]`; an audit whose loss is a share puts the size of its sample into `details["effective_size"]`,
    from which Wilson's bounds follow.
    """
    bounds, size = (measurement.details.get(name) for name in ("bounds", "effective_size"))
    if bounds is not None:
        return bounds["lower"] - limit, bounds["upper"] - limit
    if size is None:
        return None
    hits = measurement.value * size
    low, _ = proportions.wilson(hits, size, normal.quantile(1 - item.alpha))
    _, high = proportions.wilson(hits, size, normal.quantile(1 - item.beta))
    return low - limit, high - limit


def _unless_missed(needed: Sequence[int | None], smallest: float, accepted: float) -> Decision:
    """Return `within` where a new word in the accepted share of a group's texts would have been found.

    Args:
        needed: documents that must hold the word, and documents of the group.
        smallest: share of the group's texts that a new word must be in to be found with the wanted power.
        accepted: the largest such share.
    """
    if smallest <= accepted:
        return Decision("within")
    least, _ = needed
    told = "in every text" if least is None else f"in up to {min(1.0, smallest):.0%} of the texts"
    return Decision(
        "unclear",
        # However many documents there are, the word must be in about as many of them.
        times_more_units=math.inf if least is None else smallest / accepted,
        explanation=f"a new word {told} of one group may have been missed; a pass needs at most {accepted:.0%}",
    )
