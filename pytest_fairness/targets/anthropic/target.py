"""Targets `anthropic:MODEL`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_fairness.options import RunSettings
from pytest_fairness.targets.web.api_target import ApiTarget, model_of

if TYPE_CHECKING:
    from pytest_fairness.targets.anthropic.messages import Messages
    from pytest_fairness.targets.batch_client import BatchClient

ANTHROPIC_URL = "https://api.anthropic.com"
KEY_NAME, URL_NAME = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"


class AnthropicTarget(ApiTarget["Messages"]):
    """Model behind Anthropic's Messages API.

    Args:
        model: name of the model in the API.
        settings: settings of the run; see `ApiTarget`.

    Raises:
        TargetError: the address or a header is not valid.
    """

    def __init__(self, model: str, settings: RunSettings) -> None:
        super().__init__(
            "anthropic",
            model,
            default_url=ANTHROPIC_URL,
            base_url=os.environ.get(URL_NAME, "").strip(),
            url_settings=(URL_NAME, "http://localhost:8000"),
            key_variables=(KEY_NAME,),
            settings=settings,
        )
        self._needs_key = True

    def batch_client(self) -> BatchClient:
        """Return a client that sends requests in batches; see `Target.batch_client`."""
        from pytest_fairness.targets.anthropic.batches import MessageBatches

        return MessageBatches(self._endpoint())

    def _connect(self) -> Messages:
        from pytest_fairness.targets.anthropic.messages import Messages

        return Messages(self._endpoint())


def open_anthropic(rest: str | None, settings: RunSettings) -> AnthropicTarget:
    """Return the target `anthropic:MODEL`.

    Raises:
        TargetError: no model is named, or the address or a header is not valid.
    """
    return AnthropicTarget(model_of("anthropic", rest), settings)
