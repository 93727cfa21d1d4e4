"""Suggestions of markers: frequent words of the answers that the probe's lists of markers do not contain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pytest_fairness.languages.language import Language
from pytest_fairness.languages.words import normalise

FEW_MARKERS_SHARE = 0.5
"""Words are suggested if more than this share of the answers have too few markers."""
SHOWN_WORDS = 8
"""Largest number of suggested words."""
MINIMUM_ANSWERS = 2
"""Smallest number of answers that contain a suggested word."""


def words_for(
    texts: Mapping[str, Sequence[str]], opposites: Mapping[str, str | None], known: Iterable[str], language: Language
) -> list[str]:
    """Return the words that distinguish the cases best, without words that the marker lists already contain.

    For two opposite cases, these are words that the answers about one case contain more often than the answers about
    the other case. For a case without an opposite, these are the words that the largest share of its answers contains.

    Args:
        texts: texts of the answers, by case.
        opposites: name of each case's opposite; `None` for a case without an opposite.
        known: prompts and markers, whose words are not suggested.
        language: language of the answers.

    Returns:
        up to eight words, the word with the largest difference first.
    """
    ignored = language.function_words.difference(map(normalise, language.identity_terms))
    ignored |= {word for text in known for word in language.words(normalise(text))}
    counts_by_case = {
        case: Counter(word for text in own for word in {*language.words(normalise(text))})
        for case, own in texts.items()
    }
    differences: Counter[str] = Counter()
    for case, counts in counts_by_case.items():
        opposite = opposites.get(case)
        other = counts_by_case.get(opposite, Counter()) if opposite else Counter[str]()
        size, other_size = max(1, len(texts[case])), max(1, len(texts.get(opposite or "", ())))
        for word, count in counts.items():
            if count >= MINIMUM_ANSWERS and word not in ignored and not word.isdigit() and len(word) > 1:
                differences[word] = max(differences[word], round((count / size - other[word] / other_size) * 10**9))
    return [
        word for word, _ in sorted(differences.items(), key=lambda pair: (-pair[1], pair[0])) if differences[word] > 0
    ][:SHOWN_WORDS]
