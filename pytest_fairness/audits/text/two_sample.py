"""Base class of audits whose value is one number for the distance between two groups' texts.

A subclass computes a sample (documents with a statistic), standard errors and details. The base class permutes group
labels within strata for the test of one run, and run labels within cells (group within stratum) for the test of a
change.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple

import numpy as np

from pytest_fairness.audits.base import SettingsT, WordRows
from pytest_fairness.audits.text.concerns import sampled_texts
from pytest_fairness.audits.text.documents import Documents, Runs
from pytest_fairness.audits.text.groups import Groups, TextItem
from pytest_fairness.audits.text.samples.sample import Relabelled, SampleT
from pytest_fairness.audits.text.text_audit import TwoGroupAudit
from pytest_fairness.audits.text.words.languages import language_details
from pytest_fairness.audits.text.words.usage import Usage
from pytest_fairness.records import Answers, Comparison, Concern, Json, Measurement
from pytest_fairness.stats.arrays import Bools, Floats
from pytest_fairness.stats.intervals.estimate import Estimate
from pytest_fairness.stats.resampling import randomness, significance
from pytest_fairness.stats.resampling.relabelling import RunCells

SUBSAMPLES = 20
"""Number of random cuts to equal size that are averaged if two runs have different numbers of documents."""


class SignedWords(NamedTuple):
    """Words with a weight each: above 0 if the marked group uses the word more (see `Usage.sides`), else below 0.

    Attributes:
        words: the words.
        weights: (words,) the signed strengths; see `Sample.word_strengths`.
    """

    words: Sequence[str]
    weights: Floats


@dataclass(frozen=True)
class RunChange(Generic[SampleT]):
    """The change between two runs, and the input of its test.

    Attributes:
        estimate: estimated change.
        both: documents of both runs together.
        cuts: two (cuts, documents) masks: the current run's documents and the baseline's documents, cut to equal size.
    """

    estimate: Estimate
    both: SampleT
    cuts: tuple[Bools, Bools]


class TwoSampleAudit(TwoGroupAudit[SettingsT], Generic[SettingsT, SampleT]):
    """Base class of audits whose value is one number for the distance between two groups' texts.

    Class attributes:
        permutations: number of relabellings in the test of one run.
        swap_batches: number of permutations in each batch of the test of a change; the batches are computed one after
            the other, and smaller batches need less memory. Other numbers give other random draws.
        word_statistic: name of the words' weights in the exported table of words; see `Sample.word_strengths`.
    """

    permutations: ClassVar[int] = 1999
    swap_batches: ClassVar[Sequence[int]] = (1999,)
    word_statistic: ClassVar[str]

    @abstractmethod
    def sample(self, item: TextItem[SettingsT], documents: Documents) -> SampleT:
        """Return the documents (of one run or of two runs) as a sample, with the audit's statistic."""

    @abstractmethod
    def explain(
        self, item: TextItem[SettingsT], groups: Groups, run: Relabelled[SampleT], words: SignedWords
    ) -> Mapping[str, Json]:
        """Return the details of a measurement of these groups.

        Args:
            item: item that is measured.
            groups: answers of both groups.
            run: sample of the run with its null distribution.
            words: the words of the sample; see `SignedWords`.
        """

    @abstractmethod
    def run_change(self, item: TextItem[SettingsT], runs: Runs, random: np.random.Generator) -> RunChange[SampleT]:
        """Return the change from the baseline with its standard error, and the input of its test."""

    def relabelled(self, item: TextItem[SettingsT], documents: Documents) -> Relabelled[SampleT]:
        """Return the statistic of one run with observed and permuted labels; each call permutes in the same way."""
        return Relabelled(self.sample(item, documents), self.permutations, randomness.generator(f"{item.seed}/measure"))

    def measure(self, item: TextItem[SettingsT], answers: Answers) -> Measurement:
        """Return the value with its standard error and permutation test; see `Audit.measure`."""
        groups = Groups.of(item, answers)
        documents = Documents.of(groups)
        run = self.relabelled(item, documents)
        estimate = run.sample.estimate(run, randomness.generator(f"{item.seed}/error"))
        words, strengths = run.sample.word_strengths()
        signed = SignedWords(words, Usage.of(documents.words, documents.marked, words).signed(strengths))
        return Measurement(
            value=estimate.value,
            interval=estimate.interval,
            standard_error=estimate.standard_error,
            p_value=run.p_value,
            n=groups.usable,
            missing=groups.missing,
            details={**self.explain(item, groups, run, signed), **language_details(item.probe)},
        )

    def value(self, item: TextItem[SettingsT], answers: Answers) -> float:
        """Return the value without its standard error and test; see `Audit.value`."""
        return self.relabelled(item, Documents.of(Groups.of(item, answers))).value

    def change(
        self,
        item: TextItem[SettingsT],
        current: Groups,
        baseline: Groups,
        random: np.random.Generator,
    ) -> Comparison:
        """Return the change with its standard error, tested by permutation of run labels; see `Audit.compare`."""
        runs = Runs.of(Documents.of(current), Documents.of(baseline))
        change = self.run_change(item, runs, random)
        both = change.both
        swaps = run_swaps(both.documents, self.swap_batches, random)
        null = np.concatenate([both.distance_change(*swap) for swap in swaps])
        return Comparison(
            value=change.estimate.value,
            interval=change.estimate.interval,
            standard_error=change.estimate.standard_error,
            p_value=significance.p_value(null, float(both.distance_change(*change.cuts).mean()), exact=False),
        )

    def concerns(self, item: TextItem[SettingsT], answers: Answers, measurement: Measurement) -> list[Concern]:
        """Return the concerns of `TextAudit.concerns`, and a note if only a sample of the texts is compared."""
        return [*super().concerns(item, answers, measurement), *sampled_texts(Groups.of(item, answers))]

    def word_rows(self, item: TextItem[SettingsT], answers: Answers, details: Mapping[str, Json]) -> WordRows:
        """Return a row for each word of both groups' texts, with its weight; see `Audit.word_rows`."""
        groups = Groups.of(item, answers)
        documents = Documents.of(groups)
        words, strengths = self.sample(item, documents).word_strengths()
        return Usage.of(documents.words, documents.marked, words).rows(self.word_statistic, strengths, groups.names)


def equal_size(both: Documents, random: np.random.Generator) -> tuple[Bools, Bools]:
    """Return random cuts of both runs to equal size in each cell; see `RunCells.cuts`.

    The two results are (cuts, documents) masks: of the current run's documents, and of the baseline's documents.
    """
    return RunCells.of(both.current, both.cells).cuts(SUBSAMPLES, random)


def run_swaps(both: Documents, counts: Sequence[int], random: np.random.Generator) -> Iterator[tuple[Bools, Bools]]:
    """Return batches of random exchanges of documents between the runs; see `RunCells.swaps`.

    Args:
        both: documents of both runs.
        counts: number of exchanges in each batch.
        random: random generator.

    Returns:
        two (exchanges, documents) masks: the documents of the current run, and the documents of the baseline.
    """
    cells = RunCells.of(both.current, both.cells)
    return (cells.swaps(count, random) for count in counts)
