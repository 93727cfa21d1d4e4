"""Statistics of word counts: log-odds, contributions to a divergence, growth between two runs.

`marked` and `current` say which documents belong to the marked group, and to the current run; `strata` and `cells` are
their numbers, all (documents,). `present` is (documents, words): 1 if the document contains the word.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pytest_fairness.stats import intervals
from pytest_fairness.stats.resampling import Bools, Floats, Ints
from pytest_fairness.stats.strata import precision

if TYPE_CHECKING:
    from scipy.sparse import csr_array


# Weighted log-odds ratio of words between two samples, with an informative Dirichlet prior.
#
# See Monroe, Colaresi and Quinn 2008, "Fightin' Words", equations 16 to 22.

Sizes = tuple[Floats, Floats, float]
"""Total word counts: of the first sample, of the second sample and of the prior."""


def log_odds(first: Floats, second: Floats, prior: Floats, sizes: Sizes | None = None) -> tuple[Floats, Floats]:
    """Return the natural log-odds ratio of each word between two samples, and its approximate variance.

    The counts are (..., words), and those of the prior are above 0. `sizes` is needed if the counts do not include all
    words. A ratio is positive if `first` uses the word more, and NaN for a vocabulary of one word, which has no other
    words to be compared with.
    """
    first_size, second_size, mass = sizes or (first.sum(axis=-1), second.sum(axis=-1), float(prior.sum()))

    def logit(counts: Floats, size: Floats) -> Floats:
        odds: Floats = (counts + prior) / (np.asarray(size)[..., None] + mass - counts - prior)
        return np.log(odds)

    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = logit(first, first_size) - logit(second, second_size)
    if prior.shape[-1] < 2:
        ratio = np.full_like(ratio, np.nan)
    return ratio, 1 / (first + prior) + 1 / (second + prior)


def z_scores(first: Floats, second: Floats, prior: Floats, sizes: Sizes | None = None) -> Floats:
    """Return each word's log-odds ratio divided by its standard deviation, shape (..., words)."""
    ratio, variance = log_odds(first, second, prior, sizes)
    return np.asarray(ratio / np.sqrt(variance))


# Contribution of each word to the Jensen-Shannon divergence between two samples of words, in bits.
#
# The divergence comes from Lin 1991, "Divergence measures based on the Shannon entropy", with equal weights: 0 for
# equal distributions, 1 if the samples share no word.


def divergence_contributions(first: Floats, second: Floats) -> Floats:
    """Return each word's contribution to the divergence, (p log2(p/m) + q log2(q/m)) / 2 with m = (p + q) / 2, in bits.

    p and q are the word's shares of the (..., words) counts of the two samples; a sample without any count gives NaN. A
    contribution is at least 0. The contributions add up to the plug-in estimate of the divergence, 0..1. A word-shift
    graph shows each contribution on the side of the sample that uses the word more (Gallagher et al. 2021).
    """
    # Deferred, as scipy.special is not needed to load a probe.
    from scipy.special import rel_entr

    with np.errstate(divide="ignore", invalid="ignore"):
        p = first / first.sum(axis=-1, keepdims=True)
        q = second / second.sum(axis=-1, keepdims=True)
    middle = (p + q) / 2
    bits: Floats = (rel_entr(p, middle) + rel_entr(q, middle)) / (2 * np.log(2))
    # Rounding errors can make a contribution of 0 negative.
    return np.maximum(bits, 0.0)


# Test for words that became more typical of one of two groups from one run to another.
#
# A word's difference is the share of the marked group's documents that contain the word, minus the share of the
# unmarked group's documents that contain it. The test statistic of a word is the change of the word's difference
# from one run to another, divided by the change's standard deviation under permuted run labels. Because many words
# are tested at once, the critical value comes from the permutation distribution of the largest statistic (max-T;
# Westfall and Young 1993).
#
# Each statistic has a bonus: the word's association with the group in both runs together, at most `LARGEST_BONUS`
# standard deviations. The bonus makes words that are typical of a group easier to find. Permuted run labels do not
# change the association, so that the error rate stays valid (weighted hypotheses: Genovese, Roeder and Wasserman
# 2006).

LARGEST_BONUS = 3.0
"""Largest association, in standard deviations, that is added to a word's statistic. A larger limit would let words
with a strong, unchanged association hide a new word."""
CHUNK = 2**20
"""Largest number of values in memory at the same time while statistics are computed."""
SIGNS = np.array([1.0, -1.0])
"""Sign of a change towards the marked group, and of a change towards the unmarked group."""


class NeededDocuments(NamedTuple):
    """Number of documents of a group in which a new word must occur so that its growth is significant.

    `documents` is `None` if the growth is not significant even if the word occurs in all documents.
    """

    documents: int | None
    group_size: int


@dataclass(frozen=True)
class ShareGrowth:
    """Documents of two groups in two runs, prepared for the test of all words.

    Attributes:
        sizes: (strata, 2, 2) number of documents by stratum, group (marked, unmarked) and run (current, baseline). Only
            strata in which both runs have both groups are included.
        weights: (strata,) weight of each stratum, adding up to 1.
        change_by_document: (documents, words) how much a word's change increases if the document moves from the
            baseline to the current run.
        change_without_current: (words,) each word's change if all documents belonged to the baseline.
        error: (words,) standard deviation of each word's change under permuted run labels; 0 if the change cannot vary.
        bonus: (2, words) association with the marked and with the unmarked group in both runs together, in standard
            deviations, 0..`LARGEST_BONUS`.
        shares: (2, 2, words) weighted share of documents that contain the word, by group and run.
    """

    sizes: Floats
    weights: Floats
    change_by_document: csr_array
    change_without_current: Floats
    error: Floats
    bonus: Floats
    shares: Floats

    @classmethod
    def of(cls, present: csr_array, marked: Bools, strata: Ints, current: Bools) -> ShareGrowth:
        """Count the documents with each word by group and run; leave out strata in which a run lacks a group.

        Raises:
            ValueError: no stratum holds both groups in both runs.
        """
        # Deferred, as scipy is not needed to load a probe.
        from scipy.sparse import csr_array

        number = int(strata.max()) + 1
        cells = strata * 4 + 2 * ~marked + ~current
        sizes = np.bincount(cells, minlength=4 * number).reshape(number, 2, 2).astype(np.float64)
        weights = precision(*sizes.reshape(number, 4).T)
        if not weights.any():
            raise ValueError("no stratum holds both groups in both runs")
        weights /= weights.sum()
        used = weights > 0
        by_cell: csr_array = csr_array((np.ones(len(cells)), (cells, np.arange(len(cells)))), (4 * number, len(cells)))
        held = (by_cell @ present).toarray().reshape(number, 2, 2, -1)[used]
        inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=used[:, None, None])
        sign = np.where(marked, SIGNS[0], SIGNS[1]) * weights[strata]
        moved = sign * inverse[strata, np.where(marked, 0, 1)].sum(axis=1)
        sizes, inverse, weights = sizes[used], inverse[used], weights[used]
        shares = np.einsum("s,sgrw,sgr->grw", weights, held, inverse)
        return cls(
            sizes=sizes,
            weights=weights,
            change_by_document=csr_array(present.multiply(moved[:, None])),
            # If all documents belonged to the baseline, the current run's shares would be 0.
            change_without_current=-np.einsum("s,g,sgw,sg->w", weights, SIGNS, held.sum(axis=2), inverse[:, :, 1]),
            error=_difference_sd(held.sum(axis=2), sizes[..., 0], sizes[..., 1], weights),
            bonus=_association_bonus(held.sum(axis=2), sizes.sum(axis=2), weights),
            shares=shares,
        )

    @property
    def growth(self) -> Floats:
        """Return each word's growth towards the marked group and towards the unmarked group; shape (2, words).

        The difference for a group is the word's share in the group minus its share in the other group. The growth is
        the increase of this difference since the baseline, at least 0. A negative difference in the baseline counts as
        0, so that a return to equality is no growth.
        """
        current, baseline = SIGNS[:, None] * (self.shares[0] - self.shares[1])[:, None]
        return np.asarray(np.maximum(0.0, current - np.maximum(0.0, baseline)))

    def statistics(self, current: Bools) -> Floats:
        """Return (2, draws, words) statistics of the growth towards the marked and towards the unmarked group.

        In each stratum and group, each of the (draws, documents) draws assigns as many documents to the current run as
        this run really has.
        """
        change = (self.change_by_document.T @ current.T.astype(np.float64)).T + self.change_without_current
        standardised = np.divide(change, self.error, out=np.zeros_like(change), where=self.error > 0)
        return np.stack([sign * standardised + bonus for sign, bonus in zip(SIGNS, self.bonus, strict=True)])

    def largest_statistics(self, current: Bools) -> Floats:
        """Return the largest statistic of all words and both groups, for each draw; shape (draws,)."""
        rows = max(1, CHUNK // max(self.change_by_document.shape))
        parts = [current[start : start + rows] for start in range(0, len(current), rows)]
        return np.concatenate([self.statistics(part).max(axis=(0, 2)) for part in parts])

    def documents_needed(self, threshold: float, least: float) -> NeededDocuments:
        """Return in how many of a group's documents a new word must occur to be significant.

        The word is assumed to be spread evenly over the strata. The result is for the group in which the word needs the
        larger share of the current run's documents. `threshold` is the critical value of the word's statistic, and
        `least` the smallest share of documents that counts as material growth.
        """
        needed: list[NeededDocuments] = []
        for group in (0, 1):
            total = int(self.sizes[:, group, 0].sum())
            counts = np.arange(1, total + 1)
            held = np.zeros((len(self.sizes), 2, total))
            held[:, group] = self.sizes[:, group, :1] * counts / total
            bonus = _association_bonus(held, self.sizes.sum(axis=2), self.weights)[group]
            error = _difference_sd(held, self.sizes[..., 0], self.sizes[..., 1], self.weights)
            significant = (counts / total / error + bonus > threshold) & (counts / total >= least - 1e-9)
            needed.append(NeededDocuments(int(counts[np.argmax(significant)]) if significant.any() else None, total))
        return largest_needed(needed)


def smallest_share(needed: NeededDocuments, power: float = intervals.POWER) -> float:
    """Return the true share of texts with a new word, 0..1, at which a run finds the word with probability `power`.

    The share is infinite if not even all documents would be enough (Clopper and Pearson 1934).
    """
    # Deferred, as scipy is not needed to load a probe.
    from scipy.special import betaincinv

    least, group_size = needed
    return math.inf if least is None else float(betaincinv(least, group_size - least + 1, power))


def largest_needed(needed: Iterable[NeededDocuments]) -> NeededDocuments:
    return max(needed, key=smallest_share)


def _association_bonus(held: Floats, sizes: Floats, weights: Floats) -> Floats:
    """Return each word's association with each group, 0..`LARGEST_BONUS` standard deviations; shape (2, words).

    The standard deviation is computed under permuted group labels. `held` are the (strata, 2, words) numbers of
    documents with the word, and `sizes` the (strata, 2) numbers of all documents, by group.
    """
    shares = held / sizes[..., None]
    difference = weights @ (shares[:, 0] - shares[:, 1])
    error = _difference_sd(held.sum(axis=1, keepdims=True), sizes[:, :1], sizes[:, 1:], weights)
    association = np.divide(difference, error, out=np.zeros_like(difference), where=error > 0)
    return np.asarray(np.clip(SIGNS[:, None] * association, 0.0, LARGEST_BONUS))


def _difference_sd(held: Floats, first: Floats, second: Floats, weights: Floats) -> Floats:
    """Return the standard deviation of each word's difference under permuted labels; shape (words,).

    The difference is the share of documents with the word under the first label, minus the share under the second, as a
    weighted sum over strata. The labels are runs or groups, and are permuted within cells. If the labels are runs, a
    cell is a group within a stratum; if they are groups, a stratum is a single cell. The number of documents of a cell
    with the word and the first label is hypergeometric. `held` are (strata, cells, words) numbers of documents.
    """
    total = first + second
    # Variance of the hypergeometric count, times the squared contribution of one document to the difference of shares.
    per_document = weights[:, None] * (1 / first + 1 / second)
    factor = per_document**2 * first * second / (total**2 * np.maximum(total - 1, 1))
    return np.asarray(np.sqrt(np.einsum("sc,scw->w", factor, held * (total[..., None] - held))))
