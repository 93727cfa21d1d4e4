"""Warnings on English prompts whose versions a person should read, because words alone do not show who is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pytest_fairness.languages.swaps.data_files import either
from pytest_fairness.languages.swaps.english import pronouns
from pytest_fairness.languages.swaps.english.tokens import Tokens
from pytest_fairness.languages.swaps.english.words import gender, words
from pytest_fairness.languages.swaps.reading import NEUTRAL, Replacement

_REPORT = (
    "says said tells told claims claimed reports reported mentions mentioned states stated insists admits admitted "
    "wrote"
)
_REPORTED = re.compile(
    rf"\b(?P<subject>\w+) (?:also |just |then |has |had )?{either(_REPORT.split())}\b", re.IGNORECASE
)
_ACCORDING = re.compile(r"\baccording to (?:my |his |her |the )?(?P<subject>\w+)", re.IGNORECASE)
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|(?<!\w)['\u2018][^'’\n]+['’](?!\w)")
_ANIMALS = re.compile(r"\b(?:dog|cat|puppy|kitten|horse|pet|hamster|rabbit|bird|cow)\b", re.IGNORECASE)

_APPOSITION = frozenset((",", "is", "'s", "named", "called", "(", "-"))


def warnings_on(tokens: Tokens, replacements: Sequence[Replacement], *, neutral: bool) -> list[str]:
    """Return the warnings: the reasons why a person should read the versions of a prompt.

    Args:
        tokens: the prompt.
        replacements: terms and verbs of the prompt.
        neutral: whether there is a gender-neutral version of a prompt about a man or a woman.
    """
    found = [*_speech_warnings(tokens.text, replacements), *_several_people(tokens, replacements), *_topics(tokens)]
    if (young := {"girl", "boy"}.intersection(token.lower for token in tokens.all)) and _may_be_adults(tokens):
        found.append(f"'{young.pop()}' may name an adult")
    if animal := _ANIMALS.search(tokens.text):
        found.append(f"pronouns may refer to the {animal[0].lower()}")
    return [*found, *_unclear_they(tokens, replacements)] if neutral else found


def _several_people(tokens: Tokens, replacements: Sequence[Replacement]) -> Iterator[str]:
    """Yield warnings if terms or pronouns may mean two people, because the gender of both is swapped."""
    starts = {item.start for item in replacements if item.is_term}
    found = [index for index, token in enumerate(tokens.all) if token.start in starts]
    gendered = [index for index in found if pronouns.column(tokens.lower(index)) is not None]
    named = [index for index in found if index not in gendered and tokens.lower(index) not in gender()["titles"]]
    for index in named:
        if {tokens.lower(index - 1), tokens.lower(index - 2)} & {"his", "her"}:
            yield f"'{tokens.all[index].text}' may be a second person, whose gender is swapped as well"
            return
    for first, second in pairwise(named):
        between = {tokens.lower(index) for index in range(first + 1, second)}
        same = between <= _APPOSITION or {"a", "an"} & {tokens.lower(second - distance) for distance in (1, 2, 3)}
        if not same and tokens.lower(first).removesuffix("'s") != tokens.lower(second).removesuffix("'s"):
            texts = f"'{tokens.all[first].text}' and '{tokens.all[second].text}'"
            yield f"{texts} may be two people, whose genders are both swapped"
            return
    titled = any(tokens.lower(index) in gender()["titles"] for index in found)
    for index in named if titled else ():
        if {tokens.lower(index - 1), tokens.lower(index - 2)} & {"my", "our"}:
            yield f"'{tokens.all[index].text}' and the person with a title may be two people"
            return
    if not (named and gendered):
        return
    if gendered[0] < named[0] and any(tokens.starts_sentence(index) for index in range(gendered[0] + 1, named[0])):
        yield f"'{tokens.all[gendered[0]].text}' and '{tokens.all[named[0]].text}' may mean two people"
    for index, token in enumerate(tokens.all):
        before = [tokens.lower(index - distance) for distance in (1, 2)]
        known = any(word in ("the", "our", "your") or word.endswith("'s") for word in before)
        if known and token.lower in words("flagged", "professionals"):
            yield f"pronouns may refer to the {token.lower}"
            return


def _topics(tokens: Tokens) -> Iterator[str]:
    """Yield a warning if a group as a whole is named, because the prompt may ask about this group."""
    for index, token in enumerate(tokens.all):
        plural = token.lower in ("female", "male") and tokens.lower(index + 1).endswith("s")
        if plural or token.lower in words("flagged", "groups"):
            yield f"'{token.text}' may be the topic of the prompt"
            return


def _unclear_they(tokens: Tokens, replacements: Sequence[Replacement]) -> Iterator[str]:
    """Yield warnings if "they" in the gender-neutral version may mean other people, or more than one person."""
    they = words("pronouns", "they")
    if not they.intersection((item.forms[NEUTRAL] or "").lower() for item in replacements):
        return
    if other := next((token for token in tokens.all if token.lower in they), None):
        yield f"'{other.text}' may refer to other people than the pronouns that were swapped"
    if people := next((token for token in tokens.all if token.lower in words("flagged", "people")), None):
        yield f"'they' may refer to the {people.lower}"
    terms = [item for item in replacements if item.is_term]
    if all(pronouns.column(item.text.lower()) is not None for item in terms):
        start = min(item.start for item in terms)
        before = [index for index, token in enumerate(tokens.all) if token.start < start]
        if not any(tokens.lower(index) in words("flagged", "persons") for index in before):
            yield "no word shows that 'they' is one person"


def _may_be_adults(tokens: Tokens) -> bool:
    """Return whether "girl" may name an adult: the text has no number that may be an age, and no word of childhood."""
    for index, token in enumerate(tokens.all):
        duration = tokens.lower(index + 1).rstrip("s") in words("pronouns", "units") - {"year"}
        if (token.kind == "number" and not duration) or token.lower in words("left_out", "childhood"):
            return False
    return True


def _speech_warnings(text: str, replacements: Sequence[Replacement]) -> list[str]:
    """Return a warning for replaced terms in a quotation, and for a report of what a third person says."""
    terms_at = {item.start for item in replacements if item.is_term}
    warnings = []
    if any(match.start() <= start < match.end() for match in _QUOTED.finditer(text) for start in terms_at):
        warnings.append("terms in a quotation are replaced, too")
    if any(match.start("subject") in terms_at for way in (_REPORTED, _ACCORDING) for match in way.finditer(text)):
        warnings.append("reports what a third person says")
    return warnings
