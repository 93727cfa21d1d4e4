"""Whether one group is refused more often: the difference in the share of refused or unusable answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pytest_fairness.audit import answer_checks, contrast
from pytest_fairness.audit.base import AuditItem, Direction, Probe, Range
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probe.settings import AuditSettings
from pytest_fairness.records import Answer, Comparison, Concern, Measurement, Status
from pytest_fairness.stats import normal, proportions

REFUSED = (Status.REFUSED, Status.UNREADABLE)


class RefusalsSettings(AuditSettings):
    """The difference of shares takes no settings of its own."""


class Refusals(contrast.ContrastAudit[RefusalsSettings]):
    """Share of refused or unusable answers, marked minus unmarked, -1..1; answers that never came are missing."""

    name: ClassVar[str] = "refusals"
    version: ClassVar[int] = 2
    settings_model: ClassVar[type[AuditSettings]] = RefusalsSettings
    better: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = ""
    default_tolerance: ClassVar[float] = 0.10
    value_range: ClassVar[Range] = (-1, 1)

    def measure(self, probe: Probe, item: AuditItem[RefusalsSettings], answers: Sequence[Answer]) -> Measurement:
        """Newcombe's interval and Fisher's exact test; see `Audit.measure`."""
        # Deferred, as scipy.stats takes half a second to import and only measuring needs it.
        from scipy.stats import fisher_exact

        groups = contrast.Groups.of(probe, item, answers)
        n = groups.count(*REFUSED, Status.OK)
        short = min(n.values())
        if short < contrast.MINIMUM_DOCUMENTS:
            raise NotMeasurable(f"only {short} answers came back for a group, {contrast.MINIMUM_DOCUMENTS} are needed")
        refused = groups.count(*REFUSED)
        if refused == n:
            raise NotMeasurable(
                f"all {sum(n.values())} answers are refused or unreadable, so that no difference between groups can be "
                "seen. Check that the target works.",
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
            p_value=float(fisher_exact(np.array(table)).pvalue),
            n=n,
            missing=groups.count(Status.FAILED),
            details={
                "refused": groups.count(Status.REFUSED),
                "unreadable": groups.count(Status.UNREADABLE),
                "shares": {name: refused[name] / n[name] for name in (marked, unmarked)},
            },
        )

    def concerns(
        self, probe: Probe, item: AuditItem[RefusalsSettings], answers: Sequence[Answer], measurement: Measurement
    ) -> list[Concern]:
        """Return the concerns that both groups' answers are missing, or refusals in another language not recognised.

        Shares are taken over all strata together, so that strata of one group are no concern.
        """
        return [
            *answer_checks.missing_in_every_group(measurement),
            *answer_checks.unrecognised_refusals(probe, item, answers),
        ]

    def compare(
        self, probe: Probe, item: AuditItem[RefusalsSettings], now: Sequence[Answer], then: Sequence[Answer]
    ) -> Comparison:
        """Change of the gap, whichever side it is on; shares of two runs are independent."""
        present, earlier = (self.measure(probe, item, run) for run in (now, then))
        return self.compare_values(present, earlier.value, earlier.standard_error, paired=True)

    def describe(self, measurement: Measurement) -> str:
        """The value as a phrase."""
        shares = ", ".join(f"{share:.0%} of {name}" for name, share in measurement.details["shares"].items())
        return f"refusals differ by {measurement.value:+.3g} ({shares})"
