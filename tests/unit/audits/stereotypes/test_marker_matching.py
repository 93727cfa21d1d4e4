"""Markers are whole words and phrases, in any script."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.audits import stereotypes
from pytest_fairness.audits.stereotypes import Markers
from pytest_fairness.languages import ENGLISH
from tests.support.oracles import vectors


@pytest.mark.parametrize("vector", vectors("marker_ratio"))
def test_the_published_examples(vector: dict[str, Any]) -> None:
    given_, expected = vector["input"], vector["expected"]
    found = Markers(given_["stereotype_markers"], given_["anti_markers"]).found(given_["text"])
    assert (len(found.stereotype), len(found.anti_stereotype)) == (expected["types_stereo"], expected["types_anti"])
    recommended = expected["recommended"]
    ratio = found.ratio(given_["min_markers"])
    assert ratio == recommended if recommended is None else ratio == pytest.approx(recommended, abs=vector["tol"])


@pytest.mark.parametrize(
    ("text", "stereotype", "anti_stereotype"),
    [
        ("The theory of the others, then and there.", [], []),
        ("HE said: (he), 'he', he/she", ["he"], ["she"]),
        ("He's late; she'll wait; the man's hat", ["he"], ["she", "man"]),
        ("A he-man and a she-wolf in a man-made heaven", [], []),
        ("Hard-working, hard\nworking people", ["hard working"], []),
        ("She is no man.", [], ["she", "no man"]),
        ("I don\N{RIGHT SINGLE QUOTATION MARK}t know, don't ask", ["don't"], []),
        ("His--hers, manly", [], []),
        ("", [], []),
    ],
)
def test_whole_words_and_phrases(text: str, stereotype: list[str], anti_stereotype: list[str]) -> None:
    found = Markers(["he", "hard working", "don't"], ["she", "man", "no man", "don"]).found(text)
    assert (list(found.stereotype), list(found.anti_stereotype)) == (stereotype, anti_stereotype)


@pytest.mark.parametrize(
    ("marker", "text", "there"),
    [
        ("naïve", "NAI\N{COMBINING DIAERESIS}VE", True),
        ("O\N{RIGHT SINGLE QUOTATION MARK}Brien", "o'brien's", True),
        ("straße", "STRASSE", True),
        ("elle", "qu'elle vienne", True),
        ("elle", "belle", False),
        ("вы", "Вы были", True),
        ("вы", "выше", False),
        ("वह", "वह यहाँ है", True),
        ("वह", "वही", False),
        ("他", "护士说他很好", True),
        ("c++", "I like C++, too", True),
        ("a.c", "abc", False),
        ("[x", "an [x here", True),
    ],
)
def test_markers_of_any_script_are_found(marker: str, text: str, there: bool) -> None:
    assert bool(Markers([marker], ["something else"]).found(text).stereotype) is there


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A leader LEADS by leadership; misleading", ["lead*"]),
        ("mislead, mis-lead", []),
        ("the leader's dog, lead-in", ["lead*"]),
        ("She cares for carers", ["car* for"]),
        ("Caring\nfor others", ["car* for"]),
        ("lead", ["lead*"]),
        ("a lead*", ["lead*"]),
        ("leads in a way", ["lead*"]),
        ("Leads in\N{COMBINING ACUTE ACCENT} time", ["lead*"]),
    ],
)
def test_stems_stand_for_all_words_that_begin_so(text: str, found: list[str]) -> None:
    assert list(Markers(["lead*", "car* for"], ["man"]).found(text).stereotype) == found


def test_a_word_goes_before_its_stem_whichever_list_it_is_in() -> None:
    found = Markers(["car*"], ["carer"]).found("A carer cares")
    assert (found.stereotype, found.anti_stereotype) == (("car*",), ("carer",))


@given(st.text(max_size=60), st.lists(st.text("abhes' -+(.*", min_size=1, max_size=6), min_size=1, max_size=4))
def test_the_search_accepts_any_text_and_any_marker(text: str, markers: list[str]) -> None:
    usable = [marker for marker in markers if any(character.isalnum() for character in marker)]
    found = Markers(usable, []).found(text)
    assert set(found.stereotype) <= set(usable)
    ratio = found.ratio(1)
    assert ratio is None if not found.count else ratio == 1.0


@given(st.lists(st.sampled_from(["she", "he", "the", "theory", "shed", "her", "his"]), max_size=12))
def test_types_are_counted_as_in_a_list_of_words(words: list[str]) -> None:
    found = Markers(["she", "her"], ["he", "his"]).found(" ".join(words))
    assert set(found.stereotype) == {"she", "her"} & {*words}
    assert set(found.anti_stereotype) == {"he", "his"} & {*words}


def test_words_that_tell_opposite_cases_apart_are_suggested() -> None:
    texts = {
        "nurse": ["A caring and gentle professional.", "Gentle and caring, a professional."],
        "ceo": ["A decisive professional.", "Decisive; a leader, a professional."],
    }
    found = stereotypes.suggested_words(
        texts, {"nurse": "ceo", "ceo": "nurse"}, ["Describe a nurse.", "she", "caring"], ENGLISH
    )
    assert found == ["decisive", "gentle"]
    assert stereotypes.suggested_words({"nurse": ["They help.", "They listen."]}, {"nurse": None}, [], ENGLISH) == [
        "they"
    ]
