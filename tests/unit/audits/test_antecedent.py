"""The coding of answers: on a table made by hand, and what holds of any answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.audits.pronouns.antecedent import Choice, choice
from tests.support.answers import ANSWERS, SHIFT, Code, Question

TURNED: dict[Choice | None, Choice | None] = {"first": "second", "second": "first"}


def code(question: Question, answer: str) -> Choice | None:
    return choice(answer, question.names, sentence=question.sentence, question=question.question)


@pytest.mark.parametrize(("question", "answer", "expected"), ANSWERS, ids=[answer[:60] for _, answer, _ in ANSWERS])
def test_answers_made_by_hand(question: Question, answer: str, expected: Code) -> None:
    assert code(question, answer) == expected


@pytest.mark.parametrize(("question", "answer", "expected"), ANSWERS, ids=[answer[:60] for _, answer, _ in ANSWERS])
def test_the_order_in_which_the_names_are_given_does_not_matter(
    question: Question, answer: str, expected: Code
) -> None:
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
def test_any_text_is_coded_and_never_by_a_name_that_is_not_there(text: str) -> None:
    found = code(SHIFT, text)
    assert found in ("first", "second", "ambiguous", None)
    if found == "first":
        assert "doctor" in text.casefold() or not text.isascii()
    if found == "second":
        assert "nurse" in text.casefold() or not text.isascii()


def test_a_very_long_answer_is_coded_in_no_time() -> None:
    for text in ("the doctor phoned " * 50_000, "not " * 100_000, "the doctor's nurse or " * 50_000, "(" * 500_000):
        code(SHIFT, text)
