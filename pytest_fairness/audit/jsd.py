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

from pytest_fairness.audit import contrast
from pytest_fairness.audit.base import AuditItem, Direction, Probe, Range
from pytest_fairness.audit.two_runs import TwoRuns, sparse, totals
from pytest_fairness.probe.settings import AuditSettings
from pytest_fairness.records import Answer, Comparison, Json, Measurement
from pytest_fairness.stats import information, normal, resampling

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

PERMUTATIONS = 999
SWAPS = 199
SWAP_PERMUTATIONS = 29
JACKKNIFE_FOLDS = 20
JACKKNIFE_PERMUTATIONS = 199
SHOWN_WORDS = 20
CHUNK = 2**22
"""Numbers held at once while many divergences are computed."""


class JsdSettings(AuditSettings):
    """The divergence takes no settings of its own."""


class Jsd(contrast.ContrastAudit[JsdSettings]):
    """Excess Jensen-Shannon divergence of a marked and the unmarked group, in bits (0: as by chance; at most 1)."""

    name: ClassVar[str] = "jsd"
    version: ClassVar[int] = 1
    settings_model: ClassVar[type[AuditSettings]] = JsdSettings
    better: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "bits"
    default_tolerance: ClassVar[float] = 0.02
    value_range: ClassVar[Range] = (-1, 1)
    limit_range: ClassVar[Range | None] = (0, 1)

    def measure(self, probe: Probe, item: AuditItem[JsdSettings], answers: Sequence[Answer]) -> Measurement:
        """Excess over the permutation null; see `Audit.measure`."""
        groups = contrast.Groups.of(probe, item, answers)
        documents = contrast.Documents.of(probe, groups)
        vocabulary, counts = documents.counts()
        bits, null, exact = divergence_and_null(documents, item.seed)
        random = resampling.generator(f"{item.seed}/error")
        error = jackknife_error(TwoRuns.single(documents), np.ones_like(documents.marked), random)
        value = bits - float(null.mean())
        return Measurement(
            value=value,
            interval=normal.interval(value, error),
            standard_error=error,
            p_value=resampling.p_value(null, bits, exact=exact),
            n=groups.usable,
            missing=groups.missing,
            details={
                "bits": bits,
                "null_mean": float(null.mean()),
                "null_sd": float(null.std(ddof=1)) if len(null) > 1 else 0.0,
                "words": len(vocabulary),
                "tokens": {
                    groups.marked_name: int(counts[documents.marked].sum()),
                    groups.unmarked_name: int(counts[~documents.marked].sum()),
                },
                "contributions": word_contributions(vocabulary, counts, documents.marked),
            },
        )

    def compare(
        self, probe: Probe, item: AuditItem[JsdSettings], now: Sequence[Answer], then: Sequence[Answer]
    ) -> Comparison:
        """Change of the excess, with run labels swapped between documents of one cell; see `Audit.compare`."""
        both = [contrast.Documents.of_answers(probe, item, run) for run in (now, then)]
        runs = TwoRuns.of(both[0], both[1])
        random = resampling.generator(f"{item.seed}/compare")
        first, second = runs.as_observed(random)
        if len(first) == 1:
            excess_now, excess_then = (
                bits - float(null.mean()) for bits, null, _ in (divergence_and_null(run, item.seed) for run in both)
            )
            value = excess_now - excess_then
        else:
            observed = excesses(runs, first, PERMUTATIONS, random) - excesses(runs, second, PERMUTATIONS, random)
            value = float(observed.mean())
        swapped_first, swapped_second = runs.swapped(SWAPS, random)
        null = excesses(runs, swapped_first, SWAP_PERMUTATIONS, random) - excesses(
            runs, swapped_second, SWAP_PERMUTATIONS, random
        )
        # The spread under swaps is right where nothing changed and too wide where something did, as swapped runs then
        # hold unequal shares of changed documents; the jackknife is right there, and too wide where groups are alike,
        # as the divergence is flat at 0. Either errs upwards only, so the smaller one holds.
        apart = math.hypot(*(jackknife_error(runs, selection[0], random) for selection in (first, second)))
        error = min(float(null.std(ddof=1)), apart)
        return Comparison(
            value=value,
            interval=normal.interval(value, error),
            standard_error=error,
            p_value=resampling.p_value(null, value, exact=False),
            repeated=all(run.repeat_only for run in both),
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

    def drivers(self, measurement: Measurement, comparison: Comparison | None) -> list[str]:
        """The words that contribute most."""
        return [str(word["word"]) for word in measurement.details["contributions"]]


def divergence_and_null(documents: contrast.Documents, seed: str) -> tuple[float, Floats, bool]:
    """One run's divergence in bits, those of its relabelled documents, and whether these are all there are.

    Depends on the run alone, so that a baseline measured again has the value that was recorded.
    """
    _, counts = documents.counts()
    random = resampling.generator(f"{seed}/measure")
    labels, exact = resampling.relabellings(documents.marked, documents.strata, PERMUTATIONS, random)
    bits = float(divergences(documents.marked[None], ~documents.marked[None], counts)[0])
    return bits, divergences(labels, ~labels, counts), exact


def divergences(first: Bools, second: Bools, counts: Floats | csr_array) -> Floats:
    """Divergence in bits of many pairs of document selections, each (selections, documents); (selections,)."""
    rows = max(1, CHUNK // max(1, counts.shape[1]))
    return np.concatenate(
        [
            information.divergence(
                totals(first[start : start + rows], counts), totals(second[start : start + rows], counts)
            )
            for start in range(0, len(first), rows)
        ]
    )


def excesses(documents: TwoRuns, selections: Bools, permutations: int, random: np.random.Generator) -> Floats:
    """Excess divergence of each selection of documents, (selections,)."""
    counts = sparse(documents.counts)
    observed = divergences(selections & documents.marked, selections & ~documents.marked, counts)
    means = np.empty(len(selections))
    for row, selection in enumerate(selections):
        labels, _ = resampling.relabellings(
            documents.marked[selection], documents.strata[selection], permutations, random
        )
        relabelled = np.zeros((len(labels), len(selection)), dtype=np.bool_)
        relabelled[:, selection] = labels
        means[row] = divergences(relabelled, selection & ~relabelled, counts).mean()
    return observed - means


def jackknife_error(documents: TwoRuns, selection: Bools, random: np.random.Generator) -> float:
    """Standard error of the excess of one selection of documents by a delete-a-group jackknife (Kott 2001).

    Documents of each cell are dealt to `JACKKNIFE_FOLDS` folds, so that every fold takes its share of every cell.
    """
    counts = sparse(documents.counts[selection])
    marked, cells = documents.marked[selection], documents.cells[selection]
    folds = np.empty(len(marked), dtype=np.int64)
    # Cells follow each other around the folds, so that small ones do not all fall into the first ones.
    order = np.lexsort((random.random(len(cells)), cells))
    folds[order] = np.arange(len(marked)) % min(JACKKNIFE_FOLDS, len(marked))
    # The same relabellings for every fold: their chance cancels in the differences between folds.
    labels, _ = resampling.relabellings(marked, documents.strata[selection], JACKKNIFE_PERMUTATIONS, random)
    values = []
    for fold in np.unique(folds):
        kept = folds != fold
        null = divergences(labels & kept, ~labels & kept, counts)
        values.append(divergences((marked & kept)[None], (~marked & kept)[None], counts)[0] - np.nanmean(null))
    return float(np.sqrt((len(values) - 1) * np.var(values)))


def word_contributions(vocabulary: Sequence[str], counts: Floats, marked: Bools) -> list[dict[str, Json]]:
    """The words that the divergence comes from, the strongest first; `share` is of the whole, -1..1 by side."""
    first, second = counts[marked].sum(axis=0), counts[~marked].sum(axis=0)
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
        for index in contrast.tie_order(vocabulary, bits)[:SHOWN_WORDS]
        if bits[index] > 0
    ]
