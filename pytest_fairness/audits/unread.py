"""Worst-case bounds: how far the unread answers of an item could move its value, or its change since the baseline.

An answer is unread if it is not known what it says: the request failed, or the answer is empty, cut off before it says
anything, or not in the expected form. Unread answers need not be like the others. A pass must therefore hold however
they fell (Horowitz and Manski 2000); `docs/explanation/verdicts.md` explains the rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_fairness.audits.base import AnyAudit, AnyItem
from pytest_fairness.audits.decision import ROUNDING, Decision
from pytest_fairness.audits.info import Direction
from pytest_fairness.plurals import counted, joined, significant
from pytest_fairness.records import Measurement

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
        """Return why an acceptable estimate may be unacceptable with the unread answers; `None` if it never is.

        Args:
            decision: decision on the estimate, with the outcome `within`.
            tolerance: tolerance of the item.
        """
        accepted = self.threshold + 2 * tolerance if decision.accepted is None else decision.accepted
        upper = self.estimate if decision.upper_bound is None else decision.upper_bound
        excess = max(self.estimate - self.threshold, upper - accepted) + self.worsening
        return f"{self.numbers} could hide {self._amount}" if self.worsening and excess > ROUNDING else None

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


def of_value(audit: AnyAudit, item: AnyItem, measurement: Measurement, limit: float, tolerance: float) -> UnreadAnswers:
    """Return the unread answers of a run whose value is compared with a limit."""
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


def of_change(
    audit: AnyAudit,
    item: AnyItem,
    measurement: Measurement,
    change: float,
    baseline: float,
    n: Counts,
    missing: Counts,
    tolerance: float,
) -> UnreadAnswers:
    """Return the unread answers of a run that is compared with another run.

    The unread answers of this run count at their worst, and those of the other run at their best.

    Args:
        audit: audit of the item.
        item: item that was measured.
        measurement: measurement of this run.
        change: change of the loss since the other run.
        baseline: value of the other run.
        n, missing: numbers of read and of unread answers of the other run, by group.
        tolerance: tolerance of the item.
    """
    current, before = (
        audit.unread_shares(measurement, *run) for run in ((measurement.n, measurement.missing), (n, missing))
    )
    worst = _worsening(audit, item, measurement, current, tolerance)
    share = max(before.values(), default=0.0)
    best = math.inf if share > MOST_UNREAD else 0.0
    if 0 < share <= MOST_UNREAD:
        best = audit.unread_improvement(measurement, baseline, share, tolerance)
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
    """Return the numbers of unread answers as a phrase: `6 unread answers of women and 1 of men`."""
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
