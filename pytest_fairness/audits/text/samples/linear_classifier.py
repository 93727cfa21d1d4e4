"""Documents as features of a linear classifier, and the distance d' by which its scores separate two groups.

Two documents are equal if their counts of the classifier's words are equal. A document that equals an earlier one
of its run, group and stratum is dropped. Each document is scored by a classifier that is trained without this document
and without all documents that equal it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from pytest_fairness.audits.text.documents import Documents
from pytest_fairness.audits.text.samples.kernels import inverse_frequencies
from pytest_fairness.audits.text.samples.sample import ERROR_PERMUTATIONS, Relabelled, Sample
from pytest_fairness.stats.arrays import Bools, Floats, Ints
from pytest_fairness.stats.intervals.estimate import Estimate
from pytest_fairness.stats.intervals.separation import Separation, accuracy
from pytest_fairness.stats.resampling import relabelling
from pytest_fairness.stats.texts import least_squares

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FeatureName = Literal["counts", "tfidf"]

FEWEST_DIFFERENT = 5
"""A classifier is trained only if each group has at least this many different answers."""
FEWEST_DOCUMENTS_OF_A_WORD = 3
MOST_WORDS = 2048
"""Largest number of words that are features if there are more documents than this number: the words in the
largest numbers of documents. For fewer documents, all words in at least `FEWEST_DOCUMENTS_OF_A_WORD` documents
are features."""


@dataclass(frozen=True)
class Corpus(Sample):
    """Documents of two groups as features of a classifier, without equal documents within a run, stratum and group.

    At temperature 0 every trial repeats the same answer, which is only one observation.

    Attributes:
        vocabulary: word of each column.
        counts: (documents, words) word counts.
        kinds: (documents,) a number for each document; documents with equal counts have the same number.
        features: how words are weighted: all alike, or by inverse document frequency.
        unique_share: share of all documents that do not repeat the words of an earlier document.
    """

    vocabulary: Sequence[str]
    counts: csr_array
    kinds: Ints
    features: FeatureName
    unique_share: float

    @classmethod
    def of(cls, documents: Documents, features: FeatureName) -> Corpus:
        """Return the corpus of these documents of one run, or of two runs."""
        most = None if len(documents.words) <= MOST_WORDS else MOST_WORDS
        vocabulary, counts = documents.words.counts(FEWEST_DOCUMENTS_OF_A_WORD, most)
        kinds = _kinds(counts)
        of_run = np.column_stack([kinds, documents.cells, documents.current])
        kept = np.sort(np.unique(of_run, axis=0, return_index=True)[1])
        share = documents.words.different() / len(documents.words)
        if len(kept) < len(kinds):
            documents, counts, kinds = documents.only(kept), counts[kept], kinds[kept]
        return cls(documents, vocabulary, counts, kinds, features, share)

    def statistic(self, marked: Bools) -> Floats:
        """Return d' by scores of documents that were left out of training; shape (labellings, 1)."""
        return self.distances(marked)[:, None]

    def test_statistic(self, statistic: Floats) -> Floats:
        """Return d'."""
        distances: Floats = statistic[..., 0]
        return distances

    def value_of(self, run: Relabelled[Corpus]) -> float:
        """Return d', shown as an accuracy."""
        return accuracy(float(run.observed[0]))

    def estimate(self, run: Relabelled[Corpus], random: np.random.Generator) -> Estimate:
        """Return d', shown as an accuracy, with its standard error and interval."""
        return self.separation_of(run).estimate

    def separation_of(self, run: Relabelled[Corpus]) -> Separation:
        """Return d' of a run of this corpus with its standard error."""
        return self._separation(float(run.observed[0]), run.null[:, 0])

    def distance(self, selected: Bools) -> Floats:
        """Return d' for each selection of documents; at least 0."""
        return np.asarray(np.maximum(self.distances(used=selected), 0))

    @cached_property
    def fewest_different(self) -> int:
        """Return the smaller of the two groups' numbers of different documents."""
        return min(len(np.unique(self.kinds[side])) for side in (self.documents.marked, ~self.documents.marked))

    @cached_property
    def _feature_matrix(self) -> csr_array:
        """Return the classifier's features; shape (documents, words).

        A feature is the word's share of the document's words, times its weight. Its mean does not depend on the number
        of words of the documents; that of a count, of the root of a count or of a share, and of weights scaled to
        length 1 does, so that the classifier would recognise a group by longer texts with the same words. Features do
        not depend on labels, so that they may be computed from training and test documents together.
        """
        # Deferred, as scipy is not needed to load a probe. The matrix shares its indices with the counts.
        from scipy.sparse import csr_array

        counts = self.counts
        shares = np.repeat(1 / np.maximum(self.documents.words.lengths, 1), np.diff(counts.indptr))
        shares *= counts.data
        if self.features == "tfidf":
            holding = np.bincount(counts.indices, minlength=counts.shape[1]).astype(np.float64)
            shares *= inverse_frequencies(holding, counts.shape[0])[counts.indices]
        return csr_array((shares, counts.indices, counts.indptr), counts.shape)

    @cached_property
    def classifier(self) -> least_squares.Classifier:
        """Return the classifier of these documents; its matrix is inverted once."""
        return least_squares.Classifier.of(self._feature_matrix, self.documents.strata, self.kinds)

    def distances(self, marked: Bools | None = None, used: Bools | None = None) -> Floats:
        """Return d' for each labelling; 0 if there are too few different documents to train a classifier.

        Args:
            marked: (labellings, documents) group labels; `None` for the documents' own labels.
            used: (labellings, documents) whether the document takes part; `None` if all do.
        """
        marked = self.documents.marked[None] if marked is None else marked
        if self.fewest_different < FEWEST_DIFFERENT:
            return np.zeros(max(len(marked), 1 if used is None else len(used)))
        return least_squares.distances(self.classifier, marked, used)

    def _separation(self, d_prime: float, null: Floats, used: Bools | None = None) -> Separation:
        """Return d' with its standard error.

        Args:
            d_prime: the distance.
            null: (labellings,) distances with permuted labels.
            used: (documents,) whether the document takes part; `None` if all do.
        """
        marked = self.documents.marked if used is None else self.documents.marked[used]
        return Separation.of(d_prime, float(np.std(null)), int(marked.sum()), int((~marked).sum()))

    def separation_of_run(self, run: Documents, cuts: Bools, random: np.random.Generator) -> Separation:
        """Return d' of one run with its standard error, to compare two runs of this corpus.

        Args:
            run: the documents of one run.
            cuts: (cuts, documents) masks over the documents of this corpus. Each mask selects documents of the run, as
                many as the other run has.
            random: random generator.
        """
        # More documents make a better classifier, so that runs of different sizes are compared at equal size. To
        # invert the classifier's matrix only once, documents outside of a cut stay in the matrix, with the label 0.
        corpus = Corpus.of(run, self.features)
        cut = len(cuts) > 1 and corpus.fewest_different >= FEWEST_DIFFERENT
        d_prime = (self.distances(used=cuts) if cut else corpus.distances()).mean()
        null = self._permuted_distances(cuts[0], ERROR_PERMUTATIONS, random)
        return self._separation(float(d_prime), null, cuts[0])

    def _permuted_distances(self, used: Bools, count: int, random: np.random.Generator) -> Floats:
        """Return d' for each permutation of labels within strata, for the documents in the mask `used`."""
        labels, _ = relabelling.relabellings(self.documents.marked[used], self.documents.strata[used], count, random)
        marked = np.zeros((len(labels), len(used)), dtype=np.bool_)
        marked[:, used] = labels
        return self.distances(marked, used[None])

    def word_strengths(self) -> tuple[Sequence[str], Floats]:
        """Return each word's part in the separation of the groups, 0..1; see `Sample.word_strengths`.

        A classifier trained on all documents gives the groups different mean scores. A word's part is its weight times
        the difference between the groups' means of its feature, as a share of the sum over all words. Words that lower
        the difference, and that are in the classifier only to balance others, have the part 0.
        """
        labels = least_squares.centred_labels(
            self.documents.marked[None], self.documents.strata, np.ones((1, len(self.documents.marked)), dtype=np.bool_)
        )[:, 0]
        parts = np.maximum(self.classifier.weights(labels) * (self._feature_matrix.T @ labels), 0)
        return self.vocabulary, np.asarray(parts / (parts.sum() or 1))


def _kinds(counts: csr_array) -> Ints:
    """Return a number for each row of counts; equal rows have the same number."""
    counts.sort_indices()
    rows = zip(counts.indptr, counts.indptr[1:], strict=False)
    known: dict[int, int] = {}
    kinds = [
        known.setdefault(hash((counts.indices[start:end].tobytes(), counts.data[start:end].tobytes())), len(known))
        for start, end in rows
    ]
    return np.array(kinds, dtype=np.int64)
