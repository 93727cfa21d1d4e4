"""Search of a prompt for the terms of a user's own list."""

from __future__ import annotations

import re
from functools import lru_cache

from pytest_fairness.languages.swaps.data_files import either
from pytest_fairness.languages.swaps.reading import Reading, Replacement, article, group_column, like
from pytest_fairness.languages.swaps.terms import SwapTerms


def read(text: str, terms: SwapTerms) -> Reading:
    """Find the listed terms in a prompt, and return them with their replacements.

    Raises:
        CannotSwapError: the prompt names no group or several groups.
    """
    index = _cells_by_term(terms)
    columns, replacements = [], []
    for match in _pattern(terms).finditer(text):
        # A few letters, such as the long s, match without being the same in lower case.
        if (cell := index.get(match[0].lower())) is None:
            continue
        row, column = cell
        columns.append(column)
        in_lower_case = match[0] != terms.rows[row][column] and match[0].islower()
        forms = tuple(term.lower() if in_lower_case else like(match[0], term) for term in terms.rows[row])
        if terms.code == "en" and (before := article(text, match.start(), match[0], forms)):
            replacements.append(before)
        replacements.append(Replacement(match.start(), match[0], forms))
    return Reading(group_column(columns, terms.groups), tuple(replacements))


@lru_cache(maxsize=8)
def _cells_by_term(terms: SwapTerms) -> dict[str, tuple[int, int]]:
    """Return the row and the column of each term, by the term in lower case."""
    return {term.lower(): (row, column) for row, own in enumerate(terms.rows) for column, term in enumerate(own)}


@lru_cache(maxsize=8)
def _pattern(terms: SwapTerms) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){either(map(re.escape, _cells_by_term(terms)))}(?!\w)", re.IGNORECASE)
