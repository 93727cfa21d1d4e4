"""Base classes of the targets that are models behind an API, and of the clients of their batches."""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from pytest_fairness.errors import FairnessError, RequestFailed, RetryReason, TargetError, joined
from pytest_fairness.options import RunSettings
from pytest_fairness.records import SAMPLING_PARAMETERS, TOO_LONG, Json, Request, Response, reply_of
from pytest_fairness.targets.base import BatchResult, versioned
from pytest_fairness.targets.secrets import is_distinct, secret_remover, secrets_of
from pytest_fairness.targets.web import (
    API_KEY_ENV,
    BASE_URL,
    BLOCKED,
    Headers,
    References,
    Reply,
    ServerErrors,
    StatusError,
    is_web_address,
    key_of,
    public_url,
)

if TYPE_CHECKING:
    from pytest_fairness.targets.http_client import Connection

T = TypeVar("T")

PROVIDERS = (".openai.com", ".anthropic.com", ".openai.azure.com", ".services.ai.azure.com", "openrouter.ai")
"""Ends of the host names at which a name of a model means the same model for everybody."""
PULL_REQUEST = (
    "CI_MERGE_REQUEST_IID", "SYSTEM_PULLREQUEST_PULLREQUESTID", "CIRCLE_PULL_REQUEST", "BITBUCKET_PR_ID", "CHANGE_ID",
)  # fmt: skip
"""Environment variables that CI services (GitLab, Azure, CircleCI, Bitbucket, Jenkins) set for a proposed change."""
OF_STREAMS = re.compile(r"\bstream(ed|ing)?\b", re.IGNORECASE)
"""Words of a server's error that it answers only as a stream of events."""
EVENT_STREAM = (b"data:", b"event:", b"id:", b":")
"""Beginnings of a stream of server-sent events."""
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Exceptions that the parsing of a malformed response may raise."""
MAX_MALFORMED = 8
"""Number of malformed responses without an answer after which no more requests are sent."""
NEUTRAL = {"temperature": 1.0, "top_p": 1.0}
"""Values of sampling parameters that are the API's defaults, so that a request without them means the same."""


def in_pull_request() -> bool:
    """Return whether a CI service runs this process for a pull request, a merge request or a merge queue."""
    event = os.environ.get("GITHUB_EVENT_NAME", "")
    return event.startswith(("pull_request", "merge_group")) or any(map(os.environ.get, PULL_REQUEST))


def model_of(prefix: str, rest: str | None) -> str:
    """Return the model after the prefix and its colon; raise `TargetError` if there is none."""
    if not rest:
        raise TargetError(f"{prefix!r} names no model; write {prefix}:MODEL (--fairness-target).")
    return rest


@dataclass(frozen=True)
class Endpoint:
    """Model behind an API, with the settings of the connection to its server.

    Attributes:
        model: name of the model, which every request contains.
        timeout: time limit of one attempt in seconds.
        max_bytes: maximum number of bytes of a response's body.
        where: names of the settings for the address and for the key, for messages.
        key_variable: environment variable of the key; empty if the server takes no key.
        needs_key: how to do without the key, or an empty text; `None` if the server may need no key.
        reusable: see `Target`.
        trust_environment: whether to use the proxies that environment variables set.
    """

    name: str
    model: str
    base_url: str
    timeout: float
    max_bytes: int
    where: str
    key_variable: str = ""
    needs_key: str | None = None
    headers: Headers | None = None
    version: str | None = None
    is_default: bool = False
    trust_environment: bool = True

    @classmethod
    def of(
        cls,
        prefix: str,
        model: str,
        settings: RunSettings,
        *,
        default_url: str,
        base_url: str,
        url_settings: tuple[str, str],
        key_variable: str,
        key_advice: str | None = None,
    ) -> Endpoint:
        """Return the endpoint that the target's own options and the settings of its prefix describe.

        `url_settings` are names of the settings for the address, and an example address. `key_advice` says what else
        than a key is possible at the default address; `None` if the server always needs a key.

        Raises:
            TargetError: the address or a header is not valid.
        """
        name = f"{prefix}:{model}"
        own_url, own_key = (settings.target_options.get(option) for option in (BASE_URL, API_KEY_ENV))
        address = own_url or base_url or default_url
        is_default = address == default_url
        key_variable = own_key or key_variable
        url_setting = f"{BASE_URL}=… of the target" if own_url else url_settings[0]
        if not is_web_address(address):
            raise TargetError(f"{name}: the value of {url_setting} is not an address; write it like {url_settings[1]}.")
        advice = f", {key_advice.format(url_setting)}" if key_advice and is_default else ""
        return cls(
            name=name,
            model=model,
            base_url=address,
            timeout=settings.timeout,
            max_bytes=settings.max_answer_bytes,
            where=key_variable if is_default else f"{url_setting} and {key_variable}",
            key_variable=key_variable,
            needs_key=advice if own_key or is_default or key_advice is None else None,
            headers=Headers(settings.api_headers, "fairness_api_headers", name),
            version=settings.target_version,
            is_default=is_default,
        )

    def secrets(self) -> tuple[str, dict[str, str], list[str]]:
        """Return the key (empty without one), the headers that the user sets, and all secrets in them and the address.

        Raises:
            TargetError: the key is missing, or key or headers cannot be sent.
        """
        key = key_of(self.name, self.key_variable) if self.key_variable else ""
        if not key and self.needs_key is not None:
            raise TargetError(
                f"{self.name} needs a key: set the environment variable {self.key_variable}{self.needs_key}."
            )
        references = References(self.name)
        headers = self.headers.filled(references) if self.headers is not None else {}
        return key, headers, [key, *references.secrets.values(), *secrets_of(self.base_url)]


class ApiTarget(ABC):
    """Model behind an API: its connection, its errors, and what later requests leave out because the server rejects it.

    A subclass makes the body of a request and reads the JSON of a response.
    """

    concurrency: int | None = None
    api_headers: ClassVar[Mapping[str, str]] = {}
    """Headers that the API needs."""
    default_path: ClassVar[str] = ""
    """Path of the API at a server whose address has no path."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.name, self.address = endpoint.name, public_url(endpoint.base_url)
        self.identity = versioned(f"{self.name} at {self.address}", endpoint.version)
        # The gateway or application behind another address may change with each commit under the same name.
        host = urlsplit(endpoint.base_url).hostname or ""
        own = endpoint.is_default or host.endswith(PROVIDERS)
        self.reusable = endpoint.version is not None or own or not in_pull_request()
        self._opened: Connection | None = None
        self._has_answered, self._streams, self._malformed = False, False, 0
        self._rejected_parameters: set[str] = set()

    def check(self) -> None:
        self.endpoint.secrets()

    async def open(self) -> None:
        self._connect()

    def _connect(self) -> None:
        # Imported here, because the import takes time and is not needed if all answers are recorded.
        from pytest_fairness.targets.http_client import Connection

        key, headers, secrets = self.endpoint.secrets()
        # A login in the address or a header can take the place of the key.
        self._key_missing = bool(self.endpoint.key_variable) and not any(secrets)
        shown = self.address if urlsplit(self.address).path.strip("/") else f"{self.address}{self.default_path}"
        self._errors = ServerErrors(
            self.name, shown, self.endpoint.where, secret_remover(secrets), key_missing=self._key_missing
        )
        self._redact_answer = secret_remover(filter(is_distinct, secrets))
        authorization = {"Authorization": f"Bearer {key}"} if key else {}
        self._opened = Connection(
            self.endpoint.base_url,
            self._errors,
            headers={"Accept": "application/json", **self.api_headers, **headers, **authorization},
            timeout=self.endpoint.timeout,
            max_bytes=self.endpoint.max_bytes,
            trust_environment=self.endpoint.trust_environment,
        )

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    @property
    def _connection(self) -> Connection:
        if self._opened is None:
            raise RuntimeError("the target is not open: call `open` before `ask`")
        return self._opened

    @abstractmethod
    async def ask(self, request: Request) -> Response:
        """Send one request once; see `Target.ask`."""

    # Requests

    async def _transmit(self, method: str, path: str, body: Json = None, **more: Any) -> Reply:
        return await self._connection.send(method, path, body, **more)

    async def _send(self, method: str, path: str, body: Json = None, **more: Any) -> Reply:
        """Send a request, and return the response; raise `StatusError` if its status is not a success."""
        reply = await self._transmit(method, path, body, **more)
        if not reply.ok:
            raise StatusError(reply)
        return reply

    async def _answer(
        self,
        path: str,
        body: dict[str, Json],
        sampling: Mapping[str, Json],
        read: Callable[[bytes], Response],
        **more: Any,
    ) -> Response:
        """Send the body of a request, and return what `read` makes of the response.

        If the server rejects a part of the body that can be left out or written in another way, later requests are.

        Raises:
            StatusError: the status is not a success for another reason.
        """
        try:
            reply = await self._send("POST", path, {**body, "stream": True} if self._streams else body, **more)
        except StatusError as error:
            if error.blocked:
                return BLOCKED
            if error.status == 400 and self._wants_other_form(error, body):
                raise self._rephrased(error) from error
            if rejected := self._sampling_error(error, sampling):
                raise rejected from error
            raise
        response = await self._read(reply, read)
        self._has_answered = True
        return response

    def _wants_other_form(self, error: StatusError, body: Mapping[str, Json]) -> bool:
        """Return whether the server answers only as a stream of events; if so, ask for a stream from now on."""
        if self._streams or "stream" in body or not OF_STREAMS.search(error.said):
            return False
        self._streams = True
        return True

    def _rephrased(self, error: StatusError) -> RequestFailed:
        return RequestFailed(str(self._error_of(error)), retry=RetryReason.REPHRASED)

    def _accepted(self, sampling: Mapping[str, Json]) -> dict[str, Json]:
        """Return the sampling parameters without those that the server has rejected and that can be left out."""
        left_out = self._rejected_parameters & _dispensable(sampling)
        return {name: value for name, value in sampling.items() if name not in left_out}

    def _sampling_error(self, error: StatusError, sampling: Mapping[str, Json]) -> RequestFailed | None:
        """Return the error for a response that rejects a sent parameter or field; `None` for other responses.

        A seed, and parameters with their `NEUTRAL` value, are left out of the next attempt and of later requests.
        """
        named = {error.param, *re.findall(r"\w+", error.said)}
        rejected = {name for name in sampling if name in named} if error.status in (400, 422) else set()
        if not rejected:
            return None
        message = f"HTTP {error.status} from {self._errors.endpoint}: {self._errors.quoted(error.said)}"
        left_out = _dispensable(sampling) & (rejected | (NEUTRAL.keys() if rejected & NEUTRAL.keys() else set()))
        if left_out:
            self._rejected_parameters |= left_out
            return RequestFailed(f"{self.name}: {message}", retry=RetryReason.REPHRASED)
        shown = " and ".join(f"{name} {json.dumps(sampling[name], ensure_ascii=False)}" for name in sorted(rejected))
        cure = ", or set them to 1" if rejected & NEUTRAL.keys() else ""
        return RequestFailed(
            f"{self.name} does not accept {shown} ({message}). Remove these parameters from the probe's "
            f"`sampling`{cure}.",
            check="the probe's `sampling`",
        )

    # Responses

    async def _read(self, reply: Reply, read: Callable[[bytes], T]) -> T | Response:
        """Return what `read` makes of a body, in a thread if the body is large; `TOO_LONG` for one over the limit."""
        from pytest_fairness.targets.http_client import parsed

        return Response("", TOO_LONG) if reply.too_long else await parsed(lambda found: read(found.body), reply)

    def _tool_calls(self, written: Json) -> str | None:
        """Return tool calls in the form of `Response.tool_calls`; raise `ValueError` for malformed ones."""
        return self._redact_answer(reply_of({"tool_calls": written}).calls_as_json) if written else None

    def _malformed_error(self, wanted: str, content: bytes, *, counts: bool = True) -> RequestFailed | TargetError:
        """Return the error for a malformed response; `wanted` says what it should be, such as `a message`.

        After `MAX_MALFORMED` malformed responses and no answer, the server is none of this API: return a `TargetError`.
        A response in a batch does not count.
        """
        shown = self._errors.quoted(content.decode("utf-8", "replace"), 120)
        message = f"{self.name}: the response of {self._errors.endpoint} is not {wanted}: {shown!r}"
        self._malformed += counts
        if not self._has_answered and self._malformed >= MAX_MALFORMED:
            return TargetError(f"{message}. The {MAX_MALFORMED - 1} previous responses were none either.")
        return RequestFailed(message, retry=RetryReason.TRANSIENT)

    def _error_of(self, error: StatusError) -> RequestFailed | TargetError:
        """Return the error for an HTTP status; a 403 after an answer is due to the request and not to the key."""
        start = f"{self.name}: {self._errors.endpoint}"
        if error.status not in (401, 403):
            return self._status_error(error)
        if error.status == 403 and self._has_answered:
            return self._errors.for_status(error.status, error.headers, error.said)
        if self._key_missing:
            return TargetError(
                f"{start} asks for an API key (HTTP {error.status}), and none is set. Set the environment variable "
                f"{self.endpoint.key_variable}."
            )
        # The server's message is left out, because it may quote the key.
        what = "the key" if error.status == 401 else "the request with this key"
        return TargetError(f"{start} rejects {what} (HTTP {error.status}). Check {self.endpoint.where}.")

    @abstractmethod
    def _status_error(self, error: StatusError) -> RequestFailed | TargetError:
        """Return the error for an HTTP status other than 401 and 403."""


def events_in(content: bytes) -> list[bytes]:
    return [line[5:].strip() for line in content.splitlines() if line.startswith(b"data:")]


def token_count(value: Json) -> int | None:
    """Return the number of tokens that a server reports; `None` if the value is not an integer."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _dispensable(sampling: Mapping[str, Json]) -> set[str]:
    """Return the names of the parameters without which a request means the same, apart from reproducibility."""
    return {name for name, value in sampling.items() if name == "seed" or NEUTRAL.get(name) == value}


# Base class of the clients of OpenAI's and Anthropic's batch APIs.

CLOCK_SKEW = 300.0
"""Seconds by which the clocks of a provider and of this machine may differ."""
LINE_OVERHEAD = 65_536
"""Maximum number of bytes of a line of results in addition to the bytes of the answer."""
PAGE = 100
"""Number of batches on a page of the list of all batches."""
_ID = re.compile(r"[A-Za-z0-9_.-]{1,200}")


class ApiBatches(ApiTarget):
    """Base class of the batch clients; see `BatchClient`."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._connect()

    def _rejected(self, said: str) -> RequestFailed | None:
        """Return the error of a request of a batch whose parameter is rejected; `None` if no parameter is named."""
        named = sorted({*re.findall(r"\w+", said)} & {*SAMPLING_PARAMETERS, "max_completion_tokens"})
        if not named:
            return None
        return RequestFailed(
            f"{self.name} rejects {joined(named)} in a batch ({self._errors.quoted(said)}). Change the probe's "
            "`sampling`, whose `extra` takes other names, or run without batches: single requests are adapted "
            "to the server.",
            check="the probe's `sampling`",
        )

    async def _read_json(self, wanted: str, read: Callable[[Json], T], method: str, path: str, **more: Any) -> T:
        """Send a request, and return what `read` makes of the JSON; `wanted` names it in messages, such as `a batch`.

        Raises:
            RequestFailed: the request failed, or `read` cannot read the response.
            TargetError: no request can be answered.
        """
        try:
            reply = await self._send(method, path, **more)
        except StatusError as error:
            raise self._error_of(error) from error
        try:
            return read(json.loads(reply.body))
        except MALFORMED as error:
            raise self._malformed_error(wanted, reply.body) from error

    async def _all_batches(
        self, path: str, cursor: str, read: Callable[[Json], tuple[str, float, T]]
    ) -> AsyncGenerator[tuple[str, float, T]]:
        """Yield id, date in seconds and further values, as `read` finds them, of each batch, the newest first.

        `cursor` is the query parameter for the id after which a page begins.
        """
        query = {"limit": str(PAGE)}
        more = True
        while more:
            batches, more = await self._read_json(
                "a list of batches",
                lambda page: ([read(batch) for batch in page["data"]], bool(page.get("has_more"))),
                "GET",
                path,
                query=query,
            )
            for batch in batches:
                yield batch
                query[cursor] = batch[0]
            more = more and bool(batches)

    async def _read_lines(self, path: str, read: Callable[[Json], BatchResult]) -> AsyncGenerator[BatchResult]:
        """Yield the result of `read` for each line of a file; leave out lines that are too long or cannot be read."""
        limit = self.endpoint.max_bytes + LINE_OVERHEAD
        try:
            async with aclosing(self._connection.lines(path, limit)) as lines:
                async for line in lines:
                    with suppress(*MALFORMED):
                        yield read(json.loads(line))
        except StatusError as error:
            raise self._error_of(error) from error

    def _outcome(self, read: Callable[[Json], Response], answer: Json, wanted: str) -> Response | FairnessError:
        """Return the response that `read` finds in the JSON of one answer, or an error if `read` fails."""
        try:
            return read(answer)
        except RequestFailed as error:
            return error
        except MALFORMED:
            return self._malformed_error(wanted, str(answer).encode("utf-8", "replace"), counts=False)

    def _no_batches_error(self, said: str) -> TargetError:
        """Return the error for HTTP status 404: the server has no batches, or does not have this batch."""
        return TargetError(
            f"{self.name}: {self._errors.endpoint} offers no batches, or has no such batch (HTTP 404: "
            f"{self._errors.quoted(said)}). Check {self.endpoint.where}: a batch belongs to the account that created "
            "it. To send the requests one by one, turn fairness_batch off."
        )


def id_of(value: Json) -> str:
    """Return an id, or raise `ValueError` for a value that cannot be part of an address."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ValueError("not an id")
    return value
