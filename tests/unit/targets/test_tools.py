"""Tools in requests, and tool calls in responses, of every target."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from pytest_fairness.asking.store import Store, decode_request, encode_request, response_key
from pytest_fairness.errors import RequestFailed, TargetError
from pytest_fairness.records import Json, Request, Response, Sampling, ToolCall, calls_in
from pytest_fairness.targets import open_target
from pytest_fairness.targets.openai import ChatBatches
from pytest_fairness.targets.python import CallableTarget
from tests.support.asking import answer_of, ask_once, engine_for, settings_in
from tests.support.messages_server import MessagesServer
from tests.support.servers import ChatServer, Reply

PARAMETERS = {"type": "object", "properties": {"team": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "escalate", "description": "Ask.", "parameters": PARAMETERS}}]
REQUEST = Request("A refund, please.", answer_format="calls", tools=json.dumps(TOOLS))
CALL = Reply(None, calls=(("escalate", '{"team": "B"}'),), finish_reason="tool_calls")
CALLED = (ToolCall("escalate", {"team": "B"}),)


def folder_settings(**more: Any) -> Any:
    return settings_in(Path.cwd(), **more)


def test_chat_completions() -> None:
    with ChatServer(script=[CALL, Reply("Sure.")]) as server:
        called = ask_once("openai:m", folder_settings(base_url=server.url), REQUEST)
        text = ask_once("openai:m", folder_settings(base_url=server.url), REQUEST)
        assert [body["tools"] for body in server.bodies] == [TOOLS, TOOLS]
        assert "response_format" not in server.bodies[0]
    assert (called.text, calls_in(called.tool_calls), called.finish_reason) == ("", CALLED, "tool_calls")
    assert (text.text, text.tool_calls) == ("Sure.", None)


def test_a_completion_without_text_and_calls_is_no_answer() -> None:
    with ChatServer(script=[Reply(None)]) as server, pytest.raises(RequestFailed, match="has no text"):
        ask_once("openai:m", folder_settings(base_url=server.url), REQUEST)


def test_malformed_arguments_are_kept_and_a_call_without_name_is_no_answer() -> None:
    with ChatServer(script=[Reply(None, calls=(("escalate", '{"team": '),))]) as server:
        response = ask_once("openai:m", folder_settings(base_url=server.url), REQUEST)
        assert calls_in(response.tool_calls) == (ToolCall("escalate", '{"team": '),)
    message = {"content": None, "tool_calls": [{"type": "function", "function": {}}]}
    raw = json.dumps({"choices": [{"message": message}]}).encode()
    with ChatServer(script=[Reply(raw=raw)]) as server, pytest.raises(RequestFailed, match="is not a chat completion"):
        ask_once("openai:m", folder_settings(base_url=server.url), REQUEST)


def test_a_secret_in_arguments_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-4711471147114711")
    with ChatServer(script=[Reply(None, calls=(("escalate", '{"key": "sk-4711471147114711"}'),))]) as server:
        response = ask_once("openai:m", folder_settings(base_url=server.url), REQUEST)
    assert response.tool_calls is not None
    assert "4711" not in response.tool_calls


def test_anthropic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-1234567890")
    with MessagesServer(script=[CALL, Reply("Sure."), Reply("One moment.", calls=CALL.calls)]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        called, text, both = (ask_once("anthropic:m", folder_settings(), REQUEST) for _ in range(3))
        own = {"name": "escalate", "description": "Ask.", "input_schema": PARAMETERS}
        assert server.bodies[0]["tools"] == [own]
    assert (called.text, calls_in(called.tool_calls)) == ("", CALLED)
    assert (text.text, text.tool_calls) == ("Sure.", None)
    assert (both.text, calls_in(both.tool_calls)) == ("One moment.", CALLED)


def service(answer: Json, request: Request = REQUEST, **settings: str) -> tuple[Response, Json]:
    given = {"http_body": '{"q": "{prompt}", "tools": "{tools}"}', "http_answer": "$.reply", **settings}
    with ChatServer(script=[Reply(raw=json.dumps(answer).encode())]) as server:
        return ask_once(f"{server.url}/chat/completions", folder_settings(**given), request), server.bodies[0]


@pytest.mark.parametrize(
    "reply",
    [
        {"content": None, "tool_calls": [{"function": {"name": "escalate", "arguments": '{"team": "B"}'}}]},
        {"tool_calls": [{"name": "escalate", "arguments": {"team": "B"}}]},
        [{"type": "tool_use", "name": "escalate", "input": {"team": "B"}}],
    ],
)
def test_a_service(reply: Json) -> None:
    response, body = service({"reply": reply})
    assert (response.text, calls_in(response.tool_calls)) == ("", CALLED)
    assert body["tools"] == TOOLS


def test_a_service_that_calls_no_tool() -> None:
    response, _ = service({"reply": {"content": "Sure."}})
    assert (response.text, calls_in(response.tool_calls)) == ("Sure.", ())
    response, body = service({"reply": "Sure."}, Request("Hello"))
    assert (response.text, response.tool_calls) == ("Sure.", None)
    assert "tools" not in body


@pytest.mark.parametrize(
    "reply", ["Sure.", {"error": "overloaded"}, 3, {"tool_calls": [{"id": 1}]}, {"text": "Sure.", "tool_calls": []}]
)
def test_a_text_of_a_service_does_not_show_whether_it_called_a_tool(reply: Json) -> None:
    with pytest.raises(RequestFailed, match="must match an object with `content` and `tool_calls`"):
        service({"reply": reply})


def test_plain_text_of_a_service_does_not_show_whether_it_called_a_tool() -> None:
    reply = Reply(raw=b"Sure.", headers={"Content-Type": "text/plain"})
    given = {"http_body": '{"q": "{prompt}", "tools": "{tools}"}', "http_answer": "$"}
    with ChatServer(script=[reply]) as server, pytest.raises(RequestFailed, match="must match an object"):
        ask_once(f"{server.url}/chat/completions", folder_settings(**given), REQUEST)


def test_a_service_without_a_place_for_tools_is_not_asked() -> None:
    with pytest.raises(TargetError, match=r"fairness_http_body has no \{tools\}"):
        service({"reply": {"content": ""}}, http_body='{"q": "{prompt}"}')


class Message:
    """Message like those of client libraries."""

    def model_dump(self) -> Json:
        return {"content": None, "tool_calls": [{"function": {"name": "escalate", "arguments": '{"team": "B"}'}}]}


def with_tools(prompt: str, tools: list[Json]) -> Json:
    assert tools == TOOLS
    return {"content": "", "tool_calls": [{"name": "escalate", "arguments": {"team": "B"}}]}


async def later(messages: list[Json], *, tools: list[Json] | None = None) -> Json:
    assert tools == TOOLS
    assert messages[-1]["role"] == "user"
    return Message()


def answer_of_function(function: Callable[..., Any], request: Request = REQUEST) -> Response:
    return answer_of(CallableTarget(function, "app"), request)


@pytest.mark.parametrize("function", [with_tools, later])
def test_an_application_that_takes_tools(function: Callable[..., Any]) -> None:
    response = answer_of_function(function)
    assert (response.text, calls_in(response.tool_calls)) == ("", CALLED)


def test_an_application_with_its_own_tools() -> None:
    own = Request("A refund, please.", answer_format="calls")
    assert (
        calls_in(
            answer_of_function(
                lambda _: {"tool_calls": [{"name": "escalate", "arguments": {"team": "B"}}]}, own
            ).tool_calls
        )
        == CALLED
    )


def test_an_application_without_tools_is_not_asked_with_tools() -> None:
    with pytest.raises(TargetError, match="the probe has tools, but the function has no parameter `tools`"):
        answer_of_function(lambda prompt: {"content": prompt})


@pytest.mark.parametrize("answer", ["Sure.", None, 3, {"text": "Sure."}, {"tool_calls": [{}]}])
def test_an_application_must_return_a_message(answer: Json) -> None:
    with pytest.raises(TargetError, match="The probe measures tool calls, so the function must return a dict"):
        answer_of_function(lambda _: answer, Request("Hello", answer_format="calls"))


class Said(BaseModel):
    """Answer of an application that calls its text `text`."""

    text: str
    tool_calls: list[dict[str, Json]] = []


@pytest.mark.parametrize(
    ("answer", "keys"),
    [
        ({"text": "Sure.", "tool_calls": []}, "text (keys found: text, tool_calls)"),
        ({"text": "Sure.", "tool_calls": [{"name": "escalate"}]}, "text (keys found: text, tool_calls)"),
        ({"content": "Sure.", "calls": [{"name": "escalate"}]}, "calls (keys found: content, calls)"),
        ({"content": "", "function_call": {"name": "f"}}, "function_call (keys found: content, function_call)"),
        (Said(text="Sure."), "text (keys found: text, tool_calls)"),
    ],
)
def test_a_message_with_an_unknown_key_is_an_error_that_lists_the_keys(answer: Any, keys: str) -> None:
    with pytest.raises(TargetError) as caught:
        answer_of_function(lambda _: answer, Request("Hello", answer_format="calls"))
    assert f"app returned a {type(answer).__name__} that has unknown keys: {keys}: " in str(caught.value)


@pytest.mark.parametrize(
    "message",
    [
        openai.types.chat.ChatCompletionMessage(role="assistant", content="Sure.", refusal=None, annotations=[]),
        {"content": "Sure.", "type": "ai", "response_metadata": {"id": 1}, "additional_kwargs": {}, "example": False},
        {"content": [{"type": "text", "text": "Sure."}], "stop_reason": "end_turn", "usage": {"input_tokens": 1}},
        {"content": "Sure.", "function_call": None, "provider_specific_fields": {"a": 1}, "citations": None},
    ],
)
def test_messages_of_client_libraries_are_read(message: Any) -> None:
    assert answer_of_function(lambda _: message, Request("Hello", answer_format="calls")) == Response(
        "Sure.", tool_calls="[]"
    )


def test_arguments_of_a_call_may_have_the_name_that_langchain_gives_them() -> None:
    message = {"content": "", "tool_calls": [{"name": "escalate", "args": {"team": "B"}, "type": "tool_call"}]}
    response = answer_of_function(lambda _: message, Request("Hello", answer_format="calls"))
    assert calls_in(response.tool_calls) == CALLED


@pytest.mark.parametrize("answer", [Said(text="Sure."), {"id": 4, "text": "Sure."}])
def test_an_object_in_place_of_a_text_is_shown_with_the_line_that_reads_it(answer: Any) -> None:
    with pytest.raises(TargetError) as caught:
        answer_of_function(lambda _: answer, Request("Hello"))
    assert str(caught.value) == (
        f"app must return a str, not {type(answer).__name__}: {answer!r}. Return a text, or let the probe read one "
        "value: `answer: {path: $.text}`"
    )
    response = answer_of_function(lambda _: answer, Request("Hello", answer_format="structured"))
    assert json.loads(response.text)["text"] == "Sure."


def test_an_application_may_return_json() -> None:
    response = answer_of_function(lambda _: {"decision": "yes"}, Request("Hello", answer_format="structured"))
    assert json.loads(response.text) == {"decision": "yes"}
    with pytest.raises(TargetError, match="must return a str, not dict"):
        answer_of_function(lambda _: {"decision": "yes"}, Request("Hello"))


def test_tools_are_part_of_a_request_and_calls_of_its_recorded_response(tmp_path: Path) -> None:
    other = Request(REQUEST.prompt, answer_format="calls", tools=json.dumps([]))
    plain = Request(REQUEST.prompt, answer_format="calls")
    assert len({response_key("m", request) for request in (REQUEST, other, plain)}) == 3
    seeded = [Request("Hello", sampling=Sampling(seed=1), tools=tools) for tools in ("", "[]", REQUEST.tools)]
    assert len({request.with_own_seed().seed for request in seeded}) == 3
    assert decode_request(encode_request(REQUEST)) == REQUEST
    assert "tools" not in encode_request(Request("Hello"))
    with ChatServer(lambda *_: CALL) as server:
        settings = settings_in(tmp_path, server.url)
        for _ in range(2):
            with engine_for(settings) as engine:
                (found,) = engine.answers([REQUEST])
                assert isinstance(found, Response)
                assert calls_in(found.tool_calls) == CALLED
        assert server.count == 1
        with engine_for(settings) as engine:
            engine.answers([other])
        assert server.count == 2
    with Store(settings.store) as store:
        assert [calls_in(each.response.tool_calls) for each in store.all_recorded()] == [CALLED, CALLED]


def test_a_batch_sends_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-4711")
    target: Any = open_target("openai:m", folder_settings(base_url="http://127.0.0.1:1/v1"))
    client = target.batch_client()
    assert isinstance(client, ChatBatches)
    assert json.loads(client.line("k", REQUEST))["body"]["tools"] == TOOLS


def test_models_that_the_plugin_runs_get_no_tools(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    for name in ("local:m.gguf", "transformers:m.gguf"):
        target = open_target(name, settings_in(tmp_path))
        with pytest.raises(TargetError, match="cannot use tools"):
            asyncio.run(target.ask(REQUEST))
