"""Documents as feature vectors; the distance between groups is the squared maximum mean discrepancy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_fairness.audits.text.documents import Documents
from pytest_fairness.audits.text.samples import kernels
from pytest_fairness.audits.text.samples.sample import Sample
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.stats.arrays import Bools, Floats
from pytest_fairness.stats.texts import mmd


@dataclass(frozen=True)
class Vectors(Sample):
    """Documents with feature vectors; the inner product of two vectors is the similarity of the texts."""

    vectors: mmd.Features

    @classmethod
    def of(cls, documents: Documents, *, embedded: bool) -> Vectors:
        """Return the documents with vectors: embeddings if `embedded`, otherwise TF-IDF features.

        Raises:
            NotMeasurable: a document has no embedding.
        """
        if not embedded:
            return cls(documents, kernels.text_features(documents.words))
        pairs = zip(documents.embeddings, documents.words, strict=True)
        if missing := sum(vector is None and bool(words) for vector, words in pairs):
            raise NotMeasurable(f"{missing} answers have no embedding")
        return cls(documents, kernels.embedding_features(documents.embeddings))

    def statistic(self, marked: Bools) -> Floats:
        """Return the squared discrepancy for each labelling; shape (labellings, 1)."""
        return mmd.estimates(self.vectors, self.documents.strata, marked, ~marked)[:, None]

    def test_statistic(self, statistic: Floats) -> Floats:
        """Return the squared discrepancy, rounded so that equal texts give exactly 0."""
        rounded: Floats = np.round(statistic[..., 0], 12)
        return rounded

    def distance(self, selected: Bools) -> Floats:
        """Return the squared discrepancy for each selection of documents."""
        marked = self.documents.marked
        return mmd.estimates(self.vectors, self.documents.strata, selected & marked, selected & ~marked)

    def standard_error(self, null: Floats) -> float:
        """Return the standard error of one run's discrepancy; `null` holds the statistic with permuted labels."""
        marked = self.documents.marked
        return mmd.standard_error(self.vectors, self.documents.strata, marked, ~marked, float(null.std()))

    def within_strata(self) -> dict[str, float]:
        """Return the squared discrepancy of each stratum that holds enough documents, by the stratum's name."""
        marked = self.documents.marked
        found = mmd.within_strata(self.vectors, self.documents.strata, marked, ~marked)
        return {self.documents.stratum_names[stratum]: value for stratum, value in found.items()}
