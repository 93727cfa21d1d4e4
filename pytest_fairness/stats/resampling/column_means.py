"""Resampling of a table by entity and value: values permuted within entities, runs swapped, entities drawn again.

All functions return the (draws, values) means of the columns, from which any statistic of the means can be computed.
"""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np

from pytest_fairness.stats.arrays import Floats

NUMBERS_AT_ONCE = 2**20
"""Numbers of drawn tables in memory at the same time."""


def permuted_means(rows: Floats, count: int, random: np.random.Generator) -> tuple[Floats, bool]:
    """Return column means with values permuted within each entity: the null distribution of equal values.

    Args:
        rows: (entities, values) numbers without NaN.
        count: number of draws; if there are no more permutations than this, all of them are returned.
        random: the source of randomness.

    Returns:
        (draws, values) means, and whether the draws are all permutations (an exact test).
    """
    entities, values = rows.shape
    if math.factorial(values) ** entities <= count:
        orders = [np.array(order) for order in permutations(range(values))]
        choices = [[row[order] for order in orders] for row in rows]
        return np.array([np.mean(choice, axis=0) for choice in product(*choices)]), True
    parts = []
    for size in _chunks(count, rows.size):
        drawn = random.permuted(np.repeat(rows[None], size, axis=0), axis=2)
        parts.append(drawn.mean(axis=1))
    return np.concatenate(parts), False


def swapped_means(
    current: Floats, baseline: Floats, count: int, random: np.random.Generator
) -> tuple[Floats, Floats, bool]:
    """Return column means of two runs with rows swapped within each entity: the null distribution of no change.

    Args:
        current, baseline: (entities, values) numbers of the same entities without NaN.
        count, random: as in `permuted_means`.

    Returns:
        (draws, values) means of either run, and whether the draws are all swaps.
    """
    chosen, exact = _chosen_sums(baseline - current, count, random)
    moved = chosen / len(current)
    return current.mean(axis=0) + moved, baseline.mean(axis=0) - moved, exact


def flipped_means(differences: Floats, count: int, random: np.random.Generator) -> tuple[Floats, bool]:
    """Return column means with random signs of the entities' differences: the null distribution of no difference.

    Args:
        differences: (entities, columns) numbers; all numbers of an entity get the same sign.
        count, random: as in `permuted_means`.

    Returns:
        (draws, columns) means, and whether the draws are all signs.
    """
    flipped, exact = _chosen_sums(differences, count, random)
    return (differences.sum(axis=0) - 2 * flipped) / len(differences), exact


def bootstrap_means(rows: Floats, count: int, random: np.random.Generator) -> Floats:
    """Return (count, values) column means of entities drawn with replacement.

    Args:
        rows: (entities, values) numbers; NaN cells are left out.
        count: number of draws.
        random: the source of randomness.
    """
    present = ~np.isnan(rows)
    filled = np.where(present, rows, 0.0)
    chances = np.full(len(rows), 1 / len(rows))
    parts = []
    for size in _chunks(count, len(rows)):
        weights = random.multinomial(len(rows), chances, size=size).astype(np.float64)
        with np.errstate(invalid="ignore"):
            parts.append(weights @ filled / (weights @ present))
    return np.concatenate(parts)


def _chosen_sums(rows: Floats, count: int, random: np.random.Generator) -> tuple[Floats, bool]:
    """Return (draws, columns) sums of chosen rows, and whether the draws are all choices."""
    entities = len(rows)
    if 2**entities <= count:
        return np.array(list(product((0.0, 1.0), repeat=entities))) @ rows, True
    parts = [
        random.integers(0, 2, size=(size, entities)).astype(np.float64) @ rows for size in _chunks(count, entities)
    ]
    return np.concatenate(parts), False


def _chunks(count: int, numbers: int) -> list[int]:
    most = max(1, NUMBERS_AT_ONCE // max(1, numbers))
    return [min(most, count - start) for start in range(0, count, most)]
