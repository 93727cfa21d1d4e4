"""Decision rules: when a change is a regression, when a value exceeds its limit, and what unread answers hide."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_fairness.audits.base import (
    LEAST_GROWTH,
    AnyAudit,
    AnyItem,
    AuditItem,
    Decision,
    DecisionRule,
    decide,
    one_sided_bounds,
)
from pytest_fairness.audits.info import Direction
from pytest_fairness.errors import counted, joined, significant
from pytest_fairness.probes.base import Probe
from pytest_fairness.records import AccumulatedEvidence, Comparison, Measurement, Pair
from pytest_fairness.stats import intervals
from pytest_fairness.stats.unit_tables import needed_units
from pytest_fairness.stats.words import NeededDocuments, smallest_share

# Decision rules: when a change from the baseline is a regression, and when a value exceeds its limit.
#
# An audit names its rule in the class attribute `rule`. A probe's key `gate` can modify the rule; see `rule_of`.

VISIBLE_SHARE = 0.35
"""A value of `marked_words` passes its limit only if the run would detect a new word that is in this share of one
group's texts."""


def rule_of(audit: AnyAudit, item: AnyItem) -> DecisionRule:
    """Return the rule that decides the item: the audit's rule, modified by the probe's key `gate`."""
    gate = item.settings.gate
    return PointEstimate(audit.rule) if gate == "point" else audit.rule.for_gate(gate)


@dataclass(frozen=True)
class SignificantChange(DecisionRule):
    """Rule: a change is a regression if it exceeds the tolerance and is significantly above 0.

    A change is acceptable if its estimate is at most the tolerance and its upper bound is at most twice the tolerance.
    If there are so few units (entities, records) that no change could be significant, no change passes.

    Attributes:
        strict: whether the upper bound must be at most the tolerance or, for a value, at most the limit (`gate:
            strict`).
        bound: whether a regression also needs a lower bound above the tolerance (`gate: bound`).
        equal: value for equal groups, if a value exceeds its limit although its lower bound does not: the verdict is
            `over-limit` if the value is above the limit and the groups differ significantly, as in the four-fifths
            rule. With `bound`, and if `None`, the value's lower bound must also be above the limit.
    """

    strict: bool = False
    bound: bool = False
    equal: float | None = None

    def for_gate(self, gate: str) -> DecisionRule:
        return replace(self, bound=gate == "bound", strict=gate == "strict")

    def judge_change(
        self, audit: AnyAudit, item: AnyItem, comparison: Comparison, tolerance: float, difference: float
    ) -> Decision:
        """Judge the change; see `base.decide`.

        For a reversed gap, the rule judges the current gap instead of the change if the current gap exceeds the
        tolerance; otherwise, the rule judges the smaller of current gap and change. A reversed gap that exceeds the
        tolerance never passes; it is a regression if the change or the reversal is significant.

        If each pair of groups is tested by itself, the change is a regression if the gap of one pair grew by more than
        the tolerance, significantly: a small group with a large gap by chance does not hide the pair.
        """
        value, reversal = comparison.value, comparison.reversal
        # If the direction of the gap is unknown, a pass must exclude a worsening in both directions.
        beta = item.beta / 2 if comparison.evidence.either_side else item.beta
        if reversal is not None:
            value = reversal.value if reversal.value > tolerance else min(value, reversal.value)
        worst = self._worst_change(item, comparison, tolerance)
        significant = comparison.p_value is not None and comparison.p_value <= item.alpha
        decision = decide(
            value,
            comparison.standard_error,
            threshold=tolerance,
            accepted=tolerance if self.strict else 2 * tolerance,
            # Of several pairs, those that do not exceed the tolerance say nothing about those that do.
            significant=significant and not (comparison.pair and value > tolerance + intervals.ROUNDING),
            requires_lower_bound=self.bound,
            alpha=item.alpha,
            beta=beta,
            degrees_of_freedom=comparison.degrees_of_freedom,
            bounds=_change_bounds(item, comparison, beta) if reversal is None else None,
        )
        if worst is not None:
            pair = None if reversal is not None else worst
            return replace(decision, outcome="beyond", exceeds=True, significant=True, pair=pair)
        if decision.outcome == "beyond":
            return decision
        if reversal is not None and reversal.value > tolerance + intervals.ROUNDING and reversal.p_value <= item.alpha:
            return replace(decision, outcome="beyond", changed_sides=True)
        decision = _unless_too_few_units(decision, audit, item, comparison)
        if decision.outcome != "unclear" or comparison.standard_error is None or item.settings.gate != "significant":
            return decision
        if decision.accepted == 0 and value < comparison.standard_error:
            # No number of answers shows that nothing got worse at all.
            decision = replace(decision, times_more_units=math.inf)
        return replace(decision, decidable=_decidable_tolerance(audit, decision, item, comparison, value))

    def _worst_change(self, item: AnyItem, comparison: Comparison, tolerance: float) -> Pair | None:
        """Return a pair whose gap grew significantly by more than the tolerance, if there is one.

        The pair that the comparison is about comes first, and then the surest; of equally sure ones, the largest.
        """
        needed = intervals.quantile(1 - item.alpha) if self.bound else 0.0
        beyond = [
            pair
            for pair in comparison.pairs
            if pair.p_value <= item.alpha
            and pair.value - needed * (pair.standard_error or 0.0) > tolerance + intervals.ROUNDING
        ]
        if comparison.pair in beyond:
            return comparison.pair
        return min(beyond, key=lambda pair: (pair.p_value, -pair.value), default=None)

    def judge_value(
        self, audit: AnyAudit, item: AnyItem, measurement: Measurement, limit: float, tolerance: float
    ) -> Decision:
        """Judge the value; see `base.decide`.

        The value exceeds the limit if the value's lower bound is above the limit. If there is a test of equal groups,
        the groups must also differ significantly. The value is acceptable if it is at most the limit and its upper
        bound is at most the limit plus twice the tolerance. A value that grows with the number of answers passes only
        in the final analysis.

        If each pair of groups is tested by itself, one of the pairs that exceed the limit must differ significantly. A
        pair with a standard error is a second test of the limit, whatever the value is (see `flips.FlipRate`).
        """
        exceeding = [
            pair for pair in measurement.pairs if _pair_loss(audit, pair) > audit.info.loss(limit) + intervals.ROUNDING
        ]
        worst = min(exceeding, key=lambda pair: (pair.p_value, -_pair_loss(audit, pair)), default=None)
        second_test = worst is not None and worst.standard_error is not None
        p_value = measurement.p_value if worst is None or second_test else worst.p_value
        decision = decide(
            audit.info.loss(measurement.value) - audit.info.loss(limit),
            measurement.standard_error,
            threshold=0.0,
            accepted=0.0 if self.strict else 2 * tolerance,
            significant=p_value is None or p_value <= item.alpha,
            requires_lower_bound=self.bound or self.equal is None,
            alpha=item.alpha,
            beta=item.beta,
            degrees_of_freedom=measurement.degrees_of_freedom,
            bounds=_distance_bounds(item, measurement, audit.info.loss(limit)),
        )
        if decision.outcome == "beyond" and len(measurement.pairs) > 1:
            return replace(decision, pair=worst)
        if decision.outcome != "beyond" and worst is not None and worst.standard_error:
            excess = _pair_loss(audit, worst) - audit.info.loss(limit)
            p_value = intervals.p_value_of_second_test(2 * intervals.upper_tail(excess / worst.standard_error))
            if p_value <= item.alpha:
                return replace(decision, outcome="beyond", exceeds=True, significant=True, pair=worst)
        if decision.outcome == "within" and audit.grows_with_size and not item.final_analysis:
            return replace(decision, outcome="unclear")
        if decision.outcome != "unclear" or measurement.standard_error is None or decision.upper_bound is None:
            return decision
        distance = audit.info.loss(measurement.value) - audit.info.loss(limit)
        if not decision.exceeds:
            return replace(decision, decidable=_decidable_tolerance(audit, decision, item, measurement, distance))
        higher = max(distance, decision.upper_bound - (0.0 if self.strict else 2 * tolerance))
        decision = replace(decision, decidable=_decidable_limit(audit, limit, higher))
        if self.equal is None or self.bound:
            return replace(decision, at_threshold=distance < measurement.standard_error)
        # More units are needed to show that the groups differ, however close the value is to the limit.
        apart = audit.info.loss(measurement.value) - audit.info.loss(self.equal)
        detected = intervals.minimum_detectable(
            measurement.standard_error, item.alpha, degrees_of_freedom=measurement.degrees_of_freedom
        )
        return replace(decision, times_more_units=max(LEAST_GROWTH, (detected / apart) ** 2))

    def minimum_detectable(
        self, item: AnyItem, measurement: Measurement, comparison: Comparison | None, tolerance: float
    ) -> float | None:
        estimate: Measurement | Comparison = measurement if comparison is None else comparison
        if estimate.standard_error is None:
            return None
        return intervals.minimum_detectable(
            estimate.standard_error,
            item.planned_alpha,
            tolerance=0.0 if comparison is None else tolerance,
            degrees_of_freedom=estimate.degrees_of_freedom,
        )


class GrownWords(DecisionRule):
    """Rule: a change is a regression if the number of words that grew exceeds the tolerance.

    A word grew if the difference between the groups' shares of texts with this word grew significantly, and by at least
    the item's setting `min_share`. A change passes only if the run is large enough to detect a new word.
    """

    def judge_change(
        self, audit: AnyAudit, item: AuditItem[Probe, Any], comparison: Comparison, tolerance: float, difference: float
    ) -> Decision:
        """Judge the number of words that grew significantly (family-wise) and by at least `min_share`.

        A change passes only if the run is large enough: if 2 × `min_share` of one group's texts had a new word, the run
        would find the word with probability 1 − `item.beta`.
        """
        if not comparison.from_answers:
            return Decision(
                "unclear",
                times_more_units=math.inf,
                explanation="the answers of the baseline are missing, so that the words of the two runs cannot be "
                "compared",
            )
        if comparison.value > tolerance:
            return Decision("beyond", exceeds=True, significant=True)
        needed = _needed_documents(comparison)
        smallest = smallest_share(needed, 1 - item.beta)
        decision = _unless_new_word_missed(needed, smallest, 2 * item.settings.min_share)
        if decision.outcome == "within" or needed.documents is None or smallest > 1:
            return decision
        return replace(decision, decidable=f"a `min_share` of {_rounded_up(smallest / 2):g} or more")

    def judge_value(
        self, audit: AnyAudit, item: AnyItem, measurement: Measurement, limit: float, tolerance: float
    ) -> Decision:
        """Judge the number of significant words; only a final analysis that can detect a new word passes."""
        if measurement.value > limit:
            return Decision("beyond", exceeds=True, significant=True)
        if not item.final_analysis:
            return Decision("unclear")
        needed = _needed_documents(measurement)
        return _unless_new_word_missed(needed, measurement.evidence.smallest_share or 0.0, VISIBLE_SHARE)

    def minimum_detectable(
        self, item: AnyItem, measurement: Measurement, comparison: Comparison | None, tolerance: float
    ) -> float | None:
        """Return the smallest share of one group's texts in which this run detects a new word with 80 % power."""
        found = measurement if comparison is None or not comparison.from_answers else comparison
        return found.evidence.smallest_share


def _needed_documents(found: Measurement | Comparison) -> NeededDocuments:
    return NeededDocuments(*(found.evidence.needed_documents or (None, 0)))


@dataclass(frozen=True)
class PointEstimate(DecisionRule):
    """Rule that compares the change with the tolerance, and the value with the limit, without a test (`gate: point`).

    The smallest detectable change is that of the audit's own rule.
    """

    tested_rule: DecisionRule
    tested = False

    def judge_change(
        self, audit: AnyAudit, item: AnyItem, comparison: Comparison, tolerance: float, difference: float
    ) -> Decision:
        """Judge the difference alone; a gap that changed sides is worse by its whole size."""
        if comparison.reversal is not None and comparison.reversal.value > tolerance + intervals.ROUNDING:
            return Decision("beyond", changed_sides=True)
        return Decision("beyond" if difference > tolerance + intervals.ROUNDING else "within")

    def judge_value(
        self, audit: AnyAudit, item: AnyItem, measurement: Measurement, limit: float, tolerance: float
    ) -> Decision:
        loss = audit.info.loss
        return Decision("beyond" if loss(measurement.value) > loss(limit) + intervals.ROUNDING else "within")

    def minimum_detectable(
        self, item: AnyItem, measurement: Measurement, comparison: Comparison | None, tolerance: float
    ) -> float | None:
        return self.tested_rule.minimum_detectable(item, measurement, comparison, tolerance)


def judge_runs(evidence: AccumulatedEvidence, item: AnyItem, tolerance: float) -> Decision:
    """Judge the change by all runs since the baseline; see `stats.nights`.

    It is a regression if the evidence is enough, the worsening exceeds the tolerance, and the last runs do not exclude
    that they are worse than the baseline alone by more than the tolerance: a gap that was smaller for a while may
    return. It is acceptable if the last runs together are worse by at most the tolerance, with an upper bound of at
    most twice the tolerance, and nothing speaks for a worsening beyond the tolerance.
    """
    accepted = tolerance if item.settings.gate == "strict" else 2 * tolerance
    upper = evidence.level + intervals.quantile(1 - item.beta) * evidence.level_error
    worse = evidence.worsening > tolerance + intervals.ROUNDING and evidence.highest > tolerance
    significant = evidence.e_value >= evidence.needed
    if worse and significant:
        return Decision("beyond", True, True, upper, accepted)
    exceeds = evidence.level > tolerance + intervals.ROUNDING or (worse and evidence.e_value >= 1)
    if not exceeds and upper <= accepted + intervals.ROUNDING:
        return Decision("within", False, significant, upper, accepted)
    return Decision("unclear", exceeds, significant, upper, accepted)


def _decidable_tolerance(
    audit: AnyAudit, decision: Decision, item: AnyItem, estimate: Measurement | Comparison, value: float
) -> str | None:
    """Return a phrase with the smallest tolerance with which a run of this size would be expected to pass.

    Return `None` if the audit's value cannot get worse by twice this tolerance, because such a pass excludes nothing.
    """
    if estimate.standard_error is None:
        return None
    detectable = intervals.minimum_detectable(
        estimate.standard_error, item.planned_alpha, degrees_of_freedom=estimate.degrees_of_freedom
    )
    # A pass excludes a worsening of twice the tolerance, and the run must be able to find one.
    smallest = max(detectable / 2, (decision.upper_bound or 0.0) / 2, value)
    lowest, highest = audit.info.value_range
    if 2 * smallest >= highest - lowest:
        return None
    return f"a `tolerance` of {_rounded_up(smallest):g} or more"


def _decidable_limit(audit: AnyAudit, limit: float, distance: float) -> str | None:
    """Return a phrase with the limit that is this much worse; `None` if no probe may set it."""
    lowest, highest = audit.info.limits
    if audit.info.better is Direction.HIGHER:
        number = -_rounded_up(distance - limit)
        return f"a `limit` of {number:g} or less" if number >= lowest else None
    number = _rounded_up(limit + distance)
    return f"a `limit` of {number:g} or more" if number <= highest else None


def _rounded_up(number: float) -> float:
    """Round up to two significant digits."""
    if not number:
        return 0.0
    decimals = 1 - math.floor(math.log10(abs(number)))
    return round(math.ceil(number * 10.0**decimals - intervals.ROUNDING) / 10.0**decimals, max(0, decimals))


def _pair_loss(audit: AnyAudit, pair: Pair) -> float:
    """Return the loss of a pair's ratio or of its absolute difference."""
    return audit.info.loss(pair.value if audit.info.better is Direction.HIGHER else abs(pair.value))


def _unless_too_few_units(decision: Decision, audit: AnyAudit, item: AnyItem, comparison: Comparison) -> Decision:
    """Change `within` to `unclear` if there are too few units (entities, records) for a change to be significant."""
    evidence = comparison.evidence
    units = evidence.units if evidence.observations is None else evidence.observations
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
    fewest = needed * evidence.step
    if fewest > decision.accepted:
        return replace(
            decision,
            outcome="unclear",
            times_more_units=fewest / decision.accepted if decision.accepted else math.inf,
            explanation=f"no change smaller than {fewest:.3g} could be significant in {units} {audit.counted}",
        )
    return decision


def _change_bounds(item: AnyItem, comparison: Comparison, beta: float) -> tuple[float, float] | None:
    """Return the lower bound (at the item's alpha) and the upper bound (at `beta`) of the change of a distance.

    The change of a distance among several groups has two estimates, with a standard error each: its growth, and the
    change of the groups that are farthest apart in both runs together (of one pair of groups, or of the signed
    distance; see `stats.gaps.DistanceMeasure`); `Evidence.other_change` is the other one. The first is too low if
    the groups are truly equal in the baseline; the second misses another pair's gap. `comparison.value` is one of them.
    The upper bound is the larger one of both upper bounds; the lower bound is that of `comparison.value`. Return `None`
    if there is only one estimate, or no standard error.
    """
    other = comparison.evidence.other_change
    if comparison.standard_error is None or other is None:
        return None
    changes = ((comparison.value, comparison.standard_error), other)
    bounds = [
        one_sided_bounds(value, error, item.alpha, beta, comparison.degrees_of_freedom) for value, error in changes
    ]
    return bounds[0][0], max(upper for _, upper in bounds)


def _distance_bounds(item: AnyItem, measurement: Measurement, limit: float) -> tuple[float, float] | None:
    """Return one-sided bounds of the loss minus `limit`, at the item's alpha and beta.

    The bounds are those of the evidence or, for a share of a sample with an effective size, of Wilson's interval.
    Return `None` without either; `decide` then computes bounds from the standard error.
    """
    bounds, size = measurement.evidence.bounds, measurement.evidence.effective_size
    if bounds is not None:
        return bounds[0] - limit, bounds[1] - limit
    if size is None:
        return None
    hits = measurement.value * size
    low, _ = intervals.wilson(hits, size, intervals.quantile(1 - item.alpha))
    _, high = intervals.wilson(hits, size, intervals.quantile(1 - item.beta))
    return low - limit, high - limit


def _unless_new_word_missed(needed: NeededDocuments, smallest: float, accepted: float) -> Decision:
    """Change `within` to `unclear` if a new word may have been missed.

    `smallest` is the share of one group's texts that must contain a new word so that the run detects it with the
    required power, and `accepted` its largest acceptable value. `needed` texts must have the word for it to be
    significant.
    """
    if smallest <= accepted:
        return Decision("within")
    where = "in every text" if needed.documents is None else f"in up to {min(1.0, smallest):.0%} of the texts"
    return Decision(
        "unclear",
        # In a larger run, the number of documents that must contain the word is about the same.
        times_more_units=math.inf if needed.documents is None else smallest / accepted,
        explanation=f"a new word {where} of one group may have been missed; for a pass, the run must be large enough "
        f"to find a new word in {accepted:.0%} of the texts",
    )


# Worst-case bounds: how far the unread answers of an item could move its value, or its change since the baseline.
#
# An answer is unread if it is not known what it says: the request failed, or the answer is empty, cut off before it
# says anything, or not in the expected form. Unread answers need not be like the others. A pass must therefore hold
# however they fell (Horowitz and Manski 2000); `docs/explanation/verdicts.md` explains the rules.

MOST_UNREAD = 0.5
"""Largest share of a group's answers that may be unread; beyond it, unread answers could hide any difference."""
NAMED_GROUPS = 3
"""Largest number of groups whose unread answers a message names."""

Counts = Mapping[str, int]
"""Numbers of answers by group."""


@dataclass(frozen=True)
class UnreadAnswers:
    """Unread answers of a run and, for a change, of its baseline, and how far they could move the loss.

    Attributes:
        estimate: the change, or the distance of the value from the limit; larger is worse.
        threshold: largest acceptable estimate: the tolerance, or 0.
        numbers: their numbers by group as a phrase: `6 unread answers of women`.
        worsening: largest possible rise of the estimate.
        unit: unit of the worsening; `%` for points of one hundredth.
    """

    estimate: float
    threshold: float
    numbers: str
    worsening: float
    unit: str

    def hidden(self, decision: Decision, tolerance: float) -> str | None:
        """Return why a `within` estimate may be unacceptable with the unread answers; `None` if it never is."""
        accepted = self.threshold + 2 * tolerance if decision.accepted is None else decision.accepted
        upper = self.estimate if decision.upper_bound is None else decision.upper_bound
        excess = max(self.estimate - self.threshold, upper - accepted) + self.worsening
        return f"{self.numbers} could hide {self._amount}" if self.worsening and excess > intervals.ROUNDING else None

    @property
    def assumption(self) -> str:
        """Return a sentence for a failure that needs unread answers like the read ones; else an empty text."""
        if not self.worsening or self.estimate - self.worsening > self.threshold:
            return ""
        return f" This assumes that {self.numbers} are like the read ones."

    @property
    def _amount(self) -> str:
        if math.isinf(self.worsening):
            return "any difference"
        if self.unit == "%":
            return f"{100 * self.worsening:.2g} points"
        return f"{significant(self.worsening)} {self.unit}".rstrip()


def unread_of_value(
    audit: AnyAudit, item: AnyItem, measurement: Measurement, limit: float, tolerance: float
) -> UnreadAnswers:
    equal = audit.info.undecidable_limit
    distance = 0.0 if equal is None else audit.info.loss(limit) - audit.info.loss(equal)
    shares = audit.unread_shares(measurement, measurement.n, measurement.missing)
    scale = max(distance, 0.0 if math.isnan(tolerance) else tolerance)
    worsening = _worsening(audit, item, measurement, shares, scale)
    if shares and audit.info.better is Direction.ZERO:
        other_side = _worsening(audit, item, measurement, shares, scale, other_side=True)
        worsening = max(worsening, other_side - 2 * audit.info.loss(measurement.value))
    estimate = audit.info.loss(measurement.value) - audit.info.loss(limit)
    return UnreadAnswers(estimate, 0.0, _numbers(measurement.missing), worsening, _unit(audit))


def unread_of_change(
    audit: AnyAudit,
    item: AnyItem,
    measurement: Measurement,
    change: float,
    baseline: float,
    n: Counts,
    missing: Counts,
    tolerance: float,
) -> UnreadAnswers:
    """Return the unread answers of this run at their worst, and those of the other run at their best.

    `change` is that of the loss; `baseline`, `n` and `missing` are the value and the numbers by group of the other run.
    """
    current, before = (
        audit.unread_shares(measurement, *run) for run in ((measurement.n, measurement.missing), (n, missing))
    )
    worst = _worsening(audit, item, measurement, current, tolerance)
    share = max(before.values(), default=0.0)
    best = math.inf if share > MOST_UNREAD else 0.0
    if 0 < share <= MOST_UNREAD:
        best = audit.unread_improvement(item, measurement, baseline, share, tolerance)
    numbers = _numbers(measurement.missing)
    if any(missing.values()):
        earlier = f"{_numbers(missing)} in the baseline"
        numbers = f"{numbers} and {earlier}" if any(measurement.missing.values()) else earlier
    worsening = worst + best
    if (current or before) and audit.info.better is Direction.ZERO:
        # A gap that changed sides is compared with the tolerance by itself, without the gap of the baseline.
        gap, least = audit.info.loss(measurement.value), max(0.0, audit.info.loss(baseline) - best)
        opposite = measurement.value * baseline < 0
        own_side = gap + worst - (0.0 if opposite else least)
        other_side = _worsening(audit, item, measurement, current, tolerance, other_side=True) - gap
        worsening = max(worsening, own_side - change, other_side - (least if opposite else 0.0) - change)
    return UnreadAnswers(change, tolerance, numbers, worsening, _unit(audit))


def _worsening(
    audit: AnyAudit,
    item: AnyItem,
    measurement: Measurement,
    shares: Mapping[str, float],
    scale: float,
    *,
    other_side: bool = False,
) -> float:
    share = max(shares.values(), default=0.0)
    if share > MOST_UNREAD:
        return math.inf
    return audit.unread_worsening(item, measurement, shares, scale, other_side=other_side) if share else 0.0


def _numbers(missing: Counts) -> str:
    (first, *others) = [(count, group) for group, count in missing.items() if count] or [(0, "")]
    named = f"{counted(first[0], 'unread answer')}{f' of {first[1]}' if first[1] else ''}"
    if not others:
        return named
    shown = [f"{count} of {group}" for count, group in others]
    if len(shown) >= NAMED_GROUPS:
        return joined([named, *shown], NAMED_GROUPS)
    return f"{', '.join([named, *shown[:-1]])} and {shown[-1]}"


def _unit(audit: AnyAudit) -> str:
    return audit.info.unit or ("" if audit.info.worst is None else "%")
