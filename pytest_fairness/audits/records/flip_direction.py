"""Audit `flip_direction`: share of positive answers for one attribute value minus the share for another value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pytest_fairness.audits.effects import cohens_h
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.records.decisions import DecisionSettings, RecordItem
from pytest_fairness.audits.records.shown_values import ShownValueAudit
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.probes.counterfactual.model import AGAIN, FLIPPED, OWN, CounterfactualProbe
from pytest_fairness.records import Answer, Answers, Json, Measurement
from pytest_fairness.stats.intervals import normal, proportions
from pytest_fairness.stats.unit_tables.distances import SignedShareGap
from pytest_fairness.stats.unit_tables.statistic import UnitStatistic


class FlipDirection(ShownValueAudit[DecisionSettings]):
    """Share of positive answers for one value minus the share for another value, over the same records; −1..1.

    Each record is shown with each value of the attribute. A system that answers at random, with the same probability
    for all values, has the value 0 on average. If the attribute has more than two values, the audit compares the two
    values whose shares differ most, in the probe's order. A result above 0 means that the first of these two values
    gets the positive answer more often.
    """

    info = AuditInfo(
        name="flip_direction",
        title="Decisions that favour one value",
        question="Does one value of an attribute get the positive answer more often, for the same records?",
        formula="P(positive | shown as A) − P(positive | shown as B), paired by record",
        meaning="−1 to 1; 0 = equal shares, also for a system that answers at random. Above 0 = A is favoured.",
        source="Kusner, Loftus, Russell and Silva 2017, “Counterfactual Fairness”; the paired sign-flip test of "
        "Fisher 1935",
        better=Direction.ZERO,
        tolerance=0.05,
        value_range=(-1, 1),
        worst=1,
        limit_range=(0, 1),
        effect=cohens_h(
            "the shares of positive answers for the two values that differ most",
            lambda measurement: [each["mean"] for each in measurement.details["positive_share"].values()],
        ),
    )
    version = 3
    settings_model = DecisionSettings
    forms = (OWN, AGAIN, FLIPPED)

    def uses(self, item: RecordItem[DecisionSettings], labels: Mapping[str, str]) -> bool:
        """Return whether the item needs the answers with these labels; see `RecordAudit.uses`.

        Answers to repeated prompts are used if they cost no further request: if `flip_rate` needs them.
        """
        asked = item.probe.responses is None and "flip_rate" not in item.probe.audits
        return not (asked and labels["form"] == AGAIN) and super().uses(item, labels)

    def number(self, probe: CounterfactualProbe, answer: Answer) -> float:
        """Return 1 for the positive answer and 0 for any other answer."""
        return float(answer.content == probe.positive)

    def table_of(self, item: RecordItem[DecisionSettings], answers: Answers, table: UnitTable) -> UnitTable:
        """Return the table of shares of positive answers; see `ShownValueAudit.table_of`."""
        complete = int(table.complete.sum())
        trials = 1 + max((answer.trial for answer in answers), default=0)
        return replace(
            table,
            step=1 / (complete * trials) if complete else 0.0,
            least_error=proportions.least_difference_error(complete),
            details={"positive": item.probe.positive, **table.details},
        )

    def statistic(self, columns: int) -> UnitStatistic:
        """Return the statistic: the difference between the two shares that differ most; see `ShownValueAudit`."""
        return SignedShareGap(columns)

    def value_details(self, table: UnitTable, random: np.random.Generator) -> dict[str, Json]:
        """Return the details of `ShownValueAudit`, the shares of positive answers, and the numbers `n10` and `n01`.

        `n10` and `n01` count the records that get more positive answers with the first or with the second of the two
        compared attribute values.
        """
        rows = table.rows[table.complete]
        first, second = self.compared_columns(rows.mean(axis=0))
        return {
            **super().value_details(table, random),
            "positive_share": {
                name: {
                    "mean": float(share),
                    "interval": list(proportions.wilson(float(share) * len(rows), len(rows), normal.quantile(0.975))),
                }
                for name, share in zip(table.columns, rows.mean(axis=0), strict=True)
            },
            "n10": int((rows[:, first] > rows[:, second]).sum()),
            "n01": int((rows[:, first] < rows[:, second]).sum()),
        }

    def describe(self, measurement: Measurement) -> str:
        """Return the value and the two shares as a phrase."""
        details = measurement.details
        first, second = details["values"]
        share = {value: f"{details['positive_share'][value]['mean']:.1%}" for value in details["values"]}
        return (
            f"difference {measurement.value:.3g} (of the same {details['records']} records, {share[first]} get "
            f"{details['positive']!r} if shown as {first} and {share[second]} if shown as {second})"
        )
