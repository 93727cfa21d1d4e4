"""Base class of audits of recommended lists; the unit is the entity for which recommendations are requested."""

from __future__ import annotations

import statistics
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import product
from typing import ClassVar

import numpy as np

from pytest_fairness.audits.base import AuditItem, SettingsT
from pytest_fairness.audits.findings import Finding, axis_of, details_of, shortened
from pytest_fairness.audits.intersections import Intersection
from pytest_fairness.audits.lists.entity_details import (
    by_domain,
    changed_entities,
    changed_values,
    column_summary,
    only_in_lists_of,
    worst_value,
)
from pytest_fairness.audits.lists.matrix import Matrix
from pytest_fairness.audits.unit_audit import PERMUTATIONS, UnitAudit, UnitTable
from pytest_fairness.probes.recommendation.model import RecommendationProbe
from pytest_fairness.records import Answers, Comparison, ItemResult, Json, Measurement
from pytest_fairness.stats.arrays import Floats, number_or_none
from pytest_fairness.stats.resampling import column_means, significance

ListItem = AuditItem[RecommendationProbe, SettingsT]
"""An item of an audit of lists."""


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
    usable = "have a list for every value"
    quantity: ClassVar[str]
    harmed: ClassVar[str] = ""

    @abstractmethod
    def table(self, item: ListItem[SettingsT], answers: Answers) -> Matrix:
        """Return one run's table: a number for each entity (row) and attribute value (column).

        The order of the answers does not matter.
        """

    def intersection(self, item: ListItem[SettingsT]) -> Intersection | None:
        """Return the attributes that the item combines; `None` for a single one. See `UnitAudit.intersection`."""
        attribute = item.probe.attributes.get(item.labels.get("attribute", ""))
        if attribute is None or len(attribute.parts) < 2:
            return None
        labels = ([value.label for value in item.probe.attributes[part].values] for part in attribute.parts)
        return Intersection(attribute.parts, tuple(product(*labels)))

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """Return the p-value of a test that permutes the attribute values within each entity."""
        rows, statistic = table.rows[table.complete], self.statistic(len(table.columns))
        null, exact = column_means.permuted_means(rows, PERMUTATIONS, random)
        observed = float(self.info.loss(statistic.value(rows.mean(axis=0))))
        return significance.p_value(self.info.loss(statistic.value(null)), observed, exact=exact)

    def value_details(self, table: UnitTable, random: np.random.Generator) -> dict[str, Json]:
        """Return details: each attribute value's mean and interval, the most disadvantaged value, and the table.

        If entities have domains, the details also hold the audit's value for each domain.
        """
        means = table.means()
        return {
            self.quantity: {
                name: {"mean": float(means[column]), **column_summary(table.rows[:, column])}
                for column, name in enumerate(table.columns)
            },
            **worst_value(table, self.harmed, random),
            **by_domain(table, self.statistic(len(table.columns)), self.quantity),
            "by_entity": {
                entity: {name: number_or_none(cell) for name, cell in zip(table.columns, row, strict=True)}
                for entity, row in zip(table.units, table.rows, strict=True)
            },
        }

    def comparable(self, current: Answers, baseline: Answers) -> tuple[Answers, Answers]:
        """Return the answers of both runs, cut to the same number of trials for each attribute.

        The range of the means depends on the number of trials: with more trials, chance contributes less to the range.
        """
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
