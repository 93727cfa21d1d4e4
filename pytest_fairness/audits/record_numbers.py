"""Audits of answers about records that are numbers, such as salaries: `mean_gap`, `tail_gap`, `rank_gap`."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, TypeVar

import numpy as np
from pydantic import Field

from pytest_fairness.audits.base import Example, SettingsT
from pytest_fairness.audits.info import (
    CLIFFS_DELTA,
    AuditInfo,
    Direction,
    axis_of,
    cohens_d,
    details_of,
    shortened,
)
from pytest_fairness.audits.record_decisions import (
    RecordAudit,
    RecordItem,
    by_record,
    changed_columns_and_records,
    counts,
    judge_details,
    shown_value,
)
from pytest_fairness.audits.unit_audit import Intersection, UnitTable
from pytest_fairness.errors import NotMeasurable, significant
from pytest_fairness.probes.counterfactual import FLIPPED, OWN, CounterfactualProbe
from pytest_fairness.probes.field_types import AuditSettings
from pytest_fairness.records import (
    Answer,
    Answers,
    Comparison,
    Concern,
    Contributor,
    Explanation,
    ItemResult,
    Json,
    Measurement,
)
from pytest_fairness.stats import intervals
from pytest_fairness.stats.gaps import mean_error, most_different
from pytest_fairness.stats.resampling import Floats
from pytest_fairness.stats.unit_statistics import SignedGap, quantile_scores, rank_scores
from pytest_fairness.stats.unit_tables import UnitStatistic

# Base class of audits that compare one number of each record between the values of an attribute.

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

        A cell of a record and a value is the mean number over trials; all cells of a record are missing (NaN) if there
        is no usable answer for one of the values.
        """

    def table(self, item: RecordItem[SettingsT], answers: Answers) -> UnitTable:
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
        return SignedGap(columns)

    def compared_columns(self, means: Floats) -> tuple[int, int]:
        """Return the two columns whose means differ most, in the table's order; the first pair of a tie."""
        first, second = sorted(most_different(means, self.statistic(len(means)).pairs))
        return first, second

    def value_details(self, table: UnitTable, random: np.random.Generator) -> dict[str, Json]:
        """Return the compared values, and as `leaning` the records with the value's sign, the largest first."""
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
    ) -> tuple[dict[str, Json], Sequence[str]]:
        """Return the means of both runs, and the records that became worse.

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


# Base class of the audits of answers that are numbers, such as scores or salaries.

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
        value. `rows` are the (records, values) numbers of at least two records that have all numbers; `observations` is
        the number of independent ones among them (see `clusters_of`).
        """

    def quantity_details(self, item: RecordItem[NumberSettingsT], quantity: int) -> dict[str, Json]:
        """Return details on the compared quantities, of which the one at this place has the largest gap."""
        return {}

    def number(self, probe: CounterfactualProbe, answer: Answer) -> float:
        return float(answer.content)

    def table_of(self, item: RecordItem[NumberSettingsT], answers: Answers, table: UnitTable) -> UnitTable:
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
        equal = int((numbers_ == numbers_[:, :1]).all(axis=1).sum())
        message = (
            "each record has exactly the same number for every value of the attribute: the system ignores the "
            "attribute, or the answers do not belong to the changed records. Check a few answers"
        )
        return replace(
            table,
            notes=[Concern("equal_numbers", message, withholds="nothing")] if equal == len(numbers_) else [],
            columns=values * (scores.shape[1] // len(values)),
            rows=scored,
            least_error=intervals.least_difference_error(len(numbers_)) * float(shown.std()),
            effect_basis=[float(column.std(ddof=1)) for column in numbers_.T],
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
                "equal_records": equal,
                **self.quantity_details(item, quantity),
                **table.details,
            },
        )

    def explanation(self, item: RecordItem[NumberSettingsT], measurement: Measurement) -> Explanation:
        details, name = measurement.details, self.summary_name(item, measurement)
        summaries = {value: part[self.summary] for value, part in details[self.summary].items()}
        compared = {value: significant(summaries[value], 4) for value in details["values"]}
        shown = " and ".join(f"{number} shown as {value}" for value, number in compared.items())
        unread = ", ".join(f"{reason} ({count})" for reason, count in details.get("unread_reasons", {}).items())
        return Explanation.of(
            f"gap {significant(measurement.value)} {details['unit']}".rstrip()
            + f" ({name} {shown}; each {name} over the same {measurement.evidence.units} records"
            + (f"; unreadable answers: {unread})" if unread else ")"),
            (f"{value} {number}" for value, number in compared.items()),
            {f"{self.summary} as {value}": number for value, number in summaries.items()},
        )

    def summary_name(self, item: RecordItem[NumberSettingsT], measurement: Measurement) -> str:
        """Return the name of the summary in phrases, such as `mean` or `0.9 quantile`."""
        return self.summary

    def contributors(self, measurement: Measurement, comparison: Comparison | None) -> Sequence[Contributor]:
        """Return the records that became worse or, without a comparison, the summaries of the compared values."""
        if comparison is None:
            return measurement.explanation.contributors
        return comparison.explanation.contributors if comparison.value > 0 else ()

    def finding(self, result: ItemResult) -> str:
        axis, details = axis_of(result), details_of(result)
        parts = [
            f"{significant(details[self.summary][value][self.summary], 4)} as {shortened(value)}"
            for value in details.get("values", ())
        ]
        shown = f" For the same records, the {self.summary} is {' and '.join(parts)}." if parts else ""
        return f"Numbers depend on {axis}.{shown}"


def _summaries(name: str, values: Sequence[str], scores: Floats, *, sd: bool) -> dict[str, Json]:
    """Return the mean score of each value with its 95 % interval and, if `sd`, the standard deviation."""
    summaries = {}
    for value, column in zip(values, scores.T, strict=True):
        mean, error = float(column.mean()), mean_error(column)
        ends = list(intervals.interval(mean, error, degrees_of_freedom=len(column) - 1))
        summaries[value] = {name: mean, **({"sd": float(column.std(ddof=1))} if sd else {}), "interval": ends}
    return summaries


# Audits of numeric answers, such as salaries: differences between attribute values in mean, quantile and ranks.

TAIL_RECORDS = 5
"""Smallest expected number of records beyond the quantile of `tail_gap`."""
SPREAD = "standard deviation of the numbers over records"


class GapSettings(NumberSettings):
    """Settings of an audit whose tolerance has the unit of the answers; the tolerance therefore has no default."""

    tolerance: float = Field(ge=0, description="Worst acceptable change from the baseline, in the unit of the answers.")


class TailSettings(GapSettings):
    """Settings of `tail_gap`: the quantiles, and a tolerance in the unit of the answers."""

    quantile: float = Field(
        gt=0,
        lt=1,
        description="Where the tails begin: 0.9 (or 0.1) compares the number above which one record in ten lies, and "
        "the number below which one record in ten lies.",
    )

    @property
    def tails(self) -> tuple[float, float]:
        """Quantiles of the lower and of the upper tail; twice the median for 0.5."""
        lower, upper = sorted((self.quantile, round(1 - self.quantile, 9)))
        return lower, upper


number_info = partial(AuditInfo, better=Direction.ZERO, charts={"distribution": "distribution"})
"""Function that creates the description of an audit of numbers."""


class MeanGap(NumberAudit[GapSettings]):
    info = number_info(
        name="mean_gap",
        title="Different mean numbers",
        question="Does the same record get a higher score, salary or other number with one value of an attribute?",
        formula="mean(number | shown as A) − mean(number | shown as B), paired by record",
        meaning="In the unit of the answers; 0 = equal means. Above 0 = A gets the higher numbers.",
        source="Student 1908 and Fisher 1935 for paired differences; Bertrand and Mullainathan 2004 for the design",
        tolerance=math.nan,
        value_range=(-math.inf, math.inf),
        limit_range=(0, math.inf),
        effect=cohens_d(f"(difference of the means) / ({SPREAD})"),
    )
    settings_model = GapSettings
    summary = "mean"

    def unread_distance(self, item: RecordItem[GapSettings], measurement: Measurement, scale: float) -> float:
        """Return the distance from a value's mean to the farther end of the possible numbers."""
        number, means = item.probe.answer.number, [each["mean"] for each in measurement.details["mean"].values()]
        return math.inf if number is None else float(max(number.max - min(means), max(means) - number.min))

    def scores(self, item: RecordItem[GapSettings], rows: Floats, observations: int) -> Floats:
        return rows


class TailGap(NumberAudit[TailSettings]):
    """Audit of both tails, because a cap on the best numbers of a group and a cut of its worst ones hurt alike."""

    info = number_info(
        name="tail_gap",
        title="Different tails",
        question="Do the highest or the lowest numbers differ between the values of an attribute?",
        formula="quantile(number | shown as A) − quantile(number | shown as B), by the estimate of Harrell and Davis; "
        "in the lower or in the upper tail, where the gap is larger",
        meaning="In the unit of the answers; 0 = equal quantiles. Above 0 = A has the higher quantile.",
        source="Harrell and Davis 1982; Wilcox and Erceg-Hurn 2012, “Comparing two dependent groups via quantiles”",
        tolerance=math.nan,
        value_range=(-math.inf, math.inf),
        limit_range=(0, math.inf),
        effect=cohens_d(f"(difference of the quantiles) / ({SPREAD})"),
    )
    version = 3
    settings_model = TailSettings
    linear = False
    summary = "quantile"

    def scores(self, item: RecordItem[TailSettings], rows: Floats, observations: int) -> Floats:
        return np.column_stack(
            [quantile_scores(column, quantile, observations) for quantile in item.settings.tails for column in rows.T]
        )

    def statistic(self, columns: int) -> UnitStatistic:
        return SignedGap(columns, quantities=2)

    def measure(self, item: RecordItem[TailSettings], answers: Answers) -> Measurement:
        """Return the measurement; raise `NotMeasurable` if fewer than five records are beyond the quantile."""
        measurement = super().measure(item, answers)
        evidence = measurement.evidence
        number, noun, which, others = evidence.units or 0, "records", "", ""
        if evidence.observations is not None:
            number, noun, others = evidence.observations, "observations", " with other prompts"
            which = f" ({evidence.units:,} records, whose equal prompts share their answers)"
        tail = min(item.settings.tails)
        if number * tail < TAIL_RECORDS:
            raise NotMeasurable(
                f"the quantile {item.settings.quantile:g} of {number} {noun}{which} is too uncertain; at least "
                f"{math.ceil(TAIL_RECORDS / tail)} {noun} are needed. Add records{others}, or set `quantile` nearer "
                "to 0.5"
            )
        return measurement

    def quantity_details(self, item: RecordItem[TailSettings], quantity: int) -> dict[str, Json]:
        return {"quantiles": list(item.settings.tails), "quantile_of": item.settings.tails[quantity]}

    def pair_names(self, table: UnitTable, first: int, second: int) -> tuple[tuple[str, str], str]:
        quantiles = table.details["quantiles"]
        quantile = quantiles[first * len(quantiles) // len(table.columns)]
        return (table.columns[first], table.columns[second]), _quantile_name(quantile)

    def change_details(
        self, table: UnitTable, units: Sequence[str], current: Floats, baseline: Floats
    ) -> tuple[dict[str, Json], Sequence[str]]:
        details, records = super().change_details(table, units, current, baseline)
        quantiles = table.details["quantiles"]
        for place, part in enumerate(details["moved"]):
            quantile = quantiles[place * len(quantiles) // len(table.columns)]
            part["value"] = f"{_quantile_name(quantile)} of {part['value']}"
        return details, records

    def intersection(self, item: RecordItem[TailSettings], table: UnitTable) -> Intersection | None:
        combined = super().intersection(item, table)
        return combined and replace(combined, quantities=[*map(_quantile_name, item.settings.tails)])

    def summary_name(self, item: RecordItem[TailSettings], measurement: Measurement) -> str:
        return _quantile_name(measurement.details["quantile_of"])

    def fingerprint(self, item: RecordItem[TailSettings]) -> dict[str, str]:
        return {"quantile": f"{item.settings.quantile:g}"}


def _quantile_name(quantile: float) -> str:
    return f"{quantile:g} quantile"


class RankGap(NumberAudit[NumberSettings]):
    """Audit of ranks as fractions: with a gap of 0.06, records shown as A rank higher by 6 % of the ranking's length.

    For two values, twice the gap is P(A > B) − P(A < B), where A and B are the numbers of two random records, A of one
    shown as the first value and B of one shown as the second (Cliff's delta).
    """

    info = number_info(
        name="rank_gap",
        title="Different ranks",
        question="Would one value of an attribute place records higher in a ranking by their numbers?",
        formula="mean rank if shown as A − mean rank if shown as B;  rank = (midrank − ½) / number of all numbers, in "
        "one ranking of all numbers",
        meaning="−0.5 to 0.5; 0 = equal mean ranks. Above 0 = A has the higher numbers.",
        source="Brunner, Domhof and Langer 2002 (relative effects of paired samples); Cliff 1993",
        tolerance=0.05,
        value_range=(-0.5, 0.5),
        worst=0.5,
        limit_range=(0, 0.5),
        effect=CLIFFS_DELTA,
    )
    settings_model = NumberSettings
    summary = "rank"
    linear = False
    in_unit = False

    def scores(self, item: RecordItem[NumberSettings], rows: Floats, observations: int) -> Floats:
        return rank_scores(rows)

    def summary_name(self, item: RecordItem[NumberSettings], measurement: Measurement) -> str:
        return "mean rank"
