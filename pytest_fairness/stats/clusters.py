"""Clusters: units (answers, records) that were not drawn independently and count as one observation together.

A cluster is a name, a template or a set of near-copies, and belongs to one group. Arrays of units have the shape
(units, …), those of clusters (clusters, …).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pytest_fairness.stats import resampling
from pytest_fairness.stats.resampling import Bools, Floats, Ints
from pytest_fairness.stats.strata import StratifiedValues
from pytest_fairness.stats.two_samples import centred

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Correlation(NamedTuple):
    """Intraclass correlation of the units of clusters: the share of their variance that a cluster's units share, 0..1.

    `p_value` is that of the null hypothesis of no correlation.
    """

    rho: float
    p_value: float


@dataclass(frozen=True)
class Clusters:
    """Clusters of units in two groups and in strata.

    Strata that a cluster joins, such as the prompts that a name stands in, are one stratum of the clusters.

    Attributes:
        numbers: (units,) number of each unit's cluster.
        marked: (clusters,) whether the cluster belongs to the marked group.
        strata: (clusters,) stratum number.
        names: (clusters,) name of each cluster.
    """

    numbers: Ints
    marked: Bools
    strata: Ints
    names: tuple[Hashable, ...]

    @classmethod
    def of(cls, names: Sequence[Hashable], marked: Bools, strata: Ints) -> Clusters:
        """Return the clusters of the units that have the same name and belong to the same group."""
        # Deferred, as scipy is not needed to load a probe.
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        known: dict[tuple[Hashable, bool], int] = {}
        keys = zip(names, marked.tolist(), strict=True)
        numbers = np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)
        first, number = np.unique(numbers, return_index=True)[1], int(strata.max()) + 1
        edges = csr_array((np.ones(len(numbers)), (strata, number + numbers)), shape=2 * (number + len(known),))
        joined = connected_components(edges, directed=False)[1][number:]
        names = tuple(name for name, _ in known)
        return cls(numbers, marked[first], np.unique(joined, return_inverse=True)[1].astype(np.int64), names)

    def only(self, indices: Ints) -> Clusters:
        """Return the clusters of the units with these indices."""
        numbers = self.numbers[indices]
        return Clusters.of(numbers.tolist(), self.marked[numbers], self.strata[numbers])

    def stratum_names(self, names: Sequence[str], strata: Ints) -> tuple[str, ...]:
        """Return the name of each stratum of the clusters, from the names and the (units,) strata of the units.

        It is that of the first stratum among those that are joined.
        """
        first = np.unique(self.strata[self.numbers], return_index=True)[1]
        return tuple(names[strata[place]] for place in first)

    @cached_property
    def sizes(self) -> Ints:
        """Return the number of units of each cluster."""
        return np.bincount(self.numbers).astype(np.int64)

    @cached_property
    def membership(self) -> csr_array:
        """Return the (clusters, units) matrix with a 1 for each unit of a cluster; it adds up units."""
        from scipy.sparse import csr_array

        units = np.arange(len(self.numbers))
        return csr_array((np.ones(len(units), np.int32), (self.numbers, units)))

    def means(self, values: Floats) -> Floats:
        """Return the mean of the (units, …) values of each cluster."""
        return np.asarray(((self.membership @ values).T / self.sizes).T)

    def values(self, values: StratifiedValues) -> StratifiedValues:
        """Return the means of the clusters as values."""
        return StratifiedValues(self.means(values.values), self.marked, self.strata, (), values.least_error)

    def relabellings(self, count: int, random: np.random.Generator) -> tuple[Bools, bool]:
        """Return (draws, units) labels after permutation of whole clusters; see `resampling.relabellings`."""
        labels, exact = resampling.relabellings(self.marked, self.strata, count, random)
        return labels[:, self.numbers], exact

    @property
    def numbers_by_group(self) -> tuple[int, int]:
        """Return the numbers of clusters of the marked and of the unmarked group."""
        return int(self.marked.sum()), int((~self.marked).sum())

    @property
    def degrees_of_freedom(self) -> int:
        """Return the degrees of freedom of differences between the groups' clusters within strata; at least 1."""
        return max(1, len(self.sizes) - 2 - int(self.strata.max()))

    @property
    def smallest_p_value(self) -> float:
        """Return the smallest p-value of a one-sided test that permutes whole clusters within strata."""
        number = int(self.strata.max()) + 1
        sizes = (np.bincount(self.strata[side], minlength=number).tolist() for side in (self.marked, ~self.marked))
        return 1 / math.prod(math.comb(first + second, first) for first, second in zip(*sizes, strict=True))

    def correlation(self, kernel: Floats, strata: Ints) -> Correlation:
        """Return the intraclass correlation of units with these (units, units) inner products and stratum numbers.

        It comes from an analysis of variance of clusters within groups, without the means of strata. The degrees of
        freedom of the F test are multiplied by the effective dimension of the vectors, (tr Σ)² / tr Σ² (Box 1954).
        """
        from scipy.special import fdtrc

        residuals = centred(centred(kernel, strata).T, strata)
        in_clusters = np.asarray(self.membership @ (self.membership @ residuals).T)
        total, clusters = float(residuals.trace()), float((in_clusters.diagonal() / self.sizes).sum())
        of_groups = sum(
            float(in_clusters[np.ix_(side, side)].sum() / self.sizes[side].sum())
            for side in (self.marked, ~self.marked)
        )
        joined, units = int(self.strata.max()) + 1, len(self.numbers)
        free = len(self.sizes) - 1 - joined
        left = units - len(self.sizes) - (len(np.unique(strata)) - joined)
        if free <= 0 or left <= 0 or total <= 0:
            return Correlation(0.0, 1.0)
        between, within = max(0.0, clusters - of_groups) / free, max(0.0, total - clusters) / left
        if within <= total * 1e-12:
            return Correlation(1.0, 0.0)
        ratio = between / within
        rho = (ratio - 1) / (ratio + self.mean_size - 1)
        dimension = total**2 / float((residuals**2).sum())
        return Correlation(max(0.0, rho), float(fdtrc(dimension * free, dimension * left, ratio)))

    @property
    def mean_size(self) -> float:
        """Return the mean number of units of the cluster of a unit."""
        return float((self.sizes**2).sum() / self.sizes.sum())


CARRIES = 4.0
"""A cluster carries a value if it moves the value by more than so many standard deviations of what others do."""


def carrier(value: float, without: Floats) -> int | None:
    """Return the cluster without which at most half of the value is left, and which is an outlier; else `None`.

    `without` are the (clusters,) values without each cluster.
    """
    moved = np.sign(value) * (value - without)
    place = int(moved.argmax())
    others = np.delete(moved, place)
    if len(others) < 2 or 2 * moved[place] < abs(value) or moved[place] <= others.mean() + CARRIES * others.std():
        return None
    return place


def combined_error(errors: Sequence[float], alone: float) -> float:
    """Return the standard error if units belong to clusters of several kinds, such as names and templates.

    The variances of the kinds are added, and that of independent units, which each of them holds, is subtracted
    (Cameron, Gelbach and Miller 2011); the result is at least the largest of the errors.
    """
    variance = sum(error**2 for error in errors) - (len(errors) - 1) * alone**2
    return math.sqrt(max(variance, max(errors) ** 2))


class Gap(NamedTuple):
    """A gap between two groups' means with its standard error, degrees of freedom and two-sided p-value."""

    value: float
    standard_error: float
    degrees_of_freedom: float
    p_value: float


def gap_of(values: StratifiedValues, samples: Sequence[Clusters], random: np.random.Generator) -> Gap:
    """Return the gap of the values, tested by the means of clusters; of each kind of clusters, if there are several.

    Without clusters, each value is an observation.
    """
    tested = [each.values(values) for each in samples] or [values]
    errors, degrees = zip(*(each.error() for each in tested), strict=True)
    error = errors[0] if len(errors) == 1 else combined_error(errors, values.error()[0])
    return Gap(values.gap(), error, min(degrees), max(each.p_value(random) for each in tested))


def gaps_without(values: StratifiedValues) -> Floats:
    """Return the gap without each of the values; 0 if a group has no other value."""
    kept = ~np.eye(len(values.values), dtype=np.bool_)
    gaps = np.zeros(len(kept))
    for place, own in enumerate(kept):
        rest = StratifiedValues(values.values[own], values.marked[own], values.strata[own], (), 0.0)
        if rest.weights.any():
            gaps[place] = rest.gap()
    return gaps
