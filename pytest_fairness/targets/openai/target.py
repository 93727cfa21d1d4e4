"""Targets `openai:MODEL`, and targets of other services with OpenAI's chat completions API; see `services`."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response
from pytest_fairness.targets.openai.services import OPENAI, SERVICES, Service
from pytest_fairness.targets.web.api_target import ApiTarget, model_of
from pytest_fairness.targets.web.endpoint import Endpoint

if TYPE_CHECKING:
    from pytest_fairness.targets.batch_client import BatchClient
    from pytest_fairness.targets.openai.chat import Chat


class OpenAITarget(ApiTarget["Chat"]):
    """Model behind OpenAI's or a compatible chat completions API.

    Args:
        model: name of the model on the server.
        settings: settings of the run; `base_url` and the settings that `ApiTarget` names are used.
        service: the service, which determines the default address and the key.

    Class attributes:
        setting: name of the setting that names the model, for messages.
        serves: type of server that the endpoint must be, such as "a chat endpoint", for messages.
    """

    likelihoods = True
    setting: ClassVar[str] = "--fairness-target"
    serves: ClassVar[str] = "a chat endpoint"

    def __init__(self, model: str, settings: RunSettings, service: Service = OPENAI) -> None:
        self._service = service
        elsewhere = settings.base_url if service is OPENAI else os.environ.get(service.url_variable, "").strip()
        super().__init__(
            service.prefix,
            model,
            default_url=service.base_url,
            base_url=service.complete_url(elsewhere, model) if elsewhere else "",
            url_settings=(service.url_setting, service.example),
            key_variables=service.key_variables,
            settings=settings,
        )
        self._needs_key |= service.needs_key and (self._is_default_address or not service.base_url)

    def _connect(self) -> Chat:
        from pytest_fairness.targets.openai.chat import Chat

        return Chat(self._endpoint(), setting=self.setting, serves=self.serves)

    def batch_client(self) -> BatchClient:
        """Return a client that sends requests in batches; see `Target.batch_client`."""
        from pytest_fairness.targets.openai.batches import ChatBatches

        return ChatBatches(self._endpoint(), own_server=not self._is_default_address)

    def _cure_of_missing_key(self) -> str:
        other = f", or name a server of your own with {self._url_setting}"
        return f"{super()._cure_of_missing_key()}{other if self._is_default_address else ''}"

    def _endpoint(self) -> Endpoint:
        endpoint = super()._endpoint()
        header = self._service.key_header
        if header is None or not endpoint.key or endpoint.key_name in self._service.token_variables:
            return endpoint
        headers = {**endpoint.headers, header: endpoint.key}
        return replace(endpoint, key="", headers=headers, secrets=(*endpoint.secrets, endpoint.key))

    async def ask(self, request: Request) -> Response:
        """Send one request once and return its response; see `Target.ask`."""
        if request.answer_format == "likelihood":
            return await self._opened().likelihood(request)
        return await super().ask(request)


def _open(service: Service, rest: str | None, settings: RunSettings) -> OpenAITarget:
    return OpenAITarget(model_of(service.prefix, rest), settings, service)


open_openai = partial(_open, OPENAI)
open_azure = partial(_open, SERVICES["azure"])
open_ollama = partial(_open, SERVICES["ollama"])
open_openrouter = partial(_open, SERVICES["openrouter"])
open_vllm = partial(_open, SERVICES["vllm"])
