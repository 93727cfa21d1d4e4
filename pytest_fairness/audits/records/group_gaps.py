"""Are groups decided upon alike? Gaps between the groups of records as they are, without any flip.

The groups are the values of a flipped attribute, the unit is the record. A rate that is not defined, as a group has no
record that it could be taken from, is flagged and never filled in.
"""

from __future__ import annotations

import math
import statistics
from abc import abstractmethod
from collections.abc import Sequence
from itertools import combinations
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audits.base import AuditItem, Probe
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.records.decisions import RecordAudit, by_record, counts, judge_details
from pytest_fairness.audits.unit_audit import MINIMUM_UNITS, PERMUTATIONS, UnitTable
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.records import Answer, Comparison, Json, Measurement
from pytest_fairness.stats import gaps, normal, proportions, resampling

Floats = NDArray[np.float64]


ADULT = "Wang et al. 2023, “DecodingTrust”, and the fairness criteria of "


class GroupSettings(AuditSettings):
    """Gaps between groups take no settings of their own."""


SettingsT = TypeVar("SettingsT", bound=AuditSettings)


class GroupAudit(RecordAudit[SettingsT]):
    """Largest gap between groups in a rate, 0..1.

    Class attributes:
        rates: names of the rates that each group has.
    """

    settings_model: ClassVar[type[AuditSettings]] = GroupSettings
    version: ClassVar[int] = 3
    rates: ClassVar[tuple[str, ...]]

    @abstractmethod
    def hit(self, probe: Probe, answer: Answer) -> bool:
        """Whether the answer counts for its rate."""

    def rate_of(self, probe: Probe, answer: Answer) -> str | None:
        """The rate that an answer about this record belongs to; `None` where that is not known."""
        return self.rates[0]

    def table(self, probe: Probe, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> UnitTable:
        """By record its share of hits in the column of its cell, a rate of a group; then whether it is in it."""
        attribute = item.labels["attribute"]
        groups: tuple[str, ...] = probe.flips[attribute].values
        cells = [(rate, group) for rate in self.rates for group in groups]
        by_name = by_record(answers)
        rows = np.full((len(by_name), 2 * len(cells)), np.nan)
        for row, decided in enumerate(by_name.values()):
            usable = [answer for answer in decided.own.values() if answer.usable]
            if not usable or (rate := self.rate_of(probe, usable[0])) is None:
                continue
            cell = cells.index((rate, decided.labels[attribute]))
            rows[row] = 0.0
            rows[row, cell] = statistics.fmean(self.hit(probe, answer) for answer in usable)
            rows[row, len(cells) + cell] = 1.0
        names = [f"{rate} of {group}" for rate, group in cells]
        n, missing = counts(groups, ((answer.labels[attribute], answer) for answer in answers))
        draws = 1 + max((answer.trial for answer in answers), default=0)
        sizes = np.nansum(rows[:, len(cells) :], axis=0)
        defined = sizes[sizes > 0]
        return UnitTable(
            units=tuple(by_name),
            columns=(*names, *(f"in {name}" for name in names)),
            rows=rows,
            n=n,
            missing=missing,
            step=1 / (float(defined.min()) * draws) if len(defined) else 0.0,
            details={
                "rates": _rates(cells, rows, sizes),
                "undefined": [name for name, size in zip(names, sizes, strict=True) if not size],
                "positive": probe.positive,
                **judge_details(probe, answers),
            },
        )

    def require(self, table: UnitTable) -> None:
        """Enough records in all, and of each group; and at least two groups that can be set against each other."""
        super().require(table)
        cells = len(table.columns) // 2
        groups = cells // len(self.rates)
        sizes = np.nansum(table.rows[:, cells:], axis=0)
        of_group = sizes.reshape(len(self.rates), groups).sum(axis=0)
        if (few := int(of_group.min())) < MINIMUM_UNITS:
            name = list(table.n)[of_group.tolist().index(of_group.min())]
            raise NotMeasurable(f"only {few} records of {name} {self.usable}, {MINIMUM_UNITS} are needed")
        if math.isnan(float(self.statistic(table.means()))):
            raise NotMeasurable(f"no rate is defined for two groups: {', '.join(table.details['undefined'])} are not")

    def statistic(self, means: Floats) -> Floats:
        """Largest less smallest rate."""
        return gaps.gap(self._shares(means))

    def _shares(self, means: Floats) -> Floats:
        cells = means.shape[-1] // 2
        return gaps.shares(means[..., :cells], means[..., cells:])

    def levels(self, means: Floats) -> Floats:
        """Return the rates."""
        return self._shares(means)

    def level_slopes(self, means: Floats) -> Floats:
        """Return the gradients of hits over sizes; 0 where a rate is not defined."""
        cells = len(means) // 2
        hits, sizes = means[:cells], means[cells:]
        inverse = np.divide(1.0, sizes, out=np.zeros(cells), where=sizes > 0)
        return np.hstack([np.diag(inverse), np.diag(-hits * inverse**2)])

    def pairs(self, levels: int) -> Sequence[tuple[int, int]]:
        """Return all pairs of groups, of every rate."""
        groups = levels // len(self.rates)
        return tuple(
            (rate * groups + first, rate * groups + second)
            for rate in range(len(self.rates))
            for first, second in combinations(range(groups), 2)
        )

    def degrees_of_freedom(self, rows: Floats) -> float:
        """Return those of the smallest group, of which least is known."""
        sizes = rows[:, rows.shape[1] // 2 :].sum(axis=0)
        return float(max(1.0, sizes[sizes > 0].min() - 1))

    def bounds(self, table: UnitTable, alpha: float, beta: float) -> tuple[float, float]:
        """Return the bounds by Newcombe's interval of each pair of groups (1998, method 10); see `largest_bounds`."""
        cells = len(table.columns) // 2
        hits, sizes = (np.nansum(side, axis=0) for side in (table.rows[:, :cells], table.rows[:, cells:]))
        pairs = [pair for pair in self.pairs(cells) if all(sizes[cell] for cell in pair)]
        below, above = normal.quantile(1 - alpha / len(pairs)), normal.quantile(1 - beta)
        lower, upper = 0.0, 0.0
        for pair in pairs:
            low, high = sorted(pair, key=lambda cell: hits[cell] / sizes[cell])
            counts_of = float(hits[high]), int(sizes[high]), float(hits[low]), int(sizes[low])
            lower = max(lower, proportions.newcombe(*counts_of, below)[0])
            upper = max(upper, proportions.newcombe(*counts_of, above)[1])
        return lower, upper

    def error_floor(self, table: UnitTable) -> float:
        """That no answer changed in groups so small does not show that none ever will."""
        cells = len(table.columns) // 2
        sizes = np.nansum(table.rows[:, cells:], axis=0)
        small = int(sizes[sizes > 0].min())
        return proportions.difference_error(0, small, 0, small)

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """That answers can be exchanged between the groups, among records of which the same is true."""
        rows = table.rows[table.complete]
        half = rows.shape[1] // 2
        cells = rows[:, half:].argmax(axis=1).astype(np.int64)
        strata = cells // (half // len(self.rates))
        null = gaps.exchanged(rows[:, :half].sum(axis=1), cells, strata, PERMUTATIONS, random)
        sizes = rows[:, half:].sum(axis=0)
        padded = np.pad(null, ((0, 0), (0, half - null.shape[1])))
        drawn = self.statistic(np.hstack([padded, np.tile(sizes, (len(padded), 1))]))
        return resampling.p_value(drawn, float(self.statistic(rows.sum(axis=0))), exact=False)

    def moved(self, table: UnitTable, units: Sequence[str], now: Floats, then: Floats) -> dict[str, Json]:
        """The rates in both runs, and the records whose answers are others."""
        cells = now.shape[1] // 2
        rates = [self._shares(run.mean(axis=0)) for run in (now, then)]
        changed = (np.abs(now[:, :cells] - then[:, :cells]).max(axis=1) > 0).tolist()
        return {
            "moved": [
                {"value": name, "now": _number(rates[0][cell]), "then": _number(rates[1][cell])}
                for cell, name in enumerate(table.columns[:cells])
            ],
            "moved_records": [unit for unit, moved in zip(units, changed, strict=True) if moved],
        }

    def describe(self, measurement: Measurement) -> str:
        """The gap, the rates it is between, what is not defined, and whether there is anything to be read in it."""
        parts = []
        for rate in self.rates:
            shares = [
                f"{part['rate']:.1%} of {part['group']}"
                for part in measurement.details["rates"]
                if part["name"] == rate and part["rate"] is not None
            ]
            parts.append(f"{rate}: {', '.join(shares) or 'none defined'}")
        undefined = measurement.details["undefined"]
        flag = f"; not defined: {', '.join(undefined)}, as no record is such" if undefined else ""
        return f"gap {measurement.value:.3g} ({'; '.join(parts)}){flag}"

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """The rates that moved."""
        if comparison is None or comparison.value <= 0:
            return []
        moved = [part for part in comparison.details.get("moved", []) if None not in (part["now"], part["then"])]
        order = sorted(moved, key=lambda part: (-abs(part["now"] - part["then"]), part["value"]))
        return [
            f"{part['value']} {part['then']:.1%} to {part['now']:.1%}" for part in order if part["now"] != part["then"]
        ]


def _rates(cells: Sequence[tuple[str, str]], rows: Floats, sizes: Floats) -> list[dict[str, Json]]:
    """Each rate of each group, with Wilson's interval; nothing where it is not defined."""
    found = []
    for cell, (rate, group) in enumerate(cells):
        size, hits = int(sizes[cell]), float(np.nansum(rows[:, cell]))
        interval = list(proportions.wilson(hits, size, normal.quantile(0.975))) if size else None
        found.append(
            {
                "name": rate,
                "group": group,
                "records": size,
                "hits": hits,
                "rate": hits / size if size else None,
                "interval": interval,
            }
        )
    return found


def _number(rate: float) -> float | None:
    return None if math.isnan(rate) else float(rate)


class DemographicParity(GroupAudit[GroupSettings]):
    """Largest gap between groups in the share of positive answers, 0..1.

    Where groups differ in what is true of them, a system that is always right has a gap as well.
    """

    info = AuditInfo(
        name="demographic_parity",
        title="Unequal shares of positive decisions",
        question="Does one group get the positive answer more often?",
        formula="|P(positive | group A) − P(positive | group B)|",
        meaning="0 is alike, whatever is true of the records.",
        source=ADULT + "Dwork et al. 2012",
        better=Direction.LOWER,
        tolerance=0.05,
        value_range=(0, 1),
    )
    rates: ClassVar[tuple[str, ...]] = ("positive answers",)

    def hit(self, probe: Probe, answer: Answer) -> bool:
        """Positive answers."""
        return bool(answer.content == probe.positive)


class Truthful(GroupAudit[SettingsT]):
    """A gap in rates that take what is true of the records."""

    def require(self, table: UnitTable) -> None:
        """What is true of them must be known of enough records."""
        if table.units and np.isnan(table.rows).all() and sum(table.n.values()):
            raise NotMeasurable("no record has the column that `truth` names", hopeless=True)
        super().require(table)


class EqualizedOdds(Truthful[GroupSettings]):
    """The larger of two gaps, in true positive and in false positive rates, 0..1 (Hardt, Price and Srebro 2016)."""

    info = AuditInfo(
        name="equalized_odds",
        title="Unequal error rates",
        question="Are right and wrong positive answers spread alike over groups?",
        formula="max(|gap of true positive rates|, |gap of false positive rates|)",
        meaning="0 is alike.",
        source=ADULT + "Hardt, Price and Srebro 2016",
        better=Direction.LOWER,
        tolerance=0.05,
        value_range=(0, 1),
    )
    rates: ClassVar[tuple[str, ...]] = ("true positive rate", "false positive rate")

    def hit(self, probe: Probe, answer: Answer) -> bool:
        """Positive answers, right or not."""
        return bool(answer.content == probe.positive)

    def rate_of(self, probe: Probe, answer: Answer) -> str | None:
        """By what is true of the record."""
        truth = answer.labels.get("truth")
        return None if truth is None else self.rates[truth != probe.truth.positive]

    def statistic(self, means: Floats) -> Floats:
        """The larger of the gaps that are defined."""
        return gaps.odds_gap(self._shares(means))


class Accuracy(Truthful[GroupSettings]):
    """Largest gap between groups in the share of right answers, 0..1."""

    info = AuditInfo(
        name="accuracy",
        title="Unequal accuracy",
        question="Is one group judged wrongly more often?",
        formula="|accuracy for group A − accuracy for group B|",
        meaning="0 is alike.",
        source=ADULT + "Hardt, Price and Srebro 2016",
        better=Direction.LOWER,
        tolerance=0.05,
        value_range=(0, 1),
    )
    rates: ClassVar[tuple[str, ...]] = ("right answers",)

    def hit(self, probe: Probe, answer: Answer) -> bool:
        """Right answers."""
        return bool((answer.content == probe.positive) == (answer.labels["truth"] == probe.truth.positive))

    def rate_of(self, probe: Probe, answer: Answer) -> str | None:
        """The only one, where it is known what is true."""
        return self.rates[0] if "truth" in answer.labels else None
