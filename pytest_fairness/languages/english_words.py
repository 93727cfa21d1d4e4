"""Words of English prompts: word lists, tokens, and verbs that must agree with a singular "they".

Functions raise `CannotSwapError` where a text does not show which words belong to a subject.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pytest_fairness.languages import straightened
from pytest_fairness.languages.swap_terms import CannotSwapError, data, either

# The English word lists of `data/`.


@dataclass(frozen=True, eq=False)
class Term:
    """A term with its counterparts.

    Attributes:
        column: the term's group: 0 for male, 1 for female, 2 for gender-neutral.
        forms: the term and its counterparts, in the order of the groups; "" where a group has no such term.
        one_way: whether swapping a counterpart back would give another term.
    """

    column: int
    forms: tuple[str, str, str]
    one_way: bool = False


@dataclass(frozen=True, eq=False)
class Names:
    """First names.

    Attributes:
        same_origin: for each listed name, the other names of its group and origin: first those of later rows, then
            those of earlier rows.
        before_places: words after which a name belongs to a place, such as "San".
        places: words before which a name belongs to a place or an organisation, such as "Street".
        no_names: words that are no names of people although they may have a capital, such as "Monday".
    """

    listed: Mapping[str, Term]
    neutral: frozenset[str]
    same_origin: Mapping[str, tuple[str, ...]]
    others: frozenset[str]
    words_at_start: frozenset[str]
    second: frozenset[str]
    with_gendered_surnames: frozenset[str]
    famous: re.Pattern[str]
    before_places: frozenset[str]
    places: frozenset[str]
    no_names: frozenset[str]


def gender() -> Mapping[str, Any]:
    return data("en_gender")


@cache
def words(table: str, key: str) -> frozenset[str]:
    return frozenset(gender()[table][key].split())


@cache
def third_person(key: str) -> frozenset[str]:
    return frozenset(data("en_verbs")[key].split())


@cache
def pattern(table: str, key: str) -> re.Pattern[str]:
    """Return one pattern for all patterns under a key of a table in `en_gender.toml`; it matches whole words only."""
    return re.compile(rf"(?<!\w){either(gender()[table][key])}(?!\w)", re.IGNORECASE)


@cache
def terms() -> Mapping[str, Term]:
    """Return the terms for which prompts are searched, by their form in lower case."""
    rows = [tuple(row) for row in gender()["rows"]]
    counts = Counter(form for row in rows for form in set(row))
    by_form = {
        form: Term(column, row)
        for row in rows
        for column, form in enumerate(row)
        if counts[form] == 1 and (column < 2 or form in gender()["neutral"])
    }
    for column, group in enumerate(("male", "female")):
        for form, (other, neutral) in gender()["one_way"][group].items():
            forms = (form, other, neutral) if column == 0 else (other, form, neutral)
            by_form[form] = Term(column, forms, one_way=True)
    return {
        **by_form,
        "ms": Term(1, ("Mr", "Ms", "Mx")),
        "mr": Term(0, ("Mr", "Ms", "Mx")),
        "mx": Term(2, ("Mr", "Ms", "Mx")),
    }


def is_first_name(word: str) -> bool:
    """Return whether a word with a capital letter is a known first name."""
    known = names()
    return word[:1].isupper() and any(
        word.lower() in names_of for names_of in (known.listed, known.neutral, known.others)
    )


@cache
def names() -> Names:
    content = data("en_names")
    listed: dict[str, Term] = {}
    same_origin: dict[str, tuple[str, ...]] = {}
    for rows in content["rows"].values():
        for number, row in enumerate(rows):
            others = [*rows[number + 1 :], *rows[:number]]
            for column in (0, 1):
                listed[row[column].lower()] = Term(column, tuple(row))
                same_origin[row[column].lower()] = tuple(other[column] for other in others)
    famous = [re.escape(name.strip()) for name in content["famous"].replace("\n", " ").split(",")]
    return Names(
        listed=listed,
        neutral=frozenset(term.forms[2].lower() for term in listed.values()),
        same_origin=same_origin,
        others=frozenset(content["others"].split() + content["others_of_faker"].split()),
        words_at_start=frozenset(content["words_at_start"].split()),
        with_gendered_surnames=frozenset(
            name.lower()
            for origin in content["origins_with_gendered_surnames"]
            for row in content["rows"][origin]
            for name in row[:2]
        ),
        second=frozenset(content["second"].split()),
        famous=re.compile(rf"(?<!\w){either(famous)}(?!\w)", re.IGNORECASE),
        before_places=frozenset(content["before_places"].split()),
        places=frozenset(content["places"].split()),
        no_names=frozenset([*content["capitalised"].split(), *content["places"].split(), *_words_of_lists()]),
    )


def _words_of_lists() -> set[str]:
    tables = [table for table in gender().values() if isinstance(table, dict)]
    return {word for table in tables for value in table.values() if isinstance(value, str) for word in value.split()}


# Words, numbers and punctuation of an English text.

_TOKEN = re.compile(
    r"(?P<link>https?://\S+|www\.\S+|[\w.+-]+@[\w-]+\.\w+|[@#]\w+|\{\w*\})"
    r"|(?P<word>[^\W\d_](?:[^\W_]|_(?=\w)|['’](?=\w)|-(?=\w))*)"
    r"|(?P<number>[$€£]?\d(?:[\w.,:/%-]*\w)?%?)"
    r"|(?P<line>[^\S\n]*\n\s*)"
    r"|\S"
)
SENTENCE_END = frozenset(".!?:;…\n")
OPENING = frozenset("\"“'\N{LEFT SINGLE QUOTATION MARK}([*-–—•>")
WRAPPED = 50
"""A line of at least this many characters may go on in the next line."""
_ABBREVIATIONS = frozenset({"mr", "mrs", "ms", "mx", "dr", "prof", "st", "rev", "vs", "etc", "e.g", "i.e", "no"})


@dataclass(frozen=True)
class Token:
    start: int
    text: str
    lower: str
    kind: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def _is_wrapped(text: str, line_break: re.Match[str]) -> bool:
    """Return whether a line break is inside a sentence: after a long line, and before a word in lower case."""
    length = line_break.start() - (text.rfind("\n", 0, line_break.start()) + 1)
    next_character = text[line_break.end() : line_break.end() + 1]
    return line_break[0].count("\n") == 1 and length >= WRAPPED and next_character.islower()


class Tokens:
    """The tokens of a text.

    Attributes:
        all: the tokens in their order, without line breaks inside a sentence.
        in_capitals: whether more than half of the words with two or more letters are in capitals.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.all = [
            Token(match.start(), match[0], straightened(match[0].lower()), match.lastgroup or "mark")
            for match in _TOKEN.finditer(text)
            if not (match.lastgroup == "line" and _is_wrapped(text, match))
        ]
        letters = [word for word in self.all if word.kind == "word" and len(word.text) > 1]
        self.in_capitals = sum(word.text.isupper() for word in letters) > len(letters) / 2

    def at(self, index: int) -> Token | None:
        """Return the token at a position in `all`; `None` before the first and after the last token."""
        return self.all[index] if 0 <= index < len(self.all) else None

    def lower(self, index: int) -> str:
        """Return the token at a position, in lower case; "" before the first and after the last token."""
        token = self.at(index)
        return token.lower if token else ""

    def is_word(self, index: int) -> bool:
        token = self.at(index)
        return token is not None and token.kind == "word"

    def is_acronym(self, index: int) -> bool:
        """Return whether the word at a position is in capitals, in a text that is not mostly in capitals."""
        token = self.at(index)
        return token is not None and len(token.text) > 1 and token.text.isupper() and not self.in_capitals

    def is_capitalised(self, index: int) -> bool:
        token = self.at(index)
        return token is not None and token.kind == "word" and token.text[0].isupper()

    def starts_sentence(self, index: int) -> bool:
        before = index - 1
        while before >= 0 and self.all[before].text in OPENING:
            if self.all[before].text in "\"“'\N{LEFT SINGLE QUOTATION MARK}":
                return True
            before -= 1
        token = self.at(before)
        if token is None or token.kind == "line":
            return True
        if token.text == "." and (self.lower(before - 1) in _ABBREVIATIONS or len(self.lower(before - 1)) == 1):
            return False
        return token.text in SENTENCE_END


# Change of verbs if a singular "they" replaces "he" or "she": "he works" becomes "they work".

_CLAUSE_ENDS = frozenset(["", *SENTENCE_END, ",", "/"])
_ADVERBS_OF_TWO = frozenset(["no longer", "in fact", "of course", "at least", "as well", "kind of", "sort of"])


def base(verb: str) -> str:
    """Return the basic form of a verb in the third person: "works" becomes "work"."""
    irregular: Mapping[str, str] = gender()["irregular"]
    if verb in irregular:
        return irregular[verb]
    if re.search(r"[^aeiou]ies$", verb):
        return verb[:-3] + "y"
    return verb[:-2] if re.search(r"(?:ch|sh|ss|x|zz|[^aeiou]o)es$", verb) else verb[:-1]


def is_subject(word: str) -> bool:
    """Return whether the word is "he" or "she", or a contraction such as "he's"."""
    return re.fullmatch(r"(?:he|she)(?:'(?:s|d|ll))?|hes|shes", word) is not None


def plural_contraction(tokens: Tokens, index: int) -> str:
    """Return the contraction with "they" in place of "he" or "she": "he'd" becomes "they'd"."""
    word = tokens.lower(index)
    plain = word in ("hes", "shes")
    if not plain and not word.endswith("'s"):
        return "they" + word[word.index("'") :]
    after = _after_adverbs(tokens, index + 1)
    verb, then = tokens.lower(after), tokens.lower(after + 1)
    has, is_ = ("theyve", "theyre") if plain else ("they've", "they're")
    if verb in words("agreement", "has"):
        return has
    if verb.endswith("ed") or verb in words("agreement", "participles"):
        # A time is no object: "he's covered this year".
        is_time = tokens.lower(after + 2).rstrip("s") in words("pronouns", "units")
        objects = words("agreement", "object_starts") - {"to", "about", "that", "how", "what", "why", "whether"}
        if then in objects and not is_time:
            return has
        if verb in words("agreement", "is"):
            return is_
        raise CannotSwapError(f"'{tokens.all[index].text} {verb}' may contain 'is' or 'has'")
    return is_


def verb_edits(tokens: Tokens, index: int) -> list[tuple[int, str]]:
    """Return the position and new form of each verb that changes if the subject at `index` becomes "they"."""
    subject = tokens.lower(index)
    contracted = subject not in ("he", "she")
    edits: list[tuple[int, str]] = []
    first = _after_parenthesis(tokens, _after_adverbs(tokens, index + 1))
    if not contracted:
        if _is_unclear(tokens, index, first):
            raise CannotSwapError(f"the verb of '{tokens.all[index].text}' is unclear")
        if tokens.lower(first) in ("and", "or"):
            return []
        finite = _plural(tokens, first)
        if (inverted := tokens.lower(index - 1)) in _auxiliaries() and _is_inverted(tokens, index, first, finite):
            edits.append((index - 1, _auxiliaries()[inverted]))
        elif finite:
            edits.append((first, finite))
    return edits + _coordinated_edits(tokens, first, tokens.lower(index - 1) == ",")


def _is_unclear(tokens: Tokens, index: int, first: int) -> bool:
    verb, after = tokens.lower(first), tokens.lower(first + 1)
    if re.fullmatch(
        r"(?:what|where|when|how|who|why)'?s", tokens.lower(index - 1)
    ):  # "what's he need", "what's he like"
        return True
    inverted = tokens.lower(index - 1) in _auxiliaries()
    if verb in ("who", "that", "(", "–", "—", "-") or (verb == "," and after == "who"):
        return True
    if verb in ("and", "or"):
        return inverted
    if verb in words("agreement", "no_verbs_after_subject"):
        return not inverted
    verbs = words("agreement", "third_person") | _auxiliaries().keys()
    if not tokens.is_word(first):
        # A mark, as in "<b>he</b> is", unless it ends the clause.
        return verb not in _CLAUSE_ENDS and any(tokens.lower(first + distance) in verbs for distance in range(1, 5))
    known = verb.endswith("ed") or verb in words("agreement", "modals") | words("agreement", "past")
    return not known and not _plural(tokens, first) and after in verbs


def _auxiliaries() -> Mapping[str, str]:
    """Return each auxiliary verb with its form after "they": "is" becomes "are"."""
    auxiliaries: Mapping[str, str] = gender()["auxiliaries"]
    return auxiliaries


def _after_adverbs(tokens: Tokens, index: int) -> int:
    adverbs = words("agreement", "adverbs")
    while True:
        word = tokens.lower(index)
        if word in adverbs or (
            word.endswith("ly") and word not in words("agreement", "verbs_in_ly") and tokens.is_word(index)
        ):
            index += 1
        elif f"{word} {tokens.lower(index + 1)}" in _ADVERBS_OF_TWO:
            index += 2
        else:
            return index


def _after_parenthesis(tokens: Tokens, index: int) -> int:
    """Return the position after the parenthesis (between commas or brackets) that begins at `index`.

    Return `index` if no parenthesis begins there; a clause with "who" does not count as a parenthesis.
    """
    end = {",": ",", "(": ")"}.get(tokens.lower(index))
    if end is None or tokens.lower(index + 1) == "who":
        return index
    for other in range(index + 1, min(index + 8, len(tokens.all))):
        if tokens.all[other].text in ".!?;:\n":
            break
        if tokens.all[other].text == end:
            return _after_adverbs(tokens, other + 1)
    return index


def _plural(tokens: Tokens, index: int) -> str:
    """Return the form after "they" of the verb at `index`: "works" becomes "work"; "" if the word does not change."""
    word = tokens.lower(index)
    if word in _auxiliaries():
        return _auxiliaries()[word]
    if not tokens.is_word(index) or not word.endswith("s") or word.endswith("ss") or "'" in word:
        return ""
    if word == "thanks" and tokens.lower(index + 1) == "to":
        return ""
    return "" if word in words("agreement", "no_verbs") else base(word)


def _is_inverted(tokens: Tokens, index: int, first: int, finite: str) -> bool:
    """Return whether the auxiliary before a subject is the subject's verb, as in "is he ready"."""
    verb = tokens.lower(first)
    if finite or verb in words("agreement", "modals"):
        return False
    if (verb.endswith("ed") or verb in words("agreement", "past")) and tokens.lower(index - 1) in ("is", "was"):
        if tokens.starts_sentence(index - 1) or tokens.lower(index - 2) in words("agreement", "clause_starts"):
            return True
        before = index - 2
        while before >= 0 and not tokens.starts_sentence(before):
            before -= 1
        if tokens.lower(before) in ("how", "what", "which", "when", "where", "why"):
            return True
        raise CannotSwapError(f"the verb of '{tokens.all[index].text}' is unclear")
    return True


def _coordinated_edits(tokens: Tokens, first: int, inserted: bool) -> list[tuple[int, str]]:
    """Return the edits (see `verb_edits`) of further verbs of the same subject: "and lives", ", doesn't see"."""
    edits: list[tuple[int, str]] = []
    verbs = {first}
    other_clause = False
    index = first + 1
    while (token := tokens.at(index)) is not None:
        if token.kind == "line" or (token.text in ".!?:…" and tokens.starts_sentence(index + 1)):
            break
        if is_subject(token.lower):
            break
        conjunction = token.lower in words("agreement", "conjunctions")
        if conjunction:
            candidate = _after_adverbs(tokens, index + 1)
            while tokens.lower(candidate) in ("and", "but", "then", "or"):
                candidate = _after_adverbs(tokens, candidate + 1)
            plural = "" if is_subject(tokens.lower(candidate)) else _coordinated_plural(tokens, index, candidate, verbs)
            if plural:
                if other_clause or (inserted and token.text == "," and index == first + 1):
                    raise CannotSwapError(f"the subject of '{tokens.all[candidate].text}' is unclear")
                edits.append((candidate, plural))
                verbs.add(candidate)
            index = max(candidate, index + 1)
            if plural:
                index += 1
            continue
        if _begins_clause(tokens, index):
            other_clause = True
        index += 1
    return edits


def _begins_clause(tokens: Tokens, index: int) -> bool:
    """Return whether the word at `index` may be another subject, or the verb of another subject."""
    word, after = tokens.lower(index), tokens.at(index + 1)
    if word in ("it", "you", "this", "that", "these", "those"):
        joins = words("agreement", "conjunctions") | words("agreement", "prepositions")
        return after is not None and after.kind == "word" and after.lower not in joins
    finite = {*_auxiliaries(), *words("agreement", "modals"), *words("agreement", "finite")}
    after_verb = tokens.lower(index - 1) in {"to", *words("agreement", "modals")}
    return word in words("agreement", "other_subjects") or (word in finite and not after_verb)


def _coordinated_plural(tokens: Tokens, conjunction: int, index: int, verbs: Collection[int]) -> str:
    """Return the form after "they" of the word behind a conjunction; "" if the word is no verb of the subject."""
    plural, word = _plural(tokens, index), tokens.lower(index)
    if word in _auxiliaries() and tokens.lower(index + 1) in ("that", "this", "it", "there"):
        return ""  # a question with another subject: "he snores, is that dangerous?"
    before = tokens.lower(index - 1)
    after_adverb = index > conjunction + 1 and before not in words("agreement", "conjunctions")
    if not plural or word in _auxiliaries():
        return plural
    if tokens.lower(conjunction) in ("-", "/", "+"):
        return ""
    after = tokens.lower(index + 1)
    object_after = after in words("agreement", "object_starts") or after.isdigit()
    known = third_person("only_verbs")
    if before not in words("agreement", "before_nouns"):
        known |= words("agreement", "third_person")
    if after_adverb and word not in known:  # "and often calls", but "especially cars"
        raise CannotSwapError(f"'{tokens.all[index].text}' may be a verb or a noun")
    noun_before = conjunction - 1 not in verbs and _plural(tokens, conjunction - 1) != ""
    if word in words("agreement", "third_person"):
        if noun_before and not object_after and word in words("agreement", "also_nouns"):
            raise CannotSwapError(f"'{tokens.all[index].text}' may be a verb or a noun")
        return plural
    if tokens.is_capitalised(index) or word not in third_person("only_verbs") | third_person("also_nouns"):
        return ""
    if word in third_person("only_verbs"):
        return plural
    if after in words("agreement", "object_starts") - {"to", "about", "that", "all", "both"} and not noun_before:
        return plural
    raise CannotSwapError(f"'{tokens.all[index].text}' may be a verb or a noun")
