"""Targets `litellm:PROVIDER/MODEL`, with the real package and real HTTP on the loopback interface."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.records import Request, Response, Sampling
from pytest_fairness.targets import check_spec, open_target
from tests.support.asking import ask_once, settings_in
from tests.support.servers import ChatServer, Reply

installed = pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def ask(server: ChatServer, request: Request = Request("hello"), **settings: Any) -> Response:  # noqa: B008 - immutable
    spec = f"litellm:openai/m base_url={server.url} api_key_env=LITELLM_TEST_KEY"
    return ask_once(spec, settings_in(Path.cwd(), **settings), request)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_TEST_KEY", "lt-s3cret")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it downloads prices


@installed
def test_requests_have_messages_sampling_and_key() -> None:
    with ChatServer(lambda *_: Reply("fine lt-s3cret", fingerprint="fp")) as server:
        response = ask(server, Request("hello", system="Be kind.", sampling=Sampling(temperature=0.5, max_tokens=7)))
        assert (response.text, response.finish_reason, response.fingerprint) == ("fine [key]", "stop", "fp")
        assert (response.prompt_tokens, response.completion_tokens) == (3, 2)
        body = server.bodies[0]
        assert [message["content"] for message in body["messages"]] == ["Be kind.", "hello"]
        assert (body["model"], body["temperature"], body["max_tokens"]) == ("m", 0.5, 7)
        assert server.keys == ["Bearer lt-s3cret"]


@installed
@pytest.mark.parametrize(
    ("status", "kind", "retry"),
    [
        (401, TargetError, None),
        (404, TargetError, None),
        (400, RequestFailed, None),
        (429, RequestFailed, RetryReason.OVERLOADED),
        (500, RequestFailed, RetryReason.TRANSIENT),
    ],
)
def test_errors_are_translated_and_sent_once(status: int, kind: type[Exception], retry: RetryReason | None) -> None:
    with ChatServer(script=[Reply("lt-s3cret is wrong", status=status)]) as server:
        with pytest.raises(kind) as caught:
            ask(server)
        assert server.count == 1
    assert "lt-s3cret" not in str(caught.value)
    assert getattr(caught.value, "retry", None) is retry


@installed
@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=400, raw=b'{"error": {"code": "content_filter", "message": "The response was filtered."}}'),
        Reply(status=403, raw=b'{"error": {"code": 403, "message": "your input was flagged"}}'),
        Reply(None, finish_reason="content_filter"),
    ],
)
def test_a_filter_of_the_provider_is_a_blocked_answer(reply: Reply) -> None:
    with ChatServer(script=[reply]) as server:
        assert ask(server).blocked


@installed
def test_an_answer_without_text_may_have_been_cut_off() -> None:
    with ChatServer(script=[Reply(None, finish_reason="length")]) as server:
        assert ask(server).finish_reason == "length"


@installed
def test_a_server_that_is_down_and_a_slow_one() -> None:
    with ChatServer() as server:
        pass
    with pytest.raises(RequestFailed) as caught:
        ask(server)
    assert caught.value.retry is not None
    with ChatServer(delay=5) as slow, pytest.raises(RequestFailed, match="in time") as late:
        ask(slow, timeout=0.5)
    assert late.value.retry is RetryReason.TIMEOUT


WITH_TOOLS = Request("hello", answer_format="calls", tools='[{"type": "function", "function": {"name": "escalate"}}]')


@installed
def test_tools_are_sent_and_their_calls_are_read() -> None:
    with ChatServer(lambda *_: Reply(None, calls=(("escalate", '{"why": "lt-s3cret"}'),))) as server:
        response = ask(server, WITH_TOOLS)
        assert [tool["function"]["name"] for tool in server.bodies[0]["tools"]] == ["escalate"]
    assert json.loads(response.tool_calls or "") == [{"name": "escalate", "arguments": {"why": "[key]"}}]


@installed
def test_the_package_that_litellm_needs_for_tools_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class WithoutMcp:
        def find_spec(self, name: str, *_: object) -> None:
            if name.partition(".")[0] == "mcp":
                raise ModuleNotFoundError(f"No module named '{name}'")

    for name in [name for name in sys.modules if "mcp" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [WithoutMcp(), *sys.meta_path])
    said = ""
    with ChatServer() as server:
        try:
            ask(server, WITH_TOOLS)  # newer versions of LiteLLM need it for servers of tools only
        except TargetError as error:
            said = str(error)
        assert server.bodies or "needs the package mcp, which LiteLLM imports" in said


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_fairness.targets.litellm.find_spec", lambda _: None)
    with pytest.raises(TargetError, match=r"needs the package litellm: pip install \"pytest-fairness\[litellm\]\""):
        check_spec("litellm:bedrock/m", settings_in(tmp_path))
    monkeypatch.setattr("pytest_fairness.targets.litellm.find_spec", lambda _: object())
    monkeypatch.delenv("LITELLM_TEST_KEY")
    with pytest.raises(TargetError, match="set the environment variable LITELLM_TEST_KEY"):
        check_spec("litellm:openai/m api_key_env=LITELLM_TEST_KEY", settings_in(tmp_path))
    with pytest.raises(TargetError, match="is not an address"):
        open_target("litellm:openai/m base_url=nowhere", settings_in(tmp_path))


@installed
def test_further_fields_are_sent() -> None:
    with ChatServer() as server:
        ask(server, Request("hello", sampling=Sampling.from_json({"reasoning_effort": "low", "top_k": 20})))
        assert (server.bodies[0]["reasoning_effort"], server.bodies[0]["top_k"]) == ("low", 20)


@installed
def test_a_server_that_only_streams_is_an_error_with_the_target_that_reads_streams() -> None:
    streams = Reply("This model supports streaming only.", status=400)
    wanted = "Use an openai: target with fairness_base_url"
    with ChatServer(script=[streams]) as server, pytest.raises(TargetError, match=wanted):
        ask(server)
