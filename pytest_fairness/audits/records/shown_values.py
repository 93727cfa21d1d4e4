"""Base class of audits that compare one number of each record between the values of an attribute."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pytest_fairness.audits.base import Example, SettingsT
from pytest_fairness.audits.records.decisions import (
    RecordAudit,
    RecordItem,
    by_record,
    changed_columns_and_records,
    counts,
    judge_details,
    shown_value,
)
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.probes.counterfactual.model import FLIPPED, OWN, CounterfactualProbe
from pytest_fairness.records import Answer, Answers, Json, Measurement
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups.distance_measures import most_different
from pytest_fairness.stats.unit_tables.distances import SignedGap
from pytest_fairness.stats.unit_tables.statistic import UnitStatistic

SHOWN_RECORDS = 20
"""Largest number of records in the detail `leaning`; see `ShownValueAudit.value_details`."""


class ShownValueAudit(RecordAudit[SettingsT]):
    """Base class of audits that show each record with each value of an attribute, and compare a number between values.

    The audit compares the two attribute values whose mean numbers differ most. The audit's value is the mean for the
    attribute value that the probe lists first, minus the mean for the other attribute value.
    """

    usable = "have an answer for every value of the attribute"
    forms: ClassVar[tuple[str, ...]] = (OWN, FLIPPED)
    paired = True

    def tells_side(self, measurement: Measurement) -> bool | None:
        """Return whether there are only two groups: of more, the sign does not say which two."""
        return len(measurement.n) <= 2

    @abstractmethod
    def number(self, probe: CounterfactualProbe, answer: Answer) -> float:
        """Return a usable answer as a number, such as 1 for the positive answer and 0 for any other answer."""

    @abstractmethod
    def table_of(self, item: RecordItem[SettingsT], answers: Answers, table: UnitTable) -> UnitTable:
        """Return `table`, completed with `step`, `least_error` and details; its numbers may be replaced by scores.

        Args:
            item: the item that is measured.
            answers: the item's answers.
            table: table with a row for each record and a column for each value. A cell is the mean number over trials;
                all cells of a record are missing (NaN) if there is no usable answer for one of the values.
        """

    def table(self, item: RecordItem[SettingsT], answers: Answers) -> UnitTable:
        """Return the table of one run; see `table_of`."""
        attribute = item.labels["attribute"]
        values: tuple[str, ...] = item.probe.flips[attribute].values
        records = by_record(answers)
        rows = np.full((len(records), len(values)), np.nan)
        for row, answered in enumerate(records.values()):
            for column, value in enumerate(values):
                draws = answered.own if value == answered.labels[attribute] else answered.flipped.get(value, {})
                numbers = [self.number(item.probe, answer) for answer in draws.values() if answer.usable]
                if numbers:
                    rows[row, column] = sum(numbers) / len(numbers)
        rows[np.isnan(rows).any(axis=1)] = np.nan
        n, missing = counts(values, ((shown_value(answer, attribute), answer) for answer in answers))
        details = judge_details(item.probe, answers)
        return self.table_of(item, answers, UnitTable(tuple(records), values, rows, n, missing, details))

    def statistic(self, columns: int) -> UnitStatistic:
        """Return the statistic: the difference between the two columns whose means differ most."""
        return SignedGap(columns)

    def compared_columns(self, means: Floats) -> tuple[int, int]:
        """Return the two compared columns whose means differ most, in the table's order; the first pair of a tie."""
        first, second = sorted(most_different(means, self.statistic(len(means)).pairs))
        return first, second

    def value_details(self, table: UnitTable, random: np.random.Generator) -> dict[str, Json]:
        """Return details: the two compared values, and records with a large gap.

        The detail `leaning` names the records whose difference between the two compared values has the sign of the
        audit's value; the record with the largest difference comes first.
        """
        rows = table.rows[table.complete]
        first, second = self.compared_columns(rows.mean(axis=0))
        differences = rows[:, first] - rows[:, second]
        sign = 1.0 if self.statistic(len(table.columns)).value(table.means()) >= 0 else -1.0
        names = [unit for unit, is_complete in zip(table.units, table.complete, strict=True) if is_complete]
        leans = (sign * differences).tolist()
        order = sorted((row for row, size in enumerate(leans) if size > 0), key=lambda row: (-leans[row], names[row]))
        return {
            "values": [table.columns[first], table.columns[second]],
            "leaning": [names[row] for row in order[:SHOWN_RECORDS]],
        }

    def change_details(
        self, table: UnitTable, units: Sequence[str], current: Floats, baseline: Floats
    ) -> dict[str, Json]:
        """Return details: the means of both runs, and the records that became worse; see `changed_columns_and_records`.

        The two values of the attribute whose means differ most are compared. A record became worse if its answer moved
        since the baseline in favour of the value with the larger mean.
        """
        first, second = self.compared_columns(current.mean(axis=0))
        sign = 1.0 if current[:, first].mean() >= current[:, second].mean() else -1.0
        change = (current[:, first] - current[:, second]) - (baseline[:, first] - baseline[:, second])
        return changed_columns_and_records(table, units, current, baseline, sign * change)

    def examples(self, item: RecordItem[SettingsT], measurement: Measurement, answers: Answers) -> list[list[Example]]:
        """Return, for each record of the detail `leaning`, two different answers: one with each compared value."""
        attribute, values = item.labels["attribute"], measurement.details["values"]
        shown: dict[tuple[str, str], list[Answer]] = {}
        for answer in answers:
            if answer.usable:
                shown.setdefault((answer.labels["record"], shown_value(answer, attribute)), []).append(answer)
        examples = []
        for record in measurement.details["leaning"]:
            first, second = (sorted(shown.get((record, value), ()), key=lambda each: each.trial) for value in values)
            pairs = ((one, other) for one in first for other in second if one.content != other.content)
            if pair := next(pairs, None):
                # The answer about the record as it is comes first.
                examples.append(sorted(zip(values, pair, strict=True), key=lambda each: "to" in each[1].labels))
        return examples
