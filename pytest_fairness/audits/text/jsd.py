"""How far apart two groups' vocabularies are: Jensen-Shannon divergence in excess of chance.

The divergence of two finite samples is never 0, not even of the same distribution (Gerlach, Font-Clos and Altmann
2016), so its mean over relabelled documents is subtracted. What is left is 0 where the groups are alike, whatever the
sample size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.audits.base import AuditItem
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.text import text_audit
from pytest_fairness.audits.text.text_audit import MINIMUM_DOCUMENTS
from pytest_fairness.audits.text.two_runs import TwoRuns, totals
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Comparison, Json, Measurement
from pytest_fairness.stats import information, normal, resampling
from pytest_fairness.stats.excess import Words, at_size, standard_error

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PERMUTATIONS = 999
BATCHES = (250,) * 7 + (249,)
"""The same number of swaps of run labels, in batches that take less memory than the documents."""
CUT_PERMUTATIONS = 99
"""Relabellings of each cut to equal size, where the runs hold different numbers of documents."""
DOCUMENTS_OF_A_STRATUM = 12
"""Documents of either group from which on a stratum is measured by itself as well: fewer hide most differences."""
DRAWS = 499
"""Samples of `MINIMUM_DOCUMENTS` a group."""
SHOWN_WORDS = 20


class JsdSettings(AuditSettings):
    """The divergence takes no settings of its own."""


class Jsd(text_audit.ContrastAudit[JsdSettings]):
    """Excess Jensen-Shannon divergence of a marked and the unmarked group, in bits (0: as by chance; at most 1)."""

    info = AuditInfo(
        name="jsd",
        title="Different vocabulary",
        question="How different are the two vocabularies altogether?",
        formula="JSD = H((P + Q)/2) − (H(P) + H(Q))/2;  value = JSD − mean JSD of relabelled documents",
        meaning="Bits over chance: 0 is as different as chance makes two halves of one group. Differences that are "
        "opposite in two large strata do not cancel. The value grows with the number of answers.",
        source="Lin 1991; Gerlach, Font-Clos and Altmann 2016 on the bias of finite samples",
        better=Direction.LOWER,
        unit="bits",
        tolerance=0.02,
        value_range=(-1, 1),
        limit_range=(0, 1),
    )
    version: ClassVar[int] = 2
    settings_model: ClassVar[type[AuditSettings]] = JsdSettings
    grows_with_size: ClassVar[bool] = True

    def measure(self, probe: GenerationProbe, item: AuditItem[JsdSettings], answers: Sequence[Answer]) -> Measurement:
        """Excess over the permutation null; see `Audit.measure`."""
        groups = text_audit.Groups.of(probe, item, answers)
        documents = text_audit.Documents.of(probe, groups)
        vocabulary, counts = documents.counts()
        marked, strata = documents.marked, documents.strata
        words = words_of(counts, strata, marked, ~marked)
        observed, null, exact = divergences_and_null(words, documents, item.seed)
        excess = observed - null.mean(axis=0)
        value = float(words.weights @ excess)
        error = standard_error(
            words, marked, ~marked, documents.cells, spread(words, null), resampling.generator(f"{item.seed}/error")
        )
        return Measurement(
            value=value,
            interval=normal.interval(value, error),
            standard_error=error,
            p_value=resampling.p_value(null @ words.weights, float(words.weights @ observed), exact=exact),
            n=groups.usable,
            missing=groups.missing,
            details={
                "bits": float(observed[0]),
                "null_mean": float(null[:, 0].mean()),
                "null_sd": float(null[:, 0].std(ddof=1)) if len(null) > 1 else 0.0,
                "excess": float(excess[0]),
                "excess_by_stratum": {
                    documents.stratum_names[stratum]: float(own)
                    for stratum, own in zip(words.strata, excess[1:], strict=True)
                },
                "weight_of_strata": float(words.weights[1:].sum()),
                f"excess_at_{MINIMUM_DOCUMENTS}": at_size(
                    Words.together(counts, marked, ~marked),
                    strata,
                    marked,
                    MINIMUM_DOCUMENTS,
                    DRAWS,
                    resampling.generator(f"{item.seed}/size"),
                ),
                "words": len(vocabulary),
                "tokens": {
                    groups.marked_name: int(counts[marked].sum()),
                    groups.unmarked_name: int(counts[~marked].sum()),
                },
                "contributions": word_contributions(vocabulary, counts, marked),
            },
        )

    def value(self, probe: GenerationProbe, item: AuditItem[JsdSettings], answers: Sequence[Answer]) -> float:
        """The excess without its error and details; see `Audit.value`."""
        documents = text_audit.Documents.of_answers(probe, item, answers)
        return _value_and_null_sd(documents, item.seed)[0]

    def compare(
        self, probe: GenerationProbe, item: AuditItem[JsdSettings], now: Sequence[Answer], then: Sequence[Answer]
    ) -> Comparison:
        """Change of the excess, with run labels swapped between documents of one cell; see `Audit.compare`."""
        both = [text_audit.Documents.of_answers(probe, item, run) for run in (now, then)]
        runs = TwoRuns.of(both[0], both[1])
        random = resampling.generator(f"{item.seed}/compare")
        cuts = runs.as_observed(random)
        words = words_of(runs.counts, runs.strata, cuts[0][0] & runs.marked, cuts[0][0] & ~runs.marked)
        if len(cuts[0]) == 1:
            measured = [_value_and_null_sd(run, item.seed) for run in both]
        else:
            measured = [_mean_of_cuts(words, runs, cut, random) for cut in cuts]
        value = measured[0][0] - measured[1][0]
        error = math.hypot(
            *(
                standard_error(words, cut[0] & runs.marked, cut[0] & ~runs.marked, runs.cells, null_sd, random)
                for cut, (_, null_sd) in zip(cuts, measured, strict=True)
            )
        )

        def changes(present: Bools, earlier: Bools) -> Floats:
            return words.excesses(present & runs.marked, present & ~runs.marked) - words.excesses(
                earlier & runs.marked, earlier & ~runs.marked
            )

        null = np.concatenate([changes(*runs.swapped(count, random)) for count in BATCHES])
        return Comparison(
            value=value,
            interval=normal.interval(value, error),
            standard_error=error,
            p_value=resampling.p_value(null, float(changes(*cuts).mean()), exact=False),
        )

    def describe(self, measurement: Measurement) -> str:
        """The value as a phrase."""
        return f"{measurement.value:.3g} bits over chance"

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        """Each word with its part of the divergence, signed."""
        return {
            word["word"]: word["bits"] if word["side"] == "marked" else -word["bits"]
            for word in measurement.details["contributions"]
        }

    def top_contributors(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """The words that contribute most."""
        return [str(word["word"]) for word in measurement.details["contributions"]]


def words_of(counts: csr_array, strata: Ints, first: Bools, second: Bools) -> Words:
    """Lay out the counts; strata with enough documents of either group are measured by themselves as well."""
    return Words.of(counts, strata, first, second, DOCUMENTS_OF_A_STRATUM)


def divergences_and_null(words: Words, documents: text_audit.Documents, seed: str) -> tuple[Floats, Floats, bool]:
    """One run's divergences in bits, those of its relabelled documents, and whether these are all there are.

    Depends on the run alone, so that a baseline measured again has the value that was recorded.

    Returns:
        (blocks,) and (relabellings, blocks) divergences; see `Words.divergences`.
    """
    random = resampling.generator(f"{seed}/measure")
    labels, exact = resampling.relabellings(documents.marked, documents.strata, PERMUTATIONS, random)
    observed = words.divergences(documents.marked[None], ~documents.marked[None])[0]
    return observed, words.divergences(labels, ~labels), exact


def spread(words: Words, null: Floats) -> float:
    """Return the standard deviation of the value over relabelled documents, from `divergences_and_null`."""
    return float((null @ words.weights).std())


def _value_and_null_sd(documents: text_audit.Documents, seed: str) -> tuple[float, float]:
    """Return one run's value, the one that `measure` gives, and its standard deviation over relabelled documents."""
    words = words_of(documents.counts()[1], documents.strata, documents.marked, ~documents.marked)
    observed, null, _ = divergences_and_null(words, documents, seed)
    return float(words.weights @ (observed - null.mean(axis=0))), spread(words, null)


def _mean_of_cuts(words: Words, runs: TwoRuns, cuts: Bools, random: np.random.Generator) -> tuple[float, float]:
    """Return the mean value of one run's cuts to equal size, and its standard deviation over relabelled documents."""
    values, variances = [], []
    for cut in cuts:
        labels, _ = resampling.relabellings(runs.marked[cut], runs.strata[cut], CUT_PERMUTATIONS, random)
        relabelled = np.zeros((len(labels), len(cut)), dtype=np.bool_)
        relabelled[:, cut] = labels
        null = words.divergences(relabelled, cut & ~relabelled) @ words.weights
        observed = words.divergences((cut & runs.marked)[None], (cut & ~runs.marked)[None])[0] @ words.weights
        values.append(observed - null.mean())
        variances.append(null.var())
    return float(np.mean(values)), math.sqrt(np.mean(variances))


def word_contributions(vocabulary: Sequence[str], counts: csr_array, marked: Bools) -> list[dict[str, Json]]:
    """The words that the divergence comes from, the strongest first; `share` is of the whole, -1..1 by side."""
    first, second = totals(np.stack([marked, ~marked]), counts)
    bits = information.contributions(first, second)
    whole = float(bits.sum()) or 1.0
    more_marked = first * second.sum() > second * first.sum()
    return [
        {
            "word": vocabulary[index],
            "bits": float(bits[index]),
            "share": float(bits[index] / whole),
            "side": "marked" if more_marked[index] else "unmarked",
        }
        for index in text_audit.tie_order(vocabulary, bits)[:SHOWN_WORDS]
        if bits[index] > 0
    ]
