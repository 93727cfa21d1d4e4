"""Connection to one web server, through which all targets send: limits, redirects, proxies, certificates, errors."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import ssl
import urllib.request
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from pytest_fairness.errors import FairnessError, TargetError
from pytest_fairness.records import Json
from pytest_fairness.targets.web import Reply, ServerErrors, StatusError, public_url
from pytest_fairness.version import __version__

if TYPE_CHECKING:
    import httpx2 as httpx
else:
    # The HTTP library on which the installed `openai` package is built.
    httpx = import_module("httpx2" if int(version("openai").partition(".")[0]) >= 3 else "httpx")

__all__ = ["Connection", "SdkTransport", "bounded_lines", "httpx", "parsed"]

T = TypeVar("T")

MAX_ERROR_BYTES = 65_536
"""Maximum number of bytes that are read from the body of an error or a redirect."""
LARGE = 65_536
"""Size in bytes from which a body is parsed in a thread, so that the event loop can serve other requests."""
MAX_REDIRECTS = 2
"""Maximum number of redirects of a request, so that a loop costs three hops."""
MAX_CONNECTIONS = 1_000
"""Maximum number of connections; this is the limit of OpenAI's and Anthropic's SDKs."""
MAX_HEADER_BYTES = 65_536
"""Maximum number of bytes of a response's status line, and of each header."""
KEEP_ALIVE = 5.0
"""Seconds for which an unused connection is kept."""
_HEADERS = {
    "accept": "*/*",
    "accept-encoding": "gzip, deflate",
    "connection": "keep-alive",
    "user-agent": f"pytest-fairness/{__version__}",
}
SDK_HEADERS = ("content-type", "openai-organization", "openai-project")
"""Headers of OpenAI's SDK that are sent: the other ones are the connection's, or describe this machine."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_log = logging.getLogger(__name__)


class Connection:
    """Connection of one target to one server; targets send through it only.

    At most `max_bytes` of a body are read and decompressed. A redirect to another host, or one that would not send the
    prompt, is an error. The login in the address is sent as a header; it and the query appear in no message and no log.
    The proxies that environment variables set are used if `trust_environment` is true.

    Raises:
        TargetError: environment variables name certificates that cannot be read.
    """

    def __init__(
        self,
        address: str,
        errors: ServerErrors,
        *,
        headers: Mapping[str, str],
        timeout: float | None,
        max_bytes: int,
        connections: int = MAX_CONNECTIONS,
        trust_environment: bool = True,
    ) -> None:
        url = URL(address, encoded=True)
        self.errors, self.max_bytes = errors, max_bytes
        self.headers = {**_HEADERS, **{name.lower(): value for name, value in headers.items()}}
        if url.user is not None:
            login = base64.b64encode(f"{url.user}:{url.password or ''}".encode()).decode()
            self.headers["authorization"] = f"Basic {login}"
        self._origin, self._path, self._query = str(url.origin()), url.raw_path, url.raw_query_string
        self._timeout = aiohttp.ClientTimeout(sock_connect=timeout, sock_read=timeout)
        self._certificates = _certificates(
            trust_environment, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        )
        self._proxies = urllib.request.getproxies() if trust_environment else {}
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(
        self,
        method: str,
        path: str = "",
        body: Json | bytes = None,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        follow: bool = True,
    ) -> Reply:
        """Send a request, follow redirects within the host if `follow`, and return the response, whatever its status.

        Path and query are added to those of the server's address. A body that is not `bytes` is sent as JSON.

        Raises:
            RequestFailed: no complete response arrived.
            TargetError: the certificate is not trusted, or the server redirects the request elsewhere.
        """
        url, headers = self._url(path, query), headers or {}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body, separators=(",", ":")).encode()
            headers = {"content-type": "application/json", **headers}
        for _ in range(MAX_REDIRECTS + 1):
            async with self._response(method, url, headers, body) as response:
                limit = self.max_bytes if response.ok else min(self.max_bytes, MAX_ERROR_BYTES)
                content = bytearray()
                async for piece in _pieces(response, limit + 1):
                    content += piece
                    if len(content) > limit:
                        break
                too_long = response.ok and len(content) > limit
                reply = Reply(response.status, response.headers, b"" if too_long else bytes(content[:limit]), too_long)
                moved_to = self._redirect(response)
            if moved_to is None:
                return reply
            if not follow:
                return reply._replace(moved_to=public_url(str(moved_to)))
            url = moved_to
        raise self.errors.redirect_loop(f"more than {MAX_REDIRECTS} redirects")

    async def lines(self, path: str, limit: int) -> AsyncGenerator[bytes]:
        """Yield the lines of a body of any size, without lines of more than `limit` bytes.

        Raises:
            StatusError: the status is not a success.
        """
        async with self._response("GET", self._url(path), {}, None) as response:
            if not response.ok:
                body = await response.content.read(MAX_ERROR_BYTES)
                raise StatusError(Reply(response.status, response.headers, body))
            async for line in bounded_lines(_pieces(response, LARGE), limit):
                yield line

    def _url(self, path: str, query: Mapping[str, str] | None = None) -> URL:
        """Return an address at the server; `path` and `query` are added to those of the server's address."""
        whole = self._path.rstrip("/") + path if path else self._path
        pairs = "&".join(filter(None, (self._query, urlencode(query or {}))))
        return URL(f"{self._origin}{whole}{'?' if pairs else ''}{pairs}", encoded=True)

    @asynccontextmanager
    async def _response(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request, and yield its response, whose body is not read yet; translate errors of the connection."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._connections, keepalive_timeout=KEEP_ALIVE, ssl=self._certificates
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=("Content-Type",),
                max_line_size=MAX_HEADER_BYTES,
                max_field_size=MAX_HEADER_BYTES,
            )
        try:
            response = await self._session.request(
                method,
                url,
                headers={**self.headers, **headers},
                data=body,
                allow_redirects=False,
                timeout=self._timeout,
                proxy=self._proxy(url),
            )
            try:
                _log.info("HTTP request: %s %s %d", method, url.with_query(None), response.status)
                yield response
            finally:
                response.close()  # keeps the connection for the next request if the body was read to its end
        except (aiohttp.ClientError, TimeoutError, OSError, zlib.error) as error:
            raise self._failure(error) from error

    def _proxy(self, url: URL) -> URL | None:
        proxy = self._proxies.get(url.scheme, self._proxies.get("all"))
        if proxy is None or url.host is None or urllib.request.proxy_bypass(url.host):
            return None
        found = URL(proxy if "://" in proxy else f"http://{proxy}", encoded=True)
        if found.scheme not in ("http", "https"):
            raise TargetError(
                f"{self.errors.name}: the proxy {public_url(proxy)} in the environment is not an HTTP proxy. Set the "
                f"environment variable {url.scheme}_proxy to an HTTP proxy, or no_proxy to {url.host}."
            )
        return found

    def _redirect(self, response: aiohttp.ClientResponse) -> URL | None:
        """Return where a response redirects its request, if anywhere; raise `TargetError` for another host or a GET."""
        location = response.headers.get("location")
        if response.status not in _REDIRECTS or location is None:
            return None
        url = response.url
        try:
            target = url.join(URL(location, encoded=True))
            ports = {url.explicit_port, target.explicit_port}
        except ValueError:
            raise self.errors.incomplete("it redirects to an invalid address") from None
        upgraded = (url.scheme, target.scheme) == ("http", "https") and ports == {None}
        where = f"{public_url(str(url))} redirects to {{}}{public_url(str(target))}{{}} (HTTP {response.status})"
        if url.host != target.host or not (upgraded or url.origin() == target.origin()):
            raise self.errors.redirected(where.format("another host, ", ""))
        if response.method == "POST" and response.status < 307:
            raise self.errors.redirected(where.format("", ", which would be asked by GET"))
        return target

    def _failure(self, error: Exception) -> FairnessError:
        errors = self.errors
        match error:
            case aiohttp.ClientHttpProxyError():
                return errors.unreachable(f"the proxy answers HTTP {error.status} {error.message}")
            case aiohttp.ClientConnectorCertificateError():
                return errors.untrusted(str(error))
            case aiohttp.ClientConnectorError():
                return errors.unreachable(str(error))
            case aiohttp.ConnectionTimeoutError():
                return errors.no_connection_in_time()
            case aiohttp.ServerTimeoutError():
                return errors.timed_out()
            case aiohttp.ClientResponseError():
                return errors.incomplete(error.message)
        return errors.incomplete(str(error) or type(error).__name__)


async def _pieces(response: aiohttp.ClientResponse, at_once: int) -> AsyncGenerator[bytes]:
    """Yield the pieces of a body, decompressed, each of at most `at_once` bytes if the body is compressed."""
    encoding = response.headers.get("content-encoding", "").lower()
    unpack = zlib.decompressobj(47) if encoding in ("gzip", "x-gzip", "deflate") else None  # either kind of header
    async for piece in response.content.iter_any():
        packed = piece
        while unpack is not None and packed:
            yield unpack.decompress(packed, at_once)
            packed = unpack.unconsumed_tail
        if unpack is None:
            yield piece


async def bounded_lines(pieces: AsyncIterator[bytes], limit: int) -> AsyncGenerator[bytes]:
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


async def parsed(parse: Callable[[Reply], T], reply: Reply) -> T:
    """Return the result of `parse` for a response; for a large body, `parse` runs in a thread."""
    if len(reply.body) < LARGE:
        return parse(reply)
    return await asyncio.to_thread(parse, reply)


@lru_cache(16)
def _certificates(trust_environment: bool, *_files: str | None) -> ssl.SSLContext:
    """Read the accepted certificates, which takes 20 ms, once in a process.

    Raises:
        TargetError: an environment variable names a file that cannot be read.
    """
    try:
        return httpx.create_ssl_context(trust_env=trust_environment)
    except OSError as error:
        variable = "SSL_CERT_FILE" if os.environ.get("SSL_CERT_FILE") else "SSL_CERT_DIR"
        raise TargetError(
            f"The certificates that the environment variable {variable} names cannot be read: "
            f"{os.environ.get(variable)}: {error.strerror or error}. Correct the path; the file must be in PEM format."
        ) from error


class SdkTransport(httpx.AsyncBaseTransport):
    """Transport with which OpenAI's SDK sends through a connection; a response's extension `reply` is the `Reply`."""

    def __init__(self, connection: Connection, base: httpx.URL) -> None:
        self._connection, self._skipped = connection, len(base.raw_path.rstrip(b"/"))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.partition(b"?")[0].decode("ascii")[self._skipped :]
        headers = {name: request.headers[name] for name in SDK_HEADERS if name in request.headers}
        body = await request.aread()
        reply = await self._connection.send(
            request.method, path, body or None, headers=headers, query=dict(request.url.params)
        )
        return httpx.Response(
            reply.status,
            headers={"content-type": reply.headers.get("content-type", "")},
            content=reply.body,
            extensions={"reply": reply},
        )
