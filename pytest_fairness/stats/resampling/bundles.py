"""Bundles of units, which get their labels together, so that the permutation of many units takes little memory.

A label is a unit's group or, if two runs are compared, a unit's run. The units of each stratum (each cell, for runs)
are dealt at random, without regard to their labels, to packs of equal size; units that are left over form smaller
packs. A relabelling gives all units of a pack the same label. A bundle holds the units of a pack that have the same
observed label.

Each relabelling is as random as a relabelling of single units, because the packs are random. But the relabellings of
one test share the packs: the standard deviation of a null distribution from P packs has a relative error of about
1 / √(2 P).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.stats.arrays import Bools, Floats, Ints
from pytest_fairness.stats.resampling import relabelling

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LARGEST_UNBUNDLED = 2**15
"""Largest number of units that are relabelled one by one."""
PACKS = 1024
"""Approximate number of packs."""


@dataclass(frozen=True)
class Bundles:
    """Units in bundles, and bundles in packs, so that a permutation test draws fewer labels.

    The units of a bundle have the same observed label. The units of a pack get the same label in each relabelling.

    Attributes:
        numbers: (units,) bundle number of each unit.
        sizes: (bundles,) number of units.
        packs: (bundles,) pack number.
        pack_labels: (packs,) labels that relabellings permute; they mark as many units of each stratum as the observed
            labels.
        pack_sets: (packs,) set number of each pack; labels are permuted within a set (packs of one stratum and size).
    """

    numbers: Ints
    sizes: Floats
    packs: Ints
    pack_labels: Bools
    pack_sets: Ints

    @classmethod
    def of(cls, observed: Bools, strata: Ints, random: np.random.Generator) -> Bundles:
        """Deal the units of each stratum at random to packs, and return their bundles.

        Args:
            observed: (units,) observed label of each unit.
            strata: (units,) stratum number of each unit; relabellings keep the number of each label in each stratum.
            random: random generator.
        """
        size = max(1, len(observed) // PACKS)
        pack_of = np.empty(len(observed), dtype=np.int64)
        labels: list[Bools] = []
        sets: list[Ints] = []
        packs = 0
        for stratum in np.unique(strata):
            units = random.permutation(np.flatnonzero(strata == stratum))
            rest = np.array([np.count_nonzero(observed[units]), np.count_nonzero(~observed[units])])
            # Units that are left over form smaller packs, so that each group keeps its number of units.
            for pack_size in sorted({size, max(1, math.isqrt(size)), 1}, reverse=True):
                packs_by_group = rest // pack_size
                rest -= packs_by_group * pack_size
                count = int(packs_by_group.sum())
                pack_of[units[: count * pack_size]] = packs + np.repeat(np.arange(count), pack_size)
                units = units[count * pack_size :]
                labels.append(np.arange(count) < packs_by_group[0])
                sets.append(np.full(count, len(sets)))
                packs += count
        keys, numbers = np.unique(2 * pack_of + observed, return_inverse=True)
        return cls(
            numbers=numbers,
            sizes=np.bincount(numbers).astype(np.float64),
            packs=keys // 2,
            pack_labels=np.concatenate(labels),
            pack_sets=np.concatenate(sets),
        )

    def relabellings(self, count: int, random: np.random.Generator) -> Bools:
        """Return the labels of the bundles for random relabellings of their packs; shape (count, bundles)."""
        labels, _ = relabelling.relabellings(self.pack_labels, self.pack_sets, count, random)
        return labels[:, self.packs]

    def indicator(self, start: int = 0, end: int | None = None) -> csr_array:
        """Return a (bundles, units) matrix of the units from `start` to `end`: 1 if a bundle has the unit, else 0."""
        from scipy.sparse import csr_array

        own = self.numbers[start:end]
        return csr_array((np.ones(len(own)), (own, np.arange(len(own)))), shape=(len(self.sizes), len(own)))
