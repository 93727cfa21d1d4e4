"""Base class of audits of recommended lists that compare the values of an attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.audits.base import AuditItem, Example, SettingsT
from pytest_fairness.audits.lists.entity_audit import EntityAudit, ListItem
from pytest_fairness.audits.lists.normalization import NEUTRAL
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.recommendation.model import RecommendationProbe
from pytest_fairness.records import Answer, Answers, Measurement
from pytest_fairness.stats.unit_tables.distances import LargestGap
from pytest_fairness.stats.unit_tables.statistic import UnitStatistic


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
