"""The terms of a group in a prompt, and the text that replaces them in the version of each group."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_ARTICLE = re.compile(r"(?<!\w)an?(?= $)", re.IGNORECASE)
_VOWEL = re.compile(
    r"heir|honest|honou?r|hour|(?!eu|one\b|once|uk|us[aeu]|uni(?!n|m)|u[bcdfghjklmpqrstvwxyz][aeiou])[aeiouáéíóú]",
    re.IGNORECASE,
)


NEUTRAL = 2
"""Column of the gender-neutral forms in the built-in list `gender`; 0 is male, and 1 is female."""


class CannotSwapError(Exception):
    """Error for a prompt that cannot be swapped; the message is the reason."""


@dataclass(frozen=True)
class Replacement:
    """A piece of a prompt, and the text that replaces the piece in the version of each group.

    Attributes:
        start: position of the piece in the prompt.
        text: the piece as it is written.
        forms: text for each group, in the order of the groups; `None` for a group without a counterpart.
        is_term: whether the piece names a group; `False` for articles, and for verbs that agree with a pronoun.
    """

    start: int
    text: str
    forms: tuple[str | None, ...]
    is_term: bool = True


@dataclass(frozen=True)
class Reading:
    """The terms of a prompt, which all name the same group.

    Attributes:
        column: position of the group in the list of groups.
        replacements: replacements of terms, articles and verbs, in their order in the prompt.
        placebos: replacements of names by other names of the same group; each has a single form.
        warnings: reasons to read the versions before they are used.
        one_way: whether a version that is swapped back differs from the prompt.
    """

    column: int
    replacements: tuple[Replacement, ...]
    placebos: tuple[Replacement, ...] = ()
    warnings: tuple[str, ...] = ()
    one_way: bool = False


def replaced(text: str, pieces: Iterable[tuple[int, str, str]]) -> str:
    """Return the text with all pieces replaced; `pieces` are (position, text, new text), in order of position."""
    parts, end = [], 0
    for start, old, new in pieces:
        parts += [text[end:start], new]
        end = start + len(old)
    return "".join([*parts, text[end:]])


def like(written: str, term: str) -> str:
    """Return the term with the capitalisation of the written word that it replaces."""
    if written.isupper() and sum(map(str.isalpha, written)) > 1:
        return term.upper()
    return term[:1].upper() + term[1:] if written[:1].isupper() else term


def article(text: str, start: int, term: str, forms: Sequence[str | None]) -> Replacement | None:
    """Return the replacement of the article "a" or "an" before a term that is swapped; `None` if no article changes.

    Args:
        text: the prompt.
        start: position of the term.
        term: the term.
        forms: see `Replacement`.
    """
    written = _ARTICLE.search(text, max(0, start - 3), start)
    if written is None or written[0].lower() != _article_of(term):
        return None
    articles = tuple(_article_of(form or term) for form in forms)
    if written[0][0].isupper():
        articles = tuple(word.upper() if len(term) > 1 and term.isupper() else word.capitalize() for word in articles)
    return Replacement(written.start(), written[0], articles, is_term=False) if len(set(articles)) > 1 else None


def _article_of(term: str) -> str:
    return "an" if _VOWEL.match(term) else "a"


def group_column(columns: Sequence[int], groups: Sequence[str]) -> int:
    """Return the column of the only group that a prompt names.

    Raises:
        CannotSwapError: the prompt names no group or several groups.
    """
    different = sorted(set(columns))
    if not different:
        raise CannotSwapError("the prompt names no group")
    if len(different) > 1:
        raise CannotSwapError(f"the prompt names several groups: {', '.join(groups[column] for column in different)}")
    return different[0]
