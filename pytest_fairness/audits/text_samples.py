"""Documents of two groups with a statistic of their distance: word counts, vectors, linear classifier."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Literal, Self, TypeVar

import numpy as np

from pytest_fairness.audits import features
from pytest_fairness.audits.documents import MOST_DOCUMENTS, Documents, Groups
from pytest_fairness.audits.features import inverse_frequencies
from pytest_fairness.backends import map_chunks
from pytest_fairness.errors import NotMeasurable, joined
from pytest_fairness.records import Concern, Measurement
from pytest_fairness.stats import excess_divergence, resampling, two_samples, words
from pytest_fairness.stats.excess_divergence import Words
from pytest_fairness.stats.intervals import Estimate, Separation, accuracy
from pytest_fairness.stats.resampling import Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array


# Documents of two groups with a statistic of their distance, and the statistic's null distribution.

ERROR_PERMUTATIONS = 499
"""Number of permutations from which the null distribution's standard deviation is computed; a p-value needs more."""


@dataclass(frozen=True)
class Sample(ABC):
    """Documents of one or of two runs, with a statistic of the distance between their two groups.

    A subclass may leave out repeated documents.
    """

    documents: Documents

    @abstractmethod
    def statistic(self, marked: Bools) -> Floats:
        """Return the (labellings, parts) statistic for each labelling; parts may be strata."""

    @abstractmethod
    def test_statistic(self, statistic: Floats) -> Floats:
        """Return the number that is tested, from the parts of `statistic` (its last axis); the other axes stay."""

    @abstractmethod
    def value_of(self, run: Relabelled[Self]) -> float:
        """Return the audit's value of this run."""

    @abstractmethod
    def estimate(self, run: Relabelled[Self], random: np.random.Generator) -> Estimate:
        """Return the audit's value of this run with its standard error."""

    @abstractmethod
    def distance(self, selected: Bools) -> Floats:
        """Return the distance between the groups for each row of `selected`, a (selections, documents) mask."""

    def distance_change(self, current: Bools, baseline: Bools) -> Floats:
        """Return the distance in the current run minus that in the baseline, for (selections, units) masks of runs."""
        change: Floats = self.distance(current) - self.distance(baseline)
        return change

    @abstractmethod
    def word_strengths(self) -> tuple[Sequence[str], Floats]:
        """Return the words, and how much each distinguishes the groups, at least 0; for the side, see `Usage.sides`."""


SampleT = TypeVar("SampleT", bound=Sample)


@dataclass(frozen=True)
class Relabelled(Generic[SampleT]):
    """The statistic of one run, with the observed labels and, from its first use, with permuted labels."""

    sample: SampleT
    permutations: int
    random: np.random.Generator

    @cached_property
    def observed(self) -> Floats:
        """Return the statistic with the observed labels; shape (parts,)."""
        parts: Floats = self.sample.statistic(self.sample.documents.marked[None])[0]
        return parts

    @property
    def null(self) -> Floats:
        """Return the statistic with labels permuted within strata; shape (labellings, parts)."""
        return self._null[0]

    @property
    def excess(self) -> Floats:
        """Return the statistic minus its mean with permuted labels; shape (parts,)."""
        excess: Floats = self.observed - self.null.mean(axis=0)
        return excess

    @property
    def null_sd(self) -> float:
        return float(self.sample.test_statistic(self.null).std())

    @property
    def value(self) -> float:
        return self.sample.value_of(self)

    @property
    def p_value(self) -> float:
        """Return the p-value of the null hypothesis that the groups do not differ."""
        null, exact = self._null
        observed = float(self.sample.test_statistic(self.observed))
        return resampling.p_value(self.sample.test_statistic(null), observed, exact=exact)

    @cached_property
    def _null(self) -> tuple[Floats, bool]:
        """Return the null distribution, and whether it holds all possible relabellings."""
        documents = self.sample.documents
        labels, exact = resampling.relabellings(documents.marked, documents.strata, self.permutations, self.random)
        return self.sample.statistic(labels), exact


# Documents as word counts; the distance between groups is the excess Jensen-Shannon divergence.

DOCUMENTS_OF_A_STRATUM = 12
"""A stratum is also measured by itself if each group has at least this number of documents in it; in smaller strata,
most differences are not detected."""
DRAWS = 499
"""Number of random samples of documents that `excess_at` averages."""


@dataclass(frozen=True)
class WordCounts(Sample):
    """Sparse (documents, words) counts, also arranged as `words` for divergences of all documents and of large strata.

    A large stratum has at least `DOCUMENTS_OF_A_STRATUM` documents of each group.
    """

    vocabulary: Sequence[str]
    counts: csr_array
    words: Words

    @classmethod
    def of(cls, documents: Documents, measured: Bools | None = None) -> WordCounts:
        """Count the words; a stratum is large by its `measured` documents, or by all."""
        vocabulary, counts = documents.words.counts()
        measured = np.ones(len(documents.marked), dtype=np.bool_) if measured is None else measured
        sides = measured & documents.marked, measured & ~documents.marked
        return cls(
            documents,
            vocabulary,
            counts,
            Words.of(counts, documents.strata, *sides, DOCUMENTS_OF_A_STRATUM, map_chunks),
        )

    def statistic(self, marked: Bools) -> Floats:
        return self.words.divergences(marked, ~marked)

    def test_statistic(self, statistic: Floats) -> Floats:
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
        return self.words.excess_changes(self.documents.marked, current, baseline)

    def standard_error(self, used: Bools, null_sd: float, random: np.random.Generator) -> float:
        return excess_divergence.excess_standard_error(
            self.words, *self._sides(used), self.documents.cells, null_sd, random
        )

    def word_strengths(self) -> tuple[Sequence[str], Floats]:
        """Return each word's contribution to the divergence in bits."""
        marked = self.documents.marked
        return self.vocabulary, words.divergence_contributions(
            *(np.asarray(self.counts[side].sum(axis=0), dtype=np.float64) for side in (marked, ~marked))
        )

    def excess_at(self, size: int, random: np.random.Generator) -> float | None:
        """Return the mean excess of random samples with `size` documents of each group; `None` if a group has fewer."""
        marked = self.documents.marked
        words = Words.together(self.counts, marked, ~marked)
        return excess_divergence.excess_at_size(words, self.documents.strata, marked, size, DRAWS, random)

    @property
    def large_strata(self) -> list[str]:
        return [self.documents.stratum_names[stratum] for stratum in self.words.strata]

    @property
    def tokens(self) -> tuple[int, int]:
        """Return the number of words of the marked and of the unmarked group's documents."""
        tokens, marked = self.counts.sum(axis=1), self.documents.marked
        return int(tokens[marked].sum()), int(tokens[~marked].sum())

    def _sides(self, used: Bools) -> tuple[Bools, Bools]:
        return used & self.documents.marked, used & ~self.documents.marked


# Documents as feature vectors; the distance between groups is the squared maximum mean discrepancy.


@dataclass(frozen=True)
class Vectors(Sample):
    """Documents with feature vectors (embeddings or TF-IDF) whose inner products are the similarities of texts."""

    embedded: bool

    @cached_property
    def vectors(self) -> two_samples.Features:
        """Return (documents, dimensions) vectors; raise `NotMeasurable` if a document with words has no embedding."""
        if not self.embedded:
            return features.text_features(self.documents.words)
        pairs = zip(self.documents.embeddings, self.documents.words, strict=True)
        if missing := sum(vector is None and bool(words) for vector, words in pairs):
            raise NotMeasurable(
                f"{missing} answers have no embedding, so that their texts cannot be compared. Check that the "
                "embedding model works"
            )
        return features.embedding_features(self.documents.embeddings)

    def statistic(self, marked: Bools) -> Floats:
        """Return the squared discrepancy for each labelling; shape (labellings, 1)."""
        return two_samples.mmd_estimates(self.vectors, self.documents.strata, marked, ~marked)[:, None]

    def test_statistic(self, statistic: Floats) -> Floats:
        """Return the squared discrepancy, rounded so that equal texts give exactly 0."""
        rounded: Floats = np.round(statistic[..., 0], 12)
        return rounded

    def value_of(self, run: Relabelled[Vectors]) -> float:
        return float(self.test_statistic(run.observed))

    def estimate(self, run: Relabelled[Vectors], random: np.random.Generator) -> Estimate:
        documents = self.documents
        error = two_samples.mmd_standard_error(
            self.vectors, documents.strata, documents.marked, ~documents.marked, ERROR_PERMUTATIONS, random
        )
        return Estimate.normal(run.value, error)

    def distance(self, selected: Bools) -> Floats:
        documents = self.documents
        return two_samples.mmd_estimates(
            self.vectors, documents.strata, selected & documents.marked, selected & ~documents.marked
        )

    def word_strengths(self) -> tuple[Sequence[str], Floats]:
        """Return the difference between the groups' mean TF-IDF weights of each word."""
        marked, strata = self.documents.marked, self.documents.strata
        tfidf = features.word_features(self.documents.words)
        return tfidf.terms, two_samples.mmd_contributions(tfidf.weights, strata, marked, ~marked)

    def within_strata(self) -> dict[str, float]:
        """Return the squared discrepancy of each stratum that holds enough documents, by name."""
        documents = self.documents
        discrepancies = two_samples.mmd_within_strata(
            self.vectors, documents.strata, documents.marked, ~documents.marked
        )
        return {self.documents.stratum_names[stratum]: value for stratum, value in discrepancies.items()}

    def variance(self) -> float:
        """Return the variance around the mean vector of each cell (group within stratum)."""
        return two_samples.vector_variance(self.vectors, self.documents.cells)


# Documents as features of a linear classifier, and the distance d' by which its scores separate two groups.
#
# Two documents are equal if their counts of the classifier's words are equal. A document that equals an earlier one
# of its run, group and stratum is dropped. Each document is scored by a classifier that is trained without this
# document and without all documents that equal it.

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

    At temperature 0 every trial repeats the same answer, which is only one observation. Documents with equal counts
    have the same number in `kinds`; `unique_share` is the share of all documents that repeat no earlier one.
    """

    vocabulary: Sequence[str]
    counts: csr_array
    kinds: Ints
    features: FeatureName
    unique_share: float

    @classmethod
    def of(cls, documents: Documents, features: FeatureName) -> Corpus:
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
        distances: Floats = statistic[..., 0]
        return distances

    def value_of(self, run: Relabelled[Corpus]) -> float:
        """Return d', shown as an accuracy."""
        return accuracy(float(run.observed[0]))

    def estimate(self, run: Relabelled[Corpus], random: np.random.Generator) -> Estimate:
        return self.separation_of(run).estimate

    def separation_of(self, run: Relabelled[Corpus]) -> Separation:
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
        """Return the classifier's (documents, words) features.

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
    def classifier(self) -> two_samples.Classifier:
        return two_samples.Classifier.of(self._feature_matrix, self.documents.strata, self.kinds)

    def distances(self, marked: Bools | None = None, used: Bools | None = None) -> Floats:
        """Return d' for each (labellings, documents) mask of marked documents, or of documents that take part.

        It is 0 if there are too few different documents to train a classifier. By default, the documents' own labels,
        and all documents, are used.
        """
        marked = self.documents.marked[None] if marked is None else marked
        if self.fewest_different < FEWEST_DIFFERENT:
            return np.zeros(max(len(marked), 1 if used is None else len(used)))
        return two_samples.classifier_distances(self.classifier, marked, used)

    def _separation(self, d_prime: float, null: Floats, used: Bools | None = None) -> Separation:
        """Return d' with its standard error, from distances with permuted labels of the `used` or of all documents."""
        marked = self.documents.marked if used is None else self.documents.marked[used]
        return Separation.of(d_prime, float(np.std(null)), int(marked.sum()), int((~marked).sum()))

    def separation_of_run(self, run: Documents, cuts: Bools, random: np.random.Generator) -> Separation:
        """Return d' of one run with its standard error, to compare two runs of this corpus.

        Each mask of `cuts`, (cuts, documents) over this corpus, selects as many documents of the run as the other run
        has.
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
        labels, _ = resampling.relabellings(self.documents.marked[used], self.documents.strata[used], count, random)
        marked = np.zeros((len(labels), len(used)), dtype=np.bool_)
        marked[:, used] = labels
        return self.distances(marked, used[None])

    def word_strengths(self) -> tuple[Sequence[str], Floats]:
        """Return each word's part in the separation of the groups, 0..1.

        A classifier trained on all documents gives the groups different mean scores. A word's part is its weight times
        the difference between the groups' means of its feature, as a share of the sum over all words. Words that lower
        the difference, and that are in the classifier only to balance others, have the part 0.
        """
        labels = two_samples.centred_labels(
            self.documents.marked[None], self.documents.strata, np.ones((1, len(self.documents.marked)), dtype=np.bool_)
        )[:, 0]
        parts = np.maximum(self.classifier.weights(labels) * (self._feature_matrix.T @ labels), 0)
        return self.vocabulary, np.asarray(parts / (parts.sum() or 1))


def _kinds(counts: csr_array) -> Ints:
    """Number the rows of counts; equal rows have the same number."""
    counts.sort_indices()
    rows = zip(counts.indptr, counts.indptr[1:], strict=False)
    known: dict[int, int] = {}
    kinds = [
        known.setdefault(hash((counts.indices[start:end].tobytes(), counts.data[start:end].tobytes())), len(known))
        for start, end in rows
    ]
    return np.array(kinds, dtype=np.int64)


# Accuracy of a linear support vector machine in cross-validation, which publications report.

FOLDS = 5
"""Number of folds of the cross-validation."""


def published_accuracy(corpus: Corpus, seed: int) -> dict[str, float]:
    """Return the details `accuracy` and `fold_sd`: the accuracy as publications report it, and its SD over folds.

    The accuracy comes from the cross-validation of a linear support vector machine on word counts; equal documents are
    in the same fold. The standard deviation is not the standard error of the mean, because folds share training
    documents. With too few different documents to train on, `accuracy` is the larger group's share of the documents,
    and `fold_sd` is 0.
    """
    larger = float(max(corpus.documents.marked.mean(), 1 - corpus.documents.marked.mean()))
    if corpus.fewest_different < FEWEST_DIFFERENT or not corpus.vocabulary:
        return {"accuracy": larger, "fold_sd": 0.0}
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import StratifiedGroupKFold
    from sklearn.svm import LinearSVC

    counts, marked, kinds = corpus.counts, corpus.documents.marked, corpus.kinds
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    right = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for training, test in folds.split(counts, marked, kinds):
            model = LinearSVC(random_state=seed).fit(counts[training], marked[training])
            right.append(model.predict(counts[test]) == marked[test])
    fold_sd = float(np.std([fold.mean() for fold in right], ddof=1))
    return {"accuracy": float(np.concatenate(right).mean()), "fold_sd": fold_sd}


# Reasons to doubt a measurement, for audits of texts; see `Audit.concerns`.

ONE_SIDED_SHARE = 0.10
"""Largest share of answers that may be left out because their stratum holds only one group."""
SHOWN_STRATA = 3


def repeated_or_one_sided(groups: Groups) -> list[Concern]:
    one_sided = groups.one_sided()
    lost, usable = sum(one_sided.values()), sum(groups.usable.values())
    if not lost:
        return groups.repetition
    names = joined([f"{name} ({count})" for name, count in sorted(one_sided.items())], SHOWN_STRATA)
    return [
        *groups.repetition,
        Concern(
            "one_sided_strata",
            f"{lost} of {usable} answers were left out, because their strata hold only one group: {names}. "
            "Request both groups in each stratum",
            withholds="pass" if lost > ONE_SIDED_SHARE * usable else "nothing",
        ),
    ]


def sampled_texts(groups: Groups) -> list[Concern]:
    """Return a note if only a sample of a group's many texts is compared."""
    larger = [f"{count:,} for {name}" for name, count in groups.usable.items() if count > MOST_DOCUMENTS]
    if not larger:
        return []
    message = (
        f"a random sample of the texts is compared, {MOST_DOCUMENTS:,} of a group ({' and '.join(larger)} are usable), "
        "with the shares of the strata. Standard errors and tests are those of the sample, so that more answers do not "
        "make them more precise"
    )
    return [Concern("sampled_texts", message, withholds="nothing")]


def few_different_answers(measurement: Measurement) -> list[Concern]:
    """Return a concern if a group has too few different answers (a detail of the measurement) to train a classifier."""
    if (different := measurement.details["different_answers"]) >= FEWEST_DIFFERENT:
        return []
    message = (
        f"one group has only {different} different answers, but {FEWEST_DIFFERENT} are needed to train and test a "
        "classifier. The accuracy is therefore set to 0.5. Raise `sampling.temperature` or `trials`, or give several "
        "prompts"
    )
    return [Concern("few_different_answers", message)]


def terms_never_occur(lexicon: str, measurement: Measurement) -> list[Concern]:
    if measurement.details["occurring_terms"]:
        return []
    listed = measurement.details["terms_in_lexicon"]
    message = (
        f"none of the {listed} terms of the lexicon {lexicon} occurs in any answer, so that the groups cannot be "
        f"compared. Check the spelling in `lexicons.{lexicon}`, and the language of the answers; lead* stands for all "
        "words that begin with lead"
    )
    return [Concern("terms_never_occur", message, withholds="verdict")]
