"""Client of Anthropic's Messages API."""

from __future__ import annotations

import json

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.records import Json, Request, Response, is_block, thoughts_of, with_thoughts
from pytest_fairness.targets.base import refuse_stream
from pytest_fairness.targets.one_line import identifier
from pytest_fairness.targets.web.api_client import (
    EVENT_STREAM,
    MALFORMED,
    NEUTRAL,
    ApiClient,
    StatusError,
    read_response,
    token_count,
)
from pytest_fairness.targets.web.endpoint import Endpoint
from pytest_fairness.targets.web.http_errors import blocked_response
from pytest_fairness.targets.web.http_library import httpx

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


class Messages(ApiClient):
    """Client of the Messages API.

    Args:
        endpoint: the model and its server.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint, {"anthropic-version": VERSION})

    async def ask(self, request: Request) -> Response:
        """Send a request with its sampling parameters, and return the response.

        The API accepts no seed, and requires `max_tokens`.

        If the model rejects parameters with the default value 1, they are left out of later requests.

        Raises:
            RequestFailed: this request got no response, or a response that is not a message.
            TargetError: no request can be answered: the key is rejected, the model is unknown, or the account has no
                credit.
        """
        refuse_stream(self._name, request)
        fields = request.sampling.to_json()
        sampling = self._accepted({name: fields[name] for name in NEUTRAL if name in fields})
        version = {"anthropic-version": SAMPLING_VERSION} if sampling else {}
        with self._translated_errors():
            try:
                body = self._body(request) | sampling | ({"stream": True} if self._streams else {})
                response = await self._send("POST", PATH, body, headers=version)
            except StatusError as error:
                if error.blocked:
                    return blocked_response()
                if error.status == 400 and self._wants_stream(error):
                    raise RequestFailed(str(self._error_of(error)), retry=RetryReason.REPHRASED) from error
                if rejected := self._sampling_error(error, sampling | request.sampling.extra_fields):
                    raise rejected from error
                raise
        self._has_answered = True
        return await read_response(self._read, response)

    def _body(self, request: Request) -> dict[str, Json]:
        """Return the body of a request without its sampling parameters."""
        limit, tools = request.sampling.max_tokens, request.tool_definitions
        return {
            "model": self._model,
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
                    f"{self._name}: {self._endpoint} knows no model {self._model!r} (HTTP 404: {shown}). Check "
                    "--fairness-target."
                )
            case 402 | 400 if error.status == 402 or "credit balance" in error.said:
                return TargetError(
                    f"{self._name}: the account has no credit (HTTP {error.status}: {shown}). Add credit."
                )
            case _:
                return self._errors.for_status(error.status, error.response.headers, error.said)

    def _read(self, response: httpx.Response) -> Response:
        try:
            return self._read_message(message_in(response.content))
        except MALFORMED as error:
            raise self._malformed_error("a message", response.content) from error

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
                f"{self._name}: the message of {self._endpoint} has no text "
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
    for event in (json.loads(line[5:]) for line in content.splitlines() if line.startswith(b"data:")):
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
