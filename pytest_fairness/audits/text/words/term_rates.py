"""Rates of a lexicon's terms in each answer for two groups, and the terms with the largest gaps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from pytest_fairness.audits.terms import Terms
from pytest_fairness.audits.text.document_values import DocumentValues
from pytest_fairness.audits.text.documents import text_of
from pytest_fairness.audits.text.groups import Groups, TextItem, comparable, sides_and_strata
from pytest_fairness.audits.text.words.lexicons import LexiconSettings
from pytest_fairness.audits.text.words.usage import SIDES, Usage
from pytest_fairness.languages.language import Language
from pytest_fairness.languages.words import normalise
from pytest_fairness.records import Json
from pytest_fairness.stats.arrays import Floats
from pytest_fairness.stats.groups.odds_ratio import odds_ratio
from pytest_fairness.stats.resampling import randomness

PER = 100
"""Number of words to which rates refer: a rate is the number of occurrences in this number of words."""
BOOTSTRAPS = 1999
SHOWN_TERMS = 20
DECIMALS = 12
"""Numbers are rounded to this many decimals before they are ordered, because of floating-point errors."""


@dataclass(frozen=True)
class Rates(DocumentValues):
    """Documents of one run, with the occurrences of a lexicon's terms; `values` are the rates per 100 words.

    The gap is the difference between the mean rates of both groups. The standard error of the gap is never smaller than
    the error that one occurrence of a term in each group causes: other documents may contain terms, even if these
    documents contain none.

    Attributes:
        terms: terms of the lexicon.
        found: for each document, the number of occurrences of each term; terms that do not occur are left out.
        words: (documents,) number of words of each document; at least the number of occurrences of terms in it.
        texts: text of each document.
    """

    terms: tuple[str, ...]
    found: tuple[Mapping[str, int], ...]
    words: Floats
    texts: tuple[str, ...]

    @classmethod
    def of(cls, item: TextItem[LexiconSettings], groups: Groups) -> Rates:
        """Return the counts of the terms in the usable answers of both groups, without strata that hold only one group.

        Identity terms are not removed from the texts, because they may be terms of the lexicon.

        Raises:
            NotMeasurable: a group has too few usable answers in strata that hold both groups.
        """
        terms = item.settings.terms(item.labels)
        indices = comparable(groups)
        marked, strata, names = sides_and_strata(groups, indices)
        texts = tuple(text_of(groups.answers[index]) for index in indices)
        counted = [counts(text, terms, groups.probe.language) for text in texts]
        words_ = np.array([number for _, number in counted], dtype=np.float64)
        sizes = [int(marked.sum()), int((~marked).sum())]
        return cls(
            values=PER * np.array([found.total() for found, _ in counted], dtype=np.float64) / words_,
            marked=marked,
            strata=strata,
            stratum_names=names,
            least_error=PER / float(words_.mean()) * math.hypot(*(1 / size for size in sizes)),
            item=item,
            groups=groups,
            terms=terms,
            found=tuple(found for found, _ in counted),
            words=words_,
            texts=texts,
        )

    @cached_property
    def hits(self) -> Floats:
        """Return the number of occurrences of all terms in each document; shape (documents,)."""
        return np.array([sum(found.values()) for found in self.found], dtype=np.float64)

    def by_term(self) -> dict[str, tuple[float, float, int]]:
        """Return, for each term that occurs, its mean rate in each group, and the number of documents with the term."""
        rates: dict[str, list[float]] = {}
        documents: Counter[str] = Counter()
        for found, coefficient, number in zip(self.found, self.coefficients, self.words, strict=True):
            documents.update(found.keys())
            for term, count in found.items():
                side = rates.setdefault(term, [0.0, 0.0])
                side[int(coefficient < 0)] += float(PER * count / number * abs(coefficient))
        return {term: (marked, unmarked, documents[term]) for term, (marked, unmarked) in rates.items()}

    def usage(self) -> Usage:
        """Return the uses of the terms that occur; a term's rate is its mean rate within strata."""
        by_term = self.by_term()
        uses, texts = np.zeros((2, 2, len(by_term)), dtype=np.int64)
        numbers = dict(zip(by_term, range(len(by_term)), strict=True))
        for found, of_marked in zip(self.found, self.marked.tolist(), strict=True):
            for term, count in found.items():
                uses[int(not of_marked), numbers[term]] += count
                texts[int(not of_marked), numbers[term]] += 1
        rates = np.array([rates for *rates, _ in by_term.values()]).reshape(-1, 2).T
        return Usage([*by_term], uses, texts, rates, np.array([self.marked.sum(), (~self.marked).sum()]))

    def gaps(self) -> dict[str, float]:
        """Return, for each term that occurs, the marked group's mean rate minus the unmarked group's mean rate."""
        return {term: marked - unmarked for term, (marked, unmarked, _) in self.by_term().items()}

    def details(self) -> dict[str, Json]:
        """Return rates, counts, the odds ratio with its interval and test, and the terms with the largest gaps."""
        sides = (self.marked, ~self.marked)
        by_term, gaps, usage = self.by_term(), self.gaps(), self.usage()
        side_of = dict(zip(usage.words, usage.sides.tolist(), strict=True))
        occurrences = np.stack([self.hits, self.words - self.hits], axis=1)
        random = randomness.generator(f"{self.item.seed}/odds")
        odds = odds_ratio(occurrences, self.marked, self.strata, BOOTSTRAPS, random)

        def by_group(numbers: Sequence[float]) -> dict[str, float]:
            return dict(zip(self.groups.names, numbers, strict=True))

        return {
            "rates": by_group(self.means()),
            "texts_with_terms": by_group([float((self.hits[side] > 0).mean()) for side in sides]),
            "occurrences": by_group([int(self.hits[side].sum()) for side in sides]),
            "tokens": by_group([int(self.words[side].sum()) for side in sides]),
            "terms": [
                {
                    "term": term,
                    **dict(zip(("marked", "unmarked", "documents"), by_term[term], strict=True)),
                    "gap": gaps[term],
                    "side": SIDES[int(side_of[term] < 0)],
                }
                for term in _largest_first(gaps)[:SHOWN_TERMS]
            ],
            "terms_in_lexicon": len(self.terms),
            "occurring_terms": len(by_term),
            "unused_terms": [term for term in self.terms if term not in by_term][:SHOWN_TERMS],
            "odds_ratio": dict(zip(("value", "interval", "p_value"), odds, strict=True)),
        }

    def change_details(self, baseline: Rates) -> dict[str, Json]:
        """Return at most `SHOWN_TERMS` terms whose gap changed, the largest change first."""
        gaps, before = self.gaps(), baseline.gaps()
        change = {term: gaps.get(term, 0.0) - before.get(term, 0.0) for term in {**gaps, **before}}
        return {
            "changed_terms": [
                {"term": term, "gap_before": before.get(term, 0.0), "gap": gaps.get(term, 0.0), "change": change[term]}
                for term in _largest_first(change)[:SHOWN_TERMS]
                if round(change[term], DECIMALS)
            ]
        }


def _largest_first(numbers: Mapping[str, float]) -> list[str]:
    """Return the terms by decreasing absolute number, and in alphabetical order if numbers are equal."""
    return sorted(numbers, key=lambda term: (-abs(round(numbers[term], DECIMALS)), term))


def counts(text: str, terms: tuple[str, ...], language: Language) -> tuple[Counter[str], int]:
    """Return the number of occurrences of each term in a text, and the text's number of words.

    The number of words is at least 1, and at least the number of occurrences of all terms.
    """
    occurrences = Counter(_finder(terms).found(text))
    return occurrences, max(1, len(language.words(normalise(text))), occurrences.total())


def rate(text: str, terms: tuple[str, ...], language: Language) -> float:
    """Return the number of occurrences of the terms in a text, per `PER` words."""
    occurrences, number = counts(text, terms, language)
    return PER * occurrences.total() / number


@lru_cache(maxsize=100)
def _finder(terms: tuple[str, ...]) -> Terms:
    return Terms(terms)
