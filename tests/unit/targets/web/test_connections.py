"""Connections of the HTTP client: broken ones, kept ones, proxies, and what is sent."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.targets.http_client import Connection
from pytest_fairness.targets.web import ServerErrors
from tests.support.servers import ChatServer, Reply
from tests.unit.targets.web.test_http_client import TARGETS, ask, server_of

PATH = "/v1/chat/completions"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ALL_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def run(work: Callable[[Connection], Awaitable[None]], address: str, *, trust_env: bool = False) -> None:
    async def within() -> None:
        errors = ServerErrors("target", "the server", "the settings", str)
        opened = Connection(
            address, errors, headers={}, timeout=5.0, max_bytes=1_000, connections=4, trust_environment=trust_env
        )
        try:
            await work(opened)
        finally:
            await opened.close()

    asyncio.run(within())


@contextmanager
def listener(reply: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Listen on a free port, give every connection the same reply, and keep what was received."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return  # closed
                with connection:
                    received.append(connection.recv(65_536))
                    connection.sendall(reply)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1], received
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ALL_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize(
    ("reply", "retry", "said"),
    [
        (Reply(broken="reset"), RetryReason.TRANSIENT, "sent no complete response"),
        (Reply(broken="half"), RetryReason.TRANSIENT, "sent no complete response"),
        (Reply(delay=5.0), RetryReason.TIMEOUT, "did not answer in time"),
    ],
)
def test_a_broken_connection_is_no_timeout_and_no_unreachable_server(
    kind: str, reply: Reply, retry: RetryReason, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server_of(kind, [reply]) as server, pytest.raises(RequestFailed, match=said) as raised:
        ask(kind, server, monkeypatch, timeout=0.3 if reply.delay else 10.0)
    assert raised.value.retry is retry


@pytest.mark.parametrize("kind", TARGETS)
def test_a_server_that_is_down_is_unreachable(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with server_of(kind, []) as server:
        pass
    with pytest.raises(RequestFailed, match=r"no connection to .*Check that the server is running") as raised:
        ask(kind, server, monkeypatch)
    assert raised.value.retry is RetryReason.UNREACHABLE


def test_what_is_no_http_is_a_broken_connection_without_the_address() -> None:
    async def work(opened: Connection) -> None:
        with pytest.raises(RequestFailed, match="sent no complete response") as raised:
            await opened.send("POST", body=b"{}")
        assert raised.value.retry is RetryReason.TRANSIENT
        assert "rosebud" not in str(raised.value)

    with listener(b"no http\r\n\r\n") as (port, _):
        run(work, f"http://127.0.0.1:{port}/?key=s-rosebud")


def test_connections_are_kept_unless_a_body_was_too_long() -> None:
    async def work(opened: Connection) -> None:
        body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        for _ in range(3):
            assert (await opened.send("POST", PATH, body)).ok
        assert server.connections == 1
        server.script = [Reply("a" * 10_000_000)]
        assert not (await opened.send("POST", PATH, body)).body
        assert (await opened.send("POST", PATH, body)).ok
        assert server.connections == 2

    with ChatServer() as server:
        run(work, server.url.removesuffix("/v1"))


def test_a_cancelled_request_closes_its_connection() -> None:
    async def work(opened: Connection) -> None:
        body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        task = asyncio.create_task(opened.send("POST", PATH, body))
        while not server.in_flight:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await opened.send("POST", PATH, body)).ok
        assert server.connections == 2

    with ChatServer(script=[Reply(delay=30.0)]) as server:
        run(work, server.url.removesuffix("/v1"))


def test_only_our_headers_are_sent_and_the_address_as_written() -> None:
    async def work(opened: Connection) -> None:
        await opened.send("POST", body=b"{}")

    with listener(OK) as (port, received):
        run(work, f"http://me:pass@127.0.0.1:{port}/a%2Fb?q=%40+%C3%BC")
    start, *lines = received[0].decode().split("\r\n")
    assert start == "POST /a%2Fb?q=%40+%C3%BC HTTP/1.1"
    headers = {line.partition(":")[0].lower(): line.partition(": ")[2] for line in lines if ":" in line}
    assert headers.keys() == {
        "host", "accept", "accept-encoding", "connection", "content-length", "authorization", "user-agent"
    }  # fmt: skip
    assert headers["user-agent"].startswith("pytest-fairness/")
    assert headers["authorization"] == f"Basic {base64.b64encode(b'me:pass').decode()}"


def test_the_proxy_of_the_environment_is_used_with_its_login(no_proxy: pytest.MonkeyPatch) -> None:
    async def work(opened: Connection) -> None:
        assert (await opened.send("POST", body=b"{}")).body == b"ok"

    with listener(OK) as (port, received):
        no_proxy.setenv("http_proxy", f"http://me:p%40ss@127.0.0.1:{port}")
        run(work, "http://service.test/x?y=1", trust_env=True)
    assert received[0].startswith(b"POST http://service.test/x?y=1 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"me:p@ss") in received[0]


def test_no_proxy_is_used_where_none_is_wanted(no_proxy: pytest.MonkeyPatch) -> None:
    async def work(opened: Connection) -> None:
        assert (await opened.send("POST", "/direct", b"{}")).body == b"ok"

    with listener(OK) as (port, received):
        no_proxy.setenv("http_proxy", "http://127.0.0.1:9")
        run(work, f"http://127.0.0.1:{port}")
        no_proxy.setenv("no_proxy", "127.0.0.1")
        run(work, f"http://127.0.0.1:{port}", trust_env=True)
    assert [head.split(b" ")[1] for head in received] == [b"/direct", b"/direct"]


def test_a_proxy_that_is_no_http_proxy_is_named_without_its_password(no_proxy: pytest.MonkeyPatch) -> None:
    async def work(opened: Connection) -> None:
        with pytest.raises(TargetError, match=r"proxy socks5://127.0.0.1:9 .* is not an HTTP proxy"):
            await opened.send("POST", body=b"{}")

    no_proxy.setenv("all_proxy", "socks5://me:s3cret@127.0.0.1:9")
    run(work, "http://service.test/", trust_env=True)


@pytest.mark.parametrize("refused", [True, False])
def test_errors_of_a_proxy_do_not_show_its_password(refused: bool, no_proxy: pytest.MonkeyPatch) -> None:
    async def work(opened: Connection) -> None:
        with pytest.raises(RequestFailed, match="HTTP 407 Denied" if refused else "Cannot connect") as raised:
            await opened.send("POST", body=b"{}")
        assert raised.value.retry is RetryReason.UNREACHABLE
        assert "s3cret" not in str(raised.value)

    with listener(b"HTTP/1.1 407 Denied\r\nContent-Length: 0\r\n\r\n") as (port, received):
        no_proxy.setenv("https_proxy", f"http://me:s3cret@127.0.0.1:{port if refused else 9}")
        run(work, "https://service.test/", trust_env=True)
    assert bool(received) is refused
    assert all(head.startswith(b"CONNECT service.test:443 ") for head in received)
