"""Feature vectors of texts; the inner product of two vectors is the similarity of the texts.

The audit `mmd` uses these vectors. To add another similarity, add a function that returns vectors for documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audits.text.tokens import Tokens
from pytest_fairness.errors import FairnessError
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.texts import mmd

if TYPE_CHECKING:
    from scipy.sparse import csr_array

EXACT = 2048
"""Largest number of documents whose similarities are computed exactly; the time grows with the square of the number."""
SKETCHED = 2048
"""Number of dimensions of the approximate vectors for more than `EXACT` documents. The relative error of
squared distances between means is about √(2 / 2048), or 3 %."""
SHORTEST, LONGEST = 3, 5
"""Smallest and largest number of characters of an n-gram."""
NGRAMS = {"analyzer": "char_wb", "ngram_range": (SHORTEST, LONGEST), "lowercase": False}
"""Options of scikit-learn's vectorizers for character n-grams within words."""
DOCUMENTS = 4096
"""Number of documents whose terms are counted, or whose vectors are computed, at a time, to save memory."""
ROWS = 512
"""Number of rows that are computed at once in a product of sparse matrices."""

Documents = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Tfidf:
    """TF-IDF weights of documents, normalised so that each document's vector has length 1.

    Attributes:
        terms: term of each column.
        weights: (documents, terms) weights.
    """

    terms: Sequence[str]
    weights: csr_array


def words(documents: Documents) -> Tfidf:
    """Return the TF-IDF weights of the documents' words."""
    return _tfidf(documents, analyzer=_unchanged)


def ngrams(documents: Documents) -> Tfidf:
    """Return the TF-IDF weights of character n-grams within words; they also match similar endings and misspellings."""
    return _tfidf([" ".join(document) for document in documents], **NGRAMS)


def text_features(documents: Documents) -> mmd.Features:
    """Return feature vectors, shape (documents, dimensions); the similarity is the mean cosine of words and of n-grams.

    A text with words has the similarity 1 to itself; texts that share neither words nor n-grams have the similarity 0.
    Only inner products of the vectors have a meaning; single dimensions have none.
    """
    if len(documents) <= EXACT:
        parts = [words(documents), ngrams(documents)]
        return mmd.features_of(np.mean([_inner_products(part.weights) for part in parts], axis=0))
    # Deferred, as scikit-learn takes a second to import and only measuring needs it.
    from sklearn.feature_extraction.text import TfidfTransformer

    counted = _Counted.of(Tokens.of(documents)).by_occurrence()
    weightings = []
    for terms in counted.terms:
        weighting = TfidfTransformer()
        weighting.idf_ = inverse_frequencies(terms.holding.astype(np.float32), len(documents))
        weightings.append(weighting)
    features = np.zeros((len(documents), SKETCHED), dtype=np.float32)
    for start, rows in counted.slices():
        for terms, weighting in zip(counted.terms, weightings, strict=True):
            counts = rows @ terms.by_word
            counts.sort_indices()  # the order in which a document's terms are added
            features[start : start + rows.shape[0]] += (weighting.transform(counts) @ terms.projection).toarray()
    features /= np.float32(np.sqrt(len(counted.terms)))
    return features


class _Terms(NamedTuple):
    """Words, or character n-grams of words, in many documents.

    Attributes:
        by_word: (words, terms) number of occurrences of the term in the word.
        holding: (terms,) number of documents that contain the term.
        projection: matrix of the random projection; see `_projection_matrix`.
    """

    by_word: csr_array
    holding: Floats
    projection: csr_array


@dataclass(frozen=True)
class _Counted:
    """Terms of many documents, which are counted slice by slice to save memory.

    Attributes:
        documents: words of the documents.
        columns: word id of each word that occurs, sorted by word.
        terms: two entries: the words, and the character n-grams of words.
    """

    documents: Tokens
    columns: NDArray[np.int32]
    terms: tuple[_Terms, ...]

    @classmethod
    def of(cls, documents: Tokens) -> _Counted:
        """Return the words and the n-grams of the documents."""
        from scipy.sparse import csr_array, dia_array
        from sklearn.feature_extraction.text import CountVectorizer

        # A document has the n-grams of its words, which are therefore found once for each word.
        columns = documents.columns()
        words = [documents.vocabulary[number] for number in columns]
        vectorizer = CountVectorizer(dtype=np.float32, **NGRAMS)
        ngrams = csr_array(vectorizer.fit_transform(words))
        unit = csr_array(dia_array((np.ones((1, len(words)), np.float32), 0), shape=(len(words), len(words))))
        parts = [(unit, words), (ngrams, list(vectorizer.get_feature_names_out()))]
        bare = cls(documents, columns, ())
        holding = [np.zeros(part.shape[1]) for part, _ in parts]
        for _, rows in bare.slices():
            for (part, _), number in zip(parts, holding, strict=True):
                number += np.bincount((rows @ part).indices, minlength=len(number))
        return replace(
            bare,
            terms=tuple(
                _Terms(part, number, _projection_matrix(names, salt))
                for salt, ((part, names), number) in enumerate(zip(parts, holding, strict=True))
            ),
        )

    def by_occurrence(self) -> _Counted:
        """Return the same terms; words, and n-grams, are sorted by their first occurrence and added in this order."""
        from sklearn.feature_extraction.text import CountVectorizer

        words = np.argsort(self.columns)
        split = CountVectorizer(**NGRAMS).build_analyzer()
        places: dict[str, int] = {}
        for number in self.columns[words]:
            for ngram in split(self.documents.vocabulary[number]):
                places.setdefault(ngram, len(places))
        # `of` has sorted the n-grams.
        ngrams = np.argsort([places[ngram] for ngram in sorted(places)])
        return replace(
            self,
            terms=tuple(
                _Terms(terms.by_word[:, order], terms.holding[order], terms.projection[order])
                for terms, order in zip(self.terms, (words, ngrams), strict=True)
            ),
        )

    def slices(self) -> Iterator[tuple[int, csr_array]]:
        """Yield slices of `DOCUMENTS` documents: the index of the first document, and the (documents, words) counts."""
        for start in range(0, len(self.documents), DOCUMENTS):
            counts = self.documents.counts_of(start, start + DOCUMENTS, self.columns)
            yield start, counts.astype(np.float32)


def inverse_frequencies(holding: Floats, documents: int) -> Floats:
    """Return scikit-learn's inverse document frequencies of terms; shape (terms,).

    Args:
        holding: (terms,) number of documents that contain the term.
        documents: number of all documents.
    """
    frequencies: Floats = np.log((1 + documents) / (1 + holding)) + 1
    return frequencies


def embedding_features(embeddings: Sequence[bytes | None]) -> mmd.Features:
    """Return feature vectors of length 1, shape (documents, dimensions), so that inner products are cosines.

    Documents without an embedding, or with an embedding of length 0, have the similarity 1 to each other, and the
    similarity 0 to all other documents.

    Args:
        embeddings: embedding of each document as little-endian 32-bit numbers; `None` if the document has none.

    Raises:
        FairnessError: the embeddings have different numbers of dimensions.
    """
    sizes = sorted({len(one) // 4 for one in embeddings if one is not None})
    if len(sizes) > 1:
        raise FairnessError(
            f"embeddings have different numbers of dimensions ({' and '.join(map(str, sizes))}): the model that "
            "`embeddings` names has changed. Embed all texts again with --fairness-fresh."
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
    """Return the TF-IDF weights of the documents' terms; `options` are arguments of `TfidfVectorizer`."""
    # Deferred, as scikit-learn takes a second to import and only measuring needs it.
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(dtype=np.float32 if len(documents) > EXACT else np.float64, **options)
    weights = vectorizer.fit_transform(documents)
    return Tfidf([str(term) for term in vectorizer.get_feature_names_out()], weights.tocsr())


def _inner_products(weights: csr_array) -> Floats:
    turned = weights.T.tocsr()
    products = np.empty((weights.shape[0], weights.shape[0]))
    for start in range(0, len(products), ROWS):
        products[start : start + ROWS] = (weights[start : start + ROWS] @ turned).toarray()
    return products


def _projection_matrix(terms: Sequence[str], salt: int) -> csr_array:
    """Return the (terms, columns) matrix of a random projection (Charikar, Chen and Farach-Colton 2004).

    Each term is hashed to a column and a sign. Because of the random signs, the expected inner products of documents
    stay the same. A term gets the same column and sign in every run, so that vectors of different runs are comparable.

    Args:
        terms: the terms.
        salt: seed of the hash.
    """
    from scipy.sparse import csr_array
    from sklearn.utils import murmurhash3_32

    hashed = np.array([murmurhash3_32(term, seed=salt, positive=True) for term in terms], dtype=np.int64)
    columns, signs = hashed // 2 % SKETCHED, (hashed % 2 * 2 - 1).astype(np.float32)
    return csr_array((signs, (np.arange(len(hashed)), columns)), shape=(len(hashed), SKETCHED))


def _unchanged(document: Sequence[str]) -> Sequence[str]:
    """Return the words of a document unchanged; `TfidfVectorizer` requires a function that returns the words."""
    return document
