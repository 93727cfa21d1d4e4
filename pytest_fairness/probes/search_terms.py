"""Search terms: words, phrases, and stems such as `lead*`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from pytest_fairness.probes.diagnostics import quoted

STEM = "*"
"""Marks a word of a term as a stem, which stands for all words that begin with it."""
SHORTEST_STEM = 2
"""Fewest letters of a stem: a shorter one stands for a large part of all words."""


def folded(text: str) -> str:
    """Return the text as terms are compared: compatibility forms, letter case, apostrophes and blanks do not matter."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return " ".join(part for part in re.split(r"[\s-]+", plain) if part)


def error(term: str, what: str = "term") -> str | None:
    """Return the error of a term and its remedy; `None` if the term can be searched for.

    Args:
        term: the term as it is written.
        what: the word for a term in the message.
    """
    parts = folded(term).split(" ")
    if not any(character.isalnum() for character in "".join(parts)):
        return f"{quoted(term)} holds no letter or digit: a {what} is a word"
    for part in parts:
        stem = part.removesuffix(STEM)
        if STEM in stem:
            return f"{quoted(term)}: `*` stands at the end of a word, as in lead*"
        if stem != part and sum(character.isalnum() for character in stem) < SHORTEST_STEM:
            return f"{quoted(term)}: a stem has at least {SHORTEST_STEM} letters before its `*`, as in lead*"
    return None


def errors(terms: Iterable[str], what: str = "term") -> Iterator[tuple[int, str]]:
    """Yield index and error of each term that is invalid or repeats an earlier one."""
    seen: set[str] = set()
    for place, term in enumerate(terms):
        if (message := error(term, what)) is not None:
            yield place, message
        elif (form := folded(term)) in seen:
            yield place, f"{quoted(term)} is repeated: each {what} counts once"
        else:
            seen.add(form)
