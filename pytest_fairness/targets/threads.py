"""Blocking calls out of an event loop, in threads that never keep the process alive."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class DaemonThreads:
    """A pool that grows with the calls in progress and reuses idle threads.

    Unlike `ThreadPoolExecutor`, whose threads are waited for when the interpreter ends, a call that never returns does
    not hold up the end of the run.

    Args:
        name: of the threads, for whoever looks at a stack dump.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call and await the result; if the caller is cancelled, the call goes on unheard.

        Raises:
            Exception: whatever the function raises; what is not an `Exception` (`SystemExit`, …) comes as `Escaped`.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            value: Any = None
            error: Exception | None = None
            try:
                value = function(*args, **kwargs)
            except Exception as exception:  # noqa: BLE001 - handed over to the caller
                error = exception
            except BaseException as exception:  # noqa: BLE001 - neither this thread nor the loop may end by it
                error = Escaped(exception)
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(_settle, future, value, error)

        self._work.put(work)
        if not self._idle.acquire(blocking=False):
            self._started += 1
            threading.Thread(target=self._serve, name=f"{self._name}-{self._started}", daemon=True).start()
        return await future

    def close(self) -> None:
        """Let the idle threads end; a busy one ends after its call."""
        for _ in range(self._started):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # or its arguments would live until the next call
            self._idle.release()


class Escaped(Exception):
    """Carries an exception that is no `Exception`, such as `SystemExit`, out of a thread."""

    def __init__(self, exception: BaseException) -> None:
        super().__init__(str(exception))
        self.exception = exception


def _settle(future: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
