from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.audits.word_counts import WordCounts

TEXTS = st.lists(st.lists(st.sampled_from(["a", "b", "cc", "ä", "d"]), max_size=6), min_size=1, max_size=12)


@given(TEXTS, st.integers(1, 3))
def test_counts_are_those_of_the_words(texts: list[list[str]], least: int) -> None:
    found = WordCounts.of(texts)
    assert found.words == sorted({word for text in texts for word in text})
    assert found.lengths.tolist() == [len(text) for text in texts]
    holding = Counter(word for text in texts for word in {*text})
    assert found.holding.tolist() == [holding[word] for word in found.words]
    words, counts = found.frequent(least)
    assert words == sorted(word for word, number in holding.items() if number >= least)
    assert counts.toarray().tolist() == [[text.count(word) for word in words] for text in texts]


@given(TEXTS)
def test_texts_with_equal_counts_are_of_one_kind(texts: list[list[str]]) -> None:
    kinds = WordCounts.of(texts).kinds()
    for first, kind in zip(texts, kinds, strict=True):
        assert [other == kind for other in kinds] == [sorted(first) == sorted(second) for second in texts]


@given(TEXTS, TEXTS)
def test_texts_are_joined(first: list[list[str]], second: list[list[str]]) -> None:
    joined, expected = (
        WordCounts.joined([WordCounts.of(first), WordCounts.of(second)]),
        WordCounts.of([*first, *second]),
    )
    assert joined.words == expected.words
    np.testing.assert_array_equal(joined.counts.toarray(), expected.counts.toarray())
