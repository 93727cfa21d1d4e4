"""Targets of services with OpenAI's API (`azure:`, `ollama:`, …), and the options and headers of API targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.errors import RequestFailed, TargetError
from pytest_fairness.records import Response
from pytest_fairness.targets import check_spec, open_target
from pytest_fairness.targets.providers import ollama_address, open_ollama, open_openrouter
from tests.support.asking import ask_once, settings_in
from tests.support.messages_server import MessagesServer
from tests.support.servers import ChatServer, Reply


def ask(spec: str, **settings: Any) -> Response:
    return ask_once(spec, settings_in(Path.cwd(), **settings))


def root(server: ChatServer) -> str:
    return server.url.removesuffix("/v1")


def test_azure_sends_the_key_in_its_own_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "az-s3cret")
    with ChatServer(script=[Reply(), Reply("az-s3cret is wrong", status=400)]) as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", root(server))
        assert ask("azure:my-deployment").text == "hello"
        with pytest.raises(RequestFailed, match=r"\[key\] is wrong"):
            ask("azure:my-deployment")
        assert server.heads[0]["api-key"] == "az-s3cret"
        assert "authorization" not in server.heads[0]
        assert server.heads[0][":path"] == "/openai/v1/chat/completions"
        assert server.bodies[0]["model"] == "my-deployment"


def test_azure_with_a_version_names_the_deployment_in_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "az-s3cret")
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    with ChatServer() as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", f"{root(server)}/")
        ask("azure:my-deployment")
        assert server.heads[0][":path"] == "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21"


def test_azure_sends_a_token_as_a_bearer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "eyJ-token")
    with ChatServer() as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", f"{root(server)}/openai/v1")
        ask("azure:my-deployment")
        assert server.keys == ["Bearer eyJ-token"]
        assert "api-key" not in server.heads[0]
        assert server.heads[0][":path"] == "/openai/v1/chat/completions"


def test_azure_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetError, match="azure:d needs an address: set AZURE_OPENAI_ENDPOINT or base_url=…"):
        open_target("azure:d", settings_in(tmp_path))
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://my.openai.azure.com")
    with pytest.raises(TargetError, match=r"variable AZURE_OPENAI_API_KEY or AZURE_OPENAI_AD_TOKEN\.$"):
        check_spec("azure:d", settings_in(tmp_path))


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1:11435", "http://127.0.0.1:11435/v1"),
        ("gpu-box", "http://gpu-box:11434/v1"),
        ("http://gpu-box:80/", "http://gpu-box:80/v1"),
        ("https://models.example/ollama/v1", "https://models.example/ollama/v1"),
        ("host:port", "host:port"),
    ],
)
def test_addresses_of_ollama_are_completed(host: str, address: str) -> None:
    assert ollama_address(host) == address


@pytest.mark.parametrize(("service", "variable"), [("ollama", "OLLAMA_HOST"), ("vllm", "VLLM_BASE_URL")])
def test_servers_of_ones_own_need_no_key(service: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    with ChatServer(lambda *_: "hello") as server:
        monkeypatch.setenv(variable, server.url)
        assert ask(f"{service}:llama3.2:1b", base_url="http://127.0.0.1:9/v1").text == "hello"
        assert server.keys == [None]
        assert server.bodies[0]["model"] == "llama3.2:1b"


def test_a_server_that_is_not_there_names_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(RequestFailed, match=r"no connection to .*VLLM_BASE_URL or base_url=… of the target"):
        ask("vllm:m")


def test_the_settings_of_a_default_address_on_this_machine_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "key")
    ollama, openrouter = (open_("m", settings_in(tmp_path))._endpoint() for open_ in (open_ollama, open_openrouter))
    assert ollama.where == "OLLAMA_HOST or base_url=… of the target and OLLAMA_API_KEY"
    assert openrouter.where == "OPENROUTER_API_KEY"


def test_openrouter_needs_its_key_and_gets_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetError, match="set the environment variable OPENROUTER_API_KEY, or name a server"):
        check_spec("openrouter:a/b", settings_in(tmp_path))
    monkeypatch.setenv("SHOP_TOKEN", "t0ken-4711")
    headers = ("X-Title: Shop of lamps", "X-Shop: ${SHOP_TOKEN}")
    with ChatServer(lambda *_: "Shop of lamps, t0ken-4711") as server:
        monkeypatch.setenv("OPENROUTER_BASE_URL", server.url)
        monkeypatch.setenv("OPENROUTER_API_KEY", "or-s3cret")
        assert ask("openrouter:a/b", api_headers=headers).text == "Shop of lamps, [key]"
        assert server.heads[0]["x-title"] == "Shop of lamps"
        assert server.heads[0]["x-shop"] == "t0ken-4711"
        assert server.keys == ["Bearer or-s3cret"]


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        (("X-Shop: ${NO_SUCH}",), "fairness_api_headers names the environment variable NO_SUCH, which is not set"),
        (("no header",), "a line of fairness_api_headers is not of the form `Name: value`"),
        (("X-Title: Läden",), "the header X-Title has characters that cannot be sent"),
    ],
)
def test_invalid_headers_are_found_before_anything_is_sent(tmp_path: Path, headers: tuple[str], said: str) -> None:
    with pytest.raises(TargetError, match=said):
        check_spec("ollama:m", settings_in(tmp_path, api_headers=headers))


def test_each_target_has_its_own_address_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-all")
    monkeypatch.setenv("LARGE_KEY", "sk-large")
    with ChatServer() as small, ChatServer() as large:
        ask(f"openai:small base_url={small.url}")
        ask(f"openai:large  base_url={large.url} api_key_env=LARGE_KEY ", base_url=small.url)
        assert [(body["model"], key) for body, key in zip(small.bodies, small.keys, strict=True)] == [
            ("small", "Bearer sk-of-all")
        ]
        assert [(body["model"], key) for body, key in zip(large.bodies, large.keys, strict=True)] == [
            ("large", "Bearer sk-large")
        ]


def test_an_anthropic_target_has_the_options_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXY_KEY", "proxy-s3cret")
    with MessagesServer() as server:
        assert ask(f"anthropic:claude base_url={root(server)} api_key_env=PROXY_KEY").text
        assert server.keys == ["Bearer proxy-s3cret"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("openai:m base-url=http://h/v1", "unknown option 'base-url' after the target openai:m .*base_url=ADDRESS"),
        ("openai:m base_url=h:8000", "the value of base_url=… is not an address"),
        ("openai:m base_url=http://h/v1 api_key=x", "unknown option 'api_key' after the target openai:m "),
        ("openai:m base_url= http://h/v1", "the option base_url= after the target openai:m .*has no value"),
        ("openai:m base_url=http://h/v1 base_url=http://i/v1", "base_url= occurs twice after the target openai:m;"),
        ("openai:m base_url=http://h/v1 api_key_env=NO_SUCH_KEY", "set the environment variable NO_SUCH_KEY"),
        ("openai:m base_url=http://h/v1 other", "unknown option 'other' after the target openai:m "),
        ("openai: base_url=http://h/v1", "'openai' names no model"),
        ("python:app:f base_url=http://h/v1", "names no callable"),
    ],
)
def test_invalid_options_are_explained(tmp_path: Path, spec: str, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        check_spec(spec, settings_in(tmp_path))


@pytest.mark.parametrize("target", ["openai:m", "litellm:bedrock/m"])
def test_a_key_in_place_of_its_variable_is_refused_and_not_shown(tmp_path: Path, target: str) -> None:
    with pytest.raises(TargetError, match="api_key_env=… is not the name of an environment variable") as caught:
        check_spec(f"{target} base_url=http://h/v1 api_key_env=sk-4711", settings_in(tmp_path))
    assert "4711" not in str(caught.value)


def test_the_query_of_an_address_is_sent_but_never_shown() -> None:
    with ChatServer(script=[Reply("q-rosebud is wrong", status=400)]) as server:
        with pytest.raises(RequestFailed, match=r"\[key\] is wrong") as caught:
            ask(f"openai:m base_url={server.url}?code=q-rosebud&api-version=2")
        assert server.heads[0][":path"] == "/v1/chat/completions?code=q-rosebud&api-version=2"
    assert "rosebud" not in str(caught.value)
