"""Base class of audits that compare one number of each record between the values of an attribute."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import combinations
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
from pytest_fairness.audits.unit_audit import PERMUTATIONS, UnitTable
from pytest_fairness.probes.counterfactual.model import FLIPPED, OWN, CounterfactualProbe
from pytest_fairness.records import Answer, Answers, Json, Measurement
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups.distance_measures import value_range
from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.intervals.mean_errors import mean_error
from pytest_fairness.stats.resampling import column_means, paired_tests, significance
from pytest_fairness.stats.unit_tables.change import SIGNS
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

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float:
        """Return the two-sided p-value of the hypothesis that the attribute's value does not affect a record's answers.

        For two values, the test is a sign-flip test over records; for more values, a permutation test within records.
        """
        rows = table.rows[table.complete]
        if rows.shape[1] == 2:
            return paired_tests.sign_flip(rows[:, 0] - rows[:, 1], SIGNS, random, two_sided=True)
        null, exact = column_means.permuted_means(rows, PERMUTATIONS, random)
        observed = float(value_range(rows.mean(axis=0)))
        return significance.p_value(value_range(null), observed, exact=exact)

    def value_details(self, table: UnitTable, random: np.random.Generator) -> dict[str, Json]:
        """Return details: the two compared values, records with a large gap and, for more than two values, all pairs.

        The detail `leaning` names the records whose difference between the two compared values has the sign of the
        audit's value; the record with the largest difference comes first.
        """
        rows = table.rows[table.complete]
        first, second = most_different_columns(rows.mean(axis=0))
        differences = rows[:, first] - rows[:, second]
        sign = 1.0 if self.statistic(len(table.columns)).value(table.means()) >= 0 else -1.0
        names = [unit for unit, is_complete in zip(table.units, table.complete, strict=True) if is_complete]
        leans = (sign * differences).tolist()
        order = sorted((row for row, size in enumerate(leans) if size > 0), key=lambda row: (-leans[row], names[row]))
        return {
            "values": [table.columns[first], table.columns[second]],
            "leaning": [names[row] for row in order[:SHOWN_RECORDS]],
            **({"pairs": _pairs(table, random)} if len(table.columns) > 2 else {}),
        }

    def change_details(
        self, table: UnitTable, units: Sequence[str], current: Floats, baseline: Floats
    ) -> dict[str, Json]:
        """Return details: the means of both runs, and the records that became worse; see `changed_columns_and_records`.

        The two values of the attribute whose means differ most are compared. A record became worse if its answer moved
        since the baseline in favour of the value with the larger mean.
        """
        first, second = most_different_columns(current.mean(axis=0))
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


def most_different_columns(means: Floats) -> tuple[int, int]:
    """Return the two columns whose means differ most, in the table's order; the first two if all means are equal."""
    high, low = int(means.argmax()), int(means.argmin())
    return (min(high, low), max(high, low)) if high != low else (0, 1)


def _pairs(table: UnitTable, random: np.random.Generator) -> list[dict[str, Json]]:
    """Return each pair of values, with its difference, confidence interval and Holm-adjusted p-value."""
    rows = table.rows[table.complete]
    pairs: list[dict[str, Json]] = []
    for first, second in combinations(range(len(table.columns)), 2):
        differences = rows[:, first] - rows[:, second]
        mean, error = float(differences.mean()), mean_error(differences)
        pairs.append(
            {
                "values": [table.columns[first], table.columns[second]],
                "difference": mean,
                "interval": list(normal.interval(mean, error, degrees_of_freedom=len(rows) - 1)),
                "p_value": paired_tests.sign_flip(differences, SIGNS, random, two_sided=True),
            }
        )
    adjusted = significance.holm([pair["p_value"] for pair in pairs])
    return [{**pair, "p_value": p_value} for pair, p_value in zip(pairs, adjusted, strict=True)]
