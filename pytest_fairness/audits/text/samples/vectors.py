"""Documents as feature vectors; the distance between groups is the squared maximum mean discrepancy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pytest_fairness.audits.text.samples import kernels
from pytest_fairness.audits.text.samples.sample import ERROR_PERMUTATIONS, Relabelled, Sample
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.stats.arrays import Bools, Floats
from pytest_fairness.stats.intervals.estimate import Estimate
from pytest_fairness.stats.texts import mmd


@dataclass(frozen=True)
class Vectors(Sample):
    """Documents with feature vectors; the inner product of two vectors is the similarity of the texts.

    Attributes:
        embedded: whether the vectors are embeddings rather than TF-IDF features.
    """

    embedded: bool

    @cached_property
    def vectors(self) -> mmd.Features:
        """Return the feature vectors, shape (documents, dimensions).

        Raises:
            NotMeasurable: a document with words has no embedding, although the vectors are embeddings.
        """
        if not self.embedded:
            return kernels.text_features(self.documents.words)
        pairs = zip(self.documents.embeddings, self.documents.words, strict=True)
        if missing := sum(vector is None and bool(words) for vector, words in pairs):
            raise NotMeasurable(
                f"{missing} answers have no embedding, so that their texts cannot be compared. Check that the "
                "embedding model works"
            )
        return kernels.embedding_features(self.documents.embeddings)

    def statistic(self, marked: Bools) -> Floats:
        """Return the squared discrepancy for each labelling; shape (labellings, 1)."""
        return mmd.estimates(self.vectors, self.documents.strata, marked, ~marked)[:, None]

    def test_statistic(self, statistic: Floats) -> Floats:
        """Return the squared discrepancy, rounded so that equal texts give exactly 0."""
        rounded: Floats = np.round(statistic[..., 0], 12)
        return rounded

    def value_of(self, run: Relabelled[Vectors]) -> float:
        """Return the squared discrepancy."""
        return float(self.test_statistic(run.observed))

    def estimate(self, run: Relabelled[Vectors], random: np.random.Generator) -> Estimate:
        """Return the squared discrepancy with its standard error."""
        documents = self.documents
        error = mmd.standard_error(
            self.vectors, documents.strata, documents.marked, ~documents.marked, ERROR_PERMUTATIONS, random
        )
        return Estimate.normal(run.value, error)

    def distance(self, selected: Bools) -> Floats:
        """Return the squared discrepancy for each selection of documents."""
        documents = self.documents
        return mmd.estimates(self.vectors, documents.strata, selected & documents.marked, selected & ~documents.marked)

    def word_strengths(self) -> tuple[Sequence[str], Floats]:
        """Return the difference between the groups' mean TF-IDF weights of each word; see `Sample.word_strengths`."""
        marked, strata = self.documents.marked, self.documents.strata
        tfidf = kernels.words(self.documents.words)
        return tfidf.terms, mmd.contributions(tfidf.weights, strata, marked, ~marked)

    def within_strata(self) -> dict[str, float]:
        """Return the squared discrepancy of each stratum that holds enough documents, by the stratum's name."""
        documents = self.documents
        discrepancies = mmd.within_strata(self.vectors, documents.strata, documents.marked, ~documents.marked)
        return {self.documents.stratum_names[stratum]: value for stratum, value in discrepancies.items()}

    def variance(self) -> float:
        """Return the variance of the vectors around the mean vector of their cell (group within stratum)."""
        return mmd.variance(self.vectors, self.documents.cells)
