"""Documents as features of a linear classifier, and the accuracy with which it separates two groups.

Two documents are equal if their counts of the classifier's words are equal. A document that equals an earlier one
of its run, group and stratum is dropped. Each document is scored by a classifier that is trained without this document
and without all documents that equal it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from pytest_fairness.audits.text.documents import Documents, Units, kept_of_many
from pytest_fairness.audits.text.samples.sample import ERROR_PERMUTATIONS, Relabelled, Sample
from pytest_fairness.stats.arrays import Bools, Floats, Ints
from pytest_fairness.stats.intervals.balanced_accuracy import Accuracy, effective_size
from pytest_fairness.stats.intervals.estimate import Estimate
from pytest_fairness.stats.resampling import relabelling
from pytest_fairness.stats.resampling.bundles import Bundles
from pytest_fairness.stats.texts import least_squares

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FeatureName = Literal["counts", "tfidf"]

FEWEST_DIFFERENT = 5
"""A classifier is trained only if each group has at least this many different answers."""
FEWEST_DOCUMENTS_OF_A_WORD = 3
ACCURACIES = 99
"""Number of relabellings for which the accuracy is computed if there are many documents; it is enough for a standard
deviation."""
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
        features: how features are computed from counts: square roots of counts, or TF-IDF weights.
        unique_share: share of all documents that do not repeat the words of an earlier document.
    """

    vocabulary: Sequence[str]
    counts: csr_array
    kinds: Ints
    features: FeatureName
    unique_share: float

    @classmethod
    def of(cls, documents: Documents, features: FeatureName) -> Corpus:
        """Return the corpus of these documents of one run, or of two runs; two large runs are cut to equal size."""
        most = None if len(documents.words) <= MOST_WORDS else MOST_WORDS
        vocabulary, counts = documents.words.counts(FEWEST_DOCUMENTS_OF_A_WORD, most)
        kinds = _kinds(counts)
        of_run = np.column_stack([kinds, documents.cells, documents.current])
        kept = np.sort(np.unique(of_run, axis=0, return_index=True)[1])
        if not documents.current.all():
            kept = kept[kept_of_many(Units(documents.marked[kept], documents.strata[kept], documents.current[kept]))]
        share = documents.words.different() / len(documents.words)
        if len(kept) < len(kinds):
            documents, counts, kinds = documents.only(kept), counts[kept], kinds[kept]
        if documents.bundles is not None and not documents.current.all():
            counts.data = counts.data.astype(np.float32)  # counts of words are exact in 32 bits
        return cls(documents, vocabulary, counts, kinds, features, share)

    def statistic(self, marked: Bools) -> Floats:
        """Return the accuracy and the standardised difference of the groups' mean scores; shape (labellings, 2).

        If the documents are in bundles, only the first `ACCURACIES` labellings have an accuracy; all others have NaN.
        The mean scores are then those of a classifier that was also trained on the scored documents, which hardly
        matters if there are many documents.
        """
        bundles = self.documents.bundles
        if bundles is not None:
            accuracies = np.full(len(marked), np.nan)
            accuracies[:ACCURACIES] = self.separation(marked[:ACCURACIES, bundles.numbers]).accuracies
            return np.column_stack([accuracies, self._effects(marked, np.ones_like(marked[:1]), bundles)])
        separation = self.separation(marked)
        return np.column_stack([separation.accuracies, separation.effects])

    def _effects(self, marked: Bools, used: Bools, bundles: Bundles) -> Floats:
        """Return the standardised difference of the groups' mean scores; shape (labellings,).

        Args:
            marked: (labellings, bundles) whether the bundle belongs to the marked group.
            used: (labellings, bundles) whether the labelling includes the bundle.
            bundles: bundles of the documents.
        """
        if self.fewest_different < FEWEST_DIFFERENT:
            return np.zeros(max(len(marked), len(used)))
        labels = least_squares.centred_labels(marked, self.documents.units.strata, used, bundles.sizes)
        return least_squares.effects_of_sums(self.classifier, self._feature_sums, bundles.sizes, labels)

    @cached_property
    def _feature_sums(self) -> Floats:
        """Return the features, summed by bundle; shape (bundles, words)."""
        bundles = self.documents.bundles
        return np.asarray((self._feature_matrix if bundles is None else bundles.sums(self._feature_matrix)).toarray())

    def test_statistic(self, statistic: Floats) -> Floats:
        """Return the standardised difference of the groups' mean scores.

        The difference is a more sensitive statistic than the accuracy, which uses only the signs of scores.
        """
        differences: Floats = statistic[..., 1]
        return differences

    def value_of(self, run: Relabelled[Corpus]) -> float:
        """Return the accuracy."""
        return float(run.observed[0])

    def estimate(self, run: Relabelled[Corpus], random: np.random.Generator) -> Estimate:
        """Return the accuracy with a standard error and an interval computed from its log-odds."""
        accuracy = self.accuracy(run.value, null_accuracies(run))
        return Estimate(accuracy.value, accuracy.standard_error, accuracy.interval)

    def distance(self, selected: Bools) -> Floats:
        """Return the standardised difference of the groups' mean scores for each selection of units; at least 0."""
        bundles, marked = self.documents.bundles, self.documents.units.marked[None]
        if bundles is None:
            effects = self.separation(used=selected).effects
        else:
            effects = self._effects(marked, selected, bundles)
        return np.asarray(np.maximum(effects, 0))

    @cached_property
    def fewest_different(self) -> int:
        """Return the smaller of the two groups' numbers of different documents."""
        return min(len(np.unique(self.kinds[side])) for side in (self.documents.marked, ~self.documents.marked))

    @cached_property
    def _feature_matrix(self) -> csr_array:
        """Return the classifier's features; shape (documents, words).

        Features do not depend on labels, so that they may be computed from training and test documents together. Square
        roots of counts have the same variance for frequent and for rare words (Bartlett 1936); with plain counts, the
        penalty would act on the most frequent words only.
        """
        if self.features == "counts":
            # Deferred, as scipy is not needed to load a probe. The matrix shares its indices with the counts.
            from scipy.sparse import csr_array

            return csr_array(
                (np.sqrt(self.counts.data, dtype=np.float64), self.counts.indices, self.counts.indptr),
                self.counts.shape,
            )
        # Deferred, as scikit-learn takes a second to import and only measuring needs it.
        from sklearn.feature_extraction.text import TfidfTransformer

        weights: csr_array = TfidfTransformer().fit_transform(self.counts.astype(np.float64, copy=False))
        return weights

    @cached_property
    def classifier(self) -> least_squares.Classifier:
        """Return the classifier of these documents; its matrix is inverted once."""
        return least_squares.Classifier.of(self._feature_matrix, self.documents.strata, self.kinds)

    def separation(self, marked: Bools | None = None, used: Bools | None = None) -> least_squares.Separation:
        """Return how well the classifier separates the two groups, for each labelling.

        If there are too few different documents to train a classifier, `accuracies` are 0.5 and `effects` are 0.

        Args:
            marked: (labellings, documents) group labels; `None` for the documents' own labels.
            used: (labellings, documents) whether the document takes part; `None` if all do.
        """
        marked = self.documents.marked[None] if marked is None else marked
        if self.fewest_different < FEWEST_DIFFERENT:
            rows = max(len(marked), 1 if used is None else len(used))
            return least_squares.Separation(np.full(rows, 0.5), np.zeros(rows))
        return least_squares.Separation.of(self.classifier, marked, used)

    def accuracy(self, value: float, null: Floats, used: Bools | None = None) -> Accuracy:
        """Return the accuracy with its standard error.

        Args:
            value: balanced accuracy.
            null: (labellings,) accuracies with permuted labels.
            used: (documents,) whether the document takes part; `None` if all do.
        """
        marked = self.documents.marked if used is None else self.documents.marked[used]
        return Accuracy.of(value, effective_size(int(marked.sum()), int((~marked).sum())), float(np.std(null)))

    def accuracy_of_run(self, run: Documents, cuts: Bools, random: np.random.Generator) -> Accuracy:
        """Return the accuracy of one run with its standard error, to compare two runs of this corpus.

        Args:
            run: the documents of one run.
            cuts: (cuts, units) masks over the units of this corpus. Each mask selects units of the run, as many as the
                other run has.
            random: random generator.
        """
        if (bundles := self.documents.bundles) is not None:
            own = np.flatnonzero(cuts[0][bundles.numbers])
            documents = replace(self.documents.only(own), current=np.ones(len(own), dtype=np.bool_))
            corpus = Corpus.of(documents, self.features)
            null = corpus._permuted_accuracies(np.ones(len(corpus.kinds), dtype=np.bool_), ACCURACIES, random)
            return corpus.accuracy(float(corpus.separation().accuracies[0]), null)
        # More documents make a better classifier, so that runs of different sizes are compared at equal size. To
        # invert the classifier's matrix only once, documents outside of a cut stay in the matrix, with the label 0.
        corpus = Corpus.of(run, self.features)
        cut = len(cuts) > 1 and corpus.fewest_different >= FEWEST_DIFFERENT
        value = (self.separation(used=cuts) if cut else corpus.separation()).accuracies.mean()
        return self.accuracy(float(value), self._permuted_accuracies(cuts[0], ERROR_PERMUTATIONS, random), cuts[0])

    def _permuted_accuracies(self, used: Bools, count: int, random: np.random.Generator) -> Floats:
        """Return the accuracy for each permutation of labels within strata, for the documents in the mask `used`."""
        labels, _ = relabelling.relabellings(self.documents.marked[used], self.documents.strata[used], count, random)
        marked = np.zeros((len(labels), len(used)), dtype=np.bool_)
        marked[:, used] = labels
        return self.separation(marked, used[None]).accuracies

    def word_weights(self) -> tuple[Sequence[str], Floats]:
        """Return each word's weight in a classifier trained on all documents; see `Sample.word_weights`."""
        labels = least_squares.centred_labels(
            self.documents.marked[None], self.documents.strata, np.ones((1, len(self.documents.marked)), dtype=np.bool_)
        )
        return self.vocabulary, self.classifier.weights(labels[:, 0])


def null_accuracies(run: Relabelled[Corpus]) -> Floats:
    """Return the accuracies of the relabellings; for bundles, only of the first `ACCURACIES` relabellings."""
    accuracies = run.null[:, 0]
    return accuracies[~np.isnan(accuracies)]


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
