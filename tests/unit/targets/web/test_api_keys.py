"""Removal of keys from answers and messages."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.errors import RequestFailed
from pytest_fairness.records import Request, Response
from pytest_fairness.targets import open_target
from pytest_fairness.targets.secrets import environment_redactor, is_distinct, secret_remover, secrets_of
from tests.support.asking import settings_in
from tests.support.messages_server import MessagesServer
from tests.support.servers import ChatServer, Reply

KEYS = ("correct-horse-battery", "/abcdefg+hij=", 'quo"te\\key', "sp ace&4711", "a1b2", "abcdefgh")


def forms(key: str) -> list[str]:
    raw = key.encode()
    return [
        key,
        json.dumps(key),
        quote(key, safe=""),
        quote(key, safe="").lower(),
        quote_plus(key),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
    ]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("kind", ["openai", "anthropic", "http"])
def test_the_key_is_hidden_in_every_form(kind: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = " ".join(forms(key))
    server_type = MessagesServer if kind == "anthropic" else ChatServer
    with server_type(script=[Reply(f"you said {said}"), Reply(f"no, {said}", status=400)]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", key)
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
        monkeypatch.setenv("SERVICE_LOGIN", key)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        settings = settings_in(
            Path.cwd(),
            server.url,
            http_body='{"messages": [{"role": "user", "content": "{prompt}"}], "model": "own"}',
            http_answer="$.choices[0].message.content",
            http_headers=("X-Login: ${SERVICE_LOGIN}",),
        )

        async def ask() -> Response:
            spec = f"{server.url}/chat/completions" if kind == "http" else f"{kind}:model"
            target = open_target(spec, settings)
            await target.open()
            try:
                return await target.ask(Request("hello"))
            finally:
                await target.close()

        answer = asyncio.run(ask()).text
        with pytest.raises(RequestFailed) as raised:
            asyncio.run(ask())
    for text in (answer, str(raised.value)):
        assert "[key]" in text
        assert not [form for form in forms(key) if form.strip('="') in text]


def test_a_short_word_stays_in_answers_and_not_in_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_distinct("none")
    assert not is_distinct("ollama")
    assert is_distinct("lm-studio")
    assert secret_remover(["none"])("none of these") == "[key] of these"


def test_user_password_and_query_of_an_address_are_secret() -> None:
    found = secrets_of("https://me:p%40ss@host/v1?key=a%20b&x")
    assert {"me:p%40ss", "me:p@ss", "p%40ss", "p@ss", "a%20b", "a b"} <= set(found)
    assert secrets_of("http://localhost:8000/v1") == []


def test_keys_of_the_environment_in_other_forms() -> None:
    redact = environment_redactor({"SHOP_TOKEN": "tok/4711+abc"})
    assert redact(" ".join(forms("tok/4711+abc"))).replace("[key]", "").replace('"', "").strip("= ") == ""


@given(st.text(min_size=1, max_size=30), st.text(max_size=50))
def test_hiding_takes_any_text(key: str, text: str) -> None:
    hidden = secret_remover([key])(text + key + text)
    assert "[key]" in hidden
