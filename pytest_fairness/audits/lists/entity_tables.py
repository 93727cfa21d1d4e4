"""Tables of one number for each entity and attribute value, and what reports say of them.

A table holds the numbers of one run. Its details are the means of the attribute values, the most disadvantaged value,
the values by domain, and what changed between two runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from pytest_fairness.audits.findings import listed, shortened
from pytest_fairness.audits.lists.normalization import NEUTRAL
from pytest_fairness.audits.unit_audit import UnitTable
from pytest_fairness.records import ItemResult, Json, Pair
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.intervals.mean_errors import mean_error
from pytest_fairness.stats.lists import incomplete
from pytest_fairness.stats.resampling import paired_tests
from pytest_fairness.stats.unit_tables.change import SIGNS
from pytest_fairness.stats.unit_tables.statistic import UnitStatistic


@dataclass(frozen=True)
class Matrix(UnitTable):
    """A table of one number for each entity (row) and attribute value (column); the numbers are means over trials.

    Attributes:
        domains: domain of each entity; entities without a domain are left out.
        measured: the numbers before `compared` completed the rows; `None` if the rows are not completed.
    """

    domains: Mapping[str, str] = field(default_factory=dict)
    measured: Floats | None = None

    def merged(self, clusters: Mapping[str, str], *, sums: bool) -> UnitTable:
        """Return the table with one completed row for each cluster; see `UnitTable.merged`."""
        return UnitTable.merged(replace(self, measured=None), clusters, sums=sums)

    def compared(self, columns: Sequence[int]) -> Matrix:
        """Return the table of these columns with completed rows; see `stats.lists.incomplete`.

        The details list the other attribute values with their number of entities and their mean, as `too_few`.
        """
        left_out = {
            name: {
                "entities": int((~np.isnan(self.rows[:, column])).sum()),
                "mean": None if np.isnan(self.rows[:, column]).all() else float(np.nanmean(self.rows[:, column])),
            }
            for column, name in enumerate(self.columns)
            if column not in columns
        }
        measured = self.rows[:, columns]
        return replace(
            self,
            columns=tuple(self.columns[column] for column in columns),
            rows=incomplete.complete_rows(measured),
            measured=measured,
            details={**self.details, **({"too_few": left_out} if left_out else {})},
        )

    @classmethod
    def averaged(
        cls,
        values: Sequence[str],
        cells: Mapping[tuple[str, str], Sequence[float]],
        *,
        entities: Iterable[str],
        domains: Mapping[str, str],
        n: Mapping[str, int],
        missing: Mapping[str, int],
    ) -> Matrix:
        """Return a table in which each cell is the mean of the numbers of its entity and attribute value.

        Args:
            values: names of the columns.
            cells: the numbers of each pair (entity, attribute value).
            entities: names of the entities, in any order and with repetitions.
            domains, n, missing: see the attributes of `Matrix` and `UnitTable`.
        """
        units = tuple(sorted({*entities}))
        rows = np.full((len(units), len(values)), np.nan)
        for row, entity in enumerate(units):
            for column, value in enumerate(values):
                numbers = [number for number in cells.get((entity, value), ()) if not math.isnan(number)]
                if numbers:
                    rows[row, column] = sum(numbers) / len(numbers)
        return cls(units, tuple(values), rows, n, missing, domains=domains)

    @classmethod
    def joined(
        cls, values: Sequence[str], groups: Sequence[str], parts: Sequence[Matrix], details: Mapping[str, Json]
    ) -> Matrix:
        """Return one table with the rows of several tables, in the order of these tables.

        Args:
            values: names of the columns.
            groups: groups whose numbers of usable and missing answers are added up over the tables.
            parts: tables to join; no entity is in two of them.
            details: details of the joined table.
        """
        return cls(
            tuple(entity for part in parts for entity in part.units),
            tuple(values),
            np.concatenate([np.empty((0, len(values))), *(part.rows for part in parts)]),
            {group: sum(part.n[group] for part in parts) for group in groups},
            {group: sum(part.missing[group] for part in parts) for group in groups},
            details,
            domains={entity: domain for part in parts for entity, domain in part.domains.items()},
        )


SHOWN_ENTITIES = 5
"""Largest number of changed entities in the details."""
LONGEST_ENTRY = 60
"""Largest number of characters of a list entry that a finding names."""


def numbers_of(table: UnitTable) -> Floats:
    """Return the (entities, columns) measured numbers of a table, before its rows were completed."""
    return table.rows if not isinstance(table, Matrix) or table.measured is None else table.measured


def against_others(table: UnitTable, harmed: str, random: np.random.Generator) -> dict[str, dict[str, Json]]:
    """Return, for each attribute value, its mean minus the mean of all other attribute values, with interval and test.

    The one-sided p-value is from a sign-flip test over entities. It is adjusted for the number of attribute values; see
    `paired_tests.sign_flips`. The result is empty for a single attribute value.

    Args:
        table: numbers by entity (row) and value (column).
        harmed: whether the attribute value with the `highest` or the `lowest` mean is the most disadvantaged; empty to
            return no details.
        random: random generator.
    """
    rows = table.rows[table.complete]
    values = rows.shape[1]
    if not harmed or values < 2:
        return {}
    effects, signs = (
        each - (each.sum(axis=1, keepdims=True) - each) / (values - 1)
        for each in (rows, incomplete.contributions(numbers_of(table)))
    )
    p_values = paired_tests.sign_flips(signs if harmed == "highest" else -signs, SIGNS, random)
    return {
        name: {"effect": effect, "effect_interval": list(interval), "p_value": float(p_value)}
        for name, own, p_value in zip(table.columns, effects.T, p_values, strict=True)
        for effect, interval in [_mean_and_interval(own)]
    }


def pair_tests(table: UnitTable, random: np.random.Generator) -> tuple[Pair, ...]:
    """Return the difference of the means of each two attribute values, with interval and test.

    The two-sided p-value is from a sign-flip test over entities, adjusted for the number of pairs; see
    `paired_tests.sign_flips`.
    """
    rows, signs = table.rows[table.complete], incomplete.contributions(numbers_of(table))
    pairs = list(combinations(range(len(table.columns)), 2))
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    p_values = paired_tests.sign_flips(signs[:, first] - signs[:, second], SIGNS, random, two_sided=True)
    return tuple(
        Pair(
            (table.columns[one], table.columns[other]),
            "",
            *_mean_and_interval(rows[:, one] - rows[:, other]),
            float(p_value),
        )
        for (one, other), p_value in zip(pairs, p_values, strict=True)
    )


def worst_value(others: Mapping[str, Mapping[str, Json]], harmed: str) -> dict[str, Json]:
    """Return the most disadvantaged attribute value: the one that is most surely worse than the others.

    Args:
        others: result of `against_others`.
        harmed: as in `against_others`.
    """
    if not others:
        return {}
    sign = 1 if harmed == "highest" else -1
    # Rounded, so that values that are equal except for rounding errors are a tie; the first of a tie is taken.
    name = min(others, key=lambda name: (others[name]["p_value"], -round(sign * others[name]["effect"], 12)))
    return {"worst": {"value": name, "effect": others[name]["effect"], "p_value": others[name]["p_value"]}}


def by_domain(table: UnitTable, statistic: UnitStatistic, quantity: str) -> dict[str, Json]:
    """Return, for each domain of entities, the audit's value and the mean of each attribute value with lists.

    The result is empty if no entity has a domain.

    Args:
        table: numbers by entity (row) and value (column).
        statistic: statistic of the audit.
        quantity: key under which the means are returned.
    """
    if not isinstance(table, Matrix) or not table.domains:
        return {}
    details = {}
    for domain in sorted({*table.domains.values()}):
        numbers = numbers_of(table)[[table.domains.get(entity) == domain for entity in table.units]]
        columns = incomplete.compared_columns(numbers, 1, 1)
        rows = incomplete.complete_rows(numbers[:, columns])
        rows = rows[~np.isnan(rows[:, 0])]
        means = rows.mean(axis=0) if len(rows) else np.empty(0)
        details[domain] = {
            "entities": len(rows),
            "value": float(statistic.value(means)) if len(rows) else None,
            quantity: {table.columns[column]: float(mean) for column, mean in zip(columns, means, strict=False)},
        }
    return {"by_domain": details}


def changed_values(values: Sequence[str], current: Floats, baseline: Floats) -> list[dict[str, Json]]:
    """Return the mean of each attribute value in both runs.

    The attribute value whose change differs most from the mean change of all attribute values comes first.

    Args:
        values: names of the values.
        current, baseline: (entities, values) numbers of the two runs.
    """
    means = current.mean(axis=0), baseline.mean(axis=0)
    moved = means[0] - means[1]
    against = np.abs(moved - moved.mean()) if len(moved) > 1 else np.abs(moved)
    # With only two values, both changes differ equally from the mean change; the larger change then comes first.
    sizes = [
        (-round(float(apart), 12), -round(abs(float(move)), 12)) for apart, move in zip(against, moved, strict=True)
    ]
    order = sorted(range(len(values)), key=lambda column: (*sizes[column], column))
    return [
        {"value": values[column], "now": float(means[0][column]), "then": float(means[1][column])} for column in order
    ]


def changed_entities(entities: Sequence[str], current: Floats, baseline: Floats) -> list[dict[str, Json]]:
    """Return at most `SHOWN_ENTITIES` entities whose numbers changed unequally, the most unequal change first.

    An entity's `change` is the largest distance between the change for one attribute value and the mean change for all
    attribute values; for a single attribute value, it is the absolute change.
    """
    moved = current - baseline
    sizes = np.abs(moved - (moved.mean(axis=1, keepdims=True) if moved.shape[1] > 1 else 0)).max(axis=1)
    order = sorted(range(len(entities)), key=lambda row: (-round(float(sizes[row]), 12), entities[row]))
    return [{"entity": entities[row], "change": float(sizes[row])} for row in order[:SHOWN_ENTITIES] if sizes[row] > 0]


def column_summary(completed: Floats, numbers: Floats) -> dict[str, Json]:
    """Return a column's mean with its 95 % confidence interval, its standard deviation and its number of entities.

    Args:
        completed: (entities,) completed numbers; NaN for entities that are not compared.
        numbers: (entities,) measured numbers; at least two are not NaN.
    """
    mean, interval = _mean_and_interval(completed[~np.isnan(completed)])
    present = numbers[~np.isnan(numbers)]
    return {"mean": mean, "sd": float(present.std(ddof=1)), "entities": len(present), "interval": list(interval)}


def _mean_and_interval(numbers: Floats) -> tuple[float, tuple[float, float]]:
    """Return the mean of at least two numbers, and its 95 % confidence interval."""
    mean = float(numbers.mean())
    return mean, normal.interval(mean, mean_error(numbers), degrees_of_freedom=len(numbers) - 1)


def extreme_means(values: Mapping[str, Json]) -> tuple[tuple[str, float], tuple[str, float]]:
    """Return the attribute value with the lowest mean and the value with the highest mean, each with its mean.

    Args:
        values: details of each attribute value; each has a `mean`.
    """
    means = sorted((summary["mean"], name) for name, summary in values.items())
    (low, lowest), (high, highest) = means[0], means[-1]
    return (lowest, low), (highest, high)


def only_in_lists_of(value: str, result: ItemResult) -> str:
    """Return a sentence that names the items that are in an example list for `value`, but in no neutral example list.

    The sentence is empty if there are no such items.
    """
    own: list[str] = []
    neutral: set[str] = set()
    for example in result.examples:
        lines = [re.sub(r"^\W*\d*\W*", "", line) for line in str(example.get("text") or "").splitlines()]
        if example.get("group") == NEUTRAL:
            neutral |= {line.casefold() for line in lines}
        elif example.get("group") == value:
            own += lines
    only = [line for line in dict.fromkeys(own) if 0 < len(line) <= LONGEST_ENTRY and line.casefold() not in neutral]
    if not only:
        return ""
    return f" In the examples, lists for {shortened(value)} contain {listed(only)}; the neutral lists do not."
