"""Targets `openai:MODEL`: models of OpenAI, or of a server with compatible chat completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pytest_fairness.errors import TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response
from pytest_fairness.targets.web.api_keys import key_of
from pytest_fairness.targets.web.api_target import ApiTarget, model_of

if TYPE_CHECKING:
    from pytest_fairness.targets.batch_client import BatchClient
    from pytest_fairness.targets.openai.chat import Chat

OPENAI_URL = "https://api.openai.com/v1"
KEY_NAME = "OPENAI_API_KEY"


class OpenAITarget(ApiTarget["Chat"]):
    """Model behind OpenAI's or a compatible chat completions API.

    Args:
        model: name of the model on the server.
        settings: settings of the run; `base_url` and those of `ApiTarget` are used.

    Class attributes:
        setting: name of the setting that names the model, for messages.
        serves: type of server that the endpoint must be, such as "a chat endpoint", for messages.
    """

    likelihoods = True
    setting: ClassVar[str] = "--fairness-target"
    serves: ClassVar[str] = "a chat endpoint"

    def __init__(self, model: str, settings: RunSettings) -> None:
        self._own_url = settings.base_url
        where = "--fairness-base-url, fairness_base_url or OPENAI_BASE_URL", "http://localhost:8000/v1"
        base_url = settings.base_url or OPENAI_URL
        super().__init__("openai", model, base_url=base_url, url_settings=where, settings=settings)

    def _connect(self) -> Chat:
        from pytest_fairness.targets.openai.chat import Chat

        return Chat(self._endpoint(self._where, KEY_NAME), setting=self.setting, serves=self.serves)

    @property
    def _where(self) -> str:
        return f"--fairness-base-url and {KEY_NAME}" if self._own_url else KEY_NAME

    def batch_client(self) -> BatchClient:
        """Return a client that sends requests in batches; see `Target.batch_client`."""
        from pytest_fairness.targets.openai.batches import ChatBatches

        return ChatBatches(self._endpoint(self._where, KEY_NAME), own_server=bool(self._own_url))

    async def ask(self, request: Request) -> Response:
        """Send one request once and return its response; see `Target.ask`."""
        if request.answer_format == "likelihood":
            return await self._opened().likelihood(request)
        return await super().ask(request)

    def _key(self) -> str:
        key = key_of(self.name, KEY_NAME)
        if not key and not self._own_url:
            raise TargetError(
                f"{self.name} needs a key: set the environment variable {KEY_NAME}, or name a server of your own with "
                "--fairness-base-url."
            )
        return key


def open_openai(rest: str | None, settings: RunSettings) -> OpenAITarget:
    """Return the target `openai:MODEL`; see `model_of` for its errors."""
    return OpenAITarget(model_of("openai", rest), settings)
