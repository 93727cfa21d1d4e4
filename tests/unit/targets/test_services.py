"""Services with OpenAI's API, and the options and headers of API targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.errors import RequestFailed, TargetError
from pytest_fairness.records import Response
from pytest_fairness.targets import check_spec, open_target
from tests.support.asking import ask_once, settings_in
from tests.support.messages_server import MessagesServer
from tests.support.servers import ChatServer, Reply


def ask(spec: str, **settings: Any) -> Response:
    return ask_once(spec, settings_in(Path.cwd(), **settings))


def root(server: ChatServer) -> str:
    return server.url.removesuffix("/v1")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            "azure:d",
            "openai:d base_url=https://RESOURCE.openai.azure.com/openai/v1 api_key_env=AZURE_OPENAI_API_KEY, or ",
        ),
        (
            "ollama:llama3.2:1b",
            "openai:llama3.2:1b base_url=http://localhost:11434/v1, or litellm:ollama_chat/llama3.2:1b.",
        ),
        ("openrouter:a/b", "openai:a/b base_url=https://openrouter.ai/api/v1 api_key_env=OPENROUTER_API_KEY, or "),
        ("vllm:", "openai:MODEL base_url=http://localhost:8000/v1, or litellm:hosted_vllm/MODEL."),
    ],
)
def test_a_service_without_a_target_of_its_own_says_what_replaces_it(tmp_path: Path, spec: str, said: str) -> None:
    with pytest.raises(TargetError) as caught:
        open_target(spec, settings_in(tmp_path))
    assert f"there is no target {spec.partition(':')[0]}: any more (--fairness-target). Write {said}" in str(
        caught.value
    )
    replacement = said.partition(", or ")[0].replace("RESOURCE", "shop")
    assert open_target(replacement, settings_in(tmp_path)).identity.startswith("openai:")


def test_a_deployment_of_azure_has_an_address_and_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "az-s3cret")
    own = "?api-version=2024-10-21 api_key_env=AZURE_OPENAI_API_KEY"
    with ChatServer(script=[Reply(), Reply("az-s3cret is wrong", status=400)]) as server:
        url = f"{root(server)}/openai/deployments/my-deployment"
        assert ask(f"openai:my-deployment base_url={url}{own}").text == "hello"
        with pytest.raises(RequestFailed, match=r"\[key\] is wrong"):
            ask(f"openai:my-deployment base_url={url}{own}", api_headers=("api-key: ${AZURE_OPENAI_API_KEY}",))
        assert server.heads[0][":path"] == "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21"
        assert server.keys[0] == "Bearer az-s3cret"
        assert server.heads[1]["api-key"] == "az-s3cret"


def test_a_server_of_ones_own_needs_no_key() -> None:
    with ChatServer(lambda *_: "hello") as server:
        assert ask(f"openai:llama3.2:1b base_url={server.url}", base_url="http://127.0.0.1:9/v1").text == "hello"
        assert server.keys == [None]
        assert server.bodies[0]["model"] == "llama3.2:1b"


def test_a_server_that_is_not_there_names_the_settings() -> None:
    with pytest.raises(RequestFailed, match=r"no connection to .*base_url=… of the target"):
        ask("openai:m base_url=http://127.0.0.1:9/v1")


def test_headers_are_sent_and_their_secrets_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "t0ken-4711")
    headers = ("X-Title: Shop of lamps", "X-Shop: ${SHOP_TOKEN}")
    with ChatServer(lambda *_: "Shop of lamps, t0ken-4711") as server:
        assert ask(f"openai:a/b base_url={server.url}", api_headers=headers).text == "Shop of lamps, [key]"
        assert server.heads[0]["x-title"] == "Shop of lamps"
        assert server.heads[0]["x-shop"] == "t0ken-4711"


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
        check_spec("openai:m base_url=http://localhost:11434/v1", settings_in(tmp_path, api_headers=headers))


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
