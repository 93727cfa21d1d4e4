"""Audit `flip_rate`: share of records whose answer changes if one attribute is flipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pytest_fairness.audits.base import Example
from pytest_fairness.audits.effects import cohens_h
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.records.changed_records import (
    Repeats,
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
    at_equal_draws,
    by_record,
    changed_columns_and_records,
    counts,
    judge_details,
    shown_value,
    side_by_side,
)
from pytest_fairness.audits.unit_audit import UnitTable, complete_rows
from pytest_fairness.errors import BaselineStale
from pytest_fairness.probes.counterfactual.model import AGAIN, FLIPPED, OWN
from pytest_fairness.records import Answers, Concern, Json, Measurement
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.intervals import proportions
from pytest_fairness.stats.resampling import paired_tests
from pytest_fairness.stats.unit_tables.change import SIGNS
from pytest_fairness.stats.unit_tables.means import ShareDifference
from pytest_fairness.stats.unit_tables.statistic import UnitStatistic

LARGEST_IMBALANCE = 0.1
"""Largest difference of the share of records with one value from equal shares, if only own prompts are repeated."""


class FlipRate(RecordAudit[DecisionSettings]):
    """Share of answers that change if a record is flipped, minus the share that change on repetition; −1..1.

    The shares are means over records. Each prompt has at least two answers: those of its trials or, with a single
    trial, the answer to a repetition. The first share is over all pairs of an answer about the unchanged and one about
    the flipped record, the second over all pairs of two answers to the same prompt, half of them about the unchanged
    record. A system that gives the positive answer with the probabilities p and q has the expected value (p − q)², for
    each number of answers and whichever of the values the records have.

    If only the prompts about unchanged records were repeated, as in a file, the expected value is (q − p)(1 − 2p), with
    p for the record's own value. This is (p − q)² only on average over equally many records with each value.
    """

    info = AuditInfo(
        name="flip_rate",
        title="Decisions that change with one attribute",
        question="Does the answer change when only one attribute of a record is flipped?",
        formula="mean over records of (share of pairs of answers that differ if the record is flipped − share of pairs "
        "that differ if the same prompt is repeated)",
        meaning="0 = flipping changes no more answers than repeating the prompt.",
        source="Kusner, Loftus, Russell and Silva 2017, “Counterfactual Fairness”; McNemar 1947",
        better=Direction.LOWER,
        tolerance=0.05,
        value_range=(-1, 1),
        worst=1,
        limit_range=(0, 1),
        charts={"flips": "flips"},
        effect=cohens_h(
            "the shares of answers that change when a record is flipped, and when the prompt is repeated",
            lambda measurement: [measurement.details["share"], measurement.details["floor"] or 0.0],
        ),
    )
    version = 4
    settings_model = DecisionSettings
    usable = "have answers to all their prompts"
    forms = (OWN, AGAIN, FLIPPED)
    paired = True

    def table(self, item: RecordItem[DecisionSettings], answers: Answers) -> UnitTable:
        """Return two shares for each record: answers that change with a flip, and answers that change on repetition."""
        flip = item.probe.flips[item.labels["attribute"]]
        answered = by_record(answers)
        repeats = Repeats.of(answered.values())
        records = {
            name: record_change(own, item.probe.positive, flip.attribute, flip.values, repeats)
            for name, own in answered.items()
        }
        n, missing = counts(flip.values, ((shown_value(answer, flip.attribute), answer) for answer in answers))
        rows = np.array([[record.changed, record.again] for record in records.values()])
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
                **shares(complete, repeats),
                "own_values": {
                    value: sum(record.labels[flip.attribute] == value for record in complete) for value in flip.values
                },
                "positive": item.probe.positive,
                **directions(complete, flip.attribute, flip.values),
                **change_with_other_fields(item.probe, flip, complete),
                "flips": (flips := changed_answers(item.probe, flip, complete)),
                "examples": [flip_example(flip) for flip in flips],
                **judge_details(item.probe, answers),
            },
        )

    def comparable(
        self, item: RecordItem[DecisionSettings], current: Answers, baseline: Answers
    ) -> tuple[Answers, Answers]:
        """Return the answers of both runs, cut to equal numbers for each prompt if they repeated different prompts.

        Raises:
            BaselineStale: a run did not repeat flipped prompts, and the records' own values are too unequal.
        """
        repeats = {Repeats.of(by_record(run).values()) for run in (current, baseline)}
        if len(repeats) == 1:
            return current, baseline
        current, baseline = at_equal_draws(current, baseline)
        if any(_is_one_sided(self.table(item, run).details) for run in (current, baseline)):
            part = (
                "number of answers to each flipped prompt (one of the runs has a single answer, which is enough only "
                "for records whose own values are equally frequent)"
            )
            raise BaselineStale([part])
        return current, baseline

    def concerns(self, item: RecordItem[DecisionSettings], answers: Answers, measurement: Measurement) -> list[Concern]:
        """Return the concerns of `UnitAudit.concerns`, and a concern if the records' own values affect the value."""
        concerns = super().concerns(item, answers, measurement)
        if _is_one_sided(measurement.details):
            found = ", ".join(f"{count} {value}" for value, count in measurement.details["own_values"].items())
            message = (
                "only prompts about unchanged records have two answers, and the records' own values are unequally "
                f"frequent ({found}), so that the value may be far above or below the true one. Add a second answer to "
                "each flipped prompt, or as many records with each value"
            )
            concerns.append(Concern("one_sided_repeats", message, withholds="verdict"))
        return concerns

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


def _is_one_sided(details: Mapping[str, Json]) -> bool:
    """Return whether the value depends on which values of the attribute the records have; see `FlipRate`.

    This is the case if only own prompts were repeated, repetitions differ, and a value is too frequent or too rare.
    """
    if details.get("repeated") != Repeats.OWN or not details["floor"]:
        return False
    own_values: list[int] = [*details["own_values"].values()]
    return max(abs(count / sum(own_values) - 1 / len(own_values)) for count in own_values) > LARGEST_IMBALANCE
