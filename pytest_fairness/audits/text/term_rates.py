"""How often the terms of a lexicon occur in the answers of two groups, document by document."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from pytest_fairness.audits.anonymizer import normalise, words
from pytest_fairness.audits.terms import Terms
from pytest_fairness.audits.text.documents import text_of
from pytest_fairness.audits.text.groups import Groups, comparable, numbered
from pytest_fairness.errors import NotMeasurable
from pytest_fairness.stats.arrays import Bools, Floats, Ints
from pytest_fairness.stats.groups import stratified_difference

PER = 100
"""Words that a rate is given for."""


@dataclass(frozen=True)
class Rates:
    """Documents of one run with the occurrences of the terms.

    Attributes:
        found: (documents) how often each term occurs in the document; terms that do not are left out.
        words: (documents,) words of the document as it is written, at least as many as terms occur in it.
        marked: (documents,) whether it is of the marked group.
        strata: (documents,) number of its stratum.
        stratum_names: the strata by their numbers.
        texts: (documents) the documents themselves.
    """

    found: tuple[Mapping[str, int], ...]
    words: Floats
    marked: Bools
    strata: Ints
    stratum_names: tuple[str, ...]
    texts: tuple[str, ...]

    @classmethod
    def of(cls, groups: Groups, terms: tuple[str, ...]) -> Rates:
        """Count the terms in the usable answers of both groups, without those in strata that hold one group only.

        Nothing is removed from the texts: words for groups are words of an answer like any other, and may be terms.

        Raises:
            NotMeasurable: too few such answers.
        """
        kept = comparable(groups)
        names, strata = numbered([groups.strata[index] for index in kept])
        texts = tuple(text_of(groups.answers[index]) for index in kept)
        counted = [counts(text, terms) for text in texts]
        return cls(
            found=tuple(found for found, _ in counted),
            words=np.array([number for _, number in counted], dtype=np.float64),
            marked=np.array([groups.marked[index] for index in kept], dtype=np.bool_),
            strata=strata,
            stratum_names=names,
            texts=texts,
        )

    @property
    def cells(self) -> Ints:
        """(documents,) number of the document's group within its stratum."""
        return self.strata * 2 + self.marked

    @cached_property
    def hits(self) -> Floats:
        """Return (documents,) occurrences of any of the terms."""
        return np.array([sum(found.values()) for found in self.found], dtype=np.float64)

    @cached_property
    def rates(self) -> Floats:
        """Return (documents,) occurrences per 100 words."""
        return PER * self.hits / self.words

    @cached_property
    def weights(self) -> Floats:
        """(strata,) weights of the strata's differences."""
        return stratified_difference.precision(
            *stratified_difference.cell_sizes(self.marked, self.strata, len(self.stratum_names))
        )

    @cached_property
    def coefficients(self) -> Floats:
        """(documents,) of the mean difference within strata; those of the marked group add up to 1, others to -1."""
        return stratified_difference.coefficients(self.marked, self.strata, self.weights)

    def gap(self) -> float:
        """Return the mean rate of the marked minus that of the unmarked documents, within strata."""
        return float(self.coefficients @ self.rates)

    def means(self) -> tuple[float, float]:
        """Return the mean rates of the marked and of the unmarked documents, whose difference is the gap."""
        share = self.coefficients * self.rates
        return float(share[self.marked].sum()), -float(share[~self.marked].sum())

    def error(self, weights: Floats | None = None) -> tuple[float, float]:
        """Return the standard error of the gap and its degrees of freedom; `weights` other than the run's own.

        It is never below the error of two occurrences in all: of terms that happened not to occur it is not known that
        they never do.
        """
        error, degrees = stratified_difference.difference_error(
            self.rates, self.marked, self.strata, self.weights if weights is None else weights
        )
        sizes = [int(self.marked.sum()), int((~self.marked).sum())]
        least = PER / float(self.words.mean()) * math.hypot(*(1 / size for size in sizes))
        return max(error, least), degrees

    def by_term(self) -> dict[str, tuple[float, float, int]]:
        """Return each term that occurs, with both groups' mean rates and the number of documents that hold it."""
        rates: dict[str, list[float]] = {}
        documents: Counter[str] = Counter()
        for found, coefficient, number in zip(self.found, self.coefficients, self.words, strict=True):
            documents.update(found.keys())
            for term, count in found.items():
                side = rates.setdefault(term, [0.0, 0.0])
                side[int(coefficient < 0)] += float(PER * count / number * abs(coefficient))
        return {term: (marked, unmarked, documents[term]) for term, (marked, unmarked) in rates.items()}


def counts(text: str, terms: tuple[str, ...]) -> tuple[Mapping[str, int], int]:
    """Return how often each term occurs in a text, and how many words the text has: at least 1."""
    found = Counter(finder(terms).found(text))
    return found, max(1, len(words(normalise(text))), found.total())


@dataclass(frozen=True)
class TwoRates:
    """Documents of this run and of the baseline in one array; strata are matched by their names.

    Attributes:
        current, baseline: the runs.
        strata: (documents,) number of the stratum, common to both runs; the current run's documents come first.
    """

    current: Rates
    baseline: Rates
    strata: Ints

    @classmethod
    def of(cls, current: Rates, baseline: Rates) -> TwoRates:
        """Put the runs together.

        Raises:
            NotMeasurable: there is no stratum in which both runs hold both groups.
        """
        _, strata = numbered([run.stratum_names[number] for run in (current, baseline) for number in run.strata])
        runs = cls(current, baseline, strata)
        if not runs.weights.any():
            raise NotMeasurable("this run and the baseline have no stratum in common that holds both groups")
        return runs

    @property
    def is_current(self) -> Bools:
        """(documents,) whether of the current run."""
        return np.repeat([True, False], [len(self.current.words), len(self.baseline.words)])

    @property
    def marked(self) -> Bools:
        """(documents,) whether of the marked group."""
        return np.concatenate([self.current.marked, self.baseline.marked])

    @cached_property
    def weights(self) -> Floats:
        """(strata,) weights of the strata's differences, the same for both runs."""
        return stratified_difference.equal_size_weights(self.marked, self.strata, self.is_current)

    def gaps(self, cuts: int, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the (cuts,) gaps of both runs, cut to equal size."""
        return stratified_difference.at_equal_size(self._rates, self.marked, self.strata, self.is_current, cuts, random)

    def swapped(self, count: int, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the (count,) gaps of two runs that differ by chance only."""
        return stratified_difference.swapped(self._rates, self.marked, self.strata, self.is_current, count, random)

    def error(self) -> tuple[float, float]:
        """Return the standard error of the change of the gap, and its degrees of freedom."""
        runs = ((self.current, self.is_current), (self.baseline, ~self.is_current))
        errors = [replace(run, strata=self.strata[own]).error(self.weights) for run, own in runs]
        square = sum(error**2 for error, _ in errors)
        return math.sqrt(square), square**2 / sum(error**4 / degrees for error, degrees in errors)

    @property
    def _rates(self) -> Floats:
        return np.concatenate([self.current.rates, self.baseline.rates])


@lru_cache(maxsize=100)
def finder(terms: tuple[str, ...]) -> Terms:
    """Return what finds these terms in texts."""
    return Terms(terms)
