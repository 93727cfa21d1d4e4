"""Detection of texts in another language than those that a probe declares.

Refusals and identity terms in such texts are not recognised.

The language model of `py3langid` (naive Bayes over byte n-grams) is loaded when the first text is classified. A text
counts as another language only if all declared languages are improbable; a short text never counts.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache

from pytest_fairness.languages.names import NAMES

HEAD = 300
"""Number of characters at the beginning of a text that are classified; a refusal is at the beginning."""
FEWEST_WORDS = 3
"""A text with fewer words than this never counts as another language. Capitalised words are not counted, because titles
and names belong to no language; two characters count as a word in scripts without blanks."""
LEAST_PROBABLE = 0.001
"""A text counts as another language if the probability of each declared language is below this."""
SAMPLE = 500
"""Largest number of texts of a group that are classified."""
KEPT = 8 * SAMPLE
"""Largest number of texts whose language is kept in memory, because several audits read the same answers."""

MOST_LETTERS = 0.5
"""A text in an unknown language counts as another language if a larger share of its letters than this is not Latin."""


def foreign_shares(texts: Mapping[str, Iterable[str]], declared: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return, for each group, the share of texts in each undeclared language, the most frequent language first.

    Args:
        texts: texts of each group, in any order. If a group has more than `SAMPLE` texts, a reproducible sample of
            these texts is classified.
        declared: ISO 639 codes of the languages in which the texts should be.
    """
    codes = tuple(declared)
    return {group: _shares(sorted(own, key=_sampling_order)[:SAMPLE], codes) for group, own in texts.items()}


def other_language(text: str, declared: Sequence[str]) -> str | None:
    """Return the name of a text's language; `None` if the text may be in a declared language, or cannot be classified.

    An unknown language in a script other than Latin has the name `another language`.
    """
    return _other_language(text[:HEAD], tuple(declared))


@lru_cache(maxsize=KEPT)
def _other_language(head: str, declared: tuple[str, ...]) -> str | None:
    if _word_count(head) < FEWEST_WORDS:
        return None
    scores = _ranking()(head)
    if max((score for code, score in scores if code in declared), default=1.0) >= LEAST_PROBABLE:
        return None
    return NAMES.get(scores[0][0]) or ("another language" if _is_in_another_script(head) else None)


def _is_in_another_script(text: str) -> bool:
    """Return whether most letters of the text are not Latin."""
    letters = [character for character in text if character.isalpha()]
    return sum(character > "\u024f" for character in letters) > MOST_LETTERS * len(letters)


def _shares(texts: list[str], declared: tuple[str, ...]) -> dict[str, float]:
    """Return the share of the texts in each language that is not declared, the most frequent language first."""
    counts: Counter[str] = Counter()
    for text, count in Counter(texts).items():
        if (language := other_language(text, declared)) is not None:
            counts[language] += count
    return {
        language: count / len(texts) for language, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair))
    }


def _sampling_order(text: str) -> tuple[int, str]:
    """Return a sort key that puts texts into a pseudo-random but reproducible order."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass")), text


def _word_count(text: str) -> int:
    """Return the number of words that reveal a text's language.

    Capitalised words are not counted, because they may be names. In scripts without blanks, two characters count as a
    word.
    """
    count = 0.0
    for word in text.split():
        letters = [character for character in word if character.isalpha()]
        if letters and _is_written_without_blanks(letters[0]):
            count += len(letters) / 2
        elif letters and not letters[0].isupper():
            count += 1
    return int(count)


def _is_written_without_blanks(character: str) -> bool:
    # Thai, Lao, Myanmar and Khmer; kana, Han and related blocks.
    return "\u0e00" <= character <= "\u109f" or "\u1780" <= character <= "\u17ff" or "\u2e80" <= character <= "\u9fff"


@cache
def _ranking() -> Callable[[str], list[tuple[str, float]]]:
    """Return a function that ranks languages for a text: pairs (ISO 639 code, probability), most probable first."""
    # Deferred, as the model takes half a second to load and only measuring needs it.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    # py3langid 0.4 needs NumPy 2. With NumPy 1, version 0.2 is installed. Its older model mistakes more lists of names
    # for texts in another language.
    load = getattr(LanguageIdentifier, "from_model_file", None) or LanguageIdentifier.from_pickled_model
    ranking: Callable[[str], list[tuple[str, float]]] = load(MODEL_FILE, norm_probs=True).rank
    return ranking
