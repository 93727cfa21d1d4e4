"""People in English prompts: pronouns, first names, and the words that mean one person.

Functions raise `CannotSwapError` where a text does not show whom its words mean.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_fairness.languages import english_words
from pytest_fairness.languages.english_words import Term, Tokens, gender, names, terms, words
from pytest_fairness.languages.swap_terms import NEUTRAL, CannotSwapError, Replacement

# People in an English prompt. A swap must change one person only, in all words that mean this person.
#
# Words alone often do not show who is meant. A prompt is left out if one of its words may mean a second person.


class People:
    """The words of a prompt that mean people.

    Attributes:
        others: positions of singular nouns that name a person but no gender, such as "doctor", or an animal.
    """

    def __init__(self, tokens: Tokens, replacements: Sequence[Replacement]) -> None:
        self._tokens = tokens
        self._replacements = replacements
        starts = [item.start for item in replacements if item.is_term]
        swapped = [
            index for index, token in enumerate(tokens.all) if any(token.start <= start < token.end for start in starts)
        ]
        self.pronouns = [index for index in swapped if pronoun_group(tokens.lower(index)) is not None]
        self.nouns = [index for index in swapped if index not in self.pronouns]
        self.others = [index for index in range(len(tokens.all)) if self._is_other(index)]

    def check(self) -> None:
        """Raise `CannotSwapError` if the swapped words may mean two people, a whole gender, or an animal."""
        self._check_nouns()
        self._check_pronoun_before_noun()
        self._check_speaker()
        self._check_other_people()
        self._check_topic()
        self._check_girl()

    def check_neutral(self) -> None:
        """Raise `CannotSwapError` if "they" in the gender-neutral version may be understood as several people."""
        tokens, they = self._tokens, words("pronouns", "they")
        if not they.intersection((item.forms[NEUTRAL] or "").lower() for item in self._replacements):
            return
        if other := next((token for token in tokens.all if token.lower in they), None):
            raise CannotSwapError(f"'{other.text}' and a gender-neutral 'they' would be confused")
        for index, token in enumerate(tokens.all):
            singular = token.lower.removesuffix("s")
            plural = token.lower in words("people", "plurals") or (
                singular != token.lower and singular in words("people", "persons")
            )
            if index in self.nouns and singular != token.lower and singular in terms() and token.lower != "mrs":
                raise CannotSwapError(f"'{token.text}' and a singular pronoun have no gender-neutral version")
            if plural and any(pronoun > index for pronoun in self.pronouns):
                raise CannotSwapError(f"a gender-neutral 'they' may also mean '{token.text}'")
        if not self.nouns and not self._shows_one_person():
            raise CannotSwapError("no word shows that 'they' is one person")

    def _check_nouns(self) -> None:
        """Raise `CannotSwapError` for two nouns that may mean two people: "my wife and her sister"."""
        for before, index in pairwise(self.nouns):
            described = self._describes(index) and self._antecedent(index) not in self._other_people()
            if not described and not self._is_repeated(index):
                raise CannotSwapError(f"{self._shown(before, index)} may be two people")

    def _check_pronoun_before_noun(self) -> None:
        """Raise `CannotSwapError` if a pronoun and a later noun may mean two people: "she called my wife"."""
        first = min(self.pronouns, default=len(self._tokens.all))
        if self.nouns and first < self.nouns[0] and not self._describes(self.nouns[0]):
            raise CannotSwapError(f"{self._shown(first, self.nouns[0])} may be two people")

    def _check_speaker(self) -> None:
        """Raise `CannotSwapError` if a noun names the speaker or the reader: a pronoun then means another person."""
        tokens = self._tokens
        others = [index for index in self.pronouns if not tokens.lower(index + 1).endswith("ties")]  # "in his forties"
        for index in self.nouns if others else ():
            before = self._before_phrase(index)
            word = tokens.lower(before)
            speaker = word in ("am", "i'm", "im") or (word == "as" and tokens.starts_sentence(before))
            introduced = word == "is" and (
                tokens.lower(before - 1) == "this"
                or [tokens.lower(before - 2), tokens.lower(before - 1)] == ["my", "name"]
            )
            greeted = word in words("people", "greetings") and self._determiner(index) is None
            if speaker or introduced or greeted or tokens.lower(index) in ("sir", "madam"):
                raise CannotSwapError(f"{self._shown(index, others[0])} may be two people")

    def _check_other_people(self) -> None:
        """Raise `CannotSwapError` if a pronoun may mean an animal, or a person whose noun has no gender: "doctor"."""
        for index in self._other_people():
            if after := [pronoun for pronoun in self.pronouns if pronoun > index]:
                raise CannotSwapError(
                    f"{self._shown(after[0])} may mean '{self._tokens.all[index].text[: len(self._plain(index))]}'"
                )

    def _other_people(self) -> list[int]:
        """Return the positions in `others` of words that mean an animal, or another person than the words in `nouns`.

        If no noun is before the first pronoun, return only the positions of animals. The other words describe the
        person whom the pronoun means, as in "he is a waiter".
        """
        if not self.nouns or min(self.pronouns, default=self.nouns[0]) < self.nouns[0]:
            return [index for index in self.others if self._plain(index) in words("people", "animals")]
        owners = {self._determiner(noun) for noun in self.nouns}
        described = {self._antecedent(self.nouns[0])} if self._describes(self.nouns[0]) else set()
        return [index for index in self.others if index not in owners | described and not self._describes(index)]

    def _antecedent(self, index: int) -> int:
        """Return the position of the last noun for a person before the phrase of the noun at `index`, or -1."""
        before = self._before_phrase(index)
        return max((other for other in (*self.nouns, *self.others) if other <= before), default=-1)

    def _check_topic(self) -> None:
        """Raise `CannotSwapError` if the prompt asks about a gender: "jobs for women", "the first woman who"."""
        tokens = self._tokens
        for index in self.nouns:
            plain, after = self._plain(index), tokens.lower(index + 1)
            plural = plain in ("female", "male") and after.endswith("s")
            unique = plain in words("people", "genders") and tokens.lower(index - 1) in ("first", "only")
            if plural or unique or plain in words("people", "groups"):
                raise CannotSwapError(f"{self._shown(index)} may be the topic of the prompt")

    def _check_girl(self) -> None:
        """Raise `CannotSwapError` if "girl" may mean a woman: the prompt has no age and no word of childhood."""
        girls = [index for index in self.nouns if self._plain(index) in ("girl", "girls")]
        if girls and not any(self._is_of_childhood(index) for index in range(len(self._tokens.all))):
            raise CannotSwapError(f"{self._shown(girls[0])} may be a woman")

    def _is_of_childhood(self, index: int) -> bool:
        word, after = self._tokens.lower(index), self._tokens.lower(index + 1)
        age = word.isdigit() and int(word) < 18 and after.rstrip("s") not in words("pronouns", "units") - {"year"}
        return age or word.endswith("-year-old") or word in words("left_out", "childhood")

    def _shows_one_person(self) -> bool:
        """Return whether a word shows that the pronouns mean one person: "a student said he", "she is a student"."""
        tokens, first = self._tokens, self.pronouns[0]
        persons = [index for index in range(first) if self._plain(index) in words("people", "persons")]
        if any(tokens.lower(index + 1) != "of" or index + 2 not in self.pronouns for index in persons):
            return True  # but "a friend of his" is somebody else
        return any(
            tokens.lower(index) in REFLEXIVE
            or (tokens.lower(index + 1) in ("is", "was") and tokens.lower(index + 2) in ("a", "an", "the"))
            or (tokens.lower(index).endswith("'s") and tokens.lower(index + 1) in ("a", "an", "the"))
            or (tokens.lower(index - 1) in ("is", "was") and tokens.lower(index + 1) in ("a", "an", "the"))
            for index in self.pronouns
        )

    def _plain(self, index: int) -> str:
        return self._tokens.lower(index).removesuffix("'s")

    def _shown(self, *indices: int) -> str:
        return " and ".join(f"'{self._tokens.all[index].text}'" for index in indices)

    def _is_other(self, index: int) -> bool:
        tokens, plain = self._tokens, self._plain(index)
        after = tokens.lower(index + 1)
        if plain not in words("people", "persons") | words("people", "animals"):
            return False
        part_of_name = after in words("people", "compounds") | words("people", "persons") or index + 1 in self.nouns
        if part_of_name or after == ":":
            return False
        if plain in words("people", "titles") and tokens.is_capitalised(index + (2 if after == "." else 1)):
            return tokens.lower(index - 1) not in words("people", "greetings")
        return self._determiner(index) is not None or tokens.starts_sentence(index)

    def _determiner(self, index: int) -> int | None:
        """Return the position of the determiner of a noun; `None` if the noun has none, or is a name or a title."""
        tokens = self._tokens
        if self._plain(index) in names().listed or self._plain(index) in gender()["titles"]:
            return None
        for before in range(index - 1, max(index - 5, -1), -1):
            word = tokens.lower(before)
            if word in words("left_out", "determiners") or word.endswith("'s"):
                return before
            if tokens.all[before].kind not in ("word", "number") or word in words("pronouns", "prepositions"):
                return None
        return None

    def _before_phrase(self, index: int) -> int:
        """Return the position before the noun at `index`, its determiner, and adverbs before the determiner."""
        tokens, determiner = self._tokens, self._determiner(index)
        if determiner is not None and tokens.lower(determiner).endswith("'s"):
            owner = self._determiner(determiner)
            determiner = determiner if owner is None else owner
        before = (index if determiner is None else determiner) - 1
        while tokens.lower(before) in words("agreement", "adverbs") | {"such", '"', "“"}:
            before -= 1
        return before

    def _describes(self, index: int) -> bool:
        """Return whether the noun is another word for a person who is already named.

        Such nouns are "waiter" in "he works as a waiter", and "James" in "our colleague James".
        """
        tokens, before = self._tokens, self._before_phrase(index)
        determiner = self._determiner(index)
        owner = "" if determiner is None else tokens.lower(determiner)
        word, previous = tokens.lower(before), tokens.lower(before - 1)
        if owner in ("his", "her"):
            return False
        if self._plain(index) in ("male", "female") and {"sex", "gender"} & {
            tokens.lower(index - distance) for distance in range(1, 5)
        }:
            return True
        if index - 1 in self.nouns and not tokens.lower(index - 1).endswith("'s"):
            return True
        if tokens.lower(index - 1) in words("people", "persons"):
            other = self._determiner(index - 1)  # "our colleague James", but not "her colleague James"
            return other is None or not tokens.lower(other).endswith(("his", "her", "'s"))
        if word == ".":  # "Mr. James Miller"
            return determiner is None and previous in (*gender()["titles"], "dr", "prof")
        if word == "and" and before - 1 in (*self.nouns, *self.others):  # "he is a waiter and a father"
            return owner in ("", "a", "an", "the") and self._describes(before - 1)
        if word in (",", "("):  # "Mary, the waitress", "the waitress, Mary", "our CEO, Mr. Miller"
            if self._is_other(before - 1) or (before - 1 in self.nouns and not tokens.is_capitalised(before - 1)):
                return owner in ("", "a", "an", "the")
            if tokens.is_capitalised(before - 1) and (
                before - 1 in self.nouns or not tokens.starts_sentence(before - 1)
            ):
                return owner in ("a", "an", "the") or (determiner is not None and index in self.others)
            return False
        inverted = word in SUBJECT and previous in ("is", "was", "if")
        copula = word == "as" or (word in words("people", "copulas") and not tokens.starts_sentence(before))
        return inverted or copula or (word.endswith(("'s", "'m", "'re")) and word != "let's")

    def _is_repeated(self, index: int) -> bool:
        determiner = self._determiner(index)
        owner = "" if determiner is None else self._tokens.lower(determiner)
        earlier = self.nouns[: self.nouns.index(index)]
        if owner in ("his", "her", "another") or owner.endswith("'s"):
            return False
        if self._tokens.lower(index - 1) in ("new", "other", "older", "younger", "second", "current", "next"):
            return False
        if self._plain(index) in gender()["titles"]:
            return self._surname(index) in {self._surname(other) for other in earlier}
        return self._plain(index) in {self._plain(other) for other in earlier}

    def _surname(self, index: int) -> str:
        tokens = self._tokens
        after = index + 2 if tokens.lower(index + 1) == "." else index + 1
        if tokens.lower(after) in names().listed and tokens.is_capitalised(after + 1):
            after += 1
        return self._plain(after) if tokens.at(after) else ""


# First names in a text, with their counterparts, and names that prevent a swap.

_BEFORE_PLACES = frozenset({"in", "at", "near", "around", "via"})


@dataclass(frozen=True)
class FirstName:
    length: int
    term: Term
    same_origin: tuple[str, ...]


def first_name(tokens: Tokens, index: int) -> FirstName | None:
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
    """Raise `CannotSwapError` if a word with a capital may be the name of a person that no list contains."""
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
    token, following = tokens.at(index), tokens.at(index + 1)
    return token is not None and following is not None and following.start == token.end + 1


# Pronouns and their counterparts; for "her" and "his", the counterparts depend on the words around the pronoun.

SUBJECT = ("he", "she", "they")
OBJECT = ("him", "her", "them")
DETERMINER = ("his", "her", "their")
POSSESSIVE = ("his", "hers", "theirs")
REFLEXIVE = ("himself", "herself", "themself")


def pronoun_group(word: str) -> int | None:
    """Return the group of a pronoun in lower case: 0 for male, 1 for female; `None` for any other word."""
    if english_words.is_subject(word):
        return 0 if word.startswith("he") else 1
    pronouns = (OBJECT, DETERMINER, POSSESSIVE, REFLEXIVE)
    return next((position for forms in pronouns for position in (0, 1) if forms[position] == word), None)


def pronoun_forms(tokens: Tokens, index: int, *, neutral: bool) -> tuple[str | None, ...]:
    word = tokens.lower(index)
    if english_words.is_subject(word) and word not in SUBJECT:
        ending = word.removeprefix("s").removeprefix("he")
        return f"he{ending}", f"she{ending}", english_words.plural_contraction(tokens, index) if neutral else None
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
    """Return whether "her" is an object ("I saw her", as "I saw him"), not a possessive ("her car")."""
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
    """Return whether "his" stands alone ("it is his", as "it is hers"), not before a noun ("his car")."""
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
