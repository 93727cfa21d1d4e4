"""Sender: claims planned requests, sends them to the target and records the results in the store.

The sender runs in the event loop of the engine's thread. It alternates between one synchronisation with the
store (`store_sync.py`) and a wait for the next event: a result, a new request, a due retry, or a deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from pytest_fairness.asking.give_up import GiveUpTimer
from pytest_fairness.asking.preflight import Preflight
from pytest_fairness.asking.request_tracker import RequestTracker
from pytest_fairness.asking.retries import Attempts
from pytest_fairness.asking.store_sync import AttemptResult, StoreSync
from pytest_fairness.asking.target_caller import TargetCaller
from pytest_fairness.asking.timing import Timing
from pytest_fairness.errors import AnswersMissing, FairnessError, RequestFailed, StoreError, TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Request
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.threads import DaemonThreads

GATHERED_SHARE = 1 / 16
"""If the number of results to record exceeds this share of the requests in flight, the results are recorded at
once, without waiting for further results."""

SENT_TOGETHER = 8
"""Number of requests that are prepared one after another; then they are written to their connections. If all requests
were prepared first, the first one would be written only when the last one is ready."""


class InFlight(NamedTuple):
    """Request in flight: its asyncio task, and the time at which it was sent (monotonic seconds)."""

    task: asyncio.Task[None]
    sent_at: float


class Sender:
    """Sender of the requests in a tracker, within the limits of the run and of the target.

    Args:
        target: the system under test; opened and closed by the sender.
        tracker: the requests and their states.
        settings: settings of the run; `timeout` and `max_answer_bytes` are used.
        sync: synchronisation of the requests with the store.
        timer: timer that ends when the run gives up on the target.
        preflight: state of the preflight in this process.
        timing: pauses and time limits.
    """

    def __init__(
        self,
        target: Target,
        tracker: RequestTracker,
        settings: RunSettings,
        sync: StoreSync,
        timer: GiveUpTimer,
        preflight: Preflight,
        timing: Timing,
    ) -> None:
        self._target, self._tracker, self._sync, self._timer, self._timing = target, tracker, sync, timer, timing
        self._preflight = preflight
        self._caller = TargetCaller(target, settings, timer)
        self._threads = DaemonThreads("fairness-store")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wakeup = asyncio.Event()
        self._opening: asyncio.Task[None] | None = None
        self._in_flight: dict[str, InFlight] = {}
        self._results: list[AttemptResult] = []
        self._attempts: defaultdict[str, Attempts] = defaultdict(lambda: Attempts(timing))
        self._gathering: asyncio.TimerHandle | None = None
        self._stop_at = math.inf

    # Called from any thread

    def wake(self) -> None:
        """Make the sender look for new requests in the tracker."""
        self._call_soon(self._wakeup.set)

    def stop(self, grace: float) -> None:
        """Make the sender stop: send nothing more, and wait up to `grace` seconds for the requests in flight.

        This method returns at once.
        """
        self._stop_at = min(self._stop_at, time.monotonic() + grace)
        self._call_soon(self._notice_stop)

    def _call_soon(self, function: Callable[[], object]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended and is closed
                self._loop.call_soon_threadsafe(function)

    # Called on the event loop

    async def run(self) -> None:
        """Send requests and record answers until the sender is stopped or nothing more can be sent.

        At the end, every request is settled.
        """
        self._loop = asyncio.get_running_loop()
        try:
            await self._open()
            while not self._done:
                await self._step()
                await self._wait()
        except FairnessError as error:
            self._tracker.close(self._caller.without_secrets(error))
        except BaseException as error:
            # This is a bug. The threads that wait for answers must not wait forever.
            reason = f"{type(error).__name__}: {error}"
            message = f"{self._target.name}: the request engine failed ({reason}). Run again; report repeated failures."
            self._tracker.close(FairnessError(message))
            raise
        finally:
            await self._finish()

    def _notice_stop(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        self._wakeup.set()

    async def _open(self) -> None:
        """Open the target, which may include the download of a model.

        Raise an error if the run is stopped before the target is open.
        """
        self._opening = asyncio.create_task(self._target.open())
        if self._stopping:
            self._opening.cancel()
        try:
            await self._opening
        except asyncio.CancelledError:
            raise AnswersMissing("not sent: the run was stopped before the target was open; run again") from None
        self._timer.restart()

    async def _step(self) -> None:
        """Record results and claim requests in the store once, and send the claimed requests."""
        woken = self._wakeup.is_set()
        self._wakeup.clear()
        results, self._results = self._results, []
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        fatal = next((result.outcome for result in results if isinstance(result.outcome, TargetError)), None)
        free = 0 if fatal or self._stopping else self._sync.capacity - len(self._in_flight)
        try:
            claimed = await self._threads.run(self._sync.record_and_claim, results, free, woken)
        except StoreError:
            self._results = results + self._results  # `_finish` tries once more
            raise
        if fatal:
            raise fatal
        if self._sync.target_error:
            raise TargetError(self._sync.target_error)
        if self._sync.stopped:
            self._stop_at = min(self._stop_at, time.monotonic() + self._timing.stop_grace)
        for index, (key, request) in enumerate(claimed.items(), 1):
            self._in_flight[key] = InFlight(asyncio.create_task(self._send(key, request)), time.monotonic())
            if index % SENT_TOGETHER == 0:
                await asyncio.sleep(0)

    @property
    def _stopping(self) -> bool:
        return self._stop_at < math.inf

    @property
    def _done(self) -> bool:
        return self._stopping and not self._in_flight and not self._results

    async def _wait(self) -> None:
        """Wait until a result or a new request arrives, a retry is due, or a deadline has passed.

        Raises:
            AnswersMissing: the grace time after a stop has passed, or the run gives up on the target.
        """
        if self._done:
            return
        now = time.monotonic()
        if now >= self._stop_at:
            raise AnswersMissing("the run was stopped before the answer arrived; run again to continue")
        until = self._stop_at
        unsettled = self._tracker.has_unsettled
        if unsettled:
            resume_at = self._sync.resume_at
            give_up_at = self._timer.deadline([request.sent_at for request in self._in_flight.values()], resume_at)
            look_at = now + (self._timing.poll if self._tracker.next_unsent(1) else self._timing.claim_renewal)
            until = min(until, give_up_at, look_at)
            # A retry waits for the target's rate limit. It also waits at least `poll`, because other processes may use
            # all slots, and this loop would then run without a pause.
            until = min(until, max(self._sync.next_retry, resume_at, now + self._timing.poll))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if until == math.inf else until - now):
                await self._wakeup.wait()
        if not unsettled:
            self._timer.restart()  # the target had nothing to answer

    async def _send(self, key: str, request: Request) -> None:
        """Send one request, and keep the result until the next synchronisation with the store."""
        sent_at = self._sync.now()
        outcome, retry_at = self._preflight.final_outcome(key, request, await self._caller.send(request)), None
        if isinstance(outcome, RequestFailed):
            attempts = self._attempts[key]
            pause = attempts.pause_after(outcome)
            if pause is not None:
                retry_at = time.monotonic() + pause
            elif attempts.count > 1:
                message = f"{str(outcome).removesuffix('.')}. The request was sent {attempts.count} times."
                outcome = RequestFailed(
                    message, retry=outcome.retry, retry_after=outcome.retry_after, check=outcome.check
                )
        if retry_at is None:
            self._attempts.pop(key, None)
        # Removed before the task is done, so that the next synchronisation counts the slot as free.
        del self._in_flight[key]
        self._results.append(AttemptResult(key, request, outcome, sent_at, retry_at))
        if len(self._results) > len(self._in_flight) * GATHERED_SHARE:
            self._wakeup.set()
        elif self._gathering is None:
            loop = asyncio.get_running_loop()
            self._gathering = loop.call_later(self._timing.gather, self._wakeup.set)

    async def _finish(self) -> None:
        """Record the results that have arrived, release all claims and close the target."""
        tasks = [request.task for request in self._in_flight.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1)
        with contextlib.suppress(StoreError):  # the error that ended the loop has been reported
            await self._threads.run(self._sync.record_and_claim, self._results, 0, False)
            await self._threads.run(self._sync.release_all)
        self._tracker.close(AnswersMissing("not sent: the run has ended; run again to continue"))
        with contextlib.suppress(StoreError):
            await self._threads.run(self._sync.put_counts)
        await self._target.close()
        self._threads.close()
