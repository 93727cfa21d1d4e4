"""Counterfactual versions of a prompt: the same text with the terms of another group."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pytest_fairness.languages.swaps.terms import SwapTerms


@dataclass(frozen=True)
class Swap:
    """A prompt and its versions.

    Attributes:
        group: group that the prompt names.
        versions: text for each requested group; for `group`, the prompt itself.
        placebo: the prompt with a change that names no other group; `None` if no such change is possible.
        replaced: terms of the prompt that the versions replace, with their positions.
        warnings: reasons to read the versions before they are used.
    """

    group: str
    versions: Mapping[str, str]
    placebo: str | None
    replaced: tuple[tuple[str, int], ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeftOut:
    """A prompt without versions.

    Attributes:
        reason: why the prompt has no versions, for the user.
    """

    reason: str


def swap(text: str, terms: SwapTerms, groups: Sequence[str]) -> Swap | LeftOut:
    """Return the versions of a prompt for the groups, or the reason why the prompt has none."""
    found = list(_pattern(terms).finditer(text))
    if not found:
        return LeftOut("no term found")
    index = _index(terms)
    cells = [index[match[0].casefold()] for match in found]
    columns = {column for _, column in cells}
    if len(columns) > 1:
        return LeftOut(f"names several groups: {', '.join(terms.groups[column] for column in sorted(columns))}")
    replaced = tuple((match[0], match.start()) for match in found)
    versions = {}
    for group in groups:
        column = terms.groups.index(group)
        pieces, end = [], 0
        for match, (row, _) in zip(found, cells, strict=True):
            pieces += [text[end : match.start()], like(match[0], terms.rows[row][column])]
            end = match.end()
        versions[group] = "".join([*pieces, text[end:]])
    (own,) = columns
    versions.update({terms.groups[own]: text} if terms.groups[own] in versions else {})
    return Swap(terms.groups[own], versions, None, replaced)


def like(written: str, term: str) -> str:
    """Return the term with the capitalisation of the written word that it replaces."""
    if written.isupper() and len(written) > 1:
        return term.upper()
    return term[0].upper() + term[1:] if written[0].isupper() else term


@lru_cache(maxsize=8)
def _index(terms: SwapTerms) -> dict[str, tuple[int, int]]:
    """Return the row and the column of each term."""
    return {term.casefold(): (row, column) for row, own in enumerate(terms.rows) for column, term in enumerate(own)}


@lru_cache(maxsize=8)
def _pattern(terms: SwapTerms) -> re.Pattern[str]:
    """Return a regular expression that finds the terms, the longest first."""
    ordered = sorted(_index(terms), key=lambda term: (-len(term), term))
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, ordered))})(?!\w)", re.IGNORECASE)
