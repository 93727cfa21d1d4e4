"""Parser of lists whose items are numbered, bulleted, headings, rows of a table, one per line, or separated by commas.

Marks of Markdown that belong to no title (links, footnotes) are removed before the list is read.
"""

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
    r"[ \t]*(?:\#{1,6}[ \t]+)?(?:[*_]{1,2})?(?:\(?(?P<number>\d{1,4})(?:[.)]|(?<!\d{4}):)|#\d{1,4}[.):]?)"
    r"(?:[*_]{1,2})?(?:[ \t]+|(?=[^\W\d]))(?P<item>\S.*)"
)
_BULLETED = re.compile(r"(?P<indent>[ \t]*)(?:[-*+\u2022\u2023\u25aa\u25cf\u2013\u2014])[ \t]+(?P<item>\S.*)")
_HEADING = re.compile(r"(?P<level>#{1,6})[ \t]+(?P<item>\S.*?)[ \t]*#*$")
_PROPERTY = re.compile(r"\**[^\W\d][\w ]{0,20}\**:")
"""Bullet under a heading that says something of the item, such as `Director: Michael Mann`."""
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)*\|?[ \t]*")
_TITLE_COLUMN = re.compile(
    r"(?:the |recommended )?(?:titles?|names?|items?|products?|songs?|tracks?|movies?|films?|books?|games?|titel|filme?"
    r"|titre|t[i\u00ed]tulo|titolo|pel[i\u00ed]culas?|filmes?|libros?|livros?|livres?|libri|artikel|produkte?|produits?"
    r"|prodotto|produto|nom|nombre|nome|canci[o\u00f3]n|chanson|canzone|can[\u00e7c][a\u00e3]o)",
    re.IGNORECASE,
)
_NO_TITLE = re.compile(r"\W*(?:\d+|[ivx]+)?\W*|(?:19|20)\d\d", re.IGNORECASE)
"""Cell with a rank or a year."""
_LINK = re.compile(r"(?<!!)\[([^\]\[\n]{1,200})\]\((?:[^()\n]|\([^()\n]{0,200}\)){0,500}\)")
_FOOTNOTE = re.compile(r"[ \t]*\[\^?\d{1,3}\](?!\()")
_FOOTNOTE_LINE = re.compile(r"^[ \t]*\[\^?\d{1,3}\][: \t].*$", re.MULTILINE)
_KEYCAP = re.compile("(\\d)\ufe0f?\u20e3[ \\t]*")
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
    if "[" in text:
        text = _FOOTNOTE.sub("", _FOOTNOTE_LINE.sub("", _LINK.sub(r"\1", text)))
    if "\u20e3" in text:
        text = _KEYCAP.sub(r"\1. ", text)
    lines = [line for line in text.split("\n", _MAX_LINES)[:_MAX_LINES] if line.strip()]
    if "|" in text and (rows := _table_items(lines, cleaned)):
        return rows
    if "#" in text and (headings := _headings(lines, cleaned)):
        return headings
    found = numbered_or_bulleted_items(lines, cleaned)
    return found if len(found) > 1 else _inline(lines, cleaned) or found or _plain_items(lines, cleaned)


def _table_items(lines: list[str], cleaned: Clean) -> list[str]:
    """Return the titles in a Markdown table; an empty list without a table.

    The column of the titles has a header such as `Title`, or else is the first column with other cells than ranks and
    years. A table has a rule under its header, or all its lines begin and end with `|`.
    """
    rule = next((place for place, line in enumerate(lines) if place and "|" in line and _RULE.fullmatch(line)), None)
    if rule is None:
        header, rows = (
            [],
            [_cells(line) for line in lines if line.strip()[0] == line.strip()[-1] == "|" != line.strip()],
        )
        if len(rows) < 2:
            return []
    else:
        header, rows = _cells(lines[rule - 1]), []
        for line in lines[rule + 1 :]:
            if "|" not in line:
                break
            rows.append(_cells(line))
    columns = range(max(map(len, rows), default=0))
    named = [place for place in columns if place < len(header) and _TITLE_COLUMN.fullmatch(clean(header[place]))]
    others = [
        place for place in columns if any(not _NO_TITLE.fullmatch(row[place]) for row in rows if place < len(row))
    ]
    column = next(iter([*named, *others]), 0)
    return [item for row in rows if column < len(row) and (item := cleaned(row[column]))]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _headings(lines: list[str], cleaned: Clean) -> list[str]:
    """Return the headings without numbers that are the list: the deepest level with at least two headings.

    Bullets under the headings are the list instead, unless they only say something of each heading.
    """
    found = [match for line in lines if (match := _HEADING.match(line))]
    level = max((match["level"] for match in found), key=len, default="")
    items_ = [match["item"] for match in found if match["level"] == level]
    listed = [line for line in lines if _NUMBERED.match(line)]
    bullets = [match["item"] for line in lines if (match := _BULLETED.match(line))]
    if len(items_) < 2 or listed or not all(map(_PROPERTY.match, bullets)):
        return []
    return [item for each in items_ if (item := cleaned(each))]


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
