"""Threads that run blocking calls for an event loop, and that do not delay the end of the process."""

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
    """Pool of daemon threads that grows with the calls in progress and reuses idle threads.

    When a process ends, it waits for the threads of a `ThreadPoolExecutor`, but not for daemon threads. So a call that
    never returns cannot block the end of the process.

    Args:
        name: name of the threads in stack dumps.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in a thread and return its result; the result is dropped if the awaiting task was cancelled.

        Raises:
            Exception: the exception that the function raised.
            Escaped: the function raised `StopIteration`, which a future cannot hold, or an exception outside of the
                class `Exception`, such as `SystemExit`.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            value: Any = None
            error: BaseException | None = None
            try:
                value = function(*args, **kwargs)
            except BaseException as exception:  # noqa: BLE001 - an exit must end neither this thread nor the loop
                is_plain = isinstance(exception, Exception) and not isinstance(exception, StopIteration)
                error = exception if is_plain else Escaped(exception)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_settle, future, value, error)

        self._work.put(work)
        if not self._idle.acquire(blocking=False):
            self._started += 1
            threading.Thread(target=self._serve, name=f"{self._name}-{self._started}", daemon=True).start()
        return await future

    def close(self) -> None:
        """End the idle threads now, and the busy threads after their calls."""
        for _ in range(self._started):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            del work  # frees its arguments before the next call
            self._idle.release()


class Escaped(Exception):
    """Wrapper of `StopIteration`, or of an exception outside of the class `Exception`, such as `SystemExit`."""

    def __init__(self, exception: BaseException) -> None:
        super().__init__(str(exception))
        self.exception = exception


def is_cancelled() -> bool:
    """Return whether the current task is being cancelled or closed, rather than that its own code raised the exception.

    A target's code may raise `asyncio.CancelledError` or `GeneratorExit` as well.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:  # the loop has ended
        return True
    return task is None or task.cancelling() > 0


def _settle(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
