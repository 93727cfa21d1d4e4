"""Targets `openai:MODEL`, with a real server on the loopback interface that fails in every usual way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.records import Request, Response, Sampling
from pytest_fairness.targets import Target, open_target
from tests.support.asking import engine_for, settings_in
from tests.support.servers import Answer, Body, ChatServer, Messages, Reply

HELLO = Request("hello")


async def answer_of(target: Target, request: Request) -> Response:
    """Ask, and once more where the server wants it put in another form, as the engine does."""
    while True:
        try:
            return await target.ask(request)
        except RequestFailed as error:
            if error.retry is not RetryReason.REPHRASED:
                raise


def fault_of(*script: Reply, **settings: Any) -> RequestFailed:
    """Ask once, a server that gives this reply, which is no answer."""
    with ChatServer(script=script) as server, pytest.raises(RequestFailed) as caught:
        ask(server, **settings)
    assert server.count == 1
    return caught.value


def ask(server: ChatServer, *requests: Request, **settings: Any) -> list[Response]:
    """Ask one request after the other."""

    async def all_of_them() -> list[Response]:
        target = open_target("openai:model", settings_in(Path.cwd(), server.url, **settings))
        await target.open()
        try:
            return [await answer_of(target, request) for request in requests or [HELLO]]
        finally:
            await target.close()

    return asyncio.run(all_of_them())


def ask_with(*script: Reply) -> Response:
    """Ask once, a server that first gives these replies and then a good one."""
    with ChatServer(script=script) as server:
        return ask(server)[0]


def test_only_sampling_parameters_that_are_set_are_sent() -> None:
    with ChatServer() as server:
        sampling = Sampling(temperature=0.0, max_tokens=5, seed=3)
        ask(server, HELLO, Request("hello", "be kind", sampling, trial=2))
        assert server.bodies == [
            {"model": "model", "messages": [{"role": "user", "content": "hello"}]},
            {
                "model": "model",
                "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}],
                "temperature": 0.0,
                "max_tokens": 5,
                "seed": 3,
            },
        ]
        assert server.connections == 1


def test_text_reason_and_tokens_are_read() -> None:
    assert ask_with(Reply("two words", finish_reason="length")) == Response("two words", "length", 1, 2, model="model")
    assert ask_with(Reply("")) == Response("", "stop", 1, 0, model="model")
    served = ask_with(Reply("hi", model="gpt-x-2026-05", fingerprint="fp_1"))
    assert (served.model, served.fingerprint, served.served) == ("gpt-x-2026-05", "fp_1", "gpt-x-2026-05 (fp_1)")


@pytest.mark.parametrize(
    ("reply", "text", "reason"),
    [
        (Reply(None, refusal="I can't help."), "I can't help.", "refusal"),
        (Reply("Well.", refusal="I can't help."), "Well.", "refusal"),
        (Reply(None, finish_reason="content_filter"), "", "content_filter"),
        (Reply([{"type": "text", "text": "two "}, {"type": "text", "text": "parts"}]), "two parts", "stop"),
        (
            Reply(
                [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]
            ),
            "<think>hm</think>yes",
            "stop",
        ),
    ],
)
def test_unusual_completions_are_read(reply: Reply, text: str, reason: str) -> None:
    answer = ask_with(reply)
    assert (answer.text, answer.finish_reason) == (text, reason)


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("content", ["yes", None, ""])
def test_thoughts_beside_the_text_come_before_it(key: str, content: str | None) -> None:
    raw = {"choices": [{"message": {"content": content, key: "Perhaps no?"}, "finish_reason": "length"}]}
    found = ask_with(Reply(raw=json.dumps(raw).encode()))
    assert found == Response(f"<think>Perhaps no?</think>{content or ''}", "length")
    without = {"choices": [{"message": {"content": "yes", key: ""}}]}
    assert ask_with(Reply(raw=json.dumps(without).encode())).text == "yes"


def test_a_completion_without_usage_is_read() -> None:
    bare = {"choices": [{"message": {"content": "hi"}}]}
    assert ask_with(Reply(raw=json.dumps(bare).encode())) == Response("hi")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<html>busy</html>",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{"message": null}]}',
        b"\xff",
    ],
)
def test_a_malformed_completion_is_an_error(raw: bytes) -> None:
    with pytest.raises(
        RequestFailed, match=r"openai:model: the response of http://127.0.0.1:\d+/v1 is not a chat completion"
    ):
        ask_with(Reply(raw=raw))


def test_a_completion_without_text_is_an_error_unless_it_was_cut_off() -> None:
    with pytest.raises(RequestFailed, match=r"has no text .finish_reason 'stop'."):
        ask_with(Reply(None))
    assert ask_with(Reply(None, finish_reason="MAX_TOKENS")).finish_reason == "length"


def error(status: int, **fields: Any) -> Reply:
    return Reply(status=status, raw=json.dumps({"error": {"message": "no", **fields}}).encode())


@pytest.mark.parametrize(
    "reply",
    [
        error(400, code="content_filter", param="prompt"),
        error(400, code=None, innererror={"code": "ResponsibleAIPolicyViolation"}),
        error(400, code="content_policy_violation"),
        error(403, code=403, metadata={"reasons": ["harassment"]}),
        error(403, message="The model requires moderation and your input was flagged"),
        error(403, message="Content violates usage guidelines."),
        error(400, message="Content Exists Risk", type="invalid_request_error"),
        error(400, code="DataInspectionFailed"),
        Reply(status=400, raw=b'{"promptFeedback": {"blockReason": "SAFETY"}}'),
        Reply(status=400, raw=b'[{"error": {"message": "Prompt was blocked", "status": "INVALID_ARGUMENT"}}]'),
        Reply(raw=b'{"error": {"code": 403, "message": "Your input was flagged"}}'),
        Reply(raw=b'{"choices": [{"message": {"content": "W"}, "error": {"code": "content_filter"}}]}'),
        Reply(None, finish_reason="SAFETY"),
    ],
)
def test_a_filter_of_the_provider_is_a_blocked_answer(reply: Reply) -> None:
    assert ask_with(reply).blocked


@pytest.mark.parametrize(
    "reply",
    [
        error(400, code="context_length_exceeded", message="This prompt is longer than the content window."),
        error(400, message="Unknown parameter: 'content_filters'", type="invalid_request_error"),
        error(500, code="content_filter"),
        Reply(status=400, raw=b"<html>content filter</html>"),
    ],
)
def test_other_errors_are_no_filter(reply: Reply) -> None:
    with ChatServer(lambda *_: reply) as server, pytest.raises(RequestFailed):
        ask(server)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"choices": [{"message": {"content": "The p"}, "finish_reason": "error"}]}',
        b'{"choices": [{"message": {"content": "The p"}, "finish_reason": "insufficient_system_resource"}]}',
        b'{"choices": [{"message": {"content": "The p"}, "finish_reason": "stop", "error": {"message": "idle"}}]}',
        b'{"choices": [{"message": {"content": "The p"}, "finish_reason": "stop"}], "error": "upstream"}',
    ],
)
def test_an_answer_that_the_server_broke_off_is_a_failed_request(raw: bytes) -> None:
    with pytest.raises(RequestFailed, match="broke off the answer") as caught:
        ask_with(Reply(raw=raw))
    assert caught.value.retry is RetryReason.TRANSIENT


def test_a_403_after_an_answer_is_due_to_the_request() -> None:
    script = [Reply("fine"), error(403, message="page blocked")]
    with ChatServer(script=script) as server, pytest.raises(RequestFailed, match=r"HTTP 403 from .*: page blocked"):
        ask(server, HELLO, HELLO)


@pytest.mark.parametrize(
    ("reply", "retry"),
    [
        (Reply(broken="reset"), RetryReason.TRANSIENT),
        (Reply(broken="half"), RetryReason.TRANSIENT),
        (Reply(raw=b"<html>busy</html>"), RetryReason.TRANSIENT),
        *((Reply(status=status), RetryReason.TRANSIENT) for status in (408, 409, 500, 502, 504)),
        *((Reply(status=status), RetryReason.OVERLOADED) for status in (429, 503, 529)),
        *((Reply(status=status), None) for status in (400, 413, 422)),
        (Reply(status=503, headers={"x-should-retry": "false"}), None),
    ],
)
def test_errors_of_one_request_say_whether_to_retry(reply: Reply, retry: RetryReason | None) -> None:
    assert fault_of(reply).retry is retry


def test_a_request_that_times_out_may_be_retried() -> None:
    error = fault_of(Reply(delay=30), timeout=0.2)
    assert error.retry is RetryReason.TIMEOUT
    assert "in time. If the server is slow, raise the ini fairness_timeout." in str(error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "-7"}, None),
        ({"Retry-After": "99999999999"}, None),
        ({"Retry-After": "1e999"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "Fri, 31 Dec 2199 23:59:59 GMT"}, None),
        ({"Retry-After": "Mon, 01 Jan 1900 00:00:00 GMT"}, None),
        ({"Retry-After": "Mon, 01 Jan 0001 00:00:00 -0000"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "Fri, 99 Dec 9999 99:99:99 GMT"}, None),
        ({"Retry-After-Ms": "250", "Retry-After": "7"}, 0.25),
    ],
)
def test_retry_after_is_read_in_seconds_and_milliseconds(headers: dict[str, str], seconds: float | None) -> None:
    assert fault_of(Reply(status=429, headers=headers)).retry_after == seconds


@pytest.mark.parametrize("seconds", [3600])
def test_retry_after_may_be_a_date(seconds: int) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
    wait = fault_of(Reply(status=429, headers={"Retry-After": date})).retry_after
    assert wait == pytest.approx(max(0, seconds), abs=60 if seconds > 0 else 0)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, r"asks for an API key .HTTP 401., and none is set. Set the environment variable OPENAI_API_KEY"),
        (403, r"asks for an API key .HTTP 403., and none is set."),
        (404, r"knows no model 'model', or is not a chat endpoint .HTTP 404: no such model.. .* usually ends in /v1"),
    ],
)
def test_errors_of_all_requests_end_the_target(status: int, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        ask_with(*[Reply("no such model", status=status)] * 9)


def test_a_used_up_quota_ends_the_target() -> None:
    content = json.dumps({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}).encode()
    reply = Reply(status=429, raw=content, headers={"x-should-retry": "false"})
    with pytest.raises(TargetError, match="quota is used up"):
        ask_with(reply)


def test_a_server_that_is_down_is_unreachable() -> None:
    with ChatServer() as server:
        url = server.url
    server = ChatServer()
    server.port = int(url.rpartition(":")[2].partition("/")[0])

    async def impatient() -> None:
        target = open_target("openai:model", settings_in(Path.cwd(), url))
        await target.open()
        try:
            await target.ask(HELLO)
        finally:
            await target.close()

    with pytest.raises(
        RequestFailed, match=r"no connection to http://127.0.0.1:\d+/v1 .*Check that the server is running"
    ) as caught:
        asyncio.run(impatient())
    assert caught.value.retry is RetryReason.UNREACHABLE


def json_questions(count: int) -> Iterable[Request]:
    return (Request(f"question {number}", answer_format="json") for number in range(count))


def test_the_json_format_is_sent_to_servers_that_take_it() -> None:
    with ChatServer() as server:
        ask(server, *json_questions(2))
        assert [body["response_format"] for body in server.bodies] == [{"type": "json_object"}] * 2


@pytest.mark.parametrize(("said", "tried"), [("unknown field response_format", 1), ("unknown field", 3)])
@pytest.mark.parametrize("status", [400, 422])
def test_the_json_format_is_left_out_for_servers_that_reject_it(status: int, said: str, tried: int) -> None:
    def answer(messages: Messages, body: Body) -> Reply:
        return Reply(said, status=status) if "response_format" in body else Reply("{}")

    with ChatServer(answer) as server:
        assert [answer.text for answer in ask(server, *json_questions(5))] == ["{}"] * 5
        assert ["response_format" in body for body in server.bodies] == [*[True, False] * tried, *[False] * (5 - tried)]


@pytest.mark.parametrize("failing", [0, 2])
def test_one_failure_to_write_json_does_not_turn_the_json_format_off(failing: int) -> None:
    def answer(messages: Messages, body: Body) -> Reply:
        fails = messages[-1]["content"] == f"question {failing}" and "response_format" in body
        return Reply("Failed to generate JSON.", status=400) if fails else Reply("{}")

    with ChatServer(answer) as server:
        assert [answer.text for answer in ask(server, *json_questions(4))] == ["{}"] * 4
        sent = [(body["messages"][-1]["content"], "response_format" in body) for body in server.bodies]
        without = [question for question, has_format in sent if not has_format]
        assert without == [f"question {failing}"], "and all others in JSON"


def test_another_error_does_not_turn_the_json_format_off() -> None:
    def answer(messages: Messages, body: Body) -> Reply:
        return Reply("too long", status=400) if messages[-1]["content"] == "question 0" else Reply("{}")

    async def both() -> None:
        target = open_target("openai:model", settings_in(Path.cwd(), server.url))
        await target.open()
        first, second = json_questions(2)
        with pytest.raises(RequestFailed, match=r"HTTP 400 .*too long"):
            await answer_of(target, first)
        await answer_of(target, second)
        await target.close()

    with ChatServer(answer) as server:
        asyncio.run(both())
        assert ["response_format" in body for body in server.bodies] == [True, False, True]


def test_max_tokens_is_renamed_for_models_that_want_it() -> None:
    def answer(messages: Messages, body: Body) -> Reply:
        if "max_tokens" in body:
            return Reply("'max_tokens' is not supported, use 'max_completion_tokens' instead", status=400)
        return Reply("fine")

    request = Request("hello", sampling=Sampling(max_tokens=7))
    with ChatServer(answer) as server:
        assert [answer.text for answer in ask(server, request, request)] == ["fine", "fine"]
        assert [body.get("max_completion_tokens") for body in server.bodies] == [None, 7, 7]


def test_the_key_is_sent_but_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " sk-secret \n")
    with ChatServer(script=[Reply("sk-secret is wrong", status=400)]) as server:
        with pytest.raises(RequestFailed, match=r"\[key\] is wrong"):
            ask(server)
        assert server.keys == ["Bearer sk-secret"]
    with ChatServer(script=[Reply("sk-secret is wrong", status=401)]) as server:
        with pytest.raises(TargetError) as caught:
            ask(server)
        assert "sk-secret" not in str(caught.value)


def test_headers_of_the_environment_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer() as server:
        ask(server)
        monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-2")
        ask(server)
        names = ("openai-organization", "openai-project", "authorization")
        sent = [[head.get(name) for name in names] for head in server.heads]
    assert sent == [[None] * 3, ["org-1", "proj-2", None]]


def test_headers_that_describe_this_machine_are_not_sent() -> None:
    with ChatServer() as server:
        ask(server)
        ask(server, api_headers=("accept: text/plain", "authorization: Basic eDp5"))
    names = {"host", "accept", "accept-encoding", "connection", "content-length", "content-type", "user-agent"}
    assert [head.keys() - {"", ":path"} for head in server.heads] == [names, names | {"authorization"}]
    assert [head["accept"] for head in server.heads] == ["application/json", "text/plain"]


def test_identity_contains_model_and_endpoint_but_no_secret(tmp_path: Path) -> None:
    own = [settings_in(tmp_path, url) for url in ("http://u:p@h:1/v1/?key=1", "http://h:1/v1")]
    assert {open_target("openai:m", settings).identity for settings in own} == {"openai:m at http://h:1/v1"}
    assert open_target("openai:m", settings_in(tmp_path)).identity == "openai:m at https://api.openai.com/v1"


def test_further_fields_are_sent() -> None:
    extra = {"reasoning_effort": "low", "stop": ["\n"], "chat_template_kwargs": {"enable_thinking": False}}
    sampling = Sampling.from_json({"temperature": 0.5, **extra})
    with ChatServer() as server:
        ask(server, Request("hello", sampling=sampling))
        ask(server, Request("As JSON?", sampling=Sampling.from_json({"response_format": "own"}), answer_format="json"))
    messages = [{"role": "user", "content": "hello"}]
    assert server.bodies[0] == {"model": "model", "messages": messages, "temperature": 0.5, **extra}
    assert server.bodies[1]["response_format"] == "own"
    assert Sampling.from_json(sampling.to_json()) == sampling


def takes(*names: str) -> Answer:
    """Return answers of a model that takes no other sampling parameters than these."""

    def answer(messages: Messages, body: Body) -> Reply:
        wrong = sorted(body.keys() - {"model", "messages", "response_format", *names})
        return Reply(f"Unsupported parameter: '{wrong[0]}'", status=400) if wrong else Reply("fine")

    return answer


def test_a_seed_and_neutral_parameters_are_left_out_for_models_that_take_none() -> None:
    requests = [Request(f"{number}?", sampling=Sampling(1.0, 1.0, 9, seed=number)) for number in range(3)]
    with ChatServer(takes("max_tokens")) as server:
        assert [answer.text for answer in ask(server, *requests)] == ["fine"] * 3
    assert [len(body) - 2 for body in server.bodies] == [4, 3, 1, 1, 1], "two rejections, of the seed and of the others"


@pytest.mark.parametrize(
    ("sampling", "named"),
    [
        (Sampling(temperature=0.7, seed=1), "temperature 0.7"),
        (Sampling.from_json({"reasoning_effort": "low"}), 'reasoning_effort "low"'),
        (Sampling(max_tokens=99_999), "max_tokens 99999"),
    ],
)
def test_another_rejected_parameter_is_an_error_that_names_it(sampling: Sampling, named: str) -> None:
    with ChatServer(takes()) as server, pytest.raises(RequestFailed, match=r"the probe's `sampling`") as caught:
        ask(server, Request("hello", sampling=sampling))
    assert f"openai:model does not accept {named} (HTTP 400 from {server.url}: Unsupported" in str(caught.value)
    assert (caught.value.retry, caught.value.check) == (None, "the probe's `sampling`")


def events(*parts: Any, end: bytes = b"data: [DONE]\n\n") -> Reply:
    """Return a stream of events, with comments between them as some servers send them."""
    raw = b": alive\n\n" + b"".join(b"data: " + json.dumps(part).encode() + b"\n\n" for part in parts) + end
    return Reply(raw=raw, headers={"Content-Type": "text/event-stream"})


def delta(reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"model": "served", "choices": [{"index": 0, "delta": fields, "finish_reason": reason}]}


def test_a_server_that_only_streams_is_asked_for_a_stream() -> None:
    def answer(messages: Messages, body: Body) -> Reply:
        if not body.get("stream"):
            return Reply("This model only supports stream mode.", status=400)
        usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
        parts = [delta(role="assistant"), delta(reasoning_content="hm"), delta(content="two "), delta(content="words")]
        return events(*parts, delta("stop"), usage)

    with ChatServer(answer) as server:
        found = ask(server, HELLO, Request("again"))
    assert found == [Response("<think>hm</think>two words", "stop", 3, 2, model="served")] * 2
    assert [body.get("stream") for body in server.bodies] == [None, True, True]


def test_tool_calls_of_a_stream_are_joined() -> None:
    calls = [
        {"index": 0, "id": "c", "function": {"name": "approve", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"amount"'}},
        {"index": 0, "function": {"arguments": ": 7}"}},
    ]
    response = ask_with(events(*(delta(tool_calls=[call]) for call in calls), delta("tool_calls")))
    assert json.loads(response.tool_calls or "") == [{"name": "approve", "arguments": {"amount": 7}}]


@pytest.mark.parametrize(
    "reply",
    [
        events(delta(content="two "), end=b""),
        events(delta(content="two "), {"error": {"message": "overloaded"}}),
        events(delta(content="two "), end=b"data: {nothing\n\n"),
        events([1]),
    ],
)
def test_a_stream_that_breaks_off_is_no_answer(reply: Reply) -> None:
    assert fault_of(reply).retry is RetryReason.TRANSIENT


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_address_may_lack_its_path(path: str, host: str, tmp_path: Path) -> None:
    with ChatServer(host=host) as server:
        url = server.url.removesuffix("/v1") + path
        with engine_for(settings_in(tmp_path, url), "openai:m") as engine:
            assert all(isinstance(outcome, Response) for outcome in engine.answers([HELLO]))
    assert [head[":path"] for head in server.heads] == ["/v1/chat/completions"]


def test_a_server_may_have_its_api_at_its_root(tmp_path: Path) -> None:
    with (
        ChatServer(script=[Reply("no such page", status=404)]) as server,
        engine_for(settings_in(tmp_path, server.url.removesuffix("/v1")), "openai:m") as engine,
    ):
        assert all(isinstance(outcome, Response) for outcome in engine.answers([HELLO, Request("again")]))
    own, root = "/v1/chat/completions", "/chat/completions"
    assert [head[":path"] for head in server.heads] == [own, root, root]


def test_an_unknown_model_is_not_looked_for_at_the_root(tmp_path: Path) -> None:
    with (
        ChatServer(script=[Reply("no model m", status=404)]) as server,
        engine_for(settings_in(tmp_path, server.url.removesuffix("/v1")), "openai:m") as engine,
    ):
        (outcome,) = engine.answers([HELLO])
    assert server.count == 1
    assert "knows no model 'm'" in str(outcome)
