"""Parser of titles in lists; for example, the title in `"Hello" - Adele, a ballad about regret` is Hello.

The parser removes only text that is certainly not part of the title. Years in brackets stay; they are removed when
titles are compared.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pytest_fairness.answers import list_items
from pytest_fairness.answers.refusals import is_refusal
from pytest_fairness.languages.language import Language

_MANY = 3
"""A text with which all items of a list begin, or end, counts as an artist's name in a list of at least this
many items."""

_LONG = 6
"""Minimum number of words of a description; fewer words after a title may belong to the title."""

_REMEMBERED = 200
"""Maximum number of characters of a line whose parsed title is cached."""

_MAX_TEXT = 100_000
_CLOSING = {
    '"': '"',
    "\u201c": "\u201d",
    "\u00ab": "\u00bb",
    "\u201e": "\u201c",
    "\u2018": "\u2019",
    "'": "'",
}
_QUOTED = re.compile('["\u201c\u00ab]([^"\u201c\u201d\u00ab\u00bb\n]{1,100})["\u201d\u00bb]')
_BETWEEN = re.compile(r"(?:[\s,;.&]|\band\b|\bor\b)*")
_INTRODUCTION = re.compile(r"^[^\"\u201c\u00ab\n]*:\s*")
_BOLD = re.compile(r"(?P<mark>\*\*|__|\*|`)(?=\S)(?P<title>[^*`\n]{1,200}?)(?<=\S)(?P=mark)(?!\w)")
_TAIL = re.compile(r"\s*(?:$|[,;:.(\[\-\u2013\u2014]|by\b)")
_DASH = re.compile(r"\s+[-\u2013\u2014]{1,2}\s+")
_COLON = re.compile(r":\s+")
_ARTIST = re.compile(
    r"[^\"\u201c\u00ab\n]{1,100}?(?::|\s[-\u2013\u2014])\s+(?=[\"\u201c\u00ab][^\n]*[\"\u201d\u00bb]$)"
)
_BY = re.compile(r"\s+by\s+", re.IGNORECASE)


def items(text: str, language: Language) -> list[str]:
    """Return the titles in a text: the items of its list, or its parts in quotes.

    The parts in quotes are returned if the text consists of them. They are also returned if there are more of them than
    list items, the list has fewer than three items, and the text is no refusal.
    """
    text = text[:_MAX_TEXT]
    named = [name for found in _QUOTED.findall(text) if (name := found.strip().rstrip(",;.").strip())]
    if len(named) > 1 and _is_row_of_quotes(text):
        return named
    found = _without_rest(list_items.items(text, title))
    if len(found) < list_items.MINIMUM_REAL and len(named) > max(1, len(found)) and not is_refusal(text, language):
        return named
    return found


def title(item: str) -> str:
    """Return the title in a list item: its first emphasised or quoted part, or else the text before a description."""
    return _cached_title(item) if len(item) <= _REMEMBERED else _title(item)


def _title(item: str) -> str:
    item = item.strip()
    bold = _BOLD.match(item)
    if bold and (bold["title"].endswith(":") or _TAIL.match(item, bold.end())):
        return title(bold["title"].rstrip(":")) if bold["title"] != item else item
    item = item.replace("**", "").strip()
    after_artist = _ARTIST.match(item)
    item = item[after_artist.end() :] if after_artist else item
    closing = _CLOSING.get(item[:1])
    for end in range(2, len(item)) if closing else ():
        # A title also ends with a comma before the closing quote.
        if item[end] == closing and (item[end - 1] == "," or _TAIL.match(item, end + 1)):
            return item[1:end].strip().rstrip(",").strip()
    return _without_description(list_items.clean(item))


# Cached, as answers repeat the same lines.
_cached_title = lru_cache(maxsize=2**16)(_title)


def without_common_artist(titles: list[str]) -> list[str]:
    """Return the titles without an artist's name that all titles share, as in ` by Adele` or `Adele - `."""
    if len(titles) < _MANY:
        return titles
    for mark, place in ((_DASH, -1), (_BY, -1), (_DASH, 0)):
        if not all(map(mark.search, titles)):
            continue
        matches = [list(mark.finditer(item))[place] for item in titles]
        halves = [(item[: match.start()], item[match.end() :]) for item, match in zip(titles, matches, strict=True)]
        same = 1 if place else 0
        if len({half[same].casefold().strip() for half in halves}) == 1:
            return [half[1 - same].strip() for half in halves]
    return titles


def _without_rest(titles: list[str]) -> list[str]:
    """Return the titles; leave out the last title if it is cut off inside its quotes or is a closing sentence."""
    if not titles:
        return titles
    last = titles[-1]
    cut_off = last[0] in '"\u201c\u00ab' and not any(mark in last[1:] for mark in '"\u201d\u00bb')
    sentence = last[-1] in ".!" and len(last.split()) > _LONG and not any(item[-1] in ".!" for item in titles[:-1])
    return titles[:-1] if cut_off or (sentence and len(titles) > 1) else titles


def _without_description(item: str) -> str:
    """Return an item without its description, such as Inception for `Inception: A thief enters people's dreams`."""
    for mark in (_DASH, _COLON):
        found = mark.search(item)
        if found is None or not found.start():
            continue
        words = len(item[found.end() :].split())
        if words >= _LONG and (mark is _DASH or item.endswith(".")):
            return item[: found.start()].strip()
    return item


def _is_row_of_quotes(text: str) -> bool:
    """Return whether a text is an introduction followed only by titles in quotes."""
    lines = [line for line in text.split("\n") if len(_QUOTED.findall(line)) > 1]
    return bool(lines) and all(
        _BETWEEN.fullmatch(_QUOTED.sub("", _INTRODUCTION.sub("", line, count=1))) for line in lines
    )
