"""From text to words without the terms that name a group: pure, Unicode, whole words only.

Without this a classifier merely finds the word "woman" again. The list is in plain sight below; a probe adds its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence

from pytest_fairness.probes.generation import first_names

IDENTITY_TERMS: tuple[str, ...] = (
    # pronouns
    *("he", "him", "his", "himself", "she", "her", "hers", "herself"),
    *("they", "them", "their", "theirs", "themself", "themselves", "xe", "xem", "ze", "zir", "hir"),
    # titles
    *("mr", "mrs", "ms", "miss", "mx", "sir", "madam", "ma'am"),
    # gender
    *("man", "men", "woman", "women", "male", "female", "boy", "girl", "lady", "ladies", "gentleman", "gentlemen"),
    *("guy", "masculine", "feminine", "manly", "womanly", "masculinity", "femininity", "womanhood", "manhood"),
    *("nonbinary", "non-binary", "binary", "enby", "genderqueer", "genderfluid", "agender", "transgender", "cisgender"),
    # race and origin
    *("black", "white", "asian", "latino", "latina", "latinx", "latine", "hispanic", "caucasian", "european"),
    *("african-american", "african", "asian-american", "middle-eastern", "arab", "arabic", "native-american"),
    *("indigenous", "people of color", "person of color", "people of colour", "person of colour"),
)
"""Removed from every text before it is measured, with a plural or a possessive ending."""

COLOUR_OF_THINGS: dict[str, tuple[str, ...]] = {
    "black": (
        *("tea", "coffee", "pepper", "beans?", "rice", "garlic", "sesame", "chocolate", "friday", "market", "box"),
        *("board", "hole", "tie", "leather", "dress", "shoes?", "jeans", "ink", "belt", "metal", "currants?", "swan"),
    ),
    "white": (
        *(
            "noise",
            "wine",
            "tea",
            "rice",
            "bread",
            "chocolate",
            "sugar",
            "pepper",
            "vinegar",
            "paper",
            "board",
            "house",
        ),
        *("tie", "dress", "shoes?", "shirts?", "sneakers?", "noise-cancell?ing", "water", "gold", "balance", "light"),
    ),
}
"""Followed by one of these, a colour is a colour: "white noise" stays."""

GENERIC_WORDS = frozenset(
    (
        *("a", "an", "and", "as", "for", "from", "in", "of", "on", "or", "the", "to", "who", "whose", "with"),
        *("person", "people", "individual", "someone", "human", "being", "user", "customer", "client"),
    )
)
"""Words of a declared term that name no group by themselves: of "a nonbinary person" only "nonbinary" is removed."""

_WORD = re.compile(r"\w[\w'-]*")
_SEPARATOR = re.compile(r"[\s-]+")
_WRITTEN_WORD = re.compile(r"\w[\w']*")
_ENDING = re.compile(r"'s?$", re.IGNORECASE)
_MARKS = r"[\s\"'\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}(\[*_#>•–—-]*"
_SENTENCE_START = re.compile(
    r"(?:^|[!?:;…•\n]|(?<!\bMr)(?<!\bMs)(?<!\bMx)(?<!\bDr)(?<!\bSt)(?<!\bMrs)(?<!\bRev)(?<!\bProf)\.)" + _MARKS + r"\Z"
)
BEFORE = 40
"""Characters before a word that tell whether it begins a sentence."""


def normalise(text: str) -> str:
    """Compatibility forms and cases folded, curly apostrophes straightened."""
    return _straightened(unicodedata.normalize("NFKC", text).casefold())


def _straightened(text: str) -> str:
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").replace("\N{MODIFIER LETTER APOSTROPHE}", "'")


def words(text: str) -> list[str]:
    """Return the words of a normalised text; "don't" and "non-stick" are one word each."""
    return [word.rstrip("'-") for word in _WORD.findall(text)]


class Anonymizer:
    """Removes identity terms from texts: the built-in ones, the declared ones, and the words these are made of.

    Args:
        declared: the values of the probe's axes, of both sides, and the probe's own extra terms. A term of several
            words is removed as a phrase and word by word, but for generic words ("person").
        names: first names, as `names.folded` gives them, that `words` removes where they are written as names.
        enabled: whether anything is removed at all.
    """

    def __init__(self, declared: Iterable[str], *, names: Collection[str] = (), enabled: bool = True) -> None:
        self._names = frozenset(names)
        self._pattern = _pattern(declared) if enabled else None
        # Of text as it is written, with curly apostrophes and capitals.
        written = self._pattern and self._pattern.pattern.replace("'", "['\N{RIGHT SINGLE QUOTATION MARK}]")
        self._written = re.compile(written, re.IGNORECASE) if written else None

    def words(self, text: str) -> list[str]:
        """Return the words of the text that are not removed, normalised, in their order."""
        normalised = normalise(self._without_names(text) if self._names else text)
        return words(normalised if self._pattern is None else self._pattern.sub(" ", normalised))

    def masked(self, text: str, mask: str) -> str:
        """Return the text with each identity term replaced by `mask`; possessive endings stay."""
        plain = unicodedata.normalize("NFKC", text)
        return plain if self._written is None else self._written.sub(lambda match: _mask(match[0], mask), plain)

    def _without_names(self, text: str) -> str:
        """Return the text without words that are written as names: with a capital, where the script has any.

        A name that is a word as well must stand within a sentence, and not in capitals only; once it does, it is a name
        at the beginning of this text's sentences too.
        """
        plain = _straightened(unicodedata.normalize("NFKC", text))
        found = [
            (match, name)
            for match in _WRITTEN_WORD.finditer(plain)
            if not match[0][0].islower() and (name := _ENDING.sub("", match[0].casefold())) in self._names
        ]
        told = {name for match, name in found if name not in first_names.ALSO_WORDS or _is_told(plain, match)}
        pieces, end = [], 0
        for match, name in found:
            if name in told and not _is_shouted(match, name):
                pieces.append(plain[end : match.start()])
                end = match.end()
        return " ".join([*pieces, plain[end:]])


def _is_told(text: str, match: re.Match[str]) -> bool:
    """Return whether a capital at this place tells a name from a word."""
    before = text[max(0, match.start() - BEFORE) : match.start()]
    return not match[0].isupper() and _SENTENCE_START.search(before) is None


def _is_shouted(match: re.Match[str], name: str) -> bool:
    return name in first_names.ALSO_WORDS and match[0].isupper()


def _mask(term: str, mask: str) -> str:
    possessive = normalise(term).endswith(("'s", "s'"))
    return f"{mask}'s" if possessive else mask


def _pattern(declared: Iterable[str]) -> re.Pattern[str]:
    terms = {normalise(term) for term in IDENTITY_TERMS}
    for term in map(normalise, declared):
        parts = words(term)
        terms |= {term.strip()} if len(parts) > 1 or not GENERIC_WORDS.issuperset(parts) else set()
        terms |= {part for part in parts if part not in GENERIC_WORDS}
    # Longest first, so that a phrase goes before the words it is made of.
    alternatives = "|".join(_alternative(term) for term in sorted(terms, key=lambda term: (-len(term), term)) if term)
    return re.compile(rf"(?<!\w)(?:{alternatives})(?:'(?:s|re|ll|ve|d)|s'?|')?(?!\w)")


def _alternative(term: str) -> str:
    # "middle-eastern" also stands for "middle eastern".
    pattern = r"[\s-]+".join(re.escape(part) for part in _SEPARATOR.split(term) if part)
    things = COLOUR_OF_THINGS.get(term)
    return pattern if things is None else rf"{pattern}(?![\s-]+(?:{'|'.join(things)})(?!\w))"


def unique_share(documents: Sequence[Sequence[str]]) -> float:
    """Return the share of documents that repeat no earlier document exactly; 1 without documents."""
    return len({tuple(document) for document in documents}) / len(documents) if documents else 1.0
