"""Reader of numbers: finds the one number that an answer states in English prose.

A number in an answer may be an age, a date or a list marker, and not the answer. The reader therefore ranks numbers by
how they are marked: (0) as final ("Final score: 72"), (1) by a label or by standing alone ("Score: 72", "72"), (2) by
the probe's unit or scale ("$85,000", "72/100"), (3) by a verb or a colon ("I would say 72"). The best rank that occurs
must hold a single number. Any other answer is unreadable, with a reason (`Unread`).

An answer in JSON is read only if the probe says which of its values counts: with `answer: {path: …}`, or with the name
of the number as the key. The documentation of `kind: counterfactual` lists the rules.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from pytest_fairness.answers import json_in_text
from pytest_fairness.answers.amounts import WINDOW, Amount, amounts, has_two_units, without_other_numbers
from pytest_fairness.answers.json_in_text import Number
from pytest_fairness.records import NumberFormat


class Unread(StrEnum):
    """Reason why no number was read."""

    NONE = "no number"
    SEVERAL = "several numbers"
    RANGE = "a range"
    OUTSIDE = "outside min and max"
    UNIT = "another unit"
    SEPARATOR = "ambiguous separator"


LABELS = (
    *("answer", "score", "rating", "grade", "result", "estimate", "prediction", "value", "verdict"),
    *("recommendation", "suggestion", "overall", "total"),
)
"""Names of the number in JSON and in prose, besides the probe's own name for it."""

_EMPHASIS = re.compile(r"[*`]+|(?<!\w)__?|__?(?!\w)|\\(?=[$%])|^#{1,6} ", re.MULTILINE)
_SHOWN = r"[-+]?[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?"
_BRACKETS = re.compile(rf"\[\[\s*({_SHOWN})\s*\]\]|^\s*\[\s*({_SHOWN})\s*\]\s*$")
"""Number in two pairs of brackets, which many judges write, or a list of one number as the whole text."""
_LATEX_TEXT = re.compile(r"\\(?:text|mathrm|mathbf)\{([^{}]*)\}")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_JSON_BEGINS = re.compile(r"(?:```\w*\s*)?[\[{]")
_FINAL = re.compile(r"(?:\\boxed\{|\b(?:final|overall|total)\b[^.!?\n]*)$", re.IGNORECASE)
_ABOUT = r"(?:[~\u2248]|about |around |approximately |roughly )?"
_ALONE_BEFORE = re.compile(
    rf"(?:^|\n|[.!?]\s)\s*(?:[-\u2022>]\s+)?[\"'\u201c\u2018(\[]*\s*{_ABOUT}\s*$|\(\s*$", re.IGNORECASE
)
_ALONE_AFTER = re.compile(r"\s*[\"'\u201d\u2019)\]}]*\s*(?:$|\n|[.!?](?:\s|$))")
_AS_PROGRAMS_WRITE = re.compile(r"-?[0-9]+\.[0-9]{2}[1-9]")
"""A number with three decimals, of which a program would not leave out the last: `63.123`, but not `85.000`."""
_VERB = re.compile(
    r"\b(?:rate(?! limit)|rating|score|scoring|give|giving|assign|award|estimate|say|guess|suggest|recommend|propose"
    r"|offer|predict|evaluate|assess|grade|put|choose|pick|go with|arrive at|settle on"
    r"|(?:would|should|could|will) be)\b",
    re.IGNORECASE,
)
_COLON = re.compile(rf"[:=]\s*[\"'\u201c(]?{_ABOUT}\s*$", re.IGNORECASE)
_FAULT = re.compile(r"\b(?:error|http|status|code|timeout|time-?out|limit|retry|request id|exceeded)\b", re.IGNORECASE)
_ALTERNATIVE = re.compile(
    r"[ \t]*(?:[,;/(][ \t]*)?(?:(?:or|and|maybe|perhaps|possibly|even|probably|rather|about|around)[ \t]+)*",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_SENTENCE_START = re.compile(r"(?:[.!?]\s|\n)(?=[^.!?\n]*$)")


def read(text: str, wanted: NumberFormat, *, cut: bool = False) -> float | str:
    """Return the number that an answer states, or the reason why none is read: one of `Unread`, or text about JSON.

    Args:
        text: the answer.
        wanted: range, unit and name of the number.
        cut: whether the target cut the text off; a number at its end may then lack digits.
    """
    plain = _BRACKETS.sub(r"\1\2", _INVISIBLE.sub("", _LATEX_TEXT.sub(r"\1", text))).strip()
    found = None if cut else json_in_text.find(plain)
    if found is not None:
        leaves = list(json_in_text.leaves(found))
        named = [str(leaf) for key, leaf in leaves if wanted.name and key.casefold() == wanted.name.casefold()]
        if named:
            return _only_result([_number_in_prose(leaf, wanted) for leaf in named])
        keys = [key for key, leaf in leaves if isinstance(leaf, Number) and key]
        return f"JSON with the numbers {', '.join(dict.fromkeys(keys))}" if keys else "JSON"
    if _JSON_BEGINS.match(plain):
        return Unread.NONE  # broken JSON
    return _number_in_prose(f"{plain}\u2026" if cut else plain, wanted)


def is_marked(text: str, wanted: NumberFormat) -> bool:
    """Return whether a text begins with a number, or has a number with a label or alone in a line or sentence.

    Such a text is no refusal.
    """
    plain = without_other_numbers(_EMPHASIS.sub("", text))
    return any(rank <= 1 for rank, _ in _ranked(plain, amounts(plain, wanted), wanted))


def _only_result(results: list[float | Unread]) -> float | Unread:
    """Return the result if all results are equal; `SEVERAL` if they differ, and `NONE` if there are no results."""
    different = [*dict.fromkeys(results)]
    if len(different) > 1:
        return Unread.SEVERAL
    return different[0] if different else Unread.NONE


def _number_in_prose(text: str, wanted: NumberFormat) -> float | Unread:
    if wanted.decimal is None and _AS_PROGRAMS_WRITE.fullmatch(text) and wanted.min <= float(text) <= wanted.max:
        return float(text)
    plain = without_other_numbers(_EMPHASIS.sub("", text))
    found = amounts(plain, wanted)
    ranked = _ranked(plain, found, wanted)
    if not ranked:
        foreign = any(amount.foreign for amount in found) or has_two_units(text)
        ranges = any(amount.is_range and not amount.foreign for amount in found)
        return Unread.RANGE if ranges else Unread.UNIT if foreign else Unread.NONE
    best = min(rank for rank, _ in ranked)
    first = [amount for rank, amount in ranked if rank == best]
    single = [_value_in_limits(amount.values, wanted) for amount in first if not amount.is_range]
    if single:
        return _only_result(single)
    if wanted.ranges == "middle":
        return _only_result([_middle(amount, wanted) for amount in first])
    return Unread.RANGE


def _ranked(plain: str, candidates: list[Amount], wanted: NumberFormat) -> list[tuple[int, Amount]]:
    """Return the amounts that may be the answer, each with its rank.

    An alternative, such as 75 in "Score: 70 or 75", is ranked at least as well as the amount before it. If a text
    begins with an amount, all amounts of its first sentence have the rank 1.
    """
    own = [amount for amount in candidates if not amount.foreign]
    ranked: list[tuple[int, Amount]] = []
    first_end = _first_sentence_end(plain, own)
    previous_rank, previous_end = None, 0
    for amount in own:
        rank = 1 if amount.start < first_end else _rank(plain, amount, wanted)
        if _ALTERNATIVE.fullmatch(plain[previous_end : min(amount.start, previous_end + WINDOW)]):
            rank = min((known for known in (rank, previous_rank) if known is not None), default=None)
        if rank is not None:
            ranked.append((rank, amount))
        previous_rank, previous_end = rank, amount.end
    return ranked


def _first_sentence_end(plain: str, own: list[Amount]) -> int:
    """Return the end of the first sentence if the text begins with an amount, and otherwise 0."""
    if not own or own[0].start >= WINDOW or plain[: own[0].start].strip("\"'\u201c\u2018([~\u2248 "):
        return 0
    sentence = _SENTENCE_END.search(plain, own[0].end)
    return len(plain) if sentence is None else sentence.start() + 1


def _rank(plain: str, amount: Amount, wanted: NumberFormat) -> int | None:
    """Return the rank of an amount, 0 for the best; `None` if nothing marks the amount as the answer."""
    before = plain[max(0, amount.start - WINDOW) : amount.start]
    labelled = _label_pattern(wanted.name).search(before)
    if labelled is not None or before.endswith("\\boxed{"):
        return 0 if _FINAL.search(before) else 1
    if _ALONE_BEFORE.search(before) and _ALONE_AFTER.match(plain[amount.end : amount.end + WINDOW]):
        return 1
    if amount.own:
        return 2
    sentence = _SENTENCE_START.split(before)[-1]
    if _FAULT.search(sentence):
        return None
    return 3 if _COLON.search(before) or _VERB.search(sentence) else None


@lru_cache
def _label_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern that finds a label (`name` or one of `LABELS`) at the end of the text before a number."""
    either = "|".join(re.escape(label) for label in sorted({*LABELS, *([name.casefold()] if name else [])}, key=len))
    joint = r"is|was|be|of|as|at|to|=|:|>|\u2192|->|[-\u2013\u2014]|would|should"
    about = r"about|around|approximately|roughly|just|exactly|~|\u2248"
    return re.compile(
        rf"\b(?:(?:{either})s?[\"'\u201d\u2019)]*\s*(?:[(\[][^()\[\]\n]*[)\]]\s*)?(?:{joint})|(?:score|rating|answer)\b)"
        rf"\s*(?:(?:{joint}|{about}|an?\b)\s*)*[\"'\u201c\u2018(\[]*\s*$",
        re.IGNORECASE,
    )


def _value_in_limits(values: tuple[float, ...], wanted: NumberFormat) -> float | Unread:
    """Return the value between the probe's `min` and `max`, or the reason why there is none or more than one."""
    inside = [value for value in values if wanted.min <= value <= wanted.max]
    if len(inside) > 1:
        return Unread.SEPARATOR
    return inside[0] if inside else Unread.OUTSIDE if values else Unread.SEPARATOR


def _middle(amount: Amount, wanted: NumberFormat) -> float | Unread:
    """Return the middle of a range, or the reason why it cannot be read, such as an end above `max`."""
    if len(amount.values) != 2:
        return Unread.SEPARATOR
    ends = [_value_in_limits((end,), wanted) for end in amount.values]
    return Unread.OUTSIDE if Unread.OUTSIDE in ends else sum(amount.values) / 2
