"""Rules that turn a measurement and its comparison with the baseline into a verdict with a reason.

A verdict depends only on the measurement, the comparison and the settings; the order of items has no influence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pytest_fairness.audits import rules
from pytest_fairness.audits.base import AnyAudit, AnyItem, Decision
from pytest_fairness.audits.info import Direction
from pytest_fairness.audits.rules import MOST_UNREAD, UnreadAnswers, rule_of
from pytest_fairness.errors import counted, significant
from pytest_fairness.records import (
    AccumulatedEvidence,
    Comparison,
    Concern,
    Explanation,
    Measurement,
    Pair,
    Reversal,
    Verdict,
    VerdictName,
)
from pytest_fairness.stats import intervals

NAMED_CONTRIBUTORS = 5
"""Maximum number of top contributors in a verdict's reason."""
SHOWN_P = 0.001
"""Minimum p-value that a reason shows. Smaller values are shown as `p < 0.001`, because they are extrapolated."""
MOST_EVIDENCE = 1e6
"""Largest evidence that a reason shows as a number."""
MOST_TIMES = 1000
"""Maximum factor by which the advice suggests increasing the number of answers."""


@dataclass(frozen=True)
class BaselineEntry:
    """Baseline of one item, reduced to what its verdict depends on.

    Attributes:
        value: the stored value.
        stale_parts: parts of the probe that changed since the baseline was made (`prompt`, `axis race`).
        n, missing: numbers of read and of unread answers by group, from which the value was measured; empty if unknown.
        note: sentence about the baseline for the verdict's reason.
        new: whether this run becomes the baseline; then only a limit can make the item fail.
    """

    value: float
    stale_parts: Sequence[str] = ()
    n: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    note: str | None = None
    new: bool = False


def decide(
    audit: AnyAudit,
    item: AnyItem,
    measurement: Measurement,
    *,
    baseline: BaselineEntry | None,
    comparison: Comparison | None,
    trials: int | None,
    accept: str,
    runs: AccumulatedEvidence | None = None,
) -> Verdict:
    """Return the verdict on one item; with the evidence of several `runs`, the change is judged by all of them.

    There is no comparison if the baseline is missing or stale. `trials` is the number of the units of `Audit.counted`,
    for advice on the size of a run; `None` for answers in a file. `accept` is the command that makes or accepts a
    baseline, which the reason shows.
    """
    if not measurement.explanation.phrase:
        measurement = replace(measurement, explanation=audit.explanation(item, measurement))
    if comparison is not None and comparison.explanation == Explanation():
        comparison = replace(comparison, explanation=audit.explanation_of_change(item, comparison))
    limit, tolerance = item.settings.limit, tolerance_of(audit, item)
    what = f"{item.id}: {measurement.explanation.phrase}"
    concern = gravest_concern(measurement)
    rule = rule_of(audit, item)
    minimum_detectable = rule.minimum_detectable(item, measurement, comparison, tolerance)

    notes = notes_on(measurement, baseline)
    if runs is not None and runs.not_counted:
        notes += f" This run does not count: it is a run {runs.not_counted}."
    without_failure = next((doubt for doubt in measurement.concerns if doubt.withholds == "failure"), None)
    change: Decision | None = None
    value: Decision | None = None
    bounds: list[UnreadAnswers] = []

    def verdict(name: VerdictName, reason: str, undecided: str | None = None) -> Verdict:
        decided = change or Decision("unclear")
        # A change that may be due to chance has no contributors to name.
        is_significant = (
            decided.significant
            or decided.changed_sides
            or (value is not None and value.outcome == "beyond" and value.significant)
        )
        top = named_contributors(audit, measurement, comparison) if is_significant else []
        because = f" Top contributors: {', '.join(top)}." if top and name is not VerdictName.PASS else ""
        return Verdict(
            name,
            f"{reason}{because}{notes}",
            minimum_detectable,
            decided.significant,
            decided.upper_bound,
            top,
            undecided,
        )

    if baseline is not None and baseline.stale_parts:
        parts = ", ".join(baseline.stale_parts)
        # The command is last, so that it can be copied to the end of the line.
        return Verdict(
            VerdictName.STALE_BASELINE,
            f"{what}, but the baseline is stale; changed since the baseline was made: {parts}.{notes} Look at the "
            f"answers, then accept: {accept}",
            minimum_detectable,
            undecided=f"changed since the baseline was made: {parts}",
        )
    if comparison is None and limit is None and not (baseline is not None and baseline.new):
        first = (
            "Make a baseline: "
            if concern is None
            else f"Before you make a baseline, solve this problem: {concern.message}. Then: "
        )
        cure = first + accept
        return Verdict(
            VerdictName.NO_BASELINE,
            f"{what}, with no baseline and no limit.{notes} {cure}",
            minimum_detectable,
            undecided=None if concern is None else concern.message,
        )
    what += _comparison_text(audit, item, measurement, baseline, comparison)

    if concern is not None and (concern.withholds == "verdict" or (concern.withholds == "test" and rule.tested)):
        return verdict(VerdictName.INCONCLUSIVE, f"{what}; {concern.message}.", concern.message)
    if baseline is not None and comparison is not None:
        difference = audit.info.loss(measurement.value) - audit.info.loss(baseline.value)
        change = (
            rule.judge_change(audit, item, comparison, tolerance, difference)
            if runs is None
            else rules.judge_runs(runs, item, tolerance)
        )
        if change.outcome == "within" and not comparison.from_answers and audit.tells_side(measurement) is False:
            sides = "the baseline's value, without its answers, does not say which group was ahead"
            change = Decision("unclear", times_more_units=math.inf, explanation=sides)
        estimate = _judged_change(comparison, change) if rule.tested else difference
        if runs is not None:
            estimate = max(runs.level, runs.worsening) if change.outcome == "beyond" else runs.level
        elif change.outcome == "within" and audit.info.better is Direction.ZERO:
            # Unread answers may also have moved the gap to the other side than the change is measured on.
            estimate = max(estimate, difference)
        before = baseline.value, baseline.n, baseline.missing
        bounds.append(rules.unread_of_change(audit, item, measurement, estimate, *before, tolerance))
        if change.outcome == "beyond" and without_failure is None:
            why_significant = (
                _significance_text(item, comparison, change) if runs is None else f"; {_worsening_of_runs(runs)}"
            )
            return verdict(VerdictName.REGRESSION, f"{what}{why_significant}.{bounds[-1].assumption}")
    if limit is not None:
        value = rule.judge_value(audit, item, measurement, limit, tolerance)
        bounds.append(rules.unread_of_value(audit, item, measurement, limit, tolerance))
    decisions = [decision for decision in (change, value) if decision is not None]
    if without_failure is not None and any(decision.outcome == "beyond" for decision in decisions):
        return verdict(VerdictName.INCONCLUSIVE, f"{what}.", without_failure.message)
    if value is not None and value.outcome == "beyond":
        surest = "surest for " if len(measurement.pairs) > 1 else ""
        pair = "" if value.pair is None else f"; {surest}{_pair_text(value.pair)} ({_p(value.pair.p_value)})"
        return verdict(VerdictName.OVER_LIMIT, f"{what}{pair}.{bounds[-1].assumption}")
    if undecided := [decision for decision in decisions if decision.outcome == "unclear"]:
        if runs is not None and change in undecided:
            why = _undecided_runs(runs, undecided[0])
            return verdict(VerdictName.INCONCLUSIVE, f"{what}; {why.long}.", why.short)
        why = _undecided(item, comparison, change, value)
        growth = max(decision.times_more_units for decision in undecided)
        unclear = replace(undecided[0], decidable=_decidable(undecided))
        more = _advice(audit, item, measurement, trials, growth, baseline if change in undecided else None, unclear)
        if math.isinf(growth) and change in undecided and comparison is not None and not comparison.from_answers:
            more = _Text(
                "The run cannot be compared with the baseline's answers, so more trials do not help. Make a new "
                "baseline with --fairness-rebaseline.",
                "needs a new baseline",
            )
        return verdict(VerdictName.INCONCLUSIVE, f"{what}; {why.long}. {more.long}", f"{why.short}; {more.short}")
    if concern is not None and concern.withholds != "test":
        return verdict(VerdictName.INCONCLUSIVE, f"{what}; {concern.message}.", concern.message)
    for decision, unread_answers in zip(decisions, bounds, strict=True):
        if (hidden := unread_answers.hidden(decision, tolerance)) is not None:
            remedy = "A pass must hold however these answers fell: find out why they could not be read"
            return verdict(VerdictName.INCONCLUSIVE, f"{what}; {hidden}. {remedy}.", hidden)
    told = _evidence(item, comparison, change, value) if runs is None else f" {_pass_of_runs(runs)}"
    return verdict(VerdictName.PASS, f"{what}.{told}")


def _decidable(undecided: Sequence[Decision]) -> str | None:
    """Return the settings with which a run of this size would decide all of these, if there are any.

    If the change and the value are both undecided, another tolerance alone does not help with the limit.
    """
    known = [decision.decidable for decision in undecided if decision.decidable is not None]
    if len(known) < len(undecided):
        return None
    by_setting: dict[str, list[str]] = {}
    for phrase in known:
        by_setting.setdefault(phrase.split(" of ")[0], []).append(phrase)
    # Of two tolerances, the larger one decides both.
    return " with ".join(max(each, key=lambda phrase: float(phrase.split()[3])) for each in by_setting.values())


def notes_on(measurement: Measurement, baseline: BaselineEntry | None = None) -> str:
    notes = [concern.message for concern in measurement.concerns if concern.withholds in ("nothing", "failure")]
    if baseline is not None and baseline.note:
        notes.append(baseline.note)
    return "".join(f" {note[:1].upper()}{note[1:]}." for note in notes)


def _comparison_text(
    audit: AnyAudit,
    item: AnyItem,
    measurement: Measurement,
    baseline: BaselineEntry | None,
    comparison: Comparison | None,
) -> str:
    """Return the end of the verdict's reason: `, was 0.31: +0.12, tolerance 0.1, limit 0.5`."""
    text = ", the new baseline" if baseline is not None and baseline.new else ""
    if baseline is not None and comparison is not None:
        tolerance = tolerance_of(audit, item)
        change = change_text(audit, comparison) + (f" for {comparison.pair}" if comparison.pair else "")
        text += f", was {significant(baseline.value)}: {change}, tolerance {significant(tolerance)}"
        if comparison.same_answers:
            text += " (the answers are those of the baseline, so that there is no change to test)"
        if not comparison.from_answers:
            reason = comparison.not_compared or "the baseline's answers are absent"
            text += f" (only the stored value is compared: {reason})"
    if item.settings.limit is not None:
        text += f", limit {significant(item.settings.limit)}"
    if isinstance(measurement.placebo, str):
        text += f", no placebo value ({measurement.placebo})"
    elif measurement.placebo is not None:
        text += f", placebo {significant(measurement.placebo)}"
    return text


def change_text(audit: AnyAudit, comparison: Comparison) -> str:
    """Return the phrase of the explanation or, by default, how much worse or better."""
    if comparison.explanation.change:
        return comparison.explanation.change
    if not comparison.value:
        return "unchanged"
    by = significant(abs(comparison.value))
    change = f"{'worse' if comparison.value > 0 else 'better'} by {by}"
    if comparison.reversal is not None:
        change = f"the gap changed by {by}, and now favours the other group"
    return audit.change_phrase.format(change=change)


def named_contributors(audit: AnyAudit, measurement: Measurement, comparison: Comparison | None) -> list[str]:
    return [part.name for part in audit.contributors(measurement, comparison)[:NAMED_CONTRIBUTORS]]


def _p(p_value: float | None) -> str:
    return "p unknown" if p_value is None else f"p = {p_value:.2g}" if p_value >= SHOWN_P else f"p < {SHOWN_P:g}"


def tolerance_of(audit: AnyAudit, item: AnyItem) -> float:
    return audit.tolerance_of(item.settings)


def gravest_concern(measurement: Measurement) -> Concern | None:
    """Return the first concern that prevents a verdict or a pass, missing answers last; the measurement sorts them."""
    absent = missing_reason(measurement)
    missing = () if absent is None else (Concern("missing_answers", absent),)
    concerns = (*measurement.concerns, *missing)
    return next((concern for concern in concerns if concern.withholds not in ("nothing", "failure")), None)


def _judged_change(comparison: Comparison, change: Decision) -> float:
    if change.pair is not None:
        return change.pair.value
    if comparison.reversal is not None:
        gap = comparison.reversal.value
        return gap if change.changed_sides else min(gap, comparison.value)
    return comparison.value


def _significance_text(item: AnyItem, comparison: Comparison, change: Decision) -> str:
    reversal = comparison.reversal
    if change.pair is not None:
        moved = f"the gap between {change.pair} changed by {significant(change.pair.value)}"
        return f"; {moved}; significant ({_p(change.pair.p_value)}, alpha {item.alpha:.2g})"
    if change.changed_sides and reversal is not None:
        return f"; {_reversal_text(reversal)} ({_p(reversal.p_value)}, alpha {item.alpha:.2g})"
    if not change.significant or comparison.p_value is None:
        return ""
    sides = "" if reversal is None else f"; {_reversal_text(reversal)}"
    return f"{sides}; significant ({_p(comparison.p_value)}, alpha {item.alpha:.2g})"


def _worsening_of_runs(runs: AccumulatedEvidence) -> str:
    """Return the likeliest worsening, with what else changed in its first run."""
    many = counted(runs.runs_since, "run")
    since = f"slowly worse since {runs.since}" if runs.drift else f"worse since the run of {runs.since}"
    changed = f"; changed in that run: {', '.join(runs.changed)}" if runs.changed else ""
    return f"{since}, by {significant(runs.worsening)} in {many} ({_evidence_of_runs(runs)}){changed}"


def _evidence_of_runs(runs: AccumulatedEvidence) -> str:
    shown = "over a million" if runs.e_value > MOST_EVIDENCE else significant(runs.e_value)
    return f"evidence {shown}, a regression needs {significant(runs.needed)}"


def _undecided_runs(runs: AccumulatedEvidence, change: Decision) -> _Text:
    more = "further runs decide"
    if change.exceeds and runs.e_value >= 1:
        perhaps = f"perhaps worse since {runs.since} ({_evidence_of_runs(runs)})"
        return _Text(f"perhaps {_worsening_of_runs(runs)}; {more}", f"{perhaps}; {more}")
    together, are = _last(runs)
    if change.exceeds:
        told = f"{together} {are} worse by {significant(runs.level)}, but not significantly"
        return _Text(f"{told}; {more}", f"worse, but not significantly; {more}")
    upper, accepted = significant(change.upper_bound or 0.0), significant(change.accepted or 0.0)
    told = f"{together} may be worse by up to {upper} (95 % confidence); a pass needs at most {accepted}"
    return _Text(f"{told}; {more}", f"may be worse by up to {upper}, a pass needs at most {accepted}; {more}")


def _pass_of_runs(runs: AccumulatedEvidence) -> str:
    upper = runs.level + intervals.quantile(0.95) * runs.level_error
    last, are = _last(runs)
    of = f"{last} of {runs.runs:,} since the baseline"
    return f"With 95 % confidence, {of} {are} not worse by more than {significant(max(0.0, upper))}."


def _last(runs: AccumulatedEvidence) -> tuple[str, str]:
    """Return a phrase for the last runs that are judged together, and its verb."""
    return ("the last run", "is") if runs.window == 1 else (f"the last {runs.window:,} runs together", "are")


def _pair_text(pair: Pair) -> str:
    low, high = pair.interval
    return f"{pair}: {significant(pair.value)}, 95 % interval {significant(low)} to {significant(high)}"


def _reversal_text(reversal: Reversal) -> str:
    return f"the advantage changed sides: {reversal.description}"


class _Text(NamedTuple):
    """Phrase in a long form for the verdict's reason, and in a short form for `Verdict.undecided`."""

    long: str
    short: str


def _undecided(item: AnyItem, comparison: Comparison | None, change: Decision | None, value: Decision | None) -> _Text:
    if change is not None and comparison is not None and change.outcome == "unclear":
        if change.explanation is not None:
            return _Text(change.explanation, change.explanation)
        if not change.exceeds:
            return _not_excluded_text("the item", "may be worse by", change)
        if change.significant:
            return _Text(
                "significantly worse than the baseline, but not shown to exceed the tolerance",
                "not shown to exceed the tolerance",
            )
        if comparison.p_value is None:
            return _Text("worse than the baseline, but not significantly", "not significant")
        return _Text(
            f"worse than the baseline, but not significantly ({_p(comparison.p_value)}, alpha {item.alpha:.2g})",
            f"needs p ≤ {item.alpha:.2g}, has {comparison.p_value:.2g}",
        )
    if value is None:
        return _Text("", "")
    if value.exceeds:
        return _Text("over the limit, but not significantly", "over the limit, but not significantly")
    if value.explanation is not None:
        return _Text(value.explanation, value.explanation)
    return _not_excluded_text("the value", "may exceed the limit by", value)


def _not_excluded_text(subject: str, may: str, decision: Decision) -> _Text:
    if decision.upper_bound is None or decision.accepted is None:
        unknown = "a pass needs the standard error of the value, which is unknown"
        return _Text(unknown, unknown)
    upper, accepted = significant(decision.upper_bound), significant(decision.accepted)
    return _Text(
        f"{subject} {may} up to {upper} (95 % confidence); a pass needs at most {accepted}",
        f"{may} up to {upper}, a pass needs at most {accepted}",
    )


def _evidence(item: AnyItem, comparison: Comparison | None, change: Decision | None, value: Decision | None) -> str:
    text = ""
    if change is not None and comparison is not None:
        if change.upper_bound is not None:
            text += (
                " With 95 % confidence, the item is not worse by more than "
                f"{significant(max(0.0, change.upper_bound))}."
            )
        if change.significant and comparison.value > 0:
            p_value = _p(comparison.p_value)
            text += f" The item is significantly worse than the baseline, but within the tolerance ({p_value})."
    elif value is not None and value.upper_bound is not None and item.settings.limit is not None:
        within = "" if value.upper_bound <= 0 else f" by more than {significant(value.upper_bound)}"
        text += f" With 95 % confidence, the limit is not exceeded{within}."
    return text


def _advice(
    audit: AnyAudit,
    item: AnyItem,
    measurement: Measurement,
    size: int | None,
    factor: float,
    baseline: BaselineEntry | None,
    decision: Decision,
) -> _Text:
    """Say how many answers a decision needs, or what else can be done.

    Trials can be added at will. Records, entities or questions, and the answers in a file, may be all that there are:
    the advice then also names the setting that these can decide. `size` is the number of units of this run (`None` for
    a file), `factor` the growth of run and baseline that a decision needs; the baseline is given if the change is
    undecided.
    """
    hopeless = not math.isfinite(factor) or factor > MOST_TIMES
    instead = or_else = ""
    if (known := decision.decidable) and (
        hopeless or decision.at_threshold or size is None or audit.counted != "trials"
    ):
        instead = f" {known[:1].upper()}{known[1:]} can be decided at this size."
        or_else = f", or {known}"
    if decision.at_threshold:
        unsure = "no number of answers is sure to decide"
        return _Text(
            f"The value exceeds the limit by less than its standard error, so that {unsure}.{instead}",
            f"{unsure}{or_else.replace(', or', '; choose')}",
        )
    if hopeless:
        return _Text(
            f"No feasible number of answers would give a decision.{instead}",
            f"no feasible number of answers would decide{or_else.replace(', or', '; choose')}",
        )
    if size is None:
        times = f"about {factor:.1f} times as many answers"
        return _Text(f"Needs {times} to decide.{instead}", f"{times} would decide{or_else}")
    answers, ratio = sum(measurement.n.values()), None
    if baseline is not None and answers:
        ratio = sum(baseline.n.values()) / answers or None
    baseline_too = ""
    if ratio is not None:
        if audit.counted == "trials":
            # The squared standard errors of both runs add up; each is proportional to 1 / (number of trials).
            wanted = (1.0 + 1 / ratio) / factor
            baseline_is_enough = 1 / ratio <= wanted / 2
            factor = 1.0 / (wanted - 1 / ratio) if baseline_is_enough else 2 / wanted
        else:
            baseline_is_enough = factor <= ratio  # each unit is compared with itself in the other run
        if factor <= 1 and not baseline_is_enough:
            needed = f"a baseline of about {math.ceil(size * factor):,} {audit.counted}"
            return _Text(f"Needs {needed} to decide; this run had {size:,}.", f"{needed} would decide")
        baseline_too = "" if baseline_is_enough else ", and as many in the baseline"
    counted = audit.counted
    if measurement.evidence.observations is not None and counted != "trials":
        size, counted = measurement.evidence.observations, "observations"  # units with equal prompts would not help
    if measurement.samples and baseline is None:
        sample = min(measurement.samples, key=lambda sample: min(sample.numbers.values()))
        size, counted = min(sample.numbers.values()), f"{sample.units} a group"  # more answers of each would not help
    needed = f"about {math.ceil(size * factor):,} {counted}"
    if item.probe.asks_all_units:
        return _Text(
            f"The files have only {size:,} {counted}, which are too few to decide ({needed} would).{instead}",
            f"the {size:,} {counted} of the files are too few{or_else.replace(', or', '; choose')}",
        )
    return _Text(
        f"Needs {needed} to decide{baseline_too}; this run had {size:,}.{instead}",
        f"{needed}{' in run and baseline' if baseline_too else ''} would decide{or_else}",
    )


def missing_reason(measurement: Measurement) -> str | None:
    """Return why missing answers prevent a pass whatever they say: more than half are missing; else `None`.

    `audits.rules` has the rule for smaller numbers.
    """
    absent = sum(measurement.missing.values())
    asked = absent + sum(measurement.n.values())
    if absent <= MOST_UNREAD * asked:
        return None
    by_group = ", ".join(
        f"{count} of {count + measurement.n.get(name, 0)} for {name}" for name, count in measurement.missing.items()
    )
    return f"{absent / asked:.0%} of the answers are missing ({by_group})"
