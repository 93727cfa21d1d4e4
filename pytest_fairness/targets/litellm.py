"""Targets `litellm:MODEL`: models of Amazon Bedrock, Vertex AI and all other providers that LiteLLM supports."""

from __future__ import annotations

import asyncio
import importlib
import os
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError, identifier
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response, is_block, reply_of, with_thoughts
from pytest_fairness.targets import web
from pytest_fairness.targets.api import OF_STREAMS, in_pull_request, model_of
from pytest_fairness.targets.base import refuse_stream, versioned
from pytest_fairness.targets.secrets import is_distinct, secret_remover, secrets_of

SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS")
"""Parts of the names of environment variables whose values are removed from messages and answers."""


class LiteLLMTarget:
    """Model of a provider that LiteLLM supports.

    LiteLLM finds the provider's key and address in the environment unless the options of the target set them.
    """

    concurrency: int | None = None

    def __init__(self, model: str, settings: RunSettings) -> None:
        self.name = f"litellm:{model}"
        self._model, self._timeout = model, settings.timeout
        self._base_url = settings.target_options.get(web.BASE_URL)
        self._key_variable = settings.target_options.get(web.API_KEY_ENV)
        at = f" at {web.public_url(self._base_url)}" if self._base_url else ""
        self.identity = versioned(f"{self.name}{at}", settings.target_version)
        self.reusable = settings.target_version is not None or not self._base_url or not in_pull_request()
        self._litellm: ModuleType | None = None
        self._errors: web.ServerErrors | None = None

    def check(self) -> None:
        if find_spec("litellm") is None:
            raise TargetError(f'{self.name} needs the package litellm: pip install "pytest-fairness[litellm]".')
        self._key()

    async def open(self) -> None:
        self.check()
        self._litellm = await asyncio.to_thread(_imported)
        secrets = [value for name, value in os.environ.items() if any(part in name.upper() for part in SECRET_NAMES)]
        self._redact = secret_remover(filter(is_distinct, [*secrets, self._key(), *secrets_of(self._base_url or "")]))
        provider = web.public_url(self._base_url) if self._base_url else "LiteLLM"
        where = f"the environment variables that LiteLLM documents for {self._model.partition('/')[0]}"
        self._errors = web.ServerErrors(self.name, provider, where, self._redact)

    async def ask(self, request: Request) -> Response:
        if self._litellm is None:
            raise RuntimeError("the target is not open: call `open` before `ask`")
        in_json = request.answer_format in ("json", "structured")
        refuse_stream(self.name, request)
        more: dict[str, Any] = {"response_format": {"type": "json_object"}} if in_json else {}
        if request.tools:
            more["tools"] = request.tool_definitions
        try:
            completion = await self._litellm.acompletion(
                model=self._model,
                messages=[message.to_json() for message in request.messages],
                timeout=self._timeout,
                num_retries=0,
                max_retries=0,
                api_base=self._base_url,
                api_key=self._key() or None,
                **{**more, **request.sampling.to_json()},
            )
        except Exception as error:  # noqa: BLE001 - LiteLLM's exceptions have no base class of their own
            if self._is_blocked(error):
                return web.BLOCKED
            raise self._translated(error) from None  # the original error may show a key
        return self._read(completion)

    async def close(self) -> None:
        if self._litellm is not None:
            await self._litellm.close_litellm_async_clients()

    def _key(self) -> str:
        """Return the key from the variable that the option `api_key_env` names; an empty text without this option."""
        if self._key_variable is None:
            return ""
        key = web.key_of(self.name, self._key_variable)
        if not key:
            raise TargetError(f"{self.name} needs a key: set the environment variable {self._key_variable}.")
        return key

    def _is_blocked(self, error: Exception) -> bool:
        policy = getattr(self._litellm, "exceptions", None)
        if policy is not None and isinstance(error, policy.ContentPolicyViolationError):
            return True
        status = getattr(error, "status_code", None)
        said = [{"message": str(error), "code": getattr(error, "code", None)}, getattr(error, "body", None)]
        return isinstance(status, int) and web.is_blocked(said, status)

    def _translated(self, error: Exception) -> RequestFailed | TargetError:
        if self._litellm is None or self._errors is None:
            raise error
        said = self._errors.quoted(str(error)).removesuffix(".")
        kinds = self._litellm.exceptions
        match error:
            case kinds.Timeout():
                return self._errors.timed_out()
            case kinds.APIConnectionError() if "No module named 'mcp" in said:
                needed = 'which LiteLLM imports for requests with tools: pip install "pytest-fairness[litellm]"'
                return TargetError(f"{self.name} needs the package mcp, {needed}.")
            case kinds.APIConnectionError():
                return RequestFailed(f"{self.name}: {said}", retry=RetryReason.UNREACHABLE)
            case kinds.AuthenticationError() | kinds.PermissionDeniedError():
                # The provider's message is left out, because it may quote the key.
                return TargetError(f"{self.name}: the provider rejects the key. Check {self._errors.where}.")
            case kinds.NotFoundError():
                return TargetError(
                    f"{self.name}: the provider knows no model {self._model!r}: {said}. Check --fairness-target."
                )
            case kinds.UnsupportedParamsError():
                return TargetError(f"{self.name}: {said}. Remove the parameter from `sampling` in the probe.")
        status = getattr(error, "status_code", None)
        if status == 400 and OF_STREAMS.search(said):
            return TargetError(
                f"{self.name}: the server answers only as a stream of events, which this target does not read: {said}. "
                "Use an openai: target with fairness_base_url, which reads streams."
            )
        if not isinstance(status, int):
            return RequestFailed(f"{self.name}: {type(error).__name__}: {said}")
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        return self._errors.for_status(status, headers, said)

    def _read(self, completion: Any) -> Response:
        choice, usage = completion.choices[0], getattr(completion, "usage", None)
        refusal = getattr(choice.message, "refusal", None)
        text = choice.message.content if choice.message.content is not None else refusal
        thoughts = str(getattr(choice.message, "reasoning_content", None) or "")
        written = [call.model_dump() for call in getattr(choice.message, "tool_calls", None) or []]
        try:
            calls = reply_of({"tool_calls": written}).calls_as_json if written else None
        except ValueError as error:
            raise RequestFailed(f"{self.name}: the completion {error}.", retry=RetryReason.TRANSIENT) from error
        reason = web.finish_reason(choice.finish_reason)
        if self._errors is not None and (failure := self._errors.broken_off(reason)) is not None:
            raise failure
        if text is None and calls is None and not is_block(reason) and reason != "length" and not thoughts.strip():
            raise RequestFailed(f"{self.name}: the completion has no text (finish_reason {reason!r}).")
        return Response(
            self._redact(with_thoughts(text or "", thoughts)),
            finish_reason="refusal" if refusal else reason,
            prompt_tokens=getattr(usage, "prompt_tokens", None),
            completion_tokens=getattr(usage, "completion_tokens", None),
            model=identifier(completion.model),
            fingerprint=identifier(getattr(completion, "system_fingerprint", None)),
            tool_calls=calls and self._redact(calls),
        )


def _imported() -> ModuleType:
    """Import LiteLLM, which takes seconds, and turn off its messages and reports."""
    litellm = importlib.import_module("litellm")
    litellm.suppress_debug_info = True  # type: ignore[attr-defined] # a setting of the module
    litellm.telemetry = False  # type: ignore[attr-defined] # a setting of the module
    return litellm


def open_litellm(rest: str | None, settings: RunSettings) -> LiteLLMTarget:
    return LiteLLMTarget(model_of("litellm", rest), settings)
