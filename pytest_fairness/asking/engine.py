"""Engine: answers from the store or from one target, which it asks in the background."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import socket
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple

from pytest_fairness.asking.claims import ClaimResult, Freshness, RunId, StopReason
from pytest_fairness.asking.limits import DEFAULT_TIMING, Attempts, GiveUpTimer, Timing, over_budget, with_cost
from pytest_fairness.asking.store import BatchTable, Store, response_key
from pytest_fairness.asking.tracker import FAILURES, RequestTracker
from pytest_fairness.errors import (
    AnswersMissing,
    FairnessError,
    RequestFailed,
    RetryReason,
    StoreError,
    TargetError,
    counted,
    one_line,
)
from pytest_fairness.options import MAX_TRIALS, RunSettings
from pytest_fairness.records import TOO_LONG, Json, Request, Response
from pytest_fairness.resources import Recent, rare_collections
from pytest_fairness.targets.base import DaemonThreads, Target, is_cancelled
from pytest_fairness.targets.secrets import environment_redactor

BATCH = 4_000
"""Number of requests that are planned together. Requests with a recorded answer are removed from memory before the next
requests are planned."""
KEPT_KEYS = 20_000
"""Maximum number of request keys that are kept in memory, because they are needed again: when requests are planned, and
by each item that uses the answers."""
DESCRIPTORS = 8
"""Minimum number of free file descriptors to start a run: 3 for the event loop, 3 for a connection to the store, 2 for
requests."""


class Engine:
    """Background thread that sends requests to one target and records every answer as soon as it arrives.

    The thread starts with the first request that has no recorded answer; without such a request, the target is not
    opened. The engine opens and closes the target. Answers of other runs that are older than `oldest` (seconds since
    the epoch) are not reused. All methods may be called from any thread.
    """

    def __init__(
        self,
        store: Store,
        target: Target,
        settings: RunSettings,
        *,
        oldest: float,
        owner: str,
        run: RunId | None = None,
        timing: Timing = DEFAULT_TIMING,
    ) -> None:
        run = run or RunId.new()
        self._store, self._target, self._replay = store, target, settings.replay
        self._key_of = Recent(partial(response_key, target.identity), KEPT_KEYS)
        self._batches = BatchTable(store)
        self._fresh, self._tracker, self._timing = Freshness(run.name, oldest), RequestTracker(), timing
        owner = f"{owner}/{uuid.uuid4().hex[:8]}"
        self._sender = Sender(store, target, self._tracker, settings, self._fresh, owner, run, timing)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def plan(self, requests: Iterable[Request]) -> None:
        """Queue the requests without a recorded answer, in the given order, and return without waiting for answers.

        Equal requests are sent once. A request without a recorded answer fails with the setting `replay`, or if a batch
        will answer it.
        """
        rest = iter(requests)
        while batch := {self._key_of(request): request for request in islice(rest, BATCH)}:
            self._plan(batch)

    def answers(self, requests: Sequence[Request]) -> list[Response | FairnessError]:
        """Wait until these requests are answered or failed; return, in their order, the response or error of each.

        Requests that are not planned yet are planned first. Python's signal handlers run during the wait; if a handler
        raises an exception, this method raises it, and the engine continues.
        """
        keys = list(map(self._key_of, requests))
        # Read the store before waiting, because usually all answers are recorded already.
        recorded = self._store.get(keys, self._fresh)
        self._plan(dict(zip(keys, requests, strict=True)), recorded)
        failed = self._tracker.wait(keys)
        late = {key for key in keys if key not in recorded and key not in failed}
        settled: dict[str, Response | FairnessError] = {**recorded, **failed}
        settled |= self._store.get(late, self._fresh) if late else {}
        gone = AnswersMissing("an answer was removed from the store during the run; run again")
        return [settled.get(key, gone) for key in keys]

    def newly_planned(self) -> dict[str, bool]:
        """Return the requests planned since the last call: for each key, whether an answer was already recorded."""
        return self._tracker.newly_planned()

    def progress(self) -> dict[str, float]:
        """Return the request counts; a request that is sent several times counts once, except in `retried`.

        Returns:
            planned: all requests that were planned so far.
            settled: requests that have a recorded answer or failed, here or in another process.
            reused: requests that already had a recorded answer when they were planned.
            sent: requests sent by this process.
            retried: attempts to send a request again.
            in_flight: sent requests that wait for their response.
            answered: sent requests that were answered.
            failed: sent requests that failed.
            prompt_tokens, completion_tokens: tokens of the answers that this process received, as far as the target
                reports them.
            uncounted: answers whose cost is unknown, because the target has a price but reports no tokens for them.
            asked_again: answers that no other run may reuse; every other run sends these requests again.
            cost: cost of the tokens; only present if the target has a price.
        """
        return self._sender.counts()

    def stop(self, grace: float | None = None) -> None:
        """Stop sending, wait `grace` seconds for the requests in flight, and close the target; later requests fail."""
        grace = self._timing.stop_grace if grace is None else grace
        self._tracker.close(AnswersMissing("not sent: the run was stopped; run again to continue"), unsent_only=True)
        self._sender.stop(grace)
        with self._starting:
            thread = self._thread
        if thread is not None:
            # Closing a target may take longer; if it hangs, the daemon thread does not keep the process alive.
            thread.join(grace + self._timing.stop_grace)

    def _plan(self, requests: dict[str, Request], recorded: Collection[str] | None = None) -> None:
        new = self._tracker.unplanned(requests)
        if not new:
            return
        if recorded is None:
            recorded = self._store.recorded(new, self._fresh)
        # The store is read before the requests are planned: if it fails, nobody waits for requests that are never sent.
        missing = [] if self._replay else [key for key in new if key not in recorded]
        batched = self._batches.pending(missing) if missing else {}
        left = self._tracker.add(new, recorded)
        if self._replay:
            self._tracker.settle_elsewhere([], {key: _not_recorded(new[key]) for key in new if key not in recorded})
            return
        if batched:
            error = AnswersMissing(
                f"not answered yet: a batch holds {counted(len(batched), 'request')} to {self._target.name}. Run again "
                "later with --fairness-batch=collect, or run with --fairness-batch=wait to wait for the answers"
            )
            self._tracker.settle_elsewhere([], dict.fromkeys(batched, error))
            left = bool(self._tracker.next_unsent(1))
        if left:
            with self._starting:
                if self._thread is None:
                    thread = threading.Thread(target=self._run, name="fairness-engine", daemon=True)
                    try:
                        thread.start()
                    except RuntimeError as error:
                        self._tracker.close(self._start_error(error))
                    else:
                        self._thread = thread
            self._sender.wake()

    def _run(self) -> None:
        """Run the sender; if the event loop cannot start, settle all requests as failed."""
        try:
            # Without enough free descriptors, an event loop would print a traceback.
            with contextlib.ExitStack() as opened:
                for _ in range(DESCRIPTORS):
                    opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))
            # An event loop opens such a socket. This test avoids a half-made event loop if sockets are blocked.
            socket.socket(getattr(socket, "AF_UNIX", socket.AF_INET)).close()
            runner = asyncio.Runner()
            runner.get_loop()
        except Exception as error:  # noqa: BLE001 - raised by the threads that wait for answers
            self._tracker.close(self._start_error(error))
            return
        with runner, rare_collections():
            runner.run(self._sender.run())

    def _start_error(self, error: Exception) -> FairnessError:
        reason = one_line(getattr(error, "strerror", None) or error).rstrip(".")
        cure = "Close other programs, or raise the limits of this user (`ulimit -n`, `ulimit -u`), and run again"
        if type(error).__module__ == "pytest_socket":
            cure = "pytest-socket blocks sockets. Run audits with --force-enable-socket"
        return FairnessError(f"{self._target.name} cannot be asked: {reason}. {cure}.")


def _not_recorded(request: Request) -> AnswersMissing:
    prompt, trial = one_line(request.prompt, 60), request.trial % MAX_TRIALS
    return AnswersMissing(
        f"not recorded: {prompt!r}, trial {trial}; run without --fairness-replay. If --fairness-shard divided "
        "the requests, merge the stores of all shards"
    )


# Sender: claims planned requests, sends them to the target and records the results in the store.
#
# The sender runs in the event loop of the engine's thread. It alternates between one synchronisation with the store, in
# a thread of its own, and a wait for the next event: a result, a new request, a due retry, or a deadline. One
# transaction records the results that have arrived, and claims further requests. So no request is sent before the
# answers received so far are recorded, and answers that arrive together need only one write.
#
# Preflight: a run's first request to a server is sent alone, so that a wrong key or model name causes one error. If it
# is rejected, another prompt is sent alone, because a server may reject the content of the first one.

GATHERED_SHARE = 1 / 16
"""If the number of results to record exceeds this share of the requests in flight, the results are recorded at
once, without waiting for further results."""
SENT_TOGETHER = 8
"""Number of requests that are prepared one after another; then they are written to their connections. If all requests
were prepared first, the first one would be written only when the last one is ready."""
_OVERLOADS = (RetryReason.OVERLOADED, RetryReason.TIMEOUT, RetryReason.UNREACHABLE)
"""Reasons of failures after which the target gets fewer requests at a time."""


class InFlight(NamedTuple):
    """Request in flight, and the time at which it was sent (monotonic seconds)."""

    task: asyncio.Task[None]
    sent_at: float


class AttemptResult(NamedTuple):
    """Result of one attempt to send a request.

    Attributes:
        sent_at: time at which the request was sent (seconds since the epoch).
        retry_at: time of the next attempt (monotonic seconds), or `None` if there is no next attempt.
    """

    key: str
    request: Request
    outcome: Response | FairnessError
    sent_at: float
    retry_at: float | None = None


class Sender:
    """Sender of the requests in a tracker, within the limits of the run and of the target, which it opens."""

    def __init__(
        self,
        store: Store,
        target: Target,
        tracker: RequestTracker,
        settings: RunSettings,
        fresh: Freshness,
        owner: str,
        run: RunId,
        timing: Timing,
    ) -> None:
        self._store, self._target, self._tracker, self._settings = store, target, tracker, settings
        self._fresh, self._owner, self._run, self._timing = fresh, owner, run, timing
        # Maximum number of requests in flight, of all processes together.
        self._capacity = min(settings.concurrency, target.concurrency or settings.concurrency)
        self._timer = GiveUpTimer(target.name, settings.give_up, timing.give_up_unreachable)
        self._caller = TargetCaller(target, settings, self._timer)
        self._threads = DaemonThreads("fairness-store")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wakeup = asyncio.Event()
        self._opening: asyncio.Task[None] | None = None
        self._in_flight: dict[str, InFlight] = {}
        self._results: list[AttemptResult] = []
        self._attempts: defaultdict[str, Attempts] = defaultdict(lambda: Attempts(timing))
        self._gathering: asyncio.TimerHandle | None = None
        self._stop_at = math.inf
        self._position = store.position()
        self._backing_off: dict[str, AttemptResult] = {}
        """Requests that wait for their next attempt, each with the result of the last one."""
        self._last_claim = self._last_renewal = 0.0
        self._resume_at = 0.0
        """Time at which the target's rate limit allows the next request (monotonic seconds)."""
        self._target_error: str | None = None
        """Error that another process of the run stored because the target can answer no request."""
        self._preflight: str | None = None
        """Key of the request that this process now sends alone."""
        self._rejected = False
        """Rejection of the run's first request, after which a rejection of this one ends sending."""

    # Called from any thread

    def counts(self) -> dict[str, float]:
        counts = self._tracker.counts()
        asked_again = counts["answered"] if self._settings.fresh or not self._target.reusable else 0
        return {**with_cost(counts, self._settings.price_of(self._target.name)), "asked_again": asked_again}

    def wake(self) -> None:
        self._call_soon(self._wakeup.set)

    def stop(self, grace: float) -> None:
        """Send nothing more, and wait up to `grace` seconds for the requests in flight; this method returns at once."""
        self._stop_at = min(self._stop_at, time.monotonic() + grace)
        self._call_soon(self._notice_stop)

    def _call_soon(self, function: Callable[[], object]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended and is closed
                self._loop.call_soon_threadsafe(function)

    # Called on the event loop

    async def run(self) -> None:
        """Send requests and record answers until stopped or nothing more can be sent; at the end, all are settled."""
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
        """Open the target, which may include the download of a model, unless the run is stopped meanwhile."""
        self._opening = asyncio.create_task(self._target.open())
        if self._stopping:
            self._opening.cancel()
        try:
            await self._opening
        except asyncio.CancelledError:
            raise AnswersMissing("not sent: the run was stopped before the target was open; run again") from None
        self._timer.restart()

    async def _step(self) -> None:
        woken = self._wakeup.is_set()
        self._wakeup.clear()
        results, self._results = self._results, []
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        fatal = next((result.outcome for result in results if isinstance(result.outcome, TargetError)), None)
        free = 0 if fatal or self._stopping else self._capacity - len(self._in_flight)
        try:
            claimed = await self._threads.run(self._record_and_claim, results, free, woken)
        except StoreError:
            self._results = results + self._results  # `_finish` tries once more
            raise
        if fatal:
            raise fatal
        if self._target_error:
            raise TargetError(self._target_error)
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
        """Wait until a result or a new request arrives, a retry is due, or a deadline has passed."""
        if self._done:
            return
        now = time.monotonic()
        if now >= self._stop_at:
            raise AnswersMissing("the run was stopped before the answer arrived; run again to continue")
        until = self._stop_at
        unsettled = self._tracker.has_unsettled
        if unsettled:
            resume_at = self._resume_at
            give_up_at = self._timer.deadline([request.sent_at for request in self._in_flight.values()], resume_at)
            look_at = now + (self._timing.poll if self._tracker.next_unsent(1) else self._timing.claim_renewal)
            until = min(until, give_up_at, look_at)
            # A retry waits for the target's rate limit. It also waits at least `poll`, because other processes may use
            # all slots, and this loop would then run without a pause.
            retry_at = min((waiting.retry_at or 0.0 for waiting in self._backing_off.values()), default=math.inf)
            until = min(until, max(retry_at, resume_at, now + self._timing.poll))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if until == math.inf else until - now):
                await self._wakeup.wait()
        if not unsettled:
            self._timer.restart()  # the target had nothing to answer

    async def _send(self, key: str, request: Request) -> None:
        """Send one request, and keep the result until the next synchronisation with the store."""
        sent_at = self._store.database.now()
        outcome, retry_at = await self._caller.send(request), None
        if key == self._preflight and self._rejected and self._is_rejection(request, outcome):
            said, check = str(outcome).rstrip("."), getattr(outcome, "check", "")
            outcome = TargetError(
                f"{said}. The first requests were rejected, so no more were sent. Check {check}; run again."
            )
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

    def _is_rejection(self, request: Request, outcome: Response | FairnessError) -> bool:
        """Return whether the target rejected a request for a reason that may concern all other requests too.

        The result is `False` if the run reuses an answer of the target, which shows that the target accepted an earlier
        request. It is also `False` for embeddings, because a single text may be too long.
        """
        rejected = isinstance(outcome, RequestFailed) and outcome.check is not None
        return rejected and request.answer_format != "embedding" and not self._tracker.counts()["reused"]

    async def _finish(self) -> None:
        tasks = [request.task for request in self._in_flight.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1)
        with contextlib.suppress(StoreError):  # the error that ended the loop has been reported
            await self._threads.run(self._record_and_claim, self._results, 0, False)
            await self._threads.run(self._store.claims.release_all, self._owner)
        self._tracker.close(AnswersMissing("not sent: the run has ended; run again to continue"))
        with contextlib.suppress(StoreError):
            await self._threads.run(self._put_counts)
        await self._target.close()
        self._threads.close()

    # Called in a thread, one at a time

    def _record_and_claim(self, results: list[AttemptResult], free: int, woken: bool) -> dict[str, Request]:
        """Record results, claim up to `free` requests, and return these by key; the sender must send them at once.

        `woken` says whether new requests may have been planned since the last call.
        """
        store, tracker, now, target = self._store, self._tracker, time.monotonic(), self._target.identity
        changed = store.database.has_changed()
        if changed:
            changes = store.changes(self._position, target, self._fresh)
            self._position = changes.position
            failed = {key: RequestFailed(message) for key, message in changes.failed.items()}
            if tracker.settle_elsewhere(changes.answered, failed):
                self._timer.record_answer()
            self._target_error = store.runs.target_error(self._run, target)
            free = 0 if self._target_error else free
        due = [key for key, waiting in self._backing_off.items() if (waiting.retry_at or 0.0) <= now]
        renewing = now - self._last_renewal > self._timing.claim_renewal
        late = now - self._last_claim > self._timing.claim_retry or (self._last_claim < self._resume_at <= now)
        claiming = free > 0 and (woken or changed or late or due)
        # More keys than can be sent, because other processes may have claimed the first keys.
        candidates = tracker.next_unsent(free + 2 * self._capacity) if claiming else []
        first = next((result for result in results if result.key == self._preflight), None)
        if first is not None and self._is_rejection(first.request, first.outcome):
            candidates = tracker.next_unsent()[-1:]
        if not (results or candidates or renewing or (claiming and due)):
            return {}
        due = due if claiming else []
        claim = store.database.write(lambda: self._write(results, first, candidates, due, free, renewing=renewing))
        if claim.preflight or (first is not None and self._passes(first)):
            self._preflight = claim.claimed[0] if claim.preflight else None
            self._rejected = claim.rejected
        self._last_claim, self._last_renewal = now, now if renewing else self._last_renewal
        return self._settle(results, claim, now)

    def _passes(self, first: AttemptResult) -> bool:
        """Return whether all requests may be sent after this result of the run's first request."""
        outcome = first.outcome
        rephrased = isinstance(outcome, RequestFailed) and outcome.retry is RetryReason.REPHRASED
        return not (rephrased or isinstance(outcome, TargetError) or self._is_rejection(first.request, outcome))

    def _write(
        self,
        results: list[AttemptResult],
        first: AttemptResult | None,
        candidates: list[str],
        due: list[str],
        free: int,
        *,
        renewing: bool,
    ) -> ClaimResult:
        """Record results, adapt the rate limit, and claim requests; must be called in a transaction."""
        store, target = self._store, self._target.identity
        if first is not None and self._passes(first):
            store.runs.put_preflight(self._run, target, None)
        answers = [(key, request, outcome) for key, request, outcome, *_ in results if isinstance(outcome, Response)]
        if answers:
            store.record_all(answers, target, self._fresh)
        before = limit = store.rate_limits.get(target)
        for key, _, outcome, sent_at, retry_at in results:
            if isinstance(outcome, Response):
                limit = limit.after_answer(self._capacity)
                continue
            if isinstance(outcome, TargetError):
                store.claims.release(key, self._owner)  # another run may have a valid key, for example
                store.runs.put_target_error(self._run, target, str(outcome))
            elif retry_at is not None:
                store.claims.back_off(key, self._owner)
            else:
                store.record_failure(key, target, str(outcome), self._fresh)
            if isinstance(outcome, RequestFailed) and outcome.retry in _OVERLOADS:
                limit = limit.after_overload(
                    self._capacity,
                    sent_at=sent_at,
                    now=store.database.now(),
                    retry_after=outcome.retry_after,
                    timing=self._timing,
                )
        if limit != before:
            store.rate_limits.put(target, limit)
        if renewing:
            store.claims.renew(self._owner, self._timing.claim_lease)
        claim = store.claims.claim(
            candidates,
            self._owner,
            retries=due,
            limit=max(free, 0),
            capacity=self._capacity,
            lease_seconds=self._timing.claim_lease,
            fresh=self._fresh,
            target=target,
            run=self._run,
            max_requests=self._settings.max_requests,
            preflight=getattr(self._target, "preflight", True),
        )
        if results or claim.claimed:
            self._put_counts()
        return claim

    def _settle(self, results: list[AttemptResult], claim: ClaimResult, now: float) -> dict[str, Request]:
        """Settle requests after the transaction, because waiting threads then read the answers from the store.

        Return the claimed requests by key.
        """
        tracker = self._tracker
        self._resume_at = now + claim.resume_at - self._store.database.now()
        self._backing_off |= {result.key: result for result in results if result.retry_at is not None}
        tracker.settle((result.key, result.outcome) for result in results if result.retry_at is None)
        tracker.settle_elsewhere(claim.answered, {})
        if results and not tracker.has_unsettled:
            self._put_counts()  # perhaps for the last time, and other processes show these counts
        for key in claim.answered:
            self._backing_off.pop(key, None)
        if claim.stop_reason is StopReason.OVER_BUDGET:
            self._end_budget()
        elif claim.stop_reason is StopReason.STOPPED:
            tracker.close(AnswersMissing("not sent: the run was stopped; run again to continue"), unsent_only=True)
            self._stop_at = min(self._stop_at, time.monotonic() + self._timing.stop_grace)
        retries = {key: self._backing_off.pop(key).request for key in claim.claimed if key in self._backing_off}
        return retries | tracker.start(claim.claimed, retries=len(retries))

    def _end_budget(self) -> None:
        """Settle the requests that the budget no longer allows as failed, but not those that others have sent."""
        error_of = partial(
            over_budget, self._settings.max_requests or 0, self._target.reusable, shared=self._run.shared
        )
        for key in self._backing_off:
            self._store.claims.release(key, self._owner)
        self._tracker.settle((key, error_of(str(waiting.outcome))) for key, waiting in self._backing_off.items())
        self._backing_off.clear()
        lost = self._store.claims.unclaimed(self._tracker.next_unsent(), self._fresh)
        self._tracker.settle_elsewhere([], dict.fromkeys(lost, error_of()))

    def _put_counts(self) -> None:
        counts: dict[str, Json] = {**self.counts(), FAILURES: self._tracker.failures()}
        self._store.runs.put_request_counts(self._run, self._owner, counts)


# One attempt to send a request, with the time limit, the size limit and the removal of secrets.


class TargetCaller:
    """Caller of a target, which it does not open or close; the timer learns of every answer and failure."""

    def __init__(self, target: Target, settings: RunSettings, timer: GiveUpTimer) -> None:
        self._target, self._settings, self._timer = target, settings, timer
        self._redact = environment_redactor(settings=settings)

    async def send(self, request: Request) -> Response | FairnessError:
        """Return the response (dated, without secrets) or the error of one attempt."""
        name, limit = self._target.name, self._settings.timeout
        try:
            async with asyncio.timeout(limit) as time_limit:
                response = await self._target.ask(request)
        except FairnessError as error:
            failure = self.without_secrets(error)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError | GeneratorExit) and is_cancelled():
                raise
            if isinstance(error, TimeoutError) and time_limit.expired():
                cure = "If the target is slow, raise the ini fairness_timeout."
                failure = RequestFailed(
                    f"{name}: no answer within {limit:g} seconds. {cure}", retry=RetryReason.TIMEOUT
                )
            else:
                said = one_line(self._redact(str(error)))
                failure = RequestFailed(f"{name}: {type(error).__name__}: {said}")
        else:
            self._timer.record_answer()
            return self.recordable(response)
        self._timer.record_failure(failure)
        return failure

    def without_secrets(self, error: FairnessError) -> FairnessError:
        """Return the error without its cause and traceback, and with secrets removed from its message."""
        error.args = (self._redact(str(error)),)
        error.__cause__, error.__suppress_context__ = None, True
        return error.with_traceback(None)

    def recordable(self, response: Response) -> Response:
        """Return the response with the current date and without secrets; content over the size limit is dropped."""
        redact = self._redact
        said = response.text + (response.tool_calls or "")
        too_long = len(said.encode("utf-8", "surrogatepass")) > self._settings.max_answer_bytes
        return replace(
            response,
            text="" if too_long else redact(response.text),
            tool_calls=None if too_long else response.tool_calls and redact(response.tool_calls),
            finish_reason=TOO_LONG if too_long else response.finish_reason,
            model=response.model and redact(response.model),
            fingerprint=response.fingerprint and redact(response.fingerprint),
            created=time.time(),
        )
