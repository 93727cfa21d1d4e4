"""Audit `jsd`: Jensen-Shannon divergence between two groups' vocabularies, minus the divergence expected by chance.

The divergence of two finite samples is above 0 even if both come from the same distribution (Gerlach, Font-Clos and
Altmann 2016). The mean divergence over permuted labels is therefore subtracted. The remaining excess is 0 on average if
the groups do not differ, for any sample size.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pytest_fairness.audits.effects import BITS
from pytest_fairness.audits.info import AuditInfo, Direction
from pytest_fairness.audits.text.documents import Documents, Runs
from pytest_fairness.audits.text.groups import MINIMUM_DOCUMENTS, Groups, TextItem
from pytest_fairness.audits.text.samples.sample import Relabelled
from pytest_fairness.audits.text.samples.word_counts import WordCounts
from pytest_fairness.audits.text.text_audit import signed_weights
from pytest_fairness.audits.text.two_sample import RunChange, SignedWords, TwoSampleAudit, equal_size
from pytest_fairness.audits.text.words.usage import SIDES, order_by_strength
from pytest_fairness.probes.audit_settings import AuditSettings
from pytest_fairness.records import Json, Measurement
from pytest_fairness.stats.intervals.estimate import Estimate
from pytest_fairness.stats.resampling import randomness
from pytest_fairness.stats.texts.excess_estimates import mean_of_cuts

SHOWN_WORDS = 20
"""Number of words in the detail `contributions`."""


class Jsd(TwoSampleAudit[AuditSettings, WordCounts]):
    """Excess Jensen-Shannon divergence of a marked and the unmarked group, in bits (0 = no difference; at most 1)."""

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

    def sample(self, item: TextItem[AuditSettings], documents: Documents) -> WordCounts:
        """Return the documents with their word counts."""
        return WordCounts.of(documents)

    def explain(
        self, item: TextItem[AuditSettings], groups: Groups, run: Relabelled[WordCounts], words: SignedWords
    ) -> dict[str, Json]:
        """Return details: divergence, its null distribution, each stratum's excess, the words that contribute most."""
        sample, plain, excess = run.sample, run.null[:, 0], run.excess
        return {
            "bits": float(run.observed[0]),
            "null_mean": float(plain.mean()),
            "null_sd": float(plain.std(ddof=1)) if len(plain) > 1 else 0.0,
            "excess": float(excess[0]),
            "excess_by_stratum": dict(zip(sample.large_strata, excess[1:].tolist(), strict=True)),
            "weight_of_strata": float(sample.words.weights[1:].sum()),
            f"excess_at_{MINIMUM_DOCUMENTS}": sample.excess_at(
                MINIMUM_DOCUMENTS, randomness.generator(f"{item.seed}/size")
            ),
            "words": len(sample.vocabulary),
            "tokens": dict(zip(groups.names, sample.tokens, strict=True)),
            "contributions": _strongest_contributions(words),
        }

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
        """Return the contribution of each word to the divergence; below 0 for words of the unmarked group."""
        return signed_weights(measurement.details["contributions"], "bits")


def _strongest_contributions(words: SignedWords) -> list[dict[str, Json]]:
    """Return the `SHOWN_WORDS` words that contribute most to the divergence, the largest contribution first."""
    bits = np.abs(words.weights)
    total = float(bits.sum()) or 1.0
    return [
        {
            "word": words.words[index],
            "bits": float(bits[index]),
            "share": float(bits[index] / total),
            "side": SIDES[int(words.weights[index] < 0)],
        }
        for index in order_by_strength(words.words, bits)[:SHOWN_WORDS]
        if bits[index] > 0
    ]
