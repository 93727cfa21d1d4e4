"""Targets `http://…` and `https://…`: services that take and return JSON, described by templates."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
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
    StatusError,
    finish_reason_in,
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
        used: defaultdict[str, Json] = defaultdict(str)
        try:
            self._document: Json = json.loads(text)
            _filled(self._document, used)
        except ValueError as error:
            raise ValueError(f"is not JSON ({error})") from error
        except RecursionError:
            raise ValueError("is nested too deeply") from None
        self.names = frozenset(used)
        if unknown := sorted(self.names - set(known)):
            valid = ", ".join(f"{{{name}}}" for name in known)
            raise ValueError(f"contains {{{unknown[0]}}}; valid placeholders are {valid} (write a brace as '{{{{')")

    def filled(self, values: Mapping[str, Json]) -> Json:
        """Return the filled document; `None` if it is one placeholder with the value `None`."""
        filled, _ = _filled(self._document, values)
        return None if filled is _ABSENT else filled


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
        self._url, self._settings = url, settings
        self._headers = Headers(settings.http_headers, "fairness_http_headers", self.name)
        try:
            self._body = JsonTemplate(settings.http_body, PLACEHOLDERS)
        except ValueError as error:
            raise TargetError(f"{self.name}: fairness_http_body {error}.") from error
        if self._body.names.isdisjoint(("prompt", "messages")):
            raise TargetError(
                f"{self.name}: fairness_http_body has no {{prompt}}; add it where the service expects the prompt, or "
                "{messages} where it expects a list of messages."
            )
        self._answer_path = settings.http_answer
        around, content, _ = self._answer_path.rpartition(".content")
        try:
            self._path = JsonPath(self._answer_path)
            # The message around the answer, which may hold thoughts.
            self._message_path = JsonPath(around) if content and around else None
        except ValueError as error:
            raise TargetError(
                f"{self.name}: fairness_http_answer is not a JSONPath: {self._answer_path!r}: {error}."
            ) from error
        asked = json.dumps([urlsplit(url).query, settings.http_body, settings.http_answer, settings.http_headers])
        version = settings.target_version
        self.identity = versioned(f"{self.name} asked by {hashlib.sha256(asked.encode()).hexdigest()[:12]}", version)
        self.reusable = version is not None
        self._connection: Connection | None = None
        self._readable_answers = self._unreadable_answers = 0

    def check(self) -> None:
        self._address_and_headers(References(self.name))

    async def open(self) -> None:
        # Imported here, because the import takes time and is not needed if all answers are recorded.
        from pytest_fairness.targets.http_client import Connection

        references = References(self.name)
        url, headers = self._address_and_headers(references)
        secrets = list(references.secrets.values())
        self._redact_answer = secret_remover(filter(is_distinct, secrets))
        self._errors = ServerErrors(
            self.name,
            self.name,
            "--fairness-target",
            secret_remover([*secrets, *filter(is_distinct, secrets_of(url))]),
        )
        self._connection = Connection(
            url,
            self._errors,
            headers={"Content-Type": "application/json", **headers},
            timeout=self._settings.timeout,
            max_bytes=self._settings.max_answer_bytes,
            connections=max(100, self._settings.concurrency),
        )

    def _address_and_headers(self, references: References) -> tuple[str, dict[str, str]]:
        """Return the address and the headers with the values of environment variables."""
        parts = urlsplit(self._url)
        query = references.filled(parts.query, "the address", partial(quote, safe=""))
        url = urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))
        return url, self._headers.filled(references)

    async def ask(self, request: Request) -> Response:
        from pytest_fairness.targets.http_client import parsed

        if self._connection is None:
            raise RuntimeError("the target is not open: call `open` before `ask`")
        content = json.dumps(self._filled_body(request))
        answer = await self._connection.send("POST", body=content.encode(), follow=False)
        if not answer.ok:
            error = StatusError(answer)
            if error.blocked:
                return BLOCKED
            raise self._status_error(error, answer.moved_to)
        if answer.too_long:
            return Response("", finish_reason=TOO_LONG)
        found = await parsed(partial(self._read, answer_format=request.answer_format), answer)
        calls = found.tool_calls and self._redact_answer(found.tool_calls)
        return replace(found, text=self._redact_answer(found.text), tool_calls=calls)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    # Requests

    def _filled_body(self, request: Request) -> Json:
        for needed, name, what, kind in (
            (request.history, "messages", "a conversation", "messages"),
            (request.tools, "tools", "tools", "tools"),
        ):
            if needed and name not in self._body.names:
                raise TargetError(
                    f"{self.name}: the probe has {what}, but fairness_http_body has no {{{name}}}; add it where the "
                    f"service expects the list of {kind}."
                )
        has_system = "system" in self._body.names
        prompt, sampling, extra = request.prompt, request.sampling, request.sampling.extra_fields
        if request.system is not None and not has_system:
            prompt = f"{request.system}\n\n{prompt}"
        body = self._body.filled(
            {
                **dict.fromkeys(PLACEHOLDERS),
                **{name: value for name, value in sampling.to_json().items() if name in PLACEHOLDERS},
                "prompt": prompt,
                "messages": [
                    message.to_json() for message in (request.conversation if has_system else request.messages)
                ],
                "tools": request.tool_definitions,
                "system": request.system,
            }
        )
        if not extra:
            return body
        if not isinstance(body, dict) or body.keys() & extra:
            fault = (
                f"already has {joined(sorted(body.keys() & extra))}; remove it from one of the two"
                if isinstance(body, dict)
                else "is no JSON object, so no fields can be added"
            )
            raise TargetError(f"{self.name}: the probe sets `sampling.extra`, but fairness_http_body {fault}.")
        return {**body, **extra}

    # Responses

    def _status_error(self, error: StatusError, moved_to: str) -> RequestFailed | TargetError:
        status, said = error.status, self._errors.quoted(error.text)
        match status:
            case 403 if self._readable_answers:  # due to this request and not to the key
                return self._errors.for_status(status, error.headers, error.text)
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
            case _ if moved_to:
                return TargetError(
                    f"{self.name} has moved to {self._errors.quoted(moved_to)} (HTTP {status}). Set --fairness-target "
                    "to that address."
                )
        check = "fairness_http_body and fairness_http_headers"
        return self._errors.for_status(status, error.headers, error.text, check=check)

    def _read(self, answer: Reply, answer_format: AnswerFormat) -> Response:
        if self._answer_path == "$" and answer.headers.get("content-type", "").startswith("text/plain"):
            if answer_format == "calls":
                raise self._wrong_type_error(answer.text, answer_format)
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
                f"{self.name}: the response is not JSON: {self._errors.quoted(answer.text, 120)!r}. Check that the "
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
            raise self._no_match_error(content)
        try:
            reply = reply_of(value) if answer_format == "calls" else None
            if reply is not None and isinstance(value, dict) and "content" not in value and unknown_keys(value):
                raise self._wrong_type_error(value, answer_format)
        except ValueError:
            raise self._wrong_type_error(value, answer_format) from None
        if reply is None and not _is_answer(value, answer_format):
            raise self._wrong_type_error(value, answer_format)
        self._readable_answers += 1
        if reply is not None:
            return Response(reply.text, reason, tool_calls=reply.calls_as_json)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        around = self._message_path.find(content) if self._message_path is not None else []
        return Response(with_thoughts(text, thoughts_of(around[0]) if around else ""), reason)

    def _no_match_error(self, content: Json) -> RequestFailed | TargetError:
        if isinstance(content, dict):
            found = f"has the keys {', '.join(content)}" if content else "is an empty object"
        else:
            found = (
                f"is a list of {counted(len(content), 'value')}" if isinstance(content, list) else "is not an object"
            )
        message = (
            f"{self.name}: the response has nothing at {self._answer_path} (ini fairness_http_answer); it "
            f"{self._errors.quoted(found)}. Set fairness_http_answer to the path of the answer"
        )
        return self._unreadable_error(message)

    def _wrong_type_error(self, value: Json, answer_format: AnswerFormat) -> RequestFailed | TargetError:
        calls = "an object with `content` and `tool_calls`"
        wanted = {"text": "text", "number": "a number or text", "calls": calls}.get(answer_format, "text or a list")
        kind = "null" if value is None else _KINDS[type(value)]
        advice = (
            "" if value is None else f". The value is {self._errors.quoted(json.dumps(value, ensure_ascii=False), 120)}"
        )
        if (
            answer_format != "calls"
            and isinstance(value, dict)
            and (texts := [key for key, text in value.items() if isinstance(text, str)])
        ):
            # Without the text, the message is the same for all answers, so that reports count it once.
            step = f".{texts[0]}" if texts[0].isidentifier() else f"[{json.dumps(texts[0])}]"
            advice = f". Try {self._errors.quoted(self._answer_path + step)}"
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
