"""Base classes of the clients of model APIs and of their batch APIs."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from pytest_fairness.errors import FairnessError, RequestFailed, RetryReason, TargetError, joined
from pytest_fairness.records import SAMPLING_PARAMETERS, Json, Response, reply_of
from pytest_fairness.targets.base import BatchResult
from pytest_fairness.targets.http_client import (
    BoundedClient,
    HttpErrors,
    bounded_lines,
    httpx,
    is_blocked,
    is_too_long,
    parsed,
    too_long_response,
)
from pytest_fairness.targets.web import OF_STREAMS, Endpoint, is_distinct, public_url, secret_remover, secrets_of
from pytest_fairness.version import __version__

# Base class of the clients of model APIs: requests with a key and a JSON body, and errors that say what to do.

MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Exceptions that the parsing of a malformed response may raise."""
LIMITS = httpx.Limits(max_connections=1000, max_keepalive_connections=100)
"""Maximum numbers of connections; these are the limits of OpenAI's and Anthropic's SDKs."""


MAX_MALFORMED = 8
"""Number of malformed responses without an answer after which no more requests are sent."""
NEUTRAL = {"temperature": 1.0, "top_p": 1.0}
"""Values of sampling parameters that are the API's defaults, so that a request without them means the same."""


EVENT_STREAM = (b"data:", b"event:", b"id:", b":")
"""Beginnings of a stream of server-sent events."""


def events_in(content: bytes) -> list[bytes]:
    return [line[5:].strip() for line in content.splitlines() if line.startswith(b"data:")]


class StatusError(Exception):
    """Error for a response with an HTTP status other than success.

    Attributes:
        said: the server's message; the whole body if it contains no message.
        param: the field of the request that the server names as the cause; `None` if it names none.
        blocked: whether the provider refuses this request, or withholds its answer; see `is_blocked`.
    """

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(f"HTTP {response.status_code}")
        self.response, self.status = response, response.status_code
        try:
            body = json.loads(response.content)
        except (ValueError, RecursionError):
            body = None
        error = body.get("error") if isinstance(body, dict) else None
        parts = [part for part in (error, body) if isinstance(part, dict)]
        self.said = next((part["message"] for part in parts if isinstance(part.get("message"), str)), response.text)
        self.code: Json = next((part["code"] for part in parts if "code" in part), None)
        self.param: Json = next((part["param"] for part in parts if "param" in part), None)
        self.blocked = is_blocked(body, self.status)


class ApiClient(ABC):
    """Client of one server for all requests of a target."""

    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        self._streams = False
        self._name, self._model, self._where = endpoint.name, endpoint.model, endpoint.where
        self._base_url = httpx.URL(endpoint.base_url)
        self._endpoint = public_url(endpoint.base_url)
        secrets = [endpoint.key, *endpoint.secrets, *secrets_of(endpoint.base_url)]
        # A login in the address or a header can take the place of the key.
        self._unset_key = None if any(secrets) else endpoint.key_name
        self._errors = HttpErrors(
            self._name, self._endpoint, self._where, secret_remover(secrets), key_missing=self._unset_key is not None
        )
        self._has_answered, self._malformed = False, 0
        self._redact_answer = secret_remover(filter(is_distinct, secrets))
        self._rejected_parameters: set[str] = set()
        self._headers = {"Accept": "application/json", "User-Agent": f"pytest-fairness/{__version__}", **headers}
        self._headers |= endpoint.headers
        if endpoint.key:
            self._headers["Authorization"] = f"Bearer {endpoint.key}"
        self._http_client = BoundedClient(
            max_bytes=endpoint.max_bytes,
            headers=self._headers,
            timeout=endpoint.timeout,
            limits=LIMITS,
            follow_redirects=True,
            trust_env=endpoint.trust_environment,
        )

    async def close(self) -> None:
        await self._http_client.aclose()

    def _url(self, path: str) -> httpx.URL:
        own, mark, query = self._base_url.raw_path.partition(b"?")
        return self._base_url.copy_with(raw_path=own.rstrip(b"/") + path.encode() + mark + query)

    async def _send(
        self, method: str, path: str, body: Json = None, query: Mapping[str, str] | None = None, **more: Any
    ) -> httpx.Response:
        """Send a request, and return the response; `query` is added to that of the server's address.

        Raises:
            StatusError: the status is not a success.
            httpx.HTTPError: no complete response arrived.
        """
        if body is not None:
            more = {**more, "content": json.dumps(body, separators=(",", ":")).encode()}
            more["headers"] = {"Content-Type": "application/json", **more.get("headers", {})}
        url = self._url(path).copy_merge_params(query or {})
        response = await self._http_client.send(self._http_client.build_request(method, url, **more))
        if not response.is_success:
            raise StatusError(response)
        return response

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
        message = f"HTTP {error.status} from {self._endpoint}: {self._errors.quoted(error.said)}"
        left_out = _dispensable(sampling) & (rejected | (NEUTRAL.keys() if rejected & NEUTRAL.keys() else set()))
        if left_out:
            self._rejected_parameters |= left_out
            return RequestFailed(f"{self._name}: {message}", retry=RetryReason.REPHRASED)
        shown = " and ".join(f"{name} {json.dumps(sampling[name], ensure_ascii=False)}" for name in sorted(rejected))
        cure = ", or set them to 1" if rejected & NEUTRAL.keys() else ""
        return RequestFailed(
            f"{self._name} does not accept {shown} ({message}). Remove these parameters from the probe's "
            f"`sampling`{cure}.",
            check="the probe's `sampling`",
        )

    def _wants_stream(self, error: StatusError) -> bool:
        """Return whether the server answers only as a stream of events; if so, ask for a stream from now on."""
        sent = json.loads(error.response.request.content)
        if "stream" in sent or not OF_STREAMS.search(error.said):
            return False
        self._streams = True
        return True

    @abstractmethod
    def _status_error(self, error: StatusError) -> RequestFailed | TargetError:
        """Return the error for an HTTP status other than 401 and 403."""

    def _error_of(self, error: StatusError) -> RequestFailed | TargetError:
        """Return the error for an HTTP status; a 403 after an answer is due to the request and not to the key."""
        if error.status == 403 and self._has_answered:
            return self._errors.for_status(error.status, error.response.headers, error.said)
        if error.status in (401, 403) and self._unset_key is not None:
            return TargetError(
                f"{self._name}: {self._endpoint} asks for an API key (HTTP {error.status}), and none is set. Set "
                f"the environment variable {self._unset_key}."
            )
        if error.status in (401, 403):
            # The server's message is left out, because it may quote the key.
            what = "the key" if error.status == 401 else "the request with this key"
            return TargetError(
                f"{self._name}: {self._endpoint} rejects {what} (HTTP {error.status}). Check {self._where}."
            )
        return self._status_error(error)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Convert exceptions of `_send` into errors whose messages say what to do."""
        try:
            yield
        except StatusError as error:
            raise self._error_of(error) from error
        except httpx.TimeoutException as error:
            raise self._errors.timed_out(error) from error
        except httpx.HTTPError as error:
            raise self._errors.disconnected(error) from error

    def _tool_calls(self, written: Json) -> str | None:
        """Return tool calls in the form of `Response.tool_calls`; raise `ValueError` for malformed ones."""
        return self._redact_answer(reply_of({"tool_calls": written}).calls_as_json) if written else None

    def _malformed_error(self, wanted: str, content: bytes, *, counts: bool = True) -> RequestFailed | TargetError:
        """Return the error for a malformed response; `wanted` says what it should be, such as `a message`.

        After `MAX_MALFORMED` malformed responses and no answer, the server is none of this API: return a `TargetError`.
        A response in a batch does not count.
        """
        shown = self._errors.quoted(content.decode("utf-8", "replace"), 120)
        message = f"{self._name}: the response of {self._endpoint} is not {wanted}: {shown!r}"
        self._malformed += counts
        if not self._has_answered and self._malformed >= MAX_MALFORMED:
            return TargetError(f"{message}. The {MAX_MALFORMED - 1} previous responses were none either.")
        return RequestFailed(message, retry=RetryReason.TRANSIENT)


async def read_response(read: Callable[[httpx.Response], Response], response: httpx.Response) -> Response:
    """Return the result of `read` for a response, or `too_long_response()` for a body over the limit."""
    return too_long_response() if is_too_long(response) else await parsed(read, response)


def _dispensable(sampling: Mapping[str, Json]) -> set[str]:
    """Return the names of the parameters without which a request means the same, apart from reproducibility."""
    return {name for name, value in sampling.items() if name == "seed" or NEUTRAL.get(name) == value}


def token_count(value: Json) -> int | None:
    """Return the number of tokens that a server reports; `None` if the value is not an integer."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


# Base class and functions that the clients of OpenAI's and Anthropic's batch APIs share.

CLOCK_SKEW = 300.0
"""Seconds by which the clocks of a provider and of this machine may differ."""
LINE_OVERHEAD = 65_536
"""Maximum number of bytes of a line of results in addition to the bytes of the answer."""
PAGE = 100
"""Number of batches on a page of the list of all batches."""
_ID = re.compile(r"[A-Za-z0-9_.-]{1,200}")

T = TypeVar("T")


class ApiBatches(ApiClient):
    """Base class of the batch clients, which can also download files of any size."""

    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        super().__init__(endpoint, headers)
        self._line_limit = endpoint.max_bytes + LINE_OVERHEAD
        self._streaming_client = httpx.AsyncClient(
            headers=self._headers, timeout=endpoint.timeout, trust_env=endpoint.trust_environment
        )

    async def close(self) -> None:
        await self._streaming_client.aclose()
        await super().close()

    def _rejected(self, said: str) -> RequestFailed | None:
        """Return the error of a request of a batch whose parameter is rejected; `None` if no parameter is named."""
        named = sorted({*re.findall(r"\w+", said)} & {*SAMPLING_PARAMETERS, "max_completion_tokens"})
        if not named:
            return None
        return RequestFailed(
            f"{self._name} rejects {joined(named)} in a batch ({self._errors.quoted(said)}). Change the probe's "
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
        with self._translated_errors():
            response = await self._send(method, path, **more)
        try:
            return read(json.loads(response.content))
        except MALFORMED as error:
            raise self._malformed_error(wanted, response.content) from error

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
        with self._translated_errors():
            async with self._streaming_client.stream("GET", self._url(path)) as response:
                if not response.is_success:
                    await response.aread()
                    raise StatusError(response)
                async for line in bounded_lines(response.aiter_bytes(), self._line_limit):
                    with suppress(*MALFORMED):
                        yield read(json.loads(line))

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
            f"{self._name}: {self._endpoint} offers no batches, or has no such batch (HTTP 404: "
            f"{self._errors.quoted(said)}). Check {self._where}: a batch belongs to the account that created it. To "
            "send the requests one by one, turn fairness_batch off."
        )


def id_of(value: Json) -> str:
    """Return an id, or raise `ValueError` for a value that cannot be part of an address."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ValueError("not an id")
    return value
