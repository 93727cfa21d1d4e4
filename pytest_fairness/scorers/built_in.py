"""Built-in scorers: length, readability and sentiment of a text, without a model and without a download."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from pytest_fairness.errors import ModelError
from pytest_fairness.scorers.functions import FunctionScorer
from pytest_fairness.scorers.scoring import Scorer

_WORD = re.compile(r"\w[\w'’-]*")
_SENTENCE_END = re.compile(
    r"(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bMrs)(?<!\bProf)[.!?…]+[\"'”’)\]*_]*(?=\s|$)|\n\s*(?:\n|(?=[-*•#]|\d+[.)]\s))"
)
"""End of a sentence: a mark before a blank, an empty line, or the line before a list item or a heading."""


def words(text: str) -> int:
    """Return the number of words; "don't" and "non-stick" are one word each."""
    return len(_WORD.findall(text))


def sentences(text: str) -> int:
    """Return the number of sentences, headings and list items that have a word."""
    return sum(bool(_WORD.search(piece)) for piece in _SENTENCE_END.split(text))


def number(text: str) -> float:
    """Return the number that the text consists of, such as a score in a column of an answer file.

    Raises:
        ValueError: the text is not a number.
    """
    return float(text)


def flesch(text: str) -> float:
    """Return the Flesch reading ease of an English text, with syllables from hyphenation (pyphen).

    206.835 − 1.015 · (words / sentences) − 84.6 · (syllables / words); texts with a higher value are easier
    (Flesch 1948).

    Raises:
        ValueError: the text has no words.
    """
    written = _WORD.findall(text)
    if not written:
        raise ValueError("the text has no words")
    syllables = sum(len(_hyphenation().positions(word)) + 1 for word in written)
    return 206.835 - 1.015 * len(written) / sentences(text) - 84.6 * syllables / len(written)


def sentiment(text: str) -> float:
    """Return VADER's compound score of an English text, −1 (negative) to 1 (positive); Hutto and Gilbert 2014."""
    import vader

    return float(vader.polarity_scores(text)["compound"])


@cache
def _hyphenation() -> Any:
    import pyphen

    return pyphen.Pyphen(lang="en_US")


BUILT_IN: dict[str, tuple[Callable[[str], float], tuple[str, str] | None]] = {
    "words": (words, None),
    "sentences": (sentences, None),
    "flesch": (flesch, ("pyphen", "pyphen")),
    "sentiment": (sentiment, ("vader", "nltk-vader-sentiment")),
    "number": (number, None),
}
"""Function of each built-in scorer, by name, with the module and the distribution of the package that the function
needs; `None` if the function needs no package."""
VERSION = 1
"""Version of the functions; it must be raised if a change of code changes scores."""


def open_built_in(name: str) -> Scorer:
    """Return the built-in scorer of this name.

    Raises:
        ModelError: a package is missing.
    """
    function, needed = BUILT_IN[name]
    if needed is None:
        return FunctionScorer(f"{name} {VERSION}", function, cached=False)
    module, distribution = needed
    if find_spec(module) is None:
        raise ModelError(f'the scorer {name} needs the package {distribution}: pip install "pytest-fairness[scorers]"')
    return FunctionScorer(f"{name} {VERSION} {distribution} {version(distribution)}", function, cached=False)
