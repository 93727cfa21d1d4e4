"""Counterfactual versions of a prompt: the same text with the terms of another group."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_fairness.languages import english_people, english_words, swap_terms
from pytest_fairness.languages.english_people import People, check_unknown_names, first_name, is_unknown_name
from pytest_fairness.languages.english_words import Term, Tokens, gender, names, pattern, terms, words
from pytest_fairness.languages.inflected_people import gendered_people
from pytest_fairness.languages.swap_terms import NEUTRAL, CannotSwapError, Reading, Replacement, either, like, replaced


@dataclass(frozen=True)
class Swap:
    """A prompt and its swapped versions.

    Attributes:
        versions: version for each requested group; for `group`, the prompt itself.
        placebo: the prompt with a change that names no other group; `None` if no such change is possible.
    """

    group: str
    versions: Mapping[str, str]
    placebo: str | None
    replaced: tuple[tuple[str, int], ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class LeftOut:
    """Result for a prompt whose terms cannot be swapped.

    Attributes:
        reason: why the terms cannot be swapped, as a phrase for the user.
    """

    reason: str


def swap(text: str, terms: swap_terms.SwapTerms, groups: Sequence[str]) -> Swap | LeftOut:
    """Return the versions of a prompt for the groups, or the reason why the prompt cannot be swapped."""
    columns = [terms.groups.index(group) for group in groups]
    try:
        reading = _read(text, terms, columns)
        versions = {group: _version(text, reading, column) for group, column in zip(groups, columns, strict=True)}
        _check_way_back(text, reading, versions, terms)
    except CannotSwapError as reason:
        return LeftOut(str(reason))
    return Swap(
        group=terms.groups[reading.column],
        versions=versions,
        placebo=swap_terms.placebo(text, reading, terms.code),
        replaced=tuple((item.text, item.start) for item in reading.replacements if item.is_term),
        warnings=reading.warnings,
    )


def _read(text: str, terms: swap_terms.SwapTerms, columns: Sequence[int]) -> Reading:
    if terms.name != swap_terms.GENDER:
        return swap_terms.listed_terms(text, terms)
    if terms.code == "en":
        return gendered_terms(text, terms.groups, neutral=NEUTRAL in columns)
    return gendered_people(text, terms.code, terms.groups)


def _version(text: str, reading: Reading, column: int) -> str:
    if column == reading.column:
        return text
    pieces = []
    for item in reading.replacements:
        form = item.forms[column]
        if form is None:
            raise CannotSwapError(f"'{item.text}' has no counterpart")
        pieces.append((item.start, item.text, form))
    return replaced(text, pieces)


def _check_way_back(text: str, reading: Reading, versions: Mapping[str, str], terms: swap_terms.SwapTerms) -> None:
    """Raise `CannotSwapError` if a version can be swapped back, but the result differs from the original text."""
    for group, version in versions.items():
        column = terms.groups.index(group)
        # Prompts are not searched for many gender-neutral forms, such as "parent" and "they".
        if column == reading.column or reading.one_way or (terms.name == swap_terms.GENDER and column == NEUTRAL):
            continue
        try:
            back = _read(version, terms, [reading.column])
        except CannotSwapError:
            continue
        if back.column == column and _version(version, back, reading.column) != text:
            raise CannotSwapError(
                f"the swap cannot be reversed: the version for {group}, swapped back, differs from the original text"
            )


# Search of an English prompt for words that name a gender: terms, names and pronouns, and verbs that must agree.


def gendered_terms(text: str, groups: Sequence[str], *, neutral: bool) -> Reading:
    tokens = Tokens(text)
    finder = _Finder(tokens, neutral=neutral)
    if not finder.columns:
        finder.raise_first_reason()
    column = swap_terms.group_column([*finder.columns], groups)
    _check_text(text, tokens)
    finder.raise_first_reason()
    if column == NEUTRAL and (others := [token for token in tokens.all if token.lower in words("pronouns", "they")]):
        raise CannotSwapError(f"'{others[0].text}' may be plural")
    people = People(tokens, finder.replacements)
    starts = {item.start for item in finder.replacements if item.is_term}
    check_unknown_names(tokens, starts, subjects=not people.nouns)
    people.check()
    if neutral and column != NEUTRAL:
        people.check_neutral()
    replacements = tuple(sorted(finder.replacements, key=lambda item: item.start))
    return Reading(
        column, replacements, tuple(finder.placebos), tuple(warnings_on(text, finder.replacements)), finder.one_way
    )


class _Finder:
    """Search of a text for terms; see `Reading` for the other attributes.

    Attributes:
        columns: numbers of the groups whose terms were found (columns of the list of terms); gender-neutral terms
            count only in a text without other terms.
    """

    def __init__(self, tokens: Tokens, *, neutral: bool) -> None:
        self.columns: set[int] = set()
        self.replacements: list[Replacement] = []
        self.placebos: list[Replacement] = []
        self.one_way = False
        self._tokens = tokens
        self._neutral = neutral
        self._reasons: list[CannotSwapError] = []
        self._placebo_names: dict[str, str] = {}
        idioms = [match.span() for match in pattern("left_out", "idioms").finditer(tokens.text)]
        for index, token in enumerate(tokens.all):
            if token.kind != "word" or any(start <= token.start < end for start, end in idioms):
                continue
            try:
                self._read(index)
            except CannotSwapError as reason:
                self._reasons.append(reason)
        if not self.columns:
            self._read_neutral()

    def raise_first_reason(self) -> None:
        """Raise the first `CannotSwapError` that was found for a term, if there is any."""
        if self._reasons:
            raise self._reasons[0]

    def _read(self, index: int) -> None:
        tokens, word = self._tokens, self._tokens.all[index]
        if _may_lack_apostrophe(tokens, index) or word.lower in words("left_out", "misspelt"):
            raise CannotSwapError(f"'{word.text}' may be misspelt")
        if word.lower == "guys":
            raise CannotSwapError(f"'{word.text}' may mean people of any gender")
        if (column := english_people.pronoun_group(word.lower)) is not None:
            self._add_pronoun(index, column)
        elif (term := self._term(index)) is not None:
            self._add_term(index, *term)
        elif (name := first_name(tokens, index)) is not None:
            written = word.text[: name.length]
            self._add(word.start, written, name.term)
            if name.same_origin:
                other = self._placebo_names.setdefault(written.lower(), name.same_origin[0])
                self.placebos.append(Replacement(word.start, written, (_cased_name(written, other),)))

    def _add_pronoun(self, index: int, column: int) -> None:
        tokens, word = self._tokens, self._tokens.all[index]
        self.columns.add(column)
        if tokens.is_acronym(index):
            raise CannotSwapError(f"'{word.text}' may be an abbreviation")
        forms = english_people.pronoun_forms(tokens, index, neutral=self._neutral)
        self.replacements.append(
            Replacement(word.start, word.text, tuple(form and _cased_pronoun(word.text, form) for form in forms))
        )
        if not self._neutral or not english_words.is_subject(word.lower):
            return
        known = {item.start for item in self.replacements}
        for verb, plural in english_words.verb_edits(tokens, index):
            token = tokens.all[verb]
            if token.start not in known:
                form = like(token.text, plural.replace("'", "’") if "’" in token.text else plural)
                forms = (token.text, token.text, form)
                self.replacements.append(Replacement(token.start, token.text, forms, is_term=False))

    def _term(self, index: int) -> tuple[Term, int, int] | None:
        """Return the term at a position, and where the term begins and ends in the word; `None` if there is no term."""
        word = self._tokens.all[index]
        plain = word.lower.removesuffix("'s")
        if plain in gender()["titles"]:
            self._check_ms(index)
            known = terms()[plain].column != NEUTRAL and self._is_title(index)
            return (terms()[plain], 0, len(plain)) if known else None
        if plain in terms() and terms()[plain].column != NEUTRAL:
            return terms()[plain], 0, len(plain)
        if "-" not in plain:
            return None
        start, _, last = plain.rpartition("-")
        if start in gender()["prefixes"] and last in terms():
            return terms()[last], len(start) + 1, len(plain)
        first, _, end = plain.partition("-")
        if first in gender()["prefixes"] and end in terms():
            return terms()[end], len(first) + 1, len(plain)
        if end in gender()["suffixes"] and first in terms():
            return terms()[first], 0, len(first)
        for part in plain.split("-"):
            if part in terms() and terms()[part].column != NEUTRAL:
                self.columns.add(terms()[part].column)
                raise CannotSwapError(f"the built-in list has no compound '{word.text}'")
        return None

    def _check_ms(self, index: int) -> None:
        """Raise `CannotSwapError` for "ms" before a word, unless a number is before it, as in "3 ms delay"."""
        tokens, before = self._tokens, self._tokens.at(index - 1)
        after = self._after_title(index)
        if tokens.all[index].text == "ms" and tokens.is_word(after) and (before is None or before.kind != "number"):
            raise CannotSwapError(f"'ms {tokens.all[after].text}' may be a title or a name of a product")

    def _after_title(self, index: int) -> int:
        return index + (2 if self._tokens.lower(index + 1) == "." else 1)

    def _is_title(self, index: int) -> bool:
        tokens, word = self._tokens, self._tokens.all[index]
        after = self._after_title(index)
        if word.lower in ("mr", "mrs"):
            return tokens.is_word(after)
        return word.text[0].isupper() and tokens.is_capitalised(after) and not tokens.is_acronym(index)

    def _add_term(self, index: int, term: Term, start: int, end: int) -> None:
        tokens, word = self._tokens, self._tokens.all[index]
        written = word.text[start:end]
        self.columns.add(term.column)
        title = written.lower() in gender()["titles"]
        if not title:
            self._check_noun(index, written)
        if self._neutral and written.lower() in gender()["call_names"] and not self._has_determiner(index):
            self._reasons.append(CannotSwapError(f"'{written}' is used as a name"))
        self._add(word.start + start, written, term)
        if term.one_way:
            self.one_way = True
        if start == 0 and (before := swap_terms.article(tokens.text, word.start, written, term.forms)):
            self.replacements.append(before)

    def _has_determiner(self, index: int) -> bool:
        """Return whether a determiner is among the four words before the word."""
        before = [self._tokens.lower(index - distance) for distance in range(1, 5)]
        return any(word in words("left_out", "determiners") or word.endswith("'s") for word in before)

    def _check_noun(self, index: int, written: str) -> None:
        tokens = self._tokens
        lower, before, after = written.lower(), tokens.lower(index - 1), tokens.lower(index + 1)
        inside = not tokens.starts_sentence(index) and not tokens.in_capitals and written[0].isupper()
        if inside and tokens.is_capitalised(index + 1) and lower not in ("uncle", "aunt", "grandma", "grandpa", "mr"):
            raise CannotSwapError(f"'{written} {tokens.all[index + 1].text}' may be a name or a title")
        titled = tokens.is_capitalised(index - 1) and before not in words("left_out", "determiners")
        if inside and titled and before not in words("people", "greetings") and lower not in gender()["call_names"]:
            raise CannotSwapError(f"'{tokens.all[index - 1].text} {written}' may be a name or a title")
        if inside and lower in ("brother", "sister"):
            raise CannotSwapError(f"'{written}' may be a name or a title")
        if lower in ("bf", "gf", "lad", "man", "sir") and (
            tokens.is_acronym(index) or (lower in ("bf", "gf") and not self._has_determiner(index))
        ):
            raise CannotSwapError(f"'{written}' may be an abbreviation")
        if lower == "husbands" and before in words("left_out", "possessors"):
            raise CannotSwapError(f"'{written}' may be a possessive without apostrophe")
        if lower in ("man", "boy", "girl", "dude") and tokens.starts_sentence(index) and after in (",", "!"):
            raise CannotSwapError(f"'{written}' may be an interjection")
        if lower == "man" and before in ("to", "who", "will", "can"):
            raise CannotSwapError("'man' may be a verb")
        following = index + 2 if after == "," else index + 1
        if is_unknown_name(tokens, following) and (after != "," or tokens.lower(following + 1) in (",", ".", "")):
            raise CannotSwapError(f"'{tokens.all[following].text}' may be a name that the built-in list lacks")
        if after in ("named", "called") and is_unknown_name(tokens, index + 2):
            raise CannotSwapError(f"'{tokens.all[index + 2].text}' may be a name that the built-in list lacks")

    def _add(self, start: int, written: str, term: Term) -> None:
        self.columns.add(term.column)
        neutral = term.forms[NEUTRAL]
        if self._neutral and not neutral and term.column != NEUTRAL:
            self._reasons.append(CannotSwapError(f"'{written}' has no gender-neutral counterpart"))
        name = written.lower() in names().listed
        cased = _cased_name if name else like
        forms = tuple(cased(written, form) for form in (*term.forms[:2], neutral))
        self.replacements.append(Replacement(start, written, forms))
        present = {token.lower.removesuffix("'s") for token in self._tokens.all}
        for column in (1 - term.column, NEUTRAL) if name else ():
            if (column < NEUTRAL or self._neutral) and term.forms[column].lower() in present:
                self._reasons.append(
                    CannotSwapError(f"the counterpart '{term.forms[column]}' of '{written}' is already in the prompt")
                )

    def _read_neutral(self) -> None:
        """Find the gender-neutral terms; called for a text without male or female terms."""
        for index, word in enumerate(self._tokens.all):
            plain = word.lower.removesuffix("'s")
            if plain == "mx" and not self._is_title(index):
                continue
            if word.kind == "word" and plain in terms() and terms()[plain].column == NEUTRAL:
                self._add_term(index, terms()[plain], 0, len(plain))


def _may_lack_apostrophe(tokens: Tokens, index: int) -> bool:
    """Return whether the word is "hell", "shell", "hed" or "shed", and may be "he'll", "she'll", "he'd" or "she'd"."""
    if tokens.lower(index) not in ("hell", "shell", "hed", "shed"):
        return False
    before = tokens.lower(index - 1)
    return (
        tokens.starts_sentence(index)
        or before in words("left_out", "before_clause")
        or before.startswith("say")
        or before == "said"
    )


def _cased_pronoun(written: str, form: str) -> str:
    cased = form.upper() if written.isupper() else like(written[0], form)
    return cased.replace("'", "’") if "’" in written else cased


def _cased_name(written: str, name: str) -> str:
    if written.islower():
        return name.lower()
    return name.upper() if written.isupper() and len(written) > 1 else name


def _check_text(text: str, tokens: Tokens) -> None:
    """Raise `CannotSwapError` if words that are not replaced may show the gender of a person, such as "pregnant"."""
    if match := names().famous.search(text):
        raise CannotSwapError(f"the prompt names a famous person or a product: '{match[0]}'")
    for key, reason in (
        ("phrases", "is a fixed phrase"),
        ("biological_phrases", "is bound to one sex"),
        ("facts", "asks about a known person"),
        ("marks", "is a mark of gender that the list does not replace"),
    ):
        if match := pattern("left_out", key).search(text):
            raise CannotSwapError(f"'{match[0]}' {reason}")
    harmless = [match.span() for match in pattern("left_out", "harmless").finditer(text)]
    listed = names().listed
    for index, token in enumerate(tokens.all):
        plain = token.lower.removesuffix("'s")
        if plain in words("left_out", "biological") and not any(a <= token.start < b for a, b in harmless):
            raise CannotSwapError(f"'{token.text}' is bound to one sex")
        unlisted_man = token.text.islower() and plain.endswith(("man", "men")) and plain not in terms()
        singular = {plain.removesuffix("s"), plain.removesuffix("es")}
        if {plain, plain.partition("-")[0], *singular} & words("left_out", "terms") or (
            unlisted_man and plain not in words("left_out", "man_endings") and "-" not in plain
        ):
            raise CannotSwapError(f"the built-in list has no counterpart of '{token.text}'")
        if (
            tokens.is_capitalised(index)
            and english_people.has_gendered_ending(plain)
            and not tokens.starts_sentence(index)
        ):
            raise CannotSwapError(f"the surname '{token.text}' may have a gender")
        if token.kind == "link":
            parts = set(re.findall(r"[a-z]+", token.lower))
            if parts & (listed.keys() | {"her", "his", "mrs", "mr", "women", "men"}):
                raise CannotSwapError(f"'{token.text}' names a group, but links and addresses are not replaced")
        if (plain in ("named", "called") or (tokens.lower(index - 1) == "name" and plain == "is")) and is_unknown_name(
            tokens, index + 1
        ):
            raise CannotSwapError(f"'{tokens.all[index + 1].text}' may be a name that the built-in list lacks")


# Warnings on English prompts with quoted or reported speech: a person should read their swapped versions.

_REPORT = "says said tells told claims claimed mentions mentioned states stated insists insisted admits admitted wrote"
_REPORTED = re.compile(
    rf"\b(?P<subject>\w+) (?:also |just |then |has |had )?{either(_REPORT.split())}\b[^.?!\n]*\b(?:he|she)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|(?<!\w)['\u2018][^'’\n]+['’](?!\w)")


def warnings_on(text: str, replacements: Sequence[Replacement]) -> Iterator[str]:
    """Yield a warning for replaced terms in a quotation, and for a report of what a third person says."""
    terms_at = {item.start for item in replacements if item.is_term}
    if any(match.start() <= start < match.end() for match in _QUOTED.finditer(text) for start in terms_at):
        yield "terms in a quotation are replaced, too"
    if any(match.start("subject") in terms_at for match in _REPORTED.finditer(text)):
        yield "the prompt reports what a third person says"
