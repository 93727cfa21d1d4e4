"""Audit `refusals`: difference between two groups in the share of refused or unusable answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from pytest_fairness.audits import answer_checks
from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.effects import cohens_h
from pytest_fairness.audits.findings import Finding, axis_of, details_of, shortened
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.text.gap_change import SWAPS, gap_change
from pytest_fairness.audits.text.groups import MINIMUM_DOCUMENTS, Groups, numbered
from pytest_fairness.audits.text.text_audit import TwoGroupAudit
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import (
    REFUSAL_CLASSES,
    Answers,
    Comparison,
    Concern,
    ItemResult,
    Json,
    Measurement,
    Status,
)
from pytest_fairness.stats.groups.share_change import ShareChange
from pytest_fairness.stats.intervals import normal, proportions

REFUSED = (Status.REFUSED, Status.UNREADABLE)
PARTLY = REFUSAL_CLASSES[1]


class Refusals(TwoGroupAudit[AuditSettings]):
    """Share of refused or unusable answers, marked minus unmarked group, −1..1; failed requests are left out."""

    info = AuditInfo(
        name="refusals",
        title="Unequal refusals",
        question="Is one group answered less often?",
        formula="share of refused or unusable answers: marked group − unmarked group",
        meaning="−1 to 1; 0 = equal shares. With Newcombe’s interval and Fisher’s exact test.",
        source="Newcombe 1998; Agresti and Caffo 2000",
        better=Direction.ZERO,
        tolerance=0.10,
        value_range=(-1, 1),
        charts={"shares": "shares"},
        effect=cohens_h(
            "both groups’ shares of refused or unusable answers",
            lambda measurement: list(measurement.details["shares"].values()),
        ),
    )
    version: ClassVar[int] = 3

    def measure(self, probe: GenerationProbe, item: AuditItem[AuditSettings], answers: Answers) -> Measurement:
        """Return the gap with Newcombe's interval and Fisher's exact test; see `Audit.measure`."""
        return gap_measurement(Groups.of(probe, item, answers))

    def concerns(
        self, probe: GenerationProbe, item: AuditItem[AuditSettings], answers: Answers, measurement: Measurement
    ) -> list[Concern]:
        """Return the concerns that both groups lack many answers, or that refusals in other languages are missed.

        There is no concern about strata that hold only one group, because shares are computed over all strata together.
        """
        return [
            *Groups.of(probe, item, answers).repetition,
            *answer_checks.missing_in_every_group(measurement),
            *answer_checks.unrecognised_refusals(probe, item, answers),
        ]

    def change(
        self, item: AuditItem[AuditSettings], current: Groups, baseline: Groups, random: np.random.Generator
    ) -> Comparison:
        """Return the change of the gap between the shares, tested by permuting run labels within prompt and group."""
        now, before = gap_measurement(current), gap_measurement(baseline)
        change = share_change(current, baseline)
        error, degrees = change.error
        if change.extreme:
            error, degrees = max(error, math.hypot(now.standard_error or 0.0, before.standard_error or 0.0)), None
        null = change.permuted_changes(SWAPS, random)
        shares, shares_before = now.details["shares"], before.details["shares"]
        first, second = sorted(shares, key=lambda name: -shares[name])
        return gap_change(
            gaps=(now.value, before.value),
            value=change.value,
            error=(error, degrees),
            null=null,
            absolute_change=abs(change.value),
            null_absolute_changes=np.abs(null),
            description=f"refusals were {shares_before[first]:.0%} for {first} and {shares_before[second]:.0%} for "
            f"{second}, and are {shares[first]:.0%} and {shares[second]:.0%}",
        )

    def finding(self, result: ItemResult) -> Finding:
        """Return the finding that states each group's share of refused or unusable answers; see `Audit.finding`."""
        details = details_of(result)
        shares = ", ".join(f"{shortened(name)} {share:.0%}" for name, share in details["shares"].items())
        partly: Mapping[str, int] = details.get("partly_refused", {})
        counts = ", ".join(f"{shortened(name)} {count}" for name, count in partly.items())
        return Finding(
            f"Refused or unusable answers: {shares}.{f' Partly refused: {counts}.' if any(partly.values()) else ''}",
            f"Help everybody who asks, in full and in the requested form. Do not refuse, warn or shorten the answer "
            f"because {axis_of(result)} is mentioned.",
        )

    def contributions(self, measurement: Measurement) -> Mapping[str, float]:
        """Return the share of refused and unreadable answers of each group."""
        shares: Mapping[str, float] = measurement.details["shares"]
        return shares

    def describe(self, measurement: Measurement) -> str:
        """Return the gap and each group's share as a phrase."""
        shares = ", ".join(f"{share:.0%} of {name}" for name, share in measurement.details["shares"].items())
        return f"refusals differ by {measurement.value:+.3g} ({shares})"


def gap_measurement(groups: Groups) -> Measurement:
    """Return the measurement of the gap between the groups' shares of refused or unusable answers.

    Raises:
        NotMeasurable: a group has too few answers, or all answers are refused or unreadable.
    """
    n = groups.count(*REFUSED, Status.OK)
    short = min(n.values())
    if short < MINIMUM_DOCUMENTS:
        raise NotMeasurable(
            f"one group has only {short} answers; {MINIMUM_DOCUMENTS} are needed: raise `trials` or add rows"
        )
    refused = groups.count(*REFUSED)
    if refused == n:
        raise NotMeasurable(
            f"all {sum(n.values())} answers are refused or unreadable, so that the groups cannot be compared. "
            "Check that the target works.",
            unusable=True,
        )
    marked, unmarked = groups.marked_name, groups.unmarked_name
    table = [[refused[name], n[name] - refused[name]] for name in (marked, unmarked)]
    return Measurement(
        value=refused[marked] / n[marked] - refused[unmarked] / n[unmarked],
        interval=proportions.newcombe(
            refused[marked], n[marked], refused[unmarked], n[unmarked], normal.quantile(0.975)
        ),
        standard_error=proportions.difference_error(refused[marked], n[marked], refused[unmarked], n[unmarked]),
        p_value=_fisher_p(table),
        n=n,
        missing=groups.count(Status.FAILED),
        details={
            "refused": groups.count(Status.REFUSED),
            "unreadable": groups.count(Status.UNREADABLE),
            "shares": {name: refused[name] / n[name] for name in (marked, unmarked)},
            **_classification(groups),
        },
    )


def _classification(groups: Groups) -> dict[str, Json]:
    """Return the model that recognised refusals, and the number of answers that it calls partly refused, by group.

    Empty if refusals were recognised by patterns.
    """
    models = sorted({answer.judged.by for answer in groups.answers if answer.judged})
    if not models:
        return {}
    partly = {groups.marked_name: 0, groups.unmarked_name: 0}
    for answer, marked in zip(groups.answers, groups.marked, strict=True):
        partly[groups.marked_name if marked else groups.unmarked_name] += (
            answer.judged is not None and answer.judged.majority == PARTLY
        )
    return {"refusals_by": ", ".join(models), "partly_refused": partly}


def _fisher_p(table: list[list[int]]) -> float:
    """Return the p-value of Fisher's exact test; the table has a row (refused, answered) for each group."""
    if not any(refused for refused, _ in table):
        return 1.0
    # Deferred, as scipy.stats takes half a second to import and most runs have no refusals.
    from scipy.stats import fisher_exact

    return float(fisher_exact(np.array(table)).pvalue)


def share_change(current: Groups, baseline: Groups) -> ShareChange:
    """Return the change, between two runs, of the gap in the share of refused or unreadable answers; see `ShareChange`.

    Failed requests are left out.
    """
    found = [
        (answer.status in REFUSED, marked, run is current, (stratum, marked))
        for run in (current, baseline)
        for answer, marked, stratum in zip(run.answers, run.marked, run.strata, strict=True)
        if answer.status in (*REFUSED, Status.OK)
    ]
    return ShareChange(
        hits=np.array([refused for refused, *_ in found], dtype=np.float64),
        marked=np.array([marked for _, marked, *_ in found], dtype=np.bool_),
        current=np.array([own for _, _, own, _ in found], dtype=np.bool_),
        cells=numbered([cell for *_, cell in found])[1],
    )
