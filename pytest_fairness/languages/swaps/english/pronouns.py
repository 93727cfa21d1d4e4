"""Pronouns and their counterparts; for "her" and "his", the counterparts depend on the words around the pronoun."""

from __future__ import annotations

from pytest_fairness.languages.swaps.english import agreement
from pytest_fairness.languages.swaps.english.tokens import Tokens
from pytest_fairness.languages.swaps.english.words import words
from pytest_fairness.languages.swaps.reading import CannotSwapError

SUBJECT = ("he", "she", "they")
OBJECT = ("him", "her", "them")
DETERMINER = ("his", "her", "their")
POSSESSIVE = ("his", "hers", "theirs")
REFLEXIVE = ("himself", "herself", "themself")


def column(word: str) -> int | None:
    """Return the group of a pronoun in lower case: 0 for male, 1 for female; `None` for any other word."""
    if agreement.is_subject(word):
        return 0 if word.startswith("he") else 1
    pronouns = (OBJECT, DETERMINER, POSSESSIVE, REFLEXIVE)
    return next((position for forms in pronouns for position in (0, 1) if forms[position] == word), None)


def forms(tokens: Tokens, index: int, *, neutral: bool) -> tuple[str | None, ...]:
    """Return the male, female and gender-neutral form of a pronoun, the last only if `neutral` is set.

    Raises:
        CannotSwapError: the role of "her" or "his", or the verb in "he's", is unclear.
    """
    word = tokens.lower(index)
    if agreement.is_subject(word) and word not in SUBJECT:
        ending = word.removeprefix("s").removeprefix("he")
        return f"he{ending}", f"she{ending}", agreement.plural_contraction(tokens, index) if neutral else None
    if word == "her":
        row = OBJECT if _is_object(tokens, index) else DETERMINER
    elif word == "his":
        row = POSSESSIVE if _is_possessive(tokens, index) else DETERMINER
    else:
        row = next(row for row in (SUBJECT, OBJECT, POSSESSIVE, REFLEXIVE) if word in row)
    return row[0], row[1], row[2] if neutral else None


def _ambiguity_error(tokens: Tokens, index: int) -> CannotSwapError:
    token = tokens.all[index]
    after = tokens.at(index + 1)
    shown = tokens.text[token.start : after.end].strip() if after else token.text
    return CannotSwapError(f"ambiguous '{token.lower}' in '{shown}'")


def _ends_phrase(tokens: Tokens, index: int) -> bool:
    """Return whether a phrase ends before the word at `index`, as after "I saw her", where "her" is an object."""
    token = tokens.at(index)
    if token is None or token.kind in ("line", "mark"):
        return token is None or token.text not in "\"“'\N{LEFT SINGLE QUOTATION MARK}(«[{$#*"
    return token.kind == "word" and token.lower in words("pronouns", "after_object") and not tokens.is_acronym(index)


def _is_object(tokens: Tokens, index: int) -> bool:
    """Return whether "her" is an object ("I saw her", as "I saw him"), not a possessive ("her car").

    Raises:
        CannotSwapError: the words around "her" allow both.
    """
    before, after, next_but_one = tokens.lower(index - 1), tokens.lower(index + 1), tokens.lower(index + 2)
    takes_two = before in words("pronouns", "verbs_with_two_objects")
    unclear = _ambiguity_error(tokens, index)
    if before == "/" and tokens.lower(index - 2) == "she":
        return True
    if after == "down":
        return not next_but_one.startswith("payment")
    if after == "in" and next_but_one == "laws":
        return False
    if after == "will":
        raise unclear
    token = tokens.at(index + 1)
    if token is not None and token.text == "A" and not tokens.in_capitals:  # "her A levels"
        raise unclear
    if token is None or _ends_phrase(tokens, index + 1):
        return True
    if next_but_one == "times":
        return True
    if token.kind == "number" or after in words("pronouns", "numbers"):
        if token.text[0] in "$€£":
            if _ends_phrase(tokens, index + 2):
                return True
            raise unclear
        if next_but_one.rstrip("s") in words("pronouns", "units") or takes_two:
            if tokens.lower(index + 3) in ("ago", "later"):
                return True
            raise unclear
        return False
    if token.kind != "word":
        if takes_two or token.text not in '"“':
            raise unclear
        return False
    if after == "own":
        return False
    if "-" in after or tokens.is_acronym(index + 1):
        if takes_two:
            raise unclear
        return False
    if after == "back":
        calls = before in words("pronouns", "call_back")
        if calls and not _ends_phrase(tokens, index + 2):
            raise unclear
        return calls
    if after in ("most", "only", "very", "first", "last", "next", "second", "full", "part"):
        if _ends_phrase(tokens, index + 2) or next_but_one in ("time", "thing") or takes_two:
            raise unclear
        if after in ("last", "next") and next_but_one.rstrip("s") in words("pronouns", "units") - {"day", "time"}:
            raise unclear
        return False
    if next_but_one in ("ago", "later"):
        return True
    adverb = after.endswith("ly") and after not in words("pronouns", "not_adverbs")
    if adverb or after in words("pronouns", "adverbs"):
        if _ends_phrase(tokens, index + 2):
            if after in words("pronouns", "adverbs_and_nouns"):
                raise unclear
            return True
        if adverb and not takes_two and next_but_one.endswith(("ed", "en", "ing")):
            return False
        if after in ("online", "right", "monthly", "weekly", "daily", "free", "full", "home") and not takes_two:
            return False
        raise unclear
    if takes_two:
        if before in words("pronouns", "verbs_with_verb") and after in words("pronouns", "bare_verbs"):
            return True
        owned = after.removesuffix("'s")
        if owned in words("pronouns", "countable") and (after != owned or _ends_phrase(tokens, index + 2)):
            return False
        raise unclear
    if (
        after.endswith("ing")
        and before in words("pronouns", "prepositions")
        and after not in words("pronouns", "ing_nouns")
    ):
        raise unclear
    return False


def _is_possessive(tokens: Tokens, index: int) -> bool:
    """Return whether "his" stands alone ("it is his", as "it is hers"), not before a noun ("his car").

    Raises:
        CannotSwapError: the words around "his" allow both.
    """
    before, after = tokens.lower(index - 1), tokens.lower(index + 1)
    token = tokens.at(index + 1)
    unclear = _ambiguity_error(tokens, index)
    if token is None or token.kind == "line":
        return True
    if token.kind in ("number", "link") or tokens.is_acronym(index + 1):
        return False
    if token.kind == "mark":
        if token.text in "(*[{":
            raise unclear
        return token.text not in "\"“'\N{LEFT SINGLE QUOTATION MARK}«$#"
    if after in ("every", "down", "own", "being", "having"):
        return False
    if after in ("now", "then", "still", "already", "also", "just", "soon", "too", "again"):
        return _ends_phrase(tokens, index + 2)
    if after == "in" and tokens.lower(index + 2) == "laws":
        return False
    if after in words("pronouns", "after_object"):
        if before in ("of", "is", "was", "are", "were", "be", "not", "than", "became") and after not in ("and", "or"):
            return True
        raise unclear
    if after == "will" and not _ends_phrase(tokens, index + 2):
        raise unclear
    return False
