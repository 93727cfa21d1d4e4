"""HTTP client of all targets, its transport, and the errors of servers."""

from __future__ import annotations

import asyncio
import email.utils
import logging
import os
import re
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar, cast

import aiohttp
from yarl import URL

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError, one_line
from pytest_fairness.records import TOO_LONG, Json, Response, is_block
from pytest_fairness.targets.web import public_url

# HTTP client of all targets, which limits the size of bodies and follows no redirect to another host.

T = TypeVar("T")

MAX_ERROR_BYTES = 65_536
"""Maximum number of bytes that are read from the body of an error or a redirect."""
LARGE = 65_536
"""Size in bytes from which a body is parsed in a thread, so that the event loop can serve other requests."""
MAX_REDIRECTS = 2
"""Maximum number of redirects of a request, so that a loop costs three hops."""


if TYPE_CHECKING:
    import httpx2 as httpx
else:
    httpx = import_module("httpx2" if int(version("openai").partition(".")[0]) >= 3 else "httpx")


_LOGS = (httpx.__name__, "openai._base_client")
"""Names of the loggers of the HTTP client and of OpenAI's client, which log the full address of each request."""
_BODY_HEADERS = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})
"""Names of headers that no longer describe a body after it is read and decompressed."""

parsed_url = lru_cache(16)(httpx.URL)


@lru_cache(16)
def _certificates(verify: Any, trust_env: bool, *_environment: str | None) -> ssl.SSLContext:
    """Read the accepted certificates, which takes 20 ms, once in a process."""
    return httpx.create_ssl_context(verify, trust_env=trust_env)


def _ssl_context(verify: Any, *, trust_env: bool) -> ssl.SSLContext:
    try:
        return _certificates(verify, trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    except OSError as error:
        variable = "SSL_CERT_FILE" if os.environ.get("SSL_CERT_FILE") else "SSL_CERT_DIR"
        raise TargetError(
            f"The certificates that the environment variable {variable} names cannot be read: "
            f"{os.environ.get(variable)}: {error.strerror or error}. Correct the path; the file must be in PEM format."
        ) from error


class RedirectedElsewhere(httpx.RequestError):
    """Error for a redirect to another host, which is not followed."""

    def __init__(self, url: str, status: int, location: str) -> None:
        super().__init__(f"{public_url(url)} redirects to another host, {public_url(location)} (HTTP {status})")


class RedirectedAsGet(RedirectedElsewhere):
    """Error for a redirect that would turn a POST into a GET without the prompt."""

    def __init__(self, url: str, status: int, location: str) -> None:
        httpx.RequestError.__init__(
            self, f"{public_url(url)} redirects to {public_url(location)}, which would be asked by GET (HTTP {status})"
        )


class BoundedTransport(httpx.AsyncBaseTransport):
    """Transport that reads at most `max_bytes` of a decompressed body.

    A longer body is dropped if the response is successful (see `is_too_long`). Of the body of an error or a redirect,
    only the beginning is kept: at most `MAX_ERROR_BYTES` and at most `max_bytes`.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport, max_bytes: int) -> None:
        self._transport, self._max_bytes = transport, max_bytes

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._transport.handle_async_request(request)
        limit = self._max_bytes if response.is_success else min(self._max_bytes, MAX_ERROR_BYTES)
        body = bytearray()
        try:
            async with aclosing(_pieces(response)) as pieces:
                async for piece in pieces:
                    body += piece
                    if len(body) > limit:
                        break
        finally:
            await response.aclose()
        too_long = response.is_success and len(body) > limit
        return httpx.Response(
            response.status_code,
            headers=[(name, value) for name, value in response.headers.raw if name.lower() not in _BODY_HEADERS],
            content=b"" if too_long else bytes(body[:limit]),
            extensions={**response.extensions, "fairness_too_long": too_long},
        )

    async def aclose(self) -> None:
        await self._transport.aclose()


def _pieces(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """Return the decompressed pieces of a body; httpx's decoders are left out where nothing is compressed."""
    pieces = response.aiter_bytes() if "Content-Encoding" in response.headers else response.stream
    return cast("AsyncGenerator[bytes, None]", aiter(cast("AsyncIterator[bytes]", pieces)))


class BoundedClient(httpx.AsyncClient):
    """HTTP client with a `BoundedTransport`, which follows no redirect to another host."""

    def __init__(self, *, max_bytes: int, **settings: Any) -> None:
        self._max_bytes = max_bytes
        super().__init__(**settings)
        for name in _LOGS:
            logging.getLogger(name).addFilter(_log_public_addresses)

    def _init_transport(self, **settings: Any) -> httpx.AsyncBaseTransport:  # type: ignore[override] # as `__init__` calls it
        transport = AiohttpTransport(
            _ssl_context(settings["verify"], trust_env=settings["trust_env"]), settings["limits"], settings.get("proxy")
        )
        return BoundedTransport(transport, self._max_bytes)

    def _init_proxy_transport(  # type: ignore[override] # as `__init__` calls it
        self, proxy: httpx.Proxy, **settings: Any
    ) -> httpx.AsyncBaseTransport:
        if proxy.url.scheme in ("http", "https"):
            return self._init_transport(proxy=proxy, **settings)
        # aiohttp knows no SOCKS proxies
        return BoundedTransport(super()._init_proxy_transport(proxy, **settings), self._max_bytes)

    def build_request(self, method: str, url: httpx.URL | str, **settings: Any) -> httpx.Request:
        return super().build_request(method, parsed_url(url), **settings)

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request and return its response, whose body is read completely even with the option `stream`.

        Redirects within the host are followed if the option `follow_redirects` (default: the client's setting) is true.

        Raises:
            RedirectedElsewhere: the server redirects to another host, or to a GET.
            httpx.HTTPError: no complete response arrived.
        """
        follow = options.pop("follow_redirects", self.follow_redirects)
        for _ in range(MAX_REDIRECTS + 1):
            response = await super().send(request, follow_redirects=False, **options)
            following = response.next_request
            if following is not None and not _same_host(request.url, following.url):
                raise RedirectedElsewhere(str(request.url), response.status_code, str(following.url))
            if following is not None and following.method != request.method:
                raise RedirectedAsGet(str(request.url), response.status_code, str(following.url))
            if following is None or follow is not True:
                return response
            request = following
        raise httpx.TooManyRedirects(f"more than {MAX_REDIRECTS} redirects", request=request)


async def bounded_lines(pieces: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    """Yield the lines of a body; leave out lines of more than `limit` bytes."""
    line, skipping = bytearray(), False
    async for piece in pieces:
        *ends, rest = piece.split(b"\n")
        for end in ends:
            line += end
            if not skipping and len(line) <= limit:
                yield bytes(line)
            line, skipping = bytearray(), False
        line += rest
        if len(line) > limit:
            line, skipping = bytearray(), True
    if line and not skipping:
        yield bytes(line)


def is_too_long(response: httpx.Response) -> bool:
    """Return whether the body was longer than the limit of the `BoundedClient` that read it."""
    return bool(response.extensions.get("fairness_too_long"))


def too_long_response() -> Response:
    """Return the response that is recorded in place of a body over the limit; its answer counts as unreadable."""
    return Response("", finish_reason=TOO_LONG)


async def parsed(parse: Callable[[httpx.Response], T], response: httpx.Response) -> T:
    """Return the result of `parse` for a response; for a large body, `parse` runs in a thread."""
    if len(response.content) < LARGE:
        return parse(response)
    return await asyncio.to_thread(parse, response)


def _log_public_addresses(record: logging.LogRecord) -> bool:
    """Filter a log record: remove user, password and query from its addresses, and remove its traceback."""
    if isinstance(record.args, tuple):
        record.args = tuple(public_url(str(value)) if isinstance(value, httpx.URL) else value for value in record.args)
    record.exc_info = None  # versions 1 and 2 of OpenAI's client log tracebacks, whose messages contain the address
    return True


def _same_host(one: httpx.URL, other: httpx.URL) -> bool:
    """Return whether two addresses have the same scheme, host and port, or differ only by an upgrade to `https`."""
    upgraded = (one.scheme, other.scheme) == ("http", "https") and {one.port, other.port} <= {None}
    return one.host == other.host and (upgraded or (one.scheme, one.port) == (other.scheme, other.port))


# Errors of targets that are asked over HTTP; messages say what happened, at which server, and what to check.
#
# Providers also say in the body of a response, or in its finish reason, that an answer was withheld, cut off or
# broken off. All targets recognise these words with the functions of this module.

OVERLOADED = frozenset({429, 503, 529})
"""HTTP statuses of a server that limits the rate of requests or is overloaded."""
TRANSIENT = frozenset({408, 409, 425, *range(500, 600)}) - OVERLOADED
"""Other HTTP statuses after which another attempt may succeed."""

LONGEST_PAUSE = 86_400.0
"""Longest pause in seconds for which a server can plausibly ask; an hour or more ends the run in any case."""

_LENGTH = frozenset({"length", "max_tokens", "model_length"})
"""Finish reasons of answers that `max_tokens` has cut off: `length` of OpenAI, the others of compatible servers."""
_BROKEN_OFF = frozenset({"abort", "error", "insufficient_system_resource"})
"""Finish reasons of answers that the server broke off: of OpenRouter, DeepSeek and vLLM, among others."""
_BLOCKING_STATUSES = frozenset({200, 400, 403, 422, 451})
"""HTTP statuses of responses that may say that the answer was withheld."""
_FINISH_KEYS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "blockReason", "block_reason")
_CODE_KEYS = ("code", "type")
_MESSAGE_KEYS = ("message", "error", "detail")
_BLOCK_MESSAGE = re.compile(
    r"content (?:filter|management polic)|content exists risk|requires moderation|safety system"
    r"|violat\w+ (?:\w+ )?(?:usage|content) (?:polic|guideline)"
    r"|\b(?:input|prompt|request|content|output)s? (?:was|were|has been|have been|is|are) (?:flagged|blocked)",
    re.IGNORECASE,
)
"""Words in the error message of a provider that withholds an answer, and gives no code."""


def finish_reason(written: Json) -> str | None:
    """Return a finish reason as `Response` has it: `length` for an answer that was cut off at `max_tokens`."""
    if not isinstance(written, str):
        return None
    return "length" if written.casefold() in _LENGTH else written


def finish_reason_in(body: Json) -> str | None:
    """Return the finish reason in the body of a service, if it says that the answer was withheld or cut off.

    The reason is the value of one of the keys of OpenAI's, Anthropic's and Gemini's APIs, at any depth.
    """
    reasons = (finish_reason(value) for key, value in _fields(body) if key in _FINISH_KEYS)
    return next((reason for reason in reasons if reason == "length" or is_block(reason)), None)


def is_blocked(error: Json, status: int = 400) -> bool:
    """Return whether a body or its error says that the provider refuses the request or withholds the answer."""
    if status not in _BLOCKING_STATUSES:
        return False
    for key, value in _fields(error):
        if isinstance(value, str) and (
            (key in _CODE_KEYS + _FINISH_KEYS and is_block(value))
            or (key in _MESSAGE_KEYS and _BLOCK_MESSAGE.search(value) is not None)
        ):
            return True
        if key == "reasons" and value and status == 403:  # a gateway's moderation
            return True
    return False


def blocked_response() -> Response:
    """Return the response to a request whose answer the provider withholds; it has no text."""
    return Response("", finish_reason="content_filter")


def _fields(body: Json, depth: int = 8) -> Iterator[tuple[str, Json]]:
    if depth and isinstance(body, dict):
        yield from body.items()
    if depth and isinstance(body, dict | list):
        for part in body.values() if isinstance(body, dict) else body:
            yield from _fields(part, depth - 1)


@dataclass(frozen=True)
class HttpErrors:
    """Factory of errors for one server.

    Attributes:
        endpoint: the server's address, without secrets.
        where: names of the settings for the address and for the key; the key comes last.
        redact: function that removes secrets from a text.
    """

    name: str
    endpoint: str
    where: str
    redact: Callable[[str], str]
    key_missing: bool = False

    def timed_out(self, cause: BaseException | None) -> RequestFailed:
        """Return the error for a request that timed out, by the HTTP client's exception, if any."""
        if isinstance(cause, httpx.ConnectTimeout):
            return RequestFailed(
                f"{self.name}: no connection to {self.endpoint} within the time limit. Check that the server is "
                f"running, and {self.where}.",
                retry=RetryReason.UNREACHABLE,
            )
        return RequestFailed(
            f"{self.name}: {self.endpoint} did not answer in time. If the server is slow, raise the ini "
            "fairness_timeout.",
            retry=RetryReason.TIMEOUT,
        )

    def disconnected(self, cause: BaseException) -> RequestFailed | TargetError:
        """Return the error for a failed connection, an untrusted certificate, or a redirect to another host."""
        why = self.quoted(str(cause).replace(" ssl:default", ""))  # aiohttp adds this to http:// addresses, too
        if isinstance(cause, RedirectedElsewhere):
            return TargetError(f"{self.name}: {why}; nothing was sent there. Check {self.where}.")
        if isinstance(cause, UntrustedCertificate):
            return TargetError(
                f"{self.name}: the certificate of {self.endpoint} is not trusted ({why}). If the server or your proxy "
                "uses a certificate authority of your organisation, set the environment variable SSL_CERT_FILE to the "
                "file with its certificate (PEM)."
            )
        if isinstance(cause, httpx.ConnectError | httpx.ProxyError):
            return RequestFailed(
                f"{self.name}: no connection to {self.endpoint} ({why}). Check that the server is running, and "
                f"{self.where}.",
                retry=RetryReason.UNREACHABLE,
            )
        if isinstance(cause, httpx.TooManyRedirects):
            return RequestFailed(f"{self.name}: {self.endpoint} redirects in a loop ({why}).", check=self.where)
        return RequestFailed(
            f"{self.name}: {self.endpoint} sent no complete response ({why}).",
            retry=RetryReason.TRANSIENT,
        )

    def for_status(self, status: int, headers: Mapping[str, str], said: str, check: str = "") -> RequestFailed:
        """Return the error for an HTTP status that may be due to this request alone.

        `check` says what to check if every request gets the status; by default the model's name, endpoint and key.
        """
        retry = None
        key = " (no key is set)" if self.key_missing else ""
        if headers.get("x-should-retry") != "false":
            retry = RetryReason.OVERLOADED if status in OVERLOADED else None
            retry = RetryReason.TRANSIENT if status in TRANSIENT else retry
        return RequestFailed(
            f"{self.name}: HTTP {status} from {self.endpoint}: {self.quoted(said)}",
            retry=retry,
            retry_after=retry_after(headers),
            check=(check or f"the model's name, {self.where}{key}") if retry is None else None,
        )

    def broken_off(self, reason: Json, error: Json = None) -> RequestFailed | None:
        """Return the error for an answer that the server broke off, by its finish reason or the error beside it."""
        if not error and not (isinstance(reason, str) and reason.casefold() in _BROKEN_OFF):
            return None
        said = error.get("message") if isinstance(error, dict) else error
        why = f"finish_reason {reason!r}" + (f": {said}" if said else "")
        return RequestFailed(
            f"{self.name}: {self.endpoint} broke off the answer ({self.quoted(why)}).", retry=RetryReason.TRANSIENT
        )

    def quoted(self, text: str, length: int = 200) -> str:
        """Return a server's message on one line, shortened and without secrets."""
        return one_line(self.redact(text), length)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the pause in seconds that `Retry-After-Ms` or `Retry-After` demands; `None` without a plausible header.

    A negative pause, or one of more than `LONGEST_PAUSE`, such as a date of another century, is a fault of the server.
    """
    milliseconds, written = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        seconds = float(milliseconds) / 1000 if milliseconds else float(written or "")
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(written or "").timestamp() - time.time()
        except (ValueError, OverflowError, OSError):
            return None
    return seconds if 0 <= seconds <= LONGEST_PAUSE else None


# Transport of the HTTP client over aiohttp, which needs half of the CPU time of the client's default transport.

MAX_HEADER_BYTES = 65_536
"""Maximum number of bytes of a response's status line, and of each header."""


class UntrustedCertificate(httpx.ConnectError):
    """Error of a connection to a server whose certificate no known authority has signed."""


_ERRORS: tuple[tuple[type[Exception], type[httpx.RequestError]], ...] = (
    (aiohttp.ClientProxyConnectionError, httpx.ProxyError),
    (aiohttp.ClientHttpProxyError, httpx.ProxyError),
    (aiohttp.ClientConnectorCertificateError, UntrustedCertificate),
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (aiohttp.ServerTimeoutError, httpx.ReadTimeout),
    (aiohttp.InvalidURL, httpx.UnsupportedProtocol),
    (aiohttp.ClientConnectionError, httpx.ReadError),
    (aiohttp.ClientError, httpx.RemoteProtocolError),
)
"""Classes of aiohttp's errors, each with the class of httpx's errors that replaces it; the first that fits counts."""


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Transport of an `httpx.AsyncClient` over connections of aiohttp."""

    def __init__(self, ssl_context: ssl.SSLContext, limits: httpx.Limits, proxy: httpx.Proxy | None = None) -> None:
        self._ssl_context, self._limits = ssl_context, limits
        self._proxy = None if proxy is None else _url(proxy.url)
        if self._proxy is not None and proxy is not None and proxy.auth is not None:
            self._proxy = self._proxy.with_user(proxy.auth[0]).with_password(proxy.auth[1])
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response, whose body is not read yet."""
        timeout = request.extensions.get("timeout", {})
        content = await request.aread()
        with _translated_errors():
            response = await self._opened().request(
                request.method,
                _url(request.url),
                headers=request.headers.multi_items(),
                data=content or None,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(sock_connect=timeout.get("connect"), sock_read=timeout.get("read")),
                proxy=self._proxy,
            )
        extensions = {"http_version": b"HTTP/1.1", "reason_phrase": (response.reason or "").encode("ascii", "replace")}
        return httpx.Response(
            response.status,
            headers=response.raw_headers,
            stream=_Body(response),
            request=request,
            extensions=extensions,
        )

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """Return the session, which is made at the first call, because it needs a running event loop."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=self._limits.max_connections or 0,
                keepalive_timeout=self._limits.keepalive_expiry,
                ssl=self._ssl_context,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),  # the HTTP client keeps cookies
                auto_decompress=False,
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
                max_line_size=MAX_HEADER_BYTES,
                max_field_size=MAX_HEADER_BYTES,
            )
        return self._session


class _Body(httpx.AsyncByteStream):
    """Body of a response as the server sent it, without decompression."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated_errors():
            async for piece in self._response.content.iter_any():
                yield piece

    async def aclose(self) -> None:
        """Keep the connection for the next request if the body was read to its end; otherwise close the connection."""
        self._response.close()


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        new_class = next((new for old, new in _ERRORS if isinstance(error, old)), httpx.ReadError)
        raise new_class(_reason(error)) from error


def _reason(error: Exception) -> str:
    """Return the message of an error, without addresses, which may contain a login."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answers HTTP {error.status} {error.message}"
    if isinstance(error, aiohttp.ClientResponseError):
        return error.message
    return str(error) or type(error).__name__


def _url(url: httpx.URL) -> URL:
    """Return an address for aiohttp, without the login, which the HTTP client sends in a header."""
    return URL(f"{url.scheme}://{url.netloc.decode('ascii')}{url.raw_path.decode('ascii')}", encoded=True)


# HTTP library on which the installed `openai` client is built: httpx2 since version 3 of the client, httpx before.

__all__ = ["httpx"]
