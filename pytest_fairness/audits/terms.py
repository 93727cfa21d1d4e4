"""Terms in texts: search for words, phrases and stems, and removal of the terms that name a group."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import groupby

from pytest_fairness.languages import Language, normalise, straightened, words
from pytest_fairness.probes import identity_terms
from pytest_fairness.probes.field_types import STEM

# Search for terms in texts: whole words, phrases and stems, in any letter case and script.

_SEPARATOR = re.compile(r"[\s-]+")
_SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_ENDINGS = "(?:s|re|ll|ve|d|m)"


class Terms:
    """A list of terms that `found` finds in texts, as whole words or phrases and in any letter case.

    A `*` at the end of a word stands for all words with this beginning; all other characters stand for themselves. A
    blank in a phrase also matches a line end or a hyphen.
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
        """Yield the term of each occurrence: of overlapping ones the first, of two that begin together the longer."""
        for match in self._pattern.finditer(normalise(text)) if self._pattern is not None else ():
            yield self._known.get(match[0]) or self._term_of(match[0])

    def _term_of(self, found: str) -> str:
        self._known[found] = next(term for body, term in self._terms if body.fullmatch(found))
        return self._known[found]


def _form(term: str) -> str:
    return " ".join(part for part in _SEPARATOR.split(normalise(term)) if part)


def _limits(form: str) -> tuple[str, str]:
    """Return patterns for the text around a term: "he" is found in "he's", but not in "the", "he-man" or "hé"."""
    inside = rf"[\w{_marks()}]"
    before = "" if _is_spaceless(form[0]) else rf"(?<!{inside})(?<!\w-)"
    # An apostrophe ends the word only with one of the endings that words take: "don" is not in "don't".
    after = "" if _is_spaceless(form[-1]) else rf"(?!{inside})(?!-\w)(?!'(?!{_ENDINGS}(?!\w))\w)"
    return before, after


def _body(form: str) -> str:
    inside = rf"[\w{_marks()}]"
    return r"[\s-]+".join(_word_pattern(part, inside) for part in form.split(" "))


def _word_pattern(part: str, inside: str) -> str:
    """Return a regular expression for a word of a term; if it is a stem, any ending matches, too."""
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


def _is_spaceless(character: str) -> bool:
    """Return whether the character's script writes words without blanks between them, as Chinese and Thai do."""
    return unicodedata.name(character, "").startswith(_SPACELESS)


# Splitting of texts into words, without the identity terms that name a group.
#
# If the texts kept identity terms, words such as "woman" alone would be enough to separate the groups. The terms
# come from the language; a probe can declare further terms.

MASK = "XYZ"
"""Text that replaces identity terms in answers that a model scores, as in the texts on which regard models were
trained."""


_WRITTEN_WORD = re.compile(r"\w[\w']*")
_ENDING = re.compile(r"'s?$", re.IGNORECASE)
_MARKS = r"[\s\"'\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}(\[*_#>•–—-]*"
_SENTENCE_START = re.compile(
    r"(?:^|[!?:;…•\n]|(?<!\bMr)(?<!\bMs)(?<!\bMx)(?<!\bDr)(?<!\bSt)(?<!\bMrs)(?<!\bRev)(?<!\bProf)\.)" + _MARKS + r"\Z"
)
SEARCHED_CHARACTERS = 40
"""Number of characters before a word that are searched for the end of the previous sentence."""


class Anonymizer:
    """Removal of identity terms from texts: built-in terms, declared terms, and the single words of declared terms.

    Args:
        declared: all values of the probe's axes, and the probe's own extra terms. A term of several words is removed as
            a phrase and word by word, except generic words such as "person".
        language: language of the texts.
        phrases: further terms, which are removed as they are, not word by word.
        names: case-folded first names; `words` removes a first name if the text writes it as a name.
        enabled: whether to remove identity terms; `names` are removed in any case.
    """

    def __init__(
        self,
        declared: Iterable[str],
        language: Language,
        *,
        phrases: Iterable[str] = (),
        names: Collection[str] = (),
        enabled: bool = True,
    ) -> None:
        self._names = frozenset(names)
        self._language = language
        self._pattern = _pattern(tuple(declared), tuple(phrases), language) if enabled else None
        # This pattern is for texts as they were written, with curly apostrophes and capitals.
        written = self._pattern and self._pattern.pattern.replace("'", "['\N{RIGHT SINGLE QUOTATION MARK}]")
        self._written = re.compile(written, re.IGNORECASE) if written else None

    def words(self, text: str) -> list[str]:
        """Return the normalised words of the text, in order, without identity terms and names."""
        normalised = normalise(self._without_names(text) if self._names else text)
        return self._language.words(normalised if self._pattern is None else self._pattern.sub(" ", normalised))

    def masked(self, text: str, mask: str) -> str:
        """Return the text with `mask` in place of each identity term; possessive endings stay."""
        plain = unicodedata.normalize("NFKC", text)
        return plain if self._written is None else self._written.sub(lambda match: _mask(match[0], mask), plain)

    def _without_names(self, text: str) -> str:
        """Remove first names.

        In a script with capital letters, only a capitalised word can be a name. Some first names are also ordinary
        words, such as Grace. Such a word counts as a name if the text has `Grace` at least once inside a sentence
        (`grace` and `GRACE` do not count). Then `Grace` is also removed at the beginning of sentences.
        """
        plain = straightened(unicodedata.normalize("NFKC", text))
        matches = [
            (match, name)
            for match in _WRITTEN_WORD.finditer(plain)
            if not match[0][0].islower() and (name := _ENDING.sub("", match[0].casefold())) in self._names
        ]
        names = {
            name
            for match, name in matches
            if name not in identity_terms.also_words() or _is_inside_sentence(plain, match)
        }
        pieces, end = [], 0
        for match, name in matches:
            if name in names and not _is_word_in_capitals(match, name):
                pieces.append(plain[end : match.start()])
                end = match.end()
        return " ".join([*pieces, plain[end:]])


def _is_inside_sentence(text: str, match: re.Match[str]) -> bool:
    """Return whether a word does not begin a sentence, and is not written in capitals only."""
    before = text[max(0, match.start() - SEARCHED_CHARACTERS) : match.start()]
    return not match[0].isupper() and _SENTENCE_START.search(before) is None


def _is_word_in_capitals(match: re.Match[str], name: str) -> bool:
    """Return whether a name in capitals is also an ordinary word, such as "GRACE"."""
    return name in identity_terms.also_words() and match[0].isupper()


def _mask(term: str, mask: str) -> str:
    """Return the mask, with a possessive ending if the term has one ("woman's")."""
    possessive = normalise(term).endswith(("'s", "s'"))
    return f"{mask}'s" if possessive else mask


@lru_cache(maxsize=8)  # the items of a probe have the same terms, and compiling takes milliseconds
def _pattern(declared: tuple[str, ...], phrases: tuple[str, ...], language: Language) -> re.Pattern[str]:
    terms = {normalise(term) for term in (*language.identity_terms, *phrases)}
    for term in map(normalise, declared):
        parts = words(term)
        terms |= {term.strip()} if len(parts) > 1 or not language.generic_words.issuperset(parts) else set()
        terms |= {part for part in parts if part not in language.generic_words}
    # Longest first, so that a phrase is matched before its single words.
    alternatives = "|".join(
        _alternative(term, language) for term in sorted(terms, key=lambda term: (-len(term), term)) if term
    )
    # "latino/a" is one word.
    return re.compile(rf"(?<!\w)(?:{alternatives})(?:/(?:as?|os?|x))?(?:'(?:s|re|ll|ve|d)|s'?|')?(?!\w)")


def _alternative(term: str, language: Language) -> str:
    # "middle-eastern" also stands for "middle eastern", and "non-binary" for "nonbinary".
    between = r"[\s-]*" if "-" in term else r"[\s-]+"
    pattern = between.join(re.escape(part) for part in _SEPARATOR.split(term) if part)
    following = language.no_identity_before.get(term)
    return pattern if following is None else rf"{pattern}(?![\s-]+(?:{'|'.join(following)})(?!\w))"
