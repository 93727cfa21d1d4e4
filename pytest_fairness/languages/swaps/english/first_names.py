"""First names in a text, with their counterparts, and names that prevent a swap."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pytest_fairness.languages.swaps.english.tokens import Tokens
from pytest_fairness.languages.swaps.english.words import Term, gender, names, words
from pytest_fairness.languages.swaps.reading import CannotSwapError

_BEFORE_PLACES = frozenset({"in", "at", "near", "around", "via"})


@dataclass(frozen=True)
class FirstName:
    """A first name in a text.

    Attributes:
        length: number of characters, without the possessive ending "'s".
        term: the name with its counterparts.
        same_origin: names of the same group and origin that the text does not contain.
    """

    length: int
    term: Term
    same_origin: tuple[str, ...]


def first_name(tokens: Tokens, index: int) -> FirstName | None:
    """Return the first name at a position; `None` if no first name is there.

    Raises:
        CannotSwapError: the word is a name without a counterpart, or may be something else, such as a place.
    """
    token = tokens.all[index]
    plain = token.lower.removesuffix("'s")
    if plain in names().listed:
        if not token.text[0].isupper() and (len(plain) < 4 or plain in words("names", "not_in_lower_case")):
            return None
        return _first_name_of_list(tokens, index, plain)
    if plain in names().others and _is_other_name(tokens, index, plain):
        raise CannotSwapError(f"the list of names has no counterpart of '{token.text[: len(plain)]}'")
    return None


def _first_name_of_list(tokens: Tokens, index: int, plain: str) -> FirstName | None:
    token = tokens.all[index]
    written = token.text[: len(plain)]
    if _follows_title(tokens, index):
        if names().listed[plain].column == 1:  # names of men are frequent surnames, those of women are not
            raise CannotSwapError(f"'{written}' after a title may be a first name or a surname")
        return None
    if tokens.lower(index - 1) in names().before_places:
        return None
    if tokens.lower(index - 1) in _BEFORE_PLACES and token.text == written:
        raise CannotSwapError(f"'{written}' may be a place")
    if tokens.is_acronym(index) and len(plain) < 5:
        raise CannotSwapError(f"'{written}' may be an abbreviation")
    if tokens.text[token.end : token.end + 2] in ("' ", "’ "):
        raise CannotSwapError(f"unclear possessive of '{written}'")
    if tokens.lower(index - 1) == "st" or (tokens.lower(index - 1) == "." and tokens.lower(index - 2) == "st"):
        raise CannotSwapError(f"'{written}' may belong to the name of a place")
    term = names().listed[plain]
    if _adjoins(tokens, index - 1) and tokens.is_capitalised(index - 1):
        before = tokens.lower(index - 1)
        if before in names().listed or before in names().others:
            if before in names().listed and names().listed[before].column == term.column:
                raise CannotSwapError(f"'{tokens.all[index - 1].text} {written}' may be one name")
            return None
    for following in (index + 1, index + 2):
        if tokens.lower(following) in names().places and tokens.is_capitalised(following):
            raise CannotSwapError(f"'{written} {tokens.all[following].text}' may be a place or an organisation")
    if _adjoins(tokens, index) and tokens.is_capitalised(index + 1):
        if plain in names().with_gendered_surnames:
            raise CannotSwapError(f"the surname '{tokens.all[index + 1].text}' may have a gender")
        following_name = tokens.lower(index + 1)
        is_name = following_name in names().listed or following_name in names().others
        middle = is_name and _adjoins(tokens, index + 1) and tokens.is_capitalised(index + 2)
        if _asks_about(tokens, index):
            raise CannotSwapError(f"'{written} {tokens.all[index + 1].text}' may be a known person")
        if middle or following_name in names().second:
            raise CannotSwapError(f"'{written} {tokens.all[index + 1].text}' may be one name")
    present = {other.lower.removesuffix("'s") for other in tokens.all}
    free = tuple(name for name in names().same_origin[plain] if name.lower() not in present)
    return FirstName(len(plain), term, free)


def _asks_about(tokens: Tokens, index: int) -> bool:
    """Return whether the text asks about the person named at a position: in a question, or after "about"."""
    if tokens.lower(index - 1) in words("names", "before_known_people"):
        return True
    start = index
    while start > 0 and not tokens.starts_sentence(start):
        start -= 1
    return tokens.lower(start) in words("names", "questions")


def _is_other_name(tokens: Tokens, index: int, plain: str) -> bool:
    """Return whether a word of `Names.others` is used as a first name at this position."""
    if tokens.text.islower() and len(plain) > 3 and plain not in names().words_at_start:
        return plain not in words("names", "not_in_lower_case") | words("names", "also_places")
    if not tokens.is_capitalised(index) or tokens.is_acronym(index) or _follows_title(tokens, index):
        return False
    if plain in names().words_at_start and tokens.starts_sentence(index):
        is_possessive = tokens.lower(index) != plain
        return is_possessive or tokens.lower(index + 1) in words("names", "verbs_after_names")
    before = tokens.lower(index - 1)
    if before in names().before_places:
        return False
    if plain in words("names", "also_places") and (
        before in words("names", "before_places") or tokens.all[index - 1].kind == "number"
    ):
        return False
    if plain in ("april", "may", "june", "august") and (token := tokens.at(index + 1)) and token.kind == "number":
        return False
    # A surname, as in "Emily Carter".
    return not (
        _adjoins(tokens, index - 1)
        and tokens.is_capitalised(index - 1)
        and not (tokens.starts_sentence(index - 1) and before not in names().listed)
    )


def has_gendered_ending(surname: str) -> bool:
    """Return whether a surname has the ending of a woman's surname in a Slavic language or in Icelandic."""
    return surname.lower().endswith(("ova", "eva", "ová", "skaya", "skaia", "ská", "dottir", "dóttir"))


def is_unknown_name(tokens: Tokens, index: int) -> bool:
    """Return whether the word at a position may be a first name that no list contains."""
    if not tokens.is_capitalised(index) or tokens.is_acronym(index) or tokens.in_capitals:
        return False
    plain = tokens.lower(index).removesuffix("'s")
    known = plain in names().listed or plain in names().neutral or plain in gender()["titles"] or "'" in plain
    return not known and plain not in ("i", "i'm") and len(plain) > 1


def check_unknown_names(tokens: Tokens, swapped: Collection[int], *, subjects: bool) -> None:
    """Raise `CannotSwapError` if a word with a capital may be the name of a person that no list contains.

    Args:
        tokens: the prompt.
        swapped: positions in the text at which the swapped terms begin.
        subjects: whether the first word of a sentence may be a name: a possessive, or a word before an age or a verb.
    """
    lower_case = {token.text for token in tokens.all if token.text.islower()}
    known = names().no_names | names().before_places | lower_case | names().neutral | words("names", "titles")
    parts_of_names: set[int] = set()
    for index, token in enumerate(tokens.all):
        plain = token.lower.removesuffix("'s")
        if not tokens.is_capitalised(index) or tokens.in_capitals or len(token.text) < 2:
            continue
        if _is_part_of_name(tokens, index, parts_of_names):
            parts_of_names.add(index)
        elif (
            token.start in swapped or plain in known or tokens.is_acronym(index) or not plain.replace("-", "").isalpha()
        ):
            continue
        elif not tokens.starts_sentence(index) or (subjects and _is_subject(tokens, index)):
            raise CannotSwapError(f"'{token.text[: len(plain)]}' may be a name that the built-in list lacks")


def _is_part_of_name(tokens: Tokens, index: int, parts_of_names: Collection[int]) -> bool:
    """Return whether a word with a capital is a surname, or part of the name of a place or an organisation.

    Args:
        tokens: the prompt.
        index: position of the word.
        parts_of_names: positions of the earlier words for which this function returned true.
    """
    before = index - 2 if tokens.lower(index - 1) == "." else index - 1
    previous = tokens.lower(before).removesuffix("'s")
    following = index + 1
    while _adjoins(tokens, following - 1) and tokens.is_capitalised(following):
        if tokens.lower(following) in names().places:
            return True
        following += 1
    possessive = tokens.lower(following - 1).endswith("'s")
    if tokens.lower(following) in words("people", "compounds") and not possessive:  # "the Senior Advantage plan"
        return True
    if previous in words("names", "titles"):
        return following == index + 1  # "Mr. Miller", but not "Mr. Desmond Miller"
    if not _adjoins(tokens, index - 1):
        return False
    place = previous in names().before_places | _BEFORE_PLACES and tokens.lower(index) != "the"
    place = place or (previous == "to" and tokens.lower(index - 3) == "from")
    organisation = previous in names().places and tokens.is_capitalised(index - 1)
    surname = previous in names().listed or previous in names().neutral
    return index - 1 in parts_of_names or place or organisation or surname


def _is_subject(tokens: Tokens, index: int) -> bool:
    """Return whether the first word of a sentence may be a name: it is a possessive, or an age or a verb follows."""
    after = tokens.lower(index + 1)
    possessive = tokens.lower(index).endswith("'s") and tokens.lower(index) not in words("names", "contractions")
    age = after in (",", "(") and tokens.lower(index + 2).isdigit()
    verbs = words("names", "verbs_after_names") | words("agreement", "past") | words("agreement", "third_person")
    return possessive or age or after in verbs or (after.endswith("ed") and tokens.is_word(index + 1))


def _follows_title(tokens: Tokens, index: int) -> bool:
    """Return whether the name is a surname after a title ("Mr. James"), not a first name ("Mr. James Miller")."""
    before = index - 2 if tokens.lower(index - 1) == "." else index - 1
    first = _adjoins(tokens, index) and tokens.is_capitalised(index + 1)
    return tokens.lower(before) in words("names", "titles") and not first


def _adjoins(tokens: Tokens, index: int) -> bool:
    """Return whether a single blank separates the token at a position from the next token."""
    token, following = tokens.at(index), tokens.at(index + 1)
    return token is not None and following is not None and following.start == token.end + 1
