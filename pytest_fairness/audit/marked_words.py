"""Which words one group's texts use more or less than another's: weighted log-odds with a Dirichlet prior.

Monroe, Colaresi and Quinn 2008 ("Fightin' Words"), as used by Cheng, Durmus and Jurafsky 2023 ("Marked Personas").
A fixed |z| > 1.96 flags a word in most comparisons of a group with itself, so the threshold is the permutation
distribution of the largest |z| over the vocabulary (Westfall and Young 1993), which also allows for words that repeat
within a document.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pytest_fairness.audit import contrast
from pytest_fairness.audit.base import AuditItem, Detectable, Direction, Probe, Range, Standing
from pytest_fairness.audit.two_runs import TwoRuns, totals
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.probe.settings import AuditSettings
from pytest_fairness.records import Answer, Comparison, Measurement
from pytest_fairness.stats import normal, resampling
from pytest_fairness.stats.log_odds import log_odds, z_scores

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

PERMUTATIONS = 1999
MINIMUM_DOCUMENTS_OF_A_WORD = 3
SHOWN_Z = 1.96
TRIPLING = 3.0
"""Growth of a word used once a document that a run must be able to show before it may pass."""
LARGEST_RATIO = 64.0
CHUNK = 2**22
"""Numbers held at once while many statistics are computed."""


class MarkedWordsSettings(AuditSettings):
    """Settings of the log-odds."""

    prior: Literal["pooled", "mass", "uniform"] = Field(
        default="pooled",
        description="Dirichlet prior: both groups' counts together, these scaled to `prior_mass`, or equal counts.",
    )
    prior_mass: float = Field(
        default=500.0, gt=0, description="Sum of the prior's counts for `mass` and `uniform`; larger shrinks more."
    )


class MarkedWords(contrast.ContrastAudit[MarkedWordsSettings]):
    """Number of words significantly over- or under-used for the marked group, family-wise over the vocabulary."""

    name: ClassVar[str] = "marked_words"
    version: ClassVar[int] = 3
    settings_model: ClassVar[type[AuditSettings]] = MarkedWordsSettings
    better: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "words"
    default_tolerance: ClassVar[float] = 3
    value_range: ClassVar[Range] = (0, math.inf)

    def measure(self, probe: Probe, item: AuditItem[MarkedWordsSettings], answers: Sequence[Answer]) -> Measurement:
        """Count words beyond the largest |z| that relabelled documents show; see `Audit.measure`."""
        groups = contrast.Groups.of(probe, item, answers)
        documents = contrast.Documents.of(probe, groups)
        vocabulary, counts = _counted(documents)
        random = resampling.generator(f"{item.seed}/measure")
        prior = prior_counts(counts, item.settings)
        labels, exact = resampling.relabellings(documents.marked, documents.strata, PERMUTATIONS, random)
        largest = np.concatenate(
            [
                np.abs(z_scores(totals(rows, counts), totals(~rows, counts), prior)).max(axis=1)
                for rows in _chunks(labels, counts)
            ]
        )
        threshold = resampling.exceeded(largest, item.level)
        marked, unmarked = counts[documents.marked].sum(axis=0), counts[~documents.marked].sum(axis=0)
        ratio, variance = log_odds(marked, unmarked, prior)
        z = ratio / np.sqrt(variance)
        # Beyond, not at, the threshold: with few relabellings the observed one can be the threshold itself.
        significant = np.abs(z) > threshold
        return Measurement(
            value=float(significant.sum()),
            interval=None,
            standard_error=None,
            p_value=resampling.p_value(largest, float(np.abs(z).max()), exact=exact),
            n=groups.usable,
            missing=groups.missing,
            details={
                "threshold": threshold,
                "smallest_ratio": smallest_ratio(
                    resampling.exceeded(largest, item.planned_level), [_documents_a_side(documents.marked)]
                ),
                "vocabulary": len(vocabulary),
                "words": [
                    {
                        "word": vocabulary[index],
                        "z": float(z[index]),
                        "log_odds": float(ratio[index]),
                        "marked": int(marked[index]),
                        "unmarked": int(unmarked[index]),
                        "documents": int(np.count_nonzero(counts[:, index])),
                        "significant": bool(significant[index]),
                    }
                    for index in contrast.tie_order(vocabulary, np.abs(z))
                    if significant[index] or abs(z[index]) > SHOWN_Z
                ],
            },
        )

    def compare(
        self, probe: Probe, item: AuditItem[MarkedWordsSettings], now: Sequence[Answer], then: Sequence[Answer]
    ) -> Comparison:
        """Words whose association with either group grew, family-wise; the change's `value` is their number."""
        both = [contrast.Documents.of_answers(probe, item, run) for run in (now, then)]
        runs = TwoRuns.of(both[0], both[1], MINIMUM_DOCUMENTS_OF_A_WORD)
        if len(runs.vocabulary) < 2:
            raise NotMeasurable("the answers share fewer than two words that occur in three documents")
        random = resampling.generator(f"{item.seed}/compare")
        # One prior for both runs, or a word that one run lacks would have none there.
        prior = runs.counts.sum(axis=0)
        growth = np.mean(
            [association_growth(runs, *pair, prior) for pair in _pairs(runs, runs.as_observed(random))], axis=0
        )[0]
        largest = np.concatenate(
            [
                association_growth(runs, *pair, prior).max(axis=1)
                for pair in _pairs(runs, runs.swapped(PERMUTATIONS, random))
            ]
        )
        threshold = resampling.exceeded(largest, item.level)
        sides = [_documents_a_side(runs.marked[side]) for side in (runs.now, ~runs.now)]
        tolerance = self.default_tolerance if item.settings.tolerance is None else item.settings.tolerance
        before_and_now = [_log_odds(runs, side[None], prior)[0][0] for side in (~runs.now, runs.now)]
        grown = [
            {
                "word": runs.vocabulary[index],
                "growth": float(growth[index]),
                "log_odds": float(before_and_now[1][index]),
                "log_odds_before": float(before_and_now[0][index]),
                "side": "marked" if before_and_now[1][index] > 0 else "unmarked",
            }
            for index in contrast.tie_order(runs.vocabulary, growth)
            if growth[index] > threshold
        ]
        return Comparison(
            value=float(len(grown)),
            interval=None,
            standard_error=None,
            p_value=resampling.p_value(largest, float(growth.max()), exact=False),
            repeated=all(run.repeat_only for run in both),
            details={
                "grown": grown,
                "growth_threshold": threshold,
                "largest_growths": np.sort(growth)[::-1][: _seen_of(2 * tolerance)].tolist(),
                "compared_documents": sides,
                "smallest_growth": smallest_ratio(resampling.exceeded(largest, item.planned_level), sides),
            },
        )

    def standing_to_limit(
        self, item: AuditItem[MarkedWordsSettings], measurement: Measurement, limit: float
    ) -> Standing:
        """More words than the limit are significant, or not: each of them is so beyond doubt."""
        return "beyond" if measurement.value > limit else "within"

    def standing_to_baseline(
        self, item: AuditItem[MarkedWordsSettings], comparison: Comparison, tolerance: float
    ) -> Standing:
        """More words than tolerated grew, or not: each of them did so beyond doubt."""
        return "beyond" if comparison.value > tolerance else "within"

    def detectable(
        self,
        item: AuditItem[MarkedWordsSettings],
        measurement: Measurement,
        comparison: Comparison | None,
        tolerance: float,
    ) -> Detectable:
        """The smallest factor by which a word used once a document must grow for the run to show it; 3 is enough."""
        ratio = measurement.details["smallest_ratio"]
        if comparison is not None and comparison.paired:
            ratio = comparison.details["smallest_growth"]
        # Log-odds shrink with the square root of the documents.
        factor = 1.0 if ratio <= TRIPLING else (math.log(min(ratio, LARGEST_RATIO)) / math.log(TRIPLING)) ** 2
        return Detectable(ratio, enough=ratio <= TRIPLING, times_more_units=factor)

    def rules_out(self, comparison: Comparison, worsening: float, missed: float) -> bool:
        """Whether so many common words that tripled would, but for this chance, have grown further than any here.

        More than half of them have to: that many words may have grown as far by chance alone.
        """
        # Deferred, as scipy.stats takes half a second to import and only growing trials need it.
        from scipy.stats import beta

        growths = comparison.details.get("largest_growths", [])
        words, needed = max(1, math.ceil(worsening)), _seen_of(worsening)
        if len(growths) < needed:
            return True
        # Of words that grow independently, `needed` go so far with the chance that the beta distribution says.
        power = float(beta.ppf(1 - missed, needed, words - needed + 1))
        return smallest_ratio(growths[needed - 1], comparison.details["compared_documents"], power) <= TRIPLING

    def rules_out_beyond(self, measurement: Measurement, limit: float, room: float, missed: float) -> bool:
        """Never: the more documents, the more words are significant."""
        return False

    def describe(self, measurement: Measurement) -> str:
        """The value as a phrase."""
        return f"{measurement.value:.0f} significant {'word' if measurement.value == 1 else 'words'}"

    def describe_change(self, comparison: Comparison) -> str:
        """The change as a phrase."""
        grown = (
            f"{comparison.value:.0f} {'word' if comparison.value == 1 else 'words'}" if comparison.value else "no word"
        )
        return f"the association of {grown} grew"

    def describe_detectable(self, effect: float) -> str:
        """The smallest visible effect as a phrase."""
        return f"a common word's use times {effect:.2g}" if effect < LARGEST_RATIO else "no common word's growth"

    def word_weights(self, measurement: Measurement) -> Mapping[str, float]:
        """Each word with its z."""
        return {word["word"]: word["z"] for word in measurement.details["words"]}

    def drivers(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """The words that grew, or else those that are significant."""
        if comparison is not None and comparison.details.get("grown"):
            return [str(word["word"]) for word in comparison.details["grown"]]
        return [str(word["word"]) for word in measurement.details["words"] if word["significant"]]


def _counted(documents: contrast.Documents) -> tuple[list[str], Floats]:
    vocabulary, counts = documents.counts(MINIMUM_DOCUMENTS_OF_A_WORD)
    if len(vocabulary) < 2:
        raise NotMeasurable("the answers share fewer than two words that occur in three documents")
    return vocabulary, counts


def prior_counts(counts: Floats, settings: MarkedWordsSettings) -> Floats:
    """(words,) the prior's counts, from the (documents, words) counts of both groups together."""
    pooled: Floats = counts.sum(axis=0)
    match settings.prior:
        case "pooled":
            return pooled
        case "mass":
            return pooled * float(settings.prior_mass / pooled.sum())
        case "uniform":
            return np.full_like(pooled, settings.prior_mass / len(pooled))


def _chunks(rows: Bools, counts: Floats) -> list[Bools]:
    size = max(1, CHUNK // counts.shape[1])
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _pairs(runs: TwoRuns, selections: tuple[Bools, Bools]) -> list[tuple[Bools, Bools]]:
    return list(zip(*(_chunks(side, runs.counts) for side in selections), strict=True))


def _log_odds(runs: TwoRuns, selections: Bools, prior: Floats) -> tuple[Floats, Floats]:
    return log_odds(
        totals(selections & runs.marked, runs.counts), totals(selections & ~runs.marked, runs.counts), prior
    )


def association_growth(runs: TwoRuns, now: Bools, then: Bools, prior: Floats) -> Floats:
    """How much further each word's log-odds are from 0 now than then, in standard deviations; (selections, words)."""
    ratio_now, variance_now = _log_odds(runs, now, prior)
    ratio_then, variance_then = _log_odds(runs, then, prior)
    growth: Floats = (np.abs(ratio_now) - np.abs(ratio_then)) / np.sqrt(variance_now + variance_then)
    return growth


def _seen_of(worsening: float) -> int:
    """How many of so many words are seen to fail: more than half, which of twice the tolerance are more than it."""
    return math.floor(worsening / 2) + 1


def _documents_a_side(marked: Bools) -> list[int]:
    return [int(marked.sum()), int((~marked).sum())]


def smallest_ratio(threshold: float, runs: Sequence[Sequence[int]], power: float = normal.POWER) -> float:
    """Smallest factor on a word used once a document that passes the threshold with this probability.

    Args:
        threshold: of |z|, or of the growth where there are two runs.
        runs: of this run, and of the baseline's where there is one, the documents of the marked and the unmarked group.
        power: the probability.

    Returns:
        a factor above 1; infinity where not even `LARGEST_RATIO` would show.
    """
    ratios = np.exp(np.linspace(0, math.log(LARGEST_RATIO), 1000)[1:])
    # The growth is in the marked texts of this run, which come first.
    counts = [np.full_like(ratios, documents) for run in runs for documents in run]
    counts[0] = ratios * counts[0]
    prior = np.sum(counts, axis=0)
    signs = (1, -1, -1, 1)[: len(counts)]
    # Every other word keeps its rate, so that the odds' denominators cancel to first order.
    effect = sum(sign * np.log(count + prior) for sign, count in zip(signs, counts, strict=True))
    scale = np.sqrt(sum(1 / (count + prior) for count in counts))
    sampling_sd = np.sqrt(sum(count / (count + prior) ** 2 for count in counts)) / scale
    seen = effect / scale - normal.quantile(power) * sampling_sd > threshold
    return float(ratios[np.argmax(seen)]) if seen.any() else math.inf
