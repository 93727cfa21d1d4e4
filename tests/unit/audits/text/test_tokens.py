from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.audits import features
from pytest_fairness.audits.features import Tokens

TEXTS = st.lists(st.lists(st.sampled_from(["a", "b", "cc", "ä", "d"]), max_size=6), min_size=1, max_size=12)


@given(TEXTS, st.integers(1, 3), st.integers(1, 5))
def test_counts_are_those_of_the_words(texts: list[list[str]], least: int, at_once: int) -> None:
    found = Tokens.of(texts)
    assert [list(text) for text in found] == texts == [list(found[place]) for place in range(len(found))]
    assert found.lengths.tolist() == [len(text) for text in texts]
    assert found.different() == len({tuple(text) for text in texts})
    holding = Counter(word for text in texts for word in {*text})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features, "AT_ONCE", at_once)
        words, counts = found.counts(least)
    assert words == sorted(word for word, number in holding.items() if number >= least)
    assert counts.toarray().tolist() == [[text.count(word) for word in words] for text in texts]


@given(TEXTS, TEXTS, st.data())
def test_texts_are_chosen_and_joined(first: list[list[str]], second: list[list[str]], data: st.DataObject) -> None:
    joined = Tokens.joined([Tokens.of(first), Tokens.of(second)])
    assert [list(text) for text in joined] == [*first, *second]
    chosen = data.draw(st.lists(st.integers(0, len(joined) - 1), max_size=5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features, "AT_ONCE", 2)
        kept = joined.only(np.array(chosen, dtype=np.int64))
    assert [list(text) for text in kept] == [[*first, *second][place] for place in chosen]
    assert kept.counts()[0] == sorted({word for text in kept for word in text})


@given(TEXTS, st.integers(1, 4))
def test_the_words_in_most_texts_are_kept(texts: list[list[str]], most: int) -> None:
    found = Tokens.of(texts)
    words, counts = found.counts(1, most)
    holding = Counter(word for text in texts for word in {*text})
    assert words == sorted(sorted(holding, key=lambda word: (-holding[word], word))[:most])
    assert counts.toarray().tolist() == [[text.count(word) for word in words] for text in texts]
