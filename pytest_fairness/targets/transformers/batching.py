"""Batches of requests: requests that wait at the same time are answered together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pytest_fairness.errors import FairnessError, RequestFailed
from pytest_fairness.records import Request, Response
from pytest_fairness.targets.threads import DaemonThreads

PAUSE = 0.02
"""Seconds that the first request of a batch waits for further requests."""
GROW_AFTER = 8
"""Number of consecutive full batches after which a larger batch is tried again."""


class OutOfMemory(Exception):
    """Error for a batch that does not fit into memory."""


@dataclass(eq=False)
class Job:
    """One request in a batch; `wanted` is false once the caller has stopped waiting for the answer."""

    request: Request
    future: asyncio.Future[Response]
    wanted: bool = True


@dataclass
class BatchSize:
    """Size of the batches: the number of waiting requests, but not more than fit into memory.

    Attributes:
        limit: current maximum size of a batch; `None` until a batch did not fit into memory.
    """

    limit: int | None = None
    _full: int = field(default=0, repr=False)

    def next_size(self, waiting: int) -> int:
        """Return the size of the next batch, given the number of waiting requests."""
        return waiting if self.limit is None else min(waiting, self.limit)

    def failed(self, size: int) -> None:
        """Set the limit to half the size of a batch that did not fit into memory, but at least to 1."""
        self.limit, self._full = max(1, size // 2), 0

    def succeeded(self, size: int) -> None:
        """Record a batch that fitted into memory; double the limit after `GROW_AFTER` consecutive full batches."""
        if self.limit is None or size < self.limit:
            return
        self._full += 1
        if self._full >= GROW_AFTER:
            self.limit, self._full = self.limit * 2, 0


Answers = Sequence[Response | FairnessError]
Answerer = Callable[[Sequence[Job]], Answers]
"""Blocking function that returns an answer or an error for each job in order; it raises `OutOfMemory` if the batch is
too large."""


class Batches:
    """Queue of requests, answered in batches; no batch mixes requests for likelihoods with other requests.

    Args:
        answer: function that answers a batch; called in a thread.
        threads: threads in which batches are answered.
        name: the target's name, for messages.
    """

    def __init__(self, answer: Answerer, threads: DaemonThreads, name: str) -> None:
        self._answer, self._threads, self._name = answer, threads, name
        self._waiting: list[Job] = []
        self._sizes: dict[bool, BatchSize] = {False: BatchSize(), True: BatchSize()}
        self._running: asyncio.Task[None] | None = None
        self._asked: list[Job] = []

    async def ask(self, request: Request) -> Response:
        """Return the answer to a request as soon as its batch is finished.

        Raises:
            RequestFailed: the request failed.
        """
        job = Job(request, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        try:
            return await job.future
        finally:
            job.wanted = False

    async def close(self) -> None:
        """Cancel the waiting requests and the batch in progress."""
        for job in (*self._waiting, *self._asked):
            job.wanted = False
            job.future.cancel()
        self._waiting.clear()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(PAUSE)
            self._waiting = [job for job in self._waiting if job.wanted]
            if not self._waiting:
                return
            await self._answer_batch()

    async def _answer_batch(self) -> None:
        likelihoods = _is_likelihood(self._waiting[0])
        size = self._sizes[likelihoods]
        alike = [job for job in self._waiting if _is_likelihood(job) == likelihoods]
        batch = alike[: size.next_size(len(alike))]
        self._waiting = [job for job in self._waiting if job not in batch]
        self._asked = batch
        try:
            answers: Answers = await self._threads.run(self._answer, batch)
        except OutOfMemory:
            size.failed(len(batch))
            if len(batch) > 1:
                self._waiting = batch + self._waiting
                return
            answers = [
                RequestFailed(
                    f"{self._name}: one request does not fit into memory. Use a shorter prompt, "
                    "a smaller model or another device (ini fairness_device)."
                )
            ]
        except Exception as error:  # noqa: BLE001 - otherwise the requests of the batch would wait forever
            message = f"{self._name}: a batch of requests raised {type(error).__name__}: {error}"
            answers = [RequestFailed(message) for _ in batch]
        else:
            size.succeeded(len(batch))
        for job, answer in zip(batch, answers, strict=True):
            if job.future.done():
                continue
            if isinstance(answer, Response):
                job.future.set_result(answer)
            else:
                job.future.set_exception(answer)


def _is_likelihood(job: Job) -> bool:
    return job.request.answer_format == "likelihood"
