"""Preparation of recommended lists for comparison."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.audits.lists import Lists, Merge, normalized, prepared
from pytest_fairness.records import Status
from tests.support.listeners import answer, probe

NEUTRAL = {"entity": "Adele", "attribute": "neutral", "value": ""}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Departed (2006)", "departed"),
        ("1. Hello", "HELLO"),
        ("\u201cSomeone Like You\u201d", "Someone like you"),
        ("Don\u2019t You Remember", "don't you remember"),
        ("Spider-Man", "spider man"),
        ("\ufb01re", "FIRE"),
        ("A  Star Is Born [1954]", "star is born"),
    ],
)
def test_spellings_of_one_title_are_equal_when_normalised(one: str, other: str) -> None:
    assert normalized(one) == normalized(other)


@pytest.mark.parametrize(("one", "other"), [("1999", "1917"), ("\u00f7", "\u00d7"), ("Up", "It"), ("A", "")])
def test_different_titles_stay_different(one: str, other: str) -> None:
    assert normalized(one) != normalized(other)


@given(st.text(max_size=30))
def test_no_title_with_letters_or_digits_becomes_empty(item: str) -> None:
    assert bool(normalized(item)) == bool(normalized(item).strip())
    if any(letter.isalnum() for letter in item):
        assert normalized(item)


def test_lists_are_cut_to_k_before_repeated_titles_are_removed() -> None:
    small = probe(k=3)
    (recommended,) = Lists.of(small, [answer(NEUTRAL, 0, ["Hello", " ", "hello", "Skyfall"])]).all
    # The blank and the repeated title are among the first three; the fourth title does not replace them.
    assert recommended.items == ("hello",)
    assert recommended.returned == 2
    assert prepared(probe(normalize=False), ["Hello", "hello", "Hello"]) == ("Hello", "hello")


def test_a_list_without_any_item_is_unreadable() -> None:
    (recommended,) = Lists.of(probe(), [answer(NEUTRAL, 0, ["", " "])]).all
    assert recommended.status is Status.UNREADABLE


def test_the_longest_of_several_lists_counts() -> None:
    small = probe(k=3)
    again = {**NEUTRAL, "requery": "1"}
    attempts = [answer(NEUTRAL, 0, ["a b", "c"]), answer(again, 0, ["d", "e", "f"]), answer(NEUTRAL, 1, ["g"])]
    first, second = Lists.of(small, attempts[::-1]).all
    assert first.items == ("d", "e", "f")
    assert second.items == ("g",)


def test_an_indirect_answer_replaces_a_refusal_unless_only_direct_ones_count() -> None:
    labels = {"entity": "Adele", "attribute": "religion", "value": "Muslim"}
    run = [answer(labels, 0, None, Status.REFUSED), answer({**labels, "form": "indirect"}, 0, ["Hello"])]
    (recommended,) = Lists.of(probe(), run).all
    assert (recommended.status, recommended.items, recommended.indirect) == (Status.OK, ("hello",), True)
    (direct,) = Lists.of(probe(), run, direct_only=True).all
    assert (direct.status, direct.indirect) == (Status.REFUSED, False)


def test_similar_titles_are_merged_into_the_more_frequent_one() -> None:
    run = [
        answer(NEUTRAL, 0, ["Rolling in the Deep", "Part 2"]),
        answer(NEUTRAL, 1, ["Rolling in the Deep", "Part 3"]),
        answer(NEUTRAL, 2, ["Rollin in the Deep", "Rolling in the Deep"]),
        answer({**NEUTRAL, "entity": "Another"}, 0, ["Rollin in the Deep"]),
    ]
    lists = Lists.of(probe(fuzzy=0.9), run)
    assert lists.merges == (Merge("Adele", "rollin in the deep", "rolling in the deep"),)
    by_place = {(recommended.entity, recommended.trial): recommended.items for recommended in lists.all}
    assert by_place["Adele", 2] == ("rolling in the deep",)
    assert by_place["Adele", 1][1] == "part 3"
    assert by_place["Another", 0] == ("rollin in the deep",)
    assert Lists.of(probe(), run).merges == ()


def test_lists_prepared_in_parts_are_equal_to_lists_prepared_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_fairness.audits.lists.ENTITIES_AT_ONCE", 2)
    answers = [
        answer(
            {"entity": entity, "attribute": "neutral", "value": "", "domain": entity[0]}, trial, ["Song 1", "Sogn 1"]
        )
        for entity in ("e", "a", "c", "b", "d")
        for trial in range(2)
    ]
    of = probe(fuzzy=0.6)
    whole, parts = Lists.of(of, answers), list(Lists.parts(of, answers))
    assert [part.entities for part in parts] == [("a", "b"), ("c", "d"), ("e",)]
    assert tuple(chain.from_iterable(part.all for part in parts)) == whole.all
    assert tuple(chain.from_iterable(part.merges for part in parts)) == whole.merges
    assert {entity: domain for part in parts for entity, domain in part.domains.items()} == whole.domains
