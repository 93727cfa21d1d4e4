"""People in an English prompt. A swap must change one person only, in all words that mean this person.

Words alone often do not show who is meant. A prompt is left out if one of its words may mean a second person.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pytest_fairness.languages.swaps.english import pronouns
from pytest_fairness.languages.swaps.english.tokens import Tokens
from pytest_fairness.languages.swaps.english.words import gender, names, terms, words
from pytest_fairness.languages.swaps.reading import NEUTRAL, CannotSwapError, Replacement


class People:
    """The words of a prompt that mean people.

    Attributes:
        nouns: positions of the nouns, names and titles that are swapped.
        pronouns: positions of the pronouns that are swapped.
        others: positions of singular nouns that name a person but no gender, such as "doctor", or an animal.
    """

    def __init__(self, tokens: Tokens, replacements: Sequence[Replacement]) -> None:
        self._tokens = tokens
        self._replacements = replacements
        starts = [item.start for item in replacements if item.is_term]
        swapped = [
            index for index, token in enumerate(tokens.all) if any(token.start <= start < token.end for start in starts)
        ]
        self.pronouns = [index for index in swapped if pronouns.column(tokens.lower(index)) is not None]
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
            tokens.lower(index) in pronouns.REFLEXIVE
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
        """Return the position of the word before the phrase of the noun at `index`.

        The phrase is the noun, its determiner, and adverbs before the determiner.
        """
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
        inverted = word in pronouns.SUBJECT and previous in ("is", "was", "if")
        copula = word == "as" or (word in words("people", "copulas") and not tokens.starts_sentence(before))
        return inverted or copula or (word.endswith(("'s", "'m", "'re")) and word != "let's")

    def _is_repeated(self, index: int) -> bool:
        """Return whether a noun repeats an earlier noun, or is a title before the surname of an earlier noun."""
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
