"""Texts as word counts, near-copies among them, and sizes of samples of names, prompts and near-copies."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pytest_fairness.audits import answer_checks
from pytest_fairness.records import SampleSize
from pytest_fairness.stats.clusters import Clusters, carrier
from pytest_fairness.stats.resampling import Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Texts as word counts: the sorted words, and how often each text has each word.

MINIMUM_DOCUMENTS_OF_A_WORD = 3
"""Number of documents in which a word must occur to be tested."""


class WordCounts(NamedTuple):
    """Word counts of texts.

    Attributes:
        words: the words, sorted.
        counts: sparse (texts, words) counts.
    """

    words: list[str]
    counts: csr_array

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]]) -> WordCounts:
        """Count the words of texts, each a list of words."""
        # Deferred, as scipy is not needed to load a probe.
        from scipy.sparse import csr_array

        known: dict[str, int] = {}
        ids, ends = array("i"), array("i", [0])
        for text in texts:
            ids.extend([known.setdefault(word, len(known)) for word in text])
            ends.append(len(ids))
        counts = csr_array((np.ones(len(ids), np.int32), ids, ends), shape=(len(ends) - 1, len(known)))
        return cls.joined([cls([*known], counts)])

    @classmethod
    def joined(cls, parts: Iterable[WordCounts]) -> WordCounts:
        """Join the texts of several parts; the words of a part need not be sorted, and may occur several times."""
        from scipy.sparse import csr_array, vstack

        found = [*parts]
        words = sorted({word for part in found for word in part.words})
        places = dict(zip(words, range(len(words)), strict=True))
        rows = [
            csr_array(
                (
                    part.counts.data,
                    np.array([places[word] for word in part.words], np.int32)[part.counts.indices],
                    part.counts.indptr,
                ),
                shape=(part.counts.shape[0], len(words)),
            )
            for part in found
        ]
        counts = vstack(rows, format="csr")
        counts.sum_duplicates()
        return cls(words, counts)

    @property
    def holding(self) -> Ints:
        """Return the number of texts that contain each word; shape (words,)."""
        return np.bincount(self.counts.indices, minlength=len(self.words)).astype(np.int64)

    @property
    def lengths(self) -> Ints:
        """Return the number of words of each text; shape (texts,)."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.int64)

    def frequent(self, texts: int = MINIMUM_DOCUMENTS_OF_A_WORD) -> WordCounts:
        """Return the counts of the words that occur in at least this number of texts."""
        columns = np.flatnonzero(self.holding >= texts)
        return WordCounts([self.words[column] for column in columns], self.counts[:, columns])

    def only(self, indices: Ints) -> WordCounts:
        """Return the counts of the texts with these indices."""
        return WordCounts(self.words, self.counts[indices])

    def kinds(self) -> Ints:
        """Return a number for each text, (texts,); texts with equal counts have the same number."""
        known: dict[tuple[bytes, bytes], int] = {}
        rows = zip(self.counts.indptr, self.counts.indptr[1:], strict=False)
        contents = (
            (self.counts.indices[start:end].tobytes(), self.counts.data[start:end].tobytes()) for start, end in rows
        )
        return np.array([known.setdefault(content, len(known)) for content in contents], dtype=np.int64)


# Near-copies: answers that are no independent observations, as at a low temperature, and sizes of samples of units.

NEAR_COPIES = "near-copies"
"""Kind of the clusters of near-copies, which no probe declares."""
LEAST_CORRELATION = 0.2
"""The answers of a prompt and group are near-copies if they have at least this intraclass correlation, significantly;
answers that were drawn independently have less, however much the groups differ from prompt to prompt."""
SIGNIFICANT_CORRELATION = 0.01
NEARLY_EQUAL = 0.9
"""Smallest similarity (cosine of TF-IDF weights) of two texts that are near-copies."""
LEAST_REPETITION = 2.0
"""Near-copies are counted once if a text has at least so many of them on average, itself included."""
MOST_SIMILARITIES = 2048
"""Largest number of texts that are compared with each other to find near-copies, or to measure their correlation."""


def near_copies(counted: Callable[[], WordCounts], marked: Bools, strata: Ints, *, by_text: bool) -> Clusters | None:
    """Return the clusters of near-copies, if there are so many that answers are no independent observations.

    With several answers to each of many strata, these are the cells (group within stratum), if the answers of a cell
    are more alike than those of the two groups of a stratum, beyond what the groups differ in all strata. Otherwise, if
    the prompts are unknown (`by_text`), these are texts of a cell that are nearly equal; texts that the other group has
    too are equal by chance.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    cells = Clusters.of(strata.tolist(), marked, strata)
    if cells.mean_size < LEAST_REPETITION:
        return None
    words, number = counted(), int(strata.max()) + 1
    if number >= answer_checks.MINIMUM_OBSERVATIONS:
        # Of many texts, those of some strata.
        kept = np.flatnonzero(strata % -(-len(strata) // MOST_SIMILARITIES) == 0)
        own = Clusters.of(strata[kept].tolist(), marked[kept], strata[kept])
        rho, p_value = own.correlation(similarities(words.only(kept)), strata[kept])
        return cells if rho >= LEAST_CORRELATION and p_value <= SIGNIFICANT_CORRELATION else None
    if not by_text or len(strata) > MOST_SIMILARITIES:
        return None
    alike = similarities(words) >= NEARLY_EQUAL
    in_both = (alike & (marked[:, None] != marked)).any(axis=1)
    long = words.lengths > answer_checks.SHORT_ANSWER
    exclusive = long & ~in_both
    alike &= exclusive[:, None] & exclusive & (strata[:, None] == strata)
    graph: csr_array = csr_array(alike.astype(np.int8))
    copies = Clusters.of(connected_components(graph, directed=False)[1].tolist(), marked, strata)
    return copies if copies.mean_size >= LEAST_REPETITION else None


def similarities(words: WordCounts) -> Floats:
    """Return the (texts, texts) cosines of TF-IDF weights."""
    from scipy.sparse import diags_array

    holding = np.maximum(words.holding, 1)
    weights = words.counts @ diags_array(np.log((1 + words.counts.shape[0]) / (1 + holding)) + 1)
    lengths = np.sqrt(np.asarray(weights.power(2).sum(axis=1)))
    scaled = diags_array(1 / np.where(lengths > 0, lengths, 1.0)) @ weights
    return np.asarray((scaled @ scaled.T).toarray())


def sample_sizes(
    samples: Mapping[str, Clusters],
    strata: Ints,
    names: tuple[str, str],
    kernel: Callable[[Ints], Floats],
    without: Mapping[str, Floats],
    *,
    two_sided: bool = False,
) -> tuple[SampleSize, ...]:
    """Return the sizes of a sample of clusters.

    Args:
        samples: clusters by kind.
        strata: stratum number of each unit.
        names: names of the marked and the unmarked group.
        kernel: function that returns the inner products of the units with these indices.
        without: for a kind of clusters, the value and then the value without each of the clusters, if it is known.
        two_sided: whether the test is two-sided.
    """
    found = []
    for unit, clusters in samples.items():
        step = -(-len(strata) // MOST_SIMILARITIES)
        # Whole clusters: every `step`-th of each group.
        kept = np.flatnonzero(np.isin(clusters.numbers, np.arange(len(clusters.sizes))[::step]))
        own = Clusters.of(clusters.numbers[kept].tolist(), clusters.marked[clusters.numbers[kept]], strata[kept])
        rho = own.correlation(kernel(kept), strata[kept]).rho
        design_effect, numbers = 1 + (clusters.mean_size - 1) * rho, clusters.numbers_by_group
        values = without.get(unit)
        place = None if values is None else carrier(float(values[0]), values[1:])
        sides = 2 if two_sided and numbers[0] == numbers[1] else 1  # the opposite labels are as extreme
        found.append(
            SampleSize(
                units=unit,
                numbers=dict(zip(names, numbers, strict=True)),
                answers=len(strata),
                correlation=rho,
                design_effect=design_effect,
                effective=len(strata) / design_effect,
                smallest_p_value=sides * clusters.smallest_p_value,
                carrier="" if place is None else str(clusters.names[place]),
                without_carrier=None if place is None or values is None else float(values[1 + place]),
                declared=unit != NEAR_COPIES,
            )
        )
    return tuple(found)
