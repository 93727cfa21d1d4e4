"""Rows of the exported word table: each word of two groups' texts, with its counts and an audit's statistic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from pytest_fairness.records import Json
from pytest_fairness.stats.arrays import Bools


def word_rows(
    statistic: str,
    values: Mapping[str, float],
    texts: Sequence[Iterable[str] | Mapping[str, int]],
    marked: Bools,
    names: tuple[str, str],
    significant: Collection[str] | None = None,
) -> list[dict[str, Json]]:
    """Return a row for each word that has a value, the largest absolute value first.

    Args:
        statistic: name of the statistic whose values are given.
        values: value of each word; above 0 if the word is typical of the marked group.
        texts: words of each text, or the number of uses of each word.
        marked: (texts,) whether the text belongs to the marked group.
        names: names of the marked and of the unmarked group.
        significant: the significant words; `None` if words are not tested individually.
    """
    uses, holding = (Counter[str](), Counter[str]()), (Counter[str](), Counter[str]())
    for text, of_marked in zip(texts, marked.tolist(), strict=True):
        counts = Counter(text)
        uses[not of_marked].update(counts)
        holding[not of_marked].update(counts.keys())
    sizes = int(marked.sum()), int((~marked).sum())
    return [
        {
            "word": word,
            "side": names[0] if values[word] > 0 else names[1] if values[word] < 0 else None,
            "statistic": statistic,
            "value": float(values[word]) + 0.0,  # no -0.0
            "significant": None if significant is None else word in significant,
            "marked": names[0],
            "unmarked": names[1],
            "uses_marked": uses[0][word],
            "uses_unmarked": uses[1][word],
            "texts_marked": holding[0][word],
            "texts_unmarked": holding[1][word],
            "share_marked": holding[0][word] / sizes[0],
            "share_unmarked": holding[1][word] / sizes[1],
        }
        for word in sorted(values, key=lambda word: (-abs(round(values[word], 12)), word))
    ]
