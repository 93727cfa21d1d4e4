"""Resampling of an entity × value table: values exchanged within entities, runs swapped, entities drawn again.

All of it gives the columns' means, (draws, values), from which any statistic of them follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NUMBERS_AT_ONCE = 2**20


def permuted_means(rows: Floats, count: int, random: np.random.Generator) -> tuple[Floats, bool]:
    """Column means with the values exchanged within each entity, as if the value did not matter.

    Args:
        rows: (entities, values), complete.
        count: how many exchanges to draw; where there are no more than this many, all of them are given.
        random: the source of randomness.

    Returns:
        (draws, values) means, and whether these are all there are (an exact test).
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


def swapped_means(now: Floats, then: Floats, count: int, random: np.random.Generator) -> tuple[Floats, Floats, bool]:
    """Column means of two runs whose rows are swapped within each entity, as if nothing had changed between them.

    Args:
        now, then: (entities, values), complete, of the same entities.
        count, random: as in `permuted_means`.

    Returns:
        (draws, values) means of the one and of the other run, and whether these are all there are.
    """
    chosen, exact = _chosen_sums(then - now, count, random)
    moved = chosen / len(now)
    return now.mean(axis=0) + moved, then.mean(axis=0) - moved, exact


def flipped_means(differences: Floats, count: int, random: np.random.Generator) -> tuple[Floats, bool]:
    """Column means with the sign of each entity's differences turned at random, as if they were centred on 0.

    Args:
        differences: (entities, columns); the signs of an entity's row are turned together.
        count, random: as in `permuted_means`.
    """
    flipped, exact = _chosen_sums(differences, count, random)
    return (differences.sum(axis=0) - 2 * flipped) / len(differences), exact


def bootstrap_means(rows: Floats, count: int, random: np.random.Generator) -> Floats:
    """(count, values) column means of entities drawn with replacement; missing cells are NaN and left out."""
    present = ~np.isnan(rows)
    filled = np.where(present, rows, 0.0)
    chances = np.full(len(rows), 1 / len(rows))
    parts = []
    for size in _chunks(count, len(rows)):
        weights = random.multinomial(len(rows), chances, size=size).astype(np.float64)
        with np.errstate(invalid="ignore"):
            parts.append(weights @ filled / (weights @ present))
    return np.concatenate(parts)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for all of them being looked at (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def _chosen_sums(rows: Floats, count: int, random: np.random.Generator) -> tuple[Floats, bool]:
    """(draws, columns) sums of the rows that are chosen: by all choices there are, or `count` drawn ones."""
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
