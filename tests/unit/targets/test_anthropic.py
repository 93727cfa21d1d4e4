"""Targets `anthropic:MODEL`, with a real server on the loopback interface."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.records import Request, Response, Sampling
from pytest_fairness.targets import check_spec, open_target
from tests.support.asking import engine_for, questions, settings_in, texts
from tests.support.messages_server import MessagesServer
from tests.support.projects import KIM, LOU, Project
from tests.support.servers import Body, Messages, Reply, fair_answer

KEY = "sk-ant-1234567890"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def ask(server: MessagesServer, request: Request | None = None) -> Response:
    async def once() -> Response:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ANTHROPIC_BASE_URL", server.url)
            target = open_target("anthropic:claude", settings_in(Path.cwd()))
        await target.open()
        try:
            return await target.ask(request or Request("hello"))
        finally:
            await target.close()

    return asyncio.run(once())


def after(*script: Reply) -> Response:
    with MessagesServer(script=script) as server:
        return ask(server)


def test_requests_and_responses_are_converted() -> None:
    with MessagesServer(lambda *_: "two words") as server:
        sampling = Sampling(temperature=0.5, top_p=0.9, max_tokens=7, seed=3)
        response = ask(server, Request("a b c", system="Be kind.", sampling=sampling, trial=2))
        assert server.bodies == [
            {
                "model": "claude",
                "system": "Be kind.",
                "messages": [{"role": "user", "content": "a b c"}],
                "temperature": 0.5,
                "top_p": 0.9,
                "max_tokens": 7,
            }
        ]
        assert server.keys == [f"Bearer {KEY}"]
        assert server.heads[0]["anthropic-version"] == "2023-06-01", "later versions of the API take no temperature"
    assert response == Response("two words", "stop", 3, 2, model="claude")


def test_max_tokens_is_always_sent_and_other_defaults_are_not() -> None:
    with MessagesServer() as server:
        ask(server)
        assert server.bodies == [
            {"model": "claude", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4096}
        ]
        assert server.heads[0]["anthropic-version"] > "2023-06-01"


def takes_no_temperature(_messages: Messages, body: Body) -> Reply:
    there = [name for name in ("temperature", "top_p") if name in body]
    return Reply(f"`{there[0]}` is deprecated for this model.", status=400) if there else Reply("fine")


def test_a_temperature_of_one_is_left_out_for_models_that_take_none(tmp_path: Path) -> None:
    with MessagesServer(takes_no_temperature) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANTHROPIC_BASE_URL", server.url)
        with engine_for(settings_in(tmp_path, concurrency=1), "anthropic:claude") as engine:
            asked = questions(4, temperature=1.0, top_p=1.0)
            assert texts(engine.answers(asked)) == ["fine"] * 4
        assert ["temperature" in body for body in server.bodies].count(True) == 1
        assert server.count == 5


def test_a_rejected_temperature_is_named() -> None:
    with (
        MessagesServer(takes_no_temperature) as server,
        pytest.raises(
            RequestFailed, match=r"does not accept temperature 0.5 .*Remove these parameters from the probe's"
        ) as raised,
    ):
        ask(server, Request("hello", sampling=Sampling(temperature=0.5)))
    assert raised.value.retry is None


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_stop_reasons_become_finish_reasons(said: str, reason: str) -> None:
    assert after(Reply("hi", finish_reason=said)).finish_reason == reason


def test_only_a_refusal_may_have_no_text() -> None:
    assert after(Reply(None, finish_reason="refusal")) == Response("", "refusal", 1, 0, model="claude")
    with pytest.raises(RequestFailed, match=r"the message of .* has no text .stop_reason 'end_turn'"):
        after(Reply(None))


def test_an_answer_without_text_may_have_been_cut_off_or_broken_off() -> None:
    assert after(Reply(None, finish_reason="length")) == Response("", "length", 1, 0, model="claude")
    with pytest.raises(RequestFailed, match=r"broke off the answer .finish_reason 'error'") as caught:
        after(Reply("The pers", finish_reason="error"))
    assert caught.value.retry is RetryReason.TRANSIENT


@pytest.mark.parametrize(
    "said", ["Output blocked by content filtering policy", "Your input was flagged by our safety system."]
)
def test_a_filtered_request_is_a_blocked_answer(said: str) -> None:
    assert after(Reply(said, status=400)).blocked


def test_thoughts_come_before_the_text() -> None:
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}]
    raw = json.dumps({"content": content, "stop_reason": "end_turn"}).encode()
    assert after(Reply(raw=raw)) == Response("<think>hm</think>yes", "stop")


@pytest.mark.parametrize(
    ("reply", "retry"),
    [
        (Reply(status=429), RetryReason.OVERLOADED),
        (Reply(status=529), RetryReason.OVERLOADED),
        (Reply(status=500), RetryReason.TRANSIENT),
        (Reply("too long", status=413), None),
        (Reply("temperature: range: 0..1", status=400), None),
        (Reply(raw=b"<html>"), RetryReason.TRANSIENT),
        (Reply(broken="reset"), RetryReason.TRANSIENT),
        (Reply(broken="half"), RetryReason.TRANSIENT),
    ],
)
def test_errors_of_one_request_say_whether_to_retry(reply: Reply, retry: RetryReason) -> None:
    with pytest.raises(RequestFailed) as caught:
        after(reply)
    assert caught.value.retry is retry
    assert "anthropic:claude" in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (
            Reply(f"invalid key {KEY}", status=401),
            r"rejects the key .HTTP 401.. Check ANTHROPIC_BASE_URL and ANTHROPIC_",
        ),
        (Reply("model: claude", status=404), r"knows no model 'claude' .HTTP 404: model: claude."),
        (Reply("Your credit balance is too low", status=400), "the account has no credit"),
    ],
)
def test_errors_of_all_requests_end_the_target(reply: Reply, said: str) -> None:
    with pytest.raises(TargetError, match=said) as caught:
        after(reply)
    assert KEY not in str(caught.value)


def test_a_key_that_the_server_repeats_is_hidden() -> None:
    with pytest.raises(RequestFailed, match=r"\[key\] is wrong"):
        after(Reply(f"{KEY} is wrong", status=422))


def test_the_engine_retries_an_overloaded_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = [Reply(status=529), Reply(status=429, headers={"Retry-After": "0.05"})]
    with MessagesServer(lambda messages, _: str(messages[0]["content"]), script=script) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        with engine_for(settings_in(tmp_path), "anthropic:claude") as engine:
            asked = questions(6)
            engine.plan(asked)
            assert texts(engine.answers(asked)) == [request.prompt for request in asked]
            progress = engine.progress()
        assert server.count == 8
    assert (progress["sent"], progress["retried"], progress["failed"]) == (6, 2, 0)


def test_an_audit_from_end_to_end(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.probe()
    with MessagesServer(
        lambda messages, body: (
            Reply(None, finish_reason="refusal") if "Kim" in messages[0]["content"] else fair_answer(messages, body)
        )
    ) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        report = project.report(target="anthropic:claude")
        assert {item["id"]: item["verdict"] for item in report["items"]} == {KIM: "over-limit", LOU: "pass"}
        assert report["target"] == "anthropic:claude"
        assert report["requests"]["completion_tokens"] == 200
        project.run("--fairness", target="anthropic:claude")
        assert server.count == 30, "recorded answers are reused"


def test_identity_contains_model_and_endpoint_but_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_in(tmp_path, "http://localhost:1/v1")
    assert open_target("anthropic:m", settings).identity == "anthropic:m at https://api.anthropic.com"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://user:secret@localhost:2/")
    assert open_target("anthropic:m", settings).identity == "anthropic:m at http://localhost:2"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "localhost:2")
    with pytest.raises(TargetError, match="the value of ANTHROPIC_BASE_URL is not an address"):
        open_target("anthropic:m", settings)


def test_checking_finds_a_missing_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_spec("anthropic:m", settings_in(tmp_path))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk\u2026")
    with pytest.raises(TargetError, match="has characters that cannot be sent"):
        check_spec("anthropic:m", settings_in(tmp_path))
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(TargetError, match="needs a key: set the environment variable ANTHROPIC_API_KEY"):
        check_spec("anthropic:m", settings_in(tmp_path))


def test_further_fields_are_sent_but_no_stream_is_asked_for() -> None:
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 2000}}
    with MessagesServer() as server:
        ask(server, Request("hello", sampling=Sampling.from_json(thinking)))
        assert server.bodies[0]["thinking"] == thinking["thinking"]
        with pytest.raises(TargetError, match=r"Remove `stream` from `sampling.extra`"):
            ask(server, Request("hello", sampling=Sampling.from_json({"stream": True})))
        assert server.count == 1


def test_a_parameter_of_one_is_left_out_beside_another_value() -> None:
    def answer(_messages: Messages, body: Body) -> Reply:
        both = {"temperature", "top_p"} <= body.keys()
        return Reply("`temperature` and `top_p` cannot both be specified.", status=400) if both else Reply("fine")

    request = Request("hello", sampling=Sampling(temperature=1.0, top_p=0.5))
    with MessagesServer(answer) as server, pytest.raises(RequestFailed) as caught:
        ask(server, request)
    assert caught.value.retry is RetryReason.REPHRASED


def events(*parts: Mapping[str, object]) -> Reply:
    raw = b"".join(f"event: {part['type']}\ndata: {json.dumps(part)}\n\n".encode() for part in parts)
    return Reply(raw=raw, headers={"Content-Type": "text/event-stream"})


MESSAGE = {"type": "message_start", "message": {"model": "served", "content": [], "usage": {"input_tokens": 3}}}


def part(index: int, block: dict[str, object], **delta: str) -> list[dict[str, object]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": {key: text}} for key, text in delta.items()),
    ]


def test_a_server_that_only_streams_is_asked_for_a_stream() -> None:
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}

    def answer(_messages: Messages, body: Body) -> Reply:
        if not body.get("stream"):
            return Reply("This endpoint supports streaming only.", status=400)
        thinking = part(0, {"type": "thinking", "thinking": ""}, thinking="hm")
        said = part(1, {"type": "text", "text": ""}, text="two words")
        call = part(2, {"type": "tool_use", "name": "approve", "input": {}}, partial_json='{"score": 1}')
        return events(MESSAGE, *thinking, *said, *call, {"type": "ping"}, end, {"type": "message_stop"})

    with MessagesServer(answer) as server:
        with pytest.raises(RequestFailed, match="streaming only") as caught:
            ask(server)
        assert caught.value.retry is RetryReason.REPHRASED
    with MessagesServer(lambda messages, _body: answer(messages, {"stream": True})) as server:
        found = ask(server)
    assert (found.text, found.finish_reason, found.model) == ("<think>hm</think>two words", "stop", "served")
    assert (found.prompt_tokens, found.completion_tokens) == (3, 2)
    assert found.tool_calls is not None
    assert '"score": 1' in found.tool_calls.replace("\\", "")


def test_a_stream_that_breaks_off_is_no_answer() -> None:
    cut = events(MESSAGE, *part(0, {"type": "text", "text": ""}, text="The p"))
    with MessagesServer(script=[cut]) as server, pytest.raises(RequestFailed, match="is not a message"):
        ask(server)
