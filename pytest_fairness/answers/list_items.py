"""Parser of lists whose items are numbered, bulleted, one per line, or separated by commas."""

from __future__ import annotations

import re
from collections.abc import Callable

Clean = Callable[[str], str]
"""Function that takes the text of an item (a line without its number or bullet) and returns the cleaned item."""

MINIMUM_REAL = 3
"""Minimum number of items for a list to count as an answer although a refusal precedes the list."""

_MAX_LINES = 10_000
_MAX_LINE = 20_000
_MAX_ITEM = 200
_MAX_WORDS = 10
_NUMBERED = re.compile(
    r"[ \t]*(?:[*_]{1,2})?(?:\(?(?P<number>\d{1,4})(?:[.)]|(?<!\d{4}):)|#\d{1,4}[.):]?)"
    r"(?:[*_]{1,2})?(?:[ \t]+|(?=[^\W\d]))(?P<item>\S.*)"
)
_BULLETED = re.compile(r"(?P<indent>[ \t]*)(?:[-*+\u2022\u2023\u25aa\u25cf\u2013\u2014])[ \t]+(?P<item>\S.*)")
_INLINE = re.compile(r"(?:^|(?<=[\s:;,.]))\(?(\d{1,3})[.)][ \t]+")
_SPEAKER = re.compile(
    r"\b(?:I|we|you) (?:am|are|can|could|do|don't|have|hope|need|think|want|would)\b|\bI'(?:d|ll|m|ve)\b"
)
_INTRODUCTION = re.compile(r"^[^\n]{0,300}?:\s*(?=\S)")


def items(text: str, cleaned: Clean | None = None) -> list[str]:
    """Return the items of the list in a text; an empty list if the text is prose.

    Args:
        text: an answer.
        cleaned: function that cleans the text of each item; default: `clean`.
    """
    cleaned = cleaned or clean
    lines = [line for line in text.split("\n", _MAX_LINES)[:_MAX_LINES] if line.strip()]
    found = numbered_or_bulleted_items(lines, cleaned)
    return found if len(found) > 1 else _inline(lines, cleaned) or found or _plain_items(lines, cleaned)


def numbered_or_bulleted_items(lines: list[str], cleaned: Clean | None = None) -> list[str]:
    """Return the items of the numbered lines.

    Without numbered lines, return the items of the bulleted lines with the smallest indentation.
    """
    cleaned = cleaned or clean
    numbered = [match for line in lines if (match := _NUMBERED.match(line))]
    # A single number other than 0 or 1 is a part of a title: `300: Rise of an Empire`.
    if len(numbered) > 1 or (numbered and numbered[0]["number"] in (None, "0", "1")):
        return [item for match in numbered if (item := cleaned(match["item"]))]
    bulleted = [match for line in lines if (match := _BULLETED.match(line))]
    least = min((len(match["indent"].expandtabs()) for match in bulleted), default=0)
    outer = [match["item"] for match in bulleted if len(match["indent"].expandtabs()) == least]
    return [item for line in outer if (item := cleaned(line))]


def _inline(lines: list[str], cleaned: Clean) -> list[str]:
    """Return the items of a numbered list that is written on one line, such as `1. a 2. b 3. c`."""
    for line in lines:
        if len(line) > _MAX_LINE:
            continue
        marks = list(_INLINE.finditer(line))
        if len(marks) > 1 and [int(mark[1]) for mark in marks] == list(range(1, len(marks) + 1)):
            ends = [mark.start() for mark in marks[1:]] + [len(line)]
            return [item for mark, end in zip(marks, ends, strict=True) if (item := cleaned(line[mark.end() : end]))]
    return []


def _plain_items(lines: list[str], cleaned: Clean) -> list[str]:
    """Return the items of lines without numbers or bullets, or of one comma-separated line.

    Return an empty list if the text is prose.
    """
    if len(lines) > 1 and lines[0].rstrip().endswith(":"):
        lines = lines[1:]
    if len(lines) > 1:
        found = [cleaned(line) for line in lines]
        prose = [item for item in found if len(item) > _MAX_ITEM or _is_prose(item)]
        return [] if prose else [item for item in found if item]
    if not lines:
        return []
    line = _INTRODUCTION.sub("", lines[0], count=1).strip()
    line = line.removesuffix(".")
    if _is_prose(line + ".") or _SPEAKER.search(line.replace("\u2019", "'")):
        return []
    parts = [re.sub(r"^(?:and|or)\s+", "", part.strip(), flags=re.IGNORECASE) for part in re.split(r"[,;]", line)]
    short = all(len(part) <= _MAX_ITEM and len(part.split()) <= _MAX_WORDS for part in parts)
    return [item for part in parts if (item := cleaned(part))] if short else []


def _is_prose(text: str) -> bool:
    """Return whether a text is prose: a sentence of more than 20 words, or a sentence with further text after it."""
    ended = re.search(r"[.!?](?:\s|$)", text) is not None
    return ended and (len(text.split()) > _MAX_WORDS * 2 or re.search(r"[.!?]\s+\S", text) is not None)


def clean(item: str) -> str:
    """Return an item without marks of emphasis, surrounding quotes and a final comma or semicolon."""
    item = item.replace("**", "").replace("__", "").strip().rstrip(",;").strip()
    if len(item) > 1 and (item[0], item[-1]) in {('"', '"'), ("'", "'"), ("\u201c", "\u201d"), ("`", "`"), ("*", "*")}:
        item = item[1:-1].strip()
    return item
