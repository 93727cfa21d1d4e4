"""Documents of two groups with a statistic of their distance, and the statistic's null distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Self, TypeVar

import numpy as np

from pytest_fairness.audits.text.documents import Documents
from pytest_fairness.stats.arrays import Bools, Floats
from pytest_fairness.stats.intervals.estimate import Estimate
from pytest_fairness.stats.resampling import relabelling, significance

ERROR_PERMUTATIONS = 499
"""Number of permutations from which the null distribution's standard deviation is computed; a p-value needs more."""


@dataclass(frozen=True)
class Sample(ABC):
    """Documents of one or of two runs, with a statistic of the distance between their two groups.

    Attributes:
        documents: the documents; a subclass may leave out repeated documents.
    """

    documents: Documents

    @abstractmethod
    def statistic(self, marked: Bools) -> Floats:
        """Return the statistic for each labelling of the documents; shape (labellings, parts).

        The statistic may have several parts, such as one for each stratum.
        """

    @abstractmethod
    def test_statistic(self, statistic: Floats) -> Floats:
        """Return the number that is tested, computed from the parts of `statistic` (its last axis).

        The result keeps the other axes of `statistic`, such as the labellings.
        """

    @abstractmethod
    def value_of(self, run: Relabelled[Self]) -> float:
        """Return the audit's value of this run."""

    @abstractmethod
    def estimate(self, run: Relabelled[Self], random: np.random.Generator) -> Estimate:
        """Return the audit's value of this run with its standard error."""

    @abstractmethod
    def distance(self, selected: Bools) -> Floats:
        """Return the distance between the groups for each row of `selected`, a (selections, documents) mask."""

    def distance_change(self, current: Bools, baseline: Bools) -> Floats:
        """Return the distance in the current run minus the distance in the baseline; shape (selections,).

        Args:
            current, baseline: (selections, units) whether the unit belongs to the run.
        """
        change: Floats = self.distance(current) - self.distance(baseline)
        return change

    @abstractmethod
    def word_strengths(self) -> tuple[Sequence[str], Floats]:
        """Return the words, and how much each word distinguishes the groups, at least 0.

        Which group uses a word more is decided by `Usage.sides`.
        """


SampleT = TypeVar("SampleT", bound=Sample)


@dataclass(frozen=True)
class Relabelled(Generic[SampleT]):
    """The statistic of one run, with the observed labels and with permuted labels.

    The permuted statistic is computed at its first use.

    Attributes:
        sample: documents of the run.
        permutations: number of relabellings.
        random: random generator of the relabellings.
    """

    sample: SampleT
    permutations: int
    random: np.random.Generator

    @cached_property
    def observed(self) -> Floats:
        """Return the statistic with the observed labels; shape (parts,), see `Sample.statistic`."""
        parts: Floats = self.sample.statistic(self.sample.documents.marked[None])[0]
        return parts

    @property
    def null(self) -> Floats:
        """Return the statistic with labels permuted within strata; shape (labellings, parts)."""
        return self._null[0]

    @property
    def excess(self) -> Floats:
        """Return the statistic minus its mean with permuted labels; shape (parts,)."""
        excess: Floats = self.observed - self.null.mean(axis=0)
        return excess

    @property
    def null_sd(self) -> float:
        """Return the standard deviation of the test statistic with permuted labels."""
        return float(self.sample.test_statistic(self.null).std())

    @property
    def value(self) -> float:
        """Return the audit's value of the run; see `Sample.value_of`."""
        return self.sample.value_of(self)

    @property
    def p_value(self) -> float:
        """Return the p-value of the null hypothesis that the groups do not differ."""
        null, exact = self._null
        observed = float(self.sample.test_statistic(self.observed))
        return significance.p_value(self.sample.test_statistic(null), observed, exact=exact)

    @cached_property
    def _null(self) -> tuple[Floats, bool]:
        """Return the null distribution, and whether it holds all possible relabellings."""
        documents = self.sample.documents
        labels, exact = relabelling.relabellings(documents.marked, documents.strata, self.permutations, self.random)
        return self.sample.statistic(labels), exact
