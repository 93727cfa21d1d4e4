"""Documents told apart by a linear support vector machine, by cross-validation in their kernel.

Everything is refitted hundreds of times, so the documents × documents kernel is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audit import contrast
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.records import Json
from pytest_fairness.stats import resampling

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Features = Literal["counts", "tfidf"]

FOLDS = 5
SHUFFLES = 10
"""Cross-validations that a reported accuracy is averaged over."""
NULL_SHUFFLES = 2
"""The same for an accuracy under the null hypothesis, of which many are needed."""
MINIMUM_DIFFERENT_DOCUMENTS = 5
MINIMUM_DOCUMENTS_OF_A_WORD = 3
SHOWN_WORDS = 10
SMALLEST_ERROR = 0.001


@dataclass(frozen=True)
class Score:
    """A cross-validated classifier's accuracy, averaged over shuffles.

    Attributes:
        balanced: mean of both groups' shares of right answers, 0..1, chance 0.5.
        plain: share of right answers, 0..1.
        fold_sd: standard deviation of the plain accuracy over folds; no error of the mean, as folds share documents.
        shuffle_variance: variance of the balanced accuracy from one shuffle to the next.
    """

    balanced: float
    plain: float
    fold_sd: float
    shuffle_variance: float


@dataclass(frozen=True)
class Corpus:
    """Documents to be told apart.

    Attributes:
        vocabulary: the words of the columns.
        counts: (documents, words).
        marked: (documents,) whether of the marked group.
        strata: (documents,) number of the stratum.
        features: what the classifier sees of the counts.
    """

    vocabulary: Sequence[str]
    counts: Floats
    marked: Bools
    strata: Ints
    features: Features

    @classmethod
    def of(cls, documents: contrast.Documents, features: Features) -> Corpus:
        """All documents of one run, without exact repeats."""
        vocabulary, counts = documents.counts(MINIMUM_DOCUMENTS_OF_A_WORD)
        return cls(vocabulary, counts, documents.marked, documents.strata, features).unique()

    @cached_property
    def _first_of_its_kind(self) -> Ints:
        return np.sort(np.unique(self.counts, axis=0, return_index=True)[1])

    def different(self) -> int:
        """How many documents of the smaller group repeat no other."""
        marked = self.marked[self._first_of_its_kind]
        return min(int(marked.sum()), int((~marked).sum()))

    def unique(self) -> Corpus:
        """Without exact repeats: one of them in training would give away the other in the test.

        Raises:
            NotMeasurable: too few different documents are left.
        """
        kept, short = self._first_of_its_kind, self.different()
        if short < MINIMUM_DIFFERENT_DOCUMENTS:
            raise NotMeasurable(
                f"too few different answers of one group: {short}, {MINIMUM_DIFFERENT_DOCUMENTS} are needed "
                "to train on some and test on the rest; raise `sampling.temperature` or `trials`"
            )
        return replace(self, counts=self.counts[kept], marked=self.marked[kept], strata=self.strata[kept])

    def score(self, shuffles: int, random: np.random.Generator, marked: Bools | None = None) -> Score:
        """Cross-validate `shuffles` times; `marked` stands in for the documents' own labels."""
        labels = self.marked if marked is None else marked
        right = np.empty((shuffles, len(labels)), dtype=np.bool_)
        folds = np.empty((shuffles, len(labels)), dtype=np.int64)
        for row in range(shuffles):
            folds[row] = self._folds(labels, random)
            right[row] = self._predict(labels, folds[row]) == labels
        per_fold = [float(right[row, folds[row] == fold].mean()) for row in range(shuffles) for fold in range(FOLDS)]
        balanced = (right[:, labels].mean(axis=1) + right[:, ~labels].mean(axis=1)) / 2
        return Score(
            balanced=float(balanced.mean()),
            plain=float(right.mean()),
            fold_sd=float(np.std(per_fold, ddof=1)),
            shuffle_variance=float(balanced.var(ddof=1)),
        )

    def value(self, seed: str) -> Score:
        """The score that is reported; it depends on the run alone, so that a baseline measured again has its value."""
        return self.score(SHUFFLES, resampling.generator(f"{seed}/measure"))

    def null(self, permutations: int, random: np.random.Generator) -> list[Score]:
        """Scores on labels permuted within strata, refitted each time."""
        labels, _ = resampling.relabellings(self.marked, self.strata, permutations, random)
        return [self.score(NULL_SHUFFLES, random, marked=row) for row in labels]

    def _folds(self, labels: Bools, random: np.random.Generator) -> Ints:
        """(documents,) fold of each document; every fold takes its share of each label in each stratum."""
        order = np.lexsort((random.random(len(labels)), self.strata, labels))
        folds = np.empty(len(labels), dtype=np.int64)
        folds[order] = np.arange(len(labels)) % FOLDS
        return folds

    def _predict(self, labels: Bools, folds: Ints) -> Bools:
        predicted = np.empty(len(labels), dtype=np.bool_)
        for fold in range(FOLDS):
            test = folds == fold
            kernel = self._kernel if self.features == "counts" else _kernel(self._weighted(~test))
            model = _fit(kernel[np.ix_(~test, ~test)], labels[~test])
            # What `predict` computes, without its validation, which takes longer than all the rest.
            support = np.flatnonzero(~test)[model.support_]
            predicted[test] = kernel[np.ix_(test, support)] @ model.dual_coef_[0] + model.intercept_[0] > 0
        return predicted

    @cached_property
    def _kernel(self) -> Floats:
        # Words that no training document holds have weight 0 in a linear machine, so that one kernel over all words is
        # the same as a vocabulary fitted in each fold.
        return _kernel(self.counts)

    def _weighted(self, training: Bools) -> Floats:
        from sklearn.feature_extraction.text import TfidfTransformer

        weighted: Floats = TfidfTransformer().fit(self.counts[training]).transform(self.counts).toarray()
        return weighted

    def top_words(self) -> dict[str, list[dict[str, Json]]]:
        """The words with the largest weights for either side, of a fit on all documents; descriptive only."""
        everything = np.ones_like(self.marked)
        features = self.counts if self.features == "counts" else self._weighted(everything)
        model = _fit(_kernel(features), self.marked)
        weights: Floats = model.dual_coef_[0] @ features[model.support_]
        sides = {"marked": weights, "unmarked": -weights}
        return {
            side: [
                {"word": self.vocabulary[index], "weight": float(strength[index])}
                for index in contrast.tie_order(self.vocabulary, strength)[:SHOWN_WORDS]
                if strength[index] > 0
            ]
            for side, strength in sides.items()
        }


def _kernel(features: Floats) -> Floats:
    product: Floats = features @ features.T
    return product


def _fit(kernel: Floats, labels: Bools) -> Any:
    # Deferred, as scikit-learn takes a second to import and only measuring needs it.
    from sklearn import config_context
    from sklearn.svm import SVC

    # For groups of equal size balanced weights are all 1, and computing them takes as long as the fit. So does checking
    # what was made here.
    weights = None if 2 * int(labels.sum()) == len(labels) else "balanced"
    with config_context(assume_finite=True, skip_parameter_validation=True):
        return SVC(kernel="precomputed", class_weight=weights).fit(kernel, labels)


def mean_accuracy(scores: Sequence[Score]) -> float:
    """Mean balanced accuracy."""
    return float(np.mean([score.balanced for score in scores]))


def spread(scores: Sequence[Score]) -> float:
    """Standard deviation that these scores would have if each were averaged over `SHUFFLES` shuffles, as values are.

    Refits use `NULL_SHUFFLES` to save time; what they vary more for that is known from their shuffles and taken off.
    """
    variance = float(np.var([score.balanced for score in scores], ddof=1))
    within = float(np.mean([score.shuffle_variance for score in scores]))
    corrected = variance - within / NULL_SHUFFLES + within / SHUFFLES
    return math.sqrt(max(corrected, within / SHUFFLES, SMALLEST_ERROR**2))


def accuracy_error(accuracy: float, null_sd: float, n: int) -> float:
    """Standard error of a cross-validated balanced accuracy.

    The spread under permuted labels is that of a classifier at chance, training noise included; it is carried to other
    accuracies by the binomial variance, two successes and two failures added so that it does not vanish at 1.
    """
    shrunk = (accuracy * n + 2) / (n + 4)
    return null_sd * math.sqrt(shrunk * (1 - shrunk) / 0.25)
