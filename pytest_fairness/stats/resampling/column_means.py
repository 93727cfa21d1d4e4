"""Resampling of a table with a row for each entity: random signs, swapped runs and bootstrap.

The functions return the column means of each random draw, shape (draws, columns), so that the caller can compute any
statistic of the means.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from pytest_fairness.stats.arrays import Floats

NUMBERS_AT_ONCE = 2**20
"""Largest number of table cells, over all draws, that are in memory at the same time."""


def swapped_means(
    current: Floats, baseline: Floats, count: int, random: np.random.Generator
) -> tuple[Floats, Floats, bool]:
    """Return both runs' column means after random swaps of rows between the runs (null hypothesis: no change).

    An entity's row of the current run and its row of the baseline change places with probability 0.5.

    Args:
        current, baseline: (entities, columns) numbers of the same entities, without NaN.
        count: number of random draws; if at most this many combinations of swaps exist, each is used once.
        random: random generator.

    Returns:
        (draws, columns) means of the current run, (draws, columns) means of the baseline run, and whether each possible
        combination of swaps was used once (an exact test).
    """
    chosen, exact = _chosen_sums(baseline - current, count, random)
    moved = chosen / len(current)
    return current.mean(axis=0) + moved, baseline.mean(axis=0) - moved, exact


def flipped_means(differences: Floats, count: int, random: np.random.Generator) -> tuple[Floats, bool]:
    """Return column means after random changes of the entities' signs (null hypothesis: the means are 0).

    Args:
        differences: (entities, columns) differences; all differences of an entity get the same sign.
        count: number of random draws; if at most this many combinations of signs exist, each is used once.
        random: random generator.

    Returns:
        (draws, columns) means, and whether each combination of signs was used once (an exact test).
    """
    flipped, exact = _chosen_sums(differences, count, random)
    return (differences.sum(axis=0) - 2 * flipped) / len(differences), exact


def bootstrap_means(rows: Floats, count: int, random: np.random.Generator) -> Floats:
    """Return the column means of bootstrap samples: entities drawn with replacement; shape (count, columns).

    Args:
        rows: (entities, columns) numbers; cells with NaN are left out of the means. A mean is NaN if no cell is left.
        count: number of draws.
        random: random generator.
    """
    present = ~np.isnan(rows)
    filled = np.where(present, rows, 0.0)
    chances = np.full(len(rows), 1 / len(rows))
    parts = []
    for size in _batch_sizes(count, len(rows)):
        weights = random.multinomial(len(rows), chances, size=size).astype(np.float64)
        with np.errstate(invalid="ignore"):
            parts.append(weights @ filled / (weights @ present))
    return np.concatenate(parts)


def _chosen_sums(rows: Floats, count: int, random: np.random.Generator) -> tuple[Floats, bool]:
    """Return the column sums of randomly chosen rows, each chosen with probability 0.5; shape (draws, columns).

    The second result is whether each combination of rows was used once (an exact test).
    """
    entities = len(rows)
    if 2**entities <= count:
        return np.array(list(product((0.0, 1.0), repeat=entities))) @ rows, True
    parts = [
        random.integers(0, 2, size=(size, entities)).astype(np.float64) @ rows for size in _batch_sizes(count, entities)
    ]
    return np.concatenate(parts), False


def _batch_sizes(draws: int, numbers_per_draw: int) -> list[int]:
    largest = max(1, NUMBERS_AT_ONCE // max(1, numbers_per_draw))
    return [min(largest, draws - start) for start in range(0, draws, largest)]
