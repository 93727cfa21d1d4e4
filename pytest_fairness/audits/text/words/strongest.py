"""Words with the largest weights: content words and function words, for each group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_fairness.languages.language import Language
from pytest_fairness.records import Json
from pytest_fairness.stats.arrays import Floats, Ints

SHOWN_WORDS = 10
"""Number of words of each group that the details `top_words` and `function_words` show."""
ROUNDING = 1e-12
"""Largest weight that counts as 0, because of floating-point errors."""


def strongest_words(words: Sequence[str], weights: Floats, language: Language) -> dict[str, Json]:
    """Return the details `top_words`, `function_words` and `function_word_share`.

    `top_words` and `function_words` hold the content words and the function words (such as "the") with the largest
    weights for each group, the strongest first. `function_word_share` is the share of function words in the sum of all
    absolute weights.

    Args:
        words: the vocabulary.
        weights: (words,) weights, above 0 for words of the marked group, below 0 for words of the unmarked group.
        language: language of the words.
    """
    function = np.array([language.is_function_word(word) for word in words], dtype=np.bool_)
    strength = np.abs(weights)
    return {
        "top_words": _strongest(words, np.where(function, 0.0, weights)),
        "function_words": _strongest(words, np.where(function, weights, 0.0)),
        "function_word_share": float(strength[function].sum() / strength.sum()) if strength.any() else 0.0,
    }


def _strongest(words: Sequence[str], weights: Floats) -> dict[str, list[dict[str, Json]]]:
    """Return the words with the largest weights for each group; see `strongest_words`."""
    return {
        side: [
            {"word": words[index], "weight": float(strength[index])}
            for index in order_by_strength(words, strength)[:SHOWN_WORDS]
            if strength[index] > ROUNDING
        ]
        for side, strength in (("marked", weights), ("unmarked", -weights))
    }


def order_by_strength(words: Sequence[str], strength: Floats) -> Ints:
    """Return the indices of the words by decreasing strength, and in alphabetical order if strengths are equal."""
    return np.lexsort((np.asarray(words), -np.round(strength, 12))).astype(np.int64)
