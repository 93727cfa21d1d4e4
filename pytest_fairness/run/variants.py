"""The other wordings that a probe names, asked and measured beside its own: which of them lowers bias, at what cost?

A variant has no verdict. What is found of it stands in the details of the item that it was measured for, and nothing
that goes wrong with a variant touches that item's verdict or baseline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from typing import Literal

import numpy as np

from pytest_fairness import kinds
from pytest_fairness.baselines.verdicts import missing_reason
from pytest_fairness.errors import BaselineStale, FairnessError, NotMeasurable
from pytest_fairness.records import Answer, Comparison, Json, Request
from pytest_fairness.run.probe_items import Measured, ProbeItem
from pytest_fairness.run.run import Run
from pytest_fairness.stats import differences, normal, proportions
from pytest_fairness.targets.base import Target

ALPHA = 0.05
"""Of the test that must agree with an interval before a variant is said to lower bias."""

Effect = Literal["lower", "higher", "unclear"]


def of(part: ProbeItem) -> dict[str, ProbeItem]:
    """The item in each of its probe's variants that asks anything else for it."""
    if not part.asks or not part.probe.variants:
        return {}
    found = {name: replace(part, probe=part.probe.variant(name)) for name in part.probe.variants}
    return {
        name: variant
        for name, variant in found.items()
        if any(own != other for own, other in zip_longest(part.requests, variant.requests))
    }


def requests(parts: Iterable[ProbeItem], *, own_first: bool = False) -> Iterator[Request]:
    """What items and their variants ask, in the order in which it is sent: of each probe its own questions first.

    Made one after the other, as there may be very many.

    Args:
        parts: the items, each at the look that is planned.
        own_first: whether all probes' own questions come before any variant's, as where not everything may be sent.
    """
    others: list[ProbeItem] = []
    for _, group in groupby(parts, key=lambda part: id(part.probe)):
        of_probe = list(group)
        for part in of_probe:
            yield from part.requests
        others += [variant for part in of_probe for variant in of(part).values()]
        if not own_first:
            for variant in others:
                yield from variant.requests
            others.clear()
    for variant in others:
        yield from variant.requests


def beside(run: Run, measured: Measured, target: Target | None) -> Measured:
    """The same measurement with `variants` in its details, by name, where the probe has any; asks and waits.

    A variant that could be measured has `value`, `interval`, `effect` (`lower`, `higher` or `unclear`), the `change` of
    loss from the probe's own wording (negative is better) with `change_interval` and one-sided `p_value` (of the
    hypothesis that it lowers nothing), `n`, `missing`, `unusable` (shares of answers) and `quality`; any other its
    `error`.
    """
    if target is None:
        return measured
    found = {name: _found(run, measured, variant, target) for name, variant in of(measured.part).items()}
    if not found:
        return measured
    details = {**measured.measurement.details, "variants": found}
    return replace(measured, measurement=replace(measured.measurement, details=details))


def _found(run: Run, own: Measured, variant: ProbeItem, target: Target) -> dict[str, Json]:
    try:
        other = run.measure(variant, target)
        change = _change(run, own, other)
    except FairnessError as error:
        return {"error": " ".join(str(error).split())}
    measurement = other.measurement
    told = missing_reason(measurement)
    return {
        "value": measurement.value,
        "interval": measurement.interval and list(measurement.interval),
        "effect": "unclear" if told else change.effect,
        **({"unclear": told} if told else {}),
        "change": change.value,
        "change_interval": change.interval and list(change.interval),
        "p_value": change.p_value,
        "n": dict(measurement.n),
        "missing": dict(measurement.missing),
        "unusable": _unusable(own.about, other.about),
        "quality": _quality(own, other),
    }


@dataclass(frozen=True)
class _Change:
    """How far a variant moves loss; negative is better."""

    value: float
    interval: tuple[float, float] | None
    p_value: float | None
    effect: Effect


def _change(run: Run, own: Measured, other: Measured) -> _Change:
    """The item's own comparison of two runs, with its own wording for the present one and the variant before it."""
    first, second = _alike(own.answers, other.answers)
    gain = _compared(run, own, other, first, second)
    untested = any(concern.withholds == "test" for each in (own, other) for concern in each.measurement.concerns)
    if gain.interval is None:
        # What has no interval is judged by its test, either way.
        loss = _compared(run, other, own, second, first)
        less, more = (
            each.p_value is not None and each.p_value <= own.part.item.alpha and not untested for each in (gain, loss)
        )
        audit = own.part.audit
        value = audit.loss(other.value) - audit.loss(own.value)
        effect: Effect = "unclear" if less == more else "lower" if less else "higher"
        return _Change(value, None, gain.p_value, effect)
    low, high = -gain.interval[1], -gain.interval[0]
    effect = "unclear"
    if not untested and high < 0 and (gain.p_value is None or gain.p_value <= ALPHA):
        effect = "lower"
    elif not untested and low > 0:
        effect = "higher"
    return _Change(-gain.value, (low, high), gain.p_value, effect)


def _compared(run: Run, now: Measured, then: Measured, first: Sequence[Answer], second: Sequence[Answer]) -> Comparison:
    part = now.part
    key = run.key_of("variant", part, first, second)
    kept = run.store.cache.get(key, Comparison.from_json)
    if kept is not None:
        return kept
    try:
        runs = (run.prepared(part, answers) for answers in (first, second))
        comparison = part.audit.compare(part.probe, part.item, *runs)
    except (NotMeasurable, BaselineStale):
        # Too few of the same units: as two runs that have nothing to do with each other.
        measurement = then.measurement
        return part.audit.compare_values(now.measurement, measurement.value, measurement.standard_error, paired=False)
    run.store.cache.put(key, comparison.to_json())
    return comparison


def _alike(own: Sequence[Answer], other: Sequence[Answer]) -> tuple[Sequence[Answer], Sequence[Answer]]:
    """The answers of both without the number of their prompt, where one has more prompts than the other."""
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
    """Shares of answers that were refused, unreadable or failed, and their difference (Newcombe 1998)."""
    counts = [(sum(not answer.usable for answer in run), len(run)) for run in (other, own)]
    shares = [lost / asked if asked else 0.0 for lost, asked in counts]
    return {
        "share": shares[0],
        "own": shares[1],
        "change": shares[0] - shares[1],
        "interval": list(proportions.newcombe(*counts[0], *counts[1], normal.quantile(0.975))),
    }


def _quality(own: Measured, other: Measured) -> dict[str, Json] | None:
    """How good the answers are, over the units that both have; `None` where the probe does not say what is good."""
    probe = own.part.probe
    ours, theirs = kinds.quality(probe, own.answers), kinds.quality(probe, other.answers)
    shared = sorted({*ours.scores} & {*theirs.scores}) if ours and theirs else []
    if ours is None or theirs is None or not shared:
        return None
    before, after = (np.array([each.scores[unit] for unit in shared]) for each in (ours, theirs))
    change, interval = differences.paired_mean(after, before)
    return {
        "measure": ours.measure,
        "value": float(after.mean()),
        "own": float(before.mean()),
        "change": change,
        "interval": interval and list(interval),
        "units": len(shared),
    }
