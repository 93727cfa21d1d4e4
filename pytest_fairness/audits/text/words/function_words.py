"""English function words, such as "the" and "of", which say nothing about a topic.

The list is that of scikit-learn, without the few words that name a topic. Words of other languages are never function
words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

TOPICS = frozenset(
    (
        *("amount", "bill", "bottom", "call", "computer", "cry", "describe", "detail", "empty", "fill", "find", "fire"),
        *("found", "front", "full", "give", "interest", "keep", "made", "mill", "mine", "move", "name", "part"),
        *("please", "put", "serious", "show", "side", "sincere", "system", "take", "thick", "thin", "top"),
    )
)
"""Words of scikit-learn's list that count as content words here, because they may be the difference between groups."""
ADDED = frozenset(("did", "does", "doing", "having", "just"))
"""Function words that scikit-learn's list lacks."""
_CONTRACTION = re.compile(r"(?:n't|'\w+)$")


def is_function_word(word: str) -> bool:
    """Return whether a normalised word is an English function word, or a contraction of one, such as "it's"."""
    return not _listed().isdisjoint((word, word.replace("'", ""), _CONTRACTION.sub("", word)))


def content_words(words: Iterable[str]) -> list[str]:
    """Return the words without function words; if all are function words, return all words."""
    found = list(words)
    return [word for word in found if not is_function_word(word)] or found


@cache
def _listed() -> frozenset[str]:
    # Deferred, as scikit-learn takes a second to import and only measuring needs it.
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return (frozenset(ENGLISH_STOP_WORDS) | ADDED) - TOPICS
