"""Measurements of a probe's variants and of an item's placebo."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from typing import Literal

import numpy as np

from pytest_fairness import kinds
from pytest_fairness.audits import rules
from pytest_fairness.audits.rules import rule_of
from pytest_fairness.baselines.verdicts import tolerance_of
from pytest_fairness.errors import BaselineStale, FairnessError, NotMeasurable, on_one_line, significant
from pytest_fairness.records import Answer, Comparison, Concern, Json, Measurement, Request
from pytest_fairness.run.items import RECENT, ProbeItem
from pytest_fairness.run.measuring import ItemMeasurement, Measurer
from pytest_fairness.stats import intervals
from pytest_fairness.stats.gaps import mean_error
from pytest_fairness.targets.base import Target

# Measurement of a probe's variants, which are alternative prompts or system prompts.
#
# The results show which variant lowers bias, and how many usable and correct answers it costs. The results are in
# the details of the item. A variant has no verdict, and an error of a variant changes neither the item's verdict nor
# its baseline.

ALPHA = 0.05
"""One-sided significance level of a variant's test.

A variant is reported to lower bias only if both this test and the confidence interval show a lower loss.
"""

Effect = Literal["lower", "higher", "unclear"]


def variants_of(item: ProbeItem) -> dict[str, ProbeItem]:
    """Return, for each variant of the item's probe, an item with the variant's prompts, by the variant's name.

    Variants that do not change the requests of the item are left out.
    """
    if not item.asks or not item.probe.variants:
        return {}
    found = {name: replace(item, probe=probe) for name, probe in item.probe.reworded.items()}
    return {
        name: variant
        for name, variant in found.items()
        if any(own != other for own, other in zip_longest(item.requests(), variant.requests()))
    }


def further_items(item: ProbeItem) -> list[ProbeItem]:
    """Return the items whose requests a run sends in addition to the item's own: its placebo and its variants."""
    placebo = placebo_of(item)
    return [*([] if placebo is None else [placebo]), *variants_of(item).values()]


def item_requests(items: Iterable[ProbeItem], *, own_first: bool = False) -> Iterator[Request]:
    """Yield the requests of items, their placebos and their variants one by one, because there may be millions.

    A request that several items need may be yielded several times. For each probe, the requests of its items and
    placebos come before the requests of its variants.
    """
    later: list[ProbeItem] = []
    for _, group in groupby(items, key=lambda item: id(item.probe)):
        of_probe = list(group)
        yield from _requests_of(of_probe)
        yield from _requests_of([placebo for item in of_probe if (placebo := placebo_of(item)) is not None])
        later += [variant for item in of_probe for variant in variants_of(item).values()]
        if not own_first:
            for variant in later:
                yield from variant.requests()
            later.clear()
    for variant in later:
        yield from variant.requests()


def _requests_of(items: Sequence[ProbeItem]) -> Iterator[Request]:
    seen: set[object] = set()
    for item in items:
        selection = _selection(item)
        if selection is None or selection not in seen:
            seen.add(selection)
            yield from item.requests()


def _selection(item: ProbeItem) -> tuple[int, ...] | None:
    """Return a value that is equal only for items with the same requests; it is valid as long as the items exist.

    The value is `None` if the prompts cannot be made.
    """
    with suppress(FairnessError):
        labels = RECENT.labels_of(item.probe, item.trial_count)
        return (id(item.probe), item.trial_count, *map(item.uses, labels))
    return None


def with_variants(measurer: Measurer, measured: ItemMeasurement, target: Target | None) -> ItemMeasurement:
    """Return the measurement with the results of the probe's variants in its details, under `variants`.

    Requests of the variants are sent if their responses are not recorded.

    A measured variant has `value`, `interval`, `effect` (`lower`, `higher` or `unclear`), `n`, `missing`, `unusable`
    (shares of unusable answers) and `quality`. Its `change` is the change of the loss from the probe's own wording;
    negative is better. The change has the confidence interval `change_interval`. The one-sided `p_value` belongs to the
    null hypothesis that the variant does not lower the loss. If the unread answers of both wordings could
    explain the change, `effect` is `unclear`, and the key `unclear` holds the reason. A variant that could not be
    measured has only its `error`.
    """
    if target is None:
        return measured
    found = {
        name: _measured_variant(measurer, measured, variant, target)
        for name, variant in variants_of(measured.item).items()
    }
    if not found:
        return measured
    details = {**measured.measurement.details, "variants": found}
    return replace(measured, measurement=replace(measured.measurement, details=details))


def _measured_variant(measurer: Measurer, own: ItemMeasurement, variant: ProbeItem, target: Target) -> dict[str, Json]:
    try:
        other = measurer.measure(variant, target)
        change = _change(measurer, own, other)
    except FairnessError as error:
        return {"error": " ".join(str(error).split())}
    measurement = other.measurement
    unclear = _hidden_by_unread_answers(own, other, change)
    return {
        "value": measurement.value,
        "interval": measurement.interval and list(measurement.interval),
        "effect": "unclear" if unclear else change.effect,
        **({"unclear": unclear} if unclear else {}),
        "change": change.value,
        "change_interval": change.interval and list(change.interval),
        "p_value": change.p_value,
        "n": dict(measurement.n),
        "missing": dict(measurement.missing),
        "unusable": _unusable(own.counted_answers, other.counted_answers),
        "quality": _quality(own, other),
    }


def _hidden_by_unread_answers(own: ItemMeasurement, other: ItemMeasurement, change: _Change) -> str | None:
    item, tolerance = own.item, tolerance_of(own.item.audit, own.item)
    first, second = (
        rules.unread_of_change(item.audit, item, run, difference, before.value, before.n, before.missing, tolerance)
        for run, before, difference in (
            (own.measurement, other.measurement, -change.value),
            (other.measurement, own.measurement, change.value),
        )
    )
    nearest = abs(change.value) if change.interval is None else min(map(abs, change.interval))
    worsening = max(first.worsening, second.worsening)
    return f"{first.numbers} could explain the difference" if worsening and worsening >= nearest else None


@dataclass(frozen=True)
class _Change:
    """Change of the loss from the probe's own wording to a variant; negative is better."""

    value: float
    interval: tuple[float, float] | None
    p_value: float | None
    effect: Effect


def _change(measurer: Measurer, own: ItemMeasurement, variant: ItemMeasurement) -> _Change:
    """Return the change of the loss from the probe's own wording to a variant.

    Both wordings are compared like two runs: the own wording as the current run, and the variant as the baseline. The
    sign of the change is then reversed.
    """
    own_answers, variant_answers = _with_common_labels(own.answers, variant.answers)
    gain = _comparison(measurer, own, variant, own_answers, variant_answers)
    untested = any(concern.withholds == "test" for each in (own, variant) for concern in each.measurement.concerns)
    if gain.interval is None:
        # Without an interval, one-sided tests in both directions decide.
        loss = _comparison(measurer, variant, own, variant_answers, own_answers)
        less, more = (
            each.p_value is not None and each.p_value <= own.item.alpha and not untested for each in (gain, loss)
        )
        audit = own.item.audit
        value = audit.info.loss(variant.value) - audit.info.loss(own.value)
        effect: Effect = "unclear" if less == more else "lower" if less else "higher"
        return _Change(value, None, gain.p_value, effect)
    low, high = -gain.interval[1], -gain.interval[0]
    effect = "unclear"
    if not untested and high < 0 and (gain.p_value is None or gain.p_value <= ALPHA):
        effect = "lower"
    elif not untested and low > 0:
        effect = "higher"
    return _Change(-gain.value, (low, high), gain.p_value, effect)


def _comparison(
    measurer: Measurer,
    current: ItemMeasurement,
    baseline: ItemMeasurement,
    current_answers: Sequence[Answer],
    baseline_answers: Sequence[Answer],
) -> Comparison:
    """Return the audit's comparison of two runs.

    If the answers cannot be compared (for example, too few records are in both runs), the values are compared.
    """
    item = current.item
    key = measurer.key("variant", item, current_answers, baseline_answers)
    if (kept := measurer.kept(key, Comparison.from_json)) is not None:
        return kept
    try:
        runs = (measurer.prepared(item, answers) for answers in (current_answers, baseline_answers))
        return measurer.keep(key, item.audit.compare(item, *runs))
    except (NotMeasurable, BaselineStale):
        other = baseline.measurement
        return item.audit.compare_values(current.measurement, other.value, other.standard_error, from_answers=False)


def _with_common_labels(own: Sequence[Answer], other: Sequence[Answer]) -> tuple[Sequence[Answer], Sequence[Answer]]:
    runs = (own, other)
    names = [{answer.labels.get("prompt") for answer in run} for run in runs]
    if names[0] == names[1]:
        return own, other
    first, second = (
        [
            replace(answer, labels={name: text for name, text in answer.labels.items() if name != "prompt"})
            for answer in run
        ]
        for run in runs
    )
    return first, second


def _unusable(own: Sequence[Answer], other: Sequence[Answer]) -> dict[str, Json]:
    """Return the shares of unusable answers of a variant and of the probe's own wording, and their difference.

    The confidence interval of the difference is Newcombe's (1998).
    """
    counts = [(sum(not answer.usable for answer in run), len(run)) for run in (other, own)]
    shares = [lost / asked if asked else 0.0 for lost, asked in counts]
    return {
        "share": shares[0],
        "own": shares[1],
        "change": shares[0] - shares[1],
        "interval": list(intervals.newcombe(*counts[0], *counts[1], intervals.quantile(0.975))),
    }


def _quality(own: ItemMeasurement, other: ItemMeasurement) -> dict[str, Json] | None:
    """Return the quality of the answers to the probe's own wording and to a variant.

    Only units with answers to both wordings count. The result is `None` if there is no such unit, or if the probe has
    no right answers.
    """
    probe = own.item.probe
    ours, theirs = kinds.quality(probe, own.answers), kinds.quality(probe, other.answers)
    shared = sorted({*ours.scores} & {*theirs.scores}) if ours and theirs else []
    if ours is None or theirs is None or not shared:
        return None
    before, after = (np.array([each.scores[unit] for unit in shared]) for each in (ours, theirs))
    differences = after - before
    change, n = float(differences.mean()), len(differences)
    # A single unit gives no standard error.
    interval = None if n < 2 else intervals.interval(change, mean_error(differences), degrees_of_freedom=n - 1)
    return {
        "measure": ours.measure,
        "value": float(after.mean()),
        "own": float(before.mean()),
        "change": change,
        "interval": interval and list(interval),
        "units": len(shared),
    }


# Placebo of an item: the same audit, with prompts that name the unmarked group in other words.
#
# The placebo's value is the noise floor of the item's value. If the placebo's value exceeds the tolerance, the audit
# measures any rewording of the prompts. The item then fails only if its value is significantly worse than the
# placebo's.

PLACEBO_EFFECT = "placebo_effect"
"""Name of the concern that the placebo's value exceeds the tolerance."""
KEPT = ("value", "interval", "standard_error", "p_value", "n", "missing")
"""Numbers of the placebo's measurement that reports show."""


def placebo_of(item: ProbeItem) -> ProbeItem | None:
    """Return an item that measures the item's placebo swap, at the same interim or final analysis.

    Return `None` if the probe has no placebo, or has an answer file.
    """
    found = item.probe.placebo(item.labels) if item.asks else None
    if found is None:
        return None
    probe, labels = found
    return replace(item, probe=probe, labels=labels, subject=f"{item.subject}; placebo")


def with_placebo(measurer: Measurer, measured: ItemMeasurement, target: Target | None) -> ItemMeasurement:
    """Return the measurement with the placebo's result in its details (`placebo`), and with any concern about it.

    Without a placebo or a target, the measurement is returned unchanged. The placebo's result has the numbers in
    `KEPT`, or only an `error` if it could not be measured. Requests of the placebo are sent if their responses are not
    recorded.
    """
    item, measurement = measured.item, measured.measurement
    placebo = placebo_of(item)
    if placebo is None or target is None:
        return measured
    concerns = list(measurement.concerns)
    value: float | str
    try:
        found = measurer.measure(placebo, target).measurement
    except FairnessError as error:
        value = on_one_line(error).rstrip(".")
        result: dict[str, Json] = {"error": value}
    else:
        value = found.value
        result = {name: value for name, value in found.to_json().items() if name in KEPT}
        if (concern := concern_of(item, measurement, found)) is not None:
            concerns.append(concern)
    details = {**measurement.details, "placebo": result}
    return replace(measured, measurement=replace(measurement, details=details, concerns=concerns, placebo=value))


def concern_of(item: ProbeItem, measurement: Measurement, placebo: Measurement) -> Concern | None:
    """Return the concern that the placebo's value exceeds the tolerance; `None` if it does not.

    If the item's decision rule uses a statistical test, the placebo's value must also be significant.
    """
    info, tested = item.audit.info, rule_of(item.audit, item).tested
    tolerance = tolerance_of(item.audit, item)
    no_effect = 0.0 if info.effect is None else info.effect.no_effect
    excess = info.loss(placebo.value) - info.loss(no_effect)
    is_chance = tested and placebo.p_value is not None and placebo.p_value > item.alpha
    if not excess > tolerance or is_chance:  # the tolerance may be NaN
        return None
    worse = info.loss(measurement.value) - info.loss(placebo.value)
    if tested and measurement.standard_error is not None and placebo.standard_error is not None:
        # Both values share the answers of the unmarked group, so that this standard error is rather too large.
        error = math.hypot(measurement.standard_error, placebo.standard_error)
        worse -= intervals.quantile(1 - item.alpha) * error
    alone = (
        f"the placebo swap alone exceeds the tolerance (value {significant(placebo.value)}, tolerance "
        f"{significant(tolerance)})"
    )
    if worse > 0:
        message = f"{alone}, but the item's own value is worse than the placebo's"
        return Concern(PLACEBO_EFFECT, message, withholds="nothing")
    message = (
        f"{alone}, and the item's own value is not {'significantly ' if tested else ''}worse than the "
        "placebo's: the audit may measure the effect of any rewording, not of the group. Use more prompts, or a larger "
        "tolerance"
    )
    return Concern(PLACEBO_EFFECT, message, withholds="failure")
