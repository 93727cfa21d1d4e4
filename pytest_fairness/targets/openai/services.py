"""Services with OpenAI's chat completions API: their addresses, and the environment variables of their keys."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

AZURE_VERSION = "OPENAI_API_VERSION"
"""Environment variable of the version of Azure's older API; if it is not set, the API without versions is used."""
_OLLAMA_PORT = 11434


def _unchanged(address: str, _: str) -> str:
    return address


@dataclass(frozen=True, kw_only=True)
class Service:
    """Service with OpenAI's chat completions API.

    Attributes:
        prefix: prefix of the names of its targets, such as `openai`.
        base_url: default address; an empty text if the user must set the address.
        url_variable: environment variable (for OpenAI, option) that sets another address.
        example: example of an address, for messages.
        key_variables: environment variables of the key; the first one that is set is used.
        key_header: header that carries the key; `None` for `Authorization: Bearer`.
        token_variables: the `key_variables` whose value is always sent as `Authorization: Bearer`.
        needs_key: whether the service needs a key; a service with a default address needs none at another address.
        complete_url: function that returns the complete address for the user's address and the model's name.
    """

    prefix: str
    base_url: str = ""
    url_variable: str
    example: str = "http://localhost:8000/v1"
    key_variables: tuple[str, ...]
    key_header: str | None = None
    token_variables: tuple[str, ...] = ()
    needs_key: bool = True
    complete_url: Callable[[str, str], str] = _unchanged

    @property
    def url_setting(self) -> str:
        """Return the names of the settings for the address, for messages."""
        return f"{self.url_variable} or base_url=… of the target"


def azure_address(endpoint: str, deployment: str) -> str:
    """Return the address of a deployment in Azure OpenAI.

    Args:
        endpoint: address of the resource, such as `https://my-resource.openai.azure.com`. An address that already
            leads to the API, such as `https://my-resource.openai.azure.com/openai/v1`, is returned unchanged.
        deployment: name of the deployment.
    """
    if "/openai/" in urlsplit(endpoint).path:
        return endpoint
    root, version = endpoint.rstrip("/"), os.environ.get(AZURE_VERSION, "").strip()
    if version:
        return f"{root}/openai/deployments/{quote(deployment, safe='')}?api-version={quote(version, safe='')}"
    return f"{root}/openai/v1"


def ollama_address(host: str, _: str = "") -> str:
    """Return the address of the API for a value of `OLLAMA_HOST`, such as `0.0.0.0`, `host:11434` or `http://host`."""
    address = host if "://" in host else f"http://{host}"
    try:
        parts = urlsplit(address)
        port = "" if parts.port or parts.scheme == "https" else f":{_OLLAMA_PORT}"
    except ValueError:
        return host
    path = parts.path.rstrip("/") or "/v1"
    return f"{parts.scheme}://{parts.netloc}{port}{path}"


OPENAI = Service(
    prefix="openai",
    base_url="https://api.openai.com/v1",
    url_variable="--fairness-base-url",
    key_variables=("OPENAI_API_KEY",),
)
_OTHERS = (
    Service(
        prefix="azure",
        url_variable="AZURE_OPENAI_ENDPOINT",
        example="https://my-resource.openai.azure.com",
        key_variables=("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
        key_header="api-key",
        token_variables=("AZURE_OPENAI_AD_TOKEN",),
        complete_url=azure_address,
    ),
    Service(
        prefix="ollama",
        base_url=f"http://localhost:{_OLLAMA_PORT}/v1",
        url_variable="OLLAMA_HOST",
        key_variables=("OLLAMA_API_KEY",),
        needs_key=False,
        complete_url=ollama_address,
    ),
    Service(
        prefix="openrouter",
        base_url="https://openrouter.ai/api/v1",
        url_variable="OPENROUTER_BASE_URL",
        key_variables=("OPENROUTER_API_KEY",),
    ),
    Service(
        prefix="vllm",
        base_url="http://localhost:8000/v1",
        url_variable="VLLM_BASE_URL",
        key_variables=("VLLM_API_KEY",),
        needs_key=False,
    ),
)
SERVICES = {service.prefix: service for service in (OPENAI, *_OTHERS)}
"""All services by the prefix of their targets."""
