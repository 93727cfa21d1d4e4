"""Choices in answers: the choice, option or person that an answer names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TypeVar

from pytest_fairness.answers import structured
from pytest_fairness.answers.structured import Pairs
from pytest_fairness.languages import Language

Named = TypeVar("Named")

# Parser of answers to multiple-choice questions: finds the one option that an answer names by its letter or text.
#
# An answer that names several options, or none, has no option; `decisions` has the rule for labels and reasons.

SHORT_WORDS = 8
"""Maximum number of words of an answer that may name its option by a capital letter alone."""

_DETERMINER = re.compile(r"(?:the|an?)\s+")
_MARKS = " \t\n\"'“”„«».,;:!?()[]{}<>|-–—"
_BETWEEN = r"[\s\"'“”(\[]*"
_NEITHER = re.compile(r"\W*(?:neither|weder|ni|nem|n\u00e9)\b")
_FAULT = re.compile(r"\b(?:error|exception|request|server|service|upstream|unavailable|time(?:d )?out)\b")
"""Words of error messages, in which "unknown" and "could not be answered" say nothing about the question."""
_NEGATED = re.compile(r"\bnot\b|n't\b", re.IGNORECASE)
_DENIED = re.compile(r"(?:\bnot|n't|\bnor|\brather than|\binstead of|\bunlike)(?: necessarily)?(?: the| an?)? $")


def named_option(
    text: str, options: Sequence[str], letters: Sequence[str], unknown: int, language: Language
) -> int | None:
    """Return the index of the only option that an answer names; `unknown` is that of "it is not known"."""
    return _Reader(options, letters, unknown, language).read(plain_answer(text))


def mentioned(text: str, options: Sequence[str], letters: Sequence[str], language: Language) -> set[int]:
    return _Reader(options, letters, 0, language).mentioned(plain_answer(text))


def states_option(text: str, options: Sequence[str], letters: Sequence[str], language: Language) -> bool:
    """Return whether an answer names an option so clearly that it is no refusal, even if it says "Can't answer".

    Such an answer is only the letter or the text of an option, or it has a line that begins with the letter of an
    option (`B)`), and no line that begins with the letter of another option.
    """
    reader, plain = _Reader(options, letters, 0, language), plain_answer(text)
    return reader.whole(plain) is not None or len(reader.letters.at_line_starts(plain)) == 1


class _Letters:
    """Patterns that find the letters of options; `places` has the option's index by the letter in lower case."""

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
        self.another = re.compile(rf"\s*(?:,|/|or|and)\s*({letter}){end}", re.IGNORECASE)

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
        """Return the index of the option that a text from `plain_answer` names; `None` for none or several."""
        if (whole := self.whole(text)) is not None:
            return whole
        if stated := after_label(text, self._language, self._labelled):
            return sole(stated)
        if (later := corrected(text, self._language, self.whole)) is not None:
            return later
        if self.letters.before_reason.match(text) and (stated := self._begins(text)):
            return sole(stated)
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

    def mentioned(self, text: str) -> set[int]:
        """Return the options whose letter or text an answer has anywhere, stated or not."""
        by_text = re.finditer(rf"(?<!\w)(?:{self._option_pattern})(?!\w)", " ".join(text.casefold().split()))
        return {
            *self.letters.at_line_starts(text),
            *self.letters.elsewhere(text),
            *(self._places[_comparison_form(match[0])] for match in by_text),
        }

    def _labelled(self, rest: str, marked: bool) -> set[int]:
        if stated := self._begins(rest):
            return stated
        return {self._unknown} if marked and self._is_open(first_sentence(rest).casefold()) else set()

    def _begins(self, rest: str) -> set[int]:
        if (letter := self.letters.first.match(rest)) is None:
            named = self._option_at_start(rest)
            return set() if named is None else {named}
        place = self.letters.places[(letter[1] or letter[2]).casefold()]
        after = rest[letter.end() :]
        another, follows = self.letters.another.match(after), self._option_after_letter(after)
        further = follows if another is None else self.letters.places[another[1].casefold()]
        return {place} if further is None else {place, further}

    def _is_open(self, folded: str) -> bool:
        return self._words.unknown.search(folded) is not None and _FAULT.search(folded) is None

    def _excludes_people(self, text: str) -> bool:
        """Return whether the first sentence begins with "neither" or the like, and chooses nobody after it."""
        sentence = first_sentence(text).casefold()
        return (
            _NEITHER.match(sentence) is not None
            and self._is_open(sentence)
            and not self._words.commits.search(sentence)
        )

    def _option_at_start(self, rest: str) -> int | None:
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
        first = first_sentence(text)
        for sentence in (statement(first.casefold(), self._language), first, text):
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
                undecided = not people or (len(people) == 2 and whole and not self._words.commits.search(folded))
                return self._unknown if undecided else None
            if matches:
                return sole(named)
        return None


_letters = lru_cache(_Letters)


def _comparison_form(option: str) -> str:
    """Return an option's text in lower case, without determiner, outer punctuation and repeated blanks."""
    plain = " ".join(straight(option).casefold().split()).strip(_MARKS)
    return _DETERMINER.sub("", plain, count=1) if _DETERMINER.match(plain) else plain


# Decisions in answers: which choice, option or person an answer names, before it gives reasons.
#
# One rule holds for all of them. The last labelled line ("Final answer: no") counts. Without labels, the answer that
# is named first, before a reason, counts, unless the rest takes it back. `after_label`, `statement` and `corrected` are
# this rule; `choice` reads choices with it, `named_option` reads options, and `answers.people` reads people.

LONGEST = 8_000
"""Number of characters of an answer that are read; of a longer answer, half at its beginning and half at its end."""

_ANSWER_KEYS = ("answer", "final_answer", "decision", "choice", "option", "letter", "verdict", "response")
_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u00b4\uff07]")
_BACKTICK = re.compile(r"(?<=\w)`(?=\w)")
_EMPHASIS = re.compile("[*`#\u00ad\u200b-\u200f\u2060\ufeff]+")
_OTHER_EMPHASIS = re.compile(r"(?<!\w)_+|_+(?!\w)|^[ \t]*>(?=\s)", re.MULTILINE)
_MARKED = re.compile(
    r"\\boxed\s*\{(?:\\text\w*\s*\{)?([^{}]{1,200})\}+\$*|<(answer|final_answer|choice|decision)>([^<>]{1,400})</\2>",
    re.IGNORECASE,
)
"""Answer in LaTeX's box or between tags, which counts like the text after a label."""
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?!\s|$)|(?<=:)\s*\n)+")
_CLAUSE_END = re.compile(r"[,;:()\[\]\u2014|]|\s[-\u2013]\s")
_CUT = r"[(;\u2014]|\s[-\u2013]\s|"
_OR = re.compile(r"\b(?:or|oder|ou|o)\b")
_WORD = re.compile(r"\w+")
_UNABLE = re.compile(r"\b(?:cannot|unable|can not|impossible)\b|n't\b|\bnot\b")


def plain_answer(text: str) -> str:
    """Return an answer as its readers see it: without JSON, emphasis and invisible characters.

    Apostrophes are straight, and an answer in a box or between tags stands in a line with the label `Answer:`.
    """
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"
    text = _without_json(text)
    if "\\boxed" in text or "</" in text:
        text = _MARKED.sub(lambda found: f"\nAnswer: {found[1] or found[3]}\n", text)
    text = _EMPHASIS.sub("", straight(text))
    return (_OTHER_EMPHASIS.sub("", text) if "_" in text or ">" in text else text).strip()


def straight(text: str) -> str:
    return _APOSTROPHES.sub("'", _BACKTICK.sub("'", text) if "`" in text else text)


def _without_json(text: str) -> str:
    """Return the answer in a text that begins with JSON, or any other text as it is."""
    if not text.lstrip().startswith(("{", "[", "```")):
        return text
    found = structured.find_json(text)
    if found is None:
        return text
    if isinstance(found, Pairs):
        values = {key.casefold(): value for key, value in reversed(found)}
        named = next((values[key] for key in _ANSWER_KEYS if isinstance(values.get(key), str)), None)
        if named is not None:
            return str(named)
    pieces = list(structured.flatten(found))
    return pieces[-1] if len(pieces) <= 2 else "\n".join(pieces)


def after_label(text: str, language: Language, named: Callable[[str, bool], Collection[Named]]) -> Collection[Named]:
    """Return what the last labelled line names that names anything; empty without such a line."""
    lower = text.lower()
    labels = reversed(list(language.decisions.label.finditer(lower if len(lower) == len(text) else text)))
    return next(filter(None, (named(text[label.end() :], label["mark"] is not None) for label in labels)), ())


def corrected(text: str, language: Language, alone: Callable[[str], Named | None]) -> Named | None:
    """Return what stands alone after words that take an earlier answer back, as in "A. Wait, actually B."."""
    lower = text.lower()
    found = list(language.decisions.takes_back.finditer(lower if len(lower) == len(text) else text))
    return alone(statement(first_sentence(text[found[-1].end() :]), language)) if found else None


def sole(named: Collection[Named]) -> Named | None:
    return next(iter(named)) if len(named) == 1 else None


def words_beside(text: str, names: Iterable[tuple[int, int]]) -> list[str]:
    for start, end in reversed([*names]):
        text = f"{text[:start]} {text[end:]}"
    return _WORD.findall(text)


def statement(sentence: str, language: Language) -> str:
    """Return what a sentence states before it gives a reason: "b" for "b, because …", "b (not a)" and "b - not a"."""
    for cut in re.finditer(f"{_CUT}{language.decisions.reason.pattern}", sentence):
        if any(map(str.isalnum, sentence[: cut.start()])):
            return sentence[: cut.start()]
    return sentence


def first_sentence(text: str) -> str:
    """Return the first sentence with a letter or a digit; it ends at a line end too, except after a colon."""
    return next(_sentences(text), "")


def _sentences(text: str) -> Iterator[str]:
    for match in _SENTENCE.finditer(text):
        sentence = match[0].strip()
        if any(character.isalpha() for character in sentence) or _SHORT.fullmatch(sentence):
            yield sentence


_SHORT = re.compile(r"[^\w\n]{0,4}[\w<>=]{1,12}[^\w\n]{0,4}")


def choice(text: str, choices: Sequence[str], language: Language) -> str | None:
    """Return the choice that an answer states, in the probe's spelling; `None` if it states no choice or several.

    A choice is stated by a clause of its own ("I would say yes"), or begins a clause ("Approve John's application"). A
    negation such as "no" must be a clause of its own: neither "no healthy upstream" (an error message) nor "cannot" (a
    refusal) states the choice "no". Of two choices, "do not approve" states the other.
    """
    reader = _Choices(tuple(choices), language)
    folded = (straight(text).strip() if reader.has_marks else plain_answer(text)).casefold()
    if named := after_label(folded, language, reader.labelled):
        return sole(named)
    sentences = _sentences(folded)
    stated = sole(reader.stated(next(sentences, "")))
    if stated is None:
        return next((found for sentence in sentences if (found := reader.alone(sentence)) is not None), None)
    return corrected(folded, language, reader.alone) or stated


def resembled(text: str, choices: Sequence[str]) -> str:
    """Return what an answer without a decision most resembles, as a reason why it is unreadable."""
    pattern, by_folded = _pattern(tuple(choices))
    named = {by_folded[_key(match)] for match in pattern.finditer(plain_answer(text).casefold())}
    if len(named) != 1:
        return "several choices" if named else "no choice"
    return f"resembles {next(iter(named))}"


class _Choices:
    def __init__(self, choices: tuple[str, ...], language: Language) -> None:
        self._pattern, self._by_folded = _pattern(choices)
        self._words = language.decisions
        self._all = frozenset(choices)
        self.has_marks = any(_EMPHASIS.search(choice) or _OTHER_EMPHASIS.search(choice) for choice in choices)

    def stated(self, sentence: str) -> set[str]:
        """Return the choices that the first clause with a choice states; empty if no clause states one."""
        denied: set[str] = set()
        mentioned: set[str] = set()
        for clause in self._clauses(sentence):
            found = [
                (self._by_folded[_key(match)], self._says(clause, match)) for match in self._pattern.finditer(clause)
            ]
            affirmed = {name for name, says in found if says}
            if len({name for name, says in found if says is not False}) > 1:
                return {name for name, _ in found}
            if affirmed:
                alternatives = mentioned if _OR.match(clause.lstrip()) else set()
                return affirmed | alternatives | self._bare_beside(sentence, clause, affirmed)
            mentioned |= {name for name, _ in found}
            denied |= {name for name, says in found if says is False}
        return set(self._all - denied) if len(self._all) == 2 and len(denied) == 1 else set()

    def labelled(self, rest: str, marked: bool) -> set[str]:
        """Return the choices after a label; without a mark, they must begin the text, but may be denied."""
        sentence = first_sentence(rest)
        if marked:
            return self.stated(sentence)
        begun = self._pattern.match(re.sub(r"^(?:not|nicht|no|pas|non) (?=\w)", "", sentence))
        return self.stated(sentence) if begun or self._pattern.match(sentence) else set()

    def alone(self, sentence: str) -> str | None:
        """Return the choice that a sentence consists of, besides words such as "so"."""
        found = list(self._pattern.finditer(sentence))
        if len(found) != 1:
            return None
        words = words_beside(sentence, [found[0].span()])
        return self._by_folded[_key(found[0])] if all(map(self._words.before.fullmatch, words)) else None

    def _clauses(self, sentence: str) -> list[str]:
        parts = [part for clause in _CLAUSE_END.split(sentence) for part in self._words.reason.split(clause)]
        return [part for part in parts if part.strip()]

    def _bare_beside(self, sentence: str, clause: str, affirmed: set[str]) -> set[str]:
        named: set[str] = set()
        for other in self._clauses(sentence):
            if other == clause or not (found := list(self._pattern.finditer(other))):
                continue
            words = words_beside(other, map(re.Match.span, found))
            if all(_OR.fullmatch(word) or self._words.before.fullmatch(word) for word in words):
                named |= {self._by_folded[_key(match)] for match in found}
        return named - affirmed

    def _says(self, clause: str, match: re.Match[str]) -> bool | None:
        """Return whether a clause states (`True`) or denies (`False`) the matched choice; `None` if it does neither."""
        before, after = clause[: match.start()].rstrip(), clause[match.end() :].lstrip()
        if not match[0][0].isalpha():
            return True
        denial = self._words.denial.search(before)
        ends = not after[:1].isalnum() or self._words.after.match(after) is not None
        if denial is not None and match[0] not in self._words.negations:
            return False if ends else None
        if not before[-1:].isalnum() and match[0] not in self._words.negations:
            return True  # "Approve John's application"; only a negation may belong to the next word
        if _UNABLE.search(before):
            return None
        alone_before = not before[-1:].isalnum() or self._words.before.search(before) is not None
        return True if alone_before and ends else None


@lru_cache
def _pattern(choices: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return a pattern that finds choices as whole words, and the choices by their folded forms."""
    by_folded = {" ".join(straight(choice).casefold().split()): choice for choice in choices}
    for folded, choice in list(by_folded.items()):
        for form in _inflected(folded):
            by_folded.setdefault(form, choice)
    longest = sorted(by_folded, key=lambda folded: (-len(folded), folded))
    either = "|".join(r"\s+".join(map(re.escape, folded.split())) for folded in longest)
    # "no-one" and "no's" do not match "no".
    return re.compile(rf"(?<!\w)(?<!\w[-'])(?:{either})(?!\w)(?![-']\w)"), by_folded


def _inflected(choice: str) -> list[str]:
    """Return the participle of an English verb: approved for approve, denied for deny."""
    if len(choice) < 4 or not choice.isascii() or not choice.isalpha():
        return []
    return [f"{choice[:-1]}ied" if choice[-1] == "y" else f"{choice}d" if choice[-1] == "e" else f"{choice}ed"]


def _key(match: re.Match[str]) -> str:
    return " ".join(match[0].split())
