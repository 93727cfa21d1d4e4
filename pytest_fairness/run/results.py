"""Result of one item: its verdict, and all data about the item that reports show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace

from pytest_fairness.baselines.verdicts import NAMED_CONTRIBUTORS, BaselineEntry, decide, notes_on, tolerance_of
from pytest_fairness.errors import FairnessError, NotMeasurable, on_one_line
from pytest_fairness.plurals import joined
from pytest_fairness.probes.field_types import texts
from pytest_fairness.records import ItemResult, Size, Verdict, VerdictName
from pytest_fairness.run.comparing.baseline_comparer import BaselineComparison
from pytest_fairness.run.effect_sizes import effect_in_words
from pytest_fairness.run.examples import examples
from pytest_fairness.run.items.probe_items import ProbeItem
from pytest_fairness.run.measuring.measurements import ItemMeasurement

_FINGERPRINT = re.compile(r" \([^()]*\)$")
SHOWN_MODELS = 3
"""Maximum number of served models that a text names."""


def result_of(measured: ItemMeasurement, compared: BaselineComparison, nodeid: str, accept: str) -> ItemResult:
    """Return the result of an item, with the verdict on its measurement.

    Args:
        measured: measurement of the current run.
        compared: the baseline and the change since the baseline.
        nodeid: the item's id in pytest.
        accept: command that makes the current run the baseline; the verdict's reason shows the command.
    """
    entry, verdict = compared.entry, verdict_on(measured, compared, accept)
    change = served_change(measured.served, (entry and entry.served) or ())
    # The reasons of the two excluded verdicts end in a command.
    if change and verdict.name not in (VerdictName.STALE_BASELINE, VerdictName.NO_BASELINE):
        verdict = replace(verdict, reason=f"{verdict.reason} Note: the served model changed: {change}.")
    result = _result(measured, compared, nodeid, verdict, change)
    if verdict.name not in (VerdictName.REGRESSION, VerdictName.OVER_LIMIT):
        return result
    return replace(result, finding=asdict(measured.item.audit.finding(result)))


def measured_only(measured: ItemMeasurement, nodeid: str) -> ItemResult:
    """Return the result of an item without a verdict, baseline, limit and tolerance (`--fairness-measure`).

    Args:
        measured: measurement of the current run.
        nodeid: the item's id in pytest.
    """
    item, measurement = measured.item, measured.measurement
    result = _result(measured, BaselineComparison(), nodeid, Verdict(VerdictName.MEASURED, ""), None)
    reason, driven = f"{item.id}: {item.audit.describe(measurement)}", []
    if result.effect is not None:
        reason = f"{reason}; {result.effect['description']}"
        # A value that may be due to chance has no contributors to name.
        if result.effect["size"] not in (None, Size.NONE):
            driven = item.audit.top_contributors(measurement, None)[:NAMED_CONTRIBUTORS]
    elif item.audit.info.no_effect_size:
        reason = f"{reason}; no effect size: {item.audit.info.no_effect_size}"
    verdict = replace(result.verdict, reason=f"{reason}.{notes_on(measurement)}", contributors=driven)
    return replace(result, verdict=verdict, limit=None, tolerance=None)


def _result(
    measured: ItemMeasurement, compared: BaselineComparison, nodeid: str, verdict: Verdict, served: str | None
) -> ItemResult:
    """Return the result of an item with this verdict; `served` is the result of `served_change`."""
    item, entry, measurement = measured.item, compared.entry, measured.measurement
    effect = effect_in_words(item.audit.info, measurement)
    if measured.served:
        found = {
            "served_model": joined(measured.served, SHOWN_MODELS),
            **({"served_model_changed": served} if served else {}),
        }
        measurement = replace(measurement, details={**measurement.details, **found})
    return replace(
        _unmeasured(item, nodeid, verdict),
        measurement=measurement,
        comparison=compared.comparison,
        baseline=entry.for_reports() if entry else None,
        examples=() if verdict.name.outcome == "passed" else examples(measured, compared.answers),
        system=next(iter(texts(item.probe.system)), None),
        purpose=item.probe.description,
        extra_fields=item.probe.sampling.extra_fields if item.asks else {},
        effect=effect,
    )


def served_change(current: Sequence[str], baseline: Sequence[str]) -> str | None:
    """Return the change of the models that the server reports, such as `gpt-x-2026-05 → gpt-x-2026-09`.

    The result is `None` if the models of a run are unknown, or if the models did not change. If only the system
    fingerprints changed, the text shows the names with their fingerprints.
    """
    if not current or not baseline or set(current) == set(baseline):
        return None
    before, after = (sorted({_FINGERPRINT.sub("", model) for model in models}) for models in (baseline, current))
    if before == after:
        before, after = list(baseline), list(current)
    return f"{joined(before, SHOWN_MODELS)} → {joined(after, SHOWN_MODELS)}"


def verdict_on(measured: ItemMeasurement, compared: BaselineComparison, accept: str = "") -> Verdict:
    """Return the verdict on an item.

    Args:
        measured: measurement of the current run.
        compared: the baseline and the change since the baseline.
        accept: command that makes the current run the baseline; the verdict's reason shows the command.
    """
    item, entry = measured.item, compared.entry
    return decide(
        item.audit,
        item,
        measured.measurement,
        baseline=BaselineEntry(entry.value, compared.stale_parts, entry.n, entry.missing, compared.note, compared.new)
        if entry
        else None,
        comparison=compared.comparison,
        trials=_unit_count(measured),
        accept=accept,
    )


def _unit_count(measured: ItemMeasurement) -> int | None:
    """Return the item's number of units, such as trials (see `Audit.counted`); `None` if its answers are in a file."""
    item = measured.item
    if not item.asks:
        return None
    if item.audit.counted == "trials":
        return item.trial_count
    return int(measured.measurement.details[item.audit.counted])


def error_result(item: ProbeItem, error: BaseException, nodeid: str) -> ItemResult:
    """Return the result of an item that could not be measured."""
    name = VerdictName.NOT_MEASURABLE if isinstance(error, NotMeasurable) else VerdictName.ERROR
    reason = on_one_line(error) if isinstance(error, FairnessError) else f"{type(error).__name__}: {on_one_line(error)}"
    return _unmeasured(item, nodeid, Verdict(name, f"{item.id}: {reason}"))


def _unmeasured(item: ProbeItem, nodeid: str, verdict: Verdict) -> ItemResult:
    """Return the result of an item with this verdict and without a measurement."""
    return ItemResult(
        nodeid=nodeid,
        probe=item.probe.name,
        id=item.id,
        audit=item.audit_name,
        labels=item.labels,
        verdict=verdict,
        limit=item.settings.limit,
        tolerance=tolerance_of(item.audit, item),
        category=item.labels.get("category"),
        method=item.audit.info.to_json(),
    )
