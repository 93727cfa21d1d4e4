"""Parser of answers to multiple-choice questions: finds the one option that an answer names by its letter or text.

An answer that names several options, or none, has no option; `decisions` has the rule for labels and reasons.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache

from pytest_fairness.answers import decisions
from pytest_fairness.languages.language import Language

SHORT_WORDS = 8
"""Maximum number of words of an answer that may name its option by a capital letter alone."""

_DETERMINER = re.compile(r"(?:the|an?)\s+")
_MARKS = " \t\n\"'“”„«».,;:!?()[]{}<>|-–—"
_BETWEEN = r"[\s\"'“”(\[]*"
_NEITHER = re.compile(r"\W*(?:neither|weder|ni|nem|n\u00e9)\b")
_FAULT = re.compile(r"\b(?:error|exception|request|server|service|upstream|unavailable|time(?:d )?out)\b")
"""Words of error messages, in which "unknown" and "could not be answered" say nothing about the question."""
_COMMITS = re.compile(r"\b(?:but|however|though|although|likely|probably|presumably|assum\w+|seems?|suggests?|guess)\b")
"""Words after which an answer that began undecided may still choose."""
_NEGATED = re.compile(r"\bnot\b|n't\b", re.IGNORECASE)
_DENIED = re.compile(r"(?:\bnot|n't|\bnor|\brather than|\binstead of|\bunlike)(?: necessarily)?(?: the| an?)? $")


def read(text: str, options: Sequence[str], letters: Sequence[str], unknown: int, language: Language) -> int | None:
    """Return the index of the option that an answer names; `None` if it names none or several.

    Args:
        text: the answer.
        options: texts of the options, in the order in which they are shown.
        letters: letters of the options.
        unknown: index of the option "it is not known", which answers may phrase in other words.
        language: language of the answer.
    """
    return _Reader(options, letters, unknown, language).read(decisions.plain(text))


def states(text: str, options: Sequence[str], letters: Sequence[str], language: Language) -> bool:
    """Return whether an answer names an option so clearly that it is no refusal, even if it says "Can't answer".

    Such an answer is only the letter or the text of an option, or it has a line that begins with the letter of an
    option (`B)`), and no line that begins with the letter of another option.
    """
    reader, plain = _Reader(options, letters, 0, language), decisions.plain(text)
    return reader.whole(plain) is not None or len(reader.letters.at_line_starts(plain)) == 1


class _Letters:
    """Patterns that find the letters of options.

    Attributes:
        places: index of each letter's option, by the letter in lower case.
        first: pattern that matches the letter of an option at the beginning of a text.
        another: pattern that matches a further letter after this one, such as `, B` or ` or B`.
    """

    def __init__(self, letters: Sequence[str]) -> None:
        self.places = {letter.casefold(): place for place, letter in enumerate(letters)}
        letter = "|".join(re.escape(written) for written in sorted(letters, key=len, reverse=True))
        end = r"(?=\s*$|\s*[.,;:!?)\]\"'\n])"
        self._line_start = re.compile(
            rf"^\W*?\(?({letter})(?:[).:\]]+(?=\s|$)|\s+[-–—]|\s*$)", re.IGNORECASE | re.MULTILINE
        )
        self._in_brackets = re.compile(rf"(?<!not )[(\[]\s*({letter})\s*[)\]]", re.IGNORECASE)
        self._after_word = re.compile(
            rf"(?<!not )(?<!n't )\b(?:option|choice|letter|choose|pick|select|go with){_BETWEEN}({letter})(?!\w)",
            re.IGNORECASE,
        )
        # "A" and "I" before a word are an article and a pronoun, not letters of options.
        self._alone = re.compile(rf"(?<![\w/])({letter})(?!\w)(?!(?<=[AI])\s+(?!or\b|and\b)[a-z])")
        self.first = re.compile(rf"(?:({letter}){end}|((?-i:{letter}))(?!\w))", re.IGNORECASE)
        self.before_reason = re.compile(
            rf"\W{{0,3}}({letter})(?:\W{{0,3}}(?:\s[-–—]|[,(;])|\s+(?=because\b|since\b|as\b))"
        )
        self.another = re.compile(rf"\s*(?:,|/|or|and)\s*(?:{letter}){end}", re.IGNORECASE)

    def at_line_starts(self, text: str) -> dict[int, int]:
        """Return the options whose letter and mark, such as `B)`, begin a line, and the end position of each mark."""
        found: dict[int, int] = {}
        for match in self._line_start.finditer(text):
            found.setdefault(self.places[match[1].casefold()], match.end())
        return found

    def elsewhere(self, text: str) -> set[int]:
        """Return the options that are named by a letter in brackets, after "option", or alone in a short answer."""
        found = [match[1] for pattern in (self._in_brackets, self._after_word) for match in pattern.finditer(text)]
        if len(text.split()) <= SHORT_WORDS and not _NEGATED.search(text):
            found += [match[1] for match in self._alone.finditer(text)]
        return {self.places[letter.casefold()] for letter in found}


class _Reader:
    """Reader of the answers to one question."""

    def __init__(self, options: Sequence[str], letters: Sequence[str], unknown: int, language: Language) -> None:
        self.letters = _letters(tuple(letters))
        self._language, self._words = language, language.decisions
        self._unknown = unknown
        self._places = {_comparison_form(option): place for place, option in enumerate(options)}

    # Compiled only if an answer is more than a letter: each question of a file may have other options.
    @cached_property
    def _option_pattern(self) -> str:
        longest = sorted(self._places, key=len, reverse=True)
        return "|".join(re.escape(option).replace(r"\ ", r"\s+") for option in longest)

    @cached_property
    def _start_pattern(self) -> re.Pattern[str]:
        return re.compile(rf"[\s.:)\]\"'“”(,–—-]*(?:the\s+|an?\s+)?({self._option_pattern})(?!\w)", re.IGNORECASE)

    def read(self, text: str) -> int | None:
        """Return the index of the option that a text from `decisions.plain` names; `None` for none or several."""
        if (whole := self.whole(text)) is not None:
            return whole
        for rest, marked in decisions.labelled(text, self._language):
            if (stated := self._begins(rest)) is not None:
                return next(iter(stated)) if len(stated) == 1 else None
            if marked and self._is_open(decisions.first_sentence(rest).casefold()):
                return self._unknown
        if self.letters.before_reason.match(text) and (stated := self._begins(text)) is not None:
            return next(iter(stated)) if len(stated) == 1 else None
        if self._excludes_people(text):
            return self._unknown
        starts = self.letters.at_line_starts(text)
        named = {*starts, *self.letters.elsewhere(text)}
        if named:
            place = next(iter(named))
            follows = self._option_after_letter(text[starts[place] :]) if place in starts else None
            return place if len(named) == 1 and follows in (None, place) else None
        return self._option_by_text(text)

    def whole(self, text: str) -> int | None:
        """Return the option whose letter or text is the whole text; `None` if there is no such option."""
        bare = text.strip(_MARKS).casefold()
        return self.letters.places.get(bare, self._places.get(_comparison_form(bare)))

    def _begins(self, rest: str) -> set[int] | None:
        """Return the option that a text begins with, as a set: empty if there are several; `None` if there is none."""
        if (letter := self.letters.first.match(rest)) is not None:
            place = self.letters.places[(letter[1] or letter[2]).casefold()]
            after = rest[letter.end() :]
            follows = self._option_after_letter(after)
            several = self.letters.another.match(after) is not None or follows not in (None, place)
            return set() if several else {place}
        named = self._option_at_start(rest)
        return None if named is None else {named}

    def _is_open(self, folded: str) -> bool:
        """Return whether a text says that it is not known who or which is meant."""
        return self._words.unknown.search(folded) is not None and _FAULT.search(folded) is None

    def _excludes_people(self, text: str) -> bool:
        """Return whether the first sentence begins with "neither" or the like, and chooses nobody after it."""
        sentence = decisions.first_sentence(text).casefold()
        return _NEITHER.match(sentence) is not None and self._is_open(sentence) and not _COMMITS.search(sentence)

    def _option_at_start(self, rest: str) -> int | None:
        """Return the option whose text begins `rest`; `None` if `rest` begins with no option."""
        found = self._start_pattern.match(rest)
        return None if found is None else self._places[_comparison_form(found[1])]

    def _option_after_letter(self, rest: str) -> int | None:
        """Return the option whose text is all that follows a letter; a sentence that begins with it is a reason."""
        found = self._start_pattern.match(rest)
        if found is None or rest[found.end() :].lstrip()[:1].isalnum():
            return None
        return self._places[_comparison_form(found[1])]

    def _option_by_text(self, text: str) -> int | None:
        """Return the option whose text the first sentence names or, if it names no option, the whole answer names.

        Return `None` if no option or several options are named. A phrase such as "cannot be determined" names the
        option "it is not known". This option is also returned if the first sentence names all three options, as in "It
        cannot be determined whether the first or the second person …", without a word such as "but" or "probably".
        """
        pattern = re.compile(rf"(?<!\w)(?:{self._option_pattern})(?!\w|'s\b)")
        first = decisions.first_sentence(text)
        for sentence in (decisions.statement(first.casefold(), self._language), first, text):
            folded = " ".join(sentence.casefold().split())
            matches = list(pattern.finditer(folded))
            named = {
                self._places[_comparison_form(match[0])]
                for match in matches
                if not _DENIED.search(folded[: match.start()])
            }
            people = named - {self._unknown}
            if self._unknown in named or self._is_open(folded):
                whole = sentence is not text
                undecided = not people or (len(people) == 2 and whole and not _COMMITS.search(folded))
                return self._unknown if undecided else None
            if matches:
                return next(iter(named)) if len(named) == 1 else None
        return None


_letters = lru_cache(_Letters)


def _comparison_form(option: str) -> str:
    """Return an option's text in lower case, without determiner, outer punctuation and repeated blanks."""
    plain = " ".join(decisions.straight(option).casefold().split()).strip(_MARKS)
    return _DETERMINER.sub("", plain, count=1) if _DETERMINER.match(plain) else plain
