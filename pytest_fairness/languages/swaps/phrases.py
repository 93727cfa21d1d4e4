"""Search of a German, French or Spanish prompt for noun phrases that name a gender, with their articles.

Only listed phrases are replaced. A prompt is left out if another of its words may refer to the person: a pronoun, an
adjective that agrees, a noun without a listed article.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pytest_fairness.languages.swaps.data_files import data
from pytest_fairness.languages.swaps.reading import CannotSwapError, Reading, Replacement, group_column, like
from pytest_fairness.languages.words import straightened

CODES = ("de", "fr", "es")
"""ISO 639 codes of the languages with a list of noun phrases."""
_WORD = re.compile(r"\b(?:M|Sra?)\.|[^\W\d_][\w'-]*")
_NEXT_WORD = re.compile(r",? ([^\W\d_][\w'’.-]*)")
_ARTICLES = frozenset({"la", "las", "lo", "los"})
_NOUN_ENDINGS = ("ción", "sión", "dad", "tud", "ciones", "siones", "dades")
_BEFORE_ARTICLES = frozenset({"a", "de", "en", "con", "por", "para", "sin", "sobre", "desde", "hasta", "es", "y", "o"})
_SENTENCE_START = re.compile(r"(?:^|[.!?:\n¿¡]|[\"“„«])\s*$")


_Pair = tuple[int, tuple[str, str]]
"""Column of a phrase (0 for male, 1 for female), and the pair of the male and the female phrase."""


@dataclass(frozen=True, eq=False)
class _Phrases:
    """The phrases of a language.

    Attributes:
        pairs: column of each phrase, and its male and female form, by the phrase in lower case; `None` for a phrase
            with several counterparts.
        nouns: nouns of the phrases; in lower case, except in German.
        longest: largest number of words of a phrase.
    """

    pairs: Mapping[str, _Pair | None]
    nouns: frozenset[str]
    longest: int


def read(text: str, code: str, groups: Sequence[str]) -> Reading:
    """Return the phrases of the list that a prompt contains, with their replacements.

    Raises:
        CannotSwapError: the prompt names no group, several groups or several people, or has an ambiguous word.
    """
    content = data(f"{code}_gender")
    plain = straightened(text)
    matches, others = _phrases_and_other_words(plain, code)
    column = group_column([pair[0] for _, pair in matches], groups)
    for span, _ in matches:
        _check_next_word(plain, *span, content)
    _check_other_words(plain, [span for span, _ in matches], others, content)
    replacements = tuple(
        Replacement(start, text[start:end], _forms(text[start:end], pair)) for (start, end), (_, pair) in matches
    )
    if len({tuple(form.split()[-1] for form in forms) for _, (_, forms) in matches}) > 1:
        shown = " and ".join(f"'{item.text}'" for item in replacements)
        raise CannotSwapError(f"{shown} may be two people")
    names = [] if code == "de" else _possible_names(plain, content)
    return Reading(
        column, replacements, warnings=tuple(f"'{name}' may be a name, which is not replaced" for name in names)
    )


def pairs(code: str) -> Mapping[str, _Pair]:
    """Return the column, male form and female form of each phrase with one counterpart, by the phrase in lower case."""
    return {phrase: pair for phrase, pair in _phrases(code).pairs.items() if pair is not None}


def _phrases_and_other_words(text: str, code: str) -> tuple[list[tuple[tuple[int, int], _Pair]], list[re.Match[str]]]:
    """Return the phrases of a text with their positions, and the words outside them.

    Raises:
        CannotSwapError: a phrase has several counterparts, or a noun of the list is in no phrase.
    """
    phrases = _phrases(code)
    words = list(_WORD.finditer(text))
    matches: list[tuple[tuple[int, int], _Pair]] = []
    others = []
    index = 0
    while index < len(words):
        start = words[index].start()
        for last in range(min(index + phrases.longest, len(words)) - 1, index - 1, -1):
            phrase = text[start : words[last].end()]
            if phrase.lower() in phrases.pairs:
                pair = phrases.pairs[phrase.lower()]
                if pair is None:
                    raise CannotSwapError(f"'{phrase}' has several counterparts")
                matches.append(((start, words[last].end()), pair))
                index = last + 1
                break
        else:
            word = words[index][0]
            if (word if code == "de" else word.lower()) in phrases.nouns:
                raise CannotSwapError(
                    f"'{word}' is replaced only in the phrases of the built-in list, such as an article and a noun"
                )
            others.append(words[index])
            index += 1
    return matches, others


def _forms(written: str, pair: tuple[str, str]) -> tuple[str, ...]:
    return tuple(like(written, form.replace("'", "’") if "’" in written else form) for form in pair)


def _check_next_word(text: str, start: int, end: int, content: Mapping[str, Any]) -> None:
    """Raise `CannotSwapError` if the word after a phrase may be a name, or an adjective that agrees with the phrase."""
    if "after" not in content:
        return
    phrase = text[start:end]
    if phrase.lower().endswith(tuple(title.lower() for title in content["titles"])):
        while (name := _NEXT_WORD.match(text, end)) and name[1][0].isupper():
            end = name.end()
    word = _NEXT_WORD.match(text, end)
    allowed = content["after"].split()
    if word and not {word[1].lower().rstrip("."), word[1].lower().partition("'")[0] + "'"}.intersection(allowed):
        raise CannotSwapError(f"the form of '{word[1]}' after '{phrase}' may depend on this phrase")


def _check_other_words(
    text: str, spans: Sequence[tuple[int, int]], words: Sequence[re.Match[str]], content: Mapping[str, Any]
) -> None:
    """Raise `CannotSwapError` if a word outside the phrases may refer to the person."""
    unclear, left_out = set(content["unclear"].split()), set(content["left_out"].split())
    lower_case = set(content.get("unclear_in_lower_case", "").split())
    harmless = set(content.get("harmless", "").split())
    nouns = set(content.get("after_articles", "").split())
    for word in words:
        lower = word[0].lower()
        if lower in left_out:
            raise CannotSwapError(f"the built-in list has no counterpart of '{word[0]}'")
        polite = lower in lower_case and word[0][0].isupper() and not _SENTENCE_START.search(text[: word.start()])
        if {lower, lower.partition("'")[2]} & unclear and not polite:
            raise CannotSwapError(f"'{word[0]}' may refer to the person of the swapped term")
    flags = re.IGNORECASE if nouns or "after" in content else re.NOFLAG  # German nouns have capitals
    for pattern in content["unclear_patterns"]:
        for match in re.finditer(rf"(?<!\w){pattern}(?!\w)", text, flags):
            last = match.end() - 1
            if match[0].lower() not in harmless and not any(start <= last < end for start, end in spans):
                raise CannotSwapError(f"'{match[0]}' may refer to the person of the swapped term")
    for before, word, after in zip([None, *words], words, [*words[1:], None], strict=False) if nouns else ():
        noun = after[0].lower() if after else ""
        after_preposition = before is not None and before[0].lower() in _BEFORE_ARTICLES
        is_noun = {noun, noun.removesuffix("s")} & nouns or noun.endswith(_NOUN_ENDINGS)
        if word[0].lower() in _ARTICLES and not after_preposition and not is_noun:
            raise CannotSwapError(f"'{word[0]} {noun}' may refer to the person of the swapped term")


def _possible_names(text: str, content: Mapping[str, Any]) -> list[str]:
    """Return the capitalised words that do not begin a sentence, without titles and without the words after titles."""
    titles = tuple(content["titles"])
    return [
        word[0]
        for word in _WORD.finditer(text)
        if word[0][0].isupper()
        and not word[0].startswith(titles)
        and not _SENTENCE_START.search(text[: word.start()])
        and not text[: word.start()].rstrip().endswith(titles)
    ]


@cache
def _phrases(code: str) -> _Phrases:
    content = data(f"{code}_gender")
    rows = [(male, female) for male, female in content["phrases"]]
    nouns: set[str] = set(content.get("other_nouns", "").split())
    counterparts: dict[str, set[_Pair]] = defaultdict(set)
    for key, frames in (("nouns", "frames"), ("nouns_with_vowels", "frames_before_vowels")):
        for noun in content.get(key, ()):
            forms = dict(zip(content["columns"], noun.split(), strict=True))
            nouns.update(forms.values())
            rows += [(male.format(**forms), female.format(**forms)) for male, female in content[frames]]
            for frame in content["plural_frames"]:
                counterparts[frame.format(**forms).lower()].add((-1, (noun, noun)))
    for male, female in rows:
        if male != female:
            counterparts[male.lower()].add((0, (male, female)))
            counterparts[female.lower()].add((1, (male, female)))
    return _Phrases(
        pairs={
            phrase: pair if len(possible) == 1 and (pair := next(iter(possible)))[0] >= 0 else None
            for phrase, possible in counterparts.items()
        },
        nouns=frozenset(nouns),
        longest=max(len(phrase.split()) for phrase in counterparts),
    )
