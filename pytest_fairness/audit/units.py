"""Audits whose unit has a name (an entity, an item, a record): a table of numbers by unit, and its change between runs.

The table is what all of them measure from; an audit says how a row comes about and which statistic of the columns'
means it takes.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audit.base import RESOLVED, Audit, AuditItem, Detectable, Probe, Standing, unless_by_chance
from pytest_fairness.errors import BaselineStale, NotMeasurable
from pytest_fairness.probe.settings import AuditSettings
from pytest_fairness.records import Answer, Comparison, Concern, Json, Measurement
from pytest_fairness.stats import blocks, normal, resampling

Floats = NDArray[np.float64]

MINIMUM_UNITS = 4
"""Complete units below which nothing is measured."""
INCOMPLETE_SHARE = 0.10
"""Share of the units that may lack an answer by the design of the data."""
SHOWN_UNITS = 3
SHARED_UNITS = 0.80
"""Share of the units that two runs must have in common to be compared."""
BOOTSTRAPS = 2000
FAR = 1000.0
"""How far `far` moves a mean: beyond any that there is."""
PERMUTATIONS = 1999

SettingsT = TypeVar("SettingsT", bound=AuditSettings)


@dataclass(frozen=True)
class UnitTable:
    """Numbers of each unit, averaged over its draws.

    Attributes:
        units: names of the rows, sorted; the same thing has the same name in every run.
        columns: names of the columns.
        rows: (units, columns); NaN where there is no number.
        n, missing: answers that were measured and answers that could not be, by group.
        details: what the audit adds to its measurement.
        step: by how much the value moves when a single answer of a single unit does, where answers are either one thing
            or the other; 0 where numbers move by any amount.
    """

    units: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Floats
    n: Mapping[str, int]
    missing: Mapping[str, int]
    details: Mapping[str, Json] = field(default_factory=dict)
    step: float = 0.0

    @property
    def complete(self) -> NDArray[np.bool_]:
        """(units,) whether there is a number in every column."""
        return whole(self.rows)

    def means(self) -> Floats:
        """(columns,) mean over the units that have the column's number."""
        mean: Floats = np.nanmean(self.rows, axis=0)
        return mean

    def rows_of(self, units: Sequence[str]) -> Floats:
        """(units, columns) the rows of these units, in their order."""
        places = {unit: row for row, unit in enumerate(self.units)}
        return self.rows[[places[unit] for unit in units]]


def whole(rows: Floats) -> NDArray[np.bool_]:
    """(units,) whether a row has all its numbers."""
    complete: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(rows), axis=1)
    return complete


class UnitAudit(Audit[SettingsT]):
    """An audit of a table by unit: units are drawn again for its error, and runs swapped within units for its change.

    Class attributes:
        counted: what the units are called, in the plural; also the name of their number in the details.
        usable: what those do that can be measured, for messages.
    """

    usable: ClassVar[str] = "can be measured"

    @abstractmethod
    def table(self, probe: Probe, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> UnitTable:
        """The numbers of one run; the result does not depend on the order of answers."""

    @abstractmethod
    def statistic(self, means: Floats) -> Floats:
        """The audit's value from the (..., columns) means; NaN where it is not defined."""

    def worse(self, statistic: Floats) -> Floats:
        """Values turned so that more is worse."""
        match self.better:
            case "lower":
                return statistic
            case "higher":
                return -statistic
            case "zero":
                return np.abs(statistic)
            case "fifty":
                return np.abs(statistic - 50)

    def badness(self, value: float) -> float:
        """The value turned so that more is worse; see `worse`."""
        return float(self.worse(np.array([value]))[0])

    def require(self, table: UnitTable) -> None:
        """Raise `NotMeasurable` unless enough units are complete; the message says what is missing."""
        complete = int(table.complete.sum())
        if complete >= MINIMUM_UNITS:
            return
        lost = ", ".join(
            f"{count} of {count + table.n.get(name, 0)} for {name}" for name, count in table.missing.items() if count
        )
        cure = f"answers are missing: {lost}" if lost else f"more {self.counted} are needed"
        raise NotMeasurable(
            f"only {complete} {self.counted} {self.usable}, {MINIMUM_UNITS} are needed; {cure}.", unusable=bool(lost)
        )

    def error_floor(self, table: UnitTable) -> float:
        """Standard error that is never undercut, however alike all units are."""
        return 0.0

    def change_error(self, now: Floats, then: Floats, earlier: Floats) -> float:
        """Standard error of the change, from the (draws, columns) means of both runs, drawn together.

        Only the change is drawn, upon the baseline as it was. Both runs are about the same units, so that which units
        there are is no error of it; but a gap near 0 or a range, drawn anew in both runs, would count it as one.

        Args:
            now, then: of both runs, drawn together.
            earlier: (columns,) the baseline's means as they were.
        """
        return float(np.nanstd(self._change(earlier + (now - then), earlier), ddof=1))

    def far(self, means: Floats, as_observed: Floats) -> Floats:
        """(..., columns) the means with one of them so far off that it stands out in every draw.

        A range or an absolute value varies less where everything is alike than where something is not. What a run
        would have seen is a matter of the latter. A value that is no such thing varies alike, and is left as it is.

        Args:
            means: (..., columns).
            as_observed: (columns,) to tell what stands out already.
        """
        return means

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """Of the hypothesis that there is no bias, one-sided where the audit has a direction."""
        return None

    def summary(self, table: UnitTable, value: float, drawn: Floats, random: np.random.Generator) -> dict[str, Json]:
        """What the details say beyond the table's own.

        Args:
            table: of this run.
            value: the audit's.
            drawn: (draws, columns) bootstrapped means.
            random: for further resampling.
        """
        return {}

    def measure(self, probe: Probe, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> Measurement:
        """The statistic, its bootstrap by unit and its test; see `Audit.measure`."""
        table = self.table(probe, item, answers)
        self.require(table)
        random = resampling.generator(f"{item.seed}/measure")
        value = float(self.statistic(table.means()))
        drawn = blocks.bootstrap_means(table.rows, BOOTSTRAPS, random)
        statistics = self.statistic(drawn)
        biased = self.statistic(self.far(drawn, table.means()))
        low, high = np.nanpercentile(statistics, [2.5, 97.5])
        return Measurement(
            value=value,
            interval=(float(low), float(high)),
            standard_error=max(float(np.nanstd(statistics, ddof=1)), self.error_floor(table)),
            p_value=self.p_value(table, random),
            n=dict(table.n),
            missing=dict(table.missing),
            details={
                self.counted: int(table.complete.sum()),
                "standard_error_if_biased": float(np.nanstd(biased, ddof=1)),
                "incomplete": [unit for unit, there in zip(table.units, table.complete, strict=True) if not there],
                **({"step": table.step} if table.step else {}),
                **self.summary(table, value, drawn, random),
                **table.details,
            },
        )

    def concerns(
        self, probe: Probe, item: AuditItem[SettingsT], answers: Sequence[Answer], measurement: Measurement
    ) -> list[Concern]:
        """Return the concern that units lack what the test needs though their answers are there; see `Audit.concerns`.

        A missing answer leaves at most one unit incomplete, and is counted as missing; the others lack it by design.
        """
        incomplete, complete = measurement.details["incomplete"], measurement.details[self.counted]
        by_design = len(incomplete) - sum(measurement.missing.values())
        if by_design <= INCOMPLETE_SHARE * (len(incomplete) + complete):
            return []
        names = ", ".join(map(str, incomplete[:SHOWN_UNITS])) + ", …" * (len(incomplete) > SHOWN_UNITS)
        return [
            Concern(
                "incomplete_units",
                f"{len(incomplete)} of {len(incomplete) + complete} {self.counted} cannot be compared: they lack an "
                f"answer for one of the groups, or a column that the audit needs ({names})",
            )
        ]

    def compare(
        self, probe: Probe, item: AuditItem[SettingsT], now: Sequence[Answer], then: Sequence[Answer]
    ) -> Comparison:
        """Change over the units that are complete in both runs, run by run swapped within them.

        Raises:
            NotMeasurable: fewer than `MINIMUM_UNITS` of them.
            BaselineStale: the runs share less than 80 % of their units.
        """
        now, then = self.comparable(now, then)
        present, earlier = self.table(probe, item, now), self.table(probe, item, then)
        shared = sorted({*present.units} & {*earlier.units})
        if len(shared) < SHARED_UNITS * max(len(present.units), len(earlier.units)):
            raise BaselineStale([f"list of {self.counted}"])
        first, second = (table.rows_of(shared) for table in (present, earlier))
        both = whole(first) & whole(second)
        if both.sum() < MINIMUM_UNITS:
            raise NotMeasurable(
                f"only {int(both.sum())} {self.counted} {self.usable} in both runs, {MINIMUM_UNITS} are needed"
            )
        first, second = first[both], second[both]
        random = resampling.generator(f"{item.seed}/compare")
        value = float(self._change(first.mean(axis=0), second.mean(axis=0)))
        if math.isnan(value):
            raise NotMeasurable(f"the {self.counted} that {self.usable} in both runs leave nothing to compare")
        swapped = blocks.swapped_means(first, second, PERMUTATIONS, random)
        # Both runs' rows of a unit are drawn together, as the same unit stands in both.
        drawn = blocks.bootstrap_means(np.hstack([first, second]), BOOTSTRAPS, random)
        both_drawn = drawn[:, : first.shape[1]], drawn[:, first.shape[1] :]
        earlier_means = second.mean(axis=0)
        change_error = self.change_error(*both_drawn, earlier_means)
        error = max(change_error, self.error_floor(present), self.error_floor(earlier))
        return Comparison(
            value=value,
            interval=normal.interval(value, error),
            standard_error=error,
            p_value=resampling.p_value(self._change(swapped[0], swapped[1]), value, exact=swapped[2]),
            details={
                f"compared_{self.counted}": int(both.sum()),
                "standard_error_if_biased": self.change_error(*both_drawn, self.far(earlier_means, earlier_means)),
                "only_now": sorted({*present.units} - {*shared}),
                "only_in_baseline": sorted({*earlier.units} - {*shared}),
                **self.moved(present, [shared[row] for row in np.flatnonzero(both)], first, second),
            },
        )

    def comparable(self, now: Sequence[Answer], then: Sequence[Answer]) -> tuple[Sequence[Answer], Sequence[Answer]]:
        """Both runs with the same number of draws, where more draws would move the value by themselves."""
        return now, then

    def moved(self, table: UnitTable, units: Sequence[str], now: Floats, then: Floats) -> dict[str, Json]:
        """What the comparison's details say of where the change comes from.

        Args:
            table: of this run.
            units: those that are complete in both runs.
            now, then: (units, columns) their rows in either run.
        """
        return {}

    def standing_less_chance(self, item: AuditItem[SettingsT], measurement: Measurement, limit: float) -> Standing:
        """Where a range or gap stands to the limit, which chance alone makes larger by `details["chance"]`.

        Beyond it takes a value that is beyond without what chance adds, and a test that chance does not explain it.
        """
        sign = -1 if self.better == "higher" else 1
        fair = replace(measurement, value=measurement.value - sign * measurement.details["chance"])
        standing = unless_by_chance(super().standing_to_limit(item, fair, limit), measurement.p_value, item.level)
        if standing == "within" and super().standing_to_limit(item, measurement, limit) != "within":
            return "unclear"
        return standing

    def detectable(
        self, item: AuditItem[SettingsT], measurement: Measurement, comparison: Comparison | None, tolerance: float
    ) -> Detectable:
        """As of any audit; but so few units, or answers, that no exchange could reach the item's level see nothing."""
        units = (comparison.details if comparison and comparison.paired else measurement.details).get(
            f"compared_{self.counted}", measurement.details[self.counted]
        )
        # The fewest two-fold exchanges (swaps, signs) of which a single one is rare enough.
        needed = math.ceil(-math.log2(max(item.planned_level, RESOLVED)))
        if units < needed:
            return Detectable(None, enough=False, times_more_units=needed / units)
        seen = super().detectable(item, *_if_biased(measurement, comparison), tolerance)
        # Where answers flip or do not, no fewer flips than that are told from chance.
        fewest = needed * float(measurement.details.get("step", 0.0))
        if seen.effect is None or fewest <= seen.effect:
            return seen
        return Detectable(
            fewest,
            enough=fewest <= 2 * tolerance,
            times_more_units=max(seen.times_more_units, fewest / (2 * tolerance) if tolerance > 0 else math.inf),
        )

    def describe_detectable(self, effect: float) -> str:
        """The minimum detectable effect, or that there is none."""
        return super().describe_detectable(effect) if math.isfinite(effect) else f"nothing, of so few {self.counted}"

    def _change(self, now: Floats, then: Floats) -> Floats:
        return self.worse(self.statistic(now)) - self.worse(self.statistic(then))


def far_in(means: Floats, column: int) -> Floats:
    """The means with this column `FAR` off."""
    moved = means.copy()
    moved[..., column] += FAR
    return moved


def _if_biased(measurement: Measurement, comparison: Comparison | None) -> tuple[Measurement, Comparison | None]:
    """Both with the error that they would have if what is to be seen were there."""
    if comparison is None:
        return _with_error(measurement), None
    return measurement, _with_error(comparison)


Estimate = TypeVar("Estimate", Measurement, Comparison)


def _with_error(estimate: Estimate) -> Estimate:
    error, biased = estimate.standard_error, estimate.details.get("standard_error_if_biased")
    if error is None or biased is None or biased <= error:
        return estimate
    return replace(estimate, standard_error=biased)
