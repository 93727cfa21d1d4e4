"""Difference in an attribute's SNSR between perturbed and original questions.

SNSR is the range, over the attribute's values, of the mean similarity to the neutral lists; see `sensitivity`.
"""

from __future__ import annotations

import numpy as np

from pytest_fairness.audits.lists.entity_audit import ListItem
from pytest_fairness.audits.lists.neutral_similarity import SimilaritySettings, similarity_to_neutral
from pytest_fairness.audits.lists.normalization import NEUTRAL
from pytest_fairness.audits.unit_audit import MINIMUM_UNITS, PERMUTATIONS
from pytest_fairness.records import Answers, Json
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups.distance_measures import value_range
from pytest_fairness.stats.resampling import column_means, randomness, significance

BOOTSTRAPS = 2000
"""Number of bootstrap samples."""


def perturbed_snsr(item: ListItem[SimilaritySettings], answers: Answers, attribute: str) -> dict[str, Json] | None:
    """Return the attribute's SNSR for original questions, for perturbed questions, and the difference.

    Only entities with all lists for both original and perturbed questions are used. Return `None` if there are too few
    such entities, or if the attribute has a single value. The p-value of the difference is from a test that swaps
    original and perturbed lists within entities; its interval is a percentile bootstrap over entities.

    Args:
        item: item of the audit `robustness`; the label `perturbation` of the item names the perturbation.
        answers: answers of the item.
        attribute: name of the attribute.
    """
    values = tuple(value.label for value in item.probe.attributes[attribute].values)
    clean, perturbed = (
        similarity_to_neutral(
            item.probe,
            item.settings,
            [
                answer
                for answer in answers
                if answer.labels["attribute"] in (NEUTRAL, attribute)
                and answer.labels.get("perturbation", "") == wording
            ],
            attribute,
            values,
            wording,
        )
        for wording in ("", item.labels["perturbation"])
    )
    by_entity = [dict(zip(matrix.units, matrix.rows, strict=True)) for matrix in (clean, perturbed)]
    shared = [
        entity
        for entity in clean.units
        if entity in by_entity[1] and not np.isnan([*by_entity[0][entity], *by_entity[1][entity]]).any()
    ]
    if len(values) < 2 or len(shared) < MINIMUM_UNITS:
        return None
    first, second = (np.array([rows[entity] for entity in shared]) for rows in reversed(by_entity))
    random = randomness.generator(f"{item.seed}/{attribute}")
    drawn = column_means.bootstrap_means(np.hstack([first, second]), BOOTSTRAPS, random)
    swapped = column_means.swapped_means(first, second, PERMUTATIONS, random)

    # Reports show both ranges beside their change, which is therefore the plain difference of the ranges: `UnitChange`
    # counts a range that changed sides as negative.
    def change(current: Floats, baseline: Floats) -> Floats:
        return value_range(current) - value_range(baseline)

    observed = float(change(first.mean(axis=0), second.mean(axis=0)))
    ends = np.percentile(change(drawn[:, : len(values)], drawn[:, len(values) :]), [2.5, 97.5])
    return {
        "snsr_clean": float(value_range(second.mean(axis=0))),
        "snsr_perturbed": float(value_range(first.mean(axis=0))),
        "change": observed,
        "interval": [float(ends[0]), float(ends[1])],
        "p_value": significance.p_value(change(swapped[0], swapped[1]), observed, exact=swapped[2]),
        "entities": len(shared),
    }
