"""Targets that one process of a run loads, and that the other processes use over the loopback interface.

The processes exchange lines of JSON: each request has a number, and its answer has the same number.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from dataclasses import asdict
from itertools import count

from pytest_fairness.closing import Closing
from pytest_fairness.errors import RequestFailed, RetryReason, TargetError
from pytest_fairness.records import Json, Message, Request, Response, Sampling
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.one_line import one_line

LONGEST_LINE = 2**28
"""Maximum number of bytes of one message."""


class TargetServer(Closing):
    """Server through which other processes use a target; the target is opened when the first process connects.

    Args:
        target: the target; the server's method `close` closes the target, too.

    Attributes:
        address: `host:port`, for `SharedTarget`.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._opening: asyncio.Task[None] | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None
        self.address = ""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="fairness-shared", daemon=True)
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        """Close all connections and the target."""
        if self._loop is not None and self._stopped is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=LONGEST_LINE)
        self.address = "{}:{}".format(*server.sockets[0].getsockname())
        self._ready.set()
        await self._stopped.wait()
        server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
            await self._target.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs has a task
        self._connections.add(task)
        asked: dict[int, asyncio.Task[None]] = {}
        try:
            await self._open(writer)
            while line := await reader.readline():
                message = json.loads(line)
                number = int(message["number"])
                if "request" in message:
                    asked[number] = asyncio.create_task(self._answer(number, message["request"], writer))
                elif number in asked:
                    asked[number].cancel()
                asked = {number: task for number, task in asked.items() if not task.done()}
        except (OSError, ValueError, LookupError, asyncio.CancelledError):
            pass  # the client has ended or sends no valid message, or the server is closed
        finally:
            for answering in asked.values():
                answering.cancel()
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _open(self, writer: asyncio.StreamWriter) -> None:
        if self._opening is None:
            self._opening = asyncio.create_task(self._target.open())
        try:
            await asyncio.shield(self._opening)
        except TargetError as error:
            writer.write(_line({"error": str(error)}))
            raise ConnectionAbortedError from error
        writer.write(_line({"open": True}))

    async def _answer(self, number: int, plain: Json, writer: asyncio.StreamWriter) -> None:
        try:
            response = await self._target.ask(_request_of(plain))
        except TargetError as error:
            answer: dict[str, Json] = {"error": str(error)}
        except RequestFailed as error:
            retry = None if error.retry is None else error.retry.name
            answer = {"failed": str(error), "retry": retry, "retry_after": error.retry_after}
        except Exception as error:  # noqa: BLE001 - sent to the process that asked
            answer = {"failed": f"{type(error).__name__}: {one_line(error)}", "retry": None, "retry_after": None}
        else:
            answer = {"response": asdict(response)}
        writer.write(_line({"number": number, **answer}))
        with contextlib.suppress(OSError):
            await writer.drain()


class SharedTarget:
    """Target that another process has loaded.

    Args:
        target: an object for the same target in this process; this object is never opened.
        address: `TargetServer.address` of the process that has loaded the target.
    """

    def __init__(self, target: Target, address: str) -> None:
        self._target, self._server = target, address
        self.name, self.identity = target.name, target.identity
        self.reusable, self.concurrency = target.reusable, target.concurrency
        self.likelihoods: bool = getattr(target, "likelihoods", False)
        self.preflight: bool = getattr(target, "preflight", True)
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[Response]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter | None = None

    def check(self) -> None:
        """Check the configuration without sending anything; see `Target.check`."""
        self._target.check()

    async def open(self) -> None:
        """Connect to the other process, and wait until it has opened the target; see `Target.open`."""
        host, _, port = self._server.rpartition(":")
        try:
            reader, self._writer = await asyncio.open_connection(host, int(port), limit=LONGEST_LINE)
            message = json.loads(await reader.readline())
        except (OSError, ValueError) as error:
            await self.close()
            raise self._disconnected_error() from error
        if "error" in message:
            await self.close()
            raise TargetError(str(message["error"]))
        self._reading = asyncio.create_task(self._read(reader))

    async def ask(self, request: Request) -> Response:
        """Send one request once and return its response; see `Target.ask`."""
        if self._writer is None or self._reading is None:
            raise RuntimeError("the target is not open: call `open` before `ask`")
        if self._reading.done():
            raise self._disconnected_error()
        number = next(self._numbers)
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._writer.write(_line({"number": number, "request": asdict(request)}))
        try:
            return await future
        except asyncio.CancelledError:
            self._writer.write(_line({"number": number}))
            raise
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Close the connection to the other process, which keeps the target open; see `Target.close`."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                message = json.loads(line)
                future = self._waiting.get(message["number"])
                if future is not None and not future.done():
                    _settle(future, message)
        except (OSError, ValueError):
            pass
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(self._disconnected_error())

    def _disconnected_error(self) -> TargetError:
        return TargetError(
            f"{self.name}: the process that serves the model (pytest-xdist's controller) has ended. Run again."
        )


def _request_of(plain: Json) -> Request:
    history = tuple(Message(*message) for message in plain["history"])
    return Request(**{**plain, "sampling": Sampling(**plain["sampling"]), "history": history})


def _settle(future: asyncio.Future[Response], message: Json) -> None:
    if "response" in message:
        future.set_result(Response(**message["response"]))
    elif "error" in message:
        future.set_exception(TargetError(message["error"]))
    else:
        retry = message["retry"] and RetryReason[message["retry"]]
        future.set_exception(RequestFailed(message["failed"], retry=retry, retry_after=message["retry_after"]))


def _line(message: Json) -> bytes:
    # ASCII, so that lone surrogates survive and no line end is inside.
    return json.dumps(message).encode() + b"\n"
