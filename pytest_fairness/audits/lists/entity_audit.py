"""Base classes of audits of recommended lists; the unit is the entity for which recommendations are requested."""

from __future__ import annotations

import statistics
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import product
from typing import ClassVar

import numpy as np

from pytest_fairness.audits.base import AuditItem, Example, SettingsT
from pytest_fairness.audits.findings import Finding, axis_of, details_of, shortened
from pytest_fairness.audits.intersections import Intersection
from pytest_fairness.audits.lists.entity_tables import (
    Matrix,
    against_others,
    by_domain,
    changed_entities,
    changed_values,
    column_summary,
    numbers_of,
    only_in_lists_of,
    pair_tests,
    worst_value,
)
from pytest_fairness.audits.lists.normalization import NEUTRAL
from pytest_fairness.audits.unit_audit import MINIMUM_UNITS, UnitAudit, UnitTable
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.recommendation.model import RecommendationProbe
from pytest_fairness.records import Answer, Answers, Comparison, Concern, ItemResult, Json, Measurement, Pair
from pytest_fairness.stats.arrays import Floats, number_or_none
from pytest_fairness.stats.lists import incomplete
from pytest_fairness.stats.unit_tables.change import needed_units
from pytest_fairness.stats.unit_tables.distances import LargestGap
from pytest_fairness.stats.unit_tables.statistic import UnitStatistic

ListItem = AuditItem[RecommendationProbe, SettingsT]
"""An item of an audit of lists."""


def with_equal_trials(current: Answers, baseline: Answers) -> tuple[Answers, Answers]:
    """Return the answers of both runs, cut to the same number of trials for each attribute."""
    # Sorted, so that the dictionary keeps the last trial of each attribute.
    of_current, of_baseline = (
        dict(sorted({(answer.labels["attribute"], answer.trial) for answer in run})) for run in (current, baseline)
    )
    last = {attribute: min(trial, of_baseline.get(attribute, -1)) for attribute, trial in of_current.items()}
    first, second = (
        [answer for answer in run if answer.trial <= last.get(answer.labels["attribute"], -1)]
        for run in (current, baseline)
    )
    return first, second


class EntityAudit(UnitAudit[RecommendationProbe, SettingsT]):
    """Base class of audits that measure one number for each entity and each value of an attribute.

    Class attributes:
        quantity: name of the measured number, such as `similarity`; the details hold the mean of each attribute value
            under this key.
        harmed: whether the attribute value with the `highest` or the `lowest` mean is the most disadvantaged; empty if
            the audit does not compare attribute values.
    """

    kind = "recommendation"
    counted = "entities"
    compares_sides = True
    usable = "have lists for at least two values"
    quantity: ClassVar[str]
    harmed: ClassVar[str] = ""

    @abstractmethod
    def matrix(self, item: ListItem[SettingsT], answers: Answers) -> Matrix:
        """Return one run's table: a number for each entity (row) and attribute value (column).

        The order of the answers does not matter.
        """

    def table(self, item: ListItem[SettingsT], answers: Answers) -> Matrix:
        """Return one run's table of the attribute values that have enough lists, with completed rows."""
        matrix = self.matrix(item, answers)
        return matrix.compared(_compared_columns(item, matrix))

    def tables(self, item: ListItem[SettingsT], current: Answers, baseline: Answers) -> tuple[UnitTable, UnitTable]:
        """Return the tables of both runs, with the attribute values that have enough lists in both runs."""
        both = [self.matrix(item, run) for run in (current, baseline)]
        first, second = (_compared_columns(item, matrix) for matrix in both)
        shared = [column for column in first if column in second]
        if len(shared) < min(2, len(first)):
            raise NotMeasurable(
                "fewer than two values have enough lists in both runs. Check the missing answers, or rebaseline"
            )
        return both[0].compared(shared), both[1].compared(shared)

    def concerns(self, item: ListItem[SettingsT], answers: Answers, measurement: Measurement) -> list[Concern]:
        """Return the concerns of `UnitAudit.concerns`, and a note on values with too few lists to be compared."""
        too_few = measurement.details.get("too_few", {})
        names = ", ".join(f"{name} ({part['entities']} {self.counted})" for name, part in too_few.items())
        note = f"not compared, because too few {self.counted} have a list: {names}"
        return [
            *super().concerns(item, answers, measurement),
            *([Concern("too_few_lists", note, withholds="nothing")] if too_few else []),
        ]

    def intersection(self, item: ListItem[SettingsT], table: UnitTable) -> Intersection | None:
        """Return the attributes that the item combines; `None` for a single one. See `UnitAudit.intersection`."""
        attribute = item.probe.attributes.get(item.labels.get("attribute", ""))
        if attribute is None or len(attribute.parts) < 2:
            return None
        labels = ([value.label for value in item.probe.attributes[part].values] for part in attribute.parts)
        cells = zip(attribute.values, product(*labels), strict=True)
        return Intersection(attribute.parts, tuple(cell for value, cell in cells if value.label in table.columns))

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """Return the p-value of a test of equal means: the smallest of all pairs of attribute values.

        Each pair is tested by sign flips of the entities' differences; see `paired_tests.sign_flips`.
        """
        return min(pair.p_value for pair in self.pairs(table, random))

    def pairs(self, table: UnitTable, random: np.random.Generator) -> tuple[Pair, ...]:
        """Return the comparison of each two attribute values; see `pair_tests`."""
        return pair_tests(table, random)

    def value_details(self, table: UnitTable, random: np.random.Generator) -> dict[str, Json]:
        """Return details: each attribute value's mean and interval, the most disadvantaged value, and the table.

        If entities have domains, the details also hold the audit's value for each domain.
        """
        numbers = numbers_of(table)
        others = against_others(table, self.harmed, random)
        return {
            self.quantity: {
                name: {**column_summary(table.rows[:, column], numbers[:, column]), **others.get(name, {})}
                for column, name in enumerate(table.columns)
            },
            **worst_value(others, self.harmed),
            **by_domain(table, self.statistic(len(table.columns)), self.quantity),
            "by_entity": {
                entity: {name: number_or_none(cell) for name, cell in zip(table.columns, row, strict=True)}
                for entity, row in zip(table.units, numbers, strict=True)
            },
        }

    def comparable(self, item: ListItem[SettingsT], current: Answers, baseline: Answers) -> tuple[Answers, Answers]:
        """Return the answers of both runs: all, or cut to the same number of trials if the value depends on the number.

        Chance contributes less to the range of several means if there are more trials. A mean, and the difference
        between two means, do not depend on the number of trials.
        """
        values = {answer.labels.get("value") for answer in current if answer.labels["attribute"] != NEUTRAL}
        if self.statistic(max(2, len(values))).compares_several_pairs:
            return with_equal_trials(current, baseline)
        return current, baseline

    def change_details(
        self, table: UnitTable, units: Sequence[str], current: Floats, baseline: Floats
    ) -> dict[str, Json]:
        """Return details: each attribute value's mean in both runs, and the entities that changed most."""
        return {
            "moved": changed_values(table.columns, current, baseline),
            "moved_entities": changed_entities(units, current, baseline),
        }

    def contributions(self, measurement: Measurement) -> Mapping[str, float]:
        """Return the mean of each attribute value."""
        return {value: summary["mean"] for value, summary in measurement.details[self.quantity].items()}

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """Return the attribute value and the entities that changed most, if the audit's value became worse.

        Otherwise, return the most disadvantaged attribute value, if there is one.
        """
        if comparison is not None and comparison.value > 0 and (moved := comparison.details.get("moved")):
            first = moved[0]
            name = "mean" if len(moved) == 1 else first["value"]
            values = [f"{name} {first['then']:.2f} to {first['now']:.2f}"]
            return [*values, *(str(part["entity"]) for part in comparison.details["moved_entities"][:3])]
        worst = measurement.details.get("worst")
        return [f"{worst['value']} (p = {worst['p_value']:.2g})"] if worst else []

    def finding(self, result: ItemResult) -> Finding:
        """Return the finding that names the most disadvantaged attribute value; see `Audit.finding`."""
        axis, details = axis_of(result), details_of(result)
        description = f"Lists depend on {axis}."
        if worst := details.get("worst"):
            value = worst["value"]
            means = {name: summary["mean"] for name, summary in details.get("similarity", {}).items()}
            others = [mean for name, mean in means.items() if name != value]
            numbers = (
                f" (similarity to the neutral lists {means[value]:.3g}; "
                f"other values of {axis}: {statistics.fmean(others):.3g} on average)"
                if value in means and others
                else ""
            )
            description = (
                f"The most disadvantaged value of {axis} is {shortened(value)}{numbers}."
                f"{only_in_lists_of(value, result)}"
            )
        return Finding(
            description,
            f"Base recommendations only on the request. Information about the person, such as {axis}, must not change "
            "which items you choose, how many, or their order, unless the person asks for it.",
            trainable=True,
        )


def _compared_columns(item: ListItem[SettingsT], matrix: Matrix) -> list[int]:
    """Return the columns of the attribute values that have enough lists.

    These are as many as a significant difference needs, or half as many as the value with the most lists has.
    """
    return incomplete.compared_columns(matrix.rows, needed_units(item.planned_alpha), MINIMUM_UNITS)


class ValueGapAudit(EntityAudit[SettingsT]):
    """Base class of audits that compare the values of an attribute; there is one item for each attribute.

    The audit's value is the largest minus the smallest of the attribute values' means.
    """

    def statistic(self, columns: int) -> UnitStatistic:
        """Return the statistic: the range of the attribute values' means."""
        return LargestGap(columns)

    def attributes(self, probe: RecommendationProbe, settings: SettingsT) -> Sequence[str]:
        """Return the names of the attributes for which there is an item."""
        return tuple(probe.attributes)

    def items(self, probe: RecommendationProbe, settings: SettingsT) -> list[ListItem[SettingsT]]:
        """Return one item for each attribute."""
        return [
            AuditItem(probe, self.info.name, attribute, {"attribute": attribute}, settings)
            for attribute in self.attributes(probe, settings)
        ]

    def uses(self, item: ListItem[SettingsT], labels: Mapping[str, str]) -> bool:
        """Return whether the labels belong to an unperturbed list, either neutral or for the item's attribute."""
        return not labels.get("perturbation") and labels["attribute"] in (NEUTRAL, item.labels["attribute"])

    def examples(self, item: ListItem[SettingsT], measurement: Measurement, answers: Answers) -> list[list[Example]]:
        """Return pairs of lists for the same entity: a list for the most disadvantaged value, and a neutral list.

        The most affected entity comes first.
        """
        worst, by_entity = measurement.details.get("worst"), measurement.details["by_entity"]
        if worst is None:
            return []
        value, sign = worst["value"], -1 if self.harmed == "highest" else 1
        first: dict[tuple[str, str], Answer] = {}
        for answer in answers:
            place = answer.labels["entity"], answer.labels.get("value") or NEUTRAL
            if place[1] in (value, NEUTRAL) and (place not in first or _sort_key(answer) < _sort_key(first[place])):
                first[place] = answer
        numbers = {entity: cells[value] for entity, cells in by_entity.items() if cells.get(value) is not None}
        return [
            [(value, first[entity, value]), (NEUTRAL, first[entity, NEUTRAL])]
            for entity in sorted(numbers, key=lambda entity: (sign * numbers[entity], entity))
            if (entity, value) in first and (entity, NEUTRAL) in first
        ]


def _sort_key(answer: Answer) -> tuple[int, int, list[tuple[str, str]]]:
    """Return the key that sorts answers to one question by trial; in a trial, the original request comes first."""
    return answer.trial, len(answer.labels), sorted(answer.labels.items())


def values_of(probe: RecommendationProbe, attribute: str) -> tuple[str, ...]:
    """Return the values of an attribute, in the probe's order.

    Raises:
        NotMeasurable: the attribute has a single value.
    """
    values = tuple(value.label for value in probe.attributes[attribute].values)
    if len(values) < 2:
        raise NotMeasurable(
            f"the attribute `{attribute}` has only one value: name at least two values to compare", permanent=True
        )
    return values
