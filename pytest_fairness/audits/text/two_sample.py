"""Base class of audits whose value is one number for the distance between two groups' texts.

A subclass computes the features of documents, a statistic for many labellings at once, standard errors and details.
This class permutes group labels within strata for the test of one run, and run labels within cells (group within
stratum) for the test of a change.
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
"""Number of random cuts to equal size that are averaged if two runs have different numbers of documents."""


class Features(Protocol):
    """Documents of one or of two runs, in the form in which an audit measures them."""

    @property
    def marked(self) -> Bools:
        """Return whether each document belongs to the marked group; shape (documents,)."""

    @property
    def strata(self) -> Ints:
        """Return the stratum number of each document; shape (documents,)."""

    @property
    def cells(self) -> Ints:
        """Return the cell number of each document (group within stratum); shape (documents,)."""

    @property
    def current(self) -> Bools:
        """Return whether each document belongs to this run, shape (documents,); all `True` for a single run."""


FeaturesT = TypeVar("FeaturesT", bound=Features)


@dataclass(frozen=True)
class Estimate:
    """An estimated value or change.

    Attributes:
        value: the estimate.
        standard_error: standard error of `value`.
        interval: two-sided 95 % confidence interval of `value`.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]

    @classmethod
    def normal(cls, value: float, standard_error: float) -> Self:
        """Return an estimate with the confidence interval of the normal distribution."""
        return cls(value, standard_error, normal.interval(value, standard_error))


@dataclass(frozen=True)
class Relabelled(Generic[FeaturesT]):
    """The statistic of one run, with the observed labels and with permuted labels.

    Attributes:
        documents: documents of the run.
        features: features of the documents; repeated documents may be left out.
        observed: (parts,) statistic with the observed labels. It may have several parts, such as one for each stratum.
        null: (labellings, parts) statistic with permuted labels.
        exact: whether `null` holds all possible relabellings.
    """

    documents: Documents
    features: FeaturesT
    observed: Floats
    null: Floats
    exact: bool


@dataclass(frozen=True)
class RunChange(Generic[FeaturesT]):
    """The change between two runs, and the input of its test.

    Attributes:
        estimate: estimated change.
        features: documents of both runs.
        cuts: two (cuts, documents) masks: documents of this run, and of the baseline, cut to equal size.
    """

    estimate: Estimate
    features: FeaturesT
    cuts: tuple[Bools, Bools]


class TwoSampleAudit(TextAudit[SettingsT], Generic[SettingsT, FeaturesT]):
    """Base class of audits whose value is one number for the distance between two groups' texts.

    Class attributes:
        permutations: number of relabellings in the test of one run.
        swap_batches: sizes of the batches in which run labels are permuted for the test of a change; smaller batches
            use less memory.
    """

    permutations: ClassVar[int] = 1999
    swap_batches: ClassVar[Sequence[int]] = (1999,)

    @abstractmethod
    def features(self, item: AuditItem[SettingsT], documents: Documents) -> FeaturesT:
        """Return the features of the documents of one run."""

    @abstractmethod
    def statistic(self, features: FeaturesT, marked: Bools) -> Floats:
        """Return the statistic of one run for each labelling of its documents; shape (labellings, parts)."""

    @abstractmethod
    def test_statistic(self, features: FeaturesT, statistic: Floats) -> Floats:
        """Return the test statistic: one number, computed from the parts along the last axis of `statistic`."""

    @abstractmethod
    def estimate(self, item: AuditItem[SettingsT], run: Relabelled[FeaturesT]) -> Estimate:
        """Return the value of one run with its standard error."""

    @abstractmethod
    def explain(
        self, item: AuditItem[SettingsT], groups: Groups, run: Relabelled[FeaturesT], random: np.random.Generator
    ) -> Mapping[str, Json]:
        """Return the details of a measurement.

        Args:
            item: item that was measured.
            groups: answers of the item.
            run: statistic of the measured documents.
            random: random generator that was used for the relabelling.
        """

    @abstractmethod
    def distance(self, features: FeaturesT, selected: Bools) -> Floats:
        """Return the distance between the groups for each selection of documents.

        Args:
            features: documents of both runs.
            selected: (selections, documents) whether the document is selected.
        """

    @abstractmethod
    def change(
        self, item: AuditItem[SettingsT], current: Documents, baseline: Documents, random: np.random.Generator
    ) -> RunChange[FeaturesT]:
        """Return the change from the baseline with its standard error."""

    def relabelled(
        self, item: AuditItem[SettingsT], documents: Documents, random: np.random.Generator | None = None
    ) -> Relabelled[FeaturesT]:
        """Return the statistic of one run with the observed and with permuted labels.

        Without `random`, the permutations depend on the item's seed only, and are the same in each call.
        """
        random = randomness.generator(f"{item.seed}/measure") if random is None else random
        features = self.features(item, documents)
        observed = self.statistic(features, features.marked[None])[0]
        labels, exact = relabelling.relabellings(features.marked, features.strata, self.permutations, random)
        return Relabelled(documents, features, observed, self.statistic(features, labels), exact)

    def measure(self, probe: GenerationProbe, item: AuditItem[SettingsT], answers: Sequence[Answer]) -> Measurement:
        """Return the value with its standard error and permutation test; see `Audit.measure`."""
        groups = Groups.of(probe, item, answers)
        random = randomness.generator(f"{item.seed}/measure")
        run = self.relabelled(item, Documents.of(probe, groups), random)
        estimate = self.estimate(item, run)
        null, observed = (self.test_statistic(run.features, each) for each in (run.null, run.observed))
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
        """Return the change with its standard error, tested by permutation of run labels; see `Audit.compare`."""
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
    """Return random cuts of both runs to equal size in each cell; see `relabelling.equal_size`.

    The result is two (cuts, documents) masks: of this run's and of the baseline's documents.
    """
    return relabelling.equal_size(features.current, features.cells, SUBSAMPLES, random)


@dataclass(frozen=True)
class DocumentFeatures:
    """Base class of features that keep all documents, in their order.

    Attributes:
        documents: documents of one or of two runs.
        current: (documents,) whether the document belongs to this run.
    """

    documents: Documents
    current: Bools

    @property
    def marked(self) -> Bools:
        """Return whether each document belongs to the marked group; shape (documents,)."""
        return self.documents.marked

    @property
    def strata(self) -> Ints:
        """Return the stratum number of each document; shape (documents,)."""
        return self.documents.strata

    @property
    def cells(self) -> Ints:
        """Return the cell number of each document (group within stratum); shape (documents,)."""
        return self.documents.cells


def joined_documents(current: Documents, baseline: Documents) -> DocumentFeatures:
    """Return the documents of two runs in one object."""
    return DocumentFeatures(*join_runs(current, baseline))
