"""Frame of the audits that measure by one number how far the texts of two groups are apart.

An audit gives its features of documents, a statistic of many labellings at once, the errors and the details. The frame
relabels the documents within strata for the test of one run, and swaps the documents of two runs within cells (group
and stratum) for the test of their change.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from pytest_fairness.audits.base import AuditItem, SettingsT
from pytest_fairness.audits.text.documents import Documents, join_runs
from pytest_fairness.audits.text.groups import Groups
from pytest_fairness.audits.text.text_audit import TextAudit
from pytest_fairness.probes.generation.model import GenerationProbe
from pytest_fairness.records import Answer, Comparison, Json, Measurement
from pytest_fairness.stats.arrays import Bools, Floats, Ints
from pytest_fairness.stats.intervals import normal
from pytest_fairness.stats.resampling import randomness, relabelling, significance

SUBSAMPLES = 20
"""Cuts to equal size that are averaged where two runs hold different numbers of documents."""


class Features(Protocol):
    """Documents of one run, or of two, as an audit measures them."""

    @property
    def marked(self) -> Bools:
        """(documents,) whether the document is of the marked group."""

    @property
    def strata(self) -> Ints:
        """(documents,) number of the document's stratum."""

    @property
    def cells(self) -> Ints:
        """(documents,) number of the document's group within its stratum."""

    @property
    def current(self) -> Bools:
        """(documents,) whether the document is of this run; all `True` for a single run."""


FeaturesT = TypeVar("FeaturesT", bound=Features)


@dataclass(frozen=True)
class Estimate:
    """An estimated value or change.

    Attributes:
        value: the estimate.
        standard_error: its standard error.
        interval: its two-sided 95 % confidence interval.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]

    @classmethod
    def normal(cls, value: float, standard_error: float) -> Self:
        """Return an estimate with the interval of the normal distribution."""
        return cls(value, standard_error, normal.interval(value, standard_error))


@dataclass(frozen=True)
class Relabelled(Generic[FeaturesT]):
    """The statistic of one run, as observed and with relabelled documents.

    Attributes:
        documents: the documents of the run.
        features: the same as features; repeated documents may be left out.
        observed: (parts,) the statistic.
        null: (labellings, parts) the statistic of each relabelling.
        exact: whether `null` holds all relabellings there are.
    """

    documents: Documents
    features: FeaturesT
    observed: Floats
    null: Floats
    exact: bool


@dataclass(frozen=True)
class RunChange(Generic[FeaturesT]):
    """The change between two runs, and what its test needs.

    Attributes:
        estimate: the change.
        features: the documents of both runs.
        cuts: selections of this run's and of the baseline's documents at equal size, (cuts, documents) each.
    """

    estimate: Estimate
    features: FeaturesT
    cuts: tuple[Bools, Bools]


class TwoSampleAudit(TextAudit[SettingsT], Generic[SettingsT, FeaturesT]):
    """An audit of one number that says how far the texts of two groups are apart.

    Class attributes:
        permutations: relabellings of one run.
        swap_batches: swaps of run labels, in batches whose selections take less memory than the documents.
    """

    permutations: ClassVar[int] = 1999
    swap_batches: ClassVar[Sequence[int]] = (1999,)

    @abstractmethod
    def features(self, item: AuditItem[SettingsT], documents: Documents) -> FeaturesT:
        """Return the documents of one run as features."""

    @abstractmethod
    def statistic(self, features: FeaturesT, marked: Bools) -> Floats:
        """Return the statistic of one run for each labelling of its documents, (labellings, parts)."""

    @abstractmethod
    def tested(self, features: FeaturesT, statistic: Floats) -> Floats:
        """Return the number that is tested, from a statistic of shape (..., parts)."""

    @abstractmethod
    def estimate(self, item: AuditItem[SettingsT], run: Relabelled[FeaturesT]) -> Estimate:
        """Return the value of one run with its error."""

    @abstractmethod
    def explain(
        self, item: AuditItem[SettingsT], groups: Groups, run: Relabelled[FeaturesT], random: np.random.Generator
    ) -> Mapping[str, Json]:
        """Return the details of a measurement.

        Args:
            item: the item.
            groups: its answers.
            run: the measured documents.
            random: source of randomness, after the relabelling.
        """

    @abstractmethod
    def distance(self, features: FeaturesT, selected: Bools) -> Floats:
        """Return how far the groups are apart in each (selections, documents) selection from two runs."""

    @abstractmethod
    def change(
        self, item: AuditItem[SettingsT], current: Documents, baseline: Documents, random: np.random.Generator
    ) -> RunChange[FeaturesT]:
        """Return the change from the baseline with its error."""

    def relabelled(
        self, item: AuditItem[SettingsT], documents: Documents, random: np.random.Generator | None = None
    ) -> Relabelled[FeaturesT]:
        """Return the statistic of one run with relabelled documents, by the same draws whenever the run is measured."""
        random = randomness.generator(f"{item.seed}/measure") if random is None else random
        features = self.features(item, documents)
        observed = self.statistic(features, features.marked[None])[0]
        labels, exact = relabelling.relabellings(features.marked, features.strata, self.permutations, random)
        return Relabelled(documents, features, observed, self.statistic(features, labels), exact)

    def measure(self, probe: GenerationProbe, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> Measurement:
        """Return the value with its error and permutation test; see `Audit.measure`."""
        groups = Groups.of(probe, item, answers)
        random = randomness.generator(f"{item.seed}/measure")
        run = self.relabelled(item, Documents.of(probe, groups), random)
        estimate = self.estimate(item, run)
        null, observed = (self.tested(run.features, each) for each in (run.null, run.observed))
        return Measurement(
            value=estimate.value,
            interval=estimate.interval,
            standard_error=estimate.standard_error,
            p_value=significance.p_value(null, float(observed), exact=run.exact),
            n=groups.usable,
            missing=groups.missing,
            details=self.explain(item, groups, run, random),
        )

    def compare(
        self,
        probe: GenerationProbe,
        item: AuditItem[SettingsT],
        current: Sequence[Answer],
        baseline: Sequence[Answer],
    ) -> Comparison:
        """Return the change with its error, and its test by swapped run labels; see `Audit.compare`."""
        runs = [Documents.of_answers(probe, item, run) for run in (current, baseline)]
        random = randomness.generator(f"{item.seed}/compare")
        change = self.change(item, runs[0], runs[1], random)
        features = change.features

        def difference(cut: tuple[Bools, Bools]) -> Floats:
            found: Floats = self.distance(features, cut[0]) - self.distance(features, cut[1])
            return found

        swaps = (relabelling.run_swaps(features.current, features.cells, count, random) for count in self.swap_batches)
        null = np.concatenate([difference(swap) for swap in swaps])
        return Comparison(
            value=change.estimate.value,
            interval=change.estimate.interval,
            standard_error=change.estimate.standard_error,
            p_value=significance.p_value(null, float(difference(change.cuts).mean()), exact=False),
        )


def equal_size(features: Features, random: np.random.Generator) -> tuple[Bools, Bools]:
    """Return selections of this run's and of the baseline's documents at equal size; see `resampling.equal_size`."""
    return relabelling.equal_size(features.current, features.cells, SUBSAMPLES, random)


@dataclass(frozen=True)
class DocumentFeatures:
    """Features in the order of the documents, which none of them leaves out.

    Attributes:
        documents: the documents.
        current: (documents,) whether the document is of this run.
    """

    documents: Documents
    current: Bools

    @property
    def marked(self) -> Bools:
        """(documents,) whether the document is of the marked group."""
        return self.documents.marked

    @property
    def strata(self) -> Ints:
        """(documents,) number of the document's stratum."""
        return self.documents.strata

    @property
    def cells(self) -> Ints:
        """(documents,) number of the document's group within its stratum."""
        return self.documents.cells


def joined_documents(current: Documents, baseline: Documents) -> DocumentFeatures:
    """Return the documents of two runs together."""
    return DocumentFeatures(*join_runs(current, baseline))
