"""Suggestions of markers: words that are common in the answers and in no list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pytest_fairness.audits.anonymizer import IDENTITY_TERMS, normalise, words

MOST = 0.5
"""Share of answers without markers above which words are suggested."""
SHOWN = 8
"""Words that are suggested at most."""
MINIMUM_ANSWERS = 2
"""Fewest answers that hold a suggested word."""


def words_for(
    texts: Mapping[str, Sequence[str]], opposites: Mapping[str, str | None], known: Iterable[str]
) -> list[str]:
    """Return the words that distinguish the cases best and are in no list.

    For two opposite cases these are the words that the answers about one case use more often than the answers about the
    other; for a single case, the words that most of its answers use.

    Args:
        texts: answers by case.
        opposites: opposite by case; `None` for a case without one.
        known: prompts and markers, whose words are left out.

    Returns:
        up to eight words, the one with the largest difference first.
    """
    # Deferred, as scikit-learn takes a second to import and few runs come this far.
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    ignored = {*ENGLISH_STOP_WORDS} - {*IDENTITY_TERMS}
    ignored |= {word for text in known for word in words(normalise(text))}
    holding = {case: Counter(word for text in own for word in {*words(normalise(text))}) for case, own in texts.items()}
    telling: Counter[str] = Counter()
    for case, counts in holding.items():
        opposite = opposites.get(case)
        other = holding.get(opposite, Counter()) if opposite else Counter[str]()
        size, other_size = max(1, len(texts[case])), max(1, len(texts.get(opposite or "", ())))
        for word, count in counts.items():
            if count >= MINIMUM_ANSWERS and word not in ignored and not word.isdigit() and len(word) > 1:
                telling[word] = max(telling[word], round((count / size - other[word] / other_size) * 10**9))
    return [word for word, _ in sorted(telling.items(), key=lambda pair: (-pair[1], pair[0])) if telling[word] > 0][
        :SHOWN
    ]
