"""Documents as word counts; the distance between groups is the excess Jensen-Shannon divergence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.audits.text.documents import Documents
from pytest_fairness.audits.text.samples.sample import Relabelled, Sample
from pytest_fairness.stats.arrays import Bools, Floats
from pytest_fairness.stats.intervals.estimate import Estimate
from pytest_fairness.stats.texts import divergence, excess_estimates
from pytest_fairness.stats.texts.excess_divergence import Words

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DOCUMENTS_OF_A_STRATUM = 12
"""A stratum is also measured by itself if each group has at least this number of documents in it; in smaller strata,
most differences are not detected."""
DRAWS = 499
"""Number of random samples of documents that `excess_at` averages."""


@dataclass(frozen=True)
class WordCounts(Sample):
    """Documents with their word counts.

    Attributes:
        vocabulary: word of each column.
        counts: (documents, words) sparse counts.
        words: the same counts, arranged to compute divergences of all documents and of each large stratum (with at
            least `DOCUMENTS_OF_A_STRATUM` documents of each group).
    """

    vocabulary: Sequence[str]
    counts: csr_array
    words: Words

    @classmethod
    def of(cls, documents: Documents, measured: Bools | None = None) -> WordCounts:
        """Return the documents with their word counts.

        Args:
            documents: documents of one or of two runs.
            measured: (documents,) mask of the documents that are counted to decide whether a stratum is large; `None`
                for all documents.
        """
        vocabulary, counts = documents.words.counts()
        measured = np.ones(len(documents.marked), dtype=np.bool_) if measured is None else measured
        sides = measured & documents.marked, measured & ~documents.marked
        return cls(documents, vocabulary, counts, Words.of(counts, documents.strata, *sides, DOCUMENTS_OF_A_STRATUM))

    def statistic(self, marked: Bools) -> Floats:
        """Return the divergence between the groups, over all documents and within each large stratum."""
        return self.words.divergences(marked, ~marked)

    def test_statistic(self, statistic: Floats) -> Floats:
        """Return the weighted sum of all divergences: of all documents together, and of each large stratum."""
        weighted: Floats = statistic @ self.words.weights
        return weighted

    def value_of(self, run: Relabelled[WordCounts]) -> float:
        """Return the divergence minus its mean with permuted labels, in bits."""
        return float(self.words.weights @ run.excess)

    def estimate(self, run: Relabelled[WordCounts], random: np.random.Generator) -> Estimate:
        """Return the excess (divergence minus its mean with permuted labels), with its jackknife standard error."""
        return Estimate.normal(run.value, self.standard_error(self.documents.current, run.null_sd, random))

    def distance(self, selected: Bools) -> Floats:
        """Return the excess divergence for each selection; the divergence expected by chance is approximated."""
        return self.words.excesses(*self._sides(selected))

    def distance_change(self, current: Bools, baseline: Bools) -> Floats:
        """Return the excess divergence in the current run minus that in the baseline; see `Words.excess_changes`."""
        return self.words.excess_changes(self.documents.marked, current, baseline)

    def standard_error(self, used: Bools, null_sd: float, random: np.random.Generator) -> float:
        """Return the standard error of the excess of the used units; see `excess_estimates.standard_error`."""
        return excess_estimates.standard_error(self.words, *self._sides(used), self.documents.cells, null_sd, random)

    def word_strengths(self) -> tuple[Sequence[str], Floats]:
        """Return each word's contribution to the divergence in bits; see `Sample.word_strengths`."""
        marked = self.documents.marked
        return self.vocabulary, divergence.contributions(
            *(np.asarray(self.counts[side].sum(axis=0), dtype=np.float64) for side in (marked, ~marked))
        )

    def excess_at(self, size: int, random: np.random.Generator) -> float | None:
        """Return the mean excess of random samples with `size` documents of each group.

        Return `None` if a group has fewer documents; see `excess_estimates.excess_at_size`.
        """
        marked = self.documents.marked
        words = Words.together(self.counts, marked, ~marked)
        return excess_estimates.excess_at_size(words, self.documents.strata, marked, size, DRAWS, random)

    @property
    def large_strata(self) -> list[str]:
        """Return the names of the large strata, in the order of their divergences in the result of `statistic`."""
        return [self.documents.stratum_names[stratum] for stratum in self.words.strata]

    @property
    def tokens(self) -> tuple[int, int]:
        """Return the number of words of the marked and of the unmarked group's documents."""
        tokens, marked = self.counts.sum(axis=1), self.documents.marked
        return int(tokens[marked].sum()), int(tokens[~marked].sum())

    def _sides(self, used: Bools) -> tuple[Bools, Bools]:
        return used & self.documents.marked, used & ~self.documents.marked
