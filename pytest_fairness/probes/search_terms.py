"""Terms that texts are searched for: words, phrases, and stems such as `lead*`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from pytest_fairness.probes.loading.diagnostics import quoted

STEM = "*"
"""Ends a word of a term that stands for all words which begin so."""
SHORTEST_STEM = 2
"""Fewest letters of a stem: a shorter one stands for a large part of all words."""


def folded(text: str) -> str:
    """Text as terms are compared: compatibility forms, letter case, apostrophes and blanks do not matter."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return " ".join(part for part in re.split(r"[\s-]+", plain) if part)


def fault(term: str, what: str = "term") -> str | None:
    """Return what is wrong with a term, and the cure; `None` where it can be found in a text.

    Args:
        term: as it is written.
        what: what the term is called in the message.
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


def faults(terms: Iterable[str], what: str = "term") -> Iterator[tuple[int, str]]:
    """Yield the place of each term that is at fault or repeats an earlier one, and what is wrong with it."""
    seen: set[str] = set()
    for place, term in enumerate(terms):
        if (wrong := fault(term, what)) is not None:
            yield place, wrong
        elif (form := folded(term)) in seen:
            yield place, f"{quoted(term)} is there already: each {what} counts once"
        else:
            seen.add(form)
