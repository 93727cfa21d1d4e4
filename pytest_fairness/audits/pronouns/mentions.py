"""Occurrences of two people's names in an answer, which may deny that one of them is meant ("not the nurse").

Names are matched as whole words, the longer name first. Words that only repeat the sentence of the prompt are ignored.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache


def any_of(*choices: str) -> str:
    """Return a regular expression that matches any of these expressions."""
    return f"(?:{'|'.join(choices)})"


_TO_BLANK = re.compile(r"[*_`#>|~\u00ad\u200b-\u200d\u2060\ufeff]|(?<=\w)[-\u2010\u2011](?=\w)")
_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u00b4\uff07]")
_WORD = re.compile(r"\w+(?:'\w+)?")

_BEFORE_NOT = re.compile(
    r"\b"
    + any_of(
        r"(?:not|isn't|wasn't|aren't|weren't|doesn't|didn't|don't)(?: necessarily| actually| really)?"
        r"(?: (?:refer(?:ring)?|apply|belong) to| about| by| for| to| mean)?",
        *("nor", "neither", "rather than", "instead of", "as opposed to", "never", "unlike", "except", "excluding"),
    )
    + r"(?: (?:the|a|an|any|that|this))?[\s\"'(]*$"
)
_AFTER_NOT = re.compile(
    r"^[\s\"',)]*(?:who |which |that )?(?:was|is|did|does|had|has|were|would|could)(?: not|n't)\b(?P<rest>[^.!?;\n,]*)"
)
_AFTER_OUT = re.compile(r"^[\s\"')]*(?:was|is|can be|being) (?:ruled out|excluded|irrelevant)\b")
_POSSESSIVE = re.compile(r"'s?\s+(?=\w)")

FILLERS = frozenset(
    (
        *("according", "an", "answer", "based", "be", "clearly", "context", "definitely", "given", "he"),
        *("her", "here", "hers", "him", "his", "in", "is", "it", "it's", "likely", "most", "occupation"),
        *("of", "on", "one", "person", "probably", "pronoun", "refer", "referred", "referring", "refers"),
        *("sentence", "she", "that", "the", "them", "they", "this", "to", "was", "were", "which", "who"),
        *("who's", "whom", "would"),
    )
)
"""Words that may stand beside the name in an answer that consists of a single name."""


@dataclass(frozen=True)
class Mention:
    """One occurrence of one of the two names in the text.

    Attributes:
        who: 0 for the first name, 1 for the second.
        start, end: position of the name in the text.
        denied: whether the text says that this person is not meant.
        possessive: whether the name is followed by "'s".
    """

    who: int
    start: int
    end: int
    denied: bool
    possessive: bool


def plain_text(text: str) -> str:
    """Return the text in the form in which texts are compared: NFKC, case-folded, single blanks within lines.

    Markdown characters and hyphens within words become blanks; apostrophes become straight.
    """
    folded = _APOSTROPHES.sub("'", unicodedata.normalize("NFKC", text)).casefold()
    lines = _TO_BLANK.sub(" ", folded).splitlines()
    return "\n".join(" ".join(line.split()) for line in lines)


def words_of(text: str) -> list[str]:
    """Return the words of a text, in order; an apostrophe does not end a word."""
    return _WORD.findall(text)


def _name_pattern(name: str) -> str:
    """Return a regular expression for the name as whole words, in the singular or plural."""
    words = plain_text(name).split()
    last = words[-1]
    forms = [re.escape(last) + "(?:s|es)?"]
    if last.endswith("y"):
        forms.append(re.escape(last[:-1]) + "ies")
    if last.endswith("man"):
        forms.append(re.escape(last[:-3]) + "men")
    if last.endswith("person"):
        forms.append(re.escape(last[:-6]) + "people")
    return r"(?<!\w)" + r"\s+".join([*map(re.escape, words[:-1]), any_of(*forms)]) + r"(?!\w)"


@lru_cache(maxsize=2**10)
def _finder(names: tuple[str, str]) -> tuple[re.Pattern[str], Sequence[int]]:
    """Return a regular expression for both names, and for each capturing group the index of its name.

    The longer name comes first, so that a name that contains the other name is found.
    """
    order = sorted(range(2), key=lambda who: -len(plain_text(names[who])))
    return re.compile("|".join(f"({_name_pattern(names[who])})" for who in order)), order


def mentions_of(plain: str, names: tuple[str, str], question: Collection[str]) -> list[Mention]:
    """Return all occurrences of the names in the text; `question` holds the words of the prompt's question."""
    finder, order = _finder(names)
    mentions = []
    for match in finder.finditer(plain):
        before, after = plain[: match.start()], plain[match.end() :]
        possessive = _POSSESSIVE.match(after) is not None
        denied = _BEFORE_NOT.search(before[-60:]) is not None or _is_denied_after(after, question)
        mentions.append(Mention(order[(match.lastindex or 1) - 1], match.start(), match.end(), denied, possessive))
    return _with_joint_denials(plain, mentions)


def _with_joint_denials(plain: str, mentions: list[Mention]) -> list[Mention]:
    """Return the mentions; a denial also holds for a name after "or", as in "not the nurse or the doctor"."""
    result: list[Mention] = []
    for mention in mentions:
        between = plain[result[-1].end : mention.start] if result else ""
        carried = (
            bool(result) and result[-1].denied and re.fullmatch(r" (?:or|nor)(?: the| a| an)? ", between) is not None
        )
        result.append(Mention(mention.who, mention.start, mention.end, mention.denied or carried, mention.possessive))
    return result


def _is_denied_after(after: str, question: Collection[str]) -> bool:
    """Return whether the text after a name denies that this person is meant.

    For the question "who was late?", "was not late" is a denial, but "was not on time" is not.
    """
    if _AFTER_OUT.match(after):
        return True
    match = _AFTER_NOT.match(after)
    if match is None or {"not", "n't"} & set(question):
        return False
    rest = words_of(match["rest"])
    stems = {word[:4] for word in question if word not in FILLERS}
    return not rest or rest[0] in ("the", "it", "him", "her") or any(word[:4] in stems for word in rest[:3])


def without_echo(plain: str, sentence: str, question: str, names: tuple[str, str]) -> str:
    """Return the answer without the parts that repeat the prompt's sentence or question.

    A repetition starts at the beginning of the sentence. It includes both names or, at the end of the answer, the first
    name and at least one more word. "The doctor phoned the nurse because the nurse was late" repeats the sentence up to
    "because"; the rest is the answer.
    """
    asked = words_of(sentence)
    finder, _ = _finder(names)
    ends = [match.end() for match in finder.finditer(sentence)]
    if not asked or len(ends) < 2:
        return plain
    past_first, past_both = (len(words_of(sentence[:end])) for end in (ends[0], ends[1]))
    matches = list(_WORD.finditer(plain))
    words = [match[0] for match in matches]
    kept, position, place = [], 0, 0
    while place < len(words):
        length = 0
        while length < min(len(asked), len(words) - place) and words[place + length] == asked[length]:
            length += 1
        cut_off = place + length == len(words) and length > past_first
        if length >= past_both or cut_off:
            kept.append(plain[position : matches[place].start()])
            position = matches[place + length - 1].end()
            place += length
        else:
            place += 1
    rest = "\n".join([*kept, plain[position:]]) if kept else plain
    return rest.replace(question, "\n") if question else rest
