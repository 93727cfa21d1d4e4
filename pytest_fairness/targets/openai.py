"""Targets `openai:MODEL`: OpenAI's APIs and compatible servers, with likelihoods, embeddings and batches."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pytest_fairness.errors import FairnessError, RequestFailed, TargetError, identifier
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Json, Request, Response, is_block, is_thought, thoughts_of, with_thoughts
from pytest_fairness.targets import base
from pytest_fairness.targets.api import (
    CLOCK_SKEW,
    EVENT_STREAM,
    MALFORMED,
    ApiBatches,
    ApiTarget,
    Endpoint,
    events_in,
    id_of,
    model_of,
    token_count,
)
from pytest_fairness.targets.base import PAUSE, BatchClient, BatchIntent, BatchResult, BatchStatus, json_line
from pytest_fairness.targets.web import BLOCKED, Reply, StatusError, finish_reason, is_blocked, public_url

URL, KEY_VARIABLE = "https://api.openai.com/v1", "OPENAI_API_KEY"
NO_KEY = "none"
"""Placeholder for the key of an SDK that has none; the placeholder is not sent."""
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


class OpenAITarget(ApiTarget):
    """Model behind OpenAI's or a compatible chat completions API."""

    likelihoods = True
    default_path = "/v1"
    setting: ClassVar[str] = "--fairness-target"
    """Setting that names the model, for messages."""
    serves: ClassVar[str] = "a chat endpoint"

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        # Without a path in its address, a server may have its API under `/v1` or under `/`.
        self._roots: tuple[str, ...] = ("",) if urlsplit(endpoint.base_url).path.strip("/") else (self.default_path, "")
        self._json_format_works, self._json_format_rejections = False, 0
        self._rejections: dict[Request, int] = {}  # of `response_format`; 0 to send it once more
        self._no_echo: str | None = None
        self._limit_name = "max_tokens"

    def batch_client(self) -> BatchClient:
        return ChatBatches(self.endpoint)

    def _connect(self) -> None:
        import openai

        from pytest_fairness.targets.http_client import SdkTransport, httpx

        super()._connect()
        address = public_url(self.endpoint.base_url)
        self._sdk = openai.AsyncOpenAI(
            api_key=NO_KEY,  # the connection sends the key
            base_url=address,
            max_retries=0,
            http_client=httpx.AsyncClient(transport=SdkTransport(self._connection, httpx.URL(address))),
        )

    async def _transmit(self, method: str, path: str, body: Json = None, **more: Any) -> Reply:
        """Send a request through the SDK, and return the raw response.

        The SDK's typed methods are not used, because they double the processor time of a request, and fail if a
        compatible server leaves out a field.
        """
        import openai

        from pytest_fairness.targets.http_client import httpx

        options = {"params": more.pop("query", {}), "headers": more.pop("headers", {})}
        for root in (roots := self._roots):
            call: Any = self._sdk.get if method == "GET" else self._sdk.post
            sent = more if method == "GET" else {"body": body, **more}
            try:
                response = await call(root + path, cast_to=httpx.Response, options=options, **sent)
            except openai.APIStatusError as error:
                response = error.response
            except openai.APIConnectionError as error:
                raise (error.__cause__ or error) from error
            reply: Reply = response.extensions["reply"]
            if reply.status != 404 or root == roots[-1] or "model" in reply.text:
                break
        if reply.ok:
            self._roots = (root,)
        return reply

    async def ask(
        self, request: Request, more: Mapping[str, Json] | None = None, *, json_format: bool = True
    ) -> Response:
        """Send a request with its sampling parameters, and with `more` fields of the body.

        `json_format` says whether the body of a request for JSON sets `response_format`.
        """
        if request.answer_format == "likelihood":
            return await self._likelihood(request)
        sampling = self._accepted(request.sampling.to_json())
        body = {**self._body(request, sampling), **(more or {})}
        in_json = json_format and request.answer_format in JSON_FORMATS and "response_format" not in body
        in_json = in_json and (self._json_format_works or self._json_format_rejections < MAX_JSON_REJECTIONS)
        in_json = in_json and not self._rejections.get(request)
        if in_json:
            body["response_format"] = {"type": "json_object"}
        try:
            response = await self._answer("/chat/completions", body, sampling, self._read_body)
        except StatusError as error:
            if not in_json or error.status not in (400, 422):
                raise self._error_of(error) from error
            names_field = _NO_JSON_FORMAT.search(error.text) is not None
            once_more = self._json_format_works and not names_field and request not in self._rejections
            self._rejections[request] = 0 if once_more else MAX_JSON_REJECTIONS if names_field else 1
            raise self._rephrased(error) from error
        if response is not BLOCKED:
            self._json_format_works |= in_json
            # A server that answers only without the field may not know it; or this one answer in JSON had failed.
            self._json_format_rejections += self._rejections.pop(request, 0)
        return response

    async def _likelihood(self, request: Request) -> Response:
        """Return the likelihood of the request's continuation after its prompt.

        The server must return the tokens of prompt and continuation with log-probabilities, as vLLM does (`echo`).
        """
        if self._no_echo is not None:
            raise RequestFailed(self._no_echo)
        try:
            reply = await self._send("POST", "/completions", {"model": self.endpoint.model, **echo_body(request)})
        except StatusError as error:
            said = self._errors.quoted(error.said)
            if error.status != 404 and not (error.status in (400, 422) and rejects_echo(said)):
                raise self._error_of(error) from error
            self._no_echo = (
                f"{self.name}: {self._errors.endpoint} offers no completions with the log-probabilities of a prompt "
                f"(HTTP {error.status}: {said}), so it cannot give likelihoods. Use a vLLM server or a transformers: "
                "target."
            )
            raise RequestFailed(self._no_echo) from error
        try:
            return await self._read(reply, lambda content: read_echo(content, request))
        except ValueError as error:
            message = f"{self.name}: {self._errors.endpoint} returned no likelihoods: {error}."
            if isinstance(error, NoEcho):
                self._no_echo = f"{message} Use a vLLM server or a transformers: target."
            raise RequestFailed(self._no_echo or message) from error

    def _body(self, request: Request, sampling: Mapping[str, Json]) -> dict[str, Json]:
        fields = {self._limit_name if name == "max_tokens" else name: value for name, value in sampling.items()}
        messages = [message.to_json() for message in request.messages]
        tools = request.tool_definitions
        return {
            "model": self.endpoint.model,
            "messages": messages,
            **fields,
            **({} if tools is None else {"tools": tools}),
        }

    def _wants_other_form(self, error: StatusError, body: Mapping[str, Json]) -> bool:
        """Return whether the server rejects the name `max_tokens`, or answers only as a stream of events."""
        if "max_tokens" in body and NEW_LIMIT_NAME in error.text:
            self._limit_name = NEW_LIMIT_NAME
            return True
        return super()._wants_other_form(error, body)

    def _status_error(self, error: StatusError) -> RequestFailed | TargetError:
        shown = self._errors.quoted(error.said)
        match error.status:
            case 404:
                return TargetError(
                    f"{self.name}: {self._errors.endpoint} knows no model {self.endpoint.model!r}, or is not "
                    f"{self.serves} (HTTP 404: {shown}). Check {self.setting}, and that the address is complete; it "
                    "usually ends in /v1."
                )
            case 429 if error.code == "insufficient_quota":
                return TargetError(f"{self.name}: the account's quota is used up (HTTP 429: {shown}). Raise the quota.")
            case _:
                return self._errors.for_status(error.status, error.headers, error.said)

    def _read_body(self, content: bytes) -> Response:
        try:
            return self._read_completion(completion_in(content))
        except MALFORMED as error:
            raise self._malformed_error("a chat completion", content) from error

    def _read_completion(self, completion: Json) -> Response:
        """Return the response in a chat completion.

        Raises:
            RequestFailed: the completion has neither text, a refusal nor tool calls, and was neither filtered nor cut
                off; or the server broke it off.
            Exception: one of `MALFORMED`; the response is not a chat completion.
        """
        error = completion.get("error")
        if error and is_blocked(error):
            return BLOCKED
        choice = completion["choices"][0]
        message, error = choice["message"], error or choice.get("error")
        if error and is_blocked(error):
            return BLOCKED
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
                f"{self.name}: the completion of {self._errors.endpoint} has no text (finish_reason {reason!r})."
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


def open_openai(rest: str | None, settings: RunSettings) -> OpenAITarget:
    """Return the target `openai:MODEL`."""
    return OpenAITarget(_endpoint(model_of("openai", rest), settings))


def _endpoint(model: str, settings: RunSettings) -> Endpoint:
    return Endpoint.of(
        "openai",
        model,
        settings,
        default_url=URL,
        base_url=settings.base_url or "",
        url_settings=("--fairness-base-url or base_url=… of the target", "http://localhost:8000/v1"),
        key_variable=KEY_VARIABLE,
        key_advice="or name a server of your own with {}",
    )


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


# Embedding models of OpenAI or of a compatible server.

BATCH = 64
"""Maximum number of texts in one HTTP request."""


class OpenAIEmbedder(OpenAITarget):
    """Embedding model; texts that wait at the same time share one request."""

    likelihoods = False
    lasting = True
    setting = "`embeddings` in the probe file"
    serves = "an embeddings endpoint"

    def __init__(self, model: str, settings: RunSettings) -> None:
        super().__init__(_endpoint(model, settings))
        self._next: tuple[asyncio.Task[Outcomes], list[str]] | None = None
        self._running: set[asyncio.Task[Outcomes]] = set()

    async def ask(self, request: Request, *_: object, **__: object) -> Response:
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
            return await self._embeddings(texts)
        except RequestFailed as error:
            if len(texts) == 1 or error.retry is not None:
                raise
        # One of the texts may be too long; the others are not affected.
        outcomes: Outcomes = []
        for text in texts:
            try:
                outcomes += await self._embeddings([text])
            except RequestFailed as error:
                outcomes.append(error)
        return outcomes

    async def _embeddings(self, texts: Sequence[str]) -> Outcomes:
        """Send texts in one request, and return the embedding of each text, or its error."""
        body = {"model": self.endpoint.model, "input": list(texts), "encoding_format": "float"}
        try:
            reply = await self._send("POST", "/embeddings", body)
        except StatusError as error:
            raise self._error_of(error) from error
        source = f"{self.name}: {self._errors.endpoint}"
        found = await self._read(reply, lambda content: base.read_embeddings(content, len(texts), source))
        if isinstance(found, Response):
            raise RequestFailed(f"{source} sent a response that is too large. Shorten the texts.")
        return found


Outcomes = list[Response | FairnessError]


# Client of OpenAI's Batch API: requests are uploaded as a file, and results are downloaded as files.

PATH = "/v1/chat/completions"
TOKEN = "pytest_fairness"  # noqa: S105 - a name, not a secret
"""Name of our token in the metadata of a batch."""
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


class ChatBatches(ApiBatches, OpenAITarget):
    """Client of the Files and Batches API.

    The documented limits of a batch are 50,000 requests and 200 MB. For answers in JSON, the field `response_format` is
    set only if the prompt contains the word JSON, because OpenAI rejects the field for other prompts. The user's own
    server may know only the name `max_tokens` and not OpenAI's newer name of this field.
    """

    max_requests = 50_000
    max_bytes = 200_000_000

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._limit_name = NEW_LIMIT_NAME if endpoint.is_default else self._limit_name

    def line(self, key: str, request: Request) -> bytes:
        body = self._body(request, request.sampling.to_json())
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
            body={"purpose": "batch"},
            files={"file": file},
            headers={"Content-Type": "multipart/form-data"},
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
            return BatchResult(key, BLOCKED)
        if error or not response:
            said = error["message"] if error else "no response"
            failed = RequestFailed(f"{self.name}: {self._errors.quoted(str(said))}")
            return BatchResult(key, self._rejected(str(said)) or failed)
        body, status = response["body"], response["status_code"]
        if status != 200 and is_blocked(body, status):
            return BatchResult(key, BLOCKED)
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
