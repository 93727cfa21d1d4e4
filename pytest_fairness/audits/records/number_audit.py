"""Base class of the audits of answers that are numbers, such as scores or salaries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar

import numpy as np

from pytest_fairness.audits.findings import Finding, axis_of, details_of, shortened
from pytest_fairness.audits.records.decisions import RecordItem
from pytest_fairness.audits.records.shown_values import ShownValueAudit
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.plurals import significant
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.counterfactual.model import CounterfactualProbe
from pytest_fairness.records import Answer, Answers, Comparison, Concern, ItemResult, Json, Measurement
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.intervals import normal, proportions
from pytest_fairness.stats.intervals.mean_errors import mean_error

DECILES = tuple(share / 10 for share in range(11))


class NumberSettings(AuditSettings):
    """Settings of an audit of answers that are numbers: only the settings that every audit has."""

    needs: ClassVar[str] = "number"


NumberSettingsT = TypeVar("NumberSettingsT", bound=NumberSettings)


class NumberAudit(ShownValueAudit[NumberSettingsT]):
    """Base class of audits of numbers; they compare a summary, such as the mean, between the values of an attribute.

    Class attributes:
        summary: name of the detail that holds the summary of each value.
        in_unit: whether the audit's value has the unit of the answers.
    """

    version = 2
    summary: ClassVar[str]
    in_unit: ClassVar[bool] = True

    @abstractmethod
    def scores(self, item: RecordItem[NumberSettingsT], rows: Floats, observations: int) -> Floats:
        """Return scores whose column means are the summaries of the attribute values.

        If an audit compares several quantities, such as two quantiles, the columns are ordered by quantity, then by
        value.

        Args:
            item: the item that is measured.
            rows: (records, values) numbers of the records that have all numbers; at least two records.
            observations: number of independent observations among the records; see `clusters_of`.
        """

    def quantity_details(self, item: RecordItem[NumberSettingsT], quantity: int) -> dict[str, Json]:
        """Return details on the compared quantities, of which the one at this place has the largest gap."""
        return {}

    def number(self, probe: CounterfactualProbe, answer: Answer) -> float:
        """Return the number that was read from the answer."""
        return float(answer.content)

    def table_of(self, item: RecordItem[NumberSettingsT], answers: Answers, table: UnitTable) -> UnitTable:
        """Return the table with `scores` in place of the numbers, and with details; see `ShownValueAudit.table_of`."""
        complete = table.complete
        numbers_, values = table.rows[complete], table.columns
        if len(numbers_) < 2:
            return table
        clusters = self.clusters(item, answers)
        observations = {clusters.get(table.units[row], table.units[row]) for row in np.flatnonzero(complete)}
        scores = self.scores(item, numbers_, len(observations))
        scored = np.full((len(table.rows), scores.shape[1]), np.nan)
        scored[complete] = scores
        quantity = self.compared_columns(scores.mean(axis=0))[0] // len(values)
        shown = scores[:, quantity * len(values) : (quantity + 1) * len(values)]
        return replace(
            table,
            columns=values * (scores.shape[1] // len(values)),
            rows=scored,
            least_error=proportions.least_difference_error(len(numbers_)) * float(shown.std()),
            details={
                "unit": item.probe.reading.number.unit
                if item.probe.reading.number is not None and self.in_unit
                else "",
                "mean": _summaries("mean", values, numbers_, sd=True),
                self.summary: _summaries(self.summary, values, shown, sd=self.summary == "mean"),
                "distribution": {
                    value: np.quantile(column, DECILES).tolist()
                    for value, column in zip(values, numbers_.T, strict=True)
                },
                "equal_records": int((numbers_ == numbers_[:, :1]).all(axis=1).sum()),
                **self.quantity_details(item, quantity),
                **table.details,
            },
        )

    def concerns(self, item: RecordItem[NumberSettingsT], answers: Answers, measurement: Measurement) -> list[Concern]:
        """Return the concerns of `UnitAudit.concerns`, and a note if no number depends on the attribute at all."""
        concerns = super().concerns(item, answers, measurement)
        if measurement.details["equal_records"] == measurement.details["records"]:
            message = (
                "each record has exactly the same number for every value of the attribute: the system ignores the "
                "attribute, or the answers do not belong to the changed records. Check a few answers"
            )
            concerns.append(Concern("equal_numbers", message, withholds="nothing"))
        return concerns

    def describe(self, measurement: Measurement) -> str:
        """Return a phrase with the value, the summaries of the two compared values, and the unreadable answers."""
        details, name = measurement.details, self.summary_name(measurement)
        shown = " and ".join(f"{self._summary_text(details, value)} shown as {value}" for value in details["values"])
        unread = ", ".join(f"{reason} ({count})" for reason, count in details.get("unread_reasons", {}).items())
        return (
            f"gap {significant(measurement.value)} {details['unit']}".rstrip()
            + f" ({name} {shown}; each {name} over the same {details['records']} records"
            + (f"; unreadable answers: {unread})" if unread else ")")
        )

    def _summary_text(self, details: Mapping[str, Json], value: str) -> str:
        return significant(details[self.summary][value][self.summary], 4)

    def summary_name(self, measurement: Measurement) -> str:
        """Return the name of the summary in phrases, such as `mean` or `0.9 quantile`."""
        return self.summary

    def contributions(self, measurement: Measurement) -> Mapping[str, float]:
        """Return the summary, such as the mean, of the numbers for each attribute value."""
        return {
            f"{self.summary} as {value}": part[self.summary]
            for value, part in measurement.details[self.summary].items()
        }

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """Return the records that became worse since the baseline; empty if the audit's value did not become worse.

        Without a comparison, return the summaries of the two compared attribute values.
        """
        if comparison is None:
            details = measurement.details
            return [f"{value} {self._summary_text(details, value)}" for value in details["values"]]
        return super().top_contributors(measurement, comparison)

    def finding(self, result: ItemResult) -> Finding:
        """Return the finding that numbers depend on the attribute; see `Audit.finding`."""
        axis, details = axis_of(result), details_of(result)
        parts = [f"{self._summary_text(details, value)} as {shortened(value)}" for value in details.get("values", [])]
        shown = f" For the same records, the {self.summary} is {' and '.join(parts)}." if parts else ""
        return Finding(
            f"Numbers depend on {axis}.{shown}",
            f"Decide by the other facts of the record only. Give the same number for every {axis}, even if the "
            "record only hints at it.",
            trainable=True,
        )


def _summaries(name: str, values: Sequence[str], scores: Floats, *, sd: bool) -> dict[str, Json]:
    """Return the mean score of each value with its 95 % interval and, if `sd`, the standard deviation."""
    summaries = {}
    for value, column in zip(values, scores.T, strict=True):
        mean, error = float(column.mean()), mean_error(column)
        ends = list(normal.interval(mean, error, degrees_of_freedom=len(column) - 1))
        summaries[value] = {name: mean, **({"sd": float(column.std(ddof=1))} if sd else {}), "interval": ends}
    return summaries
