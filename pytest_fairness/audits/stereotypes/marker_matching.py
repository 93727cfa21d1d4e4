"""Search for terms in texts: whole words, phrases and stems, in any case and script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from pytest_fairness.audits.text.anonymizer import normalise
from pytest_fairness.probes.search_terms import STEM

_SEPARATOR = re.compile(r"[\s-]+")
_SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_ENDINGS = "(?:s|re|ll|ve|d|m)"


@dataclass(frozen=True, slots=True)
class Found:
    """Markers of one text, each once, in the order of their list."""

    stereotype: tuple[str, ...]
    anti_stereotype: tuple[str, ...]

    @property
    def count(self) -> int:
        """Return the number of different markers."""
        return len(self.stereotype) + len(self.anti_stereotype)

    def ratio(self, least: int) -> float | None:
        """Return the share of stereotype markers, 0..1; `None` for fewer than `least` markers, or none."""
        return len(self.stereotype) / self.count if self.count >= max(1, least) else None


class Terms:
    """Finder of terms in texts, each as a whole word or phrase, in any case.

    Args:
        terms: words, phrases and stems. A `*` at the end of a word stands for all words with this beginning; all other
            characters stand for themselves. A blank also matches a line end or a hyphen.
    """

    def __init__(self, terms: Sequence[str]) -> None:
        forms = {_form(term): term for term in terms}
        # Longest first, so that "no woman" is not found as "woman"; then a word before its stem.
        ordered = sorted(forms, key=lambda form: (-len(form.replace(STEM, "")), form.count(STEM), form))
        self._terms = [forms[form] for form in ordered]
        self._pattern = re.compile("|".join(f"({_pattern(form)})" for form in ordered)) if forms else None

    def found(self, text: str) -> Iterator[str]:
        """Yield the term of each occurrence in a text; of terms that overlap, the first and then the longest."""
        for match in self._pattern.finditer(normalise(text)) if self._pattern is not None else ():
            yield self._terms[(match.lastindex or 1) - 1]


class Markers:
    """Finder of the markers of a case.

    Args:
        stereotype, anti_stereotype: words, phrases and stems; see `Terms`.
    """

    def __init__(self, stereotype: Sequence[str], anti_stereotype: Sequence[str]) -> None:
        self._lists = (tuple(stereotype), tuple(anti_stereotype))
        self._terms = Terms([*stereotype, *anti_stereotype])

    def found(self, text: str) -> Found:
        """Return the markers in a text."""
        there = {*self._terms.found(text)}
        first, second = (tuple(marker for marker in markers if marker in there) for markers in self._lists)
        return Found(first, second)


def _form(term: str) -> str:
    """Return a term for comparison: normalised, with single blanks."""
    return " ".join(part for part in _SEPARATOR.split(normalise(term)) if part)


def _pattern(form: str) -> str:
    """Return a pattern of a term as a whole word: "he" is in "he's" and "(he)", but not in "the", "he-man" or "hé"."""
    inside = rf"[\w{_marks()}]"
    body = r"[\s-]+".join(_word(part, inside) for part in form.split(" "))
    before = "" if _spaceless(form[0]) else rf"(?<!{inside})(?<!\w-)"
    # An apostrophe ends the word only with one of the endings that words take: "don" is not in "don't".
    after = "" if _spaceless(form[-1]) else rf"(?!{inside})(?!-\w)(?!'(?!{_ENDINGS}(?!\w))\w)"
    return before + body + after


def _word(part: str, inside: str) -> str:
    """Return a pattern of one word of a term; of a stem with the rest of the word."""
    stem = part.removesuffix(STEM)
    return re.escape(part) if stem in (part, "") else rf"{re.escape(stem)}(?:{inside}|['-](?=\w))*+"


@cache
def _marks() -> str:
    """Return all combining marks as ranges of a character class."""
    ranges: list[list[int]] = []
    for code in range(0x10000):
        if unicodedata.category(chr(code)).startswith("M"):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


def _spaceless(character: str) -> bool:
    """Return whether the character's script writes words without blanks between them."""
    return unicodedata.name(character, "").startswith(_SPACELESS)


def holding(found: Iterable[Found], side: str) -> dict[str, int]:
    """Return the number of texts that hold each marker of a side, the commonest first."""
    counts: dict[str, int] = {}
    for each in found:
        for marker in getattr(each, side):
            counts[marker] = counts.get(marker, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
