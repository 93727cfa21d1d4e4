"""From measurements to a verdict: what is a real regression, what is noise, and what cannot be told.

Pure: the same measurement, comparison and settings give the same verdict, whatever the order, the worker or the clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_fairness.audit.base import Audit, AuditItem, Standing
from pytest_fairness.records import Comparison, Concern, Measurement, Verdict, VerdictName
from pytest_fairness.stats import normal

MISSING_SHARE = 0.10
MISSING_GAP = 0.05
MISSING_P = 0.05
NAMED_DRIVERS = 5
ONE_OBSERVATION = (
    "every trial repeats the same answer, so that it is one observation. Set `sampling.temperature`, or give several "
    "prompts"
)
MOST_TIMES = 1000
"""Growth of a run beyond which it is no advice."""


@dataclass(frozen=True)
class Earlier:
    """What the baseline says of an item.

    Attributes:
        value: as it was recorded.
        stale_parts: what it was made from that is different now (`prompt`, `axis race`); empty if it still holds.
        answers: how many usable answers it was measured from; `None` where that is not known.
        note: what the reason says of the baseline besides.
    """

    value: float
    stale_parts: Sequence[str] = ()
    answers: int | None = None
    note: str | None = None


def decide(
    audit: Audit[Any],
    item: AuditItem[Any],
    measurement: Measurement,
    *,
    earlier: Earlier | None,
    comparison: Comparison | None,
    trials: int | None,
    accept: str,
) -> Verdict:
    """Judge one item.

    Args:
        audit: the method.
        item: the item, with its limit, tolerance, gate and level.
        measurement: of this run.
        earlier: the baseline's entry, or `None` where there is none.
        comparison: of this run with the baseline; `None` without a baseline, or with a stale one.
        trials: how many trials, or what else `Audit.counted` names, there were, for the advice on how many would do;
            `None` for recorded files.
        accept: the command that makes or accepts a baseline, for the reason.
    """
    limit, tolerance = item.settings.limit, tolerance_of(audit, item)
    what = f"{item.id}: {audit.describe(measurement)}"
    doubt = _doubt(measurement)
    seen = audit.detectable(item, measurement, comparison, tolerance)

    notes = "".join(
        f" {concern.message[:1].upper()}{concern.message[1:]}."
        for concern in measurement.concerns
        if concern.withholds == "nothing"
    )
    if earlier is not None and earlier.note:
        notes += f" {earlier.note}."

    def verdict(name: VerdictName, reason: str) -> Verdict:
        return Verdict(name, f"{reason}{notes}", seen.effect)

    def advice(factor: float, *, of_change: bool = True) -> str:
        if of_change and comparison is not None and comparison.repeated and audit.counted == "trials":
            return f"{ONE_OBSERVATION[0].upper()}{ONE_OBSERVATION[1:]}."
        answers = sum(measurement.n.values())
        earlier_answers = earlier.answers if of_change and comparison is not None and earlier is not None else None
        return _advice(audit, trials, factor, earlier_answers / answers if earlier_answers and answers else None)

    if earlier is not None and earlier.stale_parts:
        parts = ", ".join(earlier.stale_parts)
        # A command to paste ends the reason.
        return Verdict(
            VerdictName.STALE_BASELINE,
            f"{what}, but the baseline was made from another {parts}.{notes} Look at the answers, then accept: "
            f"{accept}",
            seen.effect,
        )
    if comparison is None and limit is None:
        first = "Make a baseline: " if doubt is None else f"Before you make a baseline: {doubt.message}. Then: "
        cure = first + accept
        return Verdict(VerdictName.NO_BASELINE, f"{what}, with no baseline and no limit.{notes} {cure}", seen.effect)
    if earlier is not None and comparison is not None:
        what += f", was {earlier.value:.3g}: {audit.describe_change(comparison)}, tolerance {tolerance:.3g}"
        if not comparison.paired:
            what += " (by stored value and error alone: the baseline's answers are absent or too few)"
    if limit is not None:
        what += f", limit {limit:.3g}"
    driven = audit.drivers(measurement, comparison)[:NAMED_DRIVERS]
    because = f". Driven by {', '.join(driven)}." if driven else "."

    if doubt is not None and doubt.withholds == "verdict":
        return verdict(VerdictName.INCONCLUSIVE, f"{what}; {doubt.message}.")
    to_baseline, to_limit = _standings(audit, item, measurement, earlier, comparison, tolerance)
    if to_baseline == "beyond" and comparison is not None and comparison.repeated and item.settings.gate != "point":
        return verdict(
            VerdictName.INCONCLUSIVE,
            f"{what}; worse, but {ONE_OBSERVATION}{because}",
        )
    if to_baseline == "beyond":
        return verdict(VerdictName.REGRESSION, what + because)
    if to_limit == "beyond":
        return verdict(VerdictName.OVER_LIMIT, what + because)
    if item.settings.gate == "point":
        if doubt is not None:
            return verdict(VerdictName.INCONCLUSIVE, f"{what}; {doubt.message}.")
        return verdict(VerdictName.PASS, f"{what}.")
    if "unclear" in (to_baseline, to_limit):
        # Telling twice the tolerance from the tolerance takes an effect of one tolerance to be visible.
        factor = 4 * max(1.0, _times(seen.effect, tolerance)) if to_baseline == "unclear" else 1.0
        if limit is not None and to_limit == "unclear":
            factor = max(factor, _times_to_limit(audit, item, measurement, limit))
        more = advice(factor, of_change=to_baseline == "unclear")
        return verdict(VerdictName.INCONCLUSIVE, f"{what}; worse, but not beyond doubt. {more}{because[1:]}")
    if not seen.enough:
        effect = math.inf if seen.effect is None else seen.effect
        return verdict(
            VerdictName.INCONCLUSIVE,
            f"{what}; the run is too small: the least it would see is {audit.describe_detectable(effect)}. "
            f"{advice(seen.times_more_units)}",
        )
    if doubt is not None:
        return verdict(VerdictName.INCONCLUSIVE, f"{what}; {doubt.message}.")
    if item.settings.gate == "strict" and (unshown := _unshown(audit, measurement, comparison, limit, tolerance)):
        return verdict(VerdictName.INCONCLUSIVE, f"{what}; gate strict: {unshown}.")
    return verdict(VerdictName.PASS, f"{what}.")


def _doubt(measurement: Measurement) -> Concern | None:
    """Return the gravest concern that withholds a verdict or a pass; `None` where there is none."""
    absent = missing_reason(measurement)
    missing = () if absent is None else (Concern("missing_answers", absent),)
    return next((each for each in (*measurement.concerns, *missing) if each.withholds != "nothing"), None)


def tolerance_of(audit: Audit[Any], item: AuditItem[Any]) -> float:
    """The item's tolerance: the probe's, or the audit's default."""
    tolerance = item.settings.tolerance
    return float(audit.default_tolerance if tolerance is None else tolerance)


def _standings(
    audit: Audit[Any],
    item: AuditItem[Any],
    measurement: Measurement,
    earlier: Earlier | None,
    comparison: Comparison | None,
    tolerance: float,
) -> tuple[Standing, Standing]:
    limit = item.settings.limit
    if item.settings.gate == "point":
        bad = audit.badness(measurement.value)
        worse = earlier is not None and comparison is not None and bad > audit.badness(earlier.value) + tolerance
        over = limit is not None and bad > audit.badness(limit)
        return ("beyond" if worse else "within"), ("beyond" if over else "within")
    return (
        "within" if comparison is None else audit.standing_to_baseline(item, comparison, tolerance),
        "within" if limit is None else audit.standing_to_limit(item, measurement, limit),
    )


def _unshown(
    audit: Audit[Any], measurement: Measurement, comparison: Comparison | None, limit: float | None, tolerance: float
) -> str | None:
    """What a 95 % upper bound does not show to be within bounds, for `gate: strict`."""
    if comparison is not None and comparison.interval is not None and comparison.interval[1] > tolerance:
        return f"a change of up to {comparison.interval[1]:.3g} cannot be excluded"
    if limit is not None and measurement.interval is not None:
        worst = max(audit.badness(bound) for bound in measurement.interval)
        if worst > audit.badness(limit):
            return "a value beyond the limit cannot be excluded"
    return None


def _times(effect: float | None, wanted: float) -> float:
    return (effect / (2 * wanted)) ** 2 if effect is not None and wanted > 0 and math.isfinite(effect) else 1.0


def _times_to_limit(audit: Audit[Any], item: AuditItem[Any], measurement: Measurement, limit: float) -> float:
    """By which factor a run must grow for a value that stays where it is to be told from the limit."""
    excess, error = audit.badness(measurement.value) - audit.badness(limit), measurement.standard_error
    if excess <= 0 or error is None:
        return 4.0
    return max(1.0, (normal.minimum_detectable(error, item.planned_level) / excess) ** 2)


def _advice(audit: Audit[Any], size: int | None, factor: float, baseline: float | None) -> str:
    """How large a run would do.

    Args:
        audit: the method.
        size: of this run.
        factor: by which this run and its baseline must grow for the error to be small enough.
        baseline: the baseline's size, where this run's is 1; `None` where the run is not compared, or it is not known.
    """
    if not math.isfinite(factor) or factor > MOST_TIMES:
        return "No number of answers that could be asked for would do."
    if size is None:
        return f"About {factor:.1f} times as many answers would do."
    there = ""
    if baseline is not None:
        if audit.counted == "trials":
            # The square of the error is the sum of what either run adds, which is as the inverse of its size.
            now, then = 1.0, 1 / baseline
            wanted = (now + then) / factor
            enough_there = then <= wanted / 2
            factor = now / (wanted - then) if enough_there else 2 / wanted
        else:
            enough_there = factor <= baseline  # units are compared with themselves
        if factor <= 1 and not enough_there:
            return f"A baseline of about {math.ceil(size * factor)} {audit.counted} would do (this run has {size})."
        there = "" if enough_there else ", and as many in the baseline"
    return f"About {math.ceil(size * factor)} {audit.counted} would do (now {size}){there}."


def missing_reason(measurement: Measurement) -> str | None:
    """Why so many answers are missing that a pass cannot be given, or `None`.

    More than 10 % are missing, or the groups' shares differ by more than 5 points with a Fisher p below 0.05.
    """
    absent = sum(measurement.missing.values())
    asked = absent + sum(measurement.n.values())
    if asked == 0 or absent == 0:
        return None
    by_group = ", ".join(
        f"{count} of {count + measurement.n.get(name, 0)} for {name}" for name, count in measurement.missing.items()
    )
    if absent > MISSING_SHARE * asked:
        return f"{absent / asked:.0%} of the answers are missing ({by_group})"
    tables = [(count, measurement.n.get(name, 0)) for name, count in measurement.missing.items()]
    shares = [count / (count + n) if count + n else 0.0 for count, n in tables]
    if len(tables) >= 2 and max(shares) - min(shares) > MISSING_GAP:
        # Deferred, as scipy.stats takes half a second to import and few runs come this far.
        from scipy.stats import fisher_exact

        most, least = tables[shares.index(max(shares))], tables[shares.index(min(shares))]
        if float(fisher_exact(np.array([most, least])).pvalue) < MISSING_P:
            return f"answers are missing unevenly ({by_group})"
    return None
