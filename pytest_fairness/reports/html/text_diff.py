"""Highlighting of words in texts: words that contribute to an item's value, or words that differ between two texts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher

from pytest_fairness.audits.findings import strongest
from pytest_fairness.records import Json
from pytest_fairness.reports.charts.base import as_float
from pytest_fairness.reports.items.report_items import Item, group_names, mappings_in
from pytest_fairness.reports.items.top_contributors import sided_words

_PIECES = re.compile(r"\s+|\w[\w'’-]*|.", re.DOTALL)
MIN_LIST_LINES, MAX_LIST_LINE = 2, 60
"""A text counts as a list if it has at least `MIN_LIST_LINES` line ends and no line over `MAX_LIST_LINE` characters.
Two lists are compared line by line, other texts word by word."""
MAX_COMPARED = 1500
"""Maximum number of compared pieces of a text; the rest is not highlighted."""


@dataclass(frozen=True)
class Piece:
    """Piece of a text; `highlighted` is whether the report highlights the piece."""

    text: str
    highlighted: bool


def highlight(text: str, words: Set[str]) -> list[Piece]:
    """Return the text in pieces, in which `words` (case-folded) are highlighted."""
    pieces = _PIECES.findall(text) if words else [text]
    return _merged([Piece(piece, piece.casefold() in words) for piece in pieces if piece])


def highlight_differences(text: str, other: str) -> list[Piece]:
    """Return the text in pieces, in which its differences from the other text are highlighted."""
    texts = (text, other)
    are_lists = all(
        side.count("\n") >= MIN_LIST_LINES and max(map(len, side.split("\n"))) <= MAX_LIST_LINE for side in texts
    )
    parts, other_parts = [side.splitlines(keepends=True) if are_lists else _PIECES.findall(side) for side in texts]
    left, right = ([part.casefold().strip() or part for part in side[:MAX_COMPARED]] for side in (parts, other_parts))
    blocks = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
    equal = {place for block in blocks for place in range(block.a, block.a + block.size)}
    return _merged(
        [
            Piece(part, place < MAX_COMPARED and place not in equal and any(map(str.isalnum, part)))
            for place, part in enumerate(parts)
        ]
    )


def _merged(pieces: list[Piece]) -> list[Piece]:
    merged: list[Piece] = []
    for piece in pieces:
        if merged and merged[-1].highlighted == piece.highlighted:
            merged[-1] = Piece(merged[-1].text + piece.text, piece.highlighted)
        else:
            merged.append(piece)
    return merged


def contributing_words(item: Item) -> dict[str, frozenset[str]]:
    """Return the case-folded words that contribute most to an item's value, by the group that uses them more.

    Words that belong to no single group are under an empty name. If the groups' use of some words differs more than in
    the baseline, only these words are returned.
    """
    details: Mapping[str, Json] = item["details"]
    # An example lists the markers that it contains.
    markers = [
        {"word": word}
        for example in mappings_in(details.get("examples"))
        for side in ("stereotype", "anti_stereotype")
        if isinstance(listed := example.get(side), list)
        for word in listed
    ]
    sided = sided_words(details)
    words = (
        sided["grown"]
        or sided["words"]
        or _strongest(sided["contributions"], "bits")
        or _strongest(sided["top_words"], "weight")
        or _strongest(sided["terms"], "gap")
        or markers
    )
    groups = dict(zip(("marked", "unmarked"), group_names(item), strict=True))
    by_group: defaultdict[str, set[str]] = defaultdict(set)
    for word in words:
        by_group[groups.get(str(word.get("side")), "")].add(str(word.get("word")).casefold())
    return {group: frozenset(own) for group, own in by_group.items()}


def _strongest(words: Sequence[Mapping[str, Json]], weight: str) -> list[Mapping[str, Json]]:
    strong = strongest({str(word.get("word")): as_float(word.get(weight)) or 0.0 for word in words})
    return [word for word in words if str(word.get("word")) in strong]
