"""Base class of audits of gaps between groups of records; by default, only answers about unchanged records are used.

The groups are the values of an attribute, and the unit is the record. A rate of a group is not defined if none of the
group's records counts for it: a group without truly positive records has no true positive rate. Reports name such
rates, and audits do not compare them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from pytest_fairness.audits.base import SettingsT
from pytest_fairness.audits.effects import cohens_h
from pytest_fairness.audits.intersections import Intersection
from pytest_fairness.audits.records.decisions import (
    Draws,
    RecordAnswers,
    RecordAudit,
    RecordItem,
    by_record,
    counts,
    judge_details,
    shown_value,
)
from pytest_fairness.audits.unit_audit import MINIMUM_UNITS, PERMUTATIONS, UnitTable
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.counterfactual.model import CounterfactualProbe
from pytest_fairness.records import Answer, Answers, Comparison, Json, Measurement
from pytest_fairness.stats.arrays import Bools, Floats, number_or_none
from pytest_fairness.stats.groups import gaps
from pytest_fairness.stats.intervals import normal, proportions
from pytest_fairness.stats.resampling import significance
from pytest_fairness.stats.unit_tables.distances import ShareGap


class GroupAudit(RecordAudit[SettingsT]):
    """Base class of audits whose value is the largest gap between two groups in a rate, 0..1.

    If the audit has several rates, the value is the largest of the gaps in these rates.

    Class attributes:
        rates: names of the rates.
    """

    version = 4
    rates: ClassVar[tuple[str, ...]]

    def is_hit(self, probe: CounterfactualProbe, answer: Answer) -> bool:
        """Return whether the answer adds to the numerator of its rate (a hit); by default, positive answers do."""
        return bool(answer.content == probe.positive)

    def rate_of(self, probe: CounterfactualProbe, answer: Answer) -> str | None:
        """Return the name of the rate that includes the answer.

        The result is `None` if the rate depends on the true answer and the true answer is unknown.
        """
        return self.rates[0]

    def intersection(self, item: RecordItem[SettingsT], table: UnitTable) -> Intersection | None:
        """Return the attributes that the item combines, and the rates; `None` for a single attribute."""
        combined = super().intersection(item, table)
        return replace(combined, quantities=self.rates) if combined and len(self.rates) > 1 else combined

    def statistic(self, columns: int) -> ShareGap:
        """Return the statistic: the largest gap between two groups in a rate."""
        return ShareGap(len(self.rates), columns // 2 // len(self.rates))

    def answers_by_group(self, item: RecordItem[SettingsT], answered: RecordAnswers) -> Mapping[str, Draws]:
        """Return the measured answers about a record, by the group that the prompt states.

        By default, these are the answers about the unchanged record.
        """
        return {answered.labels[item.labels["attribute"]]: answered.own}

    def compared(self, sizes: Floats) -> Bools:
        """Return which groups are compared, given the (groups,) numbers of their records; by default, all groups."""
        return np.ones(len(sizes), dtype=np.bool_)

    def table(self, item: RecordItem[SettingsT], answers: Answers) -> UnitTable:
        """Return the table with a row for each record.

        Each pair (rate, group) has two columns, hits and size; all columns of hits come first. A record has its share
        of hits and the size 1 in the columns of its own pair, and 0 in all other columns. A group's rate is mean hits /
        mean size.
        """
        attribute = item.labels["attribute"]
        groups: tuple[str, ...] = item.probe.flips[attribute].values
        cells = [(rate, group) for rate in self.rates for group in groups]
        by_name = by_record(answers)
        rows = np.full((len(by_name), 2 * len(cells)), np.nan)
        for row, answered in enumerate(by_name.values()):
            usable = {
                group: [answer for answer in by_trial.values() if answer.usable]
                for group, by_trial in self.answers_by_group(item, answered).items()
            }
            rates = {group: self.rate_of(item.probe, own[0]) for group, own in usable.items() if own}
            if len(rates) < len(usable) or None in rates.values():
                continue
            rows[row] = 0.0
            for group, rate in rates.items():
                cell = cells.index((str(rate), group))
                rows[row, cell] = statistics.fmean(self.is_hit(item.probe, answer) for answer in usable[group])
                rows[row, len(cells) + cell] = 1.0
        names = [f"{rate} of {group}" for rate, group in cells]
        n, missing = counts(groups, ((shown_value(answer, attribute), answer) for answer in answers))
        trials = 1 + max((answer.trial for answer in answers), default=0)
        sizes = np.nansum(rows[:, len(cells) :], axis=0)
        smallest = int(min(sizes[sizes > 0], default=0))
        return UnitTable(
            units=tuple(by_name),
            columns=(*names, *(f"in {name}" for name in names)),
            rows=rows,
            n=n,
            missing=missing,
            step=1 / (float(smallest) * trials) if smallest else 0.0,
            least_error=proportions.least_difference_error(smallest),
            details={
                "rates": _rates(cells, rows, sizes),
                "undefined": [name for name, size in zip(names, sizes, strict=True) if not size],
                "positive": item.probe.positive,
                **judge_details(item.probe, answers),
            },
        )

    def check_table(self, table: UnitTable) -> None:
        """Raise `NotMeasurable` if there are too few records in total or in a group, or if no rate can be compared."""
        super().check_table(table)
        cells = len(table.columns) // 2
        sizes = np.nansum(table.rows[:, cells:], axis=0)
        asked = np.array([table.n[group] + table.missing[group] for group in table.n], dtype=np.float64)
        of_group = np.where(self.compared(asked), sizes.reshape(len(self.rates), -1).sum(axis=0), np.inf)
        if of_group.min() < MINIMUM_UNITS:
            name, few = list(table.n)[int(of_group.argmin())], int(of_group.min())
            raise NotMeasurable(
                f"only {few} records of {name} {self.usable}; {MINIMUM_UNITS} are needed. Add records of this group, "
                "or check its answers"
            )
        if math.isnan(float(self.statistic(len(table.columns)).value(table.means()))):
            raise NotMeasurable(
                "no rate can be compared: a rate needs records of at least two groups. Add records for these rates: "
                f"{', '.join(table.details['undefined'])}"
            )

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """Return the p-value of a permutation test.

        The test permutes the group labels of the records. In an audit of several rates (such as true and false positive
        rates), it permutes labels only among records whose answers count for the same rate; see `rate_of`.
        """
        rows, statistic = table.rows[table.complete], self.statistic(len(table.columns))
        half = rows.shape[1] // 2
        cells = rows[:, half:].argmax(axis=1).astype(np.int64)
        strata = cells // (half // len(self.rates))
        null = gaps.permuted_sums(rows[:, :half].sum(axis=1), cells, strata, PERMUTATIONS, random)
        sizes = rows[:, half:].sum(axis=0)
        padded = np.pad(null, ((0, 0), (0, half - null.shape[1])))
        drawn = self.info.loss(statistic.value(np.hstack([padded, np.tile(sizes, (len(padded), 1))])))
        return significance.p_value(drawn, self.info.loss(float(statistic.value(rows.sum(axis=0)))), exact=False)

    def change_details(
        self, table: UnitTable, units: Sequence[str], current: Floats, baseline: Floats
    ) -> dict[str, Json]:
        """Return details: the rates of both runs, and the records whose answers differ between the runs."""
        cells = current.shape[1] // 2
        sums = [run.sum(axis=0) for run in (current, baseline)]
        rates = [gaps.shares(run[:cells], run[cells:]) for run in sums]
        changed = (np.abs(current[:, :cells] - baseline[:, :cells]).max(axis=1) > 0).tolist()
        return {
            "moved": [
                {"value": name, "now": number_or_none(rates[0][cell]), "then": number_or_none(rates[1][cell])}
                for cell, name in enumerate(table.columns[:cells])
            ],
            "moved_records": [unit for unit, moved in zip(units, changed, strict=True) if moved],
        }

    def describe(self, measurement: Measurement) -> str:
        """Return a phrase with the gap, the rates of all groups, and the names of rates that are not defined."""
        parts = []
        for rate in self.rates:
            shares = [
                f"{part['rate']:.1%} of {part['group']}"
                for part in measurement.details["rates"]
                if part["name"] == rate and part["rate"] is not None
            ]
            parts.append(f"{rate}: {', '.join(shares) or 'none defined'}")
        undefined = measurement.details["undefined"]
        flag = f"; not defined: {', '.join(undefined)} (no records to compute a rate)" if undefined else ""
        return f"gap {measurement.value:.3g} ({'; '.join(parts)}){flag}"

    def contributions(self, measurement: Measurement) -> Mapping[str, float]:
        """Return each rate of each group, without rates that are not defined."""
        return {
            f"{rate['name']} of {rate['group']}": rate["rate"]
            for rate in measurement.details["rates"]
            if rate["rate"] is not None
        }

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """Return the rates that changed, the largest change first; empty if the audit's value did not become worse."""
        if comparison is None or comparison.value <= 0:
            return []
        moved = [part for part in comparison.details.get("moved", []) if None not in (part["now"], part["then"])]
        order = sorted(moved, key=lambda part: (-abs(part["now"] - part["then"]), part["value"]))
        return [
            f"{part['value']} {part['then']:.1%} to {part['now']:.1%}" for part in order if part["now"] != part["then"]
        ]


def _most_different_rates(measurement: Measurement) -> list[float]:
    """Return all groups' values of the rate that has the largest gap."""
    by_name: dict[str, list[float]] = {}
    for part in measurement.details["rates"]:
        if part["rate"] is not None:
            by_name.setdefault(part["name"], []).append(part["rate"])
    return max(by_name.values(), key=lambda rates: max(rates) - min(rates))


RATES_APART = cohens_h("the rates of the two groups that differ most", _most_different_rates)
"""Effect size of the gaps between groups of records."""


def _rates(cells: Sequence[tuple[str, str]], rows: Floats, sizes: Floats) -> list[dict[str, Json]]:
    """Return each rate of each group with Wilson's interval; both are `None` if no record of the group counts."""
    rates = []
    for cell, (rate, group) in enumerate(cells):
        size, hits = int(sizes[cell]), float(np.nansum(rows[:, cell]))
        interval = list(proportions.wilson(hits, size, normal.quantile(0.975))) if size else None
        rates.append(
            {
                "name": rate,
                "group": group,
                "records": size,
                "hits": hits,
                "rate": hits / size if size else None,
                "interval": interval,
            }
        )
    return rates
