"""Base class of the targets that are models behind an API: OpenAI's, Anthropic's, or a compatible one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from pytest_fairness.errors import TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response
from pytest_fairness.targets.base import versioned
from pytest_fairness.targets.web.address import is_web_address, public_url
from pytest_fairness.targets.web.endpoint import Endpoint


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
        base_url: address of the API.
        url_settings: names of the settings for the address, and an example address, for messages.
        settings: settings of the run; `target_version`, `timeout` and `max_answer_bytes` are used.

    Raises:
        TargetError: the address is not valid.
    """

    reusable = True
    concurrency: int | None = None

    def __init__(
        self, prefix: str, model: str, *, base_url: str, url_settings: tuple[str, str], settings: RunSettings
    ) -> None:
        self.name = f"{prefix}:{model}"
        self._model, self._base_url = model, base_url
        self._timeout, self._max_bytes = settings.timeout, settings.max_answer_bytes
        self._client: ClientT | None = None
        if not is_web_address(base_url):
            where, example = url_settings
            raise TargetError(f"{self.name}: the value of {where} is not an address; write it like {example}.")
        self.address = public_url(base_url)
        self.identity = versioned(f"{self.name} at {self.address}", settings.target_version)

    @abstractmethod
    def _key(self) -> str:
        """Return the API key; an empty text for a server that needs none.

        Raises:
            TargetError: the key is missing or cannot be sent.
        """

    @abstractmethod
    def _connect(self) -> ClientT:
        """Return a client.

        The HTTP client is imported here and not earlier, because its import takes time.
        """

    def _endpoint(self, where: str, key_name: str) -> Endpoint:
        """Return the endpoint with its key.

        Args:
            where: names of the settings for the address and the key, for messages.
            key_name: name of the environment variable of the key.
        """
        return Endpoint(
            name=self.name,
            model=self._model,
            base_url=self._base_url,
            key=self._key(),
            timeout=self._timeout,
            max_bytes=self._max_bytes,
            where=where,
            key_name=key_name,
        )

    def check(self) -> None:
        """Check the configuration without sending anything; see `Target.check`."""
        self._key()

    async def open(self) -> None:
        """Prepare the target to answer requests; see `Target.open`."""
        self.check()
        self._client = self._connect()

    async def ask(self, request: Request) -> Response:
        """Send one request once and return its response; see `Target.ask`."""
        return await self._opened().ask(request)

    async def close(self) -> None:
        """Close the connections and processes of the target; see `Target.close`."""
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
