"""Texts as vectors whose inner products say how alike two texts are, for audits that compare whole distributions.

Another similarity of texts is another function from documents to vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.errors import FairnessError
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.texts import mmd

if TYPE_CHECKING:
    from scipy.sparse import csr_array

EXACT = 2048
"""Documents up to which their similarities are computed exactly; the time that takes grows with the square."""
SKETCHED = 2048
"""Dimensions of the vectors that stand in for more documents; squared distances of means err by about √(2 / 2048)."""
SHORTEST, LONGEST = 3, 5
"""Characters of the n-grams."""
ROWS = 512
"""Rows of a product of sparse matrices that are computed at once."""

Documents = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Tfidf:
    """Documents by TF-IDF weights, (documents, terms), each row of length 1, of the terms in their order.

    Attributes:
        terms: the columns.
        weights: of each document.
    """

    terms: Sequence[str]
    weights: csr_array


def words(documents: Documents) -> Tfidf:
    """Return the weights of words."""
    return _tfidf(documents, analyzer=_as_it_is)


def ngrams(documents: Documents) -> Tfidf:
    """Return the weights of the characters' n-grams within words: endings, stems and misspellings count as well."""
    return _tfidf(
        [" ".join(document) for document in documents],
        analyzer="char_wb",
        ngram_range=(SHORTEST, LONGEST),
        lowercase=False,
    )


def text_features(documents: Documents) -> mmd.Features:
    """Return (documents, dimensions) vectors; their inner product is the mean cosine of word and n-gram weights.

    A text that has words is as similar to itself as can be, 1; texts that share nothing have 0. The vectors are not
    weights of single terms: only their inner products mean something.
    """
    parts = [words(documents), ngrams(documents)]
    if len(documents) <= EXACT:
        return mmd.features_of(np.mean([_products(part.weights) for part in parts], axis=0))
    features = np.zeros((len(documents), SKETCHED), dtype=np.float32)
    for salt, part in enumerate(parts):
        _add_sketch(features, part, salt)
    features /= np.float32(np.sqrt(len(parts)))
    return features


def embedding_features(embeddings: Sequence[bytes | None]) -> mmd.Features:
    """Return (documents, dimensions) vectors of length 1, so that their inner products are cosines.

    Documents without a vector, or with one of length 0, are as similar to each other as can be, and to no other.

    Args:
        embeddings: little-endian 32-bit numbers of each document.

    Raises:
        FairnessError: they are not of one length.
    """
    sizes = sorted({len(one) // 4 for one in embeddings if one is not None})
    if len(sizes) > 1:
        raise FairnessError(
            f"embeddings of {' and '.join(map(str, sizes))} dimensions are no vectors of one model: what `embeddings` "
            "names has changed. Embed all texts anew with --fairness-fresh."
        )
    dtype = np.float32 if len(embeddings) > EXACT else np.float64
    features = np.zeros((len(embeddings), (sizes or [0])[0] + 1), dtype=dtype)
    for row, one in zip(features, embeddings, strict=True):
        numbers = np.zeros(0) if one is None else np.frombuffer(one, dtype="<f4").astype(np.float64)
        length = float(np.linalg.norm(numbers))
        if length > 0:
            row[:-1] = numbers / length
        else:
            row[-1] = 1
    return features


def _tfidf(documents: Sequence[Sequence[str]] | Sequence[str], **options: object) -> Tfidf:
    # Deferred, as scikit-learn takes a second to import and only measuring needs it.
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(dtype=np.float32 if len(documents) > EXACT else np.float64, **options)
    weights = vectorizer.fit_transform(documents)
    return Tfidf([str(term) for term in vectorizer.get_feature_names_out()], weights.tocsr())


def _products(weights: csr_array) -> Floats:
    """Return all inner products of the rows."""
    turned = weights.T.tocsr()
    found = np.empty((weights.shape[0], weights.shape[0]))
    for start in range(0, len(found), ROWS):
        found[start : start + ROWS] = (weights[start : start + ROWS] @ turned).toarray()
    return found


def _add_sketch(features: mmd.Features, part: Tfidf, salt: int) -> None:
    """Add the rows, their terms hashed to columns with random signs (Charikar, Chen and Farach-Colton 2004).

    Inner products keep their expectation. A term always has the same column and sign, so that runs are sketched alike.
    """
    from scipy.sparse import csr_array
    from sklearn.utils import murmurhash3_32

    hashed = np.array([murmurhash3_32(term, seed=salt, positive=True) for term in part.terms], dtype=np.int64)
    columns, signs = hashed // 2 % SKETCHED, (hashed % 2 * 2 - 1).astype(np.float32)
    hashing = csr_array((signs, (np.arange(len(hashed)), columns)), shape=(len(hashed), features.shape[1]))
    for start in range(0, len(features), ROWS):
        features[start : start + ROWS] += (part.weights[start : start + ROWS] @ hashing).toarray()


def _as_it_is(document: Sequence[str]) -> Sequence[str]:
    return document
