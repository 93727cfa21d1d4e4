"""Targets and embedding models of providers: OpenAI's API and compatible services, Anthropic, LiteLLM."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pytest_fairness.errors import FairnessError, RequestFailed, RetryReason, TargetError, identifier
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request, Response, is_block, reply_of, with_thoughts
from pytest_fairness.targets import web
from pytest_fairness.targets.base import Target, refuse_stream, versioned
from pytest_fairness.targets.transformers import TextEncoder, TransformersTarget
from pytest_fairness.targets.transformers_models import PAUSE, Job
from pytest_fairness.targets.web import API_KEY_ENV, BASE_URL, ApiTarget

if TYPE_CHECKING:
    from pytest_fairness.targets.anthropic import Messages
    from pytest_fairness.targets.base import BatchClient
    from pytest_fairness.targets.http_client import HttpErrors
    from pytest_fairness.targets.openai import Chat


# Targets `openai:MODEL`: OpenAI, and all servers with its chat completions API.

OPENAI_URL, OPENAI_KEY = "https://api.openai.com/v1", "OPENAI_API_KEY"


class OpenAITarget(ApiTarget["Chat"]):
    """Model behind OpenAI's or a compatible chat completions API."""

    likelihoods = True
    setting: ClassVar[str] = "--fairness-target"
    serves: ClassVar[str] = "a chat endpoint"

    def __init__(self, model: str, settings: RunSettings) -> None:
        super().__init__(
            "openai",
            model,
            default_url=OPENAI_URL,
            base_url=settings.base_url or "",
            url_settings=("--fairness-base-url or base_url=… of the target", "http://localhost:8000/v1"),
            key_variables=(OPENAI_KEY,),
            settings=settings,
        )
        self._needs_key |= self._is_default_address

    def _connect(self) -> Chat:
        from pytest_fairness.targets.openai import Chat

        return Chat(self._endpoint(), setting=self.setting, serves=self.serves)

    def batch_client(self) -> BatchClient:
        from pytest_fairness.targets.openai import ChatBatches

        return ChatBatches(self._endpoint(), own_server=not self._is_default_address)

    def _cure_of_missing_key(self) -> str:
        other = f", or name a server of your own with {self._url_setting}"
        return f"{super()._cure_of_missing_key()}{other if self._is_default_address else ''}"

    async def ask(self, request: Request) -> Response:
        if request.answer_format == "likelihood":
            return await self._opened().likelihood(request)
        return await super().ask(request)


def open_openai(rest: str | None, settings: RunSettings) -> OpenAITarget:
    return OpenAITarget(web.model_of("openai", rest), settings)


# Targets `anthropic:MODEL`.

ANTHROPIC_URL = "https://api.anthropic.com"
KEY_NAME, URL_NAME = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"


class AnthropicTarget(ApiTarget["Messages"]):
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
        from pytest_fairness.targets.anthropic import MessageBatches

        return MessageBatches(self._endpoint())

    def _connect(self) -> Messages:
        from pytest_fairness.targets.anthropic import Messages

        return Messages(self._endpoint())


def open_anthropic(rest: str | None, settings: RunSettings) -> AnthropicTarget:
    return AnthropicTarget(web.model_of("anthropic", rest), settings)


# Targets `litellm:MODEL`: models of Amazon Bedrock, Vertex AI and all other providers that LiteLLM supports.

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
        self._base_url = settings.target_options.get(BASE_URL)
        self._key_variable = settings.target_options.get(API_KEY_ENV)
        at = f" at {web.public_url(self._base_url)}" if self._base_url else ""
        self.identity = versioned(f"{self.name}{at}", settings.target_version)
        self.reusable = settings.target_version is not None or not self._base_url or not web.in_pull_request()
        self._litellm: ModuleType | None = None
        self._errors: HttpErrors | None = None

    def check(self) -> None:
        if find_spec("litellm") is None:
            raise TargetError(f'{self.name} needs the package litellm: pip install "pytest-fairness[litellm]".')
        self._key()

    async def open(self) -> None:
        from pytest_fairness.targets.http_client import HttpErrors

        self.check()
        self._litellm = await asyncio.to_thread(_imported)
        secrets = [value for name, value in os.environ.items() if any(part in name.upper() for part in SECRET_NAMES)]
        self._redact = web.secret_remover(
            filter(web.is_distinct, [*secrets, self._key(), *web.secrets_of(self._base_url or "")])
        )
        provider = web.public_url(self._base_url) if self._base_url else "LiteLLM"
        where = f"the environment variables that LiteLLM documents for {self._model.partition('/')[0]}"
        self._errors = HttpErrors(self.name, provider, where, self._redact)

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
                return Response("", finish_reason="content_filter")
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
        from pytest_fairness.targets.http_client import is_blocked

        policy = getattr(self._litellm, "exceptions", None)
        if policy is not None and isinstance(error, policy.ContentPolicyViolationError):
            return True
        status = getattr(error, "status_code", None)
        said = [{"message": str(error), "code": getattr(error, "code", None)}, getattr(error, "body", None)]
        return isinstance(status, int) and is_blocked(said, status)

    def _translated(self, error: Exception) -> RequestFailed | TargetError:
        if self._litellm is None or self._errors is None:
            raise error
        said = self._errors.quoted(str(error)).removesuffix(".")
        kinds = self._litellm.exceptions
        match error:
            case kinds.Timeout():
                return self._errors.timed_out(None)
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
        if status == 400 and web.OF_STREAMS.search(said):
            return TargetError(
                f"{self.name}: the server answers only as a stream of events, which this target does not read: {said}. "
                "Use an openai: target with fairness_base_url, which reads streams."
            )
        if not isinstance(status, int):
            return RequestFailed(f"{self.name}: {type(error).__name__}: {said}")
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        return self._errors.for_status(status, headers, said)

    def _read(self, completion: Any) -> Response:
        from pytest_fairness.targets.http_client import finish_reason

        choice, usage = completion.choices[0], getattr(completion, "usage", None)
        refusal = getattr(choice.message, "refusal", None)
        text = choice.message.content if choice.message.content is not None else refusal
        thoughts = str(getattr(choice.message, "reasoning_content", None) or "")
        written = [call.model_dump() for call in getattr(choice.message, "tool_calls", None) or []]
        try:
            calls = reply_of({"tool_calls": written}).calls_as_json if written else None
        except ValueError as error:
            raise RequestFailed(f"{self.name}: the completion {error}.", retry=RetryReason.TRANSIENT) from error
        reason = finish_reason(choice.finish_reason)
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
    return LiteLLMTarget(web.model_of("litellm", rest), settings)


# Embedding models that probes can name: `openai:MODEL` and `transformers:ID_OR_PATH`.

BATCH = 64
"""Maximum number of texts in one HTTP request."""

Outcomes = list[Response | FairnessError]


def open_embedder(spec: str, settings: RunSettings, folder: Path) -> Target:
    """Return the embedding model that a probe names; send nothing, load nothing and need no key yet.

    A path is relative to the probe's folder.

    Raises:
        TargetError: the model's path leads out of the folder or to no model, or an address or header is not valid.
    """
    prefix, _, rest = spec.strip().partition(":")
    # `fairness_target_version` is the version of the audited system, not of the embedding model.
    base_url = settings.embeddings_base_url or settings.base_url
    settings = replace(settings, base_url=base_url, target_version=None, root=folder)
    try:
        if prefix == "openai":
            return OpenAIEmbedder(rest, settings)
        _require_inside(rest, folder)
        return TransformersEmbedder(rest, settings)
    except TargetError as error:
        raise TargetError(str(error).replace("--fairness-target", "`embeddings` in the probe file")) from error


def _require_inside(written: str, folder: Path) -> None:
    """Raise `TargetError` for a model outside of the probe's folder, because probe files may be untrusted."""
    path = Path(written)
    leads_out = path.is_absolute() or written.startswith("~") or ".." in path.parts
    if leads_out or not (folder / path).resolve().is_relative_to(folder.resolve()):
        raise TargetError(
            f"transformers:{written}: the model must be inside of the probe's folder. Move it there, and write its "
            "path relative to this folder (`embeddings` in the probe file)."
        )


class OpenAIEmbedder(OpenAITarget):
    """Embedding model of OpenAI or of a compatible server; texts that wait at the same time share one request."""

    likelihoods = False
    lasting = True
    setting = "`embeddings` in the probe file"
    serves = "an embeddings endpoint"

    def __init__(self, model: str, settings: RunSettings) -> None:
        super().__init__(model, settings)
        self._next: tuple[asyncio.Task[Outcomes], list[str]] | None = None
        self._running: set[asyncio.Task[Outcomes]] = set()

    async def ask(self, request: Request) -> Response:
        if self._next is None or len(self._next[1]) >= BATCH:
            texts: list[str] = []
            task = asyncio.create_task(self._embeddings_after_pause(texts))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            self._next = task, texts
        task, texts = self._next
        texts.append(request.prompt)
        place = len(texts) - 1
        # Cancelling one text must not cancel the others.
        outcome = (await asyncio.shield(task))[place]
        if isinstance(outcome, FairnessError):
            raise outcome
        return outcome

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)
        await super().close()

    async def _embeddings_after_pause(self, texts: list[str]) -> Outcomes:
        await asyncio.sleep(PAUSE)  # further texts join the request meanwhile
        if self._next is not None and self._next[1] is texts:
            self._next = None
        try:
            return await self._opened().embeddings(texts)
        except RequestFailed as error:
            if len(texts) == 1 or error.retry is not None:
                raise
        # One of the texts may be too long; the others are not affected.
        return [await self._embedding_of(text) for text in texts]

    async def _embedding_of(self, text: str) -> Response | FairnessError:
        try:
            return (await self._opened().embeddings([text]))[0]
        except RequestFailed as error:
            return error


class TransformersEmbedder(TransformersTarget):
    """Hugging Face model that embeds texts in batches."""

    likelihoods = False
    lasting = True

    def check(self) -> None:
        if self._weights.gguf:
            raise TargetError(
                f"{self.name}: embeddings cannot be computed with a GGUF file. Set `embeddings` in the probe file to "
                "transformers:FOLDER, with the folder of a Hugging Face model."
            )
        super().check()

    def _load(self) -> TextEncoder:

        return TextEncoder(self.name, self._weights, self._device)

    def _answer(self, batch: Sequence[Job]) -> Sequence[Response | FairnessError]:
        encoder = cast("TextEncoder", self._model)  # requests are batched only after the model is loaded
        return encoder.embed([job.request.prompt for job in batch])
