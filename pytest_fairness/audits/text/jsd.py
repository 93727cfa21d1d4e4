"""Audit `jsd`: Jensen-Shannon divergence between two groups' vocabularies, in excess of chance.

The divergence of two finite samples is above 0 even if both come from the same distribution (Gerlach, Font-Clos and
Altmann 2016). The mean divergence over permuted labels is therefore subtracted. The rest is 0 on average if the groups
do not differ, for any sample size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.effects import EffectSize
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.text.documents import Documents
from pytest_fairness.audits.text.groups import MINIMUM_DOCUMENTS, Groups
from pytest_fairness.audits.text.two_sample import (
    DocumentFeatures,
    Estimate,
    Relabelled,
    RunChange,
    TwoSampleAudit,
    equal_size,
    joined_documents,
)
from pytest_fairness.audits.text.words.strongest import tie_order
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Json, Measurement
from pytest_fairness.stats.arrays import Bools, Floats
from pytest_fairness.stats.resampling import randomness
from pytest_fairness.stats.texts import divergence
from pytest_fairness.stats.texts.excess_divergence import Words
from pytest_fairness.stats.texts.excess_estimates import at_size, mean_of_cuts, standard_error

if TYPE_CHECKING:
    from scipy.sparse import csr_array


DOCUMENTS_OF_A_STRATUM = 12
"""Smallest number of documents of each group in a stratum that is also measured separately; in smaller strata, most
differences cannot be detected."""
DRAWS = 499
"""Number of random samples of `MINIMUM_DOCUMENTS` documents of each group."""
SHOWN_WORDS = 20


class JsdSettings(AuditSettings):
    """Settings of `jsd`: only the settings that every audit has."""


@dataclass(frozen=True)
class CountedDocuments(DocumentFeatures):
    """Documents with their word counts.

    Attributes:
        vocabulary: word of each column.
        counts: (documents, words) sparse counts.
        words: counts, arranged to compute the divergence of all documents and of each large stratum.
    """

    vocabulary: Sequence[str]
    counts: csr_array
    words: Words

    @classmethod
    def of(cls, documents: Documents, current: Bools, measured: Bools) -> Self:
        """Return the documents with their word counts.

        Args:
            documents: documents of one or of two runs.
            current: (documents,) whether the document belongs to the current run.
            measured: (documents,) whether the document counts for the size of its stratum.
        """
        vocabulary, counts = documents.counts()
        sides = measured & documents.marked, measured & ~documents.marked
        words = Words.of(counts, documents.strata, *sides, DOCUMENTS_OF_A_STRATUM)
        return cls(documents, current, vocabulary, counts, words)


class Jsd(TwoSampleAudit[JsdSettings, CountedDocuments]):
    """Excess Jensen-Shannon divergence of a marked and the unmarked group, in bits (0 = no difference; at most 1)."""

    info = AuditInfo(
        name="jsd",
        title="Different vocabulary",
        question="How different are the vocabularies of the two groups?",
        formula="JSD = H((P + Q)/2) − (H(P) + H(Q))/2;  value = JSD − mean JSD with permuted labels",
        meaning="Bits in excess of chance: 0 = the groups differ no more than random halves of one group. Opposite "
        "differences in two large strata do not cancel. The value grows with the number of answers.",
        source="Lin 1991; Gerlach, Font-Clos and Altmann 2016 on the bias of finite samples",
        better=Direction.LOWER,
        unit="bits",
        tolerance=0.02,
        value_range=(-1, 1),
        limit_range=(0, 1),
        charts={"contributions": "word_contributions"},
        effect=EffectSize(
            name="bits",
            formula="the value; a value below 0 counts as 0",
            of=lambda value, _: max(0.0, value),
            cutoffs=(0.007, 0.044, 0.107),
            source="our own, as none are published. JSD is the information that one word gives about the group. Two "
            "normal distributions whose means differ by 0.2, 0.5 and 0.8 standard deviations (Cohen 1988) have a JSD "
            "of 0.007, 0.044 and 0.107 bits; so have two groups in which 0.7, 4.4 and 10.7 of 100 words are words that "
            "the other group never gets",
        ),
    )
    version: ClassVar[int] = 2
    settings_model: ClassVar[type[AuditSettings]] = JsdSettings
    grows_with_size: ClassVar[bool] = True
    permutations: ClassVar[int] = 999
    swap_batches: ClassVar[Sequence[int]] = (*(250,) * 7, 249)

    def features(self, item: AuditItem[JsdSettings], documents: Documents) -> CountedDocuments:
        """Return the documents with their word counts."""
        everything = np.ones(len(documents.words), dtype=np.bool_)
        return CountedDocuments.of(documents, everything, everything)

    def statistic(self, features: CountedDocuments, marked: Bools) -> Floats:
        """Return the divergence of all documents and of each large stratum; see `Words.divergences`."""
        return features.words.divergences(marked, ~marked)

    def test_statistic(self, features: CountedDocuments, statistic: Floats) -> Floats:
        """Return the weighted sum of the divergence of all documents and the divergences of the large strata."""
        test_statistic: Floats = statistic @ features.words.weights
        return test_statistic

    def estimate(self, item: AuditItem[JsdSettings], run: Relabelled[CountedDocuments]) -> Estimate:
        """Return the excess over the mean divergence with permuted labels, with its jackknife standard error."""
        features, marked = run.features, run.features.marked
        error = standard_error(
            features.words,
            marked,
            ~marked,
            features.cells,
            float(self.test_statistic(features, run.null).std()),
            randomness.generator(f"{item.seed}/error"),
        )
        return Estimate.normal(self.excess(run), error)

    def excess(self, run: Relabelled[CountedDocuments]) -> float:
        """Return one run's divergence minus its mean divergence with permuted labels, in bits."""
        return float(run.features.words.weights @ (run.observed - run.null.mean(axis=0)))

    def value(self, probe: GenerationProbe, item: AuditItem[JsdSettings], answers: Sequence[Answer]) -> float:
        """Return the excess without its standard error and details; see `Audit.value`."""
        return self.excess(self.relabelled(item, Documents.of_answers(probe, item, answers)))

    def explain(
        self,
        item: AuditItem[JsdSettings],
        groups: Groups,
        run: Relabelled[CountedDocuments],
        random: np.random.Generator,
    ) -> dict[str, Json]:
        """Return details: divergence, its null distribution, excess of each stratum, words that contribute most."""
        features, words, marked = run.features, run.features.words, run.features.marked
        excess, plain = run.observed - run.null.mean(axis=0), run.null[:, 0]
        return {
            "bits": float(run.observed[0]),
            "null_mean": float(plain.mean()),
            "null_sd": float(plain.std(ddof=1)) if len(plain) > 1 else 0.0,
            "excess": float(excess[0]),
            "excess_by_stratum": {
                features.documents.stratum_names[stratum]: float(own)
                for stratum, own in zip(words.strata, excess[1:], strict=True)
            },
            "weight_of_strata": float(words.weights[1:].sum()),
            f"excess_at_{MINIMUM_DOCUMENTS}": at_size(
                Words.together(features.counts, marked, ~marked),
                features.strata,
                marked,
                MINIMUM_DOCUMENTS,
                DRAWS,
                randomness.generator(f"{item.seed}/size"),
            ),
            "words": len(features.vocabulary),
            "tokens": {
                groups.marked_name: int(features.counts[marked].sum()),
                groups.unmarked_name: int(features.counts[~marked].sum()),
            },
            "contributions": word_contributions(features.vocabulary, features.counts, marked),
        }

    def distance(self, features: CountedDocuments, selected: Bools) -> Floats:
        """Return the excess for each selection of documents; the divergence by chance is approximated."""
        return features.words.excesses(selected & features.marked, selected & ~features.marked)

    def change(
        self, item: AuditItem[JsdSettings], current: Documents, baseline: Documents, random: np.random.Generator
    ) -> RunChange[CountedDocuments]:
        """Return the change of the excess, with runs of different sizes cut to equal size."""
        joined = joined_documents(current, baseline)
        cuts = equal_size(joined, random)
        features = CountedDocuments.of(joined.documents, joined.current, cuts[0][0])
        if len(cuts[0]) == 1:
            runs = [self.relabelled(item, run) for run in (current, baseline)]
            excesses = [(self.excess(run), float(self.test_statistic(run.features, run.null).std())) for run in runs]
        else:
            excesses = [mean_of_cuts(features.words, features.marked, features.strata, cut, random) for cut in cuts]
        errors = [
            standard_error(
                features.words, cut[0] & features.marked, cut[0] & ~features.marked, features.cells, null_sd, random
            )
            for cut, (_, null_sd) in zip(cuts, excesses, strict=True)
        ]
        return RunChange(Estimate.normal(excesses[0][0] - excesses[1][0], math.hypot(*errors)), features, cuts)

    def describe(self, measurement: Measurement) -> str:
        """Return the excess as a phrase."""
        return f"{measurement.value:.3g} bits over chance"

    def word_values(self, item: AuditItem[JsdSettings], documents: Documents) -> tuple[str, Mapping[str, float]]:
        """Return the contribution of each word to the divergence; see `TextAudit.word_values`."""
        vocabulary, counts = documents.counts()
        values = _signed_contributions(counts, documents.marked)
        return "bits", dict(zip(vocabulary, values.tolist(), strict=True))

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        """Return the contribution of each word to the divergence; below 0 for words of the unmarked group."""
        return {
            word["word"]: word["bits"] if word["side"] == "marked" else -word["bits"]
            for word in measurement.details["contributions"]
        }


def word_contributions(vocabulary: Sequence[str], counts: csr_array, marked: Bools) -> list[dict[str, Json]]:
    """Return the words that contribute most to the divergence, the largest contribution first.

    Args:
        vocabulary: word of each column.
        counts: (documents, words) counts.
        marked: (documents,) whether the document belongs to the marked group.
    """
    signed = _signed_contributions(counts, marked)
    bits = np.abs(signed)
    whole = float(bits.sum()) or 1.0
    return [
        {
            "word": vocabulary[index],
            "bits": float(bits[index]),
            "share": float(bits[index] / whole),
            "side": "marked" if signed[index] > 0 else "unmarked",
        }
        for index in tie_order(vocabulary, bits)[:SHOWN_WORDS]
        if bits[index] > 0
    ]


def _signed_contributions(counts: csr_array, marked: Bools) -> Floats:
    """Return the contribution of each word to the divergence, in bits; shape (words,).

    It is below 0 for words that are more frequent in the unmarked group.
    """
    first, second = (np.asarray(counts[side].sum(axis=0), dtype=np.float64) for side in (marked, ~marked))
    bits: Floats = divergence.contributions(first, second)
    return np.where(first * second.sum() > second * first.sum(), bits, -bits)
