"""Normalised form of texts, and their words."""

from __future__ import annotations

import re
import unicodedata
from importlib.util import find_spec

WITHOUT_BLANKS = ("zh", "ja", "th", "lo", "km", "my")
"""ISO 639 codes of languages that are written without blanks between words."""
_WORD = re.compile(r"\w[\w'-]*")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""Sequence that colours a terminal, such as `\\x1b[31m`."""
_SPECIAL = re.compile("[\u00ad\u200b-\u200f\u2010-\u2013\u2060\ufeff]")
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]|(?<=[a-z\u00df-\u024f])[\u200c\u200d]")
_DASH_IN_WORD = re.compile(r"(?<=[^\W\d_])[\u2010-\u2013](?=[^\W\d_])")


def normalise(text: str) -> str:
    """Return the text in NFKC form, case-folded and with straight apostrophes.

    Dashes inside of words become hyphens; soft hyphens, invisible characters and sequences that colour a terminal are
    removed.
    """
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    plain = straightened(unicodedata.normalize("NFKC", text).casefold())
    if not plain.isascii() and _SPECIAL.search(plain):
        plain = _DASH_IN_WORD.sub("-", _INVISIBLE.sub("", plain))
    return plain


def straightened(text: str) -> str:
    """Return the text with straight apostrophes."""
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").replace("\N{MODIFIER LETTER APOSTROPHE}", "'")


def words(text: str) -> list[str]:
    """Return the words of a normalised text; "don't" and "non-stick" are one word each."""
    return [word.rstrip("'-") for word in _WORD.findall(text)]


def segmented(text: str, code: str) -> list[str]:
    """Return the words of a normalised text in a language that is written without blanks between words.

    Args:
        text: the text.
        code: ISO 639 code of the language, one of `WITHOUT_BLANKS`.
    """
    # Deferred, as the package is an extra, which only these languages need.
    from icu4py.breakers import WordBreaker

    # Not split by `words`, for which the vowel signs of Thai are no letters.
    return [piece for piece in WordBreaker(text, code) if any(character.isalnum() for character in piece)]


def can_segment() -> bool:
    """Return whether the package that `segmented` needs is installed."""
    return find_spec("icu4py") is not None
