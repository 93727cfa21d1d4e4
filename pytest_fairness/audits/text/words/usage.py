"""Words of two groups' texts: how often each group uses a word, which group uses it more, and the strongest words.

The side of a word (the group that uses it more) always comes from counts, never from the sign of a weight: a word that
occurs together with other words can get a weight of either sign in a classifier.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pytest_fairness.audits.text.tokens import Tokens
from pytest_fairness.languages.language import Language
from pytest_fairness.records import Json
from pytest_fairness.stats.arrays import Bools, Floats, Ints

SIDES = ("marked", "unmarked")
"""Names of the two groups in details."""
SHOWN_WORDS = 10
"""Number of words of each group that the details `top_words` and `function_words` show."""
ROUNDING = 1e-12
"""Largest weight that counts as 0, because of floating-point errors."""
DECIMALS = 12
"""Numbers are rounded to this many decimals before they are compared, because of floating-point errors."""


@dataclass(frozen=True)
class Usage:
    """Uses of words in the texts of two groups.

    Attributes:
        words: the words.
        uses: (2, words) number of occurrences in the marked and in the unmarked group's texts.
        texts: (2, words) number of the group's texts that contain the word.
        rates: (2, words) occurrences of the word as a share of all words of the group's texts.
        sizes: (2,) number of texts of each group.
    """

    words: Sequence[str]
    uses: Ints
    texts: Ints
    rates: Floats
    sizes: Ints

    @classmethod
    def of(cls, texts: Tokens, marked: Bools, words: Sequence[str]) -> Usage:
        """Return the uses of these words.

        Args:
            texts: the texts.
            marked: (texts,) whether the text belongs to the marked group.
            words: words of the texts.
        """
        numbers = dict(zip(texts.vocabulary, range(len(texts.vocabulary)), strict=True))
        columns = np.array([numbers[word] for word in words], dtype=np.int64)
        uses, holding = texts.uses(marked)
        totals = np.array([texts.lengths[side].sum() for side in (marked, ~marked)])
        rates = uses[:, columns] / np.maximum(totals, 1)[:, None]
        return cls(words, uses[:, columns], holding[:, columns], rates, np.array([marked.sum(), (~marked).sum()]))

    @cached_property
    def sides(self) -> Ints:
        """Return the side of each word: 1 if the marked group uses it more, −1 if the unmarked group does, else 0.

        A group uses a word more if the word has the higher rate in its texts or, if rates are equal, if a larger share
        of its texts contains the word.
        """
        by_rate, by_share = (
            np.sign(np.round(numbers[0] - numbers[1], DECIMALS)) for numbers in (self.rates, self.shares)
        )
        return np.asarray(np.where(by_rate == 0, by_share, by_rate), dtype=np.int64)

    @property
    def shares(self) -> Floats:
        """Return the share of each group's texts that contain the word; shape (2, words)."""
        return np.asarray(self.texts / self.sizes[:, None])

    def signed(self, strengths: Floats) -> Floats:
        """Return the sizes of the words' numbers: above 0 for the marked group's words, below 0 for the unmarked's."""
        return np.asarray(self.sides * np.abs(strengths))

    def rows(
        self, statistic: str, strengths: Floats, names: tuple[str, str], significant: Collection[str] | None = None
    ) -> list[dict[str, Json]]:
        """Return a row of the exported word table for each word, the largest number first.

        Args:
            statistic: name of the statistic that `strengths` are.
            strengths: (words,) numbers; their signs do not matter, see `signed`.
            names: names of the marked and of the unmarked group.
            significant: the significant words; `None` if words are not tested individually.
        """
        values = self.signed(strengths)
        return [
            {
                "word": self.words[index],
                "side": {1: names[0], -1: names[1]}.get(int(self.sides[index])),
                "statistic": statistic,
                "value": float(values[index]) + 0.0,  # no -0.0
                "significant": None if significant is None else self.words[index] in significant,
                **dict(zip(SIDES, names, strict=True)),
                **{
                    f"{name}_{side}": numbers[group, index].item()
                    for name, numbers in (("uses", self.uses), ("texts", self.texts), ("share", self.shares))
                    for group, side in enumerate(SIDES)
                },
            }
            for index in order_by_strength(self.words, np.abs(values))
        ]


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
        for side, strength in zip(SIDES, (weights, -weights), strict=True)
    }


def order_by_strength(words: Sequence[str], strength: Floats) -> Ints:
    """Return the indices of the words by decreasing strength, and in alphabetical order if strengths are equal."""
    return np.lexsort((np.asarray(words), -np.round(strength, DECIMALS))).astype(np.int64)
