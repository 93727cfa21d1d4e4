"""Words, numbers and punctuation of an English text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_fairness.languages.words import straightened

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
    """A word, a number, a link, a line break or a punctuation mark.

    Attributes:
        start: position in the text.
        text: the token as it is written.
        lower: the token in lower case, with straight apostrophes.
        kind: `word`, `number`, `link`, `line`, or `mark`.
    """

    start: int
    text: str
    lower: str
    kind: str

    @property
    def end(self) -> int:
        """Return the position after the last character of the token."""
        return self.start + len(self.text)


def _is_wrapped(text: str, line_break: re.Match[str]) -> bool:
    """Return whether a line break is inside a sentence: after a long line, and before a word in lower case."""
    length = line_break.start() - (text.rfind("\n", 0, line_break.start()) + 1)
    next_character = text[line_break.end() : line_break.end() + 1]
    return line_break[0].count("\n") == 1 and length >= WRAPPED and next_character.islower()


class Tokens:
    """The tokens of a text.

    Attributes:
        text: the text.
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
        """Return whether there is a word at the position."""
        token = self.at(index)
        return token is not None and token.kind == "word"

    def is_acronym(self, index: int) -> bool:
        """Return whether the word at a position is in capitals, in a text that is not mostly in capitals."""
        token = self.at(index)
        return token is not None and len(token.text) > 1 and token.text.isupper() and not self.in_capitals

    def is_capitalised(self, index: int) -> bool:
        """Return whether there is a word with a capital at the position."""
        token = self.at(index)
        return token is not None and token.kind == "word" and token.text[0].isupper()

    def starts_sentence(self, index: int) -> bool:
        """Return whether the token at a position begins a sentence."""
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
