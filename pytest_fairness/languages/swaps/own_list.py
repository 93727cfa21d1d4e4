"""Reading of a prompt by a list of rows of terms."""

from __future__ import annotations

import re
from functools import lru_cache

from pytest_fairness.languages.swaps.reading import Reading, Replacement, article, group_column, like
from pytest_fairness.languages.swaps.terms import SwapTerms


def read(text: str, terms: SwapTerms) -> Reading:
    """Return the terms of a prompt.

    Raises:
        CannotSwapError: the prompt has no versions.
    """
    index = _index(terms)
    found = [(match, *index[match[0].casefold()]) for match in _pattern(terms).finditer(text)]
    replacements = []
    for match, row, _ in found:
        forms = tuple(like(match[0], term) for term in terms.rows[row])
        if terms.code == "en" and (before := article(text, match.start(), match[0], forms)):
            replacements.append(before)
        replacements.append(Replacement(match.start(), match[0], forms))
    return Reading(group_column([column for *_, column in found], terms.groups), tuple(replacements))


@lru_cache(maxsize=8)
def _index(terms: SwapTerms) -> dict[str, tuple[int, int]]:
    """Return the row and the column of each term."""
    return {term.casefold(): (row, column) for row, own in enumerate(terms.rows) for column, term in enumerate(own)}


@lru_cache(maxsize=8)
def _pattern(terms: SwapTerms) -> re.Pattern[str]:
    """Return a regular expression that finds the terms, the longest first."""
    ordered = sorted(_index(terms), key=lambda term: (-len(term), term))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, ordered))})(?!\w)", re.IGNORECASE)
