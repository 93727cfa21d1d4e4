"""Transport of the HTTP client over aiohttp, which needs half of the CPU time of the client's default transport."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import aiohttp
from yarl import URL

from pytest_fairness.targets.web.http_library import httpx

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
    """Transport of an `httpx.AsyncClient` over connections of aiohttp.

    Args:
        ssl_context: TLS settings with the accepted certificates.
        limits: maximum number of connections, and the time for which an idle connection is kept.
        proxy: HTTP proxy of all requests, or `None`.
    """

    def __init__(self, ssl_context: ssl.SSLContext, limits: httpx.Limits, proxy: httpx.Proxy | None = None) -> None:
        self._ssl_context, self._limits = ssl_context, limits
        self._proxy = None if proxy is None else _url(proxy.url)
        if self._proxy is not None and proxy is not None and proxy.auth is not None:
            self._proxy = self._proxy.with_user(proxy.auth[0]).with_password(proxy.auth[1])
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its response; the body is not read yet."""
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
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """Return the session; it is made at the first call, because it needs a running event loop."""
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
    """Convert errors of aiohttp into errors of httpx."""
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
