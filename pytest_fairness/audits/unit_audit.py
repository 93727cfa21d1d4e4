"""Audits whose unit has a name (an entity, an item, a record): a table of numbers by unit, and its change between runs.

The table is what all of them measure from; an audit says how a row comes about and which statistic of the columns'
means it takes.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audits.base import Audit, AuditItem, Probe
from pytest_fairness.audits.decision_rule import Decision
from pytest_fairness.errors import BaselineStale, NotMeasurable
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.records import Answer, Comparison, Concern, Json, Measurement, Reversal
from pytest_fairness.stats import blocks, gaps, normal, paired, resampling, spreads
from pytest_fairness.stats.spreads import Spread, furthest, largest_difference

Floats = NDArray[np.float64]

MINIMUM_UNITS = 4
"""Complete units below which nothing is measured."""
INCOMPLETE_SHARE = 0.10
"""Share of the units that may lack an answer by the design of the data."""
SHOWN_UNITS = 3
CLEAR = 3.0
"""Standard errors of the change by which the gaps of two runs must add up for their side to be known."""
TAIL = 0.025
"""Either tail of a 95 % interval."""
SHARED_UNITS = 0.80
"""Share of the units that two runs must have in common to be compared."""
PERMUTATIONS = 1999
SIGNS = 2**13
"""Signs that are tried in tests of one number for each unit: all there are of up to thirteen that moved."""

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


class Change(NamedTuple):
    """An estimated change that is positive where things got worse, its standard error and one-sided p-value."""

    value: float
    standard_error: float
    p_value: float


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

    def pairs(self, levels: int) -> Sequence[tuple[int, int]]:
        """Return the pairs of levels whose largest difference is the value's size; empty if the value is none."""
        return ()

    def levels(self, means: Floats) -> Floats:
        """Return the (..., levels) numbers that are set against each other, from the (..., columns) means."""
        return means

    def level_slopes(self, means: Floats) -> Floats:
        """Return the (levels, columns) gradients of the levels at (columns,) means."""
        return np.eye(len(means))

    def level_names(self, columns: Sequence[str]) -> Sequence[str]:
        """Return what the levels are called, from the names of the columns."""
        return columns

    def spread(self, levels: int) -> Spread | None:
        """Return how far the levels are apart, where the value is that and there are more than two; else `None`."""
        pairs = self.pairs(levels)
        return largest_difference(pairs) if len(pairs) > 1 else None

    def slope(self, means: Floats) -> Floats:
        """Return the (columns,) gradient of the value, turned so that more is worse, at (columns,) means."""
        levels, slopes = self.levels(means), self.level_slopes(means)
        if (spread := self.spread(len(levels))) is not None:
            return spread.slope(levels) @ slopes
        high, low = furthest(levels, self.pairs(len(levels)))
        found: Floats = slopes[high] - slopes[low]
        return found

    def error_floor(self, table: UnitTable) -> float:
        """Return the standard error where no unit differs from any other: that does not prove that none ever will."""
        return 0.0

    def degrees_of_freedom(self, rows: Floats) -> float:
        """Return those of a standard error over complete rows, (units, columns)."""
        return float(len(rows) - 1)

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """Of the hypothesis that there is no bias, one-sided where the audit has a direction."""
        return None

    def summary(self, table: UnitTable, value: float, random: np.random.Generator) -> dict[str, Json]:
        """What the details say beyond the table's own.

        Args:
            table: of this run.
            value: the audit's.
            random: for further resampling.
        """
        return {}

    def bounds(self, table: UnitTable, alpha: float, beta: float) -> tuple[float, float] | None:
        """Return one-sided bounds of the value's loss at these error rates; `None` if the standard error gives them.

        The size of a gap is above that of no gap by chance alone, so that its error does not give its bounds.
        """
        rows = table.rows[table.complete]
        levels = self.levels(table.means())
        pairs = self.pairs(len(levels))
        if not pairs:
            return None
        first, second = (np.array(side) for side in zip(*pairs, strict=True))
        influence = (rows - rows.mean(axis=0)) @ self.level_slopes(table.means()).T
        spread = (influence[:, first] - influence[:, second]).std(axis=0, ddof=1)
        errors = spread / math.sqrt(len(rows))
        if not errors.any():
            errors = np.full(len(errors), self.error_floor(table))
        degrees = self.degrees_of_freedom(rows)
        return gaps.largest_bounds(levels[first] - levels[second], errors, alpha, beta, degrees)

    def interval(self, table: UnitTable, value: float, error: float, degrees: float) -> tuple[float, float]:
        """Return the two-sided 95 % interval of the value."""
        return self.bounds(table, TAIL, TAIL) or normal.interval(value, error, degrees_of_freedom=degrees)

    def distance_bounds(
        self, item: AuditItem[SettingsT], measurement: Measurement, limit: float
    ) -> tuple[float, float] | None:
        """See `Audit.distance_bounds`; those of the value's loss are in the details."""
        found = measurement.details.get("bounds")
        worst = self.loss(limit)
        return None if found is None else (found["lower"] - worst, found["upper"] - worst)

    def measure(self, probe: Probe, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> Measurement:
        """The statistic, its error over units and its test; see `Audit.measure`."""
        table = self.table(probe, item, answers)
        self.require(table)
        random = resampling.generator(f"{item.seed}/measure")
        means, rows = table.means(), table.rows[table.complete]
        value = float(self.statistic(means))
        error = paired.mean_error((rows - rows.mean(axis=0)) @ self.slope(means)) or self.error_floor(table)
        degrees = self.degrees_of_freedom(rows)
        bounds = self.bounds(table, item.alpha, item.beta)
        return Measurement(
            value=value,
            interval=self.interval(table, value, error, degrees),
            standard_error=error,
            p_value=self.p_value(table, random),
            n=dict(table.n),
            missing=dict(table.missing),
            details={
                self.counted: int(table.complete.sum()),
                "incomplete": [unit for unit, there in zip(table.units, table.complete, strict=True) if not there],
                **({"step": table.step} if table.step else {}),
                **({"bounds": {"lower": bounds[0], "upper": bounds[1]}} if bounds else {}),
                **self.summary(table, value, random),
                **table.details,
            },
            degrees_of_freedom=degrees,
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
        """Change over the units that are complete in both runs, by a test of what moved in each unit.

        The change of a difference is taken to the side, and that of several groups along the pattern, that the two
        runs together show; see `stats.spreads`. As swapping the runs within a unit turns the sign of what moved in it,
        the test is by signs.

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
        joint = (first.mean(axis=0) + second.mean(axis=0)) / 2
        if math.isnan(float(self.statistic(joint))):
            raise NotMeasurable(f"the {self.counted} that {self.usable} in both runs leave nothing to compare")
        moves = (first - second) @ self.slope(joint)
        along = Change(
            self.change(first.mean(axis=0), second.mean(axis=0), moves),
            paired.mean_error(moves) or max(self.error_floor(present), self.error_floor(earlier)),
            paired.sign_flip(moves, SIGNS, resampling.generator(f"{item.seed}/compare")),
        )
        spread = self.spread(len(self.levels(joint)))
        change = along if spread is None else self._growth(spread, item, first, second, along)
        degrees = self.degrees_of_freedom(first)
        return Comparison(
            value=change.value,
            interval=normal.interval(change.value, change.standard_error, degrees_of_freedom=degrees),
            standard_error=change.standard_error,
            p_value=change.p_value,
            degrees_of_freedom=degrees,
            reversal=self._reversal(first, second, present.columns, resampling.generator(f"{item.seed}/reversal")),
            details={
                f"compared_{self.counted}": int(both.sum()),
                **({"step": present.step} if present.step else {}),
                "either_side": self._either_side(joint, along.standard_error),
                **({} if spread is None else {"along_pattern": [along.value, along.standard_error]}),
                "only_now": sorted({*present.units} - {*shared}),
                "only_in_baseline": sorted({*earlier.units} - {*shared}),
                **self.moved(present, [shared[row] for row in np.flatnonzero(both)], first, second),
            },
        )

    def _either_side(self, joint: Floats, error: float) -> bool:
        """Return whether both runs together, (columns,), do not show clearly which level is the higher one."""
        levels = self.levels(joint)
        spread, pairs = self.spread(len(levels)), self.pairs(len(levels))
        if spread is None and not pairs:
            return False
        return bool(2 * (spread or largest_difference(pairs)).size(levels) < CLEAR * error)

    def _growth(self, spread: Spread, item: AuditItem[SettingsT], now: Floats, then: Floats, along: Change) -> Change:
        """Return by how much several levels are further apart.

        Args:
            spread: how far they are apart.
            item: the item.
            now, then: (units, columns) of either run.
            along: the change along the pattern of both runs, whose error holds where no unit moved.
        """
        joint = (now.mean(axis=0) + then.mean(axis=0)) / 2
        pattern, slopes = self.levels(joint), self.level_slopes(joint)
        moves = (now - then) @ slopes.T
        half = moves.mean(axis=0) / 2
        size = spread.signed(pattern)

        def grown(half: Floats) -> Floats:
            return size(pattern + half) - size(pattern - half)

        moving = moves[(moves != 0).any(axis=1)]
        if not len(moving):
            return along
        flipped, exact = blocks.flipped_means(moving, SIGNS, resampling.generator(f"{item.seed}/growth"))
        value = float(grown(half))
        covariance = np.atleast_2d(np.cov(moves.T)) / len(moves)
        random = resampling.generator(f"{item.seed}/error")
        return Change(
            value,
            spreads.growth_error(size, pattern + half, pattern - half, covariance, random) or along.standard_error,
            resampling.p_value(grown(flipped * (len(moving) / len(moves) / 2)), value, exact=exact),
        )

    def change(self, now: Floats, then: Floats, moves: Floats) -> float:
        """Return the estimated change.

        Args:
            now, then: (columns,) means of either run.
            moves: (units,) what moved in each unit, turned so that more is worse.
        """
        return float(moves.mean())

    def _reversal(
        self, now: Floats, then: Floats, columns: Sequence[str], random: np.random.Generator
    ) -> Reversal | None:
        """Return the gap of the two levels that are furthest apart now, if it was on the other side in the baseline."""
        means = now.mean(axis=0), then.mean(axis=0)
        levels = [self.levels(each) for each in means]
        pairs = self.pairs(len(levels[0]))
        if not pairs:
            return None
        high, low = furthest(levels[0], pairs)
        present, earlier = (float(each[high] - each[low]) for each in levels)
        if not (present > 0 > earlier):
            return None
        moves = (now - then) @ self.level_slopes((means[0] + means[1]) / 2).T
        first, second = (np.array(side) for side in zip(*pairs, strict=True))
        flipped, exact = blocks.flipped_means(moves[(moves != 0).any(axis=1)], PERMUTATIONS, random)
        null = np.abs(flipped[:, first] - flipped[:, second]).max(axis=1) * np.count_nonzero((moves != 0).any(axis=1))
        total, names = moves.sum(axis=0), self.level_names(columns)
        observed = float(np.abs(total[first] - total[second]).max())
        return Reversal.tested(
            value=present,
            p_value=resampling.p_value(null, observed, exact=exact),
            description=f"{names[high]} was {-earlier:.3g} below {names[low]} and is {present:.3g} above",
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

    def judge_change(self, item: AuditItem[SettingsT], comparison: Comparison, tolerance: float) -> Decision:
        """Decide as any audit; but nothing passes where no change could be significant."""
        found = super().judge_change(item, comparison, tolerance)
        units = comparison.details.get(f"compared_{self.counted}")
        if found.outcome != "within" or units is None or found.accepted is None:
            return found
        # A single one of all two-fold exchanges (swaps, signs) has to be rare enough.
        needed = math.ceil(-math.log2(item.planned_alpha))
        if units < needed:
            return replace(
                found,
                outcome="unclear",
                times_more_units=needed / units,
                explanation=f"no change could be significant in fewer than {needed} {self.counted}",
            )
        # Where answers flip or do not, no fewer flips than that are told from chance.
        fewest = needed * float(comparison.details.get("step", 0.0))
        if fewest > found.accepted:
            return replace(
                found,
                outcome="unclear",
                times_more_units=fewest / found.accepted if found.accepted else math.inf,
                explanation=f"no change smaller than {fewest:.3g} could be significant in {units} {self.counted}",
            )
        return found
