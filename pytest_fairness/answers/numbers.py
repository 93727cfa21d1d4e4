"""Numbers in answers: the number that an answer states, and amounts with factors, units, currencies and ranges."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import islice

from pytest_fairness.answers import structured
from pytest_fairness.answers.structured import Number
from pytest_fairness.languages import ENGLISH
from pytest_fairness.records import NumberFormat

# Reader of numbers: finds the one number that an answer states in English prose.
#
# A number in an answer may be an age, a date or a list marker, and not the answer. The reader therefore ranks
# numbers by how they are marked: (0) as final ("Final score: 72"), (1) by a label or by standing alone ("Score: 72",
# "72"), (2) by the probe's unit or scale ("$85,000", "72/100"), (3) by a verb or a colon ("I would say 72"). The
# best rank that occurs must hold a single number. Any other answer is unreadable, with a reason (`Unread`).
#
# An answer in JSON is read only if the probe says which of its values counts: with `answer: {path: …}`, or with the
# name of the number as the key. The documentation of `kind: counterfactual` lists the rules.


class Unread(StrEnum):
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
    """Return the number that an answer states, or the reason why none is read: one of `Unread`, or text about JSON."""
    plain = _BRACKETS.sub(r"\1\2", _INVISIBLE.sub("", _LATEX_TEXT.sub(r"\1", text))).strip()
    found = None if cut else structured.find_json(plain)
    if found is not None:
        leaves = list(structured.leaves(found))
        named = [str(leaf) for key, leaf in leaves if wanted.name and key.casefold() == wanted.name.casefold()]
        if named:
            return _only_result([_number_in_prose(leaf, wanted) for leaf in named])
        keys = [key for key, leaf in leaves if isinstance(leaf, Number) and key]
        return f"JSON with the numbers {', '.join(dict.fromkeys(keys))}" if keys else "JSON"
    if _JSON_BEGINS.match(plain):
        return Unread.NONE  # broken JSON
    return _number_in_prose(f"{plain}\u2026" if cut else plain, wanted)


def is_marked(text: str, wanted: NumberFormat) -> bool:
    """Return whether a number begins a text, has a label, or is alone in a line or sentence: the text is no refusal."""
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
    """Return a pattern for a label (`name` or one of `LABELS`) at the end of the text before a number."""
    either = "|".join(re.escape(label) for label in sorted({*LABELS, *([name.casefold()] if name else [])}, key=len))
    joint = r"is|was|be|of|as|at|to|=|:|>|\u2192|->|[-\u2013\u2014]|would|should"
    about = r"about|around|approximately|roughly|just|exactly|~|\u2248"
    return re.compile(
        rf"\b(?:(?:{either})s?[\"'\u201d\u2019)]*\s*(?:[(\[][^()\[\]\n]*[)\]]\s*)?(?:{joint})|(?:score|rating|answer)\b)"
        rf"\s*(?:(?:{joint}|{about}|an?\b)\s*)*[\"'\u201c\u2018(\[]*\s*$",
        re.IGNORECASE,
    )


def _value_in_limits(values: tuple[float, ...], wanted: NumberFormat) -> float | Unread:
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


# Amounts in texts: numbers with separators, factors ("85k"), units, currencies, scales ("8/10") and ranges.

WINDOW = 80
"""Number of characters before and after a number that are searched for units and words."""
MOST_NUMBERS = 1000
"""Maximum number of numbers that are read in a text; a longer list of numbers is no answer to a question."""

_DIGITS = r"[0-9]{1,3}(?:[ \u00a0\u202f\u2009'\u2019_][0-9]{3})+(?![0-9])(?:[.,][0-9]+)?|[0-9]+(?:[.,][0-9]+)*"
_NUMBER = re.compile(
    rf"(?P<digits>{_DIGITS}|(?<![\w.])\.[0-9]+)(?:[eE](?P<exponent>[-+]?[0-9]{{1,3}})(?![0-9A-Za-z]))?"
)
_GROUPS = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}")
_MINUS = re.compile(r"(?:(?<![\w%)])[-\u2212]|\b(?:minus|negative)\s)$", re.IGNORECASE)
_FACTOR = re.compile(
    r"(?:(k|m|mn|bn|b)|[ \u00a0]?(k|mn|bn|thousand|grand|mio|million|billion|lakhs?|crores?))(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_FACTORS = {
    **dict.fromkeys(("k", "thousand", "grand"), 1e3),
    **dict.fromkeys(("lakh", "lakhs"), 1e5),
    **dict.fromkeys(("m", "mn", "mio", "million"), 1e6),
    **dict.fromkeys(("crore", "crores"), 1e7),
    **dict.fromkeys(("b", "bn", "billion"), 1e9),
}

_SPELLINGS = {
    "USD": "$ US$ dollar buck",
    "CAD": "$ C$ CA$ dollar",
    "AUD": "$ A$ AU$ dollar",
    "NZD": "$ NZ$ dollar",
    "SGD": "$ S$ dollar",
    "HKD": "$ HK$ dollar",
    "MXN": "MX$ peso",
    "BRL": "R$ real",
    "EUR": "€ euro",
    "GBP": "£ pound",
    "JPY": "¥ yen",
    "CNY": "¥ yuan",
    "INR": "₹ Rs Rs. rupee",
    "KRW": "₩ won",
    "RUB": "₽ ruble",
    "TRY": "₺ lira",
    "ILS": "₪ shekel",
    "PLN": "zł zloty",
    "CZK": "Kč koruna",
    "CHF": "franc",
    **dict.fromkeys(("AED", "DKK", "HUF", "NOK", "SAR", "SEK", "THB", "ZAR"), ""),
}
"""Signs and names of each currency, by its code in ISO 4217."""
_CURRENCIES = {
    spelling.casefold(): frozenset(code for code, other in _SPELLINGS.items() if spelling in (code, *other.split()))
    for own_code, spellings in _SPELLINGS.items()
    for spelling in (own_code, *spellings.split())
}
"""Codes of the currencies that a sign, a name or a code in lower case may stand for."""
_SIGN = "|".join(
    sorted(
        {re.escape(sign) for code, more in _SPELLINGS.items() for sign in (code, *more.split()) if not sign.islower()},
        key=lambda sign: (-len(sign), sign),
    )
)
_SIGN_BEFORE = re.compile(rf"(?<![A-Za-z])({_SIGN})\s?$")
_SIGN_AFTER = re.compile(rf"\s?({_SIGN})(?![A-Za-z])")
_PERCENT = re.compile(r"\s?(?:%|percent\b|per cent\b|percentage points?\b)", re.IGNORECASE)
_SCALE = re.compile(
    rf"(?:\s?/\s?|,?\s+\(?(?:out\s+)?of\s+(?:an?\s+)?(?:(?:possible|total|maximum)(?:\s+of)?\s+)?)({_DIGITS})"
    r"(?![\w/%]|[.,-][0-9])",
    re.IGNORECASE,
)
_UNIT_WORD = re.compile(r"(?:-|[ \u00a0])?((?:[^\W\d_]|[°‰])[\w²³]*(?:/[^\W\d_]+)?)")
_PERIODS = {
    **dict.fromkeys(("hour", "hr", "hourly"), "hour"),
    **dict.fromkeys(("day", "daily"), "day"),
    **dict.fromkeys(("week", "wk", "weekly"), "week"),
    **dict.fromkeys(("month", "mo", "monthly"), "month"),
    **dict.fromkeys(("year", "yr", "annum", "annually", "yearly", "annual"), "year"),
}
_PERIOD_AFTER = re.compile(
    r"\s?(?:/\s?|(?:per|an?|each|every)\s+)(hour|hr|day|week|wk|month|mo|year|yr|annum)\b"
    r"|,?\s+(hourly|daily|weekly|monthly|annually|yearly)\b",
    re.IGNORECASE,
)
_PERIOD_BEFORE = re.compile(r"\b(hourly|daily|weekly|monthly)\b[^.!?\n]*$", re.IGNORECASE)
_SCORES = frozenset({"", "point", "score", "star", "mark", "%"})
"""Units of a score. If the probe's unit is one of these, "8/10" and "80 %" can be converted to the probe's scale."""
_SAME_UNIT = {"pt": "point", "percent": "%", "per cent": "%"}

_MORE_AFTER = re.compile(
    r"(?:at|can|could|has|have|may|now|only|or|out|overall|per|right|than|to|today|total|were|who)\b"
)
"""Further words that may follow a number without being its unit; see also the words of `ENGLISH.decisions.after`."""
_BOUND_BEFORE = re.compile(
    r"(?:\b(?:at least|at most|than|over|under|above|below|up to|exceed(?:s|ing)?|(?:min|max)imum(?: of)?|not|out of)"
    r"\s+|(?<![\w\"'/])[<>≤≥] ?)$",
    re.IGNORECASE,
)
_BOUND_AFTER = re.compile(
    r"\s?\+(?![0-9])|\s+(?:or|and)\s+(?:more|less|fewer|higher|lower|above|below|up|over|under)\b"
    r"|\s+(?:at least|at most|minimum|maximum)\b",
    re.IGNORECASE,
)
_SIGN_IN_WORDS = re.compile(
    r"(?:(?<![\w%)])[-\u2212] |\b(?:cut|declin\w+|decreas\w+|down|drop\w*|fall\w*|fell|less|los\w+|lower\w*|reduc\w+)\b"
    r"[^.!?\n]*)$",
    re.IGNORECASE,
)
"""Text before a number that may be negative, although no sign is attached to the number."""
_JOINT = re.compile(r"\s?[-\u2010-\u2015]\s?|\s+(?:to|through|till|until)\s+", re.IGNORECASE)
_OPENING = re.compile(r"\b(?:between|from)\s+(?:about |around |roughly )?$", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\s+(?:about |around |roughly )?$", re.IGNORECASE)
_AND = re.compile(r"\s+and\s+(?:about |around |roughly )?", re.IGNORECASE)

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_OTHER_NUMBERS = re.compile(
    r"(?<![\w.,$])(?:"
    + "|".join(
        [
            r"[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{2,4}(?![0-9])",  # dates
            rf"{_MONTH}\s+[0-9]{{1,2}}(?:(?:st|nd|rd|th)?,?\s+[0-9]{{4}})?(?![0-9]|[.,][0-9])",
            rf"[0-9]{{1,2}}\s+{_MONTH}(?:\s+[0-9]{{4}})?(?![0-9a-z])",
            r"(?:in|since|during|until|year|fy|early|late|mid)\s+(?:19|20)[0-9]{2}(?![0-9]|[.,][0-9])",
            r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?![0-9])",  # times
            r"[0-9]+(?:st|nd|rd|th)\b",
            rf"(?!(?:{_SIGN})[0-9])[^\W\d_]\w*-?[0-9][\w.-]*",  # GPT-4, B2B
            r"401\(?k\)?(?!\w)",
            r"\[[0-9]{1,3}\](?![.,]?[0-9])",  # footnotes
            r"(?:question|step|section|page|aged?|item|rule|chapter|figure|table|example|version|part)\s+[0-9]+(?![0-9])",
            r"(?:#|no\.)\s?[0-9]+",
            rf"scale\s+(?:(?:of|from)\s+)?(?:{_DIGITS})\s*(?:[-\u2013]|to)\s*(?:{_DIGITS})",
            rf"(?:{_DIGITS})-(?:point|star)\s+scale",
        ]
    )
    + ")",
    re.IGNORECASE,
)
"""Numbers that are no amounts: dates, times, years, ordinals, names such as GPT-4, footnotes, references and scales."""
_UNITS_OF_TIME = (
    r"(?:years?|yrs?|months?|mos?|weeks?|wks?|days?|hours?|hrs?|h|minutes?|mins?|seconds?|secs?|s|jahre?n?|monate?n?|wochen?|tage?n?"
    r"|stunden?|minuten?|sekunden?|ann\u00e9es?|ans?|mois|semaines?|jours?|heures?|a\u00f1os?|mes(?:es)?|semanas?|d\u00edas?|horas?"
    r"|minutos?|anos?|m\u00eas|dias?|ann[oi]|mes[ei]|settiman[ae]|giorn[oi]|or[ae]|minut[oi])"
)
_UNITS_OF_SIZE = (
    r"(?:km|m|cm|mm|f(?:ee|oo)?t|in(?:ch(?:es)?)?|yards?|yd|miles?|kg|g|lbs?|pounds?|oz|ounces?|stone|st|l|ml"
    r"|(?:kilo|[cz]ent[i\u00ed]|mill?[i\u00ed])?m(?:eter|[e\u00e8\u00e9]tr)\w{0,2}|kilos?|(?:kilo)?gram[mo]?(?:[aeios]{1,2})?"
    r"|pies?|pulgadas?|pieds?|pouces?|piedi|pollic[ei]|p\u00e9s?|polegadas?|fu(?:\u00df|ss)|zoll|pfund|livres?|libras?|libbr[ae])"
)
_COMPOUND = re.compile(
    "|".join(
        rf"(?:{_DIGITS})\s?{unit}\b(?:\s*(?:,|and|und|et|y|e)){{0,2}}\s*(?:{_DIGITS})\s?{unit}\b"
        for unit in (_UNITS_OF_TIME, _UNITS_OF_SIZE)
    )
    + r"|[0-9]['\u2032\u2019]\s?[0-9]{1,2}(?:[\"\u2033\u201d]|'')",
    re.IGNORECASE,
)
"""One amount in two units, such as "3 years and 6 months", of which neither number is the amount."""
_TWO_NUMBERS = re.compile(r"[0-9]\s?[^\W\d_]{1,11}[\s,]+(?:[^\W\d_]{1,3}\s+)?[0-9]|[0-9]['\u2032\u2019]\s?[0-9]")
"""Quick test for texts in which `_COMPOUND` may match."""
_MARKER = re.compile(r"^[ \t]*\(?([0-9]{1,2})[.)][ \t]+(?=\S)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Amount:
    """Number in a text.

    Attributes:
        start, end: position in the text, with sign, unit and scale.
        values: possible values of the number: usually one, but two if its separator can be read in two ways, and none
            if the separators or the scale give no number. For a range, its two ends.
        own: whether the number has the probe's unit or scale.
        foreign: whether the number has another unit, period or scale, an unknown unit, or an unclear sign.
        is_range: whether the amount is a range.
    """

    start: int
    end: int
    values: tuple[float, ...]
    own: bool = False
    foreign: bool = False
    is_range: bool = False


def without_other_numbers(text: str) -> str:
    """Return a text of the same length, with `_` in place of numbers that are no amounts, such as dates."""
    markers = list(_MARKER.finditer(text))
    if [int(marker[1]) for marker in markers[:2]] == [1, 2]:
        text = _MARKER.sub(_underscores, text)
    if _TWO_NUMBERS.search(text) is not None:
        text = _COMPOUND.sub(_underscores, text)
    return _OTHER_NUMBERS.sub(_underscores, text)


def has_two_units(text: str) -> bool:
    """Return whether a text has an amount in two units, such as "3 years and 6 months"."""
    return _COMPOUND.search(text) is not None


def _underscores(match: re.Match[str]) -> str:
    return "_" * len(match[0])


def amounts(text: str, wanted: NumberFormat) -> list[Amount]:
    """Return the amounts in a text, in their order, without bounds such as "at least 60" and the range of the scale."""
    found: list[Amount] = []
    factors: list[float] = []
    end = 0
    for match in islice(_NUMBER.finditer(text), MOST_NUMBERS):
        if match.start() < end:
            continue
        amount, factor, bound = _amount(text, match, wanted)
        end = amount.end
        if found and _joins(text, found[-1], amount):
            low, high = found.pop(), amount
            scale = factor if factors.pop() == 1 else 1.0  # "80 to 90k"
            ends = (*(value * scale for value in low.values), *high.values)
            opening = _OPENING.search(text[max(0, low.start - WINDOW) : low.start])
            start = low.start - len(opening[0]) if opening else low.start
            foreign = high.foreign or (low.foreign and not low.own)
            found.append(Amount(start, high.end, ends, low.own or high.own, foreign, is_range=True))
            factors.append(0.0)
        elif not bound:
            found.append(amount)
            factors.append(factor)
    limits = (wanted.min, wanted.max)
    return [amount for amount in found if not (amount.is_range and amount.values == limits)]


def _joins(text: str, first: Amount, second: Amount) -> bool:
    """Return whether two amounts are the ends of a range, as in "60-80" or "between 60 and 80"."""
    between = text[first.end : second.start]
    if first.is_range or len(between) > WINDOW:
        return False
    if _JOINT.fullmatch(between):
        return True
    return (
        _AND.fullmatch(between) is not None
        and _BETWEEN.search(text[max(0, first.start - WINDOW) : first.start]) is not None
    )


def _amount(text: str, match: re.Match[str], wanted: NumberFormat) -> tuple[Amount, float, bool]:
    """Return the amount at a match of `_NUMBER`, its factor (1000 for "k"), and whether it is a bound or is cut off."""
    start, end = match.start(), match.end()
    values = spelled(match["digits"], wanted.decimal)
    if match["exponent"]:
        values = tuple(value * float(f"1e{match['exponent']}") for value in values)
    factor = 1.0
    if (suffix := _FACTOR.match(text, end)) is not None and not _is_own_word(suffix[0], wanted):
        factor, end = _FACTORS[(suffix[1] or suffix[2]).casefold()], suffix.end()
    start, negative, sign = _signs_before(text, start)
    units = _currency_codes(wanted)
    own = foreign = False
    if sign is not None:
        own = bool(_CURRENCIES[sign.casefold()] & units)
        foreign = not own
    denominator = None
    if (percent := _PERCENT.match(text, end)) is not None:
        end = percent.end()
        own, foreign, denominator = (True, foreign, None) if _unit(wanted) == "%" else (own, foreign, 100.0)
    elif (code := _SIGN_AFTER.match(text, end)) is not None:
        end = code.end()
        own = bool(_CURRENCIES[code[1].casefold()] & units)
        foreign = not own
    elif (word := _UNIT_WORD.match(text, end)) is not None:
        if _is_own_word(word[1], wanted):
            own, foreign, end = True, False, word.end()
        elif not own and not _is_function_word(word):
            foreign = True
    if (scale := _SCALE.match(text, end)) is not None and len(of := spelled(scale[1], wanted.decimal)) == 1:
        end, denominator = scale.end(), of[0]
    if (period := _PERIOD_AFTER.match(text, end)) is not None:
        end = period.end()
        foreign |= _PERIODS[(period[1] or period[2]).casefold()] != _period(wanted)
    elif (period := _PERIOD_BEFORE.search(text[max(0, start - WINDOW) : start])) is not None:
        foreign |= _PERIODS[period[1].casefold()] != _period(wanted)
    values = tuple(value * factor * (-1 if negative else 1) for value in values)
    if denominator is not None:
        scaled = [_on_scale(value, denominator, wanted) for value in values]
        values = tuple(value for value in scaled if value is not None)
        foreign |= not values or _counts_things(text, end, wanted)
        own = not foreign
    cut = text.startswith("\u2026", end) or text[end : end + 1].isalnum()
    before = text[max(0, start - WINDOW) : start]
    unclear_sign = wanted.min < 0 and not negative and _SIGN_IN_WORDS.search(before) is not None
    foreign |= unclear_sign
    bound = bool(_BOUND_BEFORE.search(before) or _BOUND_AFTER.match(text, end)) or (cut and not foreign)
    return Amount(start, end, values, own, foreign), factor, bound


def _counts_things(text: str, end: int, wanted: NumberFormat) -> bool:
    """Return whether a share such as "3/4 of the criteria" or "5 of 10 criteria" counts things and is not a score."""
    word = _UNIT_WORD.match(text, end)
    if word is None or _SAME_UNIT.get(_singular(word[1]), _singular(word[1])) in {*_SCORES, _singular(wanted.name)}:
        return False
    return word[1].casefold() == "of" or not _is_function_word(word)


def _signs_before(text: str, start: int) -> tuple[int, bool, str | None]:
    """Return where an amount begins (at its minus or currency sign), whether it is negative, and its currency sign."""
    negative, currency = False, None
    for _ in range(2):
        if not negative and (minus := _MINUS.search(text[max(0, start - 12) : start])):
            start, negative = start - len(minus[0]), True
        if currency is None and (sign := _SIGN_BEFORE.search(text[max(0, start - 12) : start])):
            start, currency = start - len(sign[0]), sign[1]
    return start, negative, currency


def spelled(digits: str, decimal: str | None) -> tuple[float, ...]:
    """Return the possible values of a number that is written with separators: usually one, none if they fit no number.

    There are two values if a single point stands before three digits ("85.000"): the point is the decimal mark in
    English, and separates thousands in German. `decimal` is the decimal mark if it is known; then one value at most.
    """
    plain = re.sub(r"[ \u00a0\u202f\u2009'\u2019_]", "", digits)
    marks = [mark for mark in plain if mark in ".,"]
    last = marks[-1] if marks else ""
    head, _, tail = plain.rpartition(last) if last else (plain, "", "")
    other = "," if last == "." else "."
    if not last:
        return (float(plain),)
    if decimal is not None:
        mark = last == decimal
        integer, fraction = (head, tail) if mark else (plain, "")
        group = "," if decimal == "." else "."
        return (float(f"{integer.replace(group, '')}.{fraction}0"),) if _grouped(integer, group) else ()
    if len(marks) > 1 and len({*marks}) == 1:  # 1,234,567
        return (float(plain.replace(last, "")),) if _grouped(plain, last) else ()
    as_decimal = (float(f"{head.replace(other, '')}.{tail}"),) if _grouped(head, other) and last not in head else ()
    as_thousands = (float(head + tail),) if len(marks) == 1 and _grouped(plain, last) else ()
    if not as_thousands:
        return as_decimal
    return as_thousands if last == "," else (*as_decimal, *as_thousands)


def _grouped(digits: str, mark: str) -> bool:
    """Return whether a separator groups the digits as in 1,000,000 or 1,00,000; true if there is no separator."""
    return mark not in digits or _GROUPS.fullmatch(digits.replace(mark, ",")) is not None


def _on_scale(value: float, denominator: float, wanted: NumberFormat) -> float | None:
    """Return the number that "value/denominator" means on the probe's scale; `None` if it cannot be converted."""
    if not 0 <= value <= denominator or not denominator:
        return None
    if denominator == wanted.max:
        return value
    if wanted.min != 0 or _unit(wanted) not in _SCORES or wanted.max > 1000:
        return None
    return value / denominator * wanted.max


@lru_cache
def _unit_and_period(unit: str) -> tuple[str, str]:
    """Return the singular unit and its period: "dollar" and "month" for "dollars per month", "year" without one."""
    written = re.fullmatch(r"(.*?)\s*(?:/|\bper\b|\ban?\b)\s*(\w+)", unit)
    period = _PERIODS.get(written[2].casefold()) if written else None
    base = written[1] if written and period else unit
    singular = _singular(base)
    return _SAME_UNIT.get(singular, singular), period or "year"


def _unit(wanted: NumberFormat) -> str:
    return _unit_and_period(wanted.unit)[0]


def _period(wanted: NumberFormat) -> str:
    return _unit_and_period(wanted.unit)[1]


def _currency_codes(wanted: NumberFormat) -> frozenset[str]:
    return _CURRENCIES.get(_unit(wanted), frozenset())


def _singular(word: str) -> str:
    folded = " ".join(word.casefold().split()).strip(".")
    return folded[:-1] if folded.endswith("s") and len(folded) > 2 and not folded.endswith("ss") else folded


def _is_own_word(word: str, wanted: NumberFormat) -> bool:
    singular = _singular(word)
    if not singular:
        return False
    if codes := _currency_codes(wanted):
        return bool(_CURRENCIES.get(singular, frozenset()) & codes)
    return _SAME_UNIT.get(singular, singular) == _unit(wanted)


def _is_function_word(match: re.Match[str]) -> bool:
    word = match[1]
    if match[0].startswith("-") or match[0][0] == word[0]:
        return False  # "39-year-old", "85km"
    return bool(ENGLISH.decisions.after.fullmatch(word.casefold()) or _MORE_AFTER.fullmatch(word.casefold()))
