"""Growth of the difference between two groups' shares of documents that hold a word, from one run to another.

Each word is a column of zeros and ones. A word's difference is its share of the marked group's documents less its share
of the unmarked group's; the change of that difference between two runs, divided by its standard deviation under
permuted run labels, is the statistic. As many words are tested at once, the threshold is the permutation distribution
of the largest statistic (max-T; Westfall and Young 1993).

A word that is new in one group's documents is also associated with that group in the documents of both runs together,
and run labels say nothing about that association. It may therefore weight the tests without any effect on their level
(weighted hypotheses: Genovese, Roeder and Wasserman 2006): up to `CREDIT` standard deviations of it are added. Words
that neither group prefers, by far the most, then no longer raise the bar for the few that one group does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.stats.arrays import Bools, Floats, Ints
from pytest_fairness.stats.groups.stratified_difference import precision
from pytest_fairness.stats.intervals import normal

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Needed = tuple[int | None, int]
"""How many documents of a group must hold a word (`None`: not even all would do), and how many the group has."""

CREDIT = 3.0
"""Largest association, in standard deviations, that counts in favour of a word. More would let words whose association
is strong and steady hide a new one."""
CHUNK = 2**20
"""Numbers held at once while many statistics are computed."""
SIGNS = np.array([1.0, -1.0])
"""Of growth towards the marked, and towards the unmarked group."""


@dataclass(frozen=True)
class ShareGrowth:
    """Two runs of the documents of two groups, ready to be tested for words whose difference grew.

    Attributes:
        sizes: (strata, 2, 2) documents by stratum, group (marked, unmarked) and run (current, baseline); only strata
            in which both runs hold both groups.
        weights: (strata,) of the strata, adding up to 1.
        scaled: (documents, words) what a document adds to the change if it moves from the baseline to the current run.
        offset: (words,) the change if all documents were of the baseline.
        error: (words,) standard deviation of the change under permuted run labels; 0 where it cannot change.
        credit: (2, words) association with the marked and with the unmarked group in both runs together, in standard
            deviations, 0..`CREDIT`.
        shares: (2, 2, words) weighted shares of the documents by group and run.
    """

    sizes: Floats
    weights: Floats
    scaled: csr_array
    offset: Floats
    error: Floats
    credit: Floats
    shares: Floats

    @classmethod
    def of(cls, present: csr_array, marked: Bools, strata: Ints, current: Bools) -> ShareGrowth:
        """Return the prepared test; documents of strata in which a run lacks a group have no influence.

        Args:
            present: (documents, words) 1 where the document holds the word.
            marked: (documents,) whether the document is of the marked group.
            strata: (documents,) number of its stratum.
            current: (documents,) whether it is of the current run.

        Raises:
            ValueError: no stratum holds both groups in both runs.
        """
        number = int(strata.max()) + 1
        cells = strata * 4 + 2 * ~marked + ~current
        sizes = np.bincount(cells, minlength=4 * number).reshape(number, 2, 2).astype(np.float64)
        weights = precision(*sizes.reshape(number, 4).T)
        if not weights.any():
            raise ValueError("no stratum holds both groups in both runs")
        weights /= weights.sum()
        used = weights > 0
        held = _counts_by_cell(present, cells, 4 * number).reshape(number, 2, 2, -1)[used]
        inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=used[:, None, None])
        sign = np.where(marked, SIGNS[0], SIGNS[1]) * weights[strata]
        moved = sign * inverse[strata, np.where(marked, 0, 1)].sum(axis=1)
        sizes, inverse, weights = sizes[used], inverse[used], weights[used]
        shares = np.einsum("s,sgrw,sgr->grw", weights, held, inverse)
        return cls(
            sizes=sizes,
            weights=weights,
            scaled=_scaled(present, moved),
            # If every document were of the baseline, each cell would lose all its words from the current run's share.
            offset=-np.einsum("s,g,sgw,sg->w", weights, SIGNS, held.sum(axis=2), inverse[:, :, 1]),
            error=_change_error(held.sum(axis=2), sizes, weights),
            credit=_credit(held.sum(axis=2), sizes.sum(axis=2), weights),
            shares=shares,
        )

    @property
    def growth(self) -> Floats:
        """Return the (2, words) growth of the difference towards the marked and the unmarked group, at least 0.

        A baseline difference in favour of the other group counts as 0, so that a return to equality is no growth.
        """
        current, baseline = SIGNS[:, None] * (self.shares[0] - self.shares[1])[:, None]
        return np.asarray(np.maximum(0.0, current - np.maximum(0.0, baseline)))

    def statistics(self, current: Bools) -> Floats:
        """Return the statistic of each word towards either group.

        Args:
            current: (draws, documents) which documents are taken for those of the current run; in each stratum and
                group as many as are of it.

        Returns:
            (2, draws, words): towards the marked, and towards the unmarked group.
        """
        change = (self.scaled.T @ current.T.astype(np.float64)).T + self.offset
        standardised = np.divide(change, self.error, out=np.zeros_like(change), where=self.error > 0)
        return np.stack([sign * standardised + credit for sign, credit in zip(SIGNS, self.credit, strict=True)])

    def largest(self, current: Bools) -> Floats:
        """Return the largest statistic of all words towards either group, (draws,); argument as in `statistics`."""
        rows = max(1, CHUNK // max(self.scaled.shape))
        parts = [current[start : start + rows] for start in range(0, len(current), rows)]
        return np.concatenate([self.statistics(part).max(axis=(0, 2)) for part in parts])

    def documents_needed(self, threshold: float, least: float) -> Needed:
        """Return in how many documents a word that nobody used must be new to be found, and of how many there are.

        The documents are those of one group in the current run, spread evenly over the strata; the group is the one
        that needs the larger share.

        Args:
            threshold: which the word's statistic must exceed.
            least: share of the group's documents that the word must reach in any case.

        Returns:
            the documents needed, `None` where not even all of them would do, and the documents of the group.
        """
        found: list[Needed] = []
        for group in (0, 1):
            total = int(self.sizes[:, group, 0].sum())
            counts = np.arange(1, total + 1)
            held = np.zeros((len(self.sizes), 2, total))
            held[:, group] = self.sizes[:, group, :1] * counts / total
            credit = _credit(held, self.sizes.sum(axis=2), self.weights)[group]
            seen = counts / total / _change_error(held, self.sizes, self.weights) + credit > threshold
            seen &= counts / total >= least - 1e-9
            found.append((int(counts[np.argmax(seen)]) if seen.any() else None, total))
        return hardest(found)


def smallest_share(needed: Needed, power: float = normal.POWER) -> float:
    """Return the smallest probability of a word in a document that gives enough documents with it.

    Args:
        needed: how many documents must hold the word, and of how many.
        power: the probability that so many of them do.

    Returns:
        the share, 0..1 (Clopper and Pearson 1934); infinity where not even all documents would be enough.
    """
    # Deferred, as scipy is not needed to load a probe.
    from scipy.special import betaincinv

    least, documents = needed
    return math.inf if least is None else float(betaincinv(least, documents - least + 1, power))


def hardest(needed: Iterable[Needed]) -> Needed:
    """Return the one that takes the largest share of the documents."""
    return max(needed, key=smallest_share)


def _counts_by_cell(present: csr_array, cells: Ints, number: int) -> Floats:
    """Return (cells, words) numbers of documents that hold the word; `cells` is (documents,)."""
    words = present.shape[1]
    places = np.repeat(cells, np.diff(present.indptr)) * words + present.indices
    return np.bincount(places, minlength=number * words).reshape(number, words).astype(np.float64)


def _scaled(present: csr_array, factors: Floats) -> csr_array:
    """Return the rows of `present` times (documents,) factors."""
    scaled = present.copy()
    scaled.data = np.repeat(factors, np.diff(present.indptr))
    return scaled


def _change_error(held: Floats, sizes: Floats, weights: Floats) -> Floats:
    """Return (words,) standard deviations of the change under permuted run labels: hypergeometric in each cell.

    Args:
        held: (strata, 2, words) documents of both runs that hold the word, by group.
        sizes: (strata, 2, 2) documents by stratum, group and run.
        weights: (strata,) of the strata.
    """
    return _spread(held, sizes[..., 0], sizes[..., 1], weights)


def _credit(held: Floats, sizes: Floats, weights: Floats) -> Floats:
    """Return (2, words) association with either group, in standard deviations under permuted groups, 0..`CREDIT`.

    Args:
        held: (strata, 2, words) documents of both runs that hold the word, by group.
        sizes: (strata, 2) documents of both runs, by group.
        weights: (strata,) of the strata.
    """
    shares = held / sizes[..., None]
    difference = weights @ (shares[:, 0] - shares[:, 1])
    error = _spread(held.sum(axis=1, keepdims=True), sizes[:, :1], sizes[:, 1:], weights)
    association = np.divide(difference, error, out=np.zeros_like(difference), where=error > 0)
    return np.asarray(np.clip(SIGNS[:, None] * association, 0.0, CREDIT))


def _spread(held: Floats, first: Floats, second: Floats, weights: Floats) -> Floats:
    """Return (words,) standard deviations of summed differences of shares whose labels are permuted within cells.

    Args:
        held: (strata, cells, words) documents that hold the word.
        first, second: (strata, cells) documents of either label.
        weights: (strata,) of the strata.
    """
    total = first + second
    # Variance of the hypergeometric count, times the square of what one document adds to the difference of shares.
    per_document = weights[:, None] * (1 / first + 1 / second)
    factor = per_document**2 * first * second / (total**2 * np.maximum(total - 1, 1))
    return np.asarray(np.sqrt(np.einsum("sc,scw->w", factor, held * (total[..., None] - held))))
