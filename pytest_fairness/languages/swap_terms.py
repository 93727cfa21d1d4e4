"""Terms of groups in prompts: the user's own lists, noun phrases in German, French and Spanish, and placebos.

Functions that search a text raise `CannotSwapError` if its terms cannot be swapped.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from pytest_fairness.errors import FairnessError

# The terms of a group in a prompt, and the text that replaces them in the version of each group.

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
        replacements: replacements of terms, articles and verbs, in their order in the prompt.
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
    if written.isupper() and sum(map(str.isalpha, written)) > 1:
        return term.upper()
    return term[:1].upper() + term[1:] if written[:1].isupper() else term


def article(text: str, start: int, term: str, forms: Sequence[str | None]) -> Replacement | None:
    """Return the replacement of the article "a" or "an" before a term that is swapped; `None` if no article changes."""
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
    different = sorted(set(columns))
    if not different:
        raise CannotSwapError("the prompt names no group")
    if len(different) > 1:
        raise CannotSwapError(f"the prompt names several groups: {', '.join(groups[column] for column in different)}")
    return different[0]


# Lists of terms that name groups; each row has one term for each group.

GENDER = "gender"
"""Name of the built-in list."""
BUILT_IN = {
    "en": ("male", "female", "neutral"),
    "de": ("male", "female"),
    "fr": ("male", "female"),
    "es": ("male", "female"),
}
"""Groups of the built-in list of each language."""


class SwapTermsError(FairnessError):
    """Error in a list of terms, whose rows must pair the terms of the groups one to one.

    Args:
        row: number of the row with the error, from 1; `None` for an error of the groups or of the whole list.
    """

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


@dataclass(frozen=True)
class SwapTerms:
    """Terms of groups in one language.

    Attributes:
        groups: names of the groups, in the order of the terms in a row.
        rows: rows with one term for each group; empty for a built-in list, whose terms are in a data file.
        code: ISO 639 code of the language of the terms.
    """

    groups: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    code: str = "en"
    name: str = ""

    @classmethod
    def of_rows(cls, groups: Sequence[str], rows: Iterable[Sequence[str]], code: str = "en") -> SwapTerms:
        """Return the list of terms that a user gives, or raise `SwapTermsError` for rows that are not pairs."""
        if len(groups) < 2 or len(set(groups)) < len(groups):
            raise SwapTermsError(f"A swap needs two or more different groups, not {', '.join(groups) or 'none'}.")
        checked: list[tuple[str, ...]] = []
        seen: dict[str, tuple[int, str]] = {}
        for number, row in enumerate(rows, 1):
            if len(row) != len(groups):
                raise SwapTermsError(
                    f"Row {number} has {len(row)} terms. Give one term for each group: {', '.join(groups)}.", number
                )
            terms = tuple(" ".join(term.split()) for term in row)
            for group, term in zip(groups, terms, strict=True):
                if not term:
                    raise SwapTermsError(
                        f"Row {number} has no term for {group}. Add the term, or remove the row.", number
                    )
                if before := seen.get(term.casefold()):
                    raise SwapTermsError(
                        f"'{term}' of {group} in row {number} is also a term of {before[1]} in row {before[0]}. "
                        "Give each term once, so that it has one counterpart.",
                        number,
                    )
                seen[term.casefold()] = number, group
            checked.append(terms)
        if not checked:
            raise SwapTermsError("The list of terms has no rows. Add a row with one term for each group.")
        return cls(tuple(groups), tuple(checked), code)

    @classmethod
    def built_in(cls, name: str, code: str) -> SwapTerms:
        """Return the list `gender` of English, German, French or Spanish, or raise `LookupError`."""
        if name == GENDER and code in BUILT_IN:
            return cls(BUILT_IN[code], (), code, name)
        raise LookupError(f"There is no built-in list '{name}' for the language '{code}'.")


# Search of a prompt for the terms of a user's own list.


def listed_terms(text: str, terms: SwapTerms) -> Reading:
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
    return {term.lower(): (row, column) for row, own in enumerate(terms.rows) for column, term in enumerate(own)}


@lru_cache(maxsize=8)
def _pattern(terms: SwapTerms) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){either(map(re.escape, _cells_by_term(terms)))}(?!\w)", re.IGNORECASE)


# Placebo of a prompt: the same text with a change that names no other group.

_NOT = ["do", "does", "did", "is", "are", "was", "were", "has", "have", "had", "could", "would", "should"]
_EXPANDED = {f"{verb}n't": f"{verb} not" for verb in _NOT} | {"can't": "cannot", "won't": "will not"}
_EXPANDED_I = {"i'm": "I am", "i've": "I have", "i'll": "I will"}
_CONTRACTED = {full: short for short, full in _EXPANDED.items()} | {"I am": "I'm"}
_AFTER_VERB = (
    "i|you|we|they|it|he|she|my|your|our|their|his|her|the|an?|this|that|these|those|anyone|someone"  # "Don't you …"
)
_SHORT = re.compile(
    rf"(?<=[^\W\d_] )(?<!why )(?<!how )(?<!what )(?<!and )(?<!but )(?<!or )(?:{'|'.join(_EXPANDED)})"
    rf"(?= (?!(?:{_AFTER_VERB})\b)\w)|\b(?:{'|'.join(_EXPANDED_I)})(?= \w)".replace("'", "['’]"),
    re.IGNORECASE,
)
_LONG = re.compile(rf"(?<=[^\W\d_] )(?:{'|'.join(_CONTRACTED)})(?= \w)|\bI am(?= \w)")
_THANKS = {"en": "Thank you.", "de": "Danke.", "fr": "Merci.", "es": "Gracias."}
_SENTENCE_END = re.compile(r"[.!?][\"”')\]]*\s*$")
_STRAIGHT = re.compile(r"(?<=\w)'(?=\w)")
_CURLY = re.compile(r"(?<=\w)’(?=\w)")


def placebo(text: str, reading: Reading, code: str) -> str | None:
    """Return the prompt with a change that names no other group; `None` if no such change is possible.

    Names are replaced by other names of the same group. In a prompt without names, contractions or the form of
    apostrophes are changed, or a final "Thank you" is added.
    """
    if reading.placebos:
        return replaced(text, [(item.start, item.text, str(item.forms[0])) for item in reading.placebos])
    if code == "en" and (changed := _other_contractions(text)) != text:
        return changed
    for marks, other in ((_STRAIGHT, "’"), (_CURLY, "'")):
        if marks.search(text):
            return marks.sub(other, text)
    if code not in _THANKS:
        return None
    return text.rstrip() + (" " if _SENTENCE_END.search(text) else "\n") + _THANKS[code]


def _other_contractions(text: str) -> str:
    """Return the text with "don't" changed to "do not"; if it has no such contraction, "do not" becomes "don't"."""

    def expanded(match: re.Match[str]) -> str:
        short = match[0].lower().replace("’", "'")
        return _EXPANDED_I.get(short) or like(match[0][0], _EXPANDED[short])

    return _SHORT.sub(expanded, text) if _SHORT.search(text) else _LONG.sub(lambda match: _CONTRACTED[match[0]], text)


# Data files of swaps.


@cache
def data(name: str) -> Mapping[str, Any]:
    return tomllib.loads(
        files("pytest_fairness.languages").joinpath("data", "swaps", f"{name}.toml").read_text("utf-8")
    )


def either(alternatives: Iterable[str]) -> str:
    """Return a regular expression that matches any of the alternatives; longer alternatives are tried first."""
    return f"(?:{'|'.join(sorted(alternatives, key=lambda pattern: (-len(pattern), pattern)))})"
