"""HTTP client of all targets, which limits the size of bodies and follows no redirect to another host."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from functools import lru_cache
from typing import Any, TypeVar, cast

from pytest_fairness.errors import TargetError
from pytest_fairness.records import TOO_LONG, Response
from pytest_fairness.targets.web.address import public_url
from pytest_fairness.targets.web.aiohttp_transport import AiohttpTransport
from pytest_fairness.targets.web.http_library import httpx

T = TypeVar("T")

MAX_ERROR_BYTES = 65_536
"""Maximum number of bytes that are read from the body of an error or a redirect."""
LARGE = 65_536
"""Size in bytes from which a body is parsed in a thread, so that the event loop can serve other requests."""
MAX_REDIRECTS = 2
"""Maximum number of redirects of a request, so that a loop costs three hops."""

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
    """Return the TLS settings with the accepted certificates.

    Raises:
        TargetError: an environment variable names certificates that cannot be read.
    """
    try:
        return _certificates(verify, trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    except OSError as error:
        variable = "SSL_CERT_FILE" if os.environ.get("SSL_CERT_FILE") else "SSL_CERT_DIR"
        raise TargetError(
            f"The certificates that the environment variable {variable} names cannot be read: "
            f"{os.environ.get(variable)}: {error.strerror or error}. Correct the path; the file must be in PEM format."
        ) from error


class RedirectedElsewhere(httpx.RequestError):
    """Error for a redirect to another host, which is not followed.

    Args:
        url: address of the request.
        status: HTTP status of the redirect.
        location: address that the redirect names.
    """

    def __init__(self, url: str, status: int, location: str) -> None:
        super().__init__(f"{public_url(url)} redirects to another host, {public_url(location)} (HTTP {status})")


class RedirectedAsGet(RedirectedElsewhere):
    """Error for a redirect that would turn a POST into a GET without the prompt; see `RedirectedElsewhere`."""

    def __init__(self, url: str, status: int, location: str) -> None:
        httpx.RequestError.__init__(
            self, f"{public_url(url)} redirects to {public_url(location)}, which would be asked by GET (HTTP {status})"
        )


class BoundedTransport(httpx.AsyncBaseTransport):
    """Transport that reads at most `max_bytes` of a decompressed body.

    A longer body is dropped if the response is successful (see `is_too_long`). Of the body of an error or a redirect,
    only the beginning is kept: at most `MAX_ERROR_BYTES` and at most `max_bytes`.

    Args:
        transport: the transport that sends the requests.
        max_bytes: maximum number of bytes of a body after decompression.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport, max_bytes: int) -> None:
        self._transport, self._max_bytes = transport, max_bytes

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and return the response with its decompressed body, limited as the class describes."""
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
        """Close all connections."""
        await self._transport.aclose()


def _pieces(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """Return the decompressed pieces of a body; httpx's decoders are left out where nothing is compressed."""
    pieces = response.aiter_bytes() if "Content-Encoding" in response.headers else response.stream
    return cast("AsyncGenerator[bytes, None]", aiter(cast("AsyncIterator[bytes]", pieces)))


class BoundedClient(httpx.AsyncClient):
    """HTTP client with a `BoundedTransport`, which follows no redirect to another host.

    Args:
        max_bytes: maximum number of bytes of a body after decompression.
        settings: arguments of `httpx.AsyncClient`.
    """

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
        """Return a request with the headers of the client; equal addresses are parsed once."""
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
