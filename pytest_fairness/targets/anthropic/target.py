"""Anthropic's models through its SDK, as a target."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pytest_fairness.errors import TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response
from pytest_fairness.targets.address import is_web_address, public_url
from pytest_fairness.targets.api_keys import key_of
from pytest_fairness.targets.base import versioned

if TYPE_CHECKING:
    from pytest_fairness.targets.anthropic.messages import Messages

ANTHROPIC_URL = "https://api.anthropic.com"
KEY_NAME, URL_NAME = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"


class AnthropicTarget:
    """A model behind the Messages API.

    Args:
        model: as Anthropic calls it.
        settings: the run's; `target_version`, `timeout` and `max_answer_bytes` matter.

    Raises:
        TargetError: `ANTHROPIC_BASE_URL` is no address.
    """

    reusable = True
    concurrency: int | None = None

    def __init__(self, model: str, settings: RunSettings) -> None:
        self.name = f"anthropic:{model}"
        self._model = model
        self._base_url = os.environ.get(URL_NAME, "").strip() or ANTHROPIC_URL
        self._timeout = settings.timeout
        self._max_bytes = settings.max_answer_bytes
        self._messages: Messages | None = None
        if not is_web_address(self._base_url):
            raise TargetError(f"{self.name}: what {URL_NAME} says is no address; write it like http://localhost:8000.")
        self.address = public_url(self._base_url)
        self.identity = versioned(f"{self.name} at {self.address}", settings.target_version)

    def check(self) -> None:
        """See `Target`."""
        if not _is_installed():
            raise TargetError(f"{self.name} needs the package anthropic: pip install 'pytest-fairness[anthropic]'.")
        self._key()

    async def open(self) -> None:
        """See `Target`."""
        self.check()
        # Not before: importing the SDK takes a second, and everything may be recorded.
        from pytest_fairness.targets.anthropic.messages import Messages

        self._messages = Messages(
            self.name,
            self._model,
            base_url=self._base_url,
            key=self._key(),
            timeout=self._timeout,
            max_bytes=self._max_bytes,
        )

    async def ask(self, request: Request) -> Response:
        """See `Target`."""
        if self._messages is None:
            raise RuntimeError("a target is opened before it is asked")
        return await self._messages.ask(request)

    async def close(self) -> None:
        """See `Target`."""
        if self._messages is not None:
            await self._messages.close()

    def _key(self) -> str:
        key = key_of(self.name, KEY_NAME)
        if not key:
            raise TargetError(f"{self.name} needs a key: set the environment variable {KEY_NAME}.")
        return key


def _is_installed() -> bool:
    try:
        return find_spec("anthropic") is not None
    except ValueError:  # a module that keeps itself from being imported
        return False


def open_anthropic(rest: str | None, settings: RunSettings, _address: str | None) -> AnthropicTarget:
    """`anthropic:MODEL`.

    Raises:
        TargetError: no model is named.
    """
    if not rest:
        raise TargetError("'anthropic' names no model; write anthropic:MODEL (--fairness-target).")
    return AnthropicTarget(rest, settings)
