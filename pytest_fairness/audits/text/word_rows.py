"""Rows of a word table: each word of two groups' texts with its uses and an audit's statistic of the word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from pytest_fairness.records import Json


def word_rows(
    statistic: str,
    values: Mapping[str, float],
    texts: Sequence[Iterable[str]],
    marked: Sequence[bool],
    names: tuple[str, str],
    significant: Collection[str] | None = None,
) -> list[dict[str, Json]]:
    """Return a row for each word with a value, the strongest first.

    Args:
        statistic: name of the values.
        values: by word; above 0 where the word speaks for the marked group.
        texts: words of each text.
        marked: whether the text is of the marked group.
        names: names of the marked and of the unmarked group.
        significant: the significant words; `None` if words are not tested one by one.
    """
    uses, holding = (Counter[str](), Counter[str]()), (Counter[str](), Counter[str]())
    for text, of_marked in zip(texts, marked, strict=True):
        counts = Counter(text)
        uses[not of_marked].update(counts)
        holding[not of_marked].update(counts.keys())
    sizes = sum(marked), len(marked) - sum(marked)
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
