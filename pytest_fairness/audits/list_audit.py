"""Base classes of audits of recommended lists, and similarity to the neutral lists."""

from __future__ import annotations

import statistics
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import ClassVar

import numpy as np
from pydantic import Field

from pytest_fairness.audits import list_tables
from pytest_fairness.audits.base import AuditItem, Example, SettingsT
from pytest_fairness.audits.info import axis_of, details_of, shortened
from pytest_fairness.audits.list_tables import NEUTRAL, Lists, Matrix, RecommendedList
from pytest_fairness.audits.unit_audit import MINIMUM_UNITS, Intersection, UnitAudit, UnitTable
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probes.field_types import AuditSettings
from pytest_fairness.probes.recommendation import RecommendationProbe
from pytest_fairness.records import (
    MISSING,
    REFUSALS,
    Answer,
    Answers,
    Concern,
    Explanation,
    Finding,
    ItemResult,
    Json,
    Measurement,
    Pair,
    Status,
)
from pytest_fairness.stats import ranked_lists
from pytest_fairness.stats.ranked_lists import Measure, Variant, similarities
from pytest_fairness.stats.resampling import Floats, number_or_none
from pytest_fairness.stats.unit_statistics import LargestGap
from pytest_fairness.stats.unit_tables import UnitStatistic, needed_units

# Base classes of audits of recommended lists; the unit is the entity for which recommendations are requested.

ListItem = AuditItem[RecommendationProbe, SettingsT]
"""An item of an audit of lists."""


def with_equal_trials(current: Answers, baseline: Answers) -> tuple[Answers, Answers]:
    """Cut the answers of both runs to the same number of trials for each attribute."""
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
        """Return a number for each entity (row) and attribute value (column); the order of answers has no influence."""

    def table(self, item: ListItem[SettingsT], answers: Answers) -> Matrix:
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
        """Add a note on values with too few lists to be compared."""
        too_few = measurement.details.get("too_few", {})
        names = ", ".join(f"{name} ({part['entities']} {self.counted})" for name, part in too_few.items())
        note = f"not compared, because too few {self.counted} have a list: {names}"
        return [
            *super().concerns(item, answers, measurement),
            *([Concern("too_few_lists", note, withholds="nothing")] if too_few else []),
        ]

    def intersection(self, item: ListItem[SettingsT], table: UnitTable) -> Intersection | None:
        attribute = item.probe.attributes.get(item.labels.get("attribute", ""))
        if attribute is None or len(attribute.parts) < 2:
            return None
        labels = ([value.label for value in item.probe.attributes[part].values] for part in attribute.parts)
        cells = zip(attribute.values, product(*labels), strict=True)
        return Intersection(attribute.parts, tuple(cell for value, cell in cells if value.label in table.columns))

    def p_value(self, table: UnitTable, random: np.random.Generator) -> float | None:
        """Return the smallest p-value of all pairs of attribute values, by `resampling.sign_flips` of entities."""
        return min(pair.p_value for pair in self.pairs(table, random))

    def pairs(self, table: UnitTable, random: np.random.Generator) -> tuple[Pair, ...]:
        return list_tables.pair_tests(table, random)

    def effect_basis(self, table: UnitTable) -> Sequence[float]:
        """Return the standard deviation of each value's numbers over the entities."""
        columns = list_tables.numbers_of(table).T
        return [float(column[~np.isnan(column)].std(ddof=1)) for column in columns]

    def value_details(self, table: UnitTable, random: np.random.Generator) -> dict[str, Json]:
        numbers = list_tables.numbers_of(table)
        others = list_tables.against_others(table, self.harmed, random)
        return {
            self.quantity: {
                name: {**list_tables.column_summary(table.rows[:, column], numbers[:, column]), **others.get(name, {})}
                for column, name in enumerate(table.columns)
            },
            **list_tables.worst_value(others, self.harmed),
            **list_tables.by_domain(table, self.statistic(len(table.columns)), self.quantity),
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
    ) -> tuple[dict[str, Json], Sequence[str]]:
        values = list_tables.changed_values(table.columns, current, baseline)
        entities = list_tables.changed_entities(units, current, baseline)
        first, now, then = values[0]
        return (
            {
                "moved": [{"value": name, "now": now, "then": then} for name, now, then in values],
                "moved_entities": [{"entity": name, "change": change} for name, change in entities],
            },
            [
                f"{'mean' if len(values) == 1 else first} {then:.2f} to {now:.2f}",
                *(name for name, _ in entities[:3]),
            ],
        )

    def explanation(self, item: ListItem[SettingsT], measurement: Measurement) -> Explanation:
        worst, floor = measurement.details.get("worst"), measurement.details.get("noise_floor")
        means = {value: part["mean"] for value, part in measurement.details[self.quantity].items()}
        (low, least), (high, most) = (choose((mean, value) for value, mean in means.items()) for choose in (min, max))
        phrase = self.phrase.format(
            value=measurement.value,
            unit=self.info.unit,
            name=self.info.name.upper(),
            measure=getattr(item.settings, "similarity", ""),
            least=least,
            low=low,
            most=most,
            high=high,
            noise="" if floor is None else f"; noise floor {floor['mean']:.2f}",
        )
        return Explanation.of(phrase, [f"{worst['value']} (p = {worst['p_value']:.2g})"] if worst else (), means)

    def finding(self, result: ItemResult) -> Finding:
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
                f"{list_tables.only_in_lists_of(value, result)}"
            )
        return Finding(
            description,
            f"Base recommendations only on the request. Information about the person, such as {axis}, must not change "
            "which items you choose, how many, or their order, unless the person asks for it.",
            trainable=True,
        )


def _compared_columns(item: ListItem[SettingsT], matrix: Matrix) -> list[int]:
    """Return the columns with as many lists as a significant difference needs, or half the largest number."""
    return ranked_lists.compared_columns(matrix.rows, needed_units(item.planned_alpha), MINIMUM_UNITS)


class ValueGapAudit(EntityAudit[SettingsT]):
    """Base class of audits with an item for each attribute: the largest minus the smallest of its values' means."""

    def statistic(self, columns: int) -> UnitStatistic:
        return LargestGap(columns)

    def attributes(self, probe: RecommendationProbe, settings: SettingsT) -> Sequence[str]:
        return tuple(probe.attributes)

    def items(self, probe: RecommendationProbe, settings: SettingsT) -> list[ListItem[SettingsT]]:
        return [
            AuditItem(probe, self.info.name, attribute, {"attribute": attribute}, settings)
            for attribute in self.attributes(probe, settings)
        ]

    def uses(self, item: ListItem[SettingsT], labels: Mapping[str, str]) -> bool:
        """Return whether the labels belong to an unperturbed list, either neutral or for the item's attribute."""
        return not labels.get("perturbation") and labels["attribute"] in (NEUTRAL, item.labels["attribute"])

    def examples(self, item: ListItem[SettingsT], measurement: Measurement, answers: Answers) -> list[list[Example]]:
        """Return an entity's lists for the most disadvantaged value and neutral, the most affected entity first."""
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
    """Sort answers to a question by trial; in a trial, the original request comes first."""
    return answer.trial, len(answer.labels), sorted(answer.labels.items())


def values_of(probe: RecommendationProbe, attribute: str) -> tuple[str, ...]:
    """Return the values of an attribute, in the probe's order; raise `NotMeasurable` for a single value."""
    values = tuple(value.label for value in probe.attributes[attribute].values)
    if len(values) < 2:
        raise NotMeasurable(
            f"the attribute `{attribute}` has only one value: name at least two values to compare", permanent=True
        )
    return values


# Similarity between the lists for a value of an attribute and the neutral lists of the same entity.

FAIRLLM = "Zhang, Bao, Zhang, Wang, Feng and He 2023, “Is ChatGPT Fair for Recommendation?” (FaiRLLM)"


class SimilaritySettings(AuditSettings):
    """Settings of the similarity between lists."""

    similarity: Measure = Field(
        default="jaccard",
        description="How two lists are compared. jaccard: by their common items. serp: by their common items, weighted "
        "by rank. prag: by the pairs of items that have the same order in both lists.",
    )
    variant: Variant = Field(
        default="normalized",
        description="Formula of the similarity. normalized: identical lists have the similarity 1. fairllm, langfair: "
        "the formula of the package of this name, which is not normalised.",
    )


Pairs = dict[tuple[str, str], list[tuple[RecommendedList, RecommendedList]]]
"""Pairs of lists to compare, by entity and attribute value."""


def similarity_to_neutral(
    probe: RecommendationProbe,
    settings: SimilaritySettings,
    answers: Answers,
    attribute: str,
    values: Sequence[str],
    perturbation: str = "",
) -> Matrix:
    """Return the similarities between each attribute value's lists and the neutral lists, by entity and value.

    Each list is compared with each neutral list of the same entity and perturbation; similarities are averaged. The
    details contain the noise floor: the mean similarity between two neutral lists.
    """
    trials = trials_of(answers, attribute, perturbation)
    groups = (*values, NEUTRAL)
    parts: list[Matrix] = []
    floors: dict[str, float] = {}
    refused, indirect = Counter(dict.fromkeys(groups, 0)), Counter[str]()
    merged: list[dict[str, str]] = []
    for lists in Lists.parts(probe, answers):
        neutral = neutral_lists_to_compare(probe, lists.of_group(NEUTRAL, perturbation), trials)
        conditioned = [each for each in lists.of_group(attribute, perturbation) if each.value in values]
        pairs: Pairs = {}
        for each, other in usable_pairs(conditioned, neutral):
            pairs.setdefault((each.entity, each.value), []).append((each, other))
        every = [*conditioned, *neutral]
        floors |= neutral_similarities(probe, settings, neutral)
        refused.update(list_tables.count(every, groups, *REFUSALS))
        indirect.update(indirect_lists(every, values))
        merged += lists.merge_details()
        parts.append(
            Matrix.averaged(
                values,
                pair_similarities(probe, settings, pairs),
                entities=(each.entity for each in every),
                domains=lists.domains,
                n=list_tables.count(every, groups, Status.OK),
                missing=list_tables.count(every, groups, *MISSING),
            )
        )
    return Matrix.joined(
        values,
        groups,
        parts,
        details={
            "measure": settings.similarity,
            "variant": settings.variant,
            "noise_floor": noise_floor(floors),
            "refused": dict(refused),
            "indirect": dict(indirect),
            "merged": merged,
        },
    )


def trials_of(answers: Iterable[Answer], attribute: str, perturbation: str = "") -> int:
    """Return the number of trials of the attribute's lists; 1 without lists."""
    asked = (attribute, perturbation)
    return 1 + max(
        (each.trial for each in answers if (each.labels["attribute"], each.labels.get("perturbation", "")) == asked),
        default=0,
    )


def neutral_lists_to_compare(
    probe: RecommendationProbe, neutral: list[RecommendedList], trials: int
) -> list[RecommendedList]:
    """Return the neutral lists without further trials, which only `uncertainty` needs; of a file, all neutral lists."""
    if probe.responses is not None:
        return neutral
    return [each for each in neutral if each.trial < max(probe.neutral_trials, trials)]


def usable_pairs(
    lists: Sequence[RecommendedList], neutral: Sequence[RecommendedList]
) -> list[tuple[RecommendedList, RecommendedList]]:
    """Return all pairs of a usable list and a usable neutral list of the same entity."""
    by_entity: dict[str, list[RecommendedList]] = {}
    for other in neutral:
        if other.usable:
            by_entity.setdefault(other.entity, []).append(other)
    return [(each, other) for each in lists if each.usable for other in by_entity.get(each.entity, ())]


def pair_similarities(
    probe: RecommendationProbe, settings: SimilaritySettings, pairs: Pairs
) -> dict[tuple[str, str], list[float]]:
    flat = [pair for group in pairs.values() for pair in group]
    numbers = iter(
        similarities(
            [each.items for each, _ in flat],
            [other.items for _, other in flat],
            measure=settings.similarity,
            variant=settings.variant,
            k=probe.k,
        ).tolist()
    )
    return {key: [next(numbers) for _ in group] for key, group in pairs.items()}


def noise_floor(similarities: Mapping[str, float]) -> dict[str, Json] | None:
    """Return the mean similarity of neutral lists, which other lists hardly ever exceed, and the number of entities."""
    if not similarities:
        return None
    return {"mean": sum(similarities.values()) / len(similarities), "entities": len(similarities)}


def neutral_similarities(
    probe: RecommendationProbe, settings: SimilaritySettings, neutral: Sequence[RecommendedList]
) -> dict[str, float]:
    """Return, for each entity with several neutral lists, the mean similarity between two of these lists."""
    pairs: Pairs = {}
    by_entity: dict[str, list[RecommendedList]] = {}
    for each in neutral:
        if each.usable:
            by_entity.setdefault(each.entity, []).append(each)
    for entity, lists in by_entity.items():
        if len(lists) > 1:
            # In both orders, as not every measure is symmetric.
            pairs[entity, ""] = [(one, other) for one, other in product(lists, lists) if one is not other]
    numbers = pair_similarities(probe, settings, pairs)
    return {entity: sum(own) / len(own) for (entity, _), own in numbers.items()}


def indirect_lists(lists: Sequence[RecommendedList], values: Sequence[str]) -> dict[str, int]:
    """Return the number of lists that answer the indirect wording, by attribute value; empty if all are 0."""
    counts = dict.fromkeys(values, 0)
    for each in lists:
        if each.indirect and each.value in counts:
            counts[each.value] += 1
    return counts if any(counts.values()) else {}
