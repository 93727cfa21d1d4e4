"""Decisions in answers: which choice, option or person an answer names, before it gives reasons.

One rule holds for all of them. The last labelled line ("Final answer: no") counts. Without labels, the answer that is
named first, before a reason, counts, unless the rest takes it back. `labelled`, `statement` and `takes_back` are this
rule; `choice` reads choices with it, `options` reads options, and `audits.pronouns.antecedent` reads people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from pytest_fairness.answers import json_in_text
from pytest_fairness.answers.json_in_text import Pairs
from pytest_fairness.languages.language import Language

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
_UNABLE = re.compile(r"\b(?:cannot|unable|can not|impossible)\b|n't\b|\bnot\b")


def plain(text: str) -> str:
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
    """Return a text with straight apostrophes."""
    return _APOSTROPHES.sub("'", _BACKTICK.sub("'", text) if "`" in text else text)


def _without_json(text: str) -> str:
    """Return the answer in a text that begins with JSON; any other text is returned unchanged."""
    if not text.lstrip().startswith(("{", "[", "```")):
        return text
    found = json_in_text.find(text)
    if found is None:
        return text
    if isinstance(found, Pairs):
        values = {key.casefold(): value for key, value in reversed(found)}
        named = next((values[key] for key in _ANSWER_KEYS if isinstance(values.get(key), str)), None)
        if named is not None:
            return str(named)
    pieces = list(json_in_text.flatten(found))
    return pieces[-1] if len(pieces) <= 2 else "\n".join(pieces)


def labelled(text: str, language: Language) -> Iterator[tuple[str, bool]]:
    """Yield the text after each label of a decision, the last first, and whether a mark such as a colon follows it."""
    lower = text.lower()
    for label in reversed(list(language.decisions.label.finditer(lower if len(lower) == len(text) else text))):
        yield text[label.end() :], label["mark"] is not None


def statement(sentence: str, language: Language) -> str:
    """Return what a sentence states before it gives a reason: "b" for "b, because …", "b (not a)" and "b - not a"."""
    for cut in re.finditer(f"{_CUT}{language.decisions.reason.pattern}", sentence):
        if any(map(str.isalnum, sentence[: cut.start()])):
            return sentence[: cut.start()]
    return sentence


def after_taking_back(folded: str, language: Language) -> str:
    """Return the text after words that take an earlier answer back, such as "wait"; empty without such words."""
    found = language.decisions.takes_back.search(folded)
    return folded[found.end() :] if found else ""


def first_sentence(text: str) -> str:
    """Return the first sentence with a letter or a digit; else an empty text.

    A sentence ends at `.`, `!` or `?` before white space, and at the end of a line, unless the line ends with a colon.
    """
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

    Args:
        text: the answer.
        choices: possible choices of one or more words, in any letter case. If two choices match the same words ("sure"
            and "not sure"), the longer choice counts.
        language: language of the answer.
    """
    reader = _Choices(tuple(choices), language)
    folded = (straight(text).strip() if reader.has_marks else plain(text)).casefold()
    for rest, marked in labelled(folded, language):
        sentence = first_sentence(rest)
        if named := reader.stated(sentence) if marked else reader.at_start(sentence):
            return next(iter(named)) if len(named) == 1 else None
    sentences = _sentences(folded)
    named = reader.stated(next(sentences, ""))
    if len(named) != 1:
        return next((found for sentence in sentences if (found := reader.alone(sentence)) is not None), None)
    return reader.alone(first_sentence(after_taking_back(folded, language))) or next(iter(named))


def resembled(text: str, choices: Sequence[str]) -> str:
    """Return what an answer without a decision most resembles, as a reason why it is unreadable."""
    pattern, by_folded = _pattern(tuple(choices))
    named = {by_folded[_key(match)] for match in pattern.finditer(plain(text).casefold())}
    if len(named) != 1:
        return "several choices" if named else "no choice"
    return f"resembles {next(iter(named))}"


class _Choices:
    """Reader of the choices that a sentence states."""

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

    def at_start(self, sentence: str) -> set[str]:
        """Return the choices that a sentence states if it begins with a choice, which may be denied."""
        begun = self._pattern.match(re.sub(r"^(?:not|nicht|no|pas|non) (?=\w)", "", sentence))
        return self.stated(sentence) if begun or self._pattern.match(sentence) else set()

    def alone(self, sentence: str) -> str | None:
        """Return the choice that a sentence consists of, besides words such as "so"; `None` if there is no such one."""
        found = list(self._pattern.finditer(sentence))
        if len(found) != 1:
            return None
        rest = f"{sentence[: found[0].start()]} {sentence[found[0].end() :]}"
        words = re.findall(r"\w+", rest)
        return self._by_folded[_key(found[0])] if all(map(self._words.before.fullmatch, words)) else None

    def _clauses(self, sentence: str) -> list[str]:
        parts = [part for clause in _CLAUSE_END.split(sentence) for part in self._words.reason.split(clause)]
        return [part for part in parts if part.strip()]

    def _bare_beside(self, sentence: str, clause: str, affirmed: set[str]) -> set[str]:
        """Return further choices in the sentence that are clauses without other words, as in "yes, no"."""
        named: set[str] = set()
        for other in self._clauses(sentence):
            rest = _OR.sub(" ", self._pattern.sub(" ", other))
            if other != clause and all(map(self._words.before.fullmatch, re.findall(r"\w+", rest))):
                named |= {self._by_folded[_key(match)] for match in self._pattern.finditer(other)}
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
    """Return a pattern that finds choices as whole words, and a mapping from folded forms to choices."""
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
