"""Details of the audit `lexicon` for reports: the groups' rates, and the terms with the largest gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pytest_fairness.audits.text.groups import Groups
from pytest_fairness.audits.text.words.term_rates import Rates
from pytest_fairness.records import Json
from pytest_fairness.stats.groups.odds_ratio import odds_ratio

BOOTSTRAPS = 1999
SHOWN_TERMS = 20
DECIMALS = 12
"""Numbers are rounded to this many decimals before they are ordered, because of floating-point errors."""


def details(groups: Groups, rates: Rates, terms: Sequence[str], random: np.random.Generator) -> dict[str, Json]:
    """Return the details of a measurement: rates, counts, the odds ratio, and terms in order of their gaps.

    Args:
        groups: answers of the item.
        rates: rates of the terms in these answers.
        terms: terms of the lexicon.
        random: random generator for the interval and the test of the odds ratio.
    """
    sides = (rates.marked, ~rates.marked)
    by_term, gaps = rates.by_term(), rates.gaps()
    occurrences = np.stack([rates.hits, rates.words - rates.hits], axis=1)
    odds = odds_ratio(occurrences, rates.marked, rates.strata, BOOTSTRAPS, random)

    def by_group(numbers: Sequence[float]) -> dict[str, float]:
        return dict(zip((groups.marked_name, groups.unmarked_name), numbers, strict=True))

    return {
        "rates": by_group(rates.means()),
        "texts_with_terms": by_group([float((rates.hits[side] > 0).mean()) for side in sides]),
        "occurrences": by_group([int(rates.hits[side].sum()) for side in sides]),
        "tokens": by_group([int(rates.words[side].sum()) for side in sides]),
        "terms": [
            {
                "term": term,
                **dict(zip(("marked", "unmarked", "documents"), by_term[term], strict=True)),
                "gap": gaps[term],
            }
            for term in _largest_first(gaps)[:SHOWN_TERMS]
        ],
        "terms_in_lexicon": len(terms),
        "occurring_terms": len(by_term),
        "unused_terms": [term for term in terms if term not in by_term][:SHOWN_TERMS],
        "odds_ratio": dict(zip(("value", "interval", "p_value"), odds, strict=True)),
    }


def changed_terms(current: Rates, baseline: Rates) -> list[dict[str, Json]]:
    """Return at most `SHOWN_TERMS` terms whose gap changed, the largest change first."""
    gaps, before = current.gaps(), baseline.gaps()
    change = {term: gaps.get(term, 0.0) - before.get(term, 0.0) for term in {**gaps, **before}}
    return [
        {"term": term, "gap_before": before.get(term, 0.0), "gap": gaps.get(term, 0.0), "change": change[term]}
        for term in _largest_first(change)[:SHOWN_TERMS]
        if round(change[term], DECIMALS)
    ]


def _largest_first(numbers: Mapping[str, float]) -> list[str]:
    """Return the terms by decreasing absolute number, and in alphabetical order if numbers are equal."""
    return sorted(numbers, key=lambda term: (-abs(round(numbers[term], DECIMALS)), term))
