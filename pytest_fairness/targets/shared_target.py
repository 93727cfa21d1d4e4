"""One process of a run has a target loaded, and the others ask it over the loopback interface.

A line of JSON each way: a request with a number, its answer with the same number.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from dataclasses import asdict
from itertools import count

from pytest_fairness.closing import Closing
from pytest_fairness.errors import RequestFailed, TargetError
from pytest_fairness.records import Json, Request, Response, Sampling
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.one_line import one_line

LONGEST_LINE = 2**28


class ServedTarget(Closing):
    """A target that other processes ask, opened when the first of them comes.

    Args:
        target: who answers; closed at the end.

    Attributes:
        address: `host:port`, for `Connection`.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._opening: asyncio.Task[None] | None = None
        self._visits: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self.address = ""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="fairness-served", daemon=True)
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        """Let nobody in any more, and close the target."""
        if self._loop is not None and self._over is not None:
            with contextlib.suppress(RuntimeError):  # it is over already
                self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._visited, "127.0.0.1", 0, limit=LONGEST_LINE)
        self.address = "{}:{}".format(*server.sockets[0].getsockname())
        self._ready.set()
        await self._over.wait()
        server.close()
        for visit in self._visits:
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
            await self._target.close()

    async def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs has one
        self._visits.add(task)
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
            pass  # the visitor is gone or speaks something else, or all is over
        finally:
            for answering in asked.values():
                answering.cancel()
            self._visits.discard(task)
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
            response = await self._target.ask(Request(**{**plain, "sampling": Sampling(**plain["sampling"])}))
        except TargetError as error:
            answer: dict[str, Json] = {"error": str(error)}
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            known = isinstance(error, RequestFailed)
            answer = {"failed": str(error) if known else f"{type(error).__name__}: {one_line(error)}"}
        else:
            answer = {"response": asdict(response)}
        writer.write(_line({"number": number, **answer}))
        with contextlib.suppress(OSError):
            await writer.drain()


class Connection:
    """To a target that another process has loaded.

    Args:
        name: the target, for messages.
        address: `ServedTarget.address`.
    """

    def __init__(self, name: str, address: str) -> None:
        self._name, self._address = name, address
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[Response]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        """Connect, and wait until the target is open.

        Raises:
            TargetError: it cannot be opened, or the process is gone.
        """
        host, _, port = self._address.rpartition(":")
        try:
            reader, self._writer = await asyncio.open_connection(host, int(port), limit=LONGEST_LINE)
            told = json.loads(await reader.readline())
        except (OSError, ValueError) as error:
            await self.close()
            raise self._gone() from error
        if "error" in told:
            await self.close()
            raise TargetError(str(told["error"]))
        self._reading = asyncio.create_task(self._read(reader))

    async def ask(self, request: Request) -> Response:
        """Ask; see `Target`."""
        if self._writer is None or self._reading is None:
            raise RuntimeError("a target is opened before it is asked")
        if self._reading.done():
            raise self._gone()
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
        """Hang up."""
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
                told = json.loads(line)
                future = self._waiting.get(told["number"])
                if future is not None and not future.done():
                    _settle(future, told)
        except (OSError, ValueError):
            pass
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(self._gone())

    def _gone(self) -> TargetError:
        return TargetError(f"{self._name}: the process that serves the model is gone (xdist's controller).")


def _settle(future: asyncio.Future[Response], told: Json) -> None:
    if "response" in told:
        future.set_result(Response(**told["response"]))
    else:
        error = TargetError(told["error"]) if "error" in told else RequestFailed(told["failed"])
        future.set_exception(error)


def _line(message: Json) -> bytes:
    # ASCII: lone surrogates survive, and no line end is inside.
    return json.dumps(message).encode() + b"\n"
