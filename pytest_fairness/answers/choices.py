"""Parser of choices: finds the choice, such as "yes", that the first sentence of an answer states.

A sentence states a choice that is a clause of its own ("I would say yes") or begins a clause ("Approve John's
application"). A negation such as "no" must be a clause of its own: neither "no healthy upstream" (an error message) nor
"cannot" (a refusal) states the choice "no".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from pytest_fairness.languages.language import Language

_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?!\s|$)|(?<=:)\s*\n)+")
_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u00b4`\uff07]")
_EMPHASIS = re.compile("[*`#]+")
_HEAD = 2000
"""Number of characters at the start of an answer in which the parser looks for the first sentence."""


def first_sentence(text: str, choices: Sequence[str], language: Language) -> str:
    """Return the first sentence that contains a letter or a choice ("Yes" in "1. Yes"), or else an empty text.

    A sentence ends at `.`, `!` or `?` before white space, and at the end of a line, unless the line ends with a colon.
    """
    # Without emphasis, so that the line "**Answer:**" ends with its colon.
    plain = text[:_HEAD] if any(_EMPHASIS.search(choice) for choice in choices) else _EMPHASIS.sub("", text[:_HEAD])
    for match in _SENTENCE.finditer(plain.strip()):
        sentence = match[0].strip()
        if any(character.isalpha() for character in sentence) or _named_choices(sentence, tuple(choices), language):
            return sentence
    return ""


def read(text: str, choices: Sequence[str], language: Language) -> str | None:
    """Return the choice that an answer states, in the probe's spelling; `None` if it states no choice or several.

    Args:
        text: the answer.
        choices: possible choices of one or more words, in any letter case. If two choices match the same words ("sure"
            and "not sure"), the longer choice counts.
        language: language of the answer.
    """
    named = _named_choices(first_sentence(text, choices, language), tuple(choices), language)
    return next(iter(named)) if len(named) == 1 else None


def _named_choices(sentence: str, choices: tuple[str, ...], language: Language) -> set[str]:
    pattern, by_folded = _pattern(choices)
    folded = _folded(sentence)
    matches = list(pattern.finditer(folded))
    named = {by_folded[" ".join(match[0].split())] for match in matches}
    if len(named) == 1 and not any(_is_clause(folded, match, language) for match in matches):
        return set()
    return named


def _is_clause(sentence: str, match: re.Match[str], language: Language) -> bool:
    """Return whether the matched choice is a clause of its own, or begins a clause and is no negation such as "no".

    In "No, as …" and "I would say yes", the choice is a clause; in "no healthy upstream", it is not. A choice that
    begins with another character than a letter (`>50K`) always counts as a clause of its own.
    """
    if not match[0][0].isalpha():
        return True
    before, after = sentence[: match.start()].rstrip(), sentence[match.end() :].lstrip()
    if not before[-1:].isalnum() and match[0] not in language.negations:
        return True  # "Approve John's application"; only a negation may belong to the next word
    alone_before = not before[-1:].isalnum() or language.before_choice.search(before) is not None
    return alone_before and (not after[:1].isalnum() or language.after_choice.match(after) is not None)


@lru_cache
def _pattern(choices: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return a pattern that finds choices as whole words, and a mapping from folded forms to choices."""
    by_folded = {" ".join(_folded(choice).split()): choice for choice in choices}
    longest = sorted(by_folded, key=lambda folded: (-len(folded), folded))
    either = "|".join(r"\s+".join(map(re.escape, folded.split())) for folded in longest)
    # "no-one" and "no's" do not match "no".
    return re.compile(rf"(?<!\w)(?<!\w[-'])(?:{either})(?!\w)(?![-']\w)"), by_folded


def _folded(text: str) -> str:
    return _APOSTROPHES.sub("'", text).casefold()
