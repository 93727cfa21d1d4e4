"""Targets `http://…`: requests, responses, errors and secrets."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.records import Request, Response, Sampling
from pytest_fairness.targets import check_spec, open_target
from pytest_fairness.targets.http import JsonTemplate
from pytest_fairness.targets.web import public_address
from tests.support.asking import engine_for, questions, settings_in, texts
from tests.support.servers import ChatServer, Reply

BODY = '{"messages": [{"role": "user", "content": "{prompt}"}], "seed": "{seed}", "model": "own"}'
CONTENT = "$.choices[0].message.content"
KEY = "service-key-4711"


def ask(server: ChatServer, *requests: Request, query: str = "", **settings: Any) -> list[Response]:
    async def all_of_them() -> list[Response]:
        given = {"http_body": BODY, "http_answer": CONTENT, **settings}
        target = open_target(f"{server.url}/chat/completions{query}", settings_in(Path.cwd(), **given))
        await target.open()
        try:
            return [await target.ask(request) for request in requests or [Request("hello")]]
        finally:
            await target.close()

    return asyncio.run(all_of_them())


def answering(content: Any) -> ChatServer:
    return ChatServer(script=[Reply(raw=json.dumps(content).encode())])


# What is sent


def test_placeholders_become_values_and_never_structure() -> None:
    template = JsonTemplate(
        '{"q": "{prompt}", "t": "{temperature}", "s": "{seed}", '
        '"m": [{"system": "{system}"}, {"user": "Q: {prompt}"}], '
        '"k": {"system": "{system}", "fixed": [1, null, "{{x}}"]}}',
        ("prompt", "system", "temperature", "seed"),
    )
    prompt = '"}], {system} \\ \n{"x": "'
    assert template.filled({"prompt": prompt, "system": None, "temperature": 0.5, "seed": 3}) == {
        "q": prompt,
        "t": 0.5,
        "s": 3,
        "m": [{"user": f"Q: {prompt}"}],
        "k": {"fixed": [1, None, "{x}"]},
    }
    filled = template.filled({"prompt": "p", "system": "kind", "temperature": None, "seed": None})
    assert filled["m"] == [{"system": "kind"}, {"user": "Q: p"}]
    assert "t" not in filled


@given(st.text(), st.text())
def test_any_prompt_arrives_unchanged(prompt: str, system: str) -> None:
    template = JsonTemplate('{"a": ["{prompt}", {"b": "{system}"}]}', ("prompt", "system"))
    sent = json.dumps(template.filled({"prompt": prompt, "system": system}))
    assert json.loads(sent) == {"a": [prompt, {"b": system}]}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text("ab", max_size=3),
        lambda s: st.lists(s) | st.dictionaries(st.text("ab"), s),
        max_leaves=8,
    )
)
def test_a_template_without_placeholders_stays_unchanged(document: Any) -> None:
    assert JsonTemplate(json.dumps(document), ()).filled({}) == document


def test_a_system_prompt_without_placeholder_goes_before_the_prompt() -> None:
    with ChatServer() as server:
        ask(server, Request("hello", system="Be kind.", sampling=Sampling(seed=4, temperature=1.0)))
        assert server.bodies == [
            {"messages": [{"role": "user", "content": "Be kind.\n\nhello"}], "seed": 4, "model": "own"}
        ]


def test_headers_are_filled_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_LOGIN", f" {KEY}\n")
    with ChatServer() as server:
        ask(server, http_headers=("Authorization: Bearer ${SERVICE_LOGIN}", "X-Client:tests"))
        assert server.keys == [f"Bearer {KEY}"]
        assert server.heads[0]["x-client"] == "tests"
        assert server.heads[0]["content-type"] == "application/json"
        ask(server, http_headers=("content-type: application/vnd.shop+json",))
        assert server.heads[1]["content-type"] == "application/vnd.shop+json"


# What is read

THOUGHT = "<think>hm</think>yes"


@pytest.mark.parametrize(
    ("path", "content", "text"),
    [
        ("$.answer", {"answer": "yes"}, "yes"),
        ("$.answer", {"answer": ""}, ""),
        ("$.answer", {"answer": ["a", "ü"]}, '["a", "ü"]'),
        ("$.items[*].title", {"items": [{"title": "a"}, {"title": "b"}]}, '["a", "b"]'),
        ("$[0].text", [{"text": "first"}], "first"),
        ("$", "alone", "alone"),
        ("$.choices[0].message.content", {"choices": [{"message": {"content": "yes", "reasoning": "hm"}}]}, THOUGHT),
        ("$.content", {"content": "yes"}, "yes"),
    ],
)
def test_the_answer_is_the_value_at_the_path(path: str, content: Any, text: str) -> None:
    with answering(content) as server:
        assert ask(server, http_answer=path) == [Response(text)]


def test_plain_text_is_read_if_the_path_is_the_whole_document() -> None:
    reply = Reply(raw=b"A lamp.", headers={"Content-Type": "text/plain; charset=utf-8"})
    with ChatServer(script=[reply]) as server:
        assert ask(server, http_answer="$") == [Response("A lamp.")]


@pytest.mark.parametrize(
    ("content", "there"),
    [
        ({"text": 1, "took": 2}, "it has the keys text, took"),
        ([1, 2], "it is a list of 2 values"),
        ("hm", "it is not an object"),
    ],
)
def test_an_empty_path_names_the_keys_of_the_response(content: Any, there: str) -> None:
    with answering(content) as server, pytest.raises(RequestFailed, match=r"nothing at \$\.answer") as raised:
        ask(server, http_answer="$.answer")
    assert there in str(raised.value)


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        ({"text": "a lamp"}, "an object, but must match text. Try $.answer.text."),
        (True, "a boolean, but must match text. The value is true."),
        (4, "a number, but must match text. The value is 4."),
        (None, "null, but must match text."),
        (["a", 1], 'a list, but must match text. The value is ["a", 1].'),
        ({"a text": "a lamp"}, 'an object, but must match text. Try $.answer["a text"].'),
        ({KEY: "a lamp"}, 'an object, but must match text. Try $.answer["[key]"].'),
        ({"keys": [KEY * 20]}, 'an object, but must match text. The value is {"keys": ["[key]'),
    ],
)
def test_a_value_of_the_wrong_type_is_shown(found: Any, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_LOGIN", KEY)
    with answering({"answer": found}) as server, pytest.raises(RequestFailed) as raised:
        ask(server, http_answer="$.answer", http_headers=("X-Login: ${SERVICE_LOGIN}",))
    assert f"$.answer (ini fairness_http_answer) matches {shown}" in str(raised.value)
    assert raised.value.retry is None
    assert KEY not in str(raised.value)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(("found", "fails"), [(["a", "b"], False), ({"titles": ["a"]}, False), (3, True), (None, True)])
def test_answers_with_lists_may_be_json_lists(found: Any, *, fails: bool) -> None:
    question = Request("hello", answer_format="list")
    with answering({"answer": found}) as server:
        if fails:
            with pytest.raises(RequestFailed, match="but must match text or a list"):
                ask(server, question, http_answer="$.answer")
        else:
            assert ask(server, question, http_answer="$.answer") == [Response(json.dumps(found))]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (72, "72"),
        (72.5, "72.5"),
        (0, "0"),
        ("72/100", "72/100"),
        ({"score": 72}, '{"score": 72}'),
        (True, None),
        ([72], None),
        (None, None),
    ],
)
def test_answers_with_numbers_may_be_json_numbers(found: Any, text: str | None) -> None:
    question = Request("hello", answer_format="number")
    with answering({"answer": found}) as server:
        if text is None:
            with pytest.raises(RequestFailed, match="but must match a number or text"):
                ask(server, question, http_answer="$.answer")
        else:
            assert ask(server, question, http_answer="$.answer") == [Response(text)]


def test_a_path_that_never_matches_text_ends_the_target(tmp_path: Path) -> None:
    with ChatServer(lambda *_: Reply(raw=b'{"answer": {"text": "a lamp"}}')) as server:
        settings = settings_in(tmp_path, http_body=BODY, http_answer="$.answer", concurrency=2)
        with engine_for(settings, f"{server.url}/chat/completions") as engine:
            answers = engine.answers(questions(40))
        assert 8 <= server.count <= 12
    assert all("matches an object, but must match text" in str(answer) for answer in answers)


def test_a_path_that_never_matches_ends_the_target(tmp_path: Path) -> None:
    with ChatServer() as server:
        settings = settings_in(tmp_path, http_body=BODY, http_answer="$.reply", concurrency=2)
        with engine_for(settings, f"{server.url}/chat/completions") as engine:
            answers = engine.answers(questions(40))
        assert 8 <= server.count <= 12
    assert any("The 7 previous answers were also unreadable" in str(answer) for answer in answers)


def test_one_unreadable_answer_does_not_affect_others(tmp_path: Path) -> None:
    def now_and_then(messages: list[dict[str, Any]], _: Any) -> Reply:
        empty = int(messages[0]["content"].split()[-1]) >= 2
        return Reply(raw=b'{"error": "not today"}') if empty else Reply("fine")

    with ChatServer(now_and_then) as server:
        settings = settings_in(tmp_path, http_body=BODY, http_answer=CONTENT, concurrency=1)
        with engine_for(settings, f"{server.url}/chat/completions") as engine:
            answers = engine.answers(questions(20))
        assert server.count == 20
    assert texts(answers[:2]) == ["fine", "fine"]
    assert all(isinstance(answer, RequestFailed) for answer in answers[2:])


# What goes wrong


@pytest.mark.parametrize(
    ("reply", "retry"),
    [
        (Reply(broken="reset"), RetryReason.TRANSIENT),
        (Reply(broken="half"), RetryReason.TRANSIENT),
        (Reply(raw=b"<html>busy</html>"), RetryReason.TRANSIENT),
        (Reply(status=500), RetryReason.TRANSIENT),
        (Reply(status=429, headers={"Retry-After": "7"}), RetryReason.OVERLOADED),
        (Reply(status=503), RetryReason.OVERLOADED),
        (Reply("text: field required", status=422), None),
        (Reply(delay=5), RetryReason.TIMEOUT),
    ],
)
def test_errors_of_one_request_say_whether_to_retry(reply: Reply, retry: RetryReason) -> None:
    with ChatServer(script=[reply]) as server, pytest.raises(RequestFailed) as raised:
        ask(server, timeout=0.3 if reply.delay else 10.0)
    assert raised.value.retry is retry
    assert raised.value.retry_after == (7 if "Retry-After" in reply.headers else None)
    assert f"127.0.0.1:{server.port}/v1/chat/completions" in str(raised.value)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(status=401), "rejects the request .HTTP 401.. No header has a key"),
        (Reply(status=403), "rejects the request"),
        (Reply("no such page", status=404), "was not found .HTTP 404: .*no such page.*. Check the address"),
        (Reply(status=405), "accepts no POST"),
        (Reply(status=307, headers={"Location": "/v2?key=1"}), r"has moved to http://127.0.0.1:\d+/v2 .HTTP 307."),
    ],
)
def test_errors_of_all_requests_end_the_target(reply: Reply, said: str) -> None:
    with ChatServer(script=[reply]) as server, pytest.raises(TargetError, match=said):
        ask(server)


OPENAI = {"http_answer": "$.choices[0].message.content"}
GEMINI = {"http_answer": "$.candidates[0].content.parts[0].text"}


@pytest.mark.parametrize(
    ("settings", "status", "body", "blocked"),
    [
        (OPENAI, 400, {"error": {"code": "content_filter", "message": "filtered"}}, True),
        (OPENAI, 403, {"error": {"code": 403, "message": "no", "metadata": {"reasons": ["harassment"]}}}, True),
        (OPENAI, 200, {"choices": [{"message": {"content": None}, "finish_reason": "content_filter"}]}, True),
        (OPENAI, 200, {"choices": [{"message": {"content": "The"}, "finish_reason": "content_filter"}]}, True),
        (GEMINI, 200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, True),
        (GEMINI, 200, {"candidates": [{"finishReason": "SAFETY", "index": 0}]}, True),
        (OPENAI, 200, {"choices": [{"message": {"content": ""}, "finish_reason": "length"}]}, False),
        (GEMINI, 200, {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]}, False),
    ],
)
def test_a_service_says_that_an_answer_was_blocked_or_cut_off(
    settings: dict[str, str], status: int, body: Any, blocked: bool
) -> None:
    with ChatServer(script=[Reply(status=status, raw=json.dumps(body).encode())]) as server:
        (response,) = ask(server, **settings)
    assert (response.blocked, response.finish_reason == "length") == (blocked, not blocked)


def test_a_403_after_an_answer_is_due_to_the_request() -> None:
    script = [Reply("fine"), Reply("no such page", status=403)]
    with ChatServer(script=script) as server, pytest.raises(RequestFailed, match=r"HTTP 403 .*no such page"):
        ask(server, Request("hello"), Request("hello"), **OPENAI)


def test_a_server_that_is_down_is_unreachable() -> None:
    with ChatServer() as server:
        pass
    with pytest.raises(RequestFailed, match=r"no connection to http://127\.0\.0\.1:") as raised:
        ask(server)
    assert raised.value.retry is RetryReason.UNREACHABLE


def test_the_engine_retries_a_busy_service(tmp_path: Path) -> None:
    script = [Reply(status=503), Reply(broken="half")]
    with ChatServer(script=script) as server:
        settings = settings_in(tmp_path, http_body=BODY, http_answer=CONTENT)
        with engine_for(settings, f"{server.url}/chat/completions") as engine:
            texts(engine.answers(questions(6)))
        assert server.count == 8


# What is secret


def test_a_key_that_the_service_repeats_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_LOGIN", KEY)
    monkeypatch.setenv("SHORT", "pen")
    headers = ("X-Login: ${SERVICE_LOGIN}", "X-Short: ${SHORT}")
    with ChatServer(lambda *_: f"{KEY} opens a pen") as server:
        assert ask(server, http_headers=headers) == [Response("[key] opens a pen")]
    wrong = Reply(f"{KEY} and pen are wrong", status=400)
    told = pytest.raises(RequestFailed, match=r"\[key\] and \[key\] are wrong")
    with ChatServer(script=[wrong]) as server, told:
        ask(server, http_headers=headers)


def test_references_in_the_query_are_filled_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_LOGIN", "a/b&c=rosebud")
    repeats = Reply("a/b&c=rosebud a%2Fb%26c%3Drosebud abc-blossom", status=404)
    with ChatServer(script=[repeats]) as server, pytest.raises(TargetError) as raised:
        ask(server, query="?key=${SERVICE_LOGIN}&own=abc-blossom")
    assert "rosebud" not in str(raised.value)
    assert "blossom" not in str(raised.value)


def test_the_client_logs_no_secrets(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("SERVICE_LOGIN", "a/b&c=rosebud")
    caplog.set_level("DEBUG")
    with ChatServer() as server:
        ask(server, query="?key=${SERVICE_LOGIN}&own=abc-blossom", http_headers=("Authorization: ${SERVICE_LOGIN}",))
    assert "/chat/completions" in caplog.text
    assert "rosebud" not in caplog.text
    assert "blossom" not in caplog.text


def test_identity_depends_on_everything_that_changes_answers_but_has_no_secret(tmp_path: Path) -> None:
    url = "http://host/ask"
    spellings: list[tuple[str, dict[str, Any]]] = [
        (url, {}),
        (f"{url}?model=a", {}),
        (f"{url}?model=b", {}),
        (url, {"http_body": '{"q": "{prompt}"}'}),
        (url, {"http_answer": "$.reply"}),
        (url, {"http_headers": ("X-Tenant: secret-1",)}),
        (url, {"target_version": "2"}),
        ("https://host/ask", {}),
    ]
    targets = [open_target(spec, settings_in(tmp_path, **given)) for spec, given in spellings]
    assert len({target.identity for target in targets}) == len(spellings)
    assert {target.name for target in targets} == {url, "https://host/ask"}
    assert not [target for target in targets if "secret" in target.identity or "model" in target.identity]
    assert [target.reusable for target in targets] == [False] * 6 + [True, False]


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("http://host:1/a?b", "http://host:1/a?…"),
        ("shop=https://me:pw@host/a?key=1&token=${T}#part", "shop=https://host/a?key=…&token=${T}"),
        ("openai:gpt?x=1", "openai:gpt?x=1"),
        ("a=local", "a=local"),
    ],
)
def test_secrets_of_addresses_are_removed_from_targets(typed: str, shown: str) -> None:
    assert public_address(typed) == shown


def test_check_names_missing_environment_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetError, match="the address names the environment variable SERVICE_LOGIN, which is not set"):
        check_spec("http://host/?key=${SERVICE_LOGIN}", settings_in(tmp_path))
    monkeypatch.setenv("SERVICE_LOGIN", "two\nlines")
    settings = settings_in(tmp_path, http_headers=("X-Key: ${SERVICE_LOGIN}",))
    with pytest.raises(TargetError, match="the header X-Key has characters that cannot be sent") as raised:
        check_spec("http://host/", settings)
    assert "two" not in str(raised.value)


def test_further_fields_are_added_to_the_body() -> None:
    request = Request("hello", sampling=Sampling.from_json({"top_k": 20, "options": {"think": False}}))
    with ChatServer() as server:
        ask(server, request)
    messages = [{"role": "user", "content": "hello"}]
    assert server.bodies == [{"messages": messages, "model": "own", "top_k": 20, "options": {"think": False}}]


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('{"top_k": 5, "p": "{prompt}"}', r"already has top_k; remove it from one of the two"),
        ('["{prompt}"]', r"is no JSON object"),
    ],
)
def test_further_fields_replace_nothing_in_the_body(body: str, fault: str) -> None:
    with ChatServer() as server, pytest.raises(TargetError, match=rf"`sampling.extra`, but fairness_http_body {fault}"):
        ask(server, Request("hello", sampling=Sampling.from_json({"top_k": 20})), http_body=body)
    assert server.count == 0


def test_a_stream_is_an_error_that_names_the_settings() -> None:
    stream = Reply(raw=b'data: {"a": 1}\n\n', headers={"Content-Type": "text/event-stream; charset=utf-8"})
    with ChatServer(script=[stream]) as server, pytest.raises(RequestFailed, match=r"fairness_http_body.*sampling"):
        ask(server)
