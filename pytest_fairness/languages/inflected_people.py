"""People in German, French and Spanish prompts: nouns with determiners, titles, first names, and words that agree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from pytest_fairness.languages import straightened
from pytest_fairness.languages.forms import Determiner, Noun, grammar, words
from pytest_fairness.languages.swap_terms import CannotSwapError, Reading, Replacement, either, group_column, like

_MALE, _FEMALE = 0, 1
_NOMINATIVE, _ACCUSATIVE, _DATIVE, _GENITIVE = range(4)
_VOWEL = re.compile(r"[aeiouyhàâéèêëîïôœæ]", re.IGNORECASE)
_TOKEN = re.compile(
    r"\b(?:Sra?|Dra?|Mme?|M|D|Dña|Prof)\.|[^\W\d_]+(?:-(?!(?:t-)?(?:ils?|elles?|on|je|tu|nous|vous|l[ea]s?|lui|moi)\b)[^\W\d_]+)*'?"
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:\n¿¡]|[\"“„«])\s*$")
_CLAUSE_END = re.compile(r"[.,;:!?\n¿¡()\"„“]|(?<!\w)(?:und|oder|aber|denn|sondern)(?!\w)")

_FEMALE_ENDINGS = ("erin", "orin", "eurin", "istin", "entin", "antin")
"""Endings of German nouns of women whose form for a man is regular."""


@dataclass(frozen=True, eq=False)
class _Person:
    """A term that names a person: first and last token with its surname, and what identifies the person."""

    column: int
    first: int
    last: int
    name: str
    slot: int = 0


def gendered_people(text: str, code: str, groups: Sequence[str]) -> Reading:
    finder = _Finder(straightened(text), code)
    column = finder.find_people(groups)
    finder.replace_pronouns(column)
    if code != "de":
        finder.replace_predicates(column)
    finder.check_other_words(column)
    pieces = sorted({piece[0]: piece for piece in finder.pieces}.values())
    return Reading(
        column,
        tuple(
            Replacement(start, text[start:end], _in_order(column, text[start:end], new), is_term)
            for start, end, new, is_term in pieces
        ),
        tuple(finder.placebos),
        tuple(dict.fromkeys(finder.warnings)),
    )


def _in_order(column: int, own: str, other: str) -> tuple[str, ...]:
    other = like(own, other.replace("'", "’") if "’" in own else other)
    return (own, other) if column == _MALE else (other, own)


class _Finder:
    """Search of a prompt for the words that change with the gender of its one person.

    Attributes:
        pieces: start, end, text for the other gender, and whether the piece names the gender by itself.
    """

    def __init__(self, text: str, code: str) -> None:
        self.text, self.code, self.grammar = text, code, grammar(code)
        self.tokens = list(_TOKEN.finditer(text))
        self.people: list[_Person] = []
        self.pieces: list[tuple[int, int, str, bool]] = []
        self.placebos: list[Replacement] = []
        self.warnings: list[str] = []
        nobody = [match.span() for match in re.finditer(self.grammar.content["not_people"], text)]
        self.used = {
            index for index, token in enumerate(self.tokens) for start, end in nobody if start <= token.start() < end
        }
        self.unread: list[str] = []

    def word(self, index: int) -> str:
        """Return the word at an index, empty outside the text."""
        return self.tokens[index][0] if 0 <= index < len(self.tokens) else ""

    def follows(self, index: int) -> bool:
        """Return whether at most a blank or hyphens stand between the token and the one before."""
        if not 0 < index < len(self.tokens):
            return False
        return self.text[self.tokens[index - 1].end() : self.tokens[index].start()] in (" ", "", "-", "-t-")

    def words_of(self, key: str) -> frozenset[str]:
        return words(self.code, key)

    def find_people(self, groups: Sequence[str]) -> int:
        """Find the nouns, titles and names, and return the column of the one person."""
        for index in range(len(self.tokens)):
            if index not in self.used:
                self.read_title(index) or self.read_name(index) or self.read_noun(index)
        for index, token in enumerate(self.tokens):
            if index not in self.used and token[0].lower() in self.words_of("left_out"):
                raise CannotSwapError(f"the built-in list has no counterpart of '{token[0]}'")
        column = group_column([person.column for person in self.people], groups)
        names = dict.fromkeys(person.name for person in self.people if person.name)
        if len(names) > 1:
            raise CannotSwapError(f"{' and '.join(map(repr, names))} may be two people")
        return column

    def add(self, index: int, other: str) -> None:
        self.pieces.append((*self.tokens[index].span(), other, True))
        self.used.add(index)

    # Titles, names and nouns.

    def read_title(self, index: int) -> bool:
        """Read a title such as "Herr" or "Madame", with the words of a salutation before it and the name after it."""
        titles = self.grammar.content["titles"]
        readings = [(column, row) for row in titles for column in (0, 1) if self.word(index) in row[column].split()]
        if not readings or self.determiner_before(index)[1] or (self.code == "de" and not self.is_name(index + 1)):
            return False
        (column, row), *_ = readings
        last = index if self.word(index).lower() in self.words_of("before_first_names") else self.last_of_name(index)
        first = self.first_adjective(index)
        forms = row[1 - column].split()
        slot = _NOMINATIVE
        if self.people and self.people[-1].last == first - 1 and self.follows(first):
            slot = self.people[-1].slot
        elif first == index and len(forms) > 1:
            slot = self.german_case(first, last, {*range(4)})
        self.inflect(first, index, "strong", column, slot)
        self.add(index, forms[min(slot, len(forms) - 1)])
        self.add_person(column, first, last, " ".join(map(self.word, range(index + 1, last + 1))), (" ", ", "))
        return True

    def read_name(self, index: int) -> bool:
        word = self.word(index)
        if word not in self.grammar.names:
            if word in self.grammar.other_names and not self.nouns_of(word):
                raise CannotSwapError(f"the built-in list has no counterpart of the name '{word}'")
            return False
        if self.code != "de" and self.follows(index) and self.is_name(index - 1) and index - 1 not in self.used:
            return False
        last = self.last_of_name(index)
        if self.word(index - 1).lower() in ("von", "de") and index - 2 in self.used:
            self.warnings.append(f"'{word}' may be another person, whose name is not replaced")
            return True
        column, pair, other = self.grammar.names[word]
        if word in self.words_of("compound_names") and self.word(index + 1) in self.grammar.names:
            raise CannotSwapError(f"the built-in list has no counterpart of the name '{word} {self.word(index + 1)}'")
        if pair[1 - column] in map(self.word, range(len(self.tokens))):
            raise CannotSwapError(f"the counterpart '{pair[1 - column]}' of '{word}' is already in the prompt")
        self.add(index, pair[1 - column])
        before = self.word(index - 1).lower()
        if self.code == "fr" and before in ("de", "d'", "que", "qu'") and self.follows(index):
            vowel = _VOWEL.match(pair[1 - column])
            short = before.rstrip("e'") + ("'" if vowel else "e ")
            self.pieces.append((self.tokens[index - 1].start(), self.tokens[index].start(), short, False))
        self.placebos.append(Replacement(self.tokens[index].start(), word, (other[column],)))
        speaker = re.search(self.grammar.content["before_own_name"] + r"\s*$", self.text[: self.tokens[index].start()])
        self.add_person(column, index, last, "the speaker" if speaker else word, (" ",))
        return True

    def read_noun(self, index: int) -> bool:
        word = self.word(index) if self.code == "de" else self.word(index).lower()
        nouns = self.nouns_of(word)
        if not nouns:
            return False
        first, determiners = self.determiner_before(index)
        adjective = self.first_adjective(index)
        if not determiners:
            return self.read_predicate(index, adjective, nouns)
        column, readings = self.readings(word, nouns, determiners, range(adjective, index))
        if not readings:
            return False
        slots = {*readings}
        written = readings[min(slots)][0].forms[column][min(slots)]
        plural = re.fullmatch(self.grammar.content["plural_determiners"], written)
        if plural and any(word in noun.plurals for noun in nouns) and not self.is_singular(first, index, slots):
            return False
        slot = min(slots)
        predicate = self.predicate_verb(first)
        if self.code == "de" and len(slots) > 1 and not predicate:
            slot = self.german_case(first, index, slots)
        determiner, noun = readings[slot]
        other, case = 1 - column, slot
        self.inflect(adjective, index, determiner.kind, column, case)
        self.add(index, noun.forms[other][case])
        if self.code == "fr":
            following = next(piece[2] for piece in self.pieces if piece[0] == self.tokens[adjective].start())
            slot = 1 if _VOWEL.match(following) else 0
        form = determiner.forms[other][slot]
        end = self.tokens[adjective].start()
        blank = "" if form.endswith("'") else " "
        self.pieces.append((self.tokens[first].start(), end, form + blank, True))
        last = self.last_of_name(index) if word.lower() in self.words_of("titles_with_article") else index
        name = self.name_of_predicate(first, predicate, noun.name) if predicate else noun.name
        self.add_person(column, first, last, name, slot=case)
        if self.code != "de":
            self.agree(last + 1, column)
        return True

    def readings(
        self, word: str, nouns: Sequence[Noun], determiners: Sequence[tuple[Determiner, str]], adjectives: range
    ) -> tuple[int, dict[int, tuple[Determiner, Noun]]]:
        """Return the column of a noun phrase, and its possible determiners and nouns by slot; none for both columns."""
        found: tuple[dict[int, tuple[Determiner, Noun]], ...] = ({}, {})
        for determiner, written in determiners:
            for noun in nouns:
                for column, slot in product((_MALE, _FEMALE), range(len(noun.forms[0]))):
                    form = determiner.forms[column][slot].lower()
                    fits = form == written and noun.forms[column][slot] == word and noun.kind in ("-", determiner.kind)
                    before_vowel = _VOWEL.match(self.word(adjectives.start)) is not None
                    if fits and (self.code != "fr" or slot == int(before_vowel)):
                        found[column].setdefault(slot, (determiner, noun))
        columns = [column for column in (_MALE, _FEMALE) if found[column]]
        if len(columns) > 1:
            changes = {
                column
                for column, token in product(columns, adjectives if self.code != "de" else ())
                if self.other_adjective(token, column) not in (None, self.word(token).lower())
            }
            columns = [*changes]
        return (columns[0], found[columns[0]]) if len(columns) == 1 else (_MALE, {})

    def read_predicate(self, index: int, first: int, nouns: Sequence[Noun]) -> bool:
        """Read a noun without determiner: "ich bin Kundin", "als Kunde", or after a name and a comma."""
        word = self.word(index) if self.code == "de" else self.word(index).lower()
        noun = nouns[0]
        columns = [column for column, forms in enumerate(noun.forms) if forms[0] == word]
        if len(columns) > 1 or word in self.words_of("common"):
            return False
        last = self.tokens[self.people[-1].last].end() if self.people else 0
        after_name = re.fullmatch(r"(?:, \d+(?: \w+)?)?, ", self.text[last : self.tokens[first].start()])
        verb = self.predicate_verb(first)
        beside = self.follows(first) and any(person.last == first - 1 for person in self.people)
        named = self.word(index + 1) in self.grammar.names and len(set(noun.forms[_MALE][:3])) == 1
        if not columns or not (after_name or verb or beside or named):
            between_commas = re.search(r", $", self.text[: self.tokens[first].start()]) is not None
            generic = columns == [_MALE] and (word in noun.plurals or self.word(first - 1) in ("de", "d'"))
            participle = self.word(first - 1).lower() in self.words_of("auxiliaries")
            also_adjective = participle or word in self.grammar.adjectives or word in self.words_of("also_adjectives")
            if columns and not also_adjective and (between_commas or not generic):
                self.unread.append(word)
            return False
        (column,) = columns
        self.inflect(first, index, "strong", column, _NOMINATIVE)
        self.add(index, noun.forms[1 - column][0])
        name = self.name_of_predicate(first, verb, "") if verb and not after_name else ""
        self.people.append(_Person(column, first, self.last_of_name(index) if beside else index, name))
        if self.code != "de":
            self.agree(index + 1, column)
        return True

    def predicate_verb(self, first: int) -> str:
        """Return what stands before a noun that says what somebody is, such as "bin" or "als"; empty for others."""
        pattern = self.grammar.content["before_predicate"] + r"\s*$"
        match = re.search(pattern, self.text[: self.tokens[first].start()])
        return match[0] if match else ""

    def name_of_predicate(self, first: int, verb: str, other: str) -> str:
        """Return "the speaker" for a noun that says what the writer is, and nothing for a person named before."""
        content = self.grammar.content
        last = self.people[-1].last + 1 if self.people else 0
        if re.search(content["first_person_verb"], verb):
            return "the speaker"
        if self.people and not any(self.starts_sentence(token) for token in range(last, first + 1)):
            return ""
        own = re.search(content["as"], verb) and re.search(content["speaker"], self.sentence(first), re.IGNORECASE)
        return "the speaker" if own else other

    def nouns_of(self, word: str) -> list[Noun]:
        """Return the nouns of which a word is a form; in German also of compounds and of regular female forms."""
        nouns = self.grammar.nouns
        if self.code != "de":
            return nouns.get(word.lower(), [])
        if word in nouns or not word[:1].isupper():
            return nouns.get(word, [])
        if word.endswith(_FEMALE_ENDINGS):
            male = word.removesuffix("in")
            strong = male.endswith(("er", "or", "eur"))
            forms = (male, male, male, male + "s") if strong else (male, *[male + "en"] * 3)
            return [Noun(word, (forms, (word,) * 4), frozenset(), "-")]
        for cut in range(3, len(word) - 3) if word not in self.words_of("no_compounds") else ():
            heads = nouns.get(word[cut:].capitalize(), [])
            if heads and not {noun.name for noun in heads} & self.words_of("no_heads"):
                return [noun.compound(word[:cut]) for noun in heads]
        return []

    def determiner_before(self, index: int) -> tuple[int, list[tuple[Determiner, str]]]:
        """Return the first token of the determiner before a noun and its adjectives, and its possible readings."""
        last = self.first_adjective(index) - 1
        for first in (last - 1, last):
            written = " ".join(map(self.word, range(first, last + 1))).replace("' ", "'")
            linked = all(self.follows(token) for token in range(first + 1, last + 2))
            third = self.word(last) in self.words_of("third_person")
            if linked and not third and (found := self.grammar.determiners.get(written.lower())):
                return first, [(determiner, written.lower()) for determiner in found]
        return index, []

    def first_adjective(self, index: int) -> int:
        """Return the first of the adjectives directly before a noun, or the noun itself."""
        while self.follows(index) and self.is_adjective(index - 1):
            index -= 1
        return index

    def is_adjective(self, index: int) -> bool:
        word = self.word(index)
        if word.lower() in self.grammar.determiners or word.lower() in self.words_of("no_adjectives"):
            return False
        if self.code == "de":
            salutation = word.lower() in ("liebe", "lieber", "geehrte", "geehrter")
            return salutation or (word.islower() and re.search(r"\w{2}e[nrm]?$", word) is not None)
        return word.lower() in self.grammar.adjectives

    def inflect(self, first: int, noun: int, kind: str, column: int, slot: int) -> None:
        """Replace the adjectives between two tokens."""
        for index in range(first, noun):
            word = self.word(index)
            if self.code != "de":
                self.add(index, str(self.other_adjective(index, column)))
                continue
            rows = {row[0]: row[1:] for row in self.grammar.content["adjective_endings"]}
            ending, other = (rows[kind][own].split()[slot] for own in (column, 1 - column))
            if not word.endswith(ending):
                raise CannotSwapError(f"the form of '{word}' before '{self.word(noun)}' is not as expected")
            self.add(index, word.removesuffix(ending) + other)

    def is_name(self, index: int) -> bool:
        return self.word(index)[:1].isupper()

    def last_of_name(self, index: int) -> int:
        """Return the last of the capitalised words after a title or first name, and mark them as read."""
        while self.follows(index + 1) and self.is_name(index + 1):
            is_surname = self.word(index) in self.grammar.names and self.word(index + 1) in self.words_of("surnames")
            if self.nouns_of(self.word(index + 1)) and not is_surname:
                break
            first_name = self.word(index + 1) in self.grammar.names
            if first_name and self.follows(index + 2) and self.is_name(index + 2):
                break
            index += 1
            self.used.add(index)
        return index

    def add_person(
        self, column: int, first: int, last: int, name: str, after: Sequence[str] = (), slot: int = 0
    ) -> None:
        """Add a person, unless the words stand beside another term for the same person, such as a noun and its name."""
        gap = self.text[self.tokens[first - 1].end() : self.tokens[first].start()] if first else "."
        same = gap in after and any(person.last == first - 1 for person in self.people)
        unknown = after and gap in ((" ",) if self.code == "de" else (" ", ", ")) and first - 1 not in self.used
        if unknown and self.is_marked_determiner(first - 2, column):
            raise CannotSwapError(f"'{self.word(first - 2)} {self.word(first - 1)}' may be the same person")
        self.people.append(_Person(column, first, last, "" if same else name, slot))
        if self.code == "de":
            self.replace_relative(last, column)

    def is_marked_determiner(self, index: int, column: int) -> bool:
        """Return whether a word is a determiner whose form for the other gender is another."""
        word = self.word(index).lower()
        return any(
            form.lower() == word and form != determiner.forms[1 - column][slot]
            for determiner in self.grammar.determiners.get(word, ())
            for slot, form in enumerate(determiner.forms[column])
        )

    def starts_sentence(self, index: int) -> bool:
        return _SENTENCE_START.search(self.text[: self.tokens[index].start()]) is not None

    def sentence(self, index: int) -> str:
        before, after = self.text[: self.tokens[index].start()], self.text[self.tokens[index].start() :]
        return re.split(r"[.!?\n]", before)[-1] + re.split(r"[.!?\n]", after)[0]

    # Cases of German nouns whose determiner leaves them open.

    def clause(self, first: int, last: int) -> tuple[str, str]:
        """Return the words before and after a phrase in its clause."""
        before, after = self.text[: self.tokens[first].start()], self.text[self.tokens[last].end() :]
        return _CLAUSE_END.split(before)[-1].strip(), _CLAUSE_END.split(after, maxsplit=1)[0].strip()

    def is_singular(self, first: int, last: int, slots: set[int]) -> bool:
        """Return whether a phrase such as "den Kunden" or "der Lehrer", which may be plural, is singular."""
        before, _ = self.clause(first, last)
        previous = before.split()[-1].lower() if before else ""
        if slots == {_NOMINATIVE}:
            return not before or not before.split()[-1][0].isupper() or " " not in before
        if previous in self.words_of("dative_prepositions"):
            return False
        if previous not in self.words_of("prepositions"):
            self.warnings.append(f"'{self.word(last)}' may be plural")
        return True

    def german_case(self, first: int, last: int, slots: set[int]) -> int:
        """Return the case of a female phrase, such as nominative or accusative for "die Kundin"."""
        shown = " ".join(map(self.word, range(first, last + 1)))
        before, after = self.clause(first, last)
        words = before.split()
        previous = words[-1] if words else ""
        subject = self.has_subject(before, after)
        noun_before = len(words) > 1 and previous[0].isupper() and previous.lower() not in ("ich", "sie", "ihnen")
        if previous.lower() in self.words_of("genitive_prepositions") and _GENITIVE in slots:
            return _GENITIVE
        if previous.lower() in self.words_of("prepositions"):
            dative = previous.lower() in self.words_of("dative_prepositions")
            return _DATIVE if _DATIVE in slots and (dative or _ACCUSATIVE not in slots) else _ACCUSATIVE
        if _NOMINATIVE not in slots:
            if not noun_before:
                return _DATIVE
            if re.fullmatch(rf"(?:.* )?{self.grammar.content['before_genitive']} (?:[a-zäöüß]+ )?\w+", before):
                return _GENITIVE
            raise CannotSwapError(f"'{shown}' has several counterparts: its case is not clear")
        if subject:
            return _ACCUSATIVE
        if re.search(r"[a-zäöüß](?<!morg)en$|sind$", before) or re.match(
            r"(?:sind|haben|waren|werden|können)\b", after
        ):
            raise CannotSwapError(f"'{shown}' has several counterparts: its case is not clear")
        question = self.text[self.tokens[last].end() :].lstrip().partition("\n")[0]
        asks = re.match(r"[^.!?]*\?", question) is not None
        start = re.split(r"[.!?:\n]", self.text[: self.tokens[first].start()])[-1].strip()
        if re.fullmatch(r"(?:bitte )?[^\W\d_]+(?: (?:bitte|mal|mir|uns))*", start, re.IGNORECASE) and not asks:
            first_word = start.removeprefix("Bitte ").split()[0]
            if first_word.lower() not in self.words_of("before_subject"):
                return _ACCUSATIVE
        prepositions = self.words_of("prepositions") | self.words_of("dative_prepositions")
        others = re.finditer(r"(\w+) (?:der|dieser|jeder) [A-ZÄÖÜ]", f"x {after}")
        if noun_before or any(other[1].islower() and other[1] not in prepositions for other in others):
            raise CannotSwapError(f"'{shown}' has several counterparts: its case is not clear")
        return _NOMINATIVE

    def has_subject(self, before: str, after: str) -> bool:
        """Return whether a clause has a subject that is a pronoun."""
        pronoun = r"(?<!\w)(?:(?i:ich|du|wir|man|wer|gibt es|es gibt)|\w+n Sie|Sie \w+n)(?!\w)"
        return re.search(pronoun, f"{before} | {after}") is not None

    def replace_relative(self, last: int, column: int) -> None:
        """Replace a German relative pronoun directly after the person."""
        match = re.compile(r", (?:([a-zü]+) )?(der|die|den|dem|dessen|deren)(?!\w)").match(
            self.text, self.tokens[last].end()
        )
        if not match or (
            match[1] and match[1] not in self.words_of("prepositions") | self.words_of("dative_prepositions")
        ):
            return
        forms = (("der", "den", "dem", "dessen"), ("die", "die", "der", "deren"))
        slots = {slot for slot, form in enumerate(forms[column]) if form == match[2]}
        if not slots:
            return
        index = next(number for number, token in enumerate(self.tokens) if token.start() == match.start(2))
        slot = self.german_case(index, index, slots) if len(slots) > 1 else min(slots)
        self.pieces.append((*match.span(2), forms[1 - column][slot], False))
        self.used.add(index)

    # Pronouns, words that agree in French and Spanish, and all other words.

    def replace_pronouns(self, column: int) -> None:
        content = self.grammar.content
        if {person.name for person in self.people if person.name} == {"the speaker"}:
            return
        end = min(self.tokens[person.last].end() for person in self.people)
        for number, pattern, forms in content["pronouns"]:
            for match in re.finditer(pattern, self.text) if number == column else ():
                start, stop = match.span(1)
                if self.is_impersonal(start):
                    continue
                index = next(number for number, token in enumerate(self.tokens) if token.end() > start)
                if any(piece[0] < stop and start < piece[1] for piece in self.pieces):
                    continue
                possible = forms.split()
                slot = self.german_case(index, index, {_NOMINATIVE, _ACCUSATIVE}) if len(possible) > 1 else 0
                if possible[slot] == "?":
                    raise CannotSwapError(f"'{match[0]}' may refer to the person of the swapped term")
                self.pieces.append((start, stop, possible[slot].replace("_", " "), True))
                self.used.add(index)
                before, _ = self.clause(index, index)
                after_preposition = before.endswith(tuple(f" {word}" for word in self.words_of("prepositions")))
                for thing in re.finditer(content["things"][column], self.text[end:start]):
                    known = end + thing.start() in {piece[0] for piece in self.pieces}
                    if match[1].lower() in content["of_things"] and not known and not after_preposition:
                        self.warnings.append(f"'{match[1]}' may refer to '{thing[0].strip()}'")

    def is_impersonal(self, start: int) -> bool:
        """Return whether a position is in a phrase such as "il faut", whose pronoun names nobody."""
        phrases = re.finditer(either(self.grammar.content["impersonal"]), self.text, re.IGNORECASE)
        return any(phrase.start() <= start < phrase.end() for phrase in phrases)

    def replace_predicates(self, column: int) -> None:
        """Replace adjectives and participles after "est", "es" and other verbs whose subject is the person."""
        for index, token in enumerate(self.tokens):
            if token[0].lower() not in self.words_of("copulas") or self.is_impersonal(token.start()):
                continue
            person = self.has_person_as_subject(index)
            if person:
                self.agree(index + 1, column)
            elif person is None:
                self.check_adjective(self.after_adverbs(index + 1), column)
        after = self.words_of("copulas") | self.words_of("auxiliaries") | self.words_of("adverbs")
        last = self.tokens[self.people[0].last].end()
        for index, token in enumerate(self.tokens):
            before = self.word(index - 1).lower()
            in_phrase = any(
                other in self.grammar.determiners or other in self.words_of("before_things")
                for other in (before, self.word(index - 2).lower())
            )
            if re.fullmatch(r", \w+[,.]", self.text[max(0, token.start() - 2) : token.end() + 1]):
                apposition = re.fullmatch(r"(?:, (?:de )?\d+ \w+)?, ", self.text[last : token.start()])
                if apposition and index not in self.used and (other := self.other_adjective(index, column)):
                    self.add(index, other)
                self.check_adjective(index, column)
            elif token[0].lower() in self.grammar.adjectives and not in_phrase and before not in after:
                self.check_adjective(index, column)

    def check_adjective(self, index: int, column: int) -> None:
        """Raise `CannotSwapError` if a word that is not replaced may be in the gender of the person."""
        word = self.word(index)
        if index in self.used or word.lower() in self.words_of("after"):
            return
        if self.other_adjective(index, column) not in (None, word.lower()) or self.is_doubtful(word, column):
            raise CannotSwapError(f"'{word}' may refer to the person of the swapped term")

    def after_adverbs(self, index: int) -> int:
        while self.follows(index) and self.word(index).lower() in self.words_of("adverbs"):
            index += 1
        return index

    def is_listed(self, index: int) -> bool:
        return self.word(self.after_adverbs(index)).lower() in self.grammar.adjectives

    def has_person_as_subject(self, index: int) -> bool | None:
        """Return whether the subject of a verb is the person; `None` if this is not clear."""
        subject = index - 1
        while self.follows(subject + 1) and self.word(subject).lower() in self.words_of("before_copula"):
            subject -= 1
        if self.word(index).lower() in self.words_of("first_person"):
            return any(person.name == "the speaker" for person in self.people)
        if self.text[self.tokens[index].end() : self.tokens[index].end() + 1] == "-":
            return index + 1 in self.used
        last = max((person.last for person in self.people if person.last <= subject), default=-1)
        relative = last == subject - 1 and self.word(subject).lower() in ("qui", "que")
        if self.follows(subject + 1) and (relative or (subject in self.used and subject >= 0)):
            return True
        if not self.follows(subject + 1) or self.word(subject).lower() in self.words_of("implicit"):
            return True if self.code == "es" and self.is_listed(index + 1) else None
        start = rf"(?:^|[,.;:!?¿¡]|(?<!\w){either(self.words_of('conjunctions'))})\s+"
        thing = rf"{start}{either(self.grammar.determiners)} ?\w+(?: \w+){{0,4}}$"
        match = re.search(thing, self.text[: self.tokens[subject].end()], re.IGNORECASE)
        if match and not any(match.start() <= self.tokens[token].start() < match.end() for token in self.used):
            return False
        between = {self.word(token).lower() for token in range(last + 1, subject + 1)}
        clause_end = _CLAUSE_END.search(self.text, self.tokens[last].end(), self.tokens[index].start())
        return None if last < 0 or clause_end or between & self.words_of("conjunctions") else True

    def agree(self, index: int, column: int) -> None:
        """Replace the adjectives from a token on, or raise `CannotSwapError` if it may be an unknown one."""
        index = self.after_adverbs(index)
        word = self.word(index)
        if not self.follows(index) or index in self.used or not word.islower() or word in self.words_of("after"):
            return
        other = self.other_adjective(index, column)
        if other is None and self.is_doubtful(word, column):
            raise CannotSwapError(f"the form of '{word}' may depend on the person")
        if other is None:
            return
        if other != word:
            self.add(index, other)
        following = self.word(index + 1).lower()
        if following in self.words_of("and"):
            self.agree(index + 2, column)
        elif self.other_adjective(index + 1, column):
            self.agree(index + 1, column)
        elif (
            self.follows(index + 1)
            and word in self.words_of("before_nouns")
            and following not in self.words_of("after")
        ):
            raise CannotSwapError(f"'{word} {following}' may be a phrase that does not depend on the person")

    def is_doubtful(self, word: str, column: int) -> bool:
        """Return whether a word may be an adjective in the gender of the person."""
        known = word in self.grammar.adjectives or word in self.words_of("after") or not word.islower()
        return not known and re.fullmatch(self.grammar.content["doubtful"][column], word) is not None

    def other_adjective(self, index: int, column: int) -> str | None:
        """Return the form of an adjective or participle for the other gender; `None` for another word."""
        word = self.word(index).lower()
        if row := self.grammar.adjectives.get(word):
            own, other = row[0], row[-1] if len(row) < 3 else row[1]
            if column == _FEMALE:
                vowel = len(row) > 2 and _VOWEL.match(self.word(index + 1))
                own, other = other, row[2] if vowel else own
            return other if word in (own, *row[2:]) else None
        endings = (ends for ends in self.grammar.content["adjective_endings"] if word.endswith(ends[column]))
        return next((word.removesuffix(ends[column]) + ends[1 - column] for ends in endings), None)

    def check_other_words(self, column: int) -> None:
        """Raise `CannotSwapError` if a word that is not replaced may show the gender of the person."""
        if self.unread:
            raise CannotSwapError(f"'{self.unread[0]}' is replaced only with a determiner or as a predicate")
        content = self.grammar.content
        starts = {piece[0] for piece in self.pieces}
        for pattern in [*content["unclear"], *content["unclear_of"][column]]:
            for match in re.finditer(pattern, self.text):
                if match.start(match.lastindex or 0) not in starts:
                    raise CannotSwapError(f"'{match[0].strip()}' may refer to the person of the swapped term")
