"""Targets that one process of a run loads, and that its other processes use over the loopback interface by HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING

from pytest_fairness.errors import FairnessError, RequestFailed, RetryReason, TargetError, one_line
from pytest_fairness.records import Json, Message, Request, Response, Sampling
from pytest_fairness.resources import Closing
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.web import ServerErrors

if TYPE_CHECKING:
    from aiohttp import web

    from pytest_fairness.targets.http_client import Connection

MAX_BYTES = 2**28
"""Maximum number of bytes of one request or response."""


class TargetServer(Closing):
    """Server through which other processes use a target, which it opens at the first connection, and closes.

    `address` is the server's address, for `SharedTarget`.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._opening: asyncio.Task[None] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="fairness-shared", daemon=True)
        self._thread.start()
        self.address = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    async def _start(self) -> str:
        from aiohttp import web

        application = web.Application(client_max_size=MAX_BYTES)
        application.router.add_post("/open", self._answer)
        application.router.add_post("/ask", self._answer)
        # A request that its process no longer waits for is cancelled.
        self._runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=0.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0]
        return f"http://{host}:{port}"

    async def _stop(self) -> None:
        await self._runner.cleanup()
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
            await self._target.close()

    async def _answer(self, message: web.Request) -> web.Response:
        from aiohttp import web

        self._opening = self._opening or asyncio.create_task(self._target.open())
        try:
            await asyncio.shield(self._opening)
            found = asdict(await self._target.ask(_request_of(await message.json()))) if message.path == "/ask" else {}
        except RequestFailed as error:
            retry = None if error.retry is None else error.retry.name
            failed = {"failed": str(error), "retry": retry, "retry_after": error.retry_after, "check": error.check}
            return web.json_response(failed, status=500)
        except TargetError as error:
            return web.json_response({"error": str(error)}, status=500)
        except Exception as error:  # noqa: BLE001 - sent to the process that asked
            failed = {"failed": f"{type(error).__name__}: {one_line(error)}", "retry": None}
            return web.json_response(failed, status=500)
        return web.json_response(found)


class SharedTarget:
    """Target that another process has loaded; this process's own object for it is never opened."""

    def __init__(self, target: Target, address: str) -> None:
        self._target, self._address = target, address
        self.name, self.identity = target.name, target.identity
        self.reusable, self.concurrency = target.reusable, target.concurrency
        self.likelihoods: bool = getattr(target, "likelihoods", False)
        self.preflight: bool = getattr(target, "preflight", True)
        self._connection: Connection | None = None

    def check(self) -> None:
        self._target.check()

    async def open(self) -> None:
        """Connect to the other process, and wait until it has opened the target."""
        from pytest_fairness.targets.http_client import Connection

        self._connection = Connection(
            self._address,
            ServerErrors(self.name, self._address, "--fairness-target", str),
            headers={},
            timeout=None,
            max_bytes=MAX_BYTES,
            trust_environment=False,
        )
        try:
            await self._call("/open")
        except TargetError:
            await self.close()
            raise

    async def ask(self, request: Request) -> Response:
        return Response(**await self._call("/ask", asdict(request)))

    async def close(self) -> None:
        """Close the connection to the other process, which keeps the target open."""
        if self._connection is not None:
            await self._connection.close()

    async def _call(self, path: str, body: Json = None) -> Json:
        if self._connection is None:
            raise RuntimeError("the target is not open: call `open` before `ask`")
        try:
            reply = await self._connection.send("POST", path, body)
            answer = json.loads(reply.body)
        except (FairnessError, ValueError) as error:
            raise TargetError(
                f"{self.name}: the process that serves the model (pytest-xdist's controller) has ended. Run again."
            ) from error
        if "error" in answer:
            raise TargetError(answer["error"])
        if "failed" in answer:
            retry = answer["retry"] and RetryReason[answer["retry"]]
            raise RequestFailed(
                answer["failed"], retry=retry, retry_after=answer.get("retry_after"), check=answer.get("check")
            )
        return answer


def _request_of(plain: Json) -> Request:
    history = tuple(Message(*message) for message in plain["history"])
    return Request(**{**plain, "sampling": Sampling(**plain["sampling"]), "history": history})
