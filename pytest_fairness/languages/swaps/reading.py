"""What is found in a prompt: the terms of its group, and the text that each group has in their place."""

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
    """Reason why a prompt has no versions."""


@dataclass(frozen=True)
class Replacement:
    """A piece of the prompt and the text that each group has in its place.

    Attributes:
        start: position of the piece in the prompt.
        text: the piece as it is written.
        forms: text for each group, in the order of the groups; `None` where a group has no such term.
        is_term: whether the piece names a group; verbs that agree with a pronoun do not.
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
        replacements: terms and verbs in their order.
        placebos: names of the same group for names in the prompt, in the form of replacements with one form.
        warnings: reasons to read the versions before they are used.
        one_way: whether swapping a version back gives a text that differs from the prompt.
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
    """Return the replacement of the article "a" or "an" before a term that is swapped; `None` if the article stays.

    Args:
        text: the prompt.
        start: position of the term.
        term: the term.
        forms: counterparts of the term.
    """
    found = _ARTICLE.search(text, max(0, start - 3), start)
    if found is None or found[0].lower() != _article_of(term):
        return None
    changed = tuple(_article_of(form or term) for form in forms)
    if found[0][0].isupper():
        changed = tuple(word.upper() if len(term) > 1 and term.isupper() else word.capitalize() for word in changed)
    return Replacement(found.start(), found[0], changed, is_term=False) if len(set(changed)) > 1 else None


def _article_of(term: str) -> str:
    return "an" if _VOWEL.match(term) else "a"


def group_column(columns: Sequence[int], groups: Sequence[str]) -> int:
    """Return the column of the only group that a prompt names.

    Raises:
        CannotSwapError: the prompt names no group or several groups.
    """
    found = sorted(set(columns))
    if not found:
        raise CannotSwapError("no term found")
    if len(found) > 1:
        raise CannotSwapError(f"names several groups: {', '.join(groups[column] for column in found)}")
    return found[0]
