"""Questions that wait at the same time, answered together: batches for a model that is fast at many, slow at one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pytest_fairness.errors import FairnessError, RequestFailed
from pytest_fairness.records import Request, Response
from pytest_fairness.targets.threads import DaemonThreads

PAUSE = 0.02
"""Seconds that the first question of a batch waits for others: those asked together arrive within them."""
PATIENCE = 8
"""Full batches in a row after which a larger one is tried again."""


class OutOfMemory(Exception):
    """A batch did not fit into memory."""


@dataclass(eq=False)
class Job:
    """One question in a batch; `wanted` turns false when nobody waits for its answer any more."""

    request: Request
    future: asyncio.Future[Response]
    wanted: bool = True


@dataclass
class BatchSize:
    """How many questions go into one batch: as many as wait, but no more than memory has room for.

    Attributes:
        limit: most that is tried now; `None` until memory has once run out.
    """

    limit: int | None = None
    _full: int = field(default=0, repr=False)

    def take(self, waiting: int) -> int:
        """How many of those that wait go into the next batch."""
        return waiting if self.limit is None else min(waiting, self.limit)

    def failed(self, size: int) -> None:
        """That many did not fit."""
        self.limit, self._full = max(1, size // 2), 0

    def succeeded(self, size: int) -> None:
        """That many fitted; after some full batches, twice as many are tried."""
        if self.limit is None or size < self.limit:
            return
        self._full += 1
        if self._full >= PATIENCE:
            self.limit, self._full = self.limit * 2, 0


Answers = Sequence[Response | FairnessError]
Answerer = Callable[[Sequence[Job]], Answers]
"""Answers a batch, blocking; gives an answer or an error for each job, in order. Raises `OutOfMemory`."""


class Batches:
    """Collects what is asked and has it answered, one batch after the other, each of one kind.

    Args:
        answer: answers a batch; called in a thread.
        threads: where.
        name: the target, for messages.
    """

    def __init__(self, answer: Answerer, threads: DaemonThreads, name: str) -> None:
        self._answer, self._threads, self._name = answer, threads, name
        self._waiting: list[Job] = []
        self._sizes: dict[bool, BatchSize] = {False: BatchSize(), True: BatchSize()}
        self._running: asyncio.Task[None] | None = None
        self._asked: list[Job] = []
        self.sizes: list[int] = []
        """Of every batch that was answered, in order."""

    async def ask(self, request: Request) -> Response:
        """One question, answered in some batch.

        Raises:
            RequestFailed: it could not be answered.
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
        """Answer nothing more: what waits is dropped, and what is being answered is cut short."""
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
            await self._one_batch()

    async def _one_batch(self) -> None:
        kind = _is_likelihood(self._waiting[0])
        size = self._sizes[kind]
        alike = [job for job in self._waiting if _is_likelihood(job) == kind]
        batch = alike[: size.take(len(alike))]
        self._waiting = [job for job in self._waiting if job not in batch]
        self._asked = batch
        try:
            answers: Answers = await self._threads.run(self._answer, batch)
        except OutOfMemory:
            size.failed(len(batch))
            if len(batch) > 1:
                self._waiting = batch + self._waiting
                return
            answers = [RequestFailed(f"{self._name}: memory does not suffice for even one question at a time.")]
        except Exception as error:  # noqa: BLE001 - a fault of one batch must not leave its questions waiting forever
            answers = [RequestFailed(f"{self._name}: {type(error).__name__}: {error}") for _ in batch]
        else:
            size.succeeded(len(batch))
            self.sizes.append(len(batch))
        for job, answer in zip(batch, answers, strict=True):
            if job.future.done():
                continue
            if isinstance(answer, Response):
                job.future.set_result(answer)
            else:
                job.future.set_exception(answer)


def _is_likelihood(job: Job) -> bool:
    return job.request.answer_format == "likelihood"
