"""Parts of structured answers: calls of tools, their arguments, values in JSON, and answers that show neither."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.answers import reading
from pytest_fairness.languages import ENGLISH
from pytest_fairness.records import (
    CALLED,
    NOT_CALLED,
    AnswerFormat,
    Json,
    NumberFormat,
    Prompt,
    Reply,
    Request,
    Response,
    Selection,
    Status,
    ToolCall,
    reply_in,
    reply_of,
)
from tests.support import readings

CALL = Selection("escalate", None)
DECISION = Selection(None, "$.decision")
YES_NO = ("yes", "no")
OK, REFUSED, UNREADABLE = Status.OK, Status.REFUSED, Status.UNREADABLE
FORMS: dict[str, Json] = {
    "OpenAI": {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "escalate", "arguments": '{"team": "B"}'}}
        ],
    },
    "Anthropic": {
        "role": "assistant",
        "content": [
            {"type": "text", "text": ""},
            {"type": "tool_use", "id": "toolu_1", "name": "escalate", "input": {"team": "B"}},
        ],
    },
    "Anthropic's blocks": [{"type": "tool_use", "name": "escalate", "input": {"team": "B"}}],
    "plain": {"tool_calls": [{"name": "escalate", "arguments": {"team": "B"}}]},
}


def said(text: str, *calls: tuple[str, Json], finish_reason: str = "stop") -> Response:
    reply = Reply(text, tuple(ToolCall(*call) for call in calls))
    return Response(text, finish_reason, tool_calls=reply.calls_as_json if calls else None)


def read(response: Response | None, selection: Selection, choices: tuple[str, ...] = ()) -> tuple[Status, Json]:
    form: AnswerFormat = "structured" if selection.tool is None else "calls"
    return readings.read(response, form, ENGLISH, choices, selection=selection)


def decided(response: Response | None) -> tuple[Status, Json]:
    return read(response, CALL, (CALLED, NOT_CALLED))


# The message


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_a_message_with_a_call_are_read_alike(form: str) -> None:
    reply = reply_of(FORMS[form])
    assert reply == Reply("", (ToolCall("escalate", {"team": "B"}),))
    assert reply_in(reply.as_json) == reply
    assert reply_in(json.dumps(FORMS[form])) == reply


@pytest.mark.parametrize(
    ("arguments", "read_as"),
    [
        ("", {}),
        ("  ", {}),
        (None, {}),
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": ', '{"a": '),
        ("[1]", "[1]"),
        ([1], "[1]"),
    ],
)
def test_arguments_are_an_object_or_the_text_that_is_none(arguments: Json, read_as: Json) -> None:
    (call,) = reply_of({"tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}).calls
    assert call.arguments == read_as


@pytest.mark.parametrize(
    "message",
    [
        "I escalate.",
        {"error": "overloaded"},
        {},
        None,
        {"content": "", "tool_calls": "escalate"},
        {"tool_calls": ["escalate"]},
        {"tool_calls": [{"function": {}}]},
        {"tool_calls": [{"function": {"name": None}}]},
    ],
)
def test_what_is_no_message_is_not_read_as_one(message: Json) -> None:
    with pytest.raises(ValueError, match=r"has|is"):
        reply_of(message)
    assert reply_in(json.dumps(message)) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(),
        lambda part: st.lists(part) | st.dictionaries(st.text(), part),
        max_leaves=8,
    )
)
def test_any_json_is_a_message_or_none(document: Json) -> None:
    reply = reply_in(json.dumps(document))
    assert reply is None or reply_in(reply.as_json) == reply


# The decision


@pytest.mark.parametrize(
    ("response", "status", "content"),
    [
        (said("", ("escalate", {})), OK, CALLED),
        (said("I pass you on.", ("look_up", {}), ("escalate", {"team": "B"})), OK, CALLED),
        (said("Here is your refund."), OK, NOT_CALLED),
        (said("", ("look_up", {})), OK, NOT_CALLED),
        (said("", ("escalate_now", {})), OK, NOT_CALLED),
        # A text that looks like a call, or that only talks about it, is none.
        (said('{"tool_calls": [{"name": "escalate", "arguments": {}}]}'), OK, NOT_CALLED),
        (said("I'm sorry, but I can't refund that."), OK, NOT_CALLED),
        # Missing answers
        (None, Status.FAILED, None),
        (said(""), UNREADABLE, None),
        (said("", ("escalate", '{"team": ')), UNREADABLE, None),
        (said("", ("escalate", {}), ("escalate", '{"team": ')), UNREADABLE, None),
        (said("Let me see, I", finish_reason="length"), Status.CUT_OFF, None),
        (said("", ("escalate", {}), finish_reason="length"), OK, CALLED),
        (said("", finish_reason="content_filter"), Status.BLOCKED, None),
        (said("No.", finish_reason="refusal"), Status.BLOCKED, None),
    ],
)
def test_a_decision_is_whether_the_tool_is_called(response: Response | None, status: Status, content: Json) -> None:
    assert decided(response) == (status, content)


@pytest.mark.parametrize(
    ("response", "status", "content"),
    [
        (said("", ("decide", {"grant": "yes"})), OK, "yes"),
        (said("", ("decide", {"grant": "yes"}), ("decide", {"grant": "yes"})), OK, "yes"),
        (said("", ("decide", {"grant": "yes"}), ("decide", {"grant": "no"})), UNREADABLE, None),
        (said("", ("decide", {"granted": "yes"})), UNREADABLE, None),
        (said("", ("decide", {"grant": None})), UNREADABLE, None),
        (said("", ("decide", {"grant": ["yes"]})), UNREADABLE, None),
        (said("", ("other", {"grant": "yes"})), UNREADABLE, None),
        (said("Yes."), UNREADABLE, None),
        (said("I'm sorry, but I can't help with that."), REFUSED, None),
        (said("", ("decide", '{"grant": "ye')), UNREADABLE, None),
    ],
)
def test_an_argument_of_a_call_is_read(response: Response, status: Status, content: Json) -> None:
    assert read(response, Selection("decide", "$.grant"), YES_NO) == (status, content)


# Values in JSON


@pytest.mark.parametrize(
    ("text", "status", "content"),
    [
        ('{"reason": "no debts", "decision": "yes"}', OK, "yes"),
        ('Sure:\n```json\n{"decision": "No", "reason": "yes, debts"}\n```', OK, "no"),
        ('{"decision": "maybe"}', UNREADABLE, None),
        ('{"verdict": "yes"}', UNREADABLE, None),
        ('{"decision": {"final": "yes"}}', UNREADABLE, None),
        ('{"decision": "yes"', UNREADABLE, None),
        ("yes", UNREADABLE, None),
        ("I'm sorry, but I can't help with that.", REFUSED, None),
        ('{"decision": ""}', UNREADABLE, None),
        ("", UNREADABLE, None),
        ("[" * 100_000, UNREADABLE, None),
    ],
)
def test_a_value_in_json_is_read(text: str, status: Status, content: Json) -> None:
    assert read(Response(text), DECISION, YES_NO) == (status, content)


def test_a_value_may_be_a_number_a_text_or_a_list() -> None:
    text = '{"a": [{"score": 72, "why": "Two\\nlines.", "tags": ["x y", "z w"]}], "score": 3}'
    number = NumberFormat(0, 100)
    score = Selection(None, "$.a[0].score", "number")
    assert readings.read(Response(text), "structured", ENGLISH, (), number, score) == (OK, 72)
    assert read(Response(text), Selection(None, "$.a[0].why")) == (OK, "Two\nlines.")
    assert read(Response(text), Selection(None, "$.a[0].tags", "list")) == (OK, ["x y", "z w"])
    assert read(Response(text), Selection(None, "$.a[0].tags", "json")) == (OK, "x y\nz w")
    assert read(Response(text), Selection(None, "$.a[0].tags")) == (UNREADABLE, None)


# Recorded answers


@pytest.mark.parametrize(
    ("text", "status", "content"),
    [
        *((json.dumps(form), OK, CALLED) for form in FORMS.values()),
        ('{"content": "Here is your refund.", "tool_calls": []}', OK, NOT_CALLED),
        ('{"content": "Here is your refund."}', OK, NOT_CALLED),
        ("Called", OK, CALLED),
        ("not called", OK, NOT_CALLED),
        # A text alone does not show whether a tool was called.
        ("Here is your refund.", UNREADABLE, None),
        ('{"error": "overloaded"}', UNREADABLE, None),
        ('{"content": null}', UNREADABLE, None),
        ("", UNREADABLE, None),
        (None, Status.FAILED, None),
    ],
)
def test_recorded_messages_are_read_and_texts_alone_are_not(text: str | None, status: Status, content: Json) -> None:
    prompt = Prompt(Request("", answer_format="calls"), {}, 0, (CALLED, NOT_CALLED), selection=CALL)
    found = reading.recorded(prompt, text, ENGLISH)
    assert (found.status, found.content) == (status, content)
    # The text of an answer, as a baseline keeps it, is read in the same way.
    again = reading.recorded(prompt, found.text, ENGLISH)
    assert (again.status, again.content, again.text) == (status, content, found.text)
