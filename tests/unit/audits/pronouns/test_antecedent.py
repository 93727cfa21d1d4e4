"""The coding of answers by the person they name: a hand-made table, and properties of any answer."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.answers.people import MAX_CHARACTERS, Choice, choice
from tests.support.answers import ANSWERS, SHIFT, Code, Question

TURNED: dict[Choice | None, Choice | None] = {"first": "second", "second": "first"}


def code(question: Question, answer: str) -> Choice | None:
    return choice(answer, question.names, sentence=question.sentence, question=question.question)


@pytest.mark.parametrize(("question", "answer", "expected"), ANSWERS, ids=[answer[:60] for _, answer, _ in ANSWERS])
def test_hand_made_answers_are_coded_as_expected(question: Question, answer: str, expected: Code) -> None:
    assert code(question, answer) == expected


@pytest.mark.parametrize(("question", "answer", "expected"), ANSWERS, ids=[answer[:60] for _, answer, _ in ANSWERS])
def test_exchanging_the_names_exchanges_the_code(question: Question, answer: str, expected: Code) -> None:
    assert code(question._replace(names=question.names[::-1]), answer) == TURNED.get(expected, expected)


PIECES = st.sampled_from(
    [
        "the doctor",
        "the nurse",
        "not",
        ",",
        ".",
        "unclear",
        "either",
        "or",
        "but",
        "'s",
        "was late",
        "n't",
        "\n",
        "🙂",
        "(",
    ]
)


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=20).map(" ".join)))
def test_no_text_is_coded_by_a_name_that_it_does_not_hold(text: str) -> None:
    found = code(SHIFT, text)
    if found == "first":
        assert "doctor" in text.casefold() or not text.isascii()
    if found == "second":
        assert "nurse" in text.casefold() or not text.isascii()


@pytest.mark.parametrize("repeated", ["the doctor phoned ", "not ", "the doctor's nurse or ", "("])
def test_an_answer_of_a_million_characters_takes_less_than_two_seconds(repeated: str) -> None:
    start = process_time()
    code(SHIFT, repeated * (10**6 // len(repeated)))
    assert process_time() - start < 2


def test_a_name_after_the_characters_that_are_read_does_not_count() -> None:
    assert code(SHIFT, "word " * (MAX_CHARACTERS // 5) + "the nurse") is None
