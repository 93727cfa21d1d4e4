"""Audits of numeric answers, such as salaries: differences between attribute values in mean, quantile and ranks."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
from pydantic import Field

from pytest_fairness.audits.effects import CLIFFS_DELTA, cohens_d
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.intersections import Intersection
from pytest_fairness.audits.records.decisions import RecordItem
from pytest_fairness.audits.records.number_audit import NumberAudit, NumberSettings
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Answers, Json, Measurement
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.unit_tables.distances import SignedGap
from pytest_fairness.stats.unit_tables.influence import quantile_scores, rank_scores
from pytest_fairness.stats.unit_tables.statistic import UnitStatistic

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
        """The quantiles of the lower and of the upper tail; twice the median for 0.5."""
        lower, upper = sorted((self.quantile, round(1 - self.quantile, 9)))
        return lower, upper


number_info = partial(AuditInfo, better=Direction.ZERO, charts={"distribution": "distribution"})
"""Function that creates the description of an audit of numbers."""


class MeanGap(NumberAudit[GapSettings]):
    """Mean of the numbers for one value of an attribute minus the mean for another value, over the same records."""

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
        effect=cohens_d("mean", f"(difference of the means) / ({SPREAD})"),
    )
    settings_model = GapSettings
    summary = "mean"

    def scores(self, item: RecordItem[GapSettings], rows: Floats, observations: int) -> Floats:
        """Return `rows`: a record's score is the number in its answer."""
        return rows


class TailGap(NumberAudit[TailSettings]):
    """Largest gap between two values in a low or a high quantile of the numbers, over the same records.

    Both tails are compared, at `quantile` and at 1 − `quantile`, because a cap on the best numbers of a group and a
    cut of its worst ones hurt alike.
    """

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
        effect=cohens_d("mean", f"(difference of the quantiles) / ({SPREAD})"),
    )
    version = 3
    settings_model = TailSettings
    linear = False
    summary = "quantile"

    def scores(self, item: RecordItem[TailSettings], rows: Floats, observations: int) -> Floats:
        """Return scores whose column means are the quantiles of each tail; see `quantile_scores`."""
        return np.column_stack(
            [quantile_scores(column, quantile, observations) for quantile in item.settings.tails for column in rows.T]
        )

    def statistic(self, columns: int) -> UnitStatistic:
        """Return the statistic: the largest difference between two columns of the same tail."""
        return SignedGap(columns, quantities=2)

    def measure(self, item: RecordItem[TailSettings], answers: Answers) -> Measurement:
        """Return the measurement; see `Audit.measure`.

        Raises:
            NotMeasurable: there are too few records, or fewer than five are expected beyond the quantile.
        """
        measurement = super().measure(item, answers)
        records = measurement.details.get("observations", measurement.details["records"])
        tail = min(item.settings.tails)
        if records * tail < TAIL_RECORDS:
            raise NotMeasurable(
                f"the quantile {item.settings.quantile:g} of {records} records is too uncertain; at least "
                f"{math.ceil(TAIL_RECORDS / tail)} records are needed. Add records, or set `quantile` nearer to 0.5"
            )
        return measurement

    def quantity_details(self, item: RecordItem[TailSettings], quantity: int) -> dict[str, Json]:
        """Return both quantiles, and the one with the larger gap."""
        return {"quantiles": list(item.settings.tails), "quantile_of": item.settings.tails[quantity]}

    def pair_names(self, table: UnitTable, first: int, second: int) -> tuple[tuple[str, str], str]:
        """Return the names of two values, and of the quantile in which they are compared."""
        quantiles = table.details["quantiles"]
        quantile = quantiles[first * len(quantiles) // len(table.columns)]
        return (table.columns[first], table.columns[second]), _quantile_name(quantile)

    def intersection(self, item: RecordItem[TailSettings], table: UnitTable) -> Intersection | None:
        """Return the attributes that the item combines, with a table for each tail; see `UnitAudit.intersection`."""
        combined = super().intersection(item, table)
        return combined and replace(combined, quantities=[*map(_quantile_name, item.settings.tails)])

    def summary_name(self, measurement: Measurement) -> str:
        """Return the name of the summary, such as `0.9 quantile`."""
        return _quantile_name(measurement.details["quantile_of"])

    def fingerprint(self, item: RecordItem[TailSettings]) -> dict[str, str]:
        """Return the quantile; see `Audit.fingerprint`."""
        return {"quantile": f"{item.settings.quantile:g}"}


def _quantile_name(quantile: float) -> str:
    return f"{quantile:g} quantile"


class RankGap(NumberAudit[NumberSettings]):
    """Mean rank for one value minus the mean rank for another value, in one ranking of all records, −0.5..0.5.

    The numbers for all values are ranked together. A rank is a fraction of the ranking's length: with a gap of 0.06,
    records shown as the first value rank higher by 6 % of this length. For two values, twice the gap is
    P(A > B) − P(A < B), where A and B are the numbers of two random records, A of one shown as the first value and B of
    one shown as the second (Cliff's delta).
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
        """Return scores whose column means are the mean ranks; see `rank_scores`."""
        return rank_scores(rows)

    def summary_name(self, measurement: Measurement) -> str:
        """Return the name of the summary: `mean rank`."""
        return "mean rank"
