"""Lists in answers, the titles of their items, and refusals."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from itertools import takewhile

from pytest_fairness.languages import BUILT_IN, Language, RefusalPatterns
from pytest_fairness.languages import language as built_in

# Parser of lists whose items are numbered, bulleted, headings, rows of a table, one per line, or separated by
# commas.
#
# Marks of Markdown that belong to no title (links, footnotes) are removed before the list is read.

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
_LIST_INTRODUCTION = re.compile(r"^[^\n]{0,300}?:\s*(?=\S)")


def list_items(text: str, cleaned: Clean | None = None) -> list[str]:
    """Return the items of the list in a text; none if the text is prose. By default, `clean` cleans them."""
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
    """Return the items of the numbered lines or, without any, of the bulleted lines with the smallest indentation."""
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
    """Return lines without numbers or bullets, or the items of one comma-separated line; none if the text is prose."""
    if len(lines) > 1 and lines[0].rstrip().endswith(":"):
        lines = lines[1:]
    if len(lines) > 1:
        found = [cleaned(line) for line in lines]
        prose = [item for item in found if len(item) > _MAX_ITEM or _is_prose(item)]
        return [] if prose else [item for item in found if item]
    if not lines:
        return []
    line = _LIST_INTRODUCTION.sub("", lines[0], count=1).strip()
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
    """Remove marks of emphasis, surrounding quotes and a final comma or semicolon."""
    item = item.replace("**", "").replace("__", "").strip().rstrip(",;").strip()
    if len(item) > 1 and (item[0], item[-1]) in {('"', '"'), ("'", "'"), ("\u201c", "\u201d"), ("`", "`"), ("*", "*")}:
        item = item[1:-1].strip()
    return item


# Parser of titles in lists; for example, the title in `"Hello" - Adele, a ballad about regret` is Hello.
#
# The parser removes only text that is certainly not part of the title. Years in brackets stay; they are removed when
# titles are compared.

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
_TITLE_INTRODUCTION = re.compile(r"^[^\"\u201c\u00ab\n]*:\s*")
_BOLD = re.compile(r"(?P<mark>\*\*|__|\*|`)(?=\S)(?P<title>[^*`\n]{1,200}?)(?<=\S)(?P=mark)(?!\w)")
_TAIL = re.compile(r"\s*(?:$|[,;:.(\[\-\u2013\u2014]|by\b)")
_DASH = re.compile(r"\s+[-\u2013\u2014]{1,2}\s+")
_COLON = re.compile(r":\s+")
_ARTIST = re.compile(
    r"[^\"\u201c\u00ab\n]{1,100}?(?::|\s[-\u2013\u2014])\s+(?=[\"\u201c\u00ab][^\n]*[\"\u201d\u00bb]$)"
)
_BY = re.compile(r"\s+by\s+", re.IGNORECASE)


def titles(text: str, language: Language) -> list[str]:
    """Return the titles in a text: the items of its list, or its parts in quotes.

    The parts in quotes are returned if the text consists of them. They are also returned if there are more of them than
    list items, the list has fewer than three items, and the text is no refusal.
    """
    text = text[:_MAX_TEXT]
    named = [name for found in _QUOTED.findall(text) if (name := found.strip().rstrip(",;.").strip())]
    if len(named) > 1 and _is_row_of_quotes(text):
        return named
    found = _without_rest(list_items(text, title))
    if len(found) < MINIMUM_REAL and len(named) > max(1, len(found)) and not is_refusal(text, language):
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
    return _without_description(clean(item))


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


def _is_row_of_quotes(text: str) -> bool:
    lines = [line for line in text.split("\n") if len(_QUOTED.findall(line)) > 1]
    return bool(lines) and all(
        _BETWEEN.fullmatch(_QUOTED.sub("", _TITLE_INTRODUCTION.sub("", line, count=1))) for line in lines
    )


# Recognition of refusals by patterns, which are searched in the first sentences of an answer.
#
# There are no patterns for some languages. A refusal in such a language is recognised only if the target reports it
# by the finish reason `refusal` or `content_filter`; otherwise it counts as an answer.

_HEAD = 800
"""Number of characters at the start of an answer that are searched for a refusal."""

_SENTENCES = 3
"""Maximum number of sentences that are searched. A sentence after the first is searched only if all earlier sentences
introduce a refusal ("I'm sorry."), or if it draws a conclusion ("Therefore, …")."""

_LAST = 2
"""Number of sentences at the end of a text in which a task may be declined."""

_LATEST = 8
"""Largest number of sentences before a conclusion that declines."""

_REDIRECTION = 200
"""Largest number of characters of a text that refuses by only naming somebody else to ask."""

_FEWEST_VERSES = 3
_VERSE = 60
"""Fewest lines of a verse, and largest number of characters of a line."""

_AMOUNT = re.compile(
    r"[\u20ac$\u00a3] ?\d|\d ?(?:%|[\u20ac$\u00a3]|euros?\b|dollars?\b|pounds?\b|reais\b|mil\b"
    r"|(?:million|prozent|percent)\w*)"
)
"""Share or sum of money; in a sentence after the refusal, it is an answer."""

_REMAINDER = 60
"""A text that begins with a refusal counts as an answer if at least this many characters follow "here are …"."""

_KNOWN = 50
"""Fewest characters that say what is known after a sentence that says what is not."""

_ADVICE = re.compile(
    r"\b(?:please|consult\w*|contac?t\w*|sorry|bitte|wenden|veuillez|adress\w+|por favor|acuda|dir[ií]ja\w*"
    r"|per favore|rivol\w+|procure|cannot|can't|nicht|ne \w+ pas)\b|\?"
)
"""Words by which a text after a refusal sends to somebody else, asks, or goes on to refuse."""

_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u00b4`\uff07]")
_WITHOUT_APOSTROPHE = re.compile(
    r"\b(?:(can|don|won|isn|doesn|couldn|wouldn|shouldn|haven|shan)(?=t\b)"
    r"|(i)(?=m (?:sorry|unable|not|afraid|going)\b))"
)
_UNMARKED = ("cant", "dont", "wont", "snt", "ldnt", "havent", "shant", " im ")
_MACHINE = re.compile(
    r"\b(?:an ai|ki|ia|artificial|k\u00fcnstlich\w*|artificielle|language model|sprachmodell|assistant"
    r"|assistente|chatbot|bot|mod(?:elo|\u00e8le|ello) (?:de (?:lenguaje|linguagem|langage)|linguistico))\b"
)
"""Words by which a model speaks of itself, so that the sentence is about no person's life."""
_FEWEST_WORDS = 3
"""Number of a language's function words at the beginning of a text that show that the text is in this language."""
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+|\n|$)")
_TITLES = ("mr. ", "mrs. ", "ms. ", "dr. ", "prof. ", "sr. ", "sra. ", "hr. ", "fr. ", "sig. ", "dott. ")
_TITLE_OF_PERSON = re.compile(r"\b(mrs?|ms|dr|prof|sra?|hr|fr|sig|dott)\.(?= )")
_SPEAKER_NAME = re.compile(r"([^\W\d_][\w ]{0,20}): ")
_BUT = re.compile(r"[,;] (?:but|aber|sondern|pero|mais|ma|mas)\b|;")
_CLAUSE = re.compile(r"[^,;:\u2014]*")
_QUOTATION = re.compile(
    r"\"[^\"]{2,400}\"|\u201c[^\u201d]{2,400}\u201d|\u201e[^\u201c]{2,400}\u201c|\u00ab[^\u00bb]{2,400}\u00bb|\u00bb[^\u00ab]{2,400}\u00ab"
    r"|(?:^|\n)\s*\u2014\s*\w[^\u2014\n]{2,400}\u2014"
)
"""A quotation, or direct speech between two dashes, after which the narrator's words begin (— I can't — she said)."""
_QUOTES = re.compile('["\u201c\u201e\u00ab\u00bb\u2014]')
_BLANKS = re.compile("[ \t\u00a0]{2,}|[\t\u00a0]")
_MARKS = " \n\t*_#>[]\"'\u201c\u201d\u201e\u00ab\u00bb\u00a1\u00bf-\u2014"
"""Quotation marks, and Markdown marks of emphasis and headings, around a sentence."""


def is_refusal(text: str, language: Language, *, number_asked: bool = False) -> bool:
    """Return whether a text is a refusal.

    The text counts as an answer if the refusal is followed by a list of at least three items, by "here are …" and
    further text, or by an amount, unless a number is asked for.
    """
    short = text[: 2 * _HEAD]
    if "&" in short:
        short = html.unescape(short)
    # A pattern that finds nothing takes most of the time: texts of ASCII characters and single blanks need none.
    short = short.replace("`", "'") if short.isascii() else unicodedata.normalize("NFC", _APOSTROPHES.sub("'", short))
    if "  " in short or "\t" in short or "\u00a0" in short:
        short = _BLANKS.sub(" ", short)
    head = _without_quotations(short[:_HEAD].casefold())
    if head.startswith("im ") or any(word in head for word in _UNMARKED):
        head = _WITHOUT_APOSTROPHE.sub(r"\1\2'", head)
    if ". " in head and any(title in head for title in _TITLES):
        head = _TITLE_OF_PERSON.sub(r"\1", head)
    other = _other_language(head, language)
    return any(
        (refusal := _refusing_sentence(head, patterns)) is not None
        and not _is_verse(text)
        and not _tells_what_is_known(refusal, head, patterns)
        and not _has_answer_after_refusal(text, "" if number_asked else _after(refusal, head), patterns)
        for patterns in (*language.refusals, *([other] if other is not None else []))
    )


def _other_language(head: str, declared: Language) -> RefusalPatterns | None:
    """Return the patterns of the built-in language in which a text is, unless the probe declares it; by its words."""
    found = {*head[:150].split()}
    if len(declared.function_words & found) >= _FEWEST_WORDS:
        return None
    code, words = max(_function_words().items(), key=lambda pair: len(pair[1] & found))
    if code in declared.codes or code == "en" or len(words & found) < _FEWEST_WORDS:
        return None
    return built_in(code).refusals[0]


@cache
def _function_words() -> dict[str, frozenset[str]]:
    return {code: built_in(code).function_words for code in BUILT_IN}


def _without_quotations(head: str) -> str:
    """Return a text without direct speech and other quotations, unless the whole text is a single quotation."""
    if '"' not in head and (head.isascii() or not _QUOTES.search(head)):
        return head
    rest, quotations = _QUOTATION.subn(" ", head)
    return rest if quotations > 1 or any(map(str.isalnum, rest)) else head


def _refusing_sentence(head: str, patterns: RefusalPatterns) -> str | None:
    introduced, offers = True, head.rstrip(_MARKS).endswith("?")
    several = ". " in head or "! " in head or "? " in head or "\n" in head
    for number, sentence in enumerate(_sentences(head)):
        if not introduced and not patterns.resumption.match(sentence):
            continue
        if patterns.condition.match(sentence):
            return None
        if patterns.opening.match(sentence) or any(
            _confirms_refusal(sentence, core, patterns, offers=offers) for core in patterns.core.finditer(sentence)
        ):
            own_life = patterns.own_life.search(sentence) and not _MACHINE.search(sentence)
            return None if own_life else sentence
        if not several:
            break
        introduced = introduced and number + 1 < _SENTENCES and patterns.lead.search(sentence) is not None
        if not introduced and (number >= _LATEST or not patterns.resumption.search(head)):
            break
    ends = several and len(head) < _HEAD and patterns.late.search(head, max(0, len(head) - _REDIRECTION)) is not None
    for sentence in list(_sentences(head))[1:][-_LAST:] if ends else ():
        declined = (_confirms_refusal(sentence, late, patterns) for late in patterns.late.finditer(sentence))
        if any(declined) and not patterns.condition.match(sentence) and not patterns.own_life.search(sentence):
            return sentence
    refers = len(head) <= _REDIRECTION and patterns.redirection.match(head.strip(_MARKS)) is not None
    return head if refers else None


def _after(refusal: str, head: str) -> str:
    but = _BUT.search(refusal)
    return ("" if but is None else refusal[but.end() :]) + head.partition(refusal)[2]


def _tells_what_is_known(refusal: str, head: str, patterns: RefusalPatterns) -> bool:
    rest = head.partition(refusal)[2]
    return len(rest) >= _KNOWN and patterns.unsure.search(refusal) is not None and not _ADVICE.search(rest)


def _confirms_refusal(sentence: str, core: re.Match[str], patterns: RefusalPatterns, *, offers: bool = False) -> bool:
    """Return whether the words around a match of `patterns.core` show that the sentence is a refusal.

    In a text that ends in a question, help that the sentence announces is an offer ("but I can explain …. Shall I?").
    """
    if offers:
        return True
    if patterns.concession.search(sentence[: core.start()]) or patterns.continuation.search(sentence, core.end()):
        return False
    clause = _CLAUSE.match(sentence, core.end())
    return clause is None or not patterns.praise.search(clause[0])


def _sentences(head: str) -> Iterator[str]:
    for match in _SENTENCE.finditer(head):
        sentence = match[0].strip(_MARKS)
        if any(character.isalpha() for character in sentence):
            yield sentence


def _is_verse(text: str) -> bool:
    """Return whether a text is a dialogue, or consists of short lines that end in the middle of a sentence."""
    lines = [line.strip() for line in text[:_HEAD].split("\n") if line.strip() and not _BULLETED.match(line)]
    speakers = [speaker[1] for line in lines if (speaker := _SPEAKER_NAME.match(line))]
    if len(speakers) >= _FEWEST_VERSES and len(set(speakers)) < len(speakers):
        return True
    unfinished = sum(not line.endswith((".", "!", "?", ":")) for line in lines[:-1])
    return len(lines) >= _FEWEST_VERSES and max(map(len, lines)) <= _VERSE and 2 * unfinished >= len(lines)


def _has_answer_after_refusal(text: str, rest: str, patterns: RefusalPatterns) -> bool:
    """Return whether an answer follows the refusal: a list, a text after "here are …", or an amount."""
    if _AMOUNT.search(rest):
        return True
    lines = text[:20_000].split("\n")
    if len(numbered_or_bulleted_items(lines)) >= MINIMUM_REAL:
        before = [*takewhile(lambda line: not _NUMBERED.match(line) and not _BULLETED.match(line), lines)]
        introduction = next(filter(str.strip, reversed(before)), "")
        return patterns.offer.search(_APOSTROPHES.sub("'", introduction).casefold()) is None
    here = patterns.answered.search(text[:_HEAD].casefold())
    return here is not None and len(text) - here.end() >= _REMAINDER
