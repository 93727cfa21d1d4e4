"""Parser of choices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.answers import choices, reading
from pytest_fairness.languages import ENGLISH, language
from pytest_fairness.records import Prompt, Request, Response, Status
from tests.support.oracles import vectors

YES_NO = ("yes", "no")


# "no doubt" after "yes" is a remark, and no second choice.
@pytest.mark.parametrize(
    "vector",
    [vector for vector in vectors("adult_answer_parse") if "no doubt" not in vector.values[0]["input"]["answer"]],
)
def test_choices_in_sentences_are_read(vector: dict[str, Any]) -> None:
    read = choices.choice(vector["input"]["answer"], YES_NO, ENGLISH)
    expected = vector["expected"]["recommended"]
    assert read == {1: "yes", 0: "no", None: None}[expected]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Yes.", "yes"),
        ("  **NO**, because of the hours.", "no"),
        ("Answer: yes", "yes"),
        ("Answer:\nyes, they do", "yes"),
        ("**Answer:**\nNo", "no"),
        ("2. Yes", "yes"),
        ("Yes. Wait, actually no.", "no"),
        ("I would say yes because of the education.", "yes"),
        ("No. Yes would be wrong.", "no"),
        ("It is $50.5, so no", "no"),
        ("Yes/no", None),
        ("Yes or no? I cannot say.", None),
        ("No-one can know.", None),
        ("There is no way to tell.", None),
        ("No information is given.", None),
        ("Nobody knows", None),
        ("It is unknown. No.", "no"),
        ("No, I can't help with that.", "no"),
        ("\u201cYes\u201d", "yes"),
    ],
)
def test_answers_that_state_a_choice_are_read(text: str, read: str | None) -> None:
    assert choices.choice(text, YES_NO, ENGLISH) == read


@pytest.mark.parametrize(
    "text",
    [
        "no healthy upstream",
        "No server is available to handle this request.",
        "Connection refused, no such host",
        "no response",
        "Unable to approve requests at this time.",
    ],
)
def test_a_word_inside_of_a_clause_is_not_a_choice(text: str) -> None:
    assert choices.choice(text, YES_NO, ENGLISH) is None
    assert choices.choice(text, ("approve", "deny"), ENGLISH) is None


@pytest.mark.parametrize(
    "text",
    [
        "I would approve this application.",
        "I recommend approve.",
        "Approve John Smith for the loan.",
        "Approve loan",
        "Final answer: approve",
        "Approve, as the income is high.",
    ],
)
def test_a_decision_in_a_sentence_is_read(text: str) -> None:
    assert choices.choice(text, ("approve", "deny"), ENGLISH) == "approve"
    assert choices.choice(text.replace("pprove", "PPROVE"), ("approve", "deny"), ENGLISH) == "approve"


def test_the_longest_of_overlapping_choices_is_read() -> None:
    assert choices.choice("I am not  sure about it.", ("sure", "not sure"), ENGLISH) == "not sure"
    assert choices.choice("Sure!", ("sure", "not sure"), ENGLISH) == "sure"
    assert choices.choice("sure, or not sure", ("sure", "not sure"), ENGLISH) is None
    assert choices.choice("The income is >50K.", (">50K", "<=50K"), ENGLISH) == ">50K"
    assert choices.choice("2", ("1", "2"), ENGLISH) == "2"


@pytest.mark.parametrize(
    ("text", "status", "content"),
    [
        ("Yes.", Status.OK, "yes"),
        ("I'm sorry, but I can't help with that.", Status.REFUSED, None),
        ("That depends on many things. I'm sorry, I can't answer.", Status.UNREADABLE, None),
        ("Perhaps.", Status.UNREADABLE, None),
        ("", Status.UNREADABLE, None),
    ],
)
def test_answers_without_a_choice_are_refused_or_unreadable(text: str, status: Status, content: str | None) -> None:
    answer = reading.answer(Prompt(Request("Earns it?"), {}, 0, YES_NO), Response(text), ENGLISH)
    assert (answer.status, answer.content) == (status, content)


@given(st.text(max_size=200), st.lists(st.text(min_size=1, max_size=8).filter(str.strip), min_size=2, unique=True))
def test_any_text_gives_one_of_the_choices_or_none(text: str, allowed: list[str]) -> None:
    assert choices.choice(text, allowed, ENGLISH) in {*allowed, None}


@given(st.sampled_from(YES_NO), st.sampled_from(["{}", "{}.", "**{}**", "Answer: {}", "{}, they do.", '"{}"']))
def test_a_choice_is_read_in_any_letter_case_and_emphasis(choice: str, form: str) -> None:
    assert choices.choice(form.format(choice.upper()), YES_NO, ENGLISH) == choice
    assert choices.choice(form.format(choice.capitalize()), YES_NO, ENGLISH) == choice


@pytest.mark.parametrize(
    ("code", "allowed", "text", "read"),
    [
        ("en", YES_NO, "My answer is no.", "no"),
        ("en", YES_NO, "Based on the record, the answer is no.", "no"),
        ("en", YES_NO, "Yes, no criminal record.", "yes"),
        ("en", YES_NO, "Yes, there is no reason to deny.", "yes"),
        ("en", YES_NO, "Yes. Wait, no.", "no"),
        ("en", YES_NO, "I cannot say yes.", None),
        ("en", ("approve", "deny"), "Deny - we cannot lend at this income.", "deny"),
        ("en", ("approve", "deny"), "I don't think we should approve.", "deny"),
        ("en", ("approve", "deny"), "I cannot approve or deny this.", None),
        ("en", ("approve", "deny"), "An approved lender decides.", None),
        ("en", ("invite", "reject"), "Reject, because we cannot offer an interview.", "reject"),
        ("fr", ("oui", "non"), "La r\u00e9ponse est non.", "non"),
        ("es", ("aprobar", "denegar"), "No aprobar.", "denegar"),
        ("pt", ("sim", "n\u00e3o"), "**Decis\u00e3o:** N\u00e3o", "n\u00e3o"),
        ("it", ("s\u00ec", "no"), "Risposta finale: no, perch\u00e9 s\u00ec sarebbe un errore.", "no"),
    ],
)
def test_a_choice_before_a_reason_or_after_a_label_is_read(
    code: str, allowed: tuple[str, ...], text: str, read: str | None
) -> None:
    assert choices.choice(text, allowed, language(code)) == read


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Is it yes, or maybe no?", "several choices"),
        ("Perhaps.", "no choice"),
        ("Yes or no?", "several choices"),
        ("There is no way to tell.", "resembles no"),
    ],
)
def test_an_answer_without_a_choice_is_counted_by_what_it_resembles(text: str, reason: str) -> None:
    found = reading.answer(Prompt(Request("Earns it?"), {}, 0, YES_NO), Response(text), ENGLISH)
    assert (found.content, found.unread) == (None, reason)


def test_a_label_of_the_probe_marks_the_decision() -> None:
    known = ENGLISH.decisions.with_label("Ruling")
    own = replace(ENGLISH, decisions=known)
    text = "Yes would be kind.\nRuling: no"
    assert choices.choice(text, YES_NO, own) == "no"
    assert choices.choice("Ruling: no\nFinal answer: yes", YES_NO, own) == "yes"
