"""Audits `jsd`, `mmd` and `svm`: distance between the texts of two groups."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Generic, NamedTuple

import numpy as np
from pydantic import Field

from pytest_fairness.audits import documents, text_samples
from pytest_fairness.audits.base import Preparation, SettingsT, WordRows
from pytest_fairness.audits.documents import (
    MINIMUM_DOCUMENTS,
    SIDES,
    Documents,
    Groups,
    Runs,
    TextItem,
    Usage,
    as_written,
    language_details,
)
from pytest_fairness.audits.info import BITS, COHENS_U2, ETA_SQUARED, AuditInfo, Direction
from pytest_fairness.audits.text_audit import TwoGroupAudit, signed_weights
from pytest_fairness.audits.text_samples import (
    ERROR_PERMUTATIONS,
    Corpus,
    FeatureName,
    Relabelled,
    SampleT,
    Vectors,
    WordCounts,
)
from pytest_fairness.probes.field_types import EMBEDDER, AuditSettings
from pytest_fairness.records import Answers, Comparison, Concern, Evidence, Explanation, Json, Measurement
from pytest_fairness.stats import resampling
from pytest_fairness.stats.excess_divergence import mean_of_cuts
from pytest_fairness.stats.intervals import Estimate, Separation, separation_change
from pytest_fairness.stats.resampling import Bools, Floats, RunCells

# Base class of audits whose value is one number for the distance between two groups' texts.
#
# A subclass computes a sample (documents with a statistic), standard errors and details. The base class permutes
# group labels within strata for the test of one run, and run labels within cells (group within stratum) for the test
# of a change.

SUBSAMPLES = 20
"""Number of random cuts to equal size that are averaged if two runs have different numbers of documents."""


class SignedWords(NamedTuple):
    """Words with a weight each: above 0 if the marked group uses the word more, else below 0.

    The sizes are those of `Sample.word_strengths`, the signs those of `Usage.sides`.
    """

    words: Sequence[str]
    weights: Floats


@dataclass(frozen=True)
class RunChange(Generic[SampleT]):
    """The change between two runs, and the input of its test: the documents of both runs together.

    `cuts` are two (cuts, documents) masks: the current run's documents and the baseline's, cut to equal size.
    """

    estimate: Estimate
    both: SampleT
    cuts: tuple[Bools, Bools]


class TwoSampleAudit(TwoGroupAudit[SettingsT], Generic[SettingsT, SampleT]):
    """Base class of audits whose value is one number for the distance between two groups' texts.

    Class attributes:
        permutations: number of relabellings in the test of one run.
        swap_batches: number of permutations in each batch of the test of a change; the batches are computed one after
            the other, and smaller batches need less memory. Other numbers give other random draws.
        word_statistic: name of the words' weights in the exported table of words; see `Sample.word_strengths`.
    """

    permutations: ClassVar[int] = 1999
    swap_batches: ClassVar[Sequence[int]] = (1999,)
    word_statistic: ClassVar[str]

    @abstractmethod
    def sample(self, item: TextItem[SettingsT], documents: Documents) -> SampleT:
        """Return the documents (of one run or of two runs) as a sample, with the audit's statistic."""

    @abstractmethod
    def explain(
        self, item: TextItem[SettingsT], groups: Groups, run: Relabelled[SampleT], words: SignedWords
    ) -> tuple[Mapping[str, Json], Evidence]:
        """Return the details of a measurement of these groups, and what decisions and the effect size need.

        Args:
            item: item that is measured.
            groups: answers of both groups.
            run: sample of the run with its null distribution.
            words: the words of the sample; see `SignedWords`.
        """

    @abstractmethod
    def run_change(self, item: TextItem[SettingsT], runs: Runs, random: np.random.Generator) -> RunChange[SampleT]:
        """Return the change from the baseline with its standard error, and the input of its test."""

    def relabelled(self, item: TextItem[SettingsT], documents: Documents) -> Relabelled[SampleT]:
        """Return the statistic of one run with observed and permuted labels; each call permutes in the same way."""
        return Relabelled(self.sample(item, documents), self.permutations, resampling.generator(f"{item.seed}/measure"))

    def measure(self, item: TextItem[SettingsT], answers: Answers) -> Measurement:
        """Return the value with its standard error and permutation test."""
        groups = Groups.of(item, answers)
        documents = Documents.of(groups)
        run = self.relabelled(item, documents)
        estimate = run.sample.estimate(run, resampling.generator(f"{item.seed}/error"))
        words, strengths = run.sample.word_strengths()
        signed = SignedWords(words, Usage.of(documents.words, documents.marked, words).signed(strengths))
        details, evidence = self.explain(item, groups, run, signed)
        return Measurement(
            value=estimate.value,
            interval=estimate.interval,
            standard_error=estimate.standard_error,
            p_value=run.p_value,
            n=groups.usable,
            missing=groups.missing,
            details={**details, **language_details(item.probe)},
            evidence=evidence,
        )

    def value(self, item: TextItem[SettingsT], answers: Answers) -> float:
        return self.relabelled(item, Documents.of(Groups.of(item, answers))).value

    def change(
        self,
        item: TextItem[SettingsT],
        current: Groups,
        baseline: Groups,
        random: np.random.Generator,
    ) -> Comparison:
        """Return the change with its standard error, tested by permutation of run labels."""
        runs = Runs.of(Documents.of(current), Documents.of(baseline))
        change = self.run_change(item, runs, random)
        both = change.both
        swaps = run_swaps(both.documents, self.swap_batches, random)
        null = np.concatenate([both.distance_change(*swap) for swap in swaps])
        return Comparison(
            value=change.estimate.value,
            interval=change.estimate.interval,
            standard_error=change.estimate.standard_error,
            p_value=resampling.p_value(null, float(both.distance_change(*change.cuts).mean()), exact=False),
        )

    def concerns(self, item: TextItem[SettingsT], answers: Answers, measurement: Measurement) -> list[Concern]:
        return [*super().concerns(item, answers, measurement), *text_samples.sampled_texts(Groups.of(item, answers))]

    def word_rows(self, item: TextItem[SettingsT], answers: Answers, details: Mapping[str, Json]) -> WordRows:
        groups = Groups.of(item, answers)
        documents = Documents.of(groups)
        words, strengths = self.sample(item, documents).word_strengths()
        rows = Usage.of(documents.words, documents.marked, words).rows(self.word_statistic, strengths, groups.names)
        written: WordRows = as_written(rows, item.probe, self.counted_answers(item, answers))
        return written


def equal_size(both: Documents, random: np.random.Generator) -> tuple[Bools, Bools]:
    """Return (cuts, documents) masks of the current run and the baseline, cut at random to equal size in each cell."""
    return RunCells.of(both.current, both.cells).cuts(SUBSAMPLES, random)


def run_swaps(both: Documents, counts: Sequence[int], random: np.random.Generator) -> Iterator[tuple[Bools, Bools]]:
    """Return batches of two (exchanges, documents) masks: random exchanges of documents between the runs."""
    cells = RunCells.of(both.current, both.cells)
    return (cells.swaps(count, random) for count in counts)


# Audit `jsd`: Jensen-Shannon divergence between two groups' vocabularies, minus the divergence expected by chance.
#
# The divergence of two finite samples is above 0 even if both come from the same distribution (Gerlach, Font-Clos
# and Altmann 2016). The mean divergence over permuted labels is therefore subtracted. The remaining excess is 0 on
# average if the groups do not differ, for any sample size.

SHOWN_WORDS = 20
"""Number of words in the detail `contributions`."""
MOST_BITS = 0.6226
"""Largest divergence in bits, by share of texts, that texts without a common word add, if they are at most half."""


class Jsd(TwoSampleAudit[AuditSettings, WordCounts]):
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
    permutations = 999
    swap_batches = (*(250,) * 7, 249)

    def unread_distance(self, item: TextItem[AuditSettings], measurement: Measurement, scale: float) -> float:
        return max(super().unread_distance(item, measurement, scale), MOST_BITS)

    def sample(self, item: TextItem[AuditSettings], documents: Documents) -> WordCounts:
        return WordCounts.of(documents)

    def explain(
        self, item: TextItem[AuditSettings], groups: Groups, run: Relabelled[WordCounts], words: SignedWords
    ) -> tuple[dict[str, Json], Evidence]:
        sample, plain, excess = run.sample, run.null[:, 0], run.excess
        details = {
            "bits": float(run.observed[0]),
            "null_mean": float(plain.mean()),
            "null_sd": float(plain.std(ddof=1)) if len(plain) > 1 else 0.0,
            "excess": float(excess[0]),
            "excess_by_stratum": dict(zip(sample.large_strata, excess[1:].tolist(), strict=True)),
            "weight_of_strata": float(sample.words.weights[1:].sum()),
            f"excess_at_{MINIMUM_DOCUMENTS}": sample.excess_at(
                MINIMUM_DOCUMENTS, resampling.generator(f"{item.seed}/size")
            ),
            "words": len(sample.vocabulary),
            "tokens": dict(zip(groups.names, sample.tokens, strict=True)),
            "contributions": _strongest_contributions(words),
        }
        return details, Evidence()

    def run_change(
        self, item: TextItem[AuditSettings], runs: Runs, random: np.random.Generator
    ) -> RunChange[WordCounts]:
        """Return the change of the excess between the runs, after runs of different sizes are cut to equal size."""
        documents = runs.both
        cuts = equal_size(documents, random)
        both = WordCounts.of(documents, cuts[0][0])
        if len(cuts[0]) == 1:
            excesses = [
                (run.value, run.null_sd)
                for run in (self.relabelled(item, each) for each in (runs.current, runs.baseline))
            ]
        else:
            excesses = [mean_of_cuts(both.words, documents.marked, documents.strata, cut, random) for cut in cuts]
        estimates = [
            Estimate.normal(value, both.standard_error(cut[0], null_sd, random))
            for cut, (value, null_sd) in zip(cuts, excesses, strict=True)
        ]
        return RunChange(Estimate.difference(*estimates), both, cuts)

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        return signed_weights(measurement.details["contributions"], "bits")


def _strongest_contributions(words: SignedWords) -> list[dict[str, Json]]:
    bits = np.abs(words.weights)
    total = float(bits.sum()) or 1.0
    return [
        {
            "word": words.words[index],
            "bits": float(bits[index]),
            "share": float(bits[index] / total),
            "side": SIDES[int(words.weights[index] < 0)],
        }
        for index in documents.order_by_strength(words.words, bits)[:SHOWN_WORDS]
        if bits[index] > 0
    ]


# Audit `mmd`: unbiased squared maximum mean discrepancy (MMD) between the distributions of two groups' texts.
#
# Every text is compared with every other text, by words and character n-grams or by sentence embeddings. The groups
# differ if texts of the same group are more similar to each other than texts of different groups. The audit
# therefore detects differences in some texts or in all texts, in a few words or in style.


class MmdSettings(AuditSettings):
    """Settings of `mmd`: the embedding model, if any."""

    embeddings: Annotated[str, Field(pattern=EMBEDDER)] | None = Field(
        default=None,
        description="Model of sentence embeddings, openai:MODEL or transformers:ID_OR_PATH. The similarity of two "
        "texts is the cosine of their embeddings. Default: no model; words and character n-grams are compared.",
    )


class Mmd(TwoSampleAudit[MmdSettings, Vectors]):
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
    version = 7
    settings_model = MmdSettings
    swap_batches = (500, 500, 500, 499)

    def preparation(self, item: TextItem[MmdSettings]) -> Preparation | None:
        model = item.settings.embeddings
        return None if model is None else Preparation(model, lambda answers: documents.plain_texts(item.probe, answers))

    def fingerprint(self, item: TextItem[MmdSettings]) -> dict[str, str]:
        return {} if item.settings.embeddings is None else {"embeddings": item.settings.embeddings}

    def sample(self, item: TextItem[MmdSettings], documents: Documents) -> Vectors:
        return Vectors(documents, embedded=item.settings.embeddings is not None)

    def explain(
        self, item: TextItem[MmdSettings], groups: Groups, run: Relabelled[Vectors], words: SignedWords
    ) -> tuple[dict[str, Json], Evidence]:
        variance = run.sample.variance()
        details = {
            "null_sd": float(run.null.std()),
            "variance": variance,
            "by_stratum": run.sample.within_strata(),
            **documents.strongest_words(*words, groups.probe.language),
        }
        return details, Evidence(effect_basis=(variance,))

    def run_change(self, item: TextItem[MmdSettings], runs: Runs, random: np.random.Generator) -> RunChange[Vectors]:
        """Return the change of the squared discrepancy from the baseline to this run.

        The features for the test are computed from the documents of both runs together, so that terms have the same
        weight in both runs.
        """
        both = self.sample(item, runs.both)
        relabelled = [
            Relabelled(self.sample(item, run), ERROR_PERMUTATIONS, random) for run in (runs.current, runs.baseline)
        ]
        change = Estimate.difference(*(run.sample.estimate(run, random) for run in relabelled))
        return RunChange(change, both, equal_size(both.documents, random))


# Audit `svm`: how far a linear classifier separates two groups' texts without identity terms.
#
# Cheng, Durmus and Jurafsky 2023 ("Marked Personas") report plain accuracy for one group against all other groups.
# In their data, a classifier that always predicts the larger class has an accuracy of 0.8. This audit measures the
# distance d' between the scores of one marked group and the unmarked group, and shows it as the balanced accuracy of
# normal scores with this distance, so that chance is 0.5. Counted accuracies cannot tell two runs apart whose texts
# are nearly all recognised; d' can.


class SvmSettings(AuditSettings):
    """Settings of `svm`: the features of the classifier."""

    features: FeatureName = Field(
        default="tfidf",
        description="Features of the classifier: shares of a text's words (counts), or these shares weighted by "
        "inverse document frequency (tfidf).",
    )


class Svm(TwoSampleAudit[SvmSettings, Corpus]):
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
    version = 7
    settings_model = SvmSettings
    grows_with_size = True

    def explanation(self, item: TextItem[SvmSettings], measurement: Measurement) -> Explanation:
        d_prime = measurement.details["d_prime"]
        phrase = f"groups recognised with accuracy {measurement.value:.3g} (d' {d_prime:.2g}; chance 0.5)"
        return replace(super().explanation(item, measurement), phrase=phrase)

    def sample(self, item: TextItem[SvmSettings], documents: Documents) -> Corpus:
        return Corpus.of(documents, item.settings.features)

    def explain(
        self, item: TextItem[SvmSettings], groups: Groups, run: Relabelled[Corpus], words: SignedWords
    ) -> tuple[dict[str, Json], Evidence]:
        null, separation, limit = run.null[:, 0], run.sample.separation_of(run), item.settings.limit
        bounds = None if limit is None else separation.bounds(limit, item.alpha, item.beta)
        details = {
            "d_prime": separation.d_prime,
            "d_prime_error": separation.standard_error,
            **({} if bounds is None else {"bounds": bounds}),
            **text_samples.published_accuracy(run.sample, int(run.random.integers(2**31))),
            "null_mean": float(null.mean()),
            "null_sd": float(null.std()),
            "unique_share": run.sample.unique_share,
            "different_answers": run.sample.fewest_different,
            **documents.strongest_words(*words, groups.probe.language),
        }
        return details, Evidence(bounds=None if bounds is None else (bounds["lower"], bounds["upper"]))

    def run_change(self, item: TextItem[SvmSettings], runs: Runs, random: np.random.Generator) -> RunChange[Corpus]:
        """Return the change of d' after the runs are cut to equal size, on the scale of `separation_change`."""
        both = self.sample(item, runs.both)
        cuts = equal_size(both.documents, random)
        separations = [
            both.separation_of_run(run, cut, random)
            for run, cut in zip((runs.current, runs.baseline), cuts, strict=True)
        ]
        return RunChange(separation_change(*separations), both, cuts)

    def change_of_values(self, measurement: Measurement, value: float, standard_error: float) -> Estimate:
        current = Separation.of_accuracy(measurement.value, measurement.standard_error or 0.0)
        return separation_change(current, Separation.of_accuracy(value, standard_error))

    def concerns(self, item: TextItem[SvmSettings], answers: Answers, measurement: Measurement) -> list[Concern]:
        return [*super().concerns(item, answers, measurement), *text_samples.few_different_answers(measurement)]
