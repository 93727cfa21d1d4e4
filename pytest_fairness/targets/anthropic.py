"""Targets `anthropic:MODEL`: Anthropic's Messages API and Message Batches API."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime

from pytest_fairness.errors import RequestFailed, TargetError, identifier
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Json, Request, Response, is_block, thoughts_of, with_thoughts
from pytest_fairness.targets.api import (
    CLOCK_SKEW,
    EVENT_STREAM,
    MALFORMED,
    NEUTRAL,
    ApiBatches,
    ApiTarget,
    Endpoint,
    events_in,
    id_of,
    model_of,
    token_count,
)
from pytest_fairness.targets.base import (
    BatchClient,
    BatchIntent,
    BatchResult,
    BatchStatus,
    BatchUnclear,
    json_line,
    refuse_stream,
)
from pytest_fairness.targets.web import BLOCKED, StatusError, is_blocked

URL = "https://api.anthropic.com"
KEY_VARIABLE, URL_VARIABLE = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
PATH = "/v1/messages"
MAX_TOKENS = 4096
"""Maximum number of tokens of an answer if the probe sets no `max_tokens`: the API requires a limit, and all models
accept this one."""
VERSION = "2026-10-21"
"""Version of the API."""
SAMPLING_VERSION = "2023-06-01"
"""Last version of the API that accepts a temperature."""
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
"""`Response.finish_reason` for each stop reason of the API; other stop reasons stay unchanged."""


class AnthropicTarget(ApiTarget):
    """Model behind Anthropic's Messages API."""

    api_headers = {"anthropic-version": VERSION}  # noqa: RUF012 - declared in the base class

    def batch_client(self) -> BatchClient:
        return MessageBatches(self.endpoint)

    async def ask(self, request: Request) -> Response:
        """Send a request with its sampling parameters, but without a seed, which the API does not accept.

        If the model rejects parameters with the default value 1, they are left out of later requests.
        """
        refuse_stream(self.name, request)
        fields = request.sampling.to_json()
        sampling = self._accepted({name: fields[name] for name in NEUTRAL if name in fields})
        version = {"anthropic-version": SAMPLING_VERSION} if sampling else {}
        named = sampling | request.sampling.extra_fields
        try:
            return await self._answer(PATH, self._body(request) | sampling, named, self._read_body, headers=version)
        except StatusError as error:
            raise self._error_of(error) from error

    def _body(self, request: Request) -> dict[str, Json]:
        limit, tools = request.sampling.max_tokens, request.tool_definitions
        return {
            "model": self.endpoint.model,
            "messages": [message.to_json() for message in request.conversation],
            "max_tokens": MAX_TOKENS if limit is None else limit,
            **({} if request.system is None else {"system": request.system}),
            **({} if tools is None else {"tools": [_tool(tool["function"]) for tool in tools]}),
            **request.sampling.extra_fields,
        }

    def _status_error(self, error: StatusError) -> RequestFailed | TargetError:
        shown = self._errors.quoted(error.said)
        match error.status:
            case 404:
                return TargetError(
                    f"{self.name}: {self._errors.endpoint} knows no model {self.endpoint.model!r} (HTTP 404: {shown}). "
                    "Check --fairness-target."
                )
            case 402 | 400 if error.status == 402 or "credit balance" in error.said:
                return TargetError(
                    f"{self.name}: the account has no credit (HTTP {error.status}: {shown}). Add credit."
                )
            case _:
                return self._errors.for_status(error.status, error.headers, error.said)

    def _read_body(self, content: bytes) -> Response:
        try:
            return self._read_message(message_in(content))
        except MALFORMED as error:
            raise self._malformed_error("a message", content) from error

    def _read_message(self, message: Json) -> Response:
        """Return the response in a message.

        Raises:
            RequestFailed: the message has neither text nor tool calls, and is neither a refusal nor cut off; or it was
                broken off.
            Exception: one of `MALFORMED`; the response is not a message.
        """
        parts, reason, usage = message["content"], message.get("stop_reason"), message.get("usage")
        if (failure := self._errors.broken_off(reason)) is not None:
            raise failure
        reason = FINISH_REASONS.get(reason, reason) if isinstance(reason, str) else None
        text = "".join(str(part["text"]) for part in parts if part["type"] == "text")
        calls, thoughts = self._tool_calls([part for part in parts if part["type"] == "tool_use"]), thoughts_of(message)
        if not text and calls is None and not is_block(reason) and reason != "length" and not thoughts.strip():
            raise RequestFailed(
                f"{self.name}: the message of {self._errors.endpoint} has no text "
                f"(stop_reason {message.get('stop_reason')!r})."
            )
        usage = usage if isinstance(usage, dict) else {}
        return Response(
            self._redact_answer(with_thoughts(text, thoughts)),
            finish_reason=reason,
            prompt_tokens=token_count(usage.get("input_tokens")),
            completion_tokens=token_count(usage.get("output_tokens")),
            model=identifier(message.get("model")),
            tool_calls=calls,
        )


def open_anthropic(rest: str | None, settings: RunSettings) -> AnthropicTarget:
    """Return the target `anthropic:MODEL`."""
    endpoint = Endpoint.of(
        "anthropic",
        model_of("anthropic", rest),
        settings,
        default_url=URL,
        base_url=os.environ.get(URL_VARIABLE, "").strip(),
        url_settings=(URL_VARIABLE, "http://localhost:8000"),
        key_variable=KEY_VARIABLE,
    )
    return AnthropicTarget(endpoint)


def message_in(content: bytes) -> Json:
    """Return the message in the body of a response, which is JSON or a stream of server-sent events.

    Raises:
        ValueError: the body is neither, or the stream has an error or no stop reason, because it was broken off.
        Exception: another one of `MALFORMED`; an event is not a part of a message.
    """
    if not content.startswith(EVENT_STREAM):
        return json.loads(content)
    message: dict[str, Json] = {}
    parts: dict[int, dict[str, Json]] = {}
    for event in map(json.loads, events_in(content)):
        match event["type"]:
            case "error":
                raise ValueError("the stream has an error")
            case "message_start":
                message = dict(event["message"])
            case "content_block_start":
                parts[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                part = parts[event["index"]]
                for key in event["delta"].keys() & {"text", "thinking", "partial_json"}:
                    part[key] = (part.get(key) or "") + event["delta"][key]
            case "message_delta":
                usage = {**(message.get("usage") or {}), **(event.get("usage") or {})}
                message |= {**event["delta"], "usage": usage}
    if not message.get("stop_reason"):
        raise ValueError("the stream has no end")
    for part in parts.values():
        if (arguments := part.pop("partial_json", None)) is not None:
            part["input"] = json.loads(arguments or "{}")
    return {**message, "content": [parts[place] for place in sorted(parts)]}


def _tool(function: Json) -> Json:
    """Convert the definition of a tool from OpenAI's form to Anthropic's form."""
    return {"input_schema": function["parameters"], **{key: function[key] for key in function if key != "parameters"}}


# Client of Anthropic's Message Batches API: one HTTP request creates a batch with all its requests.

BATCHES = f"{PATH}/batches"
SETTLED = ("succeeded", "errored", "canceled", "expired")
"""Keys of the provider's `request_counts` for requests that have a result."""
REASONS = {
    "expired": "the batch expired before this request was answered",
    "canceled": "the batch was cancelled before this request was answered",
}
"""Message for each type of result that has neither an answer nor an error message of the provider."""


class MessageBatches(ApiBatches, AnthropicTarget):
    """Client of the Message Batches API.

    The documented limits of a batch are 100,000 requests and 256 MB. `temperature` and `top_p` are left out if each of
    them is unset or has the default value 1, because some models accept neither parameter.

    Batches have no metadata. A batch that a killed run may have created is found by its date, its number of requests
    and, after it has ended, by the keys in its results.
    """

    max_requests = 100_000
    max_bytes = 256_000_000

    def line(self, key: str, request: Request) -> bytes:
        params = self._body(request)
        fields = request.sampling.to_json()
        sampling = {name: fields[name] for name in NEUTRAL if name in fields}
        return json_line(
            {"custom_id": key, "params": params if sampling.items() <= NEUTRAL.items() else params | sampling}
        )

    async def upload(self, token: str, lines: Sequence[bytes]) -> str:
        """Return an empty text, because `create` sends the requests."""
        del token, lines
        return ""

    async def find(self, intent: BatchIntent) -> str | None:
        unclear: str | None = None
        async with aclosing(self._all_batches(BATCHES, "after_id", _listed)) as batches:
            async for remote, created, (size, ended) in batches:
                if created < intent.created - CLOCK_SKEW:
                    break  # the list begins with the newest batch
                if size != len(intent.keys) or remote in intent.known:
                    continue
                if not ended:
                    unclear = remote
                elif await self._holds(remote, intent):
                    return remote
        if unclear is not None:
            raise BatchUnclear(
                f"{self.name}: an earlier run ended while it created a batch. Batch {unclear} may be that batch; "
                "this can be checked after the batch has ended. Run again then."
            )
        return None

    async def _holds(self, remote: str, intent: BatchIntent) -> bool:
        async with aclosing(self._read_lines(f"{BATCHES}/{remote}/results", self._result)) as results:
            async for result in results:
                return result.key in intent.keys
        return False

    async def create(self, intent: BatchIntent, lines: Sequence[bytes]) -> str:
        del intent
        return await self._read_json(
            "a batch with an id",
            lambda batch: id_of(batch["id"]),
            "POST",
            BATCHES,
            body={"requests": [json.loads(line) for line in lines]},
            headers={"anthropic-version": SAMPLING_VERSION},
        )

    async def status(self, remote: str) -> BatchStatus:
        return await self._read_json("a batch", self._status, "GET", f"{BATCHES}/{remote}")

    def _status(self, batch: Json) -> BatchStatus:
        settled = sum(int(batch["request_counts"][name]) for name in SETTLED)
        name = str(batch["processing_status"])
        return BatchStatus(self._errors.quoted(name, 40), name == "ended", settled)

    def results(self, remote: str, status: BatchStatus) -> AsyncGenerator[BatchResult]:
        del status
        return self._read_lines(f"{BATCHES}/{remote}/results", self._result)

    def _result(self, line: Json) -> BatchResult:
        key, result = str(line["custom_id"]), line["result"]
        if result["type"] == "succeeded":
            return BatchResult(key, self._outcome(self._read_message, result["message"], "a message"))
        if is_blocked(result.get("error")):
            return BatchResult(key, BLOCKED)
        said = REASONS.get(result["type"]) or str(result["error"]["error"]["message"])
        return BatchResult(key, self._rejected(said) or RequestFailed(f"{self.name}: {self._errors.quoted(said)}"))

    def _status_error(self, error: StatusError) -> RequestFailed | TargetError:
        return self._no_batches_error(error.said) if error.status == 404 else super()._status_error(error)


def _listed(batch: Json) -> tuple[str, float, tuple[int, bool]]:
    """Return a batch's id, its date, its number of requests, and whether it has ended."""
    size = sum(int(batch["request_counts"][name]) for name in ("processing", *SETTLED))
    created = datetime.fromisoformat(batch["created_at"]).timestamp()
    return id_of(batch["id"]), created, (size, batch["processing_status"] == "ended")
