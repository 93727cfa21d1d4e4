"""Standard error of the excess divergence, and estimates of the excess from samples of a given size."""

from __future__ import annotations

import math

import numpy as np

from pytest_fairness.stats.arrays import Bools, Ints
from pytest_fairness.stats.resampling import relabelling
from pytest_fairness.stats.texts.excess_divergence import Words

CUT_PERMUTATIONS = 99
"""Number of relabellings for each random cut of two runs to equal size."""
LEFT_OUT_SETS = 100
"""Approximate number of sets of documents that the jackknife leaves out in turn; each cell has at least two sets."""


def standard_error(
    words: Words,
    first: Bools,
    second: Bools,
    cells: Ints,
    null_sd: float,
    random: np.random.Generator,
) -> float:
    """Return the standard error of the excess, in bits; it is valid whether the groups differ or not.

    The method is a jackknife that leaves out sets of documents within cells (Kott 2001). If the groups do not differ,
    the excess is a quadratic form of noise, for which the jackknife gives twice the true variance. The variance over
    permuted labels is therefore subtracted once. The standard error is at least `null_sd`.

    Args:
        words: word counts.
        first, second: (documents,) whether the document is in the first, and in the second group.
        cells: (documents,) cell number of each document (group within stratum).
        null_sd: standard deviation of the divergence over labels permuted within strata, in bits.
        random: random generator.
    """
    chosen = np.flatnonzero(first | second)
    cells = np.array(cells)
    numbers, of_cell = np.unique(cells[chosen], return_counts=True)
    # A cell with a single document has no variance; all such cells of a group are treated as one cell.
    single = np.isin(cells, numbers[of_cell == 1])
    cells[single] = np.where(first[single], -1, -2)
    left_out: list[Bools] = []
    cell_of = []
    for cell in np.unique(cells[chosen]):
        documents = random.permutation(chosen[cells[chosen] == cell])
        count = min(len(documents), max(2, round(LEFT_OUT_SETS * len(documents) / len(chosen))))
        for number in range(count):
            left_out.append(np.isin(np.arange(len(first)), documents[number::count]))
            cell_of.append(cell)
    without = np.array(left_out)
    sizes = without.sum(axis=1)
    side_sizes = np.where((without & first).any(axis=1), first.sum(), second.sum())
    values = words.excesses(first & ~without, second & ~without) - words.excesses(first[None], second[None])
    # Without one of n documents, the other documents of its group weigh more: the mean moves by n / (n − 1) times the
    # document's contribution. The factor is removed here.
    moved, variance = values * (1 - sizes / side_sizes), 0.0
    for cell in np.unique(cell_of):
        own = np.array(cell_of) == cell
        if np.count_nonzero(own) > 1:
            mean = moved[own].sum() / sizes[own].sum()
            of_one = ((moved[own] - mean * sizes[own]) ** 2 / sizes[own]).sum() / (np.count_nonzero(own) - 1)
            variance += float(of_one * sizes[own].sum())
    return math.sqrt(max(variance - null_sd**2, null_sd**2))


def excess_at_size(
    words: Words, strata: Ints, first: Bools, size: int, draws: int, random: np.random.Generator
) -> float | None:
    """Return the mean excess, in bits, of random samples of `size` documents from each group.

    The expected value does not depend on how many documents a run has, so that runs of different sizes can be compared.
    Documents are drawn without replacement; from each stratum, equally many documents of both groups are drawn.

    Args:
        words: word counts; every document is in the first or in the second group.
        strata: (documents,) stratum number of each document.
        first: (documents,) whether the document is in the first group.
        size: number of documents of each group in a sample.
        draws: number of random samples.
        random: random generator.

    Returns:
        the mean excess; `None` if the strata do not have enough documents for a sample.
    """
    sides: list[list[Ints]] = [[], []]
    for stratum in np.unique(strata):
        members = [np.flatnonzero(side & (strata == stratum)) for side in (first, ~first)]
        pairs = min(map(len, members))
        for drawn, own in zip(sides, members, strict=True):
            drawn.append(random.permuted(np.tile(own, (draws, 1)), axis=1)[:, :pairs])
    both = [np.concatenate(drawn, axis=1) for drawn in sides]
    available = both[0].shape[1]
    if available < size:
        return None
    chosen = random.permuted(np.tile(np.arange(available), (draws, 1)), axis=1)[:, :size]
    documents = np.concatenate([np.take_along_axis(side, chosen, axis=1) for side in both], axis=1)
    # Both orders are by stratum, and the second is random within each stratum, so that labels move within strata only.
    by_stratum = np.argsort(strata[documents], axis=1, kind="stable")
    at_random = np.argsort(strata[documents] + random.random(documents.shape), axis=1)
    labels = np.zeros(documents.shape, dtype=np.bool_)
    labels[:, :size] = True
    permuted = np.empty_like(labels)
    np.put_along_axis(permuted, by_stratum, np.take_along_axis(labels, at_random, axis=1), axis=1)
    observed, chance_divergences = (
        words.divergences(_selections(documents, own, len(first)), _selections(documents, ~own, len(first)))
        for own in (labels, permuted)
    )
    return float((observed - chance_divergences).mean(axis=0) @ words.weights)


def _selections(documents: Ints, chosen: Bools, count: int) -> Bools:
    """Return a (draws, count) mask of the chosen documents.

    Args:
        documents: (draws, drawn) indices of the documents of each draw.
        chosen: (draws, drawn) whether the document is chosen.
        count: number of all documents.
    """
    selected = np.zeros((len(documents), count), dtype=np.bool_)
    np.put_along_axis(selected, documents, chosen, axis=1)
    return selected


def mean_of_cuts(
    words: Words, marked: Bools, strata: Ints, cuts: Bools, random: np.random.Generator
) -> tuple[float, float]:
    """Return the mean excess of a run's cuts, and the standard deviation of one cut's excess under permuted labels.

    Both numbers are in bits; labels are permuted within strata.

    Args:
        words: word counts.
        marked: (documents,) whether the document belongs to the marked group.
        strata: (documents,) stratum number of each document.
        cuts: (cuts, documents) whether the document is in the cut.
        random: random generator.
    """
    values, variances = [], []
    for cut in cuts:
        labels, _ = relabelling.relabellings(marked[cut], strata[cut], CUT_PERMUTATIONS, random)
        relabelled = np.zeros((len(labels), len(cut)), dtype=np.bool_)
        relabelled[:, cut] = labels
        null = words.divergences(relabelled, cut & ~relabelled) @ words.weights
        observed = words.divergences((cut & marked)[None], (cut & ~marked)[None])[0] @ words.weights
        values.append(observed - null.mean())
        variances.append(null.var())
    return float(np.mean(values)), math.sqrt(np.mean(variances))
