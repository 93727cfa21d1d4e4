"""Comparison of two texts: words that differ, and words that contribute to an item's value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from difflib import SequenceMatcher

from pytest_fairness.records import Json
from pytest_fairness.reports.report_items import mappings_in

_PIECES = re.compile(r"\s+|\w[\w'’-]*|.", re.DOTALL)
MIN_LIST_LINES, MAX_LIST_LINE = 2, 60
"""A text is a list if it has so many line ends and no longer line."""
MAX_COMPARED = 1500
"""Maximum number of compared pieces of a text; the rest is shown without marks."""


@dataclass(frozen=True)
class Piece:
    """A piece of a text.

    Attributes:
        text: the unchanged text.
        differs: whether the other text has different words at this place.
        contributes: whether the piece is a word that contributes to the item's value.
    """

    text: str
    differs: bool
    contributes: bool


def side_by_side(first: str, second: str, contributors: Set[str] = frozenset()) -> tuple[list[Piece], list[Piece]]:
    """Return both texts in pieces; the joined pieces are the original text.

    Args:
        first, second: the texts.
        contributors: case-folded words to be marked.
    """
    pieces = _pieces(first, second)
    left, right = ([piece.casefold().strip() or piece for piece in side[:MAX_COMPARED]] for side in pieces)
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    same: tuple[set[int], set[int]] = (set(), set())
    for block in matcher.get_matching_blocks():
        same[0].update(range(block.a, block.a + block.size))
        same[1].update(range(block.b, block.b + block.size))
    first_pieces, second_pieces = (
        _joined(
            [
                Piece(
                    text,
                    place < MAX_COMPARED and place not in equal and _is_word(text),
                    text.casefold() in contributors,
                )
                for place, text in enumerate(side)
            ]
        )
        for side, equal in zip(pieces, same, strict=True)
    )
    return first_pieces, second_pieces


def _pieces(first: str, second: str) -> list[list[str]]:
    """Return the words of both texts and what separates them; of two lists, their lines."""
    texts = (first, second)
    if all(text.count("\n") >= MIN_LIST_LINES and max(map(len, text.split("\n"))) <= MAX_LIST_LINE for text in texts):
        return [text.splitlines(keepends=True) for text in texts]
    return [_PIECES.findall(text) for text in texts]


def _is_word(text: str) -> bool:
    return any(map(str.isalnum, text))


def _joined(pieces: list[Piece]) -> list[Piece]:
    found: list[Piece] = []
    for piece in pieces:
        if found and (found[-1].differs, found[-1].contributes) == (piece.differs, piece.contributes):
            found[-1] = Piece(found[-1].text + piece.text, piece.differs, piece.contributes)
        else:
            found.append(piece)
    return found


def contributing_words(details: Mapping[str, Json]) -> frozenset[str]:
    """Return the words in an item's details that contribute to its value, case-folded."""
    found = [word for name in ("grown", "contributions") for word in mappings_in(details.get(name))]
    found += [word for word in mappings_in(details.get("words")) if word.get("significant")]
    top = details.get("top_words")
    if isinstance(top, Mapping):
        found += [word for side in top.values() for word in mappings_in(side)]
    # An example lists the markers that it contains.
    held = [
        word
        for example in mappings_in(details.get("examples"))
        for side in ("stereotype", "anti_stereotype")
        if isinstance(words := example.get(side), list)
        for word in words
    ]
    return frozenset(str(word).casefold() for word in [*(each.get("word") for each in found), *held])
