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
from pytest_fairness.plurals import counted, joined, significant
from pytest_fairness.records import Measurement
from pytest_fairness.stats.intervals import normal

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
        new: largest worsening by those unread answers of a group that the other run does not have as well, unless
            chance explains the difference. For a value, these are all unread answers.
        every: largest worsening by all unread answers of both runs.
        unit: unit of the worsening; `%` for points of one hundredth.
    """

    estimate: float
    threshold: float
    numbers: str
    new: float
    every: float
    unit: str

    def hidden(self, decision: Decision, tolerance: float) -> str | None:
        """Return why an acceptable estimate may be unacceptable with the unread answers; `None` if it never is.

        The estimate and its upper bound must be acceptable with the worsening `new`. With the worsening `every`, the
        estimate must not be above the largest acceptable upper bound.

        Args:
            decision: decision on the estimate, with the outcome `within`.
            tolerance: tolerance of the item.
        """
        accepted = self.threshold + 2 * tolerance if decision.accepted is None else decision.accepted
        upper = self.estimate if decision.upper_bound is None else decision.upper_bound
        if self.new and max(self.estimate + self.new - self.threshold, upper + self.new - accepted) > ROUNDING:
            return f"{self.numbers} could hide {self._amount(self.new)}"
        if self.every and self.estimate + self.every - accepted > ROUNDING:
            return f"{self.numbers} could hide {self._amount(self.every)}"
        return None

    @property
    def assumption(self) -> str:
        """Return a sentence for a failure that needs unread answers like the read ones; else an empty text."""
        if not self.every or self.estimate - self.every > self.threshold:
            return ""
        return f" This assumes that {self.numbers} are like the read ones."

    def _amount(self, worsening: float) -> str:
        if math.isinf(worsening):
            return "any difference"
        if self.unit == "%":
            return f"{100 * worsening:.2g} points"
        return f"{significant(worsening)} {self.unit}".rstrip()


def of_value(audit: AnyAudit, item: AnyItem, measurement: Measurement, limit: float, tolerance: float) -> UnreadAnswers:
    """Return the unread answers of a run whose value is compared with a limit."""
    equal = audit.info.undecidable_limit
    distance = 0.0 if equal is None else audit.info.loss(limit) - audit.info.loss(equal)
    shares = audit.unread_shares(measurement, measurement.n, measurement.missing)
    scale = max(distance, 0.0 if math.isnan(tolerance) else tolerance)
    worsening = _worsening(audit, item, measurement, max(shares.values(), default=0.0), scale)
    estimate = audit.info.loss(measurement.value) - audit.info.loss(limit)
    return UnreadAnswers(estimate, 0.0, _numbers(measurement.missing), worsening, worsening, _unit(audit))


def of_change(
    audit: AnyAudit,
    item: AnyItem,
    measurement: Measurement,
    change: float,
    n: Counts,
    missing: Counts,
    tolerance: float,
) -> UnreadAnswers:
    """Return the unread answers of a run that is compared with another run.

    Args:
        audit: audit of the item.
        item: item that was measured.
        measurement: measurement of this run.
        change: change of the loss since the other run.
        n, missing: numbers of read and of unread answers of the other run, by group.
        tolerance: tolerance of the item.
    """
    current = audit.unread_shares(measurement, measurement.n, measurement.missing)
    baseline = audit.unread_shares(measurement, n, missing)
    gaps = [0.0]
    for group in {*current, *baseline}:
        sizes = [_size(group, *run) for run in ((measurement.n, measurement.missing), (n, missing))]
        gaps.append(_gap_beyond_chance(current.get(group, 0.0), baseline.get(group, 0.0), *sizes))
    more, fewer = max(gaps), max(-gap for gap in gaps)
    largest = [max(shares.values(), default=0.0) for shares in (current, baseline)]
    new, every = (
        sum(_worsening(audit, item, measurement, share, tolerance) for share in shares)
        for shares in ((more, fewer), largest)
    )
    numbers = _numbers(measurement.missing)
    if any(missing.values()):
        before = f"{_numbers(missing)} in the baseline"
        numbers = f"{numbers} and {before}" if any(measurement.missing.values()) else before
    return UnreadAnswers(change, tolerance, numbers, new, every, _unit(audit))


def _size(group: str, n: Counts, missing: Counts) -> int:
    """Return the number of a group's answers; of all answers, for a share that belongs to several groups."""
    names = [group] if group in {*n, *missing} else {*n, *missing}
    return sum(n.get(name, 0) + missing.get(name, 0) for name in names)


def _gap_beyond_chance(current: float, baseline: float, current_size: int, baseline_size: int) -> float:
    """Return the difference between two shares of unread answers; 0 if chance explains it (5 %, one-sided z test)."""
    gap = current - baseline
    if not current_size or not baseline_size:
        return gap
    pooled = (current * current_size + baseline * baseline_size) / (current_size + baseline_size)
    error = math.sqrt(pooled * (1 - pooled) * (1 / current_size + 1 / baseline_size))
    return gap if abs(gap) > normal.quantile(0.95) * error else 0.0


def _worsening(audit: AnyAudit, item: AnyItem, measurement: Measurement, share: float, scale: float) -> float:
    if share > MOST_UNREAD:
        return math.inf
    return audit.unread_worsening(item, measurement, share, scale) if share else 0.0


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
