"""Search terms: words, phrases, and stems such as `lead*`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from pytest_fairness.probes.diagnostics import quoted

STEM = "*"
"""Mark at the end of a stem; a stem matches every word that begins with the stem."""
SHORTEST_STEM = 2
"""Minimum number of letters of a stem: a shorter stem would match too many words."""


def normalized(text: str) -> str:
    """Return a text in the form in which search terms are compared.

    The form is in lower case and in the Unicode form NFKC, with straight apostrophes; each run of blanks and hyphens
    is replaced by a single blank.
    """
    plain = unicodedata.normalize("NFKC", text).casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return " ".join(part for part in re.split(r"[\s-]+", plain) if part)


def error(term: str, noun: str = "term") -> str | None:
    """Return the error message for an invalid term; `None` if the term is valid.

    Args:
        term: the term as it is written.
        noun: noun for the term in the message, such as "term" or "marker".
    """
    parts = normalized(term).split(" ")
    if not any(character.isalnum() for character in "".join(parts)):
        return f"{quoted(term)}: a {noun} must contain a letter or digit"
    for part in parts:
        stem = part.removesuffix(STEM)
        if STEM in stem:
            return f"{quoted(term)}: `*` is allowed only at the end of a word, as in lead*"
        if stem != part and sum(character.isalnum() for character in stem) < SHORTEST_STEM:
            return f"{quoted(term)}: a stem must have at least {SHORTEST_STEM} letters before its `*`, as in lead*"
    return None


def errors(terms: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the index and the error message of each term that is invalid or repeats an earlier term."""
    seen: set[str] = set()
    for place, term in enumerate(terms):
        if (message := error(term)) is not None:
            yield place, message
        elif (form := normalized(term)) in seen:
            yield place, f"{quoted(term)} is repeated: write each term once"
        else:
            seen.add(form)
