"""Base class of audits that measure a table with a row for each unit; intersections; reversals."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from itertools import chain
from statistics import fmean, pvariance
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audits.base import AnyItem, Audit, AuditItem, ProbeT, SettingsT
from pytest_fairness.audits.rules import SignificantChange
from pytest_fairness.errors import BaselineStale, NotMeasurable, counted, significant
from pytest_fairness.probes.base import Probe
from pytest_fairness.records import (
    Answer,
    Answers,
    Comparison,
    Concern,
    Evidence,
    Explanation,
    Json,
    Measurement,
    Pair,
    Reversal,
    SharedChange,
)
from pytest_fairness.stats import intervals, resampling
from pytest_fairness.stats.resampling import Floats, number_or_none
from pytest_fairness.stats.unit_tables import PairTest, Sample, SideChange, UnitChange, UnitStatistic

# Base class of audits that measure a table with a row for each unit; it computes standard errors, tests and changes.
#
# A unit (an entity, a record, a sentence, a term) has the same name in every run. A subclass creates the rows of the
# table, and chooses the statistic of the column means that is the audit's value.

MINIMUM_UNITS = 4
"""Smallest number of complete units that can be measured."""
INCOMPLETE_SHARE = 0.10
"""Largest share of units that may be incomplete for another reason than missing answers."""
SHOWN_UNITS = 3
"""Number of units that a message names."""
SHARED_UNITS = 0.80
"""Smallest share of units that two runs must have in common to be compared."""


@dataclass(frozen=True)
class UnitTable:
    """A table with a row for each unit; its numbers are means or sums over the unit's answers.

    Attributes:
        units: names of the rows, sorted.
        columns: names of the columns.
        rows: (units, columns) numbers; NaN for a missing number.
        n, missing: number of usable and of missing answers, by group.
        details: audit-specific details of the measurement, as plain JSON.
        step: change of the value if one answer of one unit changes; 0 if an answer has more than two outcomes, so that
            the value can change by any amount.
        least_error: standard error to use if the rows of all units are equal; see `Sample`.
        effect_basis, counting: see `Evidence`.
        explain: function that explains the measured value; `None` if the audit's method `explanation` does.
        notes: reasons to doubt the table, and remarks.
    """

    units: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Floats
    n: Mapping[str, int]
    missing: Mapping[str, int]
    details: Mapping[str, Json] = field(default_factory=dict)
    step: float = 0.0
    least_error: float = 0.0
    effect_basis: Sequence[float] = ()
    counting: Mapping[str, float] | None = None
    explain: Callable[[Measurement], Explanation] | None = None
    notes: Sequence[Concern] = ()

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Return which units have a number in every column."""
        return complete_rows(self.rows)

    def means(self) -> Floats:
        """Return the mean of each column over the units that have a number in the column."""
        mean: Floats = np.nanmean(self.rows, axis=0)
        return mean

    def sample(self) -> Sample:
        """Return the rows of the complete units, with the means of all."""
        return Sample(self.rows[self.complete], self.means(), self.least_error)

    def sample_of_clusters(self, clusters: Mapping[str, str], *, sums: bool) -> Sample:
        """Return the sample in which a cluster counts as one unit.

        A sum of rows also depends on the number of units in the cluster, which is no error of a mean: only the
        deviations from the means are added.
        """
        if sums:
            return self.merged(clusters, sums=True).sample()
        centre = self.rows[self.complete].mean(axis=0)
        deviations = replace(self, rows=self.rows - centre).merged(clusters, sums=False)
        return Sample(deviations.rows + centre, self.means(), deviations.least_error)

    def merged(self, clusters: Mapping[str, str], *, sums: bool) -> UnitTable:
        """Return the table with one row for each cluster of complete units, which then counts as one unit.

        Args:
            clusters: name of the cluster of each unit that belongs to a cluster.
            sums: whether a row is the sum of its units' rows; otherwise it is the sum times clusters / units, so that
                the column means stay the same.
        """
        complete = self.complete
        names = [
            clusters.get(unit, unit) for unit, is_complete in zip(self.units, complete, strict=True) if is_complete
        ]
        units, rows = merged_rows(names, self.rows[complete], sums=sums)
        larger = len(names) / max(1, len(units))
        return replace(self, units=units, rows=rows, step=self.step * larger, least_error=self.least_error * larger)

    def rows_of(self, units: Sequence[str]) -> Floats:
        places = {unit: row for row, unit in enumerate(self.units)}
        return self.rows[[places[unit] for unit in units]]


def merged_rows(names: Sequence[str], rows: Floats, *, sums: bool) -> tuple[tuple[str, ...], Floats]:
    """Return the clusters' sorted names and merged rows, from complete rows with the names of their clusters."""
    clusters, places = np.unique(np.array(names, dtype=object), return_inverse=True)
    merged = np.zeros((len(clusters), rows.shape[1]))
    np.add.at(merged, places.reshape(-1), rows)
    return tuple(clusters.tolist()), merged if sums else merged * (len(clusters) / max(1, len(rows)))


def clusters_of(unit_of: Callable[[Answer], str], probe: Probe, runs: Sequence[Answers]) -> dict[str, str]:
    """Return the cluster of each unit whose answers are not drawn independently of another unit's answers.

    Units that share a prompt are in one cluster, which has the name of its first unit:

    - if the answers are recorded in a file that names the prompts, because one answer may stand in several rows,
    - at temperature 0, where equal prompts share one answer,
    - if all answers to equal prompts with the same trial number are equal in one of the runs, as from a deterministic
      target, from a cache, or in a baseline for which equal prompts were sent once.

    Otherwise each unit was asked for itself, and no unit is in a cluster.
    """
    if probe.responses is None and not probe.equal_prompts.copies:
        return {}
    shared = [
        [(key, answer) for answer in run if (key := probe.shared_prompt(answer.labels)) is not None] for run in runs
    ]
    by_prompt: dict[int | str, set[str]] = {}
    for key, answer in chain.from_iterable(shared):
        by_prompt.setdefault(key, set()).add(unit_of(answer))
    if not any(len(units) > 1 for units in by_prompt.values()):
        return {}
    if probe.responses is None and not probe.shares_answers and not any(map(_are_copies, shared)):
        return {}
    parents: dict[str, str] = {}

    def root(unit: str) -> str:
        while (parent := parents.setdefault(unit, unit)) != unit:
            parents[unit] = unit = parents.setdefault(parent, parent)
        return unit

    for units in by_prompt.values():
        first, *others = sorted(map(root, units))
        parents.update(dict.fromkeys(others, first))
    return {unit: root(unit) for unit in parents}


def _are_copies(answers: Sequence[tuple[int | str, Answer]]) -> bool:
    """Return whether all answers to equal prompts (by their key) with the same trial number are equal."""
    first: dict[tuple[int | str, int], str | None] = {}
    number = 0
    for key, answer in answers:
        if answer.text is not None:
            number += 1
            if first.setdefault((key, answer.trial), answer.text) != answer.text:
                return False
    return number > len(first)


def shortened_list(names: Sequence[str]) -> str:
    """List the first `SHOWN_UNITS` names, with “…” if there are more."""
    return ", ".join(names[:SHOWN_UNITS]) + ", …" * (len(names) > SHOWN_UNITS)


def complete_rows(rows: Floats) -> NDArray[np.bool_]:
    complete: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(rows), axis=1)
    return complete


class UnitAudit(Audit[ProbeT, SettingsT]):
    """Base class of audits that measure a table with a row for each unit.

    Standard errors and tests are taken over units. The comparison of two runs pairs units by name.

    Class attributes:
        counted: name of the units, in the plural; also the key of their number in the details.
        usable: phrase that says which units can be measured, for messages such as "only 3 entities have a list for
            every value".
    """

    rule = SignificantChange()
    usable: ClassVar[str] = "can be measured"

    @abstractmethod
    def table(self, item: AuditItem[ProbeT, SettingsT], answers: Answers) -> UnitTable:
        """Return the table of one run; the order of the answers does not matter."""

    @abstractmethod
    def statistic(self, columns: int) -> UnitStatistic:
        """Return the audit's statistic of the column means, for a table with this number of columns."""

    def unit_of(self, item: AuditItem[ProbeT, SettingsT], answer: Answer) -> str:
        """Return the name of the unit, as in `UnitTable.units`, to which an answer belongs."""
        return item.probe.unit_of(answer.labels)

    def clusters(self, item: AuditItem[ProbeT, SettingsT], *runs: Answers) -> Mapping[str, str]:
        """Return the cluster of each unit that shares answers with another unit; see `clusters_of`."""
        return clusters_of(lambda answer: self.unit_of(item, answer), item.probe, runs)

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """Return the p-value of the null hypothesis of no bias; `None` if the audit has no test for a single run."""
        return None

    def pair_names(self, table: UnitTable, first: int, second: int) -> tuple[tuple[str, str], str]:
        """Return the names of two of the statistic's groups, and of the rate that is compared (empty for only one)."""
        names = self.statistic(len(table.columns)).group_names(table.columns)
        return (names[first], names[second]), ""

    def pairs(self, table: UnitTable, random: np.random.Generator) -> tuple[Pair, ...]:
        """Return the comparison of each two groups of a run, for a statistic with `tests_pairs`."""
        rows = table.rows[table.complete]
        return self._named_pairs(table, self.statistic(len(table.columns)).pair_tests(rows, random))

    def _named_pairs(self, table: UnitTable, tests: Sequence[PairTest]) -> tuple[Pair, ...]:
        return tuple(Pair(*self.pair_names(table, test.first, test.second), *astuple(test)[2:]) for test in tests)

    def shared_rows(self, current: Floats, baseline: Floats) -> tuple[Floats, Floats]:
        """Return the (units, columns) rows of both runs that are compared, given the rows of the complete units."""
        return current, baseline

    def check_table(self, table: UnitTable) -> None:
        """Raise `NotMeasurable` if too few units have all numbers; the message states how many answers are missing."""
        complete = int(table.complete.sum())
        if complete >= MINIMUM_UNITS:
            return
        missing = ", ".join(
            f"{count} of {count + table.n.get(name, 0)} for {name}" for name, count in table.missing.items() if count
        )
        remedy = f"Check the missing answers: {missing}" if missing else f"Add {self.counted}"
        raise NotMeasurable(
            f"only {complete} {self.counted} {self.usable}; {MINIMUM_UNITS} are needed. {remedy}.",
            unusable=bool(missing),
        )

    def _check_observations(self, units: int, observations: int) -> None:
        if observations < min(units, MINIMUM_UNITS):
            raise NotMeasurable(
                f"the {units:,} {self.counted} are only {counted(observations, 'observation')}, because equal prompts "
                f"share their answers; {MINIMUM_UNITS} are needed. Add {self.counted} with other prompts, or ask at a "
                "temperature above 0"
            )

    def comparable(
        self, item: AuditItem[ProbeT, SettingsT], current: Answers, baseline: Answers
    ) -> tuple[Answers, Answers]:
        """Return the answers of both runs, cut to the same number of trials if the value depends on this number.

        By default, the value does not depend on the number of trials, and the answers are returned unchanged.

        Raises:
            BaselineStale: the answers of the two runs cannot be compared.
        """
        return current, baseline

    def tables(
        self, item: AuditItem[ProbeT, SettingsT], current: Answers, baseline: Answers
    ) -> tuple[UnitTable, UnitTable]:
        """Return the tables of both runs, which have the same columns."""
        return self.table(item, current), self.table(item, baseline)

    def baseline_weight(self, current: UnitTable, baseline: UnitTable) -> float:
        """Return the baseline's weight in the means of both runs together, 0..1: its share of the usable answers."""
        answers, of_baseline = sum(current.n.values()), sum(baseline.n.values())
        return of_baseline / (answers + of_baseline) if answers + of_baseline else 0.5

    def intersection(self, item: AuditItem[ProbeT, SettingsT], table: UnitTable) -> Intersection | None:
        """Return the attributes whose combined values are the item's groups; `None` for fewer than two attributes."""
        return None

    def effect_basis(self, table: UnitTable) -> Sequence[float]:
        """Return the numbers from which the effect size follows with the value; see `Evidence`."""
        return table.effect_basis

    def value_details(self, table: UnitTable, random: np.random.Generator) -> dict[str, Json]:
        """Return further details of the measurement, computed from the whole table; `random` is for resampling."""
        return {}

    def change_details(
        self, table: UnitTable, units: Sequence[str], current: Floats, baseline: Floats
    ) -> tuple[dict[str, Json], Sequence[str]]:
        """Return details of the comparison, and phrases with the columns or units that worsened most, for its reason.

        The table is that of this run; `current` and `baseline` are (units, columns) rows of the units that are complete
        in both runs.
        """
        return {}, ()

    def measure(self, item: AuditItem[ProbeT, SettingsT], answers: Answers) -> Measurement:
        """Return the value, its standard error over units and the p-value of its test."""
        table = self.table(item, answers)
        self.check_table(table)
        statistic, clusters = self.statistic(len(table.columns)), self.clusters(item, answers)
        sums = statistic.is_of_sums(len(table.columns))
        observed = table.merged(clusters, sums=sums) if clusters else table
        self._check_observations(int(table.complete.sum()), len(observed.units))
        sample = table.sample_of_clusters(clusters, sums=sums) if clusters else table.sample()
        random = resampling.generator(f"{item.seed}/measure")
        bounds = statistic.bounds(sample, item.alpha, item.beta)
        pairs = self.pairs(observed, random) if statistic.tests_pairs else ()
        crossed = self.intersection(item, table) if statistic.distance is not None else None
        measurement = Measurement(
            value=float(statistic.value(sample.means)),
            interval=statistic.interval(sample),
            standard_error=statistic.standard_error(sample),
            p_value=min(pair.p_value for pair in pairs) if pairs else self.p_value(observed, random),
            n=dict(table.n),
            missing=dict(table.missing),
            details={
                self.counted: int(table.complete.sum()),
                **({"observations": len(observed.units)} if clusters else {}),
                "incomplete": [
                    unit for unit, is_complete in zip(table.units, table.complete, strict=True) if not is_complete
                ],
                **({"step": observed.step} if table.step else {}),
                **({"bounds": {"lower": bounds[0], "upper": bounds[1]}} if bounds else {}),
                **self.value_details(table, random),
                **({"intersections": crossed.tables(statistic, sample)} if crossed else {}),
                **table.details,
            },
            degrees_of_freedom=statistic.degrees_of_freedom(sample.rows),
            pairs=pairs,
            evidence=Evidence(
                units=int(table.complete.sum()),
                observations=len(observed.units) if clusters else None,
                bounds=bounds,
                effect_basis=tuple(self.effect_basis(table)),
                counting=table.counting,
            ),
            concerns=tuple(table.notes),
        )
        return replace(measurement, explanation=table.explain(measurement)) if table.explain else measurement

    def concerns(self, item: AuditItem[ProbeT, SettingsT], answers: Answers, measurement: Measurement) -> list[Concern]:
        """Return a concern if more than 10 % of the units are incomplete for another reason than missing answers.

        A missing answer makes at most one unit incomplete. If more units are incomplete than answers are missing, the
        data themselves lack values.
        """
        incomplete, complete = measurement.details["incomplete"], measurement.details[self.counted]
        total, by_design = len(incomplete) + complete, len(incomplete) - sum(measurement.missing.values())
        if by_design <= INCOMPLETE_SHARE * total:
            return [*measurement.concerns]
        message = (
            f"{len(incomplete)} of {total} {self.counted} cannot be compared ({shortened_list(incomplete)}), because "
            "an answer for one of the groups, or a value in the data file, is missing. Complete these rows"
        )
        return [Concern("incomplete_units", message), *measurement.concerns]

    def compare(self, item: AuditItem[ProbeT, SettingsT], current: Answers, baseline: Answers) -> Comparison:
        """Return the change over the units that are complete in both runs; see `UnitChange`.

        Raises:
            NotMeasurable: fewer than `MINIMUM_UNITS` units are complete in both runs, or these units belong to fewer
                than two groups.
            BaselineStale: the runs share fewer than 80 % of their units.
        """
        runs = self.comparable(item, current, baseline)
        current_table, baseline_table = self.tables(item, *runs)
        shared = sorted({*current_table.units} & {*baseline_table.units})
        if len(shared) < SHARED_UNITS * max(len(current_table.units), len(baseline_table.units)):
            raise BaselineStale([f"list of {self.counted}"])
        first, second = (each.rows_of(shared) for each in (current_table, baseline_table))
        both = complete_rows(first) & complete_rows(second)
        if both.sum() < MINIMUM_UNITS:
            raise NotMeasurable(
                f"only {int(both.sum())} {self.counted} {self.usable} in both runs; {MINIMUM_UNITS} are needed. Check "
                "the missing answers, or rebaseline"
            )
        first, second = self.shared_rows(first[both], second[both])
        statistic = self.statistic(len(current_table.columns))
        if math.isnan(float(statistic.value((first.mean(axis=0) + second.mean(axis=0)) / 2))):
            raise NotMeasurable(
                f"the {int(both.sum())} {self.counted} that {self.usable} in both runs belong to fewer than two "
                "groups, so that no value can be computed. Rebaseline"
            )
        names = [unit for unit, is_complete in zip(shared, both, strict=True) if is_complete]
        clusters = self.clusters(item, *runs)
        observed, least_error = (first, second), max(current_table.least_error, baseline_table.least_error)
        if clusters:
            of_clusters = [clusters.get(name, name) for name in names]
            sums = statistic.is_of_sums(first.shape[1])
            observed = merged_rows(of_clusters, first, sums=sums)[1], merged_rows(of_clusters, second, sums=sums)[1]
            self._check_observations(len(first), len(observed[0]))
            least_error *= len(first) / len(observed[0])
        change = UnitChange.of(
            statistic,
            *observed,
            least_error=least_error,
            seed=item.seed,
            baseline_weight=self.baseline_weight(current_table, baseline_table),
        )
        pairs = self._named_pairs(current_table, change.pairs)
        pair = None if change.pair is None else pairs[change.pairs.index(change.pair)]
        # The gap that is largest in both runs together may be as large as before, although another pair's gap grew.
        grown = [each for each in pairs if each.p_value <= item.alpha and each.value > self.tolerance_of(item.settings)]
        if pair not in grown:
            pair = min(grown, key=lambda each: each.p_value, default=pair)
        details, contributors = self.change_details(current_table, names, first, second)
        return comparison(
            change.value if pair is None else pair.value,
            change.standard_error if pair is None else pair.standard_error or 0.0,
            change.p_value if pair is None else pair.p_value,
            degrees_of_freedom=change.degrees_of_freedom,
            reversal=None
            if change.side_change is None
            else _reversal(change.side_change, statistic.group_names(current_table.columns)),
            pairs=pairs,
            pair=pair,
            evidence=Evidence(
                units=len(names),
                observations=len(observed[0]) if clusters else None,
                step=current_table.step * len(names) / len(observed[0]),
                compared=tuple(sum(table.n.values()) for table in (current_table, baseline_table)),
                other_change=(change.growth, change.growth_error)
                if pairs
                else (change.signed_change, change.signed_change_error)
                if statistic.compares_several_pairs
                else None,
                either_side=change.direction_unknown,
            ),
            details={
                f"compared_{self.counted}": len(names),
                **({"observations": len(observed[0])} if clusters else {}),
                **({"step": current_table.step * len(names) / len(observed[0])} if current_table.step else {}),
                "either_side": change.direction_unknown,
                **(
                    {"growth": [change.growth, change.growth_error]}
                    if pairs
                    else {"along_pattern": [change.signed_change, change.signed_change_error]}
                    if statistic.compares_several_pairs
                    else {}
                ),
                "only_now": sorted({*current_table.units} - {*shared}),
                "only_in_baseline": sorted({*baseline_table.units} - {*shared}),
                **details,
            },
            contributors=contributors,
        )


def _reversal(side_change: SideChange, names: Sequence[str]) -> Reversal:
    high, low = names[side_change.high], names[side_change.low]
    return group_reversal(high, low, side_change.current, side_change.baseline, side_change.p_value)


# Intersections: groups that are combinations of the values of several attributes, each compared with a reference.
#
# A combination, such as Black women, is called a cell. The reference is the first cell, or the most selected cell
# for an impact ratio.


@dataclass(frozen=True)
class Intersection:
    """Attributes whose combined values are the groups of an item.

    Attributes:
        attributes: names of the attributes.
        cells: attribute values of each cell; the cells are in the order in which the audit's statistic has its groups.
        quantities: names of the numbers that the statistic computes for each cell; one empty name for a single number.
    """

    attributes: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    quantities: Sequence[str] = ("",)

    def tables(self, statistic: UnitStatistic, sample: Sample) -> list[dict[str, Json]]:
        """Return a table of the cells' values and differences from the reference, for each quantity that is defined."""
        numbers = statistic.groups(sample.means)
        tables: list[dict[str, Json]] = []
        for block, quantity in enumerate(self.quantities):
            first = block * len(self.cells)
            own = numbers[first : first + len(self.cells)]
            if np.isnan(own).all():
                continue
            reference = statistic.reference(own)
            others = [first + place for place in np.flatnonzero(~np.isnan(own)).tolist() if place != reference]
            tests = {test.first - first: test for test in statistic.reference_tests(sample, first + reference, others)}
            entries: list[dict[str, Json]] = []
            for place, cell in enumerate(self.cells):
                entry: dict[str, Json] = {"cell": list(cell), "value": number_or_none(own[place])}
                if (test := tests.get(place)) is not None:
                    entry |= {"gap": test.value, "interval": list(test.interval), "p_value": test.p_value}
                entries.append(entry)
            tables.append(
                {
                    "quantity": quantity,
                    "attributes": list(self.attributes),
                    "reference": list(self.cells[reference]),
                    "cells": entries,
                }
            )
        return tables


# Comparisons of two runs: the estimated change, reversals of a gap, and changes that all groups share.

LARGE_NUMBER = 0.5
"""A mean number that moves by so many standard deviations is a large change."""
LARGE_SHARE = 0.20
"""A share of answers (a choice, refusals), or a similarity of lists, that moves by so much is a large change."""
LARGE_LENGTH = 1.5
"""A mean number of words that grows or falls by this factor is a large change."""
FEWEST_OF_GROUP = 4
"""Smallest number of answers of a group in each run; smaller groups are left out."""
CLEAR_ERRORS = 4.0
"""Smallest change of all groups together, in its standard errors."""
MEAN, LENGTH, ALIKE = "mean number", "words of an answer", "similarity to the baseline's lists for the same entity"
REFUSALS = "refusals"

FEWEST_PROMPTS = 8
"""Smallest number of prompts of both runs from whose changes the standard error is estimated as well."""

ByPrompt = Mapping[Hashable, Sequence[float]]
Levels = Mapping[str, Mapping[str, ByPrompt]]
"""Numbers of the answers, by the name of the quantity, by group and by prompt."""


def comparison(
    value: float,
    standard_error: float,
    p_value: float,
    *,
    degrees_of_freedom: float | None = None,
    reversal: Reversal | None = None,
    pairs: Sequence[Pair] = (),
    pair: Pair | None = None,
    evidence: Evidence | None = None,
    details: Mapping[str, Json],
    contributors: Iterable[str] = (),
) -> Comparison:
    """Return the comparison of two runs, with the confidence interval of the change."""
    return Comparison(
        value=value,
        interval=intervals.interval(value, standard_error, degrees_of_freedom=degrees_of_freedom),
        standard_error=standard_error,
        p_value=p_value,
        degrees_of_freedom=degrees_of_freedom,
        reversal=reversal,
        pairs=pairs,
        pair=pair,
        evidence=evidence or Evidence(),
        details=details,
        explanation=Explanation.of(names=contributors),
    )


def group_reversal(high: str, low: str, current: float, baseline: float, p_value: float) -> Reversal:
    """Return the reversal of a gap, which is now above 0 and was below 0; the p-value (two-sided) is of no change."""
    sides = f"{high} was {significant(-baseline)} below {low} and is {significant(current)} above"
    return Reversal(current, intervals.p_value_of_second_test(p_value), sides)


def shared_changes(item: AnyItem, current: Answers, baseline: Answers) -> tuple[SharedChange, ...]:
    """Return large changes since the baseline that all groups share, the largest first.

    Such a change leaves the differences between groups as they are: all scores fall by 30 points, every decision
    becomes "yes", or all lists name other titles. Compared are the mean number, the share of each choice and of
    refusals, the mean number of words, and the similarity of the lists for an entity to those of the baseline.
    """
    before, now = (_levels(item, run, baseline) for run in (baseline, current))
    found: dict[str, tuple[float, SharedChange]] = {}
    for name in before.keys() & now.keys():
        pairs = {
            group: tuple([*chain.from_iterable(run[name][group].values())] for run in (before, now))
            for group in sorted(before[name].keys() & now[name].keys())
        }
        pairs = {group: pair for group, pair in pairs.items() if min(map(len, pair)) >= FEWEST_OF_GROUP}
        if not pairs:
            continue
        every = tuple([value for pair in pairs.values() for value in pair[side]] for side in (0, 1))
        size, sizes = _size_of_change(name, *every), [_size_of_change(name, *pair) for pair in pairs.values()]
        error = max(
            math.sqrt(sum(pvariance(values) / len(values) for values in every)),
            _error_over_prompts(*([run[name][group] for group in pairs] for run in (before, now))),
        )
        if abs(size) < 1 or abs(fmean(every[1]) - fmean(every[0])) < CLEAR_ERRORS * error:
            continue
        if all(own * size > 0 and abs(own) >= 0.5 for own in sizes):
            kind = "answers" if name.startswith("answer ") else name
            shown = [f"{group} {_change_text(item, name, *pair)}" for group, pair in pairs.items()]
            of_groups = f" ({', '.join(shown)})" if len(shown) > 1 else ""
            text = f"{name} {_change_text(item, name, *every)}{of_groups}"
            if kind not in found or size > found[kind][0]:  # of the choices, the one that is given more often
                found[kind] = size, SharedChange(kind, text)
    return tuple(change for _, change in sorted(found.values(), key=lambda each: (-abs(each[0]), each[1].quantity)))


def _error_over_prompts(before: Sequence[ByPrompt], now: Sequence[ByPrompt]) -> float:
    """Return the mean change's standard error by prompt, because answers may be copies; 0 if there are few prompts."""
    parts = defaultdict[Hashable, float](float)
    for run, sign in ((before, -1), (now, 1)):
        every = [value for own in run for values in own.values() for value in values]
        mean = fmean(every)
        for prompt, values in chain.from_iterable(own.items() for own in run):
            parts[prompt] += sign * sum(value - mean for value in values) / len(every)
    return math.sqrt(sum(part**2 for part in parts.values())) if len(parts) >= FEWEST_PROMPTS else 0.0


def _levels(item: AnyItem, answers: Answers, baseline: Answers) -> Levels:
    levels: defaultdict[str, defaultdict[str, defaultdict[Hashable, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    reading = item.probe.reading
    choices = reading.choices or (reading.judging.choices if reading.judging is not None else ())
    lists = _lists_by_entity(baseline)
    for answer in answers:
        if not (answer.usable or answer.refused):
            continue
        group = item.group_name(answer)
        prompt = item.probe.shared_prompt(answer.labels) or frozenset(answer.labels.items())
        levels[REFUSALS][group][prompt].append(float(answer.refused))
        content = answer.content
        if not answer.usable:
            continue
        if choices:
            for choice in choices:
                levels[f"answer {choice!r}"][group][prompt].append(float(content == choice))
        elif reading.number is not None:
            levels[MEAN][group][prompt].append(float(content))
        elif isinstance(content, str):
            levels[LENGTH][group][prompt].append(float(len(content.split())))
        elif isinstance(content, list) and "entity" in answer.labels:
            own = _items(answer)
            alike = lists.get(answer.labels["entity"], ())
            # Equal lists for one prompt may be copies of one answer, as from a cache.
            others = [each for other, each in alike if other.labels != answer.labels]
            others = others or [each for other, each in alike if other is not answer and each != own]
            if others:
                levels[ALIKE][group][prompt].append(fmean(len(own & each) / (len(own | each) or 1) for each in others))
    return levels


def _lists_by_entity(answers: Answers) -> dict[str, list[tuple[Answer, frozenset[str]]]]:
    found: dict[str, list[tuple[Answer, frozenset[str]]]] = {}
    for answer in answers:
        if answer.usable and isinstance(answer.content, list) and "entity" in answer.labels:
            found.setdefault(answer.labels["entity"], []).append((answer, _items(answer)))
    return found


def _items(answer: Answer) -> frozenset[str]:
    return frozenset(str(each).casefold() for each in answer.content)


def _size_of_change(name: str, before: Sequence[float], now: Sequence[float]) -> float:
    """Return the change of the mean in units of a large change: 1 or −1 is large."""
    first, second = fmean(before), fmean(now)
    if name == LENGTH:
        return math.log((second or 1) / (first or 1)) / math.log(LARGE_LENGTH)
    if name == MEAN:
        spread = math.sqrt(pvariance(before)) or math.sqrt(pvariance(now)) or abs(first) or 1.0
        return (second - first) / (LARGE_NUMBER * spread)
    return (second - first) / LARGE_SHARE


def _change_text(item: AnyItem, name: str, before: Sequence[float], now: Sequence[float]) -> str:
    numbers = [fmean(values) for values in (before, now)]
    if name in (MEAN, LENGTH):
        unit = item.probe.reading.number.unit if name == MEAN and item.probe.reading.number is not None else ""
        return f"{' → '.join(significant(number) for number in numbers)} {unit}".rstrip()
    if name == ALIKE:
        return " → ".join(f"{number:.2f}" for number in numbers)
    return " → ".join(f"{number:.0%}" for number in numbers)
