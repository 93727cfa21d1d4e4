"""Two runs of the same documents laid side by side, for audits that compare them document by document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audits.text.text_audit import Documents, count_words
from pytest_fairness.stats import resampling

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

SUBSAMPLES = 20
"""Cuts to equal size that are averaged where the runs hold different numbers of documents."""


@dataclass(frozen=True)
class TwoRuns:
    """The documents of the present and of the earlier run.

    Attributes:
        vocabulary: the words of the columns.
        counts: (documents, words), sparse.
        marked: (documents,) whether of the marked group.
        strata: (documents,) number of the stratum, common to both runs.
        now: (documents,) whether of the present run.
    """

    vocabulary: list[str]
    counts: csr_array
    marked: Bools
    strata: NDArray[np.int64]
    now: Bools

    @classmethod
    def of(cls, now: Documents, then: Documents, minimum_documents: int = 1) -> TwoRuns:
        """Put the runs together; strata are matched by their names."""
        both, is_now = joined(now, then)
        vocabulary, counts = count_words(both.words, minimum_documents)
        return cls(vocabulary=vocabulary, counts=counts, marked=both.marked, strata=both.strata, now=is_now)

    @classmethod
    def single(cls, now: Documents) -> TwoRuns:
        """One run alone, with nothing before it."""
        return cls.of(now, Documents((), np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.int64), ()))

    @property
    def cells(self) -> NDArray[np.int64]:
        """(documents,) number of the document's group within its stratum."""
        return self.strata * 2 + self.marked

    def as_observed(self, random: np.random.Generator) -> tuple[Bools, Bools]:
        """Selections of the present and of the earlier run at equal size; see `resampling.equal_size`."""
        return resampling.equal_size(self.now, self.cells, SUBSAMPLES, random)

    def swapped(self, count: int, random: np.random.Generator) -> tuple[Bools, Bools]:
        """Selections of two runs that differ by chance only; see `resampling.run_swaps`."""
        return resampling.run_swaps(self.now, self.cells, count, random)


def joined(now: Documents, then: Documents) -> tuple[Documents, Bools]:
    """Return the documents of both runs, their strata matched by name, and whether each is of the present run."""
    names = tuple(sorted({*now.stratum_names, *then.stratum_names}))
    numbers = {name: number for number, name in enumerate(names)}
    strata = [numbers[run.stratum_names[stratum]] for run in (now, then) for stratum in run.strata]
    both = Documents(
        words=(*now.words, *then.words),
        marked=np.concatenate([now.marked, then.marked]),
        strata=np.array(strata, dtype=np.int64),
        stratum_names=names,
        embeddings=(*now.embeddings, *then.embeddings),
    )
    return both, np.repeat([True, False], [len(now.words), len(then.words)])


def totals(selections: Bools, counts: Floats | csr_array) -> Floats:
    """(selections, words) summed counts of the selected documents."""
    # Deferred, as scipy is not needed to load a probe.
    from scipy.sparse import csr_array

    # Documents hold few of all words: a sparse product saves most of the work.
    summed: Floats = (csr_array(counts).T @ selections.T.astype(np.float64)).T
    return summed
