"""Chat completions of OpenAI, or of any server that is compatible, as a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pytest_fairness.errors import TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response
from pytest_fairness.targets.address import is_web_address, public_url
from pytest_fairness.targets.api_keys import key_of
from pytest_fairness.targets.base import versioned

if TYPE_CHECKING:
    from pytest_fairness.targets.openai.chat import Chat

OPENAI_URL = "https://api.openai.com/v1"
KEY_NAME = "OPENAI_API_KEY"


class OpenAITarget:
    """A model behind chat completions.

    Args:
        model: as the server calls it.
        settings: the run's; `base_url`, `target_version`, `timeout` and `max_answer_bytes` matter.

    Class attributes:
        setting: what names the model, for messages.
        serves: what the endpoint must be, for messages.
    """

    reusable = True
    concurrency: int | None = None
    likelihoods = True
    setting: ClassVar[str] = "--fairness-target"
    serves: ClassVar[str] = "chat endpoint"

    def __init__(self, model: str, settings: RunSettings) -> None:
        self.name = f"openai:{model}"
        self._model = model
        self._own_url = settings.base_url
        self._base_url = settings.base_url or OPENAI_URL
        self._timeout = settings.timeout
        self._max_bytes = settings.max_answer_bytes
        self._chat: Chat | None = None
        if not is_web_address(self._base_url):
            raise TargetError(
                f"{self.name}: what --fairness-base-url, fairness_base_url or OPENAI_BASE_URL says is no address; "
                f"write it like http://localhost:8000/v1."
            )
        self.address = public_url(self._base_url)
        self.identity = versioned(f"{self.name} at {self.address}", settings.target_version)

    def check(self) -> None:
        """See `Target`."""
        self._key()

    async def open(self) -> None:
        """See `Target`."""
        # Not before: importing the client takes a second, and everything may be recorded.
        from pytest_fairness.targets.openai.chat import Chat

        self._chat = Chat(
            self.name,
            self._model,
            base_url=self._base_url,
            key=self._key(),
            timeout=self._timeout,
            max_bytes=self._max_bytes,
            where=f"--fairness-base-url and {KEY_NAME}" if self._own_url else KEY_NAME,
            setting=self.setting,
            serves=self.serves,
        )

    async def ask(self, request: Request) -> Response:
        """See `Target`."""
        if self._chat is None:
            raise RuntimeError("a target is opened before it is asked")
        if request.answer_format == "likelihood":
            return await self._chat.likelihood(request)
        return await self._chat.ask(request)

    async def close(self) -> None:
        """See `Target`."""
        if self._chat is not None:
            await self._chat.close()

    def _key(self) -> str | None:
        key = key_of(self.name, KEY_NAME)
        if not key and not self._own_url:
            raise TargetError(
                f"{self.name} needs a key: set the environment variable {KEY_NAME}, or name a server of your own with "
                f"--fairness-base-url."
            )
        return key or None


def open_openai(rest: str | None, settings: RunSettings, _address: str | None) -> OpenAITarget:
    """`openai:MODEL`.

    Raises:
        TargetError: no model is named.
    """
    if not rest:
        raise TargetError("'openai' names no model; write openai:MODEL (--fairness-target).")
    return OpenAITarget(rest, settings)
