"""Two texts side by side: which of their words are not in the other, and which drove what was measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from difflib import SequenceMatcher

from pytest_fairness.records import Json
from pytest_fairness.reports.report_items import mappings

_PIECES = re.compile(r"\s+|\w[\w'’-]*|.", re.DOTALL)
LISTED, SHORT = 2, 60
"""Line ends from which on a text of lines no longer than this is a list."""
LONGEST = 1500
"""Pieces of a text that are compared; what follows is shown as it is."""


@dataclass(frozen=True)
class Piece:
    """A stretch of text.

    Attributes:
        text: as it was written.
        differs: whether the other text has something else there.
        drives: whether it is a word that drove the item's value.
    """

    text: str
    differs: bool
    drives: bool


def side_by_side(first: str, second: str, drivers: Set[str] = frozenset()) -> tuple[list[Piece], list[Piece]]:
    """Both texts in pieces; put together again they are what they were.

    Args:
        first, second: the texts.
        drivers: words, case folded, that are marked wherever they stand.
    """
    pieces = _pieces(first, second)
    left, right = ([piece.casefold().strip() or piece for piece in side[:LONGEST]] for side in pieces)
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    same: tuple[set[int], set[int]] = (set(), set())
    for block in matcher.get_matching_blocks():
        same[0].update(range(block.a, block.a + block.size))
        same[1].update(range(block.b, block.b + block.size))
    first_pieces, second_pieces = (
        _joined(
            [
                Piece(text, place < LONGEST and place not in equal and _is_word(text), text.casefold() in drivers)
                for place, text in enumerate(side)
            ]
        )
        for side, equal in zip(pieces, same, strict=True)
    )
    return first_pieces, second_pieces


def _pieces(first: str, second: str) -> list[list[str]]:
    """Words and what is between them; of two lists, their lines."""
    texts = (first, second)
    if all(text.count("\n") >= LISTED and max(map(len, text.split("\n"))) <= SHORT for text in texts):
        return [text.splitlines(keepends=True) for text in texts]
    return [_PIECES.findall(text) for text in texts]


def _is_word(text: str) -> bool:
    return any(map(str.isalnum, text))


def _joined(pieces: list[Piece]) -> list[Piece]:
    found: list[Piece] = []
    for piece in pieces:
        if found and (found[-1].differs, found[-1].drives) == (piece.differs, piece.drives):
            found[-1] = Piece(found[-1].text + piece.text, piece.differs, piece.drives)
        else:
            found.append(piece)
    return found


def driving_words(details: Mapping[str, Json]) -> frozenset[str]:
    """The words that an item's details name as what drove its value, case folded."""
    found = [word for name in ("grown", "contributions") for word in mappings(details.get(name))]
    found += [word for word in mappings(details.get("words")) if word.get("significant")]
    top = details.get("top_words")
    if isinstance(top, Mapping):
        found += [word for side in top.values() for word in mappings(side)]
    # The markers that an example holds are named beside it.
    held = [
        word
        for example in mappings(details.get("examples"))
        for side in ("stereotype", "anti_stereotype")
        if isinstance(words := example.get(side), list)
        for word in words
    ]
    return frozenset(str(word).casefold() for word in [*(each.get("word") for each in found), *held])
