"""Documents as features of a linear classifier, and what it makes of them.

Words are counted sparsely, exact repeats within a group and stratum are dropped, and texts that are equal otherwise are
left out of training together, so that no text is scored by a classifier that has seen it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from pytest_fairness.audits.text.documents import Documents, count_words
from pytest_fairness.stats.arrays import Bools, Floats, Ints
from pytest_fairness.stats.intervals.balanced_accuracy import Accuracy, effective_size
from pytest_fairness.stats.resampling import relabelling
from pytest_fairness.stats.texts import least_squares

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FeatureName = Literal["counts", "tfidf"]

FOLDS = 5
"""Of the cross-validation that is reported as published."""
FEWEST_DIFFERENT = 5
"""Different answers of either group below which nothing can be trained on some and tested on the rest."""
FEWEST_DOCUMENTS_OF_A_WORD = 3
MOST_WORDS = 2048
"""Most words that are features of more documents than this: those in the most documents."""


@dataclass(frozen=True)
class Corpus:
    """Documents that a classifier assigns to groups.

    Attributes:
        vocabulary: the words of the columns.
        counts: (documents, words).
        marked: (documents,) whether of the marked group.
        strata: (documents,) number of the stratum.
        current: (documents,) whether of this run; all `True` where there is one run only.
        kinds: (documents,) equal documents have the same number.
        features: what the classifier sees of the counts.
    """

    vocabulary: Sequence[str]
    counts: csr_array
    marked: Bools
    strata: Ints
    current: Bools
    kinds: Ints
    features: FeatureName

    @classmethod
    def of(cls, documents: Documents, features: FeatureName, current: Bools | None = None) -> Corpus:
        """Count the words of the documents; repeats within a run, stratum and group are dropped.

        At temperature 0 every trial repeats the same answer, which is one observation.

        Args:
            documents: of one run, or of two.
            features: what the classifier sees.
            current: (documents,) whether of this run, where there are two.
        """
        current = np.ones(len(documents.words), dtype=np.bool_) if current is None else current
        vocabulary, counts = _counted(documents.words)
        kinds = _kinds(counts)
        kept = np.sort(np.unique(np.column_stack([kinds, documents.cells, current]), axis=0, return_index=True)[1])
        return cls(
            vocabulary=vocabulary,
            counts=counts[kept],
            marked=documents.marked[kept],
            strata=documents.strata[kept],
            current=current[kept],
            kinds=kinds[kept],
            features=features,
        )

    @property
    def cells(self) -> Ints:
        """(documents,) number of the document's group within its stratum."""
        cells: Ints = self.strata * 2 + self.marked
        return cells

    @cached_property
    def different(self) -> int:
        """How many different documents the group has that has fewer of them."""
        return min(len(np.unique(self.kinds[side])) for side in (self.marked, ~self.marked))

    @cached_property
    def weights(self) -> csr_array:
        """(documents, words) what the classifier sees: no labels go into it, so that it may see all documents.

        Square roots of counts vary as much for frequent words as for rare ones (Bartlett 1936); plain counts would
        leave the penalty to the most frequent words.
        """
        if self.features == "counts":
            return self.counts.sqrt()
        # Deferred, as scikit-learn takes a second to import and only measuring needs it.
        from sklearn.feature_extraction.text import TfidfTransformer

        weights: csr_array = TfidfTransformer().fit_transform(self.counts)
        return weights

    @cached_property
    def classifier(self) -> least_squares.Classifier:
        """The classifier, factorised."""
        return least_squares.Classifier.of(self.weights, self.strata, self.kinds)

    def separation(self, marked: Bools | None = None, used: Bools | None = None) -> least_squares.Separation:
        """Tell the groups apart.

        Args:
            marked: (labellings, documents) labels that stand in for the documents' own.
            used: (labellings, documents) the documents that take part.
        """
        marked = self.marked[None] if marked is None else marked
        if self.different < FEWEST_DIFFERENT:
            rows = max(len(marked), 1 if used is None else len(used))
            return least_squares.Separation(np.full(rows, 0.5), np.zeros(rows))
        return least_squares.Separation.of(self.classifier, marked, used)

    def accuracy(self, value: float, null: Floats, used: Bools | None = None) -> Accuracy:
        """Return the accuracy of the documents that are used, all by default, given accuracies on permuted labels."""
        marked = self.marked if used is None else self.marked[used]
        return Accuracy.of(value, effective_size(int(marked.sum()), int((~marked).sum())), float(np.std(null)))

    def permuted_among(self, used: Bools, count: int, random: np.random.Generator) -> Floats:
        """Return the accuracies on labels that are permuted within strata among the documents that are used."""
        labels, _ = relabelling.relabellings(self.marked[used], self.strata[used], count, random)
        marked = np.zeros((len(labels), len(used)), dtype=np.bool_)
        marked[:, used] = labels
        return self.separation(marked, used[None]).accuracies

    def word_weights(self) -> Floats:
        """Return (words,) weights of a classifier that is trained on all documents; above 0 for the marked group."""
        labels = least_squares.labels_of(self.marked[None], self.strata, np.ones((1, len(self.marked)), dtype=np.bool_))
        return self.classifier.weights(labels[:, 0])

    def published(self, seed: int) -> tuple[float, float]:
        """Return what is published elsewhere: plain accuracy of a linear support vector machine, and its SD over folds.

        The SD is no error of the mean, as folds share documents. Equal documents are in one fold. Where there is too
        little to train on, it is the share of the larger group, with no spread.
        """
        larger = float(max(self.marked.mean(), 1 - self.marked.mean()))
        if self.different < FEWEST_DIFFERENT or not self.vocabulary:
            return larger, 0.0
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.model_selection import StratifiedGroupKFold
        from sklearn.pipeline import make_pipeline
        from sklearn.svm import LinearSVC

        folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
        weighting = (TfidfTransformer(),) if self.features == "tfidf" else ()
        right = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for training, test in folds.split(self.counts, self.marked, self.kinds):
                model = make_pipeline(*weighting, LinearSVC(random_state=seed))
                model.fit(self.counts[training], self.marked[training])
                right.append(model.predict(self.counts[test]) == self.marked[test])
        return float(np.concatenate(right).mean()), float(np.std([fold.mean() for fold in right], ddof=1))


def _counted(documents: Sequence[Sequence[str]]) -> tuple[list[str], csr_array]:
    """Return the vocabulary and the (documents, words) counts of words that are in several documents."""
    words, counts = count_words(documents, FEWEST_DOCUMENTS_OF_A_WORD)
    if len(documents) <= MOST_WORDS or len(words) <= MOST_WORDS:
        return words, counts
    holding = np.bincount(counts.indices, minlength=counts.shape[1])
    frequent = np.sort(np.argsort(-holding, kind="stable")[:MOST_WORDS])
    return [words[index] for index in frequent], counts[:, frequent]


def _kinds(counts: csr_array) -> Ints:
    """Return a number for each row, the same for equal rows."""
    counts.sort_indices()
    rows = zip(counts.indptr, counts.indptr[1:], strict=False)
    known: dict[tuple[bytes, bytes], int] = {}
    kinds = [
        known.setdefault((counts.indices[start:end].tobytes(), counts.data[start:end].tobytes()), len(known))
        for start, end in rows
    ]
    return np.array(kinds, dtype=np.int64)
