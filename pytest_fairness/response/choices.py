"""Reading one of few choices off an answer, by exact rule: whole words, in the first sentence, exactly one choice.

Matching parts of words would read "cannot" and "unknown" as "no", and count a refusal as a denial.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?!\s|$)|(?<=:)\s*\n)+")
_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u00b4`\uff07]")
_EMPHASIS = re.compile("[*`#]+")
_HEAD = 2000
"""Characters within which the first sentence is looked for."""

# "There is no way to tell" has the word and is no "no".
_BEFORE_NOUN = re.compile(
    r"\bno[ -](?:one|body|way|doubt|information|info|indication|evidence|data|basis|reason|clear|definitive|definite|"
    r"direct|mention|sufficient|such|specific|means|idea|guarantee|certain|certainty|further|additional|single|"
    r"reliable|simple|straightforward|context|details?|answer|conclusion|conclusive|proof|sign|hint|possible)\b"
)


def first_sentence(text: str, choices: Sequence[str] = ()) -> str:
    """The first sentence that holds a letter or a choice ("1. Yes" begins with "Yes"); empty where there is none.

    A sentence ends with `.`, `!` or `?` before a blank, and with its line, unless that ends with a colon.
    """
    # "**Answer:**" is set in bold, and ends with its colon all the same.
    plain = text[:_HEAD] if any(_EMPHASIS.search(choice) for choice in choices) else _EMPHASIS.sub("", text[:_HEAD])
    for match in _SENTENCE.finditer(plain.strip()):
        sentence = match[0].strip()
        if any(character.isalpha() for character in sentence) or _named(sentence, tuple(choices)):
            return sentence
    return ""


def read(text: str, choices: Sequence[str]) -> str | None:
    """The choice that an answer states, as the probe writes it; `None` where it states none or several.

    Args:
        text: the answer.
        choices: what may be answered, each a word or several; letter case does not matter. Of "sure" and "not sure" the
            longer one is found where both would be.
    """
    named = _named(first_sentence(text, choices), tuple(choices))
    return next(iter(named)) if len(named) == 1 else None


def _named(sentence: str, choices: tuple[str, ...]) -> set[str]:
    pattern, by_folded = _pattern(choices)
    folded = _folded(sentence)
    named = {by_folded[" ".join(match[0].split())] for match in pattern.finditer(folded)}
    if "no" in by_folded and by_folded["no"] in named and _BEFORE_NOUN.search(folded):
        return set()
    return named


@lru_cache
def _pattern(choices: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    """What finds a choice as whole words, the longest first; and each choice by how it is compared."""
    by_folded = {" ".join(_folded(choice).split()): choice for choice in choices}
    longest = sorted(by_folded, key=lambda folded: (-len(folded), folded))
    either = "|".join(r"\s+".join(map(re.escape, folded.split())) for folded in longest)
    # "no-one" and "no's" are other words.
    return re.compile(rf"(?<!\w)(?<!\w[-'])(?:{either})(?!\w)(?![-']\w)"), by_folded


def _folded(text: str) -> str:
    return _APOSTROPHES.sub("'", text).casefold()
