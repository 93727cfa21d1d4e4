"""The user's own service as a target: JSON in, JSON out, over HTTP."""

from __future__ import annotations

import hashlib
import json
import os
import re
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import AnswerFormat, Json, Request, Response
from pytest_fairness.targets.address import REFERENCE, is_web_address, public_target, public_url
from pytest_fairness.targets.api_keys import hiding, is_distinct, secrets_of
from pytest_fairness.targets.base import versioned
from pytest_fairness.targets.http.json_template import JsonTemplate

if TYPE_CHECKING:
    import httpx2
    from jsonpath import JSONPath

    from pytest_fairness.targets.http_errors import Faults

UNREAD = 8
"""Answers in a row, from the first, without anything at the path, after which the path is taken to be wrong."""
_KINDS = {dict: "an object", list: "a list", bool: "a boolean", int: "a number", float: "a number"}
PLACEHOLDERS = ("prompt", "system", "temperature", "top_p", "max_tokens", "seed")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*:\s*(.*)")


class HttpTarget:
    """A service that is asked by POST.

    Args:
        url: its address; the query may hold `${NAME}`.
        settings: the run's; `http_body`, `http_answer`, `http_headers`, `target_version`, `timeout` and
            `max_answer_bytes` matter.

    Raises:
        TargetError: the address, the body, the answer's path or a header cannot be understood.
    """

    concurrency: int | None = None

    def __init__(self, url: str, settings: RunSettings) -> None:
        if not is_web_address(url):
            raise TargetError(
                f"{public_target(url)!r} is no address; write it like http://localhost:8000/recommend "
                "(--fairness-target)."
            )
        self.name = public_url(url)
        if "@" in urlsplit(url).netloc:
            raise TargetError(
                f"{self.name}: an address holds no user and password; send them by fairness_http_headers, with "
                "${NAME} for what is in the environment."
            )
        self._url = url
        self._timeout = settings.timeout
        self._limit = settings.concurrency
        self._max_bytes = settings.max_answer_bytes
        self._body = self._template(settings.http_body)
        self._headers = [self._header(line) for line in settings.http_headers]
        self._path = self._compiled(settings.http_answer)
        self._where = settings.http_answer
        asked = json.dumps([urlsplit(url).query, settings.http_body, settings.http_answer, settings.http_headers])
        version = settings.target_version
        self.identity = versioned(f"{self.name} asked by {hashlib.sha256(asked.encode()).hexdigest()[:12]}", version)
        self.reusable = version is not None
        self._secrets: dict[str, str] = {}
        self._client: httpx2.AsyncClient | None = None
        self._faults: Faults | None = None
        self._read = self._unread = 0

    def check(self) -> None:
        """See `Target`."""
        self._filled()

    async def open(self) -> None:
        """See `Target`."""
        # Not before: importing the client takes time, and everything may be recorded.
        import httpx2

        from pytest_fairness.targets.http_client import BoundedClient
        from pytest_fairness.targets.http_errors import Faults

        url, headers = self._filled()
        self._url = url
        self._faults = Faults(self.name, self.name, "--fairness-target", self._hidden)
        sent = httpx2.Headers({"Content-Type": "application/json"})
        sent.update(headers)
        self._client = BoundedClient(
            max_bytes=self._max_bytes,
            headers=sent,
            timeout=self._timeout,
            limits=httpx2.Limits(max_connections=max(100, self._limit)),
        )

    async def ask(self, request: Request) -> Response:
        """See `Target`."""
        import httpx2

        from pytest_fairness.targets.http_client import is_too_long, parsed, too_long

        if self._client is None or self._faults is None:
            raise RuntimeError("a target is opened before it is asked")
        content = json.dumps(self._filled_body(request))
        try:
            answer = await self._client.post(self._url, content=content.encode())
        except httpx2.TimeoutException as error:
            raise self._faults.late(error) from error
        except httpx2.HTTPError as error:
            raise self._faults.lost(error) from error
        if not answer.is_success:
            raise self._refused(answer, self._faults)
        if is_too_long(answer):
            return too_long()
        text = await parsed(partial(self._text, faults=self._faults, answer_format=request.answer_format), answer)
        return Response(self._without_secrets(text))

    async def close(self) -> None:
        """See `Target`."""
        if self._client is not None:
            await self._client.aclose()

    # What is sent

    def _template(self, text: str) -> JsonTemplate:
        try:
            template = JsonTemplate(text, PLACEHOLDERS)
        except ValueError as error:
            raise TargetError(f"{self.name}: fairness_http_body {error}.") from error
        if "prompt" not in template.names:
            raise TargetError(f"{self.name}: fairness_http_body has no {{prompt}}, so that nothing would be asked.")
        return template

    def _filled_body(self, request: Request) -> Json:
        prompt, sampling = request.prompt, request.sampling
        if request.system is not None and "system" not in self._body.names:
            prompt = f"{request.system}\n\n{prompt}"
        return self._body.filled(
            {
                "prompt": prompt,
                "system": request.system,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "max_tokens": sampling.max_tokens,
                "seed": sampling.seed,
            }
        )

    def _header(self, line: str) -> tuple[str, str]:
        match = _HEADER.fullmatch(line.strip())
        if match is None:
            # It is not shown: whoever forgets the colon may have written a key.
            raise TargetError(f"{self.name}: a line of fairness_http_headers is no `Name: value`.")
        return match[1], match[2].strip()

    def _filled(self) -> tuple[str, dict[str, str]]:
        """Address and headers with what the environment holds.

        Raises:
            TargetError: it does not hold something, or what no header or address can hold.
        """
        parts = urlsplit(self._url)
        query = REFERENCE.sub(lambda match: quote(self._value(match[1], "the address"), safe=""), parts.query)
        headers = {}
        for name, value in self._headers:
            headers[name] = REFERENCE.sub(lambda match: self._value(match[1], "fairness_http_headers"), value)
            if not (headers[name].isascii() and headers[name].isprintable()):
                raise TargetError(f"{self.name}: the header {name} holds characters that no header has.")
        return urlunsplit((parts.scheme, parts.netloc, parts.path, query, "")), headers

    def _value(self, name: str, where: str) -> str:
        value = os.environ.get(name, "").strip()
        if not value:
            raise TargetError(f"{self.name}: {where} names the environment variable {name}, which is not set.")
        self._secrets[name] = value
        return value

    # What comes back

    def _refused(self, answer: httpx2.Response, faults: Faults) -> RequestFailed | TargetError:
        status, said = answer.status_code, faults.quoted(answer.text)
        match status:
            case 401 | 403:  # what the server says here often quotes the key
                return TargetError(f"{self.name} refuses what it is sent (HTTP {status}). Check fairness_http_headers.")
            case 404 | 405:
                return TargetError(f"{self.name} takes no POST (HTTP {status}: {said}). Check the address.")
            case _ if answer.is_redirect:
                where = public_url(str(answer.next_request.url if answer.next_request else ""))
                return TargetError(
                    f"{self.name} has moved to {faults.quoted(where)} (HTTP {status}). Name that address as the target."
                )
            case _:
                return faults.of_status(status, answer.headers, said)

    def _text(self, answer: httpx2.Response, faults: Faults, answer_format: AnswerFormat) -> str:
        if self._where == "$" and answer.headers.get("content-type", "").startswith("text/plain"):
            return answer.text
        try:
            content = json.loads(answer.content)
        except (ValueError, RecursionError) as error:
            raise RequestFailed(
                f"{self.name} answered no JSON: {faults.quoted(answer.text, 120)!r}", retry=RetryReason.TRANSIENT
            ) from error
        try:
            found = self._path.findall(content)
        except (self._path_error, RecursionError) as error:
            raise RequestFailed(f"{self.name}: its answer is nested too deep for {self._where}.") from error
        value = found[0] if found and self._path.singular_query() else found
        if not found:
            raise self._nothing(content, faults)
        if not _is_answer(value, answer_format):
            raise self._no_text(value, answer_format, faults)
        self._read += 1
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def _nothing(self, content: Json, faults: Faults) -> RequestFailed | TargetError:
        """That there is nothing at the path: one answer's fault, or the path's."""
        if isinstance(content, dict):
            there = "the keys " + (", ".join(map(str, content)) or "of an empty object")
        else:
            there = f"a list of {len(content)}" if isinstance(content, list) else "no object"
        message = (
            f"{self.name}: nothing at {self._where} (ini fairness_http_answer); its answer has {faults.quoted(there)}"
        )
        return self._unreadable(message)

    def _no_text(self, value: Json, answer_format: AnswerFormat, faults: Faults) -> RequestFailed | TargetError:
        """Return the error for a path that finds something else than what is audited."""
        wanted = "text" if answer_format == "text" else "text or a list"
        kind = "null" if value is None else _KINDS[type(value)]
        shown = "" if value is None else f": {faults.quoted(json.dumps(value, ensure_ascii=False), 120)}"
        return self._unreadable(
            f"{self.name}: {self._where} (ini fairness_http_answer) finds {kind} where {wanted} is audited{shown}"
        )

    def _unreadable(self, message: str) -> RequestFailed | TargetError:
        """Return the failure of one answer; where none was readable so far, that of the path."""
        self._unread += 1
        if not self._read and self._unread >= UNREAD:
            return TargetError(f"{message}, and so had the {UNREAD - 1} answers before.")
        return RequestFailed(f"{message}.")

    def _compiled(self, path: str) -> JSONPath:
        import jsonpath

        if not path.startswith("$"):
            raise TargetError(f"{self.name}: fairness_http_answer is no JSONPath: {path!r} does not begin with $.")
        try:
            found = jsonpath.compile(path)
        except jsonpath.JSONPathError as error:
            reason = str(error).splitlines()[0]
            raise TargetError(f"{self.name}: fairness_http_answer is no JSONPath: {path!r}, {reason}.") from error
        self._path_error = jsonpath.JSONPathError
        if not isinstance(found, jsonpath.JSONPath):
            raise TargetError(f"{self.name}: fairness_http_answer is several JSONPaths: {path!r}; give one.")
        return found

    # What is secret

    def _hidden(self, text: str) -> str:
        """Without any value out of the environment, and without what the address' query holds, but for short words."""
        return hiding([*self._secrets.values(), *filter(is_distinct, secrets_of(self._url))])(text)

    def _without_secrets(self, text: str) -> str:
        return hiding(filter(is_distinct, self._secrets.values()))(text)


def _is_answer(value: Json, answer_format: AnswerFormat) -> bool:
    """Return whether this is what a model wrote: text or texts; an object too, where answers are no running text."""
    if answer_format == "text" and isinstance(value, list):
        return all(isinstance(part, str) for part in value)
    return isinstance(value, str | list) or (isinstance(value, dict) and answer_format != "text")


def open_http(rest: str | None, settings: RunSettings, _address: str | None) -> HttpTarget:
    """`http://HOST/PATH`."""
    return HttpTarget(f"http:{rest or ''}", settings)


def open_https(rest: str | None, settings: RunSettings, _address: str | None) -> HttpTarget:
    """`https://HOST/PATH`."""
    return HttpTarget(f"https:{rest or ''}", settings)
