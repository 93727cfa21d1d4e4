"""Limits of size, decompression bombs and redirects, for every target over HTTP."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.errors import RequestFailed, TargetError
from pytest_fairness.records import TOO_LONG, Request, Response
from pytest_fairness.targets import open_target
from tests.support.asking import ask_once, engine_for, questions, settings_in
from tests.support.messages_server import MessagesServer
from tests.support.servers import ChatServer, Reply

TARGETS = ("http", "openai", "anthropic")
KEY = "sk-proj-0123456789abcdefghij"
LIMIT = 4 * 1024 * 1024
BOMB = gzip.compress(b" " * 10_000_000) * 100
"""A billion spaces in a megabyte."""


def server_of(kind: str, script: list[Reply]) -> ChatServer:
    return (MessagesServer if kind == "anthropic" else ChatServer)(script=script)


def spec_of(kind: str, server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> str:
    if kind == "http":
        return f"{server.url}/chat/completions"
    if kind == "anthropic":
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    return f"{kind}:model"


def ask(kind: str, server: ChatServer, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Response:
    given = {
        "http_body": '{"messages": [{"role": "user", "content": "{prompt}"}], "model": "own"}',
        "http_answer": "$.choices[0].message.content",
        **more,
    }
    return ask_once(spec_of(kind, server, monkeypatch), settings_in(Path.cwd(), server.url, **given))


def padded(size: int) -> bytes:
    return json.dumps({"choices": [{"message": {"content": "a" * size}}]}).encode()


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("form", ["plain", "gzip"])
def test_a_body_beyond_the_limit_is_one_unreadable_answer(
    kind: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, headers = b"{" + b" " * 100_000_000, {}
    if form == "gzip":
        body, headers = BOMB, {"Content-Encoding": "gzip"}
    with server_of(kind, [Reply(raw=body, headers=headers)]) as server:
        since = time.process_time()
        assert ask(kind, server, monkeypatch) == Response("", finish_reason=TOO_LONG)
        assert server.sent < 20_000_000, "what is beyond the limit is not read"
        assert time.process_time() - since < 5, "what is beyond the limit is not decompressed"


@pytest.mark.parametrize("kind", ["http", "openai"])
def test_an_answer_of_the_size_of_the_limit_is_read(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    overhead = len(padded(0))
    with server_of(kind, [Reply(raw=padded(LIMIT - overhead)), Reply(raw=padded(LIMIT - overhead + 1))]) as server:
        assert len(ask(kind, server, monkeypatch).text) == LIMIT - overhead
        assert ask(kind, server, monkeypatch).finish_reason == TOO_LONG
    with server_of(kind, [Reply(raw=padded(100))]) as server:
        assert ask(kind, server, monkeypatch, max_answer_bytes=50).finish_reason == TOO_LONG


@pytest.mark.parametrize("kind", TARGETS)
def test_the_beginning_of_a_long_error_is_shown(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = Reply(raw=b"broken here " + b" " * 100_000_000, status=500)
    with server_of(kind, [reply]) as server, pytest.raises(RequestFailed, match=r"HTTP 500.*broken here"):
        ask(kind, server, monkeypatch)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("size", [10_000, 2_000_000])
def test_deep_json_is_a_failure_of_one_request(kind: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with server_of(kind, [Reply(raw=b"[" * size)]) as server, pytest.raises(RequestFailed, match="is not"):
        ask(kind, server, monkeypatch)


def test_large_answers_do_not_delay_others(tmp_path: Path) -> None:
    def answer(messages: list[dict[str, Any]], _: Any) -> Reply:
        large = messages[-1]["content"].endswith("0")
        return Reply(raw=b"{" + b" " * 100_000_000 if large else None, text="fine")

    with ChatServer(answer) as server, engine_for(settings_in(tmp_path, server.url)) as engine:
        answers = engine.answers(questions(20))
    texts = [answer.text if isinstance(answer, Response) else answer for answer in answers]
    assert texts == ["" if number % 10 == 0 else "fine" for number in range(20)]


def test_text_of_an_application_has_the_same_limit(tmp_path: Path) -> None:
    from pytest_fairness.targets.python import CallableTarget

    settings = settings_in(tmp_path, max_answer_bytes=10)
    with engine_for(settings, CallableTarget(lambda prompt: "ü" * (6 if "0" in prompt else 5), "shop")) as engine:
        answers = engine.answers(questions(2))
    assert [(answer.text, answer.finish_reason) for answer in answers if isinstance(answer, Response)] == [
        ("", TOO_LONG),
        ("ü" * 5, None),
    ]


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("status", [302, 307, 308])
def test_a_redirect_to_another_host_is_refused(kind: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with server_of(kind, []) as elsewhere:
        where = f"{elsewhere.url}/chat/completions?token=secret-4711"
        moved = Reply(raw=b"", status=status, headers={"Location": where})
        with server_of(kind, [moved]) as server, pytest.raises(TargetError) as raised:
            ask(kind, server, monkeypatch)
        assert elsewhere.count == 0, "nothing is sent there"
    said = str(raised.value)
    assert f"127.0.0.1:{server.port}" in said
    assert f"127.0.0.1:{elsewhere.port}" in said
    assert "redirects to another host" in said
    assert "secret" not in said
    assert KEY not in said


def test_a_redirect_within_the_host_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = Reply(raw=b" " * 1_000_000, status=307, headers={"Location": "/v2/chat/completions"})
    with server_of("openai", [moved]) as server:
        assert ask("openai", server, monkeypatch).text
        assert server.bodies[0] == server.bodies[1]
        server.script, before = [moved] * 9, server.count
        with pytest.raises(RequestFailed, match=r"redirects in a loop .more than 2 redirects") as raised:
            ask("openai", server, monkeypatch)
        assert raised.value.retry is None
        assert server.count == before + 3


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_that_makes_a_get_of_a_post_is_an_error_of_the_address(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = Reply(raw=b"", status=status, headers={"Location": "/welcome"})
    with server_of("openai", [moved]) as server:
        with pytest.raises(
            TargetError, match=r"/welcome, which would be asked by GET .HTTP 30.*nothing was sent there"
        ):
            ask("openai", server, monkeypatch)
        assert server.count == 1


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_user_password_and_query_are_never_shown(
    kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    said = "me:p%40ss-word p@ss-word bWU6cEBzcy13b3Jk q-4711"
    with server_of(kind, [Reply(said, status=400), Reply(said), Reply(said)]) as server:
        address = f"http://me:p%40ss-word@127.0.0.1:{server.port}/v1/?key=q-4711"
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address)

        async def once() -> Response:
            target = open_target(f"{kind}:model", settings_in(Path.cwd(), address))
            assert "ss-word" not in target.identity + target.name
            await target.open()
            try:
                return await target.ask(Request("hello"))
            finally:
                await target.close()

        with pytest.raises(RequestFailed) as raised:
            asyncio.run(once())
        told = f"{raised.value} {asyncio.run(once()).text} {caplog.text}"
    path = "/v1/v1/messages" if kind == "anthropic" else "/v1/chat/completions"
    assert [head[":path"] for head in server.heads] == [f"{path}?key=q-4711"] * 2, "the query stays behind the path"
    assert "pytest_fairness.targets.http_client:" in caplog.text
    for secret in ("ss-word", "4711", "bWU6"):
        assert secret not in told
