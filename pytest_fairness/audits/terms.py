"""Search for terms in texts: whole words, phrases and stems, in any letter case and script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby

from pytest_fairness.languages.words import normalise
from pytest_fairness.probes.search_terms import STEM

_SEPARATOR = re.compile(r"[\s-]+")
_SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_ENDINGS = "(?:s|re|ll|ve|d|m)"


class Terms:
    """A list of terms that `found` finds in texts, as whole words or phrases and in any letter case.

    Args:
        terms: words, phrases and stems. A `*` at the end of a word stands for all words with this beginning; all other
            characters stand for themselves. A blank in a phrase also matches a line end or a hyphen.
    """

    def __init__(self, terms: Sequence[str]) -> None:
        forms = {_form(term): term for term in terms}
        # Longest first, so that "no woman" is not found as "woman"; then a word before its stem.
        ordered = sorted(forms, key=lambda form: (-len(form.replace(STEM, "")), form.count(STEM), form))
        self._terms = [(re.compile(_body(form)), forms[form]) for form in ordered]
        patterns = (
            f"{before}(?:{'|'.join(map(_body, same))}){after}" for (before, after), same in groupby(ordered, _limits)
        )
        self._pattern = re.compile("|".join(patterns)) if forms else None
        self._known: dict[str, str] = {}

    def found(self, text: str) -> Iterator[str]:
        """Yield the term of each occurrence in a text.

        If terms overlap, the first one in the text counts; if two begin at the same place, the longer one counts.
        """
        for match in self._pattern.finditer(normalise(text)) if self._pattern is not None else ():
            yield self._known.get(match[0]) or self._term_of(match[0])

    def _term_of(self, found: str) -> str:
        """Return the first term that matches this occurrence in a text."""
        self._known[found] = next(term for body, term in self._terms if body.fullmatch(found))
        return self._known[found]


def _form(term: str) -> str:
    """Return a term in the form in which terms are compared: normalised, with single blanks."""
    return " ".join(part for part in _SEPARATOR.split(normalise(term)) if part)


def _limits(form: str) -> tuple[str, str]:
    """Return patterns for the text around a term: "he" is found in "he's", but not in "the", "he-man" or "hé"."""
    inside = rf"[\w{_marks()}]"
    before = "" if _is_spaceless(form[0]) else rf"(?<!{inside})(?<!\w-)"
    # An apostrophe ends the word only with one of the endings that words take: "don" is not in "don't".
    after = "" if _is_spaceless(form[-1]) else rf"(?!{inside})(?!-\w)(?!'(?!{_ENDINGS}(?!\w))\w)"
    return before, after


def _body(form: str) -> str:
    """Return a regular expression for a term, without the patterns of `_limits`."""
    inside = rf"[\w{_marks()}]"
    return r"[\s-]+".join(_word_pattern(part, inside) for part in form.split(" "))


def _word_pattern(part: str, inside: str) -> str:
    """Return a regular expression for one word of a term; if the word is a stem, any ending matches, too."""
    stem = part.removesuffix(STEM)
    return re.escape(part) if stem in (part, "") else rf"{re.escape(stem)}(?:{inside}|['-](?=\w))*+"


@cache
def _marks() -> str:
    """Return all combining marks as ranges for a regular expression's character class."""
    ranges: list[list[int]] = []
    for code in range(0x10000):
        if unicodedata.category(chr(code)).startswith("M"):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


def _is_spaceless(character: str) -> bool:
    """Return whether the character's script writes words without blanks between them, as Chinese and Thai do."""
    return unicodedata.name(character, "").startswith(_SPACELESS)
