"""Audits `jsd` and `mmd`: distance between the texts of two groups; base class of these audits and of `svm`.

One run is a sample: the documents of two groups with a statistic of the distance between the groups. The test of one
run permutes group labels within strata; the test of a change exchanges documents between the runs within cells (group
within stratum). A statistic says what it computes from the documents for many labellings at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from pydantic import Field

from pytest_fairness.audits import documents
from pytest_fairness.audits.base import Preparation, SettingsT, WordRows
from pytest_fairness.audits.documents import (
    MINIMUM_DOCUMENTS,
    MOST_DOCUMENTS,
    SIDES,
    Documents,
    Groups,
    TextItem,
    Usage,
    as_written,
    groups_of_runs,
    language_details,
    of_runs,
)
from pytest_fairness.audits.info import BITS, ETA_SQUARED, AuditInfo, Direction
from pytest_fairness.audits.texts import TextAudit, signed_weights
from pytest_fairness.audits.word_counts import NEAR_COPIES, WordCounts
from pytest_fairness.backends import map_chunks
from pytest_fairness.errors import FairnessError, NotMeasurable
from pytest_fairness.probes.field_types import EMBEDDER, AuditSettings
from pytest_fairness.records import Answers, Comparison, Evidence, Json, Measurement
from pytest_fairness.stats import excess_divergence, resampling, two_samples
from pytest_fairness.stats.clusters import Clusters, combined_error
from pytest_fairness.stats.excess_divergence import Words, mean_of_cuts
from pytest_fairness.stats.intervals import Estimate
from pytest_fairness.stats.resampling import Bools, Floats, Ints, RunCells
from pytest_fairness.stats.words import divergence_contributions

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ERROR_PERMUTATIONS = 499
"""Number of permutations from which the null distribution's standard deviation is computed; a p-value needs more."""
SUBSAMPLES = 20
"""Number of random cuts to equal size that are averaged if two runs have different numbers of documents."""
MOST_NAMED = 100
"""Of more names, none is looked for that carries a difference."""
MOST_COMPARED = 1024
"""Largest number of texts of each group of a run that `mmd` and `svm` compare: their time and memory grow with the
square of the number, or faster."""


@dataclass(frozen=True)
class Sample(ABC):
    """Documents of one or of two runs, with a statistic of the distance between their two groups.

    A subclass may leave out repeated documents. Its class attribute `permutations` is the number of relabellings in the
    test of one run; `random` draws them when they are first needed.
    """

    documents: Documents
    random: np.random.Generator

    permutations: ClassVar[int] = 1999

    @abstractmethod
    def statistic(self, marked: Bools) -> Floats:
        """Return the (labellings, parts) statistic for each labelling; parts may be strata."""

    def tested(self, statistic: Floats) -> Floats:
        """Return the number that is tested, from the parts of `statistic` (its last axis); the other axes stay."""
        first: Floats = statistic[..., 0]
        return first

    @property
    @abstractmethod
    def value(self) -> float:
        """Return the audit's value of this run."""

    @abstractmethod
    def estimate(self, random: np.random.Generator) -> Estimate:
        """Return the audit's value of this run with its standard error."""

    @abstractmethod
    def distance(self, selected: Bools) -> Floats:
        """Return the distance between the groups for each row of `selected`, a (selections, documents) mask."""

    def distance_change(self, current: Bools, baseline: Bools) -> Floats:
        """Return the distance in the current run minus that in the baseline, for (selections, units) masks of runs."""
        change: Floats = self.distance(current) - self.distance(baseline)
        return change

    def values_without(self, clusters: Clusters) -> Floats:
        """Return the distance of all documents, and then the distance without each of the clusters."""
        kept = np.vstack([np.ones(len(self.labels), np.bool_), *map(self.outside, range(len(clusters.names)))])
        # One by one, as the sizes of the groups differ.
        return np.concatenate([self.distance(row[None]) for row in kept])

    def outside(self, cluster: int) -> Bools:
        """Return which of what is permuted lies outside of a cluster; by default, clusters are permuted."""
        outside: Bools = np.arange(len(self.labels)) != cluster
        return outside

    @abstractmethod
    def word_strengths(self) -> tuple[Sequence[str], Floats]:
        """Return the words, and how much each distinguishes the groups, at least 0; for the side, see `Usage.sides`."""

    @cached_property
    def observed(self) -> Floats:
        """Return the statistic with the observed labels; shape (parts,)."""
        parts: Floats = self.statistic(self.labels[None])[0]
        return parts

    @property
    def labels(self) -> Bools:
        """Return the labels that are permuted: which documents are marked."""
        return self.documents.marked

    @cached_property
    def relabelled(self) -> tuple[Floats, bool]:
        """Return the statistic with labels permuted within strata, (labellings, parts), and whether these are all."""
        labels, exact = self.relabellings(self.permutations, self.random)
        return self.statistic(labels), exact

    def relabellings(self, count: int, random: np.random.Generator) -> tuple[Bools, bool]:
        """Return (labellings, documents) labels permuted within strata, and whether these are all."""
        return resampling.relabellings(self.documents.marked, self.documents.strata, count, random)

    @property
    def null(self) -> Floats:
        return self.relabelled[0]

    @property
    def p_value(self) -> float:
        """Return the p-value of the null hypothesis that the groups do not differ."""
        null, exact = self.relabelled
        return resampling.p_value(self.tested(null), float(self.tested(self.observed)), exact=exact)


SampleT = TypeVar("SampleT", bound=Sample)


class Change(NamedTuple):
    """The change between two runs, the documents of both runs together, and masks of the two runs for its test.

    The masks are (cuts, documents): the current run's documents and the baseline's, cut to equal size.
    """

    estimate: Estimate
    both: Sample
    cuts: tuple[Bools, Bools]


class TwoSampleAudit(TextAudit[SettingsT], Generic[SettingsT, SampleT]):
    """Base class of audits whose value is one number for the distance between two groups' texts.

    Class attributes:
        swap_batches: number of permutations in each batch of the test of a change; the batches are computed one after
            the other, and smaller batches need less memory. Other numbers give other random draws.
        word_statistic: name of the words' weights in the exported table of words; see `Sample.word_strengths`.
    """

    swap_batches: ClassVar[Sequence[int]] = (1999,)
    word_statistic: ClassVar[str]
    most_documents: ClassVar[int] = MOST_DOCUMENTS

    @abstractmethod
    def sample(self, item: TextItem[SettingsT], documents: Documents, random: np.random.Generator) -> SampleT:
        """Return the documents (of one run or of two runs) as a sample, with the audit's statistic."""

    @abstractmethod
    def explain(
        self, item: TextItem[SettingsT], run: SampleT, words: Sequence[str], weights: Floats
    ) -> tuple[Mapping[str, Json], Evidence]:
        """Return the details of a measurement of the run, and what decisions and the effect size need.

        The weight of a word has the size of `Sample.word_strengths`, and is below 0 if the unmarked group uses the word
        more (see `Usage.sides`).
        """

    @abstractmethod
    def run_change(
        self, item: TextItem[SettingsT], runs: Sequence[Documents], both: Documents, random: np.random.Generator
    ) -> Change:
        """Return the change from the baseline (the second run) with its standard error, and the input of its test."""

    def run(self, item: TextItem[SettingsT], documents: Documents) -> SampleT:
        """Return the sample of one run; its labels are always permuted in the same way."""
        return self.sample(item, documents, resampling.generator(f"{item.seed}/measure"))

    def documents(self, groups: Groups) -> Documents:
        return Documents.of(groups, self.most_documents)

    def measure(self, item: TextItem[SettingsT], answers: Answers) -> Measurement:
        """Return the value with its standard error and permutation test."""
        groups = Groups.of(item, answers)
        documents = self.documents(groups)
        # Of several kinds of units, such as names and prompts, the test must hold for each.
        runs = [self.run(item, each) for each in documents.by_sample()]
        estimates = [run.estimate(resampling.generator(f"{item.seed}/error")) for run in runs]
        run, estimate = max(zip(runs, estimates, strict=True), key=lambda each: each[0].p_value)
        if len(runs) > 1:
            alone = self.run(item, documents).estimate(resampling.generator(f"{item.seed}/error"))
            error = combined_error([each.standard_error for each in estimates], alone.standard_error)
            estimate = Estimate.of(estimate.value, error)
        degrees = min((clusters.degrees_of_freedom for clusters in documents.samples.values()), default=None)
        if degrees is not None:
            estimate = Estimate.of(estimate.value, estimate.standard_error, degrees)
            low, high = np.clip(estimate.interval, *self.info.value_range).tolist()
            estimate = replace(estimate, interval=(low, high))
        words, strengths = run.word_strengths()
        weights = Usage.of(documents.words, documents.marked, words).signed(strengths)
        details, evidence = self.explain(item, run, words, weights)
        return Measurement(
            value=estimate.value,
            interval=estimate.interval,
            standard_error=estimate.standard_error,
            degrees_of_freedom=estimate.degrees_of_freedom,
            p_value=run.p_value,
            n=groups.usable,
            missing=groups.missing,
            details={**details, **language_details(item.probe)},
            evidence=evidence,
            samples=documents.sample_sizes(
                {
                    unit: run.values_without(clusters)
                    for run, (unit, clusters) in zip(runs, documents.samples.items(), strict=False)
                    if unit != NEAR_COPIES and len(clusters.names) <= MOST_NAMED
                }
            ),
        )

    def value(self, item: TextItem[SettingsT], answers: Answers) -> float:
        runs = [self.run(item, each) for each in self.documents(Groups.of(item, answers)).by_sample()]
        return (runs[0] if len(runs) == 1 else max(runs, key=lambda run: run.p_value)).value

    def compare(self, item: TextItem[SettingsT], current: Answers, baseline: Answers) -> Comparison:
        """Return the change with its standard error, tested by permutation of run labels.

        Raises:
            BaselineStale: the runs have too few strata in common.
        """
        runs = of_runs(*(self.documents(groups) for groups in groups_of_runs(item, current, baseline)))
        random = resampling.generator(f"{item.seed}/compare")
        estimate, both, cuts = self.run_change(item, runs, Documents.joined(*runs), random)
        cells = RunCells.of(both.documents.current, both.documents.cells)
        null = np.concatenate([both.distance_change(*cells.swaps(count, random)) for count in self.swap_batches])
        return Comparison(
            value=estimate.value,
            interval=estimate.interval,
            standard_error=estimate.standard_error,
            degrees_of_freedom=estimate.degrees_of_freedom,
            p_value=resampling.p_value(null, float(both.distance_change(*cuts).mean()), exact=False),
        )

    def word_rows(self, item: TextItem[SettingsT], answers: Answers, details: Mapping[str, Json]) -> WordRows:
        documents = self.documents(Groups.of(item, answers))
        words, strengths = self.run(item, documents).word_strengths()
        rows = Usage.of(documents.words, documents.marked, words).rows(self.word_statistic, strengths, documents.names)
        written: WordRows = as_written(rows, item.probe, self.counted_answers(item, answers))
        return written


def equal_size(both: Documents, random: np.random.Generator) -> tuple[Bools, Bools]:
    """Return (cuts, documents) masks of the current run and the baseline, cut at random to equal size in each cell."""
    return RunCells.of(both.current, both.cells).cuts(SUBSAMPLES, random)


# Audit `jsd`: Jensen-Shannon divergence between two groups' vocabularies, minus the divergence expected by chance.
#
# The divergence of two finite samples is above 0 even if both come from the same distribution (Gerlach, Font-Clos
# and Altmann 2016). The mean divergence over permuted labels is therefore subtracted. The remaining excess is 0 on
# average if the groups do not differ, for any sample size.

DOCUMENTS_OF_A_STRATUM = 12
"""A stratum is also measured by itself if each group has at least this number of documents in it; in smaller strata,
most differences are not detected."""
DRAWS = 499
"""Number of random samples of documents of which the detail `excess_at_8` is the mean."""
SHOWN_WORDS = 20
"""Number of words in the detail `contributions`."""
MOST_BITS = 0.6226
"""Largest divergence in bits, by share of texts, that texts without a common word add, if they are at most half."""


@dataclass(frozen=True)
class Divergence(Sample):
    """Documents with their excess Jensen-Shannon divergence, of all documents and of large strata.

    A large stratum has at least `DOCUMENTS_OF_A_STRATUM` documents of each group.
    """

    words: Words
    permutations = 999

    @classmethod
    def of(cls, documents: Documents, random: np.random.Generator, measured: Bools | None = None) -> Divergence:
        """Arrange the counts; a stratum is large by its `measured` documents, or by all."""
        documents = documents.merged()
        measured = np.ones(len(documents.marked), dtype=np.bool_) if measured is None else measured
        sides = measured & documents.marked, measured & ~documents.marked
        words = Words.of(documents.words.counts, documents.strata, *sides, DOCUMENTS_OF_A_STRATUM, map_chunks)
        return cls(documents, random, words)

    def statistic(self, marked: Bools) -> Floats:
        return self.words.divergences(marked, ~marked)

    def tested(self, statistic: Floats) -> Floats:
        weighted: Floats = statistic @ self.words.weights
        return weighted

    @property
    def excess(self) -> Floats:
        """Return the divergence minus its mean with permuted labels, of all documents and of large strata, in bits."""
        excess: Floats = self.observed - self.null.mean(axis=0)
        return excess

    @property
    def value(self) -> float:
        return float(self.words.weights @ self.excess)

    @property
    def null_sd(self) -> float:
        return float(self.tested(self.null).std())

    def estimate(self, random: np.random.Generator) -> Estimate:
        """Return the excess with its jackknife standard error."""
        return Estimate.of(self.value, self.standard_error(self.documents.current, self.null_sd, random))

    def distance(self, selected: Bools) -> Floats:
        """Return the excess divergence for each selection; the divergence expected by chance is approximated."""
        marked = self.documents.marked
        return self.words.excesses(selected & marked, selected & ~marked)

    def distance_change(self, current: Bools, baseline: Bools) -> Floats:
        return self.words.excess_changes(self.documents.marked, current, baseline)

    def standard_error(self, used: Bools, null_sd: float, random: np.random.Generator) -> float:
        sides = used & self.documents.marked, used & ~self.documents.marked
        return excess_divergence.excess_standard_error(self.words, *sides, self.documents.cells, null_sd, random)

    def word_strengths(self) -> tuple[Sequence[str], Floats]:
        """Return each word's contribution to the divergence in bits."""
        words, counts = self.documents.words
        sides = (counts[side].sum(axis=0) for side in (self.documents.marked, ~self.documents.marked))
        return words, divergence_contributions(*(np.asarray(side, dtype=np.float64) for side in sides))


class Jsd(TwoSampleAudit[AuditSettings, Divergence]):
    info = AuditInfo(
        name="jsd",
        title="Different vocabulary",
        question="How different are the vocabularies of the two groups?",
        formula="JSD = H((P + Q)/2) − (H(P) + H(Q))/2, with the entropy H of the word distributions P and Q of the "
        "groups;  value = JSD − mean JSD with permuted labels",
        meaning="Bits in excess of chance: 0 = the groups differ no more than random halves of one group. Opposite "
        "differences in two large strata do not cancel. The value grows with the number of answers.",
        source="Lin 1991; Gerlach, Font-Clos and Altmann 2016 on the bias of finite samples",
        better=Direction.LOWER,
        unit="bits",
        tolerance=0.02,
        value_range=(-1, 1),
        limit_range=(0, 1),
        charts={"contributions": "word_contributions"},
        effect=BITS,
    )
    phrase = "{value:.3g} bits over chance"
    word_statistic = "bits"
    version = 5
    grows_with_size = True
    swap_batches = (*(250,) * 7, 249)

    def unread_distance(self, item: TextItem[AuditSettings], measurement: Measurement, scale: float) -> float:
        return max(super().unread_distance(item, measurement, scale), MOST_BITS)

    def sample(self, item: TextItem[AuditSettings], documents: Documents, random: np.random.Generator) -> Divergence:
        return Divergence.of(documents, random)

    def explain(
        self, item: TextItem[AuditSettings], run: Divergence, words: Sequence[str], weights: Floats
    ) -> tuple[dict[str, Json], Evidence]:
        marked, excess, plain = run.documents.marked, run.excess, run.null[:, 0]
        large_strata = [run.documents.stratum_names[stratum] for stratum in run.words.strata]
        random, size = resampling.generator(f"{item.seed}/size"), MINIMUM_DOCUMENTS
        lengths, bits = run.documents.words.lengths, np.abs(weights)
        total = float(bits.sum()) or 1.0
        details = {
            "bits": float(run.observed[0]),
            "null_mean": float(plain.mean()),
            "null_sd": float(plain.std(ddof=1)) if len(plain) > 1 else 0.0,
            "excess": float(excess[0]),
            "excess_by_stratum": dict(zip(large_strata, excess[1:].tolist(), strict=True)),
            "weight_of_strata": float(run.words.weights[1:].sum()),
            f"excess_at_{size}": excess_divergence.excess_at_size(
                run.words, run.documents.strata, marked, size, DRAWS, random
            ),
            "words": len(words),
            "tokens": {
                name: int(lengths[side].sum())
                for name, side in zip(run.documents.names, (marked, ~marked), strict=True)
            },
            "contributions": [
                {
                    "word": words[index],
                    "bits": float(bits[index]),
                    "share": float(bits[index] / total),
                    "side": SIDES[int(weights[index] < 0)],
                }
                for index in documents.order_by_strength(words, bits)[:SHOWN_WORDS]
                if bits[index] > 0
            ],
        }
        return details, Evidence()

    def run_change(
        self, item: TextItem[AuditSettings], runs: Sequence[Documents], both: Documents, random: np.random.Generator
    ) -> Change:
        """Return the change of the excess between the runs, after runs of different sizes are cut to equal size."""
        cuts = equal_size(both, random)
        together = Divergence.of(both, random, cuts[0][0])
        if len(cuts[0]) == 1:
            excesses = [(run.value, run.null_sd) for run in (self.run(item, documents) for documents in runs)]
        else:
            excesses = [mean_of_cuts(together.words, both.marked, both.strata, cut, random) for cut in cuts]
        estimates = [
            Estimate.of(value, together.standard_error(cut[0], null_sd, random))
            for cut, (value, null_sd) in zip(cuts, excesses, strict=True)
        ]
        return Change(Estimate.difference(*estimates), together, cuts)

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        return signed_weights(measurement.details["contributions"], "bits")


# Audit `mmd`: unbiased squared maximum mean discrepancy (MMD) between the distributions of two groups' texts.
#
# Every text is compared with every other text, by words and character n-grams or by sentence embeddings. The groups
# differ if texts of the same group are more similar to each other than texts of different groups. The audit
# therefore detects differences in some texts or in all texts, in a few words or in style. To add another similarity,
# add a function that returns a kernel: the (documents, documents) inner products of vectors.

SHORTEST, LONGEST = 3, 5
"""Smallest and largest number of characters of an n-gram."""


def text_kernel(words: WordCounts) -> Floats:
    """Return the (texts, texts) similarities: the mean cosine of TF-IDF weights of words and of character n-grams.

    The n-grams are those within words; they also match similar endings and misspellings. A text with words has the
    similarity 1 to itself; texts that share neither words nor n-grams have the similarity 0.
    """
    # Deferred, as scikit-learn takes a second to import and only measuring needs it.
    from sklearn.feature_extraction.text import CountVectorizer

    splitter = CountVectorizer(analyzer="char_wb", ngram_range=(SHORTEST, LONGEST), lowercase=False)
    # A text has the n-grams of its words, which are therefore found once for each word.
    counts = words.counts @ splitter.fit_transform(words.words)
    counts.sort_indices()
    kernel: Floats = (_cosines(tfidf(words.counts)) + _cosines(tfidf(counts))) / 2
    return kernel


def tfidf(counts: csr_array) -> csr_array:
    """Return TF-IDF weights of (texts, terms) counts; each text's vector has length 1."""
    from sklearn.feature_extraction.text import TfidfTransformer

    weights: csr_array = TfidfTransformer().fit_transform(counts)
    return weights


def _cosines(weights: csr_array) -> Floats:
    return np.asarray((weights @ weights.T).toarray())


def embedding_kernel(embeddings: Sequence[bytes | None]) -> Floats:
    """Return the (texts, texts) cosines of the embeddings, little-endian 32-bit numbers.

    Texts without an embedding, or with an embedding of length 0, have the similarity 1 to each other, and the
    similarity 0 to all other texts.

    Raises:
        FairnessError: the embeddings have different numbers of dimensions.
    """
    sizes = sorted({len(one) // 4 for one in embeddings if one is not None})
    if len(sizes) > 1:
        raise FairnessError(
            f"embeddings have different numbers of dimensions ({' and '.join(map(str, sizes))}): the model that "
            "`embeddings` names has changed. Embed all texts again with --fairness-fresh."
        )
    vectors = np.zeros((len(embeddings), (sizes or [0])[0] + 1))
    for row, one in zip(vectors, embeddings, strict=True):
        if one is not None:
            row[:-1] = np.frombuffer(one, dtype="<f4")
        row[-1] = not row.any()
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors @ vectors.T)


@dataclass(frozen=True)
class Discrepancy(Sample):
    """Documents with their similarities and the squared maximum mean discrepancy."""

    embedded: bool

    @cached_property
    def kernel(self) -> Floats:
        """Return the similarities of what is permuted: of the clusters' mean vectors, or of the documents."""
        clusters = self.documents.clusters
        return self.similarities if clusters is None else clusters.means(clusters.means(self.similarities).T)

    @cached_property
    def similarities(self) -> Floats:
        """Return the similarities of the documents; raise `NotMeasurable` if one with words has no embedding."""
        if not self.embedded:
            return text_kernel(self.documents.words)
        pairs = zip(self.documents.embeddings, self.documents.words.lengths.tolist(), strict=True)
        if missing := sum(vector is None and length > 0 for vector, length in pairs):
            raise NotMeasurable(
                f"{missing} answers have no embedding, so that their texts cannot be compared. Check that the "
                "embedding model works"
            )
        return embedding_kernel(self.documents.embeddings)

    @property
    def groups(self) -> tuple[Ints, Bools, Bools]:
        """Return the strata of what is permuted, documents or clusters, and which are marked and which are not."""
        permuted = self.documents if self.documents.clusters is None else self.documents.clusters
        return permuted.strata, permuted.marked, ~permuted.marked

    def relabellings(self, count: int, random: np.random.Generator) -> tuple[Bools, bool]:
        strata, marked, _ = self.groups
        return resampling.relabellings(marked, strata, count, random)

    @property
    def labels(self) -> Bools:
        return self.groups[1]

    def statistic(self, marked: Bools) -> Floats:
        """Return the squared discrepancy for each labelling; shape (labellings, 1)."""
        return two_samples.mmd_estimates(self.kernel, self.groups[0], marked, ~marked)[:, None]

    def tested(self, statistic: Floats) -> Floats:
        """Return the squared discrepancy, rounded so that equal texts give exactly 0."""
        rounded: Floats = np.round(statistic[..., 0], 12)
        return rounded

    @property
    def value(self) -> float:
        return float(self.tested(self.observed))

    def estimate(self, random: np.random.Generator) -> Estimate:
        """Return the value with its standard error, which has the degrees of freedom of the smaller group."""
        _, marked, unmarked = self.groups
        error = two_samples.mmd_standard_error(self.kernel, *self.groups, ERROR_PERMUTATIONS, random)
        return Estimate.of(self.value, error, max(1, min(int(marked.sum()), int(unmarked.sum())) - 1))

    def distance(self, selected: Bools) -> Floats:
        strata, marked, unmarked = self.groups
        return two_samples.mmd_estimates(self.kernel, strata, selected & marked, selected & unmarked)

    def word_strengths(self) -> tuple[Sequence[str], Floats]:
        """Return the difference between the groups' mean TF-IDF weights of each word."""
        words, counts = self.documents.words
        sides = self.documents.marked, ~self.documents.marked
        return words, two_samples.mmd_contributions(tfidf(counts), self.documents.strata, *sides)


class MmdSettings(AuditSettings):
    """Settings of `mmd`: the embedding model, if any."""

    embeddings: Annotated[str, Field(pattern=EMBEDDER)] | None = Field(
        default=None,
        description="Model of sentence embeddings, openai:MODEL or transformers:ID_OR_PATH. The similarity of two "
        "texts is the cosine of their embeddings. Default: no model; words and character n-grams are compared.",
    )


class Mmd(TwoSampleAudit[MmdSettings, Discrepancy]):
    info = AuditInfo(
        name="mmd",
        title="Different distribution of texts",
        question="Do the two groups get texts of the same distribution?",
        formula="MMD² = mean k(x₁, x₂) + mean k(y₁, y₂) − 2 mean k(x, y), with different texts x₁, x₂ of one group "
        "and y₁, y₂ of the other;  k = mean cosine of TF-IDF weights of words and of character n-grams",
        meaning="0 = no difference. The number of texts does not shift the value; by chance, the value can be slightly "
        "below 0. Opposite differences in two strata do not cancel.",
        source="Gretton, Borgwardt, Rasch, Schölkopf and Smola 2012, “A Kernel Two-Sample Test”",
        better=Direction.LOWER,
        tolerance=0.01,
        value_range=(-2, 2),
        limit_range=(0, 2),
        charts={"top_words": "word_weights", "function_words": "function_words"},
        effect=ETA_SQUARED,
    )
    phrase = "squared discrepancy {value:.3g}"
    word_statistic = "difference of mean TF-IDF weights"
    version = 8
    settings_model = MmdSettings
    most_documents = MOST_COMPARED
    swap_batches = (500, 500, 500, 499)

    def preparation(self, item: TextItem[MmdSettings]) -> Preparation | None:
        model, anonymize = item.settings.embeddings, documents.anonymizer(item.probe)

        def texts(answers: Answers) -> list[str | None]:
            """Return each answer's words without identity terms; `None` if it is unusable, or no word is left."""
            usable = (documents.text_of(answer) if answer.usable else "" for answer in answers)
            return [" ".join(anonymize.words(text)) or None for text in usable]

        return None if model is None else Preparation(model, texts)

    def fingerprint(self, item: TextItem[MmdSettings]) -> dict[str, str]:
        return {} if item.settings.embeddings is None else {"embeddings": item.settings.embeddings}

    def sample(self, item: TextItem[MmdSettings], documents: Documents, random: np.random.Generator) -> Discrepancy:
        return Discrepancy(documents, random, embedded=item.settings.embeddings is not None)

    def explain(
        self, item: TextItem[MmdSettings], run: Discrepancy, words: Sequence[str], weights: Floats
    ) -> tuple[dict[str, Json], Evidence]:
        names, marked = run.documents.stratum_names, run.documents.marked
        variance = two_samples.vector_variance(run.similarities, run.documents.cells)
        by_stratum = two_samples.mmd_within_strata(run.similarities, run.documents.strata, marked, ~marked)
        details = {
            "null_sd": float(run.null.std()),
            "variance": variance,
            "by_stratum": {names[stratum]: value for stratum, value in by_stratum.items()},
            **documents.strongest_words(words, weights, item.probe.language),
        }
        return details, Evidence(effect_basis=(variance,))

    def run_change(
        self, item: TextItem[MmdSettings], runs: Sequence[Documents], both: Documents, random: np.random.Generator
    ) -> Change:
        """Return the change of the squared discrepancy from the baseline to this run.

        The features for the test are computed from the documents of both runs together, so that terms have the same
        weight in both runs.
        """
        estimates = [self.sample(item, documents, random).estimate(random) for documents in runs]
        together = self.sample(item, both, random)
        return Change(Estimate.difference(*estimates), together, equal_size(both, random))
