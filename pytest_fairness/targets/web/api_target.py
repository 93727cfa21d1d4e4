"""Base class of the targets that are models behind an API: OpenAI's, Anthropic's, or a compatible one."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from pytest_fairness.errors import TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response
from pytest_fairness.targets.base import versioned
from pytest_fairness.targets.web.address import is_web_address, public_url
from pytest_fairness.targets.web.api_keys import key_of
from pytest_fairness.targets.web.endpoint import Endpoint
from pytest_fairness.targets.web.headers import Headers, References
from pytest_fairness.targets.web.target_options import API_KEY_ENV, BASE_URL

PROVIDERS = (".openai.com", ".anthropic.com", ".openai.azure.com", ".services.ai.azure.com", "openrouter.ai")
"""Ends of the host names at which a name of a model means the same model for everybody."""
PULL_REQUEST = (
    "CI_MERGE_REQUEST_IID", "SYSTEM_PULLREQUEST_PULLREQUESTID", "CIRCLE_PULL_REQUEST", "BITBUCKET_PR_ID", "CHANGE_ID",
)  # fmt: skip
"""Environment variables that CI services (GitLab, Azure, CircleCI, Bitbucket, Jenkins) set for a proposed change."""


def in_pull_request() -> bool:
    """Return whether a CI service runs this process for a pull request, a merge request or a merge queue."""
    event = os.environ.get("GITHUB_EVENT_NAME", "")
    return event.startswith(("pull_request", "merge_group")) or any(map(os.environ.get, PULL_REQUEST))


class Client(Protocol):
    """Client of a model API."""

    async def ask(self, request: Request) -> Response:
        """Send one request once; see `Target.ask`."""

    async def close(self) -> None:
        """Close the connections."""


ClientT = TypeVar("ClientT", bound=Client)


class ApiTarget(ABC, Generic[ClientT]):
    """Model behind an API.

    Args:
        prefix: prefix of the target's name.
        model: name of the model in the API.
        default_url: address of the API if the user sets none; an empty text if the user must set one.
        base_url: address that the user set for all targets of the prefix, or an empty text. The target's own option
            `base_url` takes its place.
        url_settings: names of the settings for the address, and an example address, for messages.
        key_variables: environment variables of the key; the first one that is set is used. The target's own option
            `api_key_env` takes their place.
        settings: settings of the run; `target_options`, `api_headers`, `target_version`, `timeout` and
            `max_answer_bytes` are used.

    Raises:
        TargetError: the address or a header is not valid.
    """

    concurrency: int | None = None

    def __init__(
        self,
        prefix: str,
        model: str,
        *,
        default_url: str,
        base_url: str,
        url_settings: tuple[str, str],
        key_variables: tuple[str, ...],
        settings: RunSettings,
    ) -> None:
        self.name = f"{prefix}:{model}"
        own_url, own_key = (settings.target_options.get(name) for name in (BASE_URL, API_KEY_ENV))
        base_url = own_url or base_url or default_url
        self._model, self._base_url = model, base_url
        self._is_default_address = base_url == default_url
        self._key_variables = (own_key,) if own_key else key_variables
        self._needs_key = bool(own_key)
        self._headers = Headers(settings.api_headers, "fairness_api_headers", self.name)
        self._timeout, self._max_bytes = settings.timeout, settings.max_answer_bytes
        self._client: ClientT | None = None
        self._url_setting = f"{BASE_URL}=… of the target" if own_url else url_settings[0]
        if not base_url:
            where, example = url_settings
            raise TargetError(f"{self.name} needs an address: set {where}, such as {example}.")
        if not is_web_address(base_url):
            example = url_settings[1]
            raise TargetError(
                f"{self.name}: the value of {self._url_setting} is not an address; write it like {example}."
            )
        self.address = public_url(base_url)
        # The gateway or application behind another address may change with each commit under the same name.
        self.reusable = settings.target_version is not None or self._is_providers_own or not in_pull_request()
        self.identity = versioned(f"{self.name} at {self.address}", settings.target_version)

    def _key(self) -> tuple[str, str]:
        """Return the API key and the name of its environment variable; an empty key for a server that needs none.

        Raises:
            TargetError: the key is missing or cannot be sent.
        """
        for variable in self._key_variables:
            if key := key_of(self.name, variable):
                return key, variable
        if self._needs_key:
            raise TargetError(f"{self.name} needs a key: {self._cure_of_missing_key()}.")
        return "", self._key_variables[0]

    def _cure_of_missing_key(self) -> str:
        return f"set the environment variable {' or '.join(self._key_variables)}"

    @abstractmethod
    def _connect(self) -> ClientT:
        """Return a client; import its module only here, because the import takes time."""

    @property
    def _setting_names(self) -> str:
        """Return the names of the settings for the address and the API key, for messages.

        The setting for the address is left out if the address is the provider's own.
        """
        key = self._key_variables[0]
        # A default address with `http://` is a server on this machine, such as Ollama's.
        is_default = self._is_default_address and self._base_url.startswith("https://")
        return key if is_default else f"{self._url_setting} and {key}"

    @property
    def _is_providers_own(self) -> bool:
        """Return whether the model is at its provider's own address, or at the default address of a local server."""
        host = urlsplit(self._base_url).hostname or ""
        return self._is_default_address or host.endswith(PROVIDERS)

    def _endpoint(self) -> Endpoint:
        key, variable = self._key()
        references = References(self.name)
        headers = self._headers.filled(references)
        return Endpoint(
            name=self.name,
            model=self._model,
            base_url=self._base_url,
            key=key,
            timeout=self._timeout,
            max_bytes=self._max_bytes,
            where=self._setting_names,
            key_name=variable,
            headers=headers,
            secrets=tuple(references.secrets.values()),
        )

    def check(self) -> None:
        """Check the configuration without sending anything; see `Target.check`."""
        self._endpoint()

    async def open(self) -> None:
        """Prepare the target to answer requests; see `Target.open`."""
        self.check()
        self._client = self._connect()

    async def ask(self, request: Request) -> Response:
        """Send one request once and return its response; see `Target.ask`."""
        return await self._opened().ask(request)

    async def close(self) -> None:
        """Close the connections; see `Target.close`."""
        if self._client is not None:
            await self._client.close()

    def _opened(self) -> ClientT:
        if self._client is None:
            raise RuntimeError("the target is not open: call `open` before `ask`")
        return self._client


def model_of(prefix: str, rest: str | None) -> str:
    """Return the model in the target `prefix:model`.

    Args:
        prefix: prefix of the target's name.
        rest: the part of the name after the prefix and its colon; `None` without a colon.

    Raises:
        TargetError: no model is named.
    """
    if not rest:
        raise TargetError(f"{prefix!r} names no model; write {prefix}:MODEL (--fairness-target).")
    return rest
