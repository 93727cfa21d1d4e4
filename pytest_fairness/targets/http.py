"""Targets `http://…` and `https://…`: services that take and return JSON, described by templates."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError, counted, joined
from pytest_fairness.options import RunSettings
from pytest_fairness.records import (
    TOO_LONG,
    AnswerFormat,
    Json,
    Request,
    Response,
    reply_of,
    thoughts_of,
    unknown_keys,
    with_thoughts,
)
from pytest_fairness.records.requests import JsonPath
from pytest_fairness.targets.base import versioned
from pytest_fairness.targets.secrets import is_distinct, secret_remover, secrets_of
from pytest_fairness.targets.web import (
    BLOCKED,
    Headers,
    References,
    Reply,
    ServerErrors,
    finish_reason_in,
    is_blocked,
    is_web_address,
    public_address,
    public_url,
)

if TYPE_CHECKING:
    from pytest_fairness.targets.http_client import Connection


# JSON documents with placeholders, which are replaced by values.

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\w+)\}")
_ABSENT = object()


class JsonTemplate:
    """JSON document whose strings may contain placeholders `{name}`; `{{` and `}}` stand for literal braces.

    A string that consists of one placeholder is replaced by the placeholder's value, such as a number. If this value is
    `None`, the string is left out. An object then loses the member with this string. A list loses the whole element in
    which the string occurs. A placeholder in a longer string is replaced by its value as text; `None` is an empty text.

    Raises:
        ValueError: the text is not JSON, is nested too deeply, or contains an unknown placeholder. The message has no
            subject; the caller writes the name of the setting before it.
    """

    def __init__(self, text: str, known: Collection[str]) -> None:
        try:
            self._document: Json = json.loads(text)
        except ValueError as error:
            raise ValueError(f"is not JSON ({error})") from error
        except RecursionError:
            raise ValueError("is nested too deeply") from None
        self.names = frozenset(_placeholders_in(self._document))
        unknown = sorted(self.names - set(known))
        if unknown:
            valid = ", ".join(f"{{{name}}}" for name in known)
            raise ValueError(f"contains {{{unknown[0]}}}; valid placeholders are {valid} (write a brace as '{{{{')")

    def filled(self, values: Mapping[str, Json]) -> Json:
        """Return the filled document; `None` if it is one placeholder with the value `None`."""
        filled, _ = _filled(self._document, values)
        return None if filled is _ABSENT else filled


def _placeholders_in(value: Json) -> list[str]:
    match value:
        case str():
            return [match[1] for match in _PLACEHOLDER.finditer(value) if match[1]]
        case dict():
            return [name for part in value.values() for name in _placeholders_in(part)]
        case list():
            return [name for part in value for name in _placeholders_in(part)]
        case _:
            return []


def _filled(value: Json, values: Mapping[str, Json]) -> tuple[Json, bool]:
    """Return the value with its placeholders replaced, and whether it is complete.

    A string that consists of one placeholder with the value `None` is left out, and is incomplete. An object is
    incomplete if one of its members is incomplete. A list leaves out its incomplete elements, and is itself complete.
    All other values are complete.
    """
    match value:
        case str():
            alone = re.fullmatch(r"\{(\w+)\}", value)
            if alone:
                replacement = values[alone[1]]
                return (_ABSENT, False) if replacement is None else (replacement, True)
            return _PLACEHOLDER.sub(lambda match: _replacement(match, values), value), True
        case dict():
            parts = {name: _filled(part, values) for name, part in value.items()}
            kept = {name: part for name, (part, _) in parts.items() if part is not _ABSENT}
            return kept, all(complete for _, complete in parts.values())
        case list():
            return [part for part, complete in (_filled(part, values) for part in value) if complete], True
        case _:
            return value, True


def _replacement(match: re.Match[str], values: Mapping[str, Json]) -> str:
    if match[1] is None:
        return match[0][0]
    replacement = values[match[1]]
    return "" if replacement is None else str(replacement)


# Targets `http://…` and `https://…`: services that take and return JSON.

MAX_UNREADABLE = 8
"""If this many answers are unreadable and none is readable, the JSONPath of the answer counts as wrong."""
_KINDS = {str: "text", dict: "an object", list: "a list", bool: "a boolean", int: "a number", float: "a number"}
PLACEHOLDERS = ("prompt", "messages", "tools", "system", "temperature", "top_p", "max_tokens", "seed")


class HttpTarget:
    """Service to which requests are sent by HTTP POST; its query may refer to environment variables as `${NAME}`.

    Raises:
        TargetError: the address, the body, the JSONPath of the answer or a header is not valid.
    """

    concurrency: int | None = None

    def __init__(self, url: str, settings: RunSettings) -> None:
        if not is_web_address(url):
            raise TargetError(
                f"{public_address(url)!r} is not an address; write it like http://localhost:8000/recommend "
                "(--fairness-target)."
            )
        self.name = public_url(url)
        if "@" in urlsplit(url).netloc:
            raise TargetError(
                f"{self.name}: the address contains a user or password. Send them with fairness_http_headers, with "
                "${NAME} for an environment variable."
            )
        self._url = url
        self._timeout = settings.timeout
        self._limit = settings.concurrency
        self._max_bytes = settings.max_answer_bytes
        self._body = self._template(settings.http_body)
        self._headers = Headers(settings.http_headers, "fairness_http_headers", self.name)
        self._references = References(self.name)
        self._path = self._json_path(settings.http_answer)
        self._answer_path = settings.http_answer
        around, content, _ = settings.http_answer.rpartition(".content")
        # The message around the answer, which may hold thoughts.
        self._message_path = self._json_path(around) if content and around else None
        asked = json.dumps([urlsplit(url).query, settings.http_body, settings.http_answer, settings.http_headers])
        version = settings.target_version
        self.identity = versioned(f"{self.name} asked by {hashlib.sha256(asked.encode()).hexdigest()[:12]}", version)
        self.reusable = version is not None
        self._connection: Connection | None = None
        self._readable_answers = self._unreadable_answers = 0

    def check(self) -> None:
        self._address_and_headers()

    async def open(self) -> None:
        # Imported here, because the import takes time and is not needed if all answers are recorded.
        from pytest_fairness.targets.http_client import Connection

        url, headers = self._address_and_headers()
        self._url = url
        self._connection = Connection(
            url,
            ServerErrors(self.name, self.name, "--fairness-target", self._redact),
            headers={"Content-Type": "application/json", **headers},
            timeout=self._timeout,
            max_bytes=self._max_bytes,
            connections=max(100, self._limit),
        )

    async def ask(self, request: Request) -> Response:
        from pytest_fairness.targets.http_client import parsed

        if self._connection is None:
            raise RuntimeError("the target is not open: call `open` before `ask`")
        errors = self._connection.errors
        content = json.dumps(self._filled_body(request))
        answer = await self._connection.send("POST", body=content.encode(), follow=False)
        if not answer.ok:
            if _is_blocked(answer):
                return BLOCKED
            raise self._status_error(answer, errors)
        if answer.too_long:
            return Response("", finish_reason=TOO_LONG)
        found = await parsed(partial(self._read, errors=errors, answer_format=request.answer_format), answer)
        calls = found.tool_calls and self._without_secrets(found.tool_calls)
        return replace(found, text=self._without_secrets(found.text), tool_calls=calls)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    # Requests

    def _template(self, text: str) -> JsonTemplate:
        try:
            template = JsonTemplate(text, PLACEHOLDERS)
        except ValueError as error:
            raise TargetError(f"{self.name}: fairness_http_body {error}.") from error
        if template.names.isdisjoint(("prompt", "messages")):
            raise TargetError(
                f"{self.name}: fairness_http_body has no {{prompt}}; add it where the service expects the prompt, or "
                "{messages} where it expects a list of messages."
            )
        return template

    def _filled_body(self, request: Request) -> Json:
        if request.history and "messages" not in self._body.names:
            raise TargetError(
                f"{self.name}: the probe has a conversation, but fairness_http_body has no {{messages}}; add it where "
                "the service expects the list of messages."
            )
        if request.tools and "tools" not in self._body.names:
            raise TargetError(
                f"{self.name}: the probe has tools, but fairness_http_body has no {{tools}}; add it where the service "
                "expects the list of tools."
            )
        prompt, sampling = request.prompt, request.sampling
        messages = request.conversation if "system" in self._body.names else request.messages
        if request.system is not None and "system" not in self._body.names:
            prompt = f"{request.system}\n\n{prompt}"
        body = self._body.filled(
            {
                "prompt": prompt,
                "messages": [message.to_json() for message in messages],
                "tools": request.tool_definitions,
                "system": request.system,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "max_tokens": sampling.max_tokens,
                "seed": sampling.seed,
            }
        )
        extra = sampling.extra_fields
        if extra and (not isinstance(body, dict) or body.keys() & extra):
            fault = (
                f"already has {joined(sorted(body.keys() & extra))}; remove it from one of the two"
                if isinstance(body, dict)
                else "is no JSON object, so no fields can be added"
            )
            raise TargetError(f"{self.name}: the probe sets `sampling.extra`, but fairness_http_body {fault}.")
        return {**body, **extra} if extra else body

    def _address_and_headers(self) -> tuple[str, dict[str, str]]:
        """Return the address and the headers with the values of environment variables."""
        parts = urlsplit(self._url)
        query = self._references.filled(parts.query, "the address", partial(quote, safe=""))
        url = urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))
        return url, self._headers.filled(self._references)

    # Responses

    def _status_error(self, answer: Reply, errors: ServerErrors) -> RequestFailed | TargetError:
        status, said = answer.status, errors.quoted(answer.text)
        match status:
            case 403 if self._readable_answers:  # due to this request and not to the key
                return errors.for_status(status, answer.headers, said)
            case 401 | 403:  # no server's message, because it may quote the key
                cure = (
                    "Check fairness_http_headers"
                    if self._headers
                    else "No header has a key. Set a header: `fairness_http_headers = Authorization: Bearer ${MY_KEY}`"
                )
                return TargetError(f"{self.name} rejects the request (HTTP {status}). {cure}.")
            case 404:
                return TargetError(f"{self.name} was not found (HTTP 404: {said}). Check the address.")
            case 405:
                return TargetError(f"{self.name} accepts no POST (HTTP {status}: {said}). Check the address.")
            case _ if answer.moved_to:
                return TargetError(
                    f"{self.name} has moved to {errors.quoted(answer.moved_to)} (HTTP {status}). Set --fairness-target "
                    "to that address."
                )
            case _:
                return errors.for_status(
                    status, answer.headers, said, check="fairness_http_body and fairness_http_headers"
                )

    def _read(self, answer: Reply, errors: ServerErrors, answer_format: AnswerFormat) -> Response:
        if self._answer_path == "$" and answer.headers.get("content-type", "").startswith("text/plain"):
            if answer_format == "calls":
                raise self._wrong_type_error(answer.text, answer_format, errors)
            return Response(answer.text)
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            raise self._unreadable_error(
                f"{self.name}: the service answers as a stream of events, which cannot be read. Ask for one "
                'answer in fairness_http_body, or in the probe\'s `sampling.extra`, such as with "stream": false',
                check="fairness_http_body",
            )
        try:
            content = json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise self._unreadable_error(
                f"{self.name}: the response is not JSON: {errors.quoted(answer.text, 120)!r}. Check that the "
                "address is the service's JSON endpoint",
                retry=RetryReason.TRANSIENT,
            ) from error
        try:
            found = self._path.find(content)
        except ValueError as error:
            raise RequestFailed(
                f"{self.name}: the response is nested too deeply to be read. Let the service return the answer "
                "closer to the top of the JSON."
            ) from error
        value = found[0] if found and self._path.single else found
        reason = finish_reason_in(content)
        if value in ([], None, "") and reason is not None:
            return Response("", reason)
        if not found:
            raise self._no_match_error(content, errors)
        try:
            reply = reply_of(value) if answer_format == "calls" else None
            if reply is not None and isinstance(value, dict) and "content" not in value and unknown_keys(value):
                raise self._wrong_type_error(value, answer_format, errors)
        except ValueError:
            raise self._wrong_type_error(value, answer_format, errors) from None
        if reply is None and not _is_answer(value, answer_format):
            raise self._wrong_type_error(value, answer_format, errors)
        self._readable_answers += 1
        if reply is not None:
            return Response(reply.text, reason, tool_calls=reply.calls_as_json)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        around = self._message_path.find(content) if self._message_path is not None else []
        return Response(with_thoughts(text, thoughts_of(around[0]) if around else ""), reason)

    def _no_match_error(self, content: Json, errors: ServerErrors) -> RequestFailed | TargetError:
        if isinstance(content, dict):
            found = f"has the keys {', '.join(content)}" if content else "is an empty object"
        else:
            found = (
                f"is a list of {counted(len(content), 'value')}" if isinstance(content, list) else "is not an object"
            )
        message = (
            f"{self.name}: the response has nothing at {self._answer_path} (ini fairness_http_answer); it "
            f"{errors.quoted(found)}. Set fairness_http_answer to the path of the answer"
        )
        return self._unreadable_error(message)

    def _wrong_type_error(
        self, value: Json, answer_format: AnswerFormat, errors: ServerErrors
    ) -> RequestFailed | TargetError:
        calls = "an object with `content` and `tool_calls`"
        wanted = {"text": "text", "number": "a number or text", "calls": calls}.get(answer_format, "text or a list")
        kind = "null" if value is None else _KINDS[type(value)]
        advice = "" if value is None else f". The value is {errors.quoted(json.dumps(value, ensure_ascii=False), 120)}"
        if (
            answer_format != "calls"
            and isinstance(value, dict)
            and (texts := [key for key, text in value.items() if isinstance(text, str)])
        ):
            # Without the text, the message is the same for all answers, so that reports count it once.
            step = f".{texts[0]}" if texts[0].isidentifier() else f"[{json.dumps(texts[0])}]"
            advice = f". Try {errors.quoted(self._answer_path + step)}"
        return self._unreadable_error(
            f"{self.name}: {self._answer_path} (ini fairness_http_answer) matches {kind}, but must match "
            f"{wanted}{advice}"
        )

    def _unreadable_error(
        self, message: str, retry: RetryReason | None = None, check: str | None = None
    ) -> RequestFailed | TargetError:
        """Return the error for an unreadable answer.

        After `MAX_UNREADABLE` unreadable answers and no readable one, the JSONPath is probably wrong: return a
        `TargetError`.
        """
        self._unreadable_answers += 1
        if not self._readable_answers and self._unreadable_answers >= MAX_UNREADABLE:
            return TargetError(f"{message}. The {MAX_UNREADABLE - 1} previous answers were also unreadable.")
        return RequestFailed(f"{message}.", retry=retry, check=check)

    def _json_path(self, path: str) -> JsonPath:
        try:
            return JsonPath(path)
        except ValueError as error:
            raise TargetError(f"{self.name}: fairness_http_answer is not a JSONPath: {path!r}: {error}.") from error

    # Secrets

    def _redact(self, text: str) -> str:
        """Return the text without the address's secrets and without the values that replaced references `${NAME}`."""
        return secret_remover([*self._references.secrets.values(), *filter(is_distinct, secrets_of(self._url))])(text)

    def _without_secrets(self, text: str) -> str:
        return secret_remover(filter(is_distinct, self._references.secrets.values()))(text)


def _is_blocked(answer: Reply) -> bool:
    try:
        return is_blocked(json.loads(answer.body), answer.status)
    except (ValueError, RecursionError):
        return False


def _is_answer(value: Json, answer_format: AnswerFormat) -> bool:
    if answer_format == "number":
        return isinstance(value, int | float | str | dict) and not isinstance(value, bool)
    if answer_format == "text" and isinstance(value, list):
        return all(isinstance(part, str) for part in value)
    return isinstance(value, str | list) or (isinstance(value, dict) and answer_format != "text")


def _open(scheme: str, rest: str | None, settings: RunSettings) -> HttpTarget:
    return HttpTarget(f"{scheme}:{rest or ''}", settings)


open_http = partial(_open, "http")
open_https = partial(_open, "https")
