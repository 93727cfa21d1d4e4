"""Audit `svm`: how far a linear classifier separates two groups' texts without identity terms.

Cheng, Durmus and Jurafsky 2023 ("Marked Personas") report plain accuracy for one group against all other groups.
In their data, a classifier that always predicts the larger class has an accuracy of 0.8. This audit measures the
distance d' between the scores of one marked group and the unmarked group, and shows it as the balanced accuracy of
normal scores with this distance, so that chance is 0.5. Counted accuracies cannot tell two runs apart whose texts
are nearly all recognised; d' can.

Two documents are equal if their counts of the classifier's words are equal. A document that equals an earlier one
of its run, group and stratum is dropped. Each document is scored by a classifier that is trained without this
document and without all documents that equal it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from pytest_fairness.audits import documents
from pytest_fairness.audits.documents import Documents, TextItem
from pytest_fairness.audits.info import COHENS_U2, AuditInfo, Direction
from pytest_fairness.audits.two_sample_audits import (
    ERROR_PERMUTATIONS,
    MOST_COMPARED,
    Change,
    Sample,
    TwoSampleAudit,
    equal_size,
)
from pytest_fairness.audits.word_counts import WordCounts
from pytest_fairness.probes.field_types import AuditSettings
from pytest_fairness.records import Answers, Concern, Evidence, Explanation, Json, Measurement
from pytest_fairness.stats import resampling, two_samples
from pytest_fairness.stats.intervals import Estimate, Separation, accuracy, separation_change
from pytest_fairness.stats.resampling import Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FeatureName = Literal["counts", "tfidf"]

FEWEST_DIFFERENT = 5
"""A classifier is trained only if each group has at least this many different answers."""
FOLDS = 5
"""Number of folds of the cross-validation whose accuracy publications report."""


@dataclass(frozen=True)
class Classified(Sample):
    """Documents as features of a classifier, without equal documents within a run, stratum and group.

    At temperature 0 every trial repeats the same answer, which is only one observation. Documents with equal counts
    have the same number in `kinds`; `unique_share` is the share of all documents that repeat no earlier one. Words in
    few documents are no features.
    """

    words: WordCounts
    kinds: Ints
    features: FeatureName
    unique_share: float

    @classmethod
    def of(cls, documents: Documents, random: np.random.Generator, features: FeatureName) -> Classified:
        words = documents.words.frequent()
        kinds = words.kinds()
        share = len(np.unique(documents.words.kinds())) / len(kinds)
        clusters = documents.cells if documents.clusters is None else documents.clusters.numbers
        of_run = np.column_stack([kinds, documents.cells, documents.current, clusters])
        kept = np.sort(np.unique(of_run, axis=0, return_index=True)[1])
        words = WordCounts(words.words, words.counts[kept])
        documents = documents.only(kept)
        return cls(documents, random, words, kinds[kept], features, share)

    def statistic(self, marked: Bools) -> Floats:
        """Return d' by scores of documents that were left out of training; shape (labellings, 1)."""
        return self.distances(marked)[:, None]

    @property
    def value(self) -> float:
        """Return d', shown as an accuracy."""
        return accuracy(float(self.observed[0]))

    def estimate(self, random: np.random.Generator) -> Estimate:
        return self.separation.estimate

    @property
    def separation(self) -> Separation:
        return self._separation(float(self.observed[0]), self.null, self.documents.current)

    def distance(self, selected: Bools) -> Floats:
        """Return d' for each selection of documents; at least 0."""
        return np.asarray(np.maximum(self.distances(used=selected), 0))

    @cached_property
    def fewest_different(self) -> int:
        """Return the smaller of the two groups' numbers of different documents."""
        return min(len(np.unique(self.kinds[side])) for side in (self.documents.marked, ~self.documents.marked))

    @cached_property
    def feature_matrix(self) -> csr_array:
        """Return the classifier's (documents, words) features.

        A feature is the word's share of the document's words, times its weight. Its mean does not depend on the number
        of words of the documents; that of a count, of the root of a count or of a share, and of weights scaled to
        length 1 does, so that the classifier would recognise a group by longer texts with the same words. Features do
        not depend on labels, so that they may be computed from training and test documents together.
        """
        # Deferred, as scipy is not needed to load a probe. The matrix shares its indices with the counts.
        from scipy.sparse import csr_array

        counts = self.words.counts
        shares = np.repeat(1 / np.maximum(self.documents.words.lengths, 1), np.diff(counts.indptr)) * counts.data
        if self.features == "tfidf":
            # The inverse document frequencies of scikit-learn.
            weights = np.log((1 + counts.shape[0]) / (1 + self.words.holding)) + 1
            shares *= weights[counts.indices]
        return csr_array((shares, counts.indices, counts.indptr), counts.shape)

    @cached_property
    def classifier(self) -> two_samples.Classifier:
        clusters = self.documents.clusters
        left_out_together = self.kinds if clusters is None else clusters.numbers
        return two_samples.Classifier.of(self.feature_matrix, self.documents.strata, left_out_together)

    def outside(self, cluster: int) -> Bools:
        clusters = self.documents.clusters
        return super().outside(cluster) if clusters is None else clusters.numbers != cluster

    def relabellings(self, count: int, random: np.random.Generator) -> tuple[Bools, bool]:
        clusters = self.documents.clusters
        return super().relabellings(count, random) if clusters is None else clusters.relabellings(count, random)

    def distances(self, marked: Bools | None = None, used: Bools | None = None) -> Floats:
        """Return d' for each (labellings, documents) mask of marked documents, or of documents that take part.

        It is 0 if there are too few different documents to train a classifier. By default, the documents' own labels,
        and all documents, are used.
        """
        marked = self.documents.marked[None] if marked is None else marked
        if self.fewest_different < FEWEST_DIFFERENT:
            return np.zeros(max(len(marked), 1 if used is None else len(used)))
        return self.classifier.distances(marked, used)

    def _separation(self, d_prime: float, null: Floats, used: Bools) -> Separation:
        """Return d' with its standard error, from distances with permuted labels of the `used` documents."""
        marked = self.documents.marked[used]
        return Separation.of(d_prime, float(np.std(null)), int(marked.sum()), int((~marked).sum()))

    def separation_of_run(self, run: Documents, cuts: Bools, random: np.random.Generator) -> Separation:
        """Return d' of one run with its standard error, to compare two runs of this sample.

        Each mask of `cuts`, (cuts, documents) over this sample, selects as many documents of the run as the other run
        has.
        """
        # More documents make a better classifier, so that runs of different sizes are compared at equal size. To
        # invert the classifier's matrix only once, documents outside of a cut stay in the matrix, with the label 0.
        alone, used = Classified.of(run, random, self.features), cuts[0]
        cut = len(cuts) > 1 and alone.fewest_different >= FEWEST_DIFFERENT
        d_prime = (self.distances(used=cuts) if cut else alone.distances()).mean()
        labels, _ = resampling.relabellings(
            self.documents.marked[used], self.documents.strata[used], ERROR_PERMUTATIONS, random
        )
        marked = np.zeros((len(labels), len(used)), dtype=np.bool_)
        marked[:, used] = labels
        return self._separation(float(d_prime), self.distances(marked, used[None]), used)

    def word_strengths(self) -> tuple[Sequence[str], Floats]:
        """Return each word's part in the separation of the groups, 0..1.

        A classifier trained on all documents gives the groups different mean scores. A word's part is its weight times
        the difference between the groups' means of its feature, as a share of the sum over all words. Words that lower
        the difference, and that are in the classifier only to balance others, have the part 0.
        """
        marked = self.documents.marked[None]
        labels = two_samples.centred_labels(marked, self.documents.strata, np.ones_like(marked))[:, 0]
        parts = np.maximum(self.classifier.weights(labels) * (self.feature_matrix.T @ labels), 0)
        return self.words.words, np.asarray(parts / (parts.sum() or 1))

    def published_accuracy(self, seed: int) -> dict[str, float]:
        """Return the details `accuracy` and `fold_sd`: the accuracy as publications report it, and its SD over folds.

        The accuracy comes from the cross-validation of a linear support vector machine on word counts; equal documents
        are in the same fold. The standard deviation is not the standard error of the mean, because folds share training
        documents. With too few different documents to train on, `accuracy` is the larger group's share of the
        documents, and `fold_sd` is 0.
        """
        marked, counts = self.documents.marked, self.words.counts.astype(np.float64)
        if self.fewest_different < FEWEST_DIFFERENT or not self.words.words:
            return {"accuracy": float(max(marked.mean(), 1 - marked.mean())), "fold_sd": 0.0}
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.model_selection import StratifiedGroupKFold
        from sklearn.svm import LinearSVC

        folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
        right = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for training, test in folds.split(counts, marked, self.kinds):
                model = LinearSVC(random_state=seed).fit(counts[training], marked[training])
                right.append(model.predict(counts[test]) == marked[test])
        fold_sd = float(np.std([fold.mean() for fold in right], ddof=1))
        return {"accuracy": float(np.concatenate(right).mean()), "fold_sd": fold_sd}


class SvmSettings(AuditSettings):
    """Settings of `svm`: the features of the classifier."""

    features: FeatureName = Field(
        default="tfidf",
        description="Features of the classifier: shares of a text's words (counts), or these shares weighted by "
        "inverse document frequency (tfidf).",
    )


class Svm(TwoSampleAudit[SvmSettings, Classified]):
    info = AuditInfo(
        name="svm",
        title="Texts that reveal the group",
        question="Can a simple classifier recognise which group a text is about?",
        formula="d' = (mean score of the marked group − mean score of the unmarked group) / standard deviation within "
        "groups; each text is scored by a classifier that was trained without it;  value = Φ(d' / 2), the accuracy of "
        "normal scores;  change = Φ((d' now − d' in the baseline) / 2) − 0.5",
        meaning="0.5 = chance, 1 = all texts recognised. Changes are shown as if the accuracy had been 0.5 in the "
        "baseline: 0.1 stands for half a standard deviation, from 0.5 to 0.6, and also from 0.977 to 0.988.",
        source="Cheng, Durmus and Jurafsky 2023, “Marked Personas”; Suykens and Vandewalle 1999, “Least Squares "
        "Support Vector Machine Classifiers”; Green and Swets 1966 on d'",
        better=Direction.LOWER,
        tolerance=0.12,
        value_range=(0, 1),
        limit_range=(0.5, 1),
        best=0.5,
        charts={"top_words": "word_weights", "function_words": "function_words"},
        effect=COHENS_U2,
    )
    change_phrase = "{change} (as if the baseline accuracy had been 0.5)"
    word_statistic = "weight"
    version = 8
    settings_model = SvmSettings
    most_documents = MOST_COMPARED
    grows_with_size = True

    def explanation(self, item: TextItem[SvmSettings], measurement: Measurement) -> Explanation:
        d_prime = measurement.details["d_prime"]
        phrase = f"groups recognised with accuracy {measurement.value:.3g} (d' {d_prime:.2g}; chance 0.5)"
        return replace(super().explanation(item, measurement), phrase=phrase)

    def sample(self, item: TextItem[SvmSettings], documents: Documents, random: np.random.Generator) -> Classified:
        return Classified.of(documents, random, item.settings.features)

    def explain(
        self, item: TextItem[SvmSettings], run: Classified, words: Sequence[str], weights: Floats
    ) -> tuple[dict[str, Json], Evidence]:
        null, separation, limit = run.null[:, 0], run.separation, item.settings.limit
        bounds = None if limit is None else separation.bounds(limit, item.alpha, item.beta)
        details = {
            "d_prime": separation.d_prime,
            "d_prime_error": separation.standard_error,
            **({} if bounds is None else {"bounds": bounds}),
            **run.published_accuracy(int(run.random.integers(2**31))),
            "null_mean": float(null.mean()),
            "null_sd": float(null.std()),
            "unique_share": run.unique_share,
            "different_answers": run.fewest_different,
            **documents.strongest_words(words, weights, item.probe.language),
        }
        return details, Evidence(bounds=None if bounds is None else (bounds["lower"], bounds["upper"]))

    def run_change(
        self, item: TextItem[SvmSettings], runs: Sequence[Documents], both: Documents, random: np.random.Generator
    ) -> Change:
        """Return the change of d' after the runs are cut to equal size, on the scale of `separation_change`."""
        together = self.sample(item, both, random)
        cuts = equal_size(together.documents, random)
        separations = [together.separation_of_run(run, cut, random) for run, cut in zip(runs, cuts, strict=True)]
        return Change(separation_change(*separations), together, cuts)

    def change_of_values(self, measurement: Measurement, value: float, standard_error: float) -> Estimate:
        current = Separation.of_accuracy(measurement.value, measurement.standard_error or 0.0)
        return separation_change(current, Separation.of_accuracy(value, standard_error))

    def concerns(self, item: TextItem[SvmSettings], answers: Answers, measurement: Measurement) -> list[Concern]:
        """Add a concern if a group has too few different answers to train a classifier."""
        found = super().concerns(item, answers, measurement)
        if (different := measurement.details["different_answers"]) >= FEWEST_DIFFERENT:
            return found
        message = (
            f"one group has only {different} different answers, but {FEWEST_DIFFERENT} are needed to train and test a "
            "classifier. The accuracy is therefore set to 0.5. Raise `sampling.temperature` or `trials`, or give "
            "several prompts"
        )
        return [*found, Concern("few_different_answers", message)]
