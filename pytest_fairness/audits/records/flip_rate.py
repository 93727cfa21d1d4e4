"""Audit `flip_rate`: share of records whose answer changes if one attribute is flipped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_fairness.audits.base import Example
from pytest_fairness.audits.effects import cohens_h
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.records.changed_records import (
    change_with_other_fields,
    changed_answers,
    directions,
    flip_example,
    record_change,
    shares,
)
from pytest_fairness.audits.records.decisions import (
    DecisionSettings,
    RecordAudit,
    RecordItem,
    by_record,
    changed_columns_and_records,
    counts,
    judge_details,
    shown_value,
    side_by_side,
)
from pytest_fairness.audits.unit_audit import UnitTable, complete_rows
from pytest_fairness.probes.counterfactual.model import AGAIN, FLIPPED, OWN
from pytest_fairness.records import Answers, Json, Measurement
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.intervals import proportions
from pytest_fairness.stats.resampling import paired_tests
from pytest_fairness.stats.unit_tables.change import SIGNS
from pytest_fairness.stats.unit_tables.means import ShareDifference
from pytest_fairness.stats.unit_tables.statistic import UnitStatistic


class FlipRate(RecordAudit[DecisionSettings]):
    """Share of answers that change if a record is flipped, minus the share that change on repetition; −1..1.

    The shares are means over records. A repetition sends the prompt of the unchanged record again. A system that
    answers at random changes its answer equally often with a flip and with a repetition, so that its value is 0 on
    average. The details also count, for each pair of values, the records that get more positive answers with the first
    value, and with the second value.
    """

    info = AuditInfo(
        name="flip_rate",
        title="Decisions that change with one attribute",
        question="Does the answer change when only one attribute of a record is flipped?",
        formula="mean over records of (share of answers that change when the record is flipped − share that change "
        "when the same prompt is repeated)",
        meaning="0 = flipping changes no more answers than repeating the prompt.",
        source="Kusner, Loftus, Russell and Silva 2017, “Counterfactual Fairness”; McNemar 1947",
        better=Direction.LOWER,
        tolerance=0.05,
        value_range=(-1, 1),
        limit_range=(0, 1),
        charts={"flips": "flips"},
        effect=cohens_h(
            "the shares of answers that change when a record is flipped, and when the prompt is repeated",
            lambda measurement: [measurement.details["share"], measurement.details["floor"] or 0.0],
        ),
    )
    version = 3
    settings_model = DecisionSettings
    usable = "have answers to all their prompts"
    forms = (OWN, AGAIN, FLIPPED)

    def table(self, item: RecordItem[DecisionSettings], answers: Answers) -> UnitTable:
        """Return two shares for each record: answers that change with a flip, and answers that change on repetition."""
        flip = item.probe.flips[item.labels["attribute"]]
        records = {
            name: record_change(answered, item.probe.positive, flip.attribute, flip.values)
            for name, answered in by_record(answers).items()
        }
        n, missing = counts(flip.values, ((shown_value(answer, flip.attribute), answer) for answer in answers))
        # A file of recorded answers may have no repetitions; the share of answers that change on repetition is then 0.
        repeated = any(answer.labels["form"] == AGAIN for answer in answers)
        rows = np.array([[record.changed, record.again if repeated else 0.0] for record in records.values()])
        rows = rows.astype(np.float64).reshape(-1, 2)
        trials = 1 + max((answer.trial for answer in answers), default=0)
        complete = [
            record for record, is_complete in zip(records.values(), complete_rows(rows), strict=True) if is_complete
        ]
        return UnitTable(
            units=tuple(records),
            columns=("changed when flipped", "changed when the prompt is repeated"),
            rows=rows,
            n=n,
            missing=missing,
            step=1 / (len(complete) * trials * (len(flip.values) - 1)) if complete else 0.0,
            least_error=proportions.least_difference_error(len(complete)),
            details={
                **shares(complete, repeated=repeated),
                "positive": item.probe.positive,
                **directions(complete, flip.attribute, flip.values),
                **change_with_other_fields(item.probe, flip, complete),
                "flips": (flips := changed_answers(item.probe, flip, complete)),
                "examples": [flip_example(flip) for flip in flips],
                **judge_details(item.probe, answers),
            },
        )

    def statistic(self, columns: int) -> UnitStatistic:
        """Return the statistic: share of answers that change with a flip, minus the share that change on repetition."""
        return ShareDifference()

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """Return the p-value of a sign-flip test (null hypothesis: flipping changes no more answers than repeating)."""
        rows = table.rows[table.complete]
        return paired_tests.sign_flip(rows[:, 0] - rows[:, 1], SIGNS, random)

    def change_details(
        self, table: UnitTable, units: Sequence[str], current: Floats, baseline: Floats
    ) -> dict[str, Json]:
        """Return details: each run's shares of changed answers, and records with more changes than in the baseline."""
        return changed_columns_and_records(table, units, current, baseline, current[:, 0] - baseline[:, 0])

    def describe(self, measurement: Measurement) -> str:
        """Return a phrase with the value, and the shares of answers that change with a flip and on repetition."""
        details = measurement.details
        floor = details["floor"]
        again = "; no prompt was repeated" if floor is None else f", {floor:.1%} when the prompt is repeated"
        shares = f"{details['share']:.1%} of answers about {details['records']} records change with a flip{again}"
        return f"flip rate {measurement.value:.3g} ({shares})"

    def examples(
        self, item: RecordItem[DecisionSettings], measurement: Measurement, answers: Answers
    ) -> list[list[Example]]:
        """Return the answers about the unchanged and about a flipped record, for the records that change most."""
        records = [flip["record"] for flip in measurement.details["flips"]]
        return side_by_side(records, item.labels["attribute"], answers)
