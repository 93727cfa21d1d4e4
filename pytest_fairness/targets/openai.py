"""Clients of OpenAI's APIs and of compatible servers: chat completions, likelihoods, batches."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import openai

from pytest_fairness.errors import FairnessError, RequestFailed, RetryReason, TargetError, identifier
from pytest_fairness.records import Json, Request, Response, is_block, is_thought, thoughts_of, with_thoughts
from pytest_fairness.targets import base
from pytest_fairness.targets.api_client import (
    CLOCK_SKEW,
    EVENT_STREAM,
    MALFORMED,
    ApiBatches,
    ApiClient,
    StatusError,
    events_in,
    id_of,
    read_response,
    token_count,
)
from pytest_fairness.targets.base import BatchIntent, BatchResult, BatchStatus, json_line
from pytest_fairness.targets.http_client import (
    blocked_response,
    finish_reason,
    httpx,
    is_blocked,
    is_too_long,
    parsed,
    parsed_url,
)
from pytest_fairness.targets.web import Endpoint

if TYPE_CHECKING:
    from openai._types import RequestOptions  # the package does not export this type


# Client of OpenAI's chat completions and of compatible servers.

ACCOUNT_HEADERS = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
"""Headers that say which account of OpenAI is charged, and the environment variables that set them."""
NO_KEY = "none"
"""Placeholder for the key of a client that has none; the placeholder is not sent."""
UNSENT_HEADERS = (
    "X-Stainless-Arch",
    "X-Stainless-Async",
    "X-Stainless-Lang",
    "X-Stainless-OS",
    "X-Stainless-Package-Version",
    "X-Stainless-Read-Timeout",
    "X-Stainless-Retry-Count",
    "X-Stainless-Runtime",
    "X-Stainless-Runtime-Version",
)
"""Headers in which the `openai` client describes this machine. They are not sent, because no server needs them, and
because handling them takes a tenth of the processor time of a request."""
MAX_JSON_REJECTIONS = 3
"""Number of requests that a server answers only without `response_format`, after which the field is no longer sent. One
request is enough if the error names the field. A server that has accepted the field once gets it in all requests."""
_NO_JSON_FORMAT = re.compile(r"\A(?!.*contain the word).*(?:response_format|json_object)", re.IGNORECASE | re.DOTALL)
"""Error that names the field. OpenAI also names it if the prompt lacks the word JSON, which other prompts may have."""
JSON_FORMATS = ("json", "structured")
"""Answer formats whose requests set `response_format`."""
NEW_LIMIT_NAME = "max_completion_tokens"
"""Name of `max_tokens` for newer models of OpenAI, which reject the old name. Other servers may know only the old
name."""


class _Client(openai.AsyncOpenAI):
    """The SDK's client, which parses equal addresses only once."""

    def _prepare_url(self, url: str) -> httpx.URL:
        return parsed_url(url) if "://" in url else super()._prepare_url(url)


class Chat(ApiClient):
    """Client of chat completions, of older completions that repeat their prompt (`echo`), and of embeddings.

    `setting` names the model, and `serves` says what the endpoint must be, such as "a chat endpoint", in messages.
    """

    def __init__(
        self, endpoint: Endpoint, *, setting: str = "--fairness-target", serves: str = "a chat endpoint"
    ) -> None:
        bare = endpoint.base_url
        endpoint = replace(endpoint, base_url=with_version(bare))
        own = {name: os.environ.get(variable, "").strip() for name, variable in ACCOUNT_HEADERS.items()}
        headers = {name: value for name, value in own.items() if value}
        super().__init__(endpoint, headers)
        self._setting, self._serves = setting, serves
        self._json_format_works, self._json_format_rejections = False, 0
        self._rejections: dict[Request, int] = {}  # of `response_format`; 0 to send it once more
        self._no_echo: str | None = None
        self._limit_name = "max_tokens"

        address = urlsplit(endpoint.base_url)
        self._client = _Client(
            api_key=endpoint.key or NO_KEY,  # the client demands a key
            # The client would append the paths of its methods to the query.
            base_url=urlunsplit(address._replace(query="", fragment="")),
            default_query=dict(parse_qsl(address.query)),
            default_headers=self._headers,
            timeout=endpoint.timeout,
            max_retries=0,
            http_client=self._http_client,
        )
        # Older versions of the client log a complete address with its login.
        self._roots: tuple[str, ...] = ("",) if "@" in address.netloc else (str(self._client.base_url),)
        if bare != endpoint.base_url and self._roots != ("",):
            self._roots += (urlunsplit(address._replace(path="/", query="", fragment="")),)
        unsent = dict.fromkeys(UNSENT_HEADERS, openai.Omit())
        if not endpoint.key and "authorization" not in map(str.lower, self._headers):
            unsent["Authorization"] = openai.Omit()  # a server may reject the placeholder
        # The client copies a default for each option that is not given, and makes a key, which it does not send.
        self._options: RequestOptions = {
            "headers": unsent,
            "params": {},
            "max_retries": 0,
            "timeout": endpoint.timeout,
            "idempotency_key": "unused",
            "security": {"bearer_auth": True},
            "post_parser": openai.NOT_GIVEN,  # type: ignore[typeddict-unknown-key] # the client knows the option
        }

    async def ask(
        self, request: Request, more: Mapping[str, Json] | None = None, *, json_format: bool = True
    ) -> Response:
        """Send a request with its sampling parameters, and with `more` fields of the body.

        `json_format` says whether the body of a request for JSON sets `response_format`.

        Raises:
            RequestFailed: this request got no response, or a response that is not a chat completion.
            TargetError: no request can be answered: the key is rejected or the model is unknown.
        """
        sampling = self._accepted(request.sampling.to_json())
        body = {**self._body(request, sampling), **(more or {})}
        in_json = json_format and request.answer_format in JSON_FORMATS and self._takes_json_format()
        in_json = in_json and not self._rejections.get(request) and "response_format" not in body
        with self._translated_errors():
            try:
                response = await read_response(self._read, await self._complete(body, in_json))
            except StatusError as error:
                if error.blocked:
                    return blocked_response()
                if error.status == 400 and (self._wants_new_limit_name(error) or self._wants_stream(error)):
                    raise RequestFailed(str(self._error_of(error)), retry=RetryReason.REPHRASED) from error
                if rejected := self._sampling_error(error, sampling):
                    raise rejected from error
                if error.status in (400, 422) and in_json:
                    names_field = _NO_JSON_FORMAT.search(error.response.text) is not None
                    once_more = self._json_format_works and not names_field and request not in self._rejections
                    self._rejections[request] = 0 if once_more else MAX_JSON_REJECTIONS if names_field else 1
                    raise RequestFailed(str(self._error_of(error)), retry=RetryReason.REPHRASED) from error
                raise
        self._has_answered = True
        self._json_format_works |= in_json
        # A server that answers only without `response_format` may not know it; or this one answer in JSON had failed.
        self._json_format_rejections += self._rejections.pop(request, 0)
        return response

    def _takes_json_format(self) -> bool:
        return self._json_format_works or self._json_format_rejections < MAX_JSON_REJECTIONS

    async def likelihood(self, request: Request) -> Response:
        """Return the likelihood of the request's continuation after its prompt.

        The server must return the tokens of prompt and continuation with log-probabilities, as vLLM does (`echo`).
        """
        if self._no_echo is not None:
            raise RequestFailed(self._no_echo)
        with self._translated_errors():
            try:
                answer = await self._post("completions", {"model": self._model, **echo_body(request)})
            except StatusError as error:
                said = self._errors.quoted(error.said)
                if error.status != 404 and not (error.status in (400, 422) and rejects_echo(said)):
                    raise
                self._no_echo = (
                    f"{self._name}: {self._endpoint} offers no completions with the log-probabilities of a prompt "
                    f"(HTTP {error.status}: {said}), so it cannot give likelihoods. Use a vLLM server or a "
                    "transformers: target."
                )
                raise RequestFailed(self._no_echo) from error
        try:
            return await read_response(lambda response: read_echo(response.content, request), answer)
        except ValueError as error:
            message = f"{self._name}: {self._endpoint} returned no likelihoods: {error}."
            if isinstance(error, NoEcho):
                self._no_echo = f"{message} Use a vLLM server or a transformers: target."
            raise RequestFailed(self._no_echo or message) from error

    async def embeddings(self, texts: Sequence[str]) -> list[Response | FairnessError]:
        """Return the embedding of each text, or its error; the texts are sent in one request.

        Raises:
            RequestFailed: the request got no response, or a response over the size limit.
            TargetError: no request can be answered: the key is rejected or the model is unknown.
        """
        with self._translated_errors():
            body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
            response = await self._post("embeddings", body)
        if is_too_long(response):
            raise RequestFailed(f"{self._name}: the response of {self._endpoint} is too large. Shorten the texts.")
        source = f"{self._name}: {self._endpoint}"
        return await parsed(lambda response: base.read_embeddings(response.content, len(texts), source), response)

    def _body(self, request: Request, sampling: Mapping[str, Json]) -> dict[str, Any]:
        messages = [message.to_json() for message in request.messages]
        tools = request.tool_definitions
        more = {} if tools is None else {"tools": tools}
        return {"model": self._model, "messages": messages, **sampling, **more}

    async def _complete(self, body: Mapping[str, Any], in_json: bool) -> httpx.Response:
        fields = {"stream": True, **body} if self._streams else dict(body)
        if in_json:
            fields["response_format"] = {"type": "json_object"}
        if "max_tokens" in fields:
            fields[self._limit_name] = fields.pop("max_tokens")
        return await self._post("chat/completions", fields)

    async def _post(self, path: str, body: Mapping[str, Json]) -> httpx.Response:
        """Send a body through the `openai` client, and return the raw response.

        The client's typed methods are not used, because they double the processor time of a request, and fail if a
        compatible server leaves out a field. The client gets the complete address, because it then needs less time.

        Raises:
            StatusError: the status is not a success.
            httpx.HTTPError: no complete response arrived.
        """
        for root in (roots := self._roots):
            try:
                answer = await self._client.post(root + path, cast_to=httpx.Response, body=body, options=self._options)
            except openai.APIStatusError as error:
                # Without a path in its address, a server may have its API under `/v1` or under `/`.
                if error.status_code == 404 and root != roots[-1] and "model" not in error.response.text:
                    continue
                raise StatusError(error.response) from error
            except openai.APIConnectionError as error:
                raise (error.__cause__ or error) from error
            break
        self._roots = (root,)
        return answer

    def _wants_new_limit_name(self, error: StatusError) -> bool:
        """Return whether the server rejects the name `max_tokens`; if so, use the newer name for later requests."""
        sent = json.loads(error.response.request.content)
        if "max_tokens" not in sent or NEW_LIMIT_NAME not in error.response.text:
            return False
        self._limit_name = NEW_LIMIT_NAME
        return True

    def _status_error(self, error: StatusError) -> RequestFailed | TargetError:
        shown = self._errors.quoted(error.said)
        match error.status:
            case 404:
                return TargetError(
                    f"{self._name}: {self._endpoint} knows no model {self._model!r}, or is not {self._serves} (HTTP "
                    f"404: {shown}). Check {self._setting}, and that the address is complete; it usually ends in /v1."
                )
            case 429 if error.code == "insufficient_quota":
                return TargetError(
                    f"{self._name}: the account's quota is used up (HTTP 429: {shown}). Raise the quota."
                )
            case _:
                return self._errors.for_status(error.status, error.response.headers, error.said)

    def _read(self, response: httpx.Response) -> Response:
        try:
            return self._read_completion(completion_in(response.content))
        except MALFORMED as error:
            raise self._malformed_error("a chat completion", response.content) from error

    def _read_completion(self, completion: Json) -> Response:
        """Return the response in a chat completion.

        Raises:
            RequestFailed: the completion has neither text, a refusal nor tool calls, and was neither filtered nor cut
                off; or the server broke it off.
            Exception: one of `MALFORMED`; the response is not a chat completion.
        """
        error = completion.get("error")
        if error and is_blocked(error):
            return blocked_response()
        choice = completion["choices"][0]
        message, error = choice["message"], error or choice.get("error")
        if error and is_blocked(error):
            return blocked_response()
        text, refusal, reason = _joined(message.get("content")), message.get("refusal"), choice.get("finish_reason")
        if (failure := self._errors.broken_off(reason, error)) is not None:
            raise failure
        thoughts, reason = thoughts_of(message), finish_reason(reason)
        usage, model = completion.get("usage"), identifier(completion.get("model"))
        if refusal:
            text, reason = text or str(refusal), "refusal"
        elif text is None and (is_block(reason) or reason == "length" or message.get("tool_calls") or thoughts.strip()):
            text = ""
        if text is None:
            raise RequestFailed(
                f"{self._name}: the completion of {self._endpoint} has no text (finish_reason {reason!r})."
            )
        usage = usage if isinstance(usage, dict) else {}
        return Response(
            self._redact_answer(with_thoughts(text, thoughts)),
            finish_reason=reason,
            prompt_tokens=token_count(usage.get("prompt_tokens")),
            completion_tokens=token_count(usage.get("completion_tokens")),
            model=model,
            fingerprint=identifier(completion.get("system_fingerprint")),
            tool_calls=self._tool_calls(message.get("tool_calls")),
        )


def with_version(base_url: str) -> str:
    """Return an API's address, with the path `/v1` if it has none."""
    address = urlsplit(base_url)
    return base_url if address.path.strip("/") else urlunsplit(address._replace(path="/v1"))


def completion_in(content: bytes) -> Json:
    """Return the chat completion in the body of a response, which is JSON or a stream of server-sent events.

    Raises:
        ValueError: the body is neither, or the stream has an error or no finish reason, because it was broken off.
        Exception: another one of `MALFORMED`; an event is not a part of a chat completion.
    """
    if not content.startswith(EVENT_STREAM):
        return json.loads(content)
    completion: dict[str, Json] = {}
    message: dict[str, Json] = {}
    parts: list[Json] = []
    calls: dict[int, dict[str, str]] = {}
    last: dict[str, Json] = {}
    for event in (json.loads(event) for event in events_in(content) if event != b"[DONE]"):
        if event.get("error"):
            raise ValueError("the stream has an error")
        completion |= {key: value for key, value in event.items() if value}
        for choice in event.get("choices", ())[:1]:
            delta = choice.get("delta") or {}
            last |= {key: value for key, value in choice.items() if value is not None}
            if part := delta.get("content"):
                parts += part if isinstance(part, list) else [part]
            for key in ("refusal", "reasoning_content", "reasoning"):
                if delta.get(key):
                    message[key] = message.get(key, "") + delta[key]
            for call in delta.get("tool_calls") or ():
                own = calls.setdefault(call.get("index", len(calls)), {"name": "", "arguments": ""})
                for key, value in (call.get("function") or {}).items():
                    own[key] += value or ""
    if "finish_reason" not in last:
        raise ValueError("the stream has no end")
    tool_calls = [{"type": "function", "function": calls[place]} for place in sorted(calls)]
    message |= {"content": parts or None, "tool_calls": tool_calls}
    return {**completion, "choices": [{**last, "message": message}]}


def _joined(content: Json) -> str | None:
    """Return the text of a message's content, which is a text or a list of parts; `None` without text."""
    if isinstance(content, list):
        texts = [part.get("text") if isinstance(part, dict) else part for part in content if not is_thought(part)]
        found = [text for text in texts if isinstance(text, str)]
        return "".join(found) if found else None
    return content if isinstance(content, str) else None


# Likelihoods from OpenAI's older completions API.
#
# With the field `echo`, a completion repeats the tokens of its prompt with their log-probabilities.


class NoEcho(ValueError):
    """Error for a response without the prompt's tokens; llama.cpp's server, for example, ignores the field `echo`."""


def echo_body(request: Request) -> dict[str, Any]:
    """Return the body of a request for the log-probabilities of prompt and continuation.

    One token is generated after the text, because not every server accepts `max_tokens` 0.
    """
    text = request.prompt + (request.continuation or "")
    return {"prompt": text, "echo": True, "max_tokens": 1, "logprobs": 1, "temperature": 0}


def rejects_echo(said: str) -> bool:
    return any(word in said.casefold() for word in ("echo", "logprobs", "completions"))


def read_echo(content: bytes, request: Request) -> Response:
    """Return the response with the log-probability of each token of the continuation; `None` if the server gives none.

    Raises:
        NoEcho: the response has no tokens with log-probabilities.
        ValueError: the tokens do not match the text, or there is not one log-probability (a number or `null`) for each
            token.
    """
    try:
        completion = json.loads(content)
        logprobs = completion["choices"][0]["logprobs"]
        tokens, logs = list(map(str, logprobs["tokens"])), list(logprobs["token_logprobs"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise NoEcho("the response has no log-probabilities of its prompt's tokens") from None
    text = request.prompt + (request.continuation or "")
    spans = _spans(tokens, text)
    if len(spans) != len(logs) or not all(log is None or isinstance(log, int | float) for log in logs):
        raise ValueError("the response does not have one log-probability (a number or null) for each token")
    own = [place for place, (begin, end) in enumerate(spans) if end > len(request.prompt) and begin < len(text)]
    pieces = [text[max(0, spans[place][0]) : spans[place][1]] for place in own]
    usage = completion.get("usage")
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    response = base.likelihood_response(
        pieces, [logs[place] for place in own], count if isinstance(count, int) else len(tokens)
    )
    model, fingerprint = (identifier(completion.get(name)) for name in ("model", "system_fingerprint"))
    return replace(response, model=model, fingerprint=fingerprint)


def _spans(tokens: list[str], text: str) -> list[tuple[int, int]]:
    """Return the start and end index of each token in the text; tokens added by the server lie outside of the text.

    Tokens that encode parts of the same character all get the position of this character.

    Raises:
        ValueError: the tokens do not match the text, or end before the end of the text.
    """
    front = 1 if tokens and _is_whole(tokens[0]) and not text.startswith(tokens[0]) else 0
    spans = [(-len(token), 0) for token in tokens[:front]]
    at, split = 0, 0
    for place in range(front, len(tokens)):
        token = tokens[place]
        if at == len(text) and not split:
            spans.append((at, at + 1 + len(token)))
        elif not _is_whole(token):
            split += 1
        elif 0 <= (found := text.find(token, at)) - at <= _WIDEST * split:
            spans += [(at, found)] * split
            spans.append((found, found + len(token)))
            at, split = found + len(token), 0
        elif place == len(tokens) - 1 and 0 < len(text) - at <= _WIDEST * split:
            break
        else:
            raise ValueError("the tokens in the response do not match the text")
    spans += [(at, len(text))] * split
    added = len(tokens) - len(spans)
    if at + _WIDEST * split < len(text):
        raise ValueError("the tokens in the response end before the end of the text")
    return spans + [(len(text), len(text) + 1)] * added


_WIDEST = 4
"""Maximum number of characters of the text that a token with incomplete bytes may cover."""


def _is_whole(token: str) -> bool:
    """Return whether a token consists of whole characters; other tokens are some bytes of a character."""
    return bool(token) and "\N{REPLACEMENT CHARACTER}" not in token and not token.startswith("bytes:")


# Client of OpenAI's Batch API: requests are uploaded as a file, and results are downloaded as files.

PATH = "/v1/chat/completions"
TOKEN = "pytest_fairness"  # noqa: S105 - a name, not a secret
"""Name of our token in the metadata of a batch."""
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


class ChatBatches(Chat, ApiBatches):
    """Client of the Files and Batches API.

    The documented limits of a batch are 50,000 requests and 200 MB. For answers in JSON, the field `response_format` is
    set only if the prompt contains the word JSON, because OpenAI rejects the field for other prompts. The user's own
    server may know only the name `max_tokens` and not OpenAI's newer name of this field.
    """

    max_requests = 50_000
    max_bytes = 200_000_000

    def __init__(self, endpoint: Endpoint, *, own_server: bool) -> None:
        super().__init__(endpoint)
        self._limit_name = self._limit_name if own_server else NEW_LIMIT_NAME

    def line(self, key: str, request: Request) -> bytes:
        body = self._body(request, request.sampling.to_json())
        if "max_tokens" in body:
            body[self._limit_name] = body.pop("max_tokens")
        if request.answer_format in JSON_FORMATS and "json" in f"{request.system} {request.prompt}".casefold():
            body.setdefault("response_format", {"type": "json_object"})
        return json_line({"custom_id": key, "method": "POST", "url": PATH, "body": body})

    async def upload(self, token: str, lines: Sequence[bytes]) -> str:
        file = f"{token}.jsonl", b"".join(lines)
        return await self._read_json(
            "a file with an id",
            lambda answer: id_of(answer["id"]),
            "POST",
            "/files",
            files={"file": file},
            data={"purpose": "batch"},
        )

    async def find(self, intent: BatchIntent) -> str | None:
        """Return the batch with the token in its metadata."""
        async with aclosing(self._all_batches("/batches", "after", _listed)) as batches:
            async for remote, created, token in batches:
                if token == intent.token:
                    return remote
                if created < intent.created - CLOCK_SKEW:
                    break  # the list begins with the newest batch
        return None

    async def create(self, intent: BatchIntent, lines: Sequence[bytes]) -> str:
        body = {
            "completion_window": "24h",
            "endpoint": PATH,
            "input_file_id": intent.file,
            "metadata": {TOKEN: intent.token},
        }
        return await self._read_json(
            "a batch with an id", lambda batch: id_of(batch["id"]), "POST", "/batches", body=body
        )

    async def status(self, remote: str) -> BatchStatus:
        return await self._read_json("a batch", self._status, "GET", f"/batches/{remote}")

    def _status(self, batch: Json) -> BatchStatus:
        files = [id_of(batch[name]) for name in ("output_file_id", "error_file_id") if batch.get(name)]
        counts = batch.get("request_counts") or {}
        settled = int(counts.get("completed") or 0) + int(counts.get("failed") or 0)
        errors = [str(error["message"]) for error in (batch.get("errors") or {}).get("data") or []]
        name = str(batch["status"])
        said = self._errors.quoted("; ".join(errors[:3])) if errors else None
        return BatchStatus(self._errors.quoted(name, 40), name in ENDED, settled, tuple(files), said)

    async def results(self, remote: str, status: BatchStatus) -> AsyncIterator[BatchResult]:
        for file in status.files:
            async for result in self._read_lines(f"/files/{file}/content", self._result):
                yield result

    def _result(self, line: Json) -> BatchResult:
        key = str(line["custom_id"])
        response, error = line.get("response"), line.get("error")
        if error and is_blocked(error):
            return BatchResult(key, blocked_response())
        if error or not response:
            said = error["message"] if error else "no response"
            failed = RequestFailed(f"{self._name}: {self._errors.quoted(str(said))}")
            return BatchResult(key, self._rejected(str(said)) or failed)
        body, status = response["body"], response["status_code"]
        if status != 200 and is_blocked(body, status):
            return BatchResult(key, blocked_response())
        if status != 200:
            said = body["error"]["message"] if isinstance(body, dict) and "error" in body else body
            rejected = self._rejected(str(said)) if status in (400, 422) else None
            return BatchResult(key, rejected or self._errors.for_status(int(status), {}, str(said)))
        return BatchResult(key, self._outcome(self._read_completion, body, "a chat completion"))

    def _status_error(self, error: StatusError) -> RequestFailed | TargetError:
        return self._no_batches_error(error.said) if error.status == 404 else super()._status_error(error)


def _listed(batch: Json) -> tuple[str, float, Json]:
    """Return a batch's id, its date, and our token in its metadata."""
    return id_of(batch["id"]), float(batch["created_at"]), (batch.get("metadata") or {}).get(TOKEN)
