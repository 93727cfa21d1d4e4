"""Likelihoods from servers that echo texts, and targets that give none."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.asking.store import Store, response_key
from pytest_fairness.errors import FairnessError, RequestFailed, TargetError
from pytest_fairness.records import Request, Response, Sampling
from pytest_fairness.run import Run
from pytest_fairness.targets import open_target
from tests.support.asking import engine_for, settings_in
from tests.support.servers import Body, ChatServer, Echo, Reply, echo_by_words

NURSE = Request("The nurse said", answer_format="likelihood", continuation=" that she was tired.")


def ask(server: ChatServer, *requests: Request) -> list[Any]:
    """Ask one request after the other; what fails is given back."""

    async def all_of_them() -> list[Any]:
        target = open_target("openai:model", settings_in(Path.cwd(), server.url))
        await target.open()
        found: list[Any] = []
        try:
            for request in requests:
                try:
                    found.append(await target.ask(request))
                except FairnessError as error:
                    found.append(error)
        finally:
            await target.close()
        return found

    return asyncio.run(all_of_them())


def read(response: Response) -> list[tuple[str, float | None]]:
    told = json.loads(response.text)
    return list(zip(told["tokens"], told["log_probabilities"], strict=True))


def test_echoed_log_probabilities_are_read() -> None:
    with ChatServer(echo=echo_by_words) as server:
        (response,) = ask(server, NURSE)
    assert read(response) == [(" that", -5.0), (" she", -4.0), (" was", -4.0), (" tired.", -7.0)]
    assert (response.prompt_tokens, response.completion_tokens) == (7, 0)
    assert server.bodies == [
        {
            "model": "model",
            "prompt": "The nurse said that she was tired.",
            "echo": True,
            "max_tokens": 1,
            "logprobs": 1,
            "temperature": 0,
        }
    ]


def test_without_a_context_the_first_token_has_no_likelihood() -> None:
    with ChatServer(echo=echo_by_words) as server:
        (response,) = ask(server, Request("", answer_format="likelihood", continuation="Poets drink."))
    assert read(response) == [("Poets", None), (" drink.", -7.0)]


def test_a_token_that_a_server_puts_in_front_is_not_part_of_the_text() -> None:
    def echo(body: Body) -> Echo:
        return [("<|begin|>", None), *((token, log or -1.0) for token, log in echo_by_words(body))]

    with ChatServer(echo=echo) as server:
        whole, rest = ask(server, Request("", answer_format="likelihood", continuation="Poets drink."), NURSE)
    assert read(whole) == [("Poets", -1.0), (" drink.", -7.0)]
    assert read(rest)[0] == (" that", -5.0)


def test_tokens_that_split_a_character_share_its_place() -> None:
    face = "\N{GRINNING FACE}"
    inside = Request("Zoë", answer_format="likelihood", continuation=f" {face} is.")
    last = Request("Zoë is", answer_format="likelihood", continuation=f" {face}")

    def echo(body: Body) -> Echo:
        split: Echo = [(" \N{REPLACEMENT CHARACTER}", -1.0), ("bytes:\\x9f", -2.0)]
        if body["prompt"].endswith(face):
            return [("Zoë", None), (" is", -4.0), *split]
        return [("Zoë", None), *split, (" is.", -3.0)]

    with ChatServer(echo=echo) as server:
        one, other = ask(server, inside, last)
    assert [log for _, log in read(one)] == [-1, -2, -3]
    assert [log for _, log in read(other)] == [-1, -2]


def test_a_token_across_the_boundary_belongs_to_the_continuation() -> None:
    with ChatServer(echo=echo_by_words) as server:
        (response,) = ask(server, Request("The nur", answer_format="likelihood", continuation="se said"))
    assert read(response) == [(" nurse", -6.0), (" said", -5.0)]


@pytest.mark.parametrize(
    ("echo", "said"),
    [
        (None, r"offers no completions with the log-probabilities of a prompt \(HTTP 404: .*\), so it cannot"),
        (Reply("'echo' is not supported", status=400), r"offers no completions with .*\(HTTP 400: 'echo' is not"),
        (Reply("too long a prompt", status=400), "HTTP 400 from .*: too long a prompt"),
        (
            Reply(raw=b'{"choices": [{"text": "x", "logprobs": null}]}'),
            "the response has no log-probabilities of its prompt's tok",
        ),
        (Reply(raw=b"no json"), "the response has no log-probabilities of its prompt's tokens. Use a vLLM server"),
        ([("Something", None), (" else", -1.0)], "returned no likelihoods"),
        ([("The nurse said", None), (" that", -1.0)], "the tokens in the response do not match the text"),
        (
            [("The nurse said", None), (" that she was tired.", "high")],
            "does not have one log-probability",
        ),
    ],
)
def test_a_server_that_does_not_echo_is_named(echo: Any, said: str) -> None:
    with ChatServer(echo=None if echo is None else lambda _: echo) as server:
        first, second, chat = ask(server, NURSE, NURSE, Request("hello"))
    for fault in (first, second):
        assert isinstance(fault, RequestFailed)
        with pytest.raises(RequestFailed, match=said):
            raise fault
    assert isinstance(chat, Response), "other questions are answered all the same"


@pytest.mark.parametrize(
    "reply",
    [
        Reply("'echo' is not supported", status=400),
        Reply(raw=b'{"choices": [{"text": ",", "logprobs": {"content": []}}]}'),
    ],
    ids=["refuses", "passes over it"],
)
def test_an_endpoint_without_echo_is_asked_once(reply: Reply) -> None:
    with ChatServer(echo=lambda _: reply) as server:
        ask(server, NURSE, NURSE, NURSE)
    assert server.count == 1


def test_likelihoods_are_recorded_by_both_parts(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    other = Request("The nurse said that", answer_format="likelihood", continuation=" she was tired.")
    keys = {response_key("x", request) for request in (NURSE, other, Request("The nurse said"))}
    assert len(keys) == 3
    with ChatServer(echo=echo_by_words) as server:
        settings = settings_in(tmp_path, server.url)
        for _ in range(2):
            with engine_for(settings) as engine:
                assert all(isinstance(answer, Response) for answer in engine.answers([NURSE, other]))
        assert server.count == 2
    with Store(settings.store) as store:
        assert {recorded.request for recorded in store.all_recorded()} == {NURSE, other}


@pytest.mark.parametrize(
    ("spec", "cure"),
    [
        ("local", "The same model gives likelihoods as transformers:.*SmolLM2-135M-Instruct.Q4_1.gguf"),
        ("local:tiny.gguf", "The same file gives likelihoods as transformers:PATH.gguf"),
        ("python:app:polite", "Use a transformers: target, or an openai: endpoint that returns"),
    ],
)
def test_targets_without_likelihoods_are_sent_none(tmp_path: Path, spec: str, cure: str) -> None:
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    with Run(settings_in(tmp_path)) as run:
        target = open_target(spec, settings_in(tmp_path))
        run.engines.plan(target, [NURSE])
        with pytest.raises(TargetError, match=f"cannot compute the likelihood of a given text, .*{cure}"):
            run.engines.ask(target, [Request("hello", sampling=Sampling()), NURSE])
        assert run.engines.engine(target).progress()["sent"] == 0
