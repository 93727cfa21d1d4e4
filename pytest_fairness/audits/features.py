"""Texts as sequences of word ids, and as feature vectors whose inner products are similarities."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.errors import FairnessError
from pytest_fairness.stats import two_samples
from pytest_fairness.stats.resampling import Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array


# Texts as sequences of word ids (indices into a vocabulary), which need a tenth of the memory of lists of words.

WordIds = NDArray[np.int32]

AT_ONCE = 2**16
"""Number of texts whose words are counted at a time."""


class Tokens(Sequence[tuple[str, ...]]):
    """Texts, each a tuple of words, stored as word ids.

    Args:
        vocabulary: word of each id; it may contain words that no text contains.
        ids: word ids of all texts, one text after the other.
        ends: (texts,) index in `ids` at which the text ends.
    """

    def __init__(self, vocabulary: Sequence[str], ids: WordIds, ends: Ints) -> None:
        self.vocabulary, self._ids, self._ends = vocabulary, ids, ends

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]]) -> Tokens:
        """Number the words by their first occurrence."""
        if isinstance(texts, Tokens):
            return texts
        known: dict[str, int] = {}
        ids, ends = array("i"), array("q")
        for text in texts:
            ids.extend([known.setdefault(word, len(known)) for word in text])
            ends.append(len(ids))
        return cls([*known], np.frombuffer(ids, np.int32), np.frombuffer(ends, np.int64))

    @classmethod
    def joined(cls, parts: Iterable[Tokens]) -> Tokens:
        known: dict[str, int] = {}
        ids, lengths = array("i"), [np.zeros(0, np.int64)]
        for part in parts:
            own = np.array([known.setdefault(word, len(known)) for word in part.vocabulary], dtype=np.int32)
            ids.frombytes(own[part._ids].tobytes())
            lengths.append(part.lengths)
        return cls([*known], np.frombuffer(ids, np.int32), np.cumsum(np.concatenate(lengths)))

    @property
    def lengths(self) -> Ints:
        return np.diff(self._ends, prepend=0)

    def only(self, indices: Ints) -> Tokens:
        lengths = self.lengths[indices]
        ends = np.cumsum(lengths)
        ids = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.int32)
        # The index of each returned word: the start of its text, plus its place in the text.
        starts = self._ends[indices] - ends
        for start in range(0, len(indices), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            first, last = int(ends[start] - lengths[start]), int(ends[part][-1])
            ids[first:last] = self._ids[np.repeat(starts[part], lengths[part]) + np.arange(first, last)]
        return Tokens(self.vocabulary, ids, ends)

    def different(self) -> int:
        return len({hash(text.tobytes()) for text in self._texts()})

    def counts(self, minimum_texts: int = 1, most: int | None = None) -> tuple[list[str], csr_array]:
        """Return the sorted vocabulary, and the sparse (texts, words) counts.

        Words in fewer than `minimum_texts` texts are left out. If there are more than `most` words, those in the
        largest numbers of texts are returned.
        """
        # Deferred, as scipy is not needed to load a probe.
        from scipy.sparse import csr_array

        columns = self.columns(minimum_texts, most)
        counted = (self.counts_of(start, start + AT_ONCE, columns) for start in self._starts)
        words = [self.vocabulary[number] for number in columns]
        if len(self) <= AT_ONCE:
            return words, next(counted, csr_array((0, len(words))))
        # Filled slice by slice, so that no count is in memory twice.
        number = int(self._texts_by_word[columns].sum())
        data, indices, pointers = np.empty(number), np.empty(number, dtype=np.int32), [np.zeros(1, np.int64)]
        for part in counted:
            start = int(pointers[-1][-1])
            data[start : start + part.nnz], indices[start : start + part.nnz] = part.data, part.indices
            pointers.append(start + part.indptr[1:].astype(np.int64))
        joined = np.concatenate(pointers).astype(np.int32 if number < 2**31 else np.int64)
        return words, csr_array((data, indices, joined), shape=(len(self), len(words)))

    def columns(self, minimum_texts: int = 1, most: int | None = None) -> WordIds:
        """Return the ids of the words of `counts`, sorted by word."""
        # A word occurs in at least one text if it occurs at all, which is counted faster.
        at_all = minimum_texts <= 1 and most is None
        holding = np.bincount(self._ids, minlength=len(self.vocabulary)) if at_all else self._texts_by_word
        order = [
            number
            for number in sorted(range(len(self.vocabulary)), key=self.vocabulary.__getitem__)
            if holding[number] >= max(1, minimum_texts)
        ]
        # scikit-learn takes 32-bit indices only.
        columns = np.array(order, dtype=np.int32)
        if most is None or len(columns) <= most:
            return columns
        return columns[np.sort(np.argsort(-holding[columns], kind="stable")[:most])]

    def counts_of(self, start: int, end: int, columns: WordIds) -> csr_array:
        """Return sparse (texts, columns) counts of the texts from `start` to before `end`; a column is a word id."""
        # Deferred, as scipy is not needed to load a probe.
        from scipy.sparse import csr_array

        return csr_array(self._counts_from(start, end)[:, columns])

    def uses(self, chosen: Bools) -> tuple[Ints, Ints]:
        """Return occurrences, and texts, of each word in the chosen and the other texts: two (2, vocabulary) arrays."""
        uses, holding = np.zeros((2, 2, len(self.vocabulary)), dtype=np.int64)
        for start in self._starts:
            counts, own = self._counts_from(start, start + AT_ONCE), chosen[start : start + AT_ONCE]
            for group, side in enumerate((own, ~own)):
                part = counts[np.flatnonzero(side)]
                uses[group] += np.bincount(part.indices, part.data, uses.shape[1]).astype(np.int64)
                holding[group] += np.bincount(part.indices, minlength=uses.shape[1])
        return uses, holding

    @cached_property
    def _texts_by_word(self) -> Ints:
        holding = np.zeros(len(self.vocabulary), dtype=np.int64)
        for start in self._starts:
            holding += np.bincount(self._counts_from(start, start + AT_ONCE).indices, minlength=len(holding))
        return holding

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[str, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[str, ...] | Sequence[tuple[str, ...]]:
        """Return the words of a text, or the texts of a slice."""
        if isinstance(index, slice):
            return self.only(np.arange(len(self))[index])
        end = self._ends[index]
        return tuple(map(self.vocabulary.__getitem__, self._ids[end - self.lengths[index] : end]))

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        word = self.vocabulary.__getitem__
        return (tuple(map(word, text.tolist())) for text in self._texts())

    def _texts(self) -> Iterator[WordIds]:
        return (
            self._ids[end - length : end]
            for end, length in zip(self._ends.tolist(), self.lengths.tolist(), strict=True)
        )

    @property
    def _starts(self) -> range:
        """Indices at which slices of texts start; the words of one slice are counted at a time."""
        return range(0, len(self), AT_ONCE)

    def _counts_from(self, start: int, end: int) -> csr_array:
        """Return the (texts, words) counts of the texts from `start` to before `end`; a column is a word id."""
        from scipy.sparse import csr_array

        ends = np.concatenate([self._ends[start - 1 : start] if start else [0], self._ends[start:end]])
        ids = self._ids[ends[0] : ends[-1]]
        counts = csr_array(
            (np.ones(len(ids)), ids.copy(), (ends - ends[0]).astype(np.int32)),
            shape=(len(ends) - 1, len(self.vocabulary)),
        )
        counts.sum_duplicates()
        return counts


# Feature vectors of texts; the inner product of two vectors is the similarity of the texts.
#
# The audit `mmd` uses these vectors. To add another similarity, add a function that returns vectors for documents.

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
    """TF-IDF weights of documents, (documents, terms), normalised so that each document's vector has length 1."""

    terms: Sequence[str]
    weights: csr_array


def word_features(documents: Documents) -> Tfidf:
    return _tfidf(documents, analyzer=_unchanged)


def ngrams(documents: Documents) -> Tfidf:
    """Return the TF-IDF weights of character n-grams within words; they also match similar endings and misspellings."""
    return _tfidf([" ".join(document) for document in documents], **NGRAMS)


def text_features(documents: Documents) -> two_samples.Features:
    """Return (documents, dimensions) vectors; the similarity is the mean cosine of words and of n-grams.

    A text with words has the similarity 1 to itself; texts that share neither words nor n-grams have the similarity 0.
    Only inner products of the vectors have a meaning; single dimensions have none.
    """
    if len(documents) <= EXACT:
        parts = [word_features(documents), ngrams(documents)]
        return two_samples.features_of(np.mean([_inner_products(part.weights) for part in parts], axis=0))
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
    """Terms in many documents: (words, terms) occurrences, numbers of documents with each term, random projection."""

    by_word: csr_array
    holding: Floats
    projection: csr_array


@dataclass(frozen=True)
class _Counted:
    """Words and their n-grams in many documents, counted slice by slice to save memory; columns are sorted by word."""

    documents: Tokens
    columns: NDArray[np.int32]
    terms: tuple[_Terms, ...]

    @classmethod
    def of(cls, documents: Tokens) -> _Counted:
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
        """Sort words, and n-grams, by their first occurrence, in which order they are added."""
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
        """Yield the first index and the (documents, words) counts of each slice of `DOCUMENTS` documents."""
        for start in range(0, len(self.documents), DOCUMENTS):
            counts = self.documents.counts_of(start, start + DOCUMENTS, self.columns)
            yield start, counts.astype(np.float32)


def inverse_frequencies(holding: Floats, documents: int) -> Floats:
    """Return scikit-learn's inverse document frequencies of terms in `holding` of the documents."""
    frequencies: Floats = np.log((1 + documents) / (1 + holding)) + 1
    return frequencies


def embedding_features(embeddings: Sequence[bytes | None]) -> two_samples.Features:
    """Return (documents, dimensions) vectors of length 1, so that inner products are cosines.

    Embeddings are little-endian 32-bit numbers. Documents without an embedding, or with an embedding of length 0, have
    the similarity 1 to each other, and the similarity 0 to all other documents.

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

    Each term is hashed, with a salt, to a column and a sign. Because of the random signs, the expected inner products
    of documents stay the same. A term gets the same column and sign in every run, so that vectors of different runs are
    comparable.
    """
    from scipy.sparse import csr_array
    from sklearn.utils import murmurhash3_32

    hashed = np.array([murmurhash3_32(term, seed=salt, positive=True) for term in terms], dtype=np.int64)
    columns, signs = hashed // 2 % SKETCHED, (hashed % 2 * 2 - 1).astype(np.float32)
    return csr_array((signs, (np.arange(len(hashed)), columns)), shape=(len(hashed), SKETCHED))


def _unchanged(document: Sequence[str]) -> Sequence[str]:
    """Return the words, as `TfidfVectorizer` requires a function that does."""
    return document
