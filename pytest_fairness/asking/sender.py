"""Asks the target what the ledger holds, and records what comes back: the work of the engine's event loop.

Everything turns on one visit to the store at a time. A visit writes down the answers that arrived since the last one
and claims as many new questions, all in one transaction: a slot is free again only when its answer is recorded, and
answers that arrive together are recorded together. Whatever arrives during a visit is the matter of the next.

A request whose try failed in a way that passes keeps its claim and rests, outside of any slot, until its turn comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from pytest_fairness.asking.claims import Claim, Halt, RunId
from pytest_fairness.asking.costs import with_cost
from pytest_fairness.asking.freshness import Freshness
from pytest_fairness.asking.give_up import Patience
from pytest_fairness.asking.missing_answers import over_budget
from pytest_fairness.asking.request_counts import FAILURES
from pytest_fairness.asking.request_tracker import Ledger
from pytest_fairness.asking.retries import Tries
from pytest_fairness.asking.secrets import Secrets
from pytest_fairness.asking.store import Store
from pytest_fairness.errors import AnswersMissing, FairnessError, Fault, RequestFailed, StoreError, TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import TOO_LONG, Json, Request, Response
from pytest_fairness.targets.base import Target
from pytest_fairness.targets.one_line import one_line
from pytest_fairness.targets.threads import DaemonThreads

LEASE = 30.0
"""Seconds that a claim holds. (A process of this machine that ends loses its claims at once.)"""
RENEWAL = 5.0
"""Seconds between renewals of the claims."""
POLL = 0.05
"""Seconds between looks at what other processes wrote, while questions are open."""
RECLAIM = 1.0
"""Seconds after which claiming is tried again though nothing was written: a claim lapses silently."""
GRACE = 5.0
"""Seconds that requests in flight have to arrive when a run is stopped: they are paid for."""


class Arrival(NamedTuple):
    """What became of one try; `again_at` is when the next one is due, if any, on the monotonic clock."""

    key: str
    request: Request
    outcome: Response | FairnessError
    sent_at: float
    again_at: float | None = None


class Resting(NamedTuple):
    """A request that waits for its next try; `error` is what became of the last one."""

    request: Request
    due: float
    error: FairnessError


class Flight(NamedTuple):
    """A request in flight, since when on the monotonic clock."""

    task: asyncio.Task[None]
    since: float


class Sender:
    """Sends the ledger's open questions, in their order, until it is stopped.

    Args:
        store: where answers are recorded.
        target: who is asked.
        ledger: what is to be asked.
        settings: the run's; `concurrency`, `timeout`, `give_up` and `max_requests` matter.
        fresh: which recorded answers count.
        owner: whose the claims are; no other sender has the same.
        run: the run that this is a part of.
    """

    def __init__(
        self,
        store: Store,
        target: Target,
        ledger: Ledger,
        settings: RunSettings,
        *,
        fresh: Freshness,
        owner: str,
        run: RunId,
    ) -> None:
        self._store, self._target, self._ledger, self._settings = store, target, ledger, settings
        self._fresh, self._owner, self._run_id = fresh, owner, run
        self._capacity = min(settings.concurrency, target.concurrency or settings.concurrency)
        self._since = store.now()
        self._threads = DaemonThreads("fairness-store")
        self._secrets = Secrets()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bell = asyncio.Event()
        self._opening: asyncio.Task[None] | None = None
        self._flying: dict[str, Flight] = {}
        self._arrived: list[Arrival] = []
        self._resting: dict[str, Resting] = {}
        self._tries: defaultdict[str, Tries] = defaultdict(Tries)
        self._stop_at = math.inf
        self._resume_at = self._last_claim = self._last_renewal = 0.0
        self._patience = Patience(target.name, settings.give_up)
        self._refusal: str | None = None

    def counts(self) -> dict[str, float]:
        """See `Engine.progress`."""
        counts = self._ledger.counts()
        own = self._settings.fresh or not self._target.reusable
        asked_again = counts["answered"] if own else 0
        return {**with_cost(counts, self._settings.price_of(self._target.name)), "asked_again": asked_again}

    def _tally(self) -> dict[str, Json]:
        return {**self.counts(), FAILURES: self._ledger.failures()}

    # From any thread

    def wake(self) -> None:
        """Say that there is something new in the ledger."""
        self._have_loop(self._bell.set)

    def stop(self, grace: float) -> None:
        """Send nothing more; what is in flight has `grace` seconds to arrive."""
        self._stop_at = min(self._stop_at, time.monotonic() + grace)
        self._have_loop(self._notice_stop)

    def _have_loop(self, call: Callable[[], object]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it is over, and the loop is closed
                self._loop.call_soon_threadsafe(call)

    # On the loop

    async def run(self) -> None:
        """Ask, record, and settle the ledger, until stopped or until nothing more can be asked."""
        self._loop = asyncio.get_running_loop()
        try:
            await self._open()
            while not self._done:
                await self._turn()
                await self._rest()
        except FairnessError as error:
            self._ledger.close(self._without_secrets(error))
        except BaseException as error:
            # A fault of our own; nobody may wait forever because of it.
            self._ledger.close(FairnessError(f"asking {self._target.name} broke down: {type(error).__name__}: {error}"))
            raise
        finally:
            await self._finish()

    def _notice_stop(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        self._bell.set()

    async def _open(self) -> None:
        """Open the target, which may take long (a model is fetched), unless the run is stopped meanwhile."""
        self._opening = asyncio.create_task(self._target.open())
        if self._stopping:
            self._opening.cancel()
        try:
            await self._opening
        except asyncio.CancelledError:
            raise AnswersMissing("the run was stopped before anything was asked") from None
        self._patience.begin()

    async def _turn(self) -> None:
        rung = self._bell.is_set()
        self._bell.clear()
        arrived, self._arrived = self._arrived, []
        fatal = next((arrival.outcome for arrival in arrived if isinstance(arrival.outcome, TargetError)), None)
        free = 0 if fatal or self._stopping else self._capacity - len(self._flying)
        try:
            claimed = await self._threads.run(self._visit, arrived, free, rung)
        except StoreError:
            self._arrived = arrived + self._arrived  # one more try at the end
            raise
        if fatal:
            raise fatal
        if self._refusal:
            raise TargetError(self._refusal)
        for key, request in claimed.items():
            self._flying[key] = Flight(asyncio.create_task(self._ask(key, request)), time.monotonic())

    @property
    def _stopping(self) -> bool:
        return self._stop_at < math.inf

    @property
    def _done(self) -> bool:
        return self._stopping and not self._flying and not self._arrived

    async def _rest(self) -> None:
        """Wait until there is something to do, or time is up."""
        if self._done:
            return
        now = time.monotonic()
        if now >= self._stop_at:
            raise AnswersMissing("the run was stopped before this answer came")
        until = self._stop_at
        outstanding = self._ledger.outstanding
        if outstanding:
            patient = self._patience.ends([flight.since for flight in self._flying.values()], self._resume_at)
            until = min(until, patient, now + (POLL if self._ledger.next_open(1) else RENEWAL))
            due = min((resting.due for resting in self._resting.values()), default=math.inf)
            # Not before the target's pause is over, and not without end where others have all the slots.
            until = min(until, max(due, self._resume_at, now + POLL))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if until == math.inf else until - now):
                await self._bell.wait()
        if not outstanding:
            self._patience.begin()  # idle time is not the target's fault

    async def _ask(self, key: str, request: Request) -> None:
        sent_at = time.time()
        outcome, again_at = await self._outcome(request), None
        if isinstance(outcome, RequestFailed):
            pause = self._tries[key].pause(outcome)
            again_at = None if pause is None else time.monotonic() + pause
        # Before the bell, and not when the task is done: the next visit fills the slot.
        del self._flying[key]
        self._arrived.append(Arrival(key, request, outcome, sent_at, again_at))
        self._bell.set()

    async def _outcome(self, request: Request) -> Response | FairnessError:
        name, limit = self._target.name, self._settings.timeout
        fault: FairnessError
        try:
            async with asyncio.timeout(limit) as watch:
                response = await self._target.ask(request)
        except FairnessError as error:
            fault = self._without_secrets(error)
        except Exception as error:  # noqa: BLE001 - a fault of one request must not end all of them
            if isinstance(error, TimeoutError) and watch.expired():
                message = f"{name}: no answer within {limit:g} seconds (ini fairness_timeout)."
                fault = RequestFailed(message, fault=Fault.SLOW)
            else:
                fault = RequestFailed(f"{name}: {type(error).__name__}: {one_line(self._secrets.hidden(str(error)))}")
        else:
            self._patience.answered()
            if len(response.text.encode("utf-8", "surrogatepass")) > self._settings.max_answer_bytes:
                response = replace(response, text="", finish_reason=TOO_LONG)
            said: dict[str, Any] = {
                name: self._secrets.hidden(value)
                for name in ("text", "model", "fingerprint")
                if (value := getattr(response, name)) is not None
            }
            return replace(response, **said, created=time.time())
        self._patience.failed(fault)
        return fault

    def _without_secrets(self, error: FairnessError) -> FairnessError:
        error.args = (self._secrets.hidden(str(error)),)
        # Nor in what it was made from and where, which a full trace shows.
        error.__cause__, error.__suppress_context__ = None, True
        return error.with_traceback(None)

    async def _finish(self) -> None:
        """Record what has arrived, give everything else back."""
        flying = [flight.task for flight in self._flying.values()]
        for task in flying:
            task.cancel()
        if flying:
            await asyncio.wait(flying, timeout=1)
        with contextlib.suppress(StoreError):  # if it cannot be written now, it could not be before either
            await self._threads.run(self._visit, self._arrived, 0, False)
            await self._threads.run(self._store.release_all, self._owner)
        self._ledger.close(AnswersMissing("nothing is sent any more"))
        with contextlib.suppress(StoreError):
            await self._threads.run(self._store.put_tally, self._run_id, self._owner, self._tally())
        await self._target.close()
        self._threads.close()

    # In the store's thread

    def _visit(self, arrived: list[Arrival], free: int, rung: bool) -> dict[str, Request]:
        """Record and claim; gives the questions that are now to be asked."""
        store, ledger, now = self._store, self._ledger, time.monotonic()
        changed = store.changed()
        if changed:
            self._read_news()
            self._refusal = store.refusal(self._run_id, self._target.identity)
            free = 0 if self._refusal else free
        due = [key for key, resting in self._resting.items() if resting.due <= now]
        renewing = now - self._last_renewal > RENEWAL
        late = now - self._last_claim > RECLAIM or (self._last_claim < self._resume_at <= now)
        claiming = free > 0 and (rung or changed or late or due)
        # The first open questions may all be in other processes' hands.
        candidates = ledger.next_open(free + 2 * self._capacity) if claiming else []
        if not (arrived or candidates or renewing or (claiming and due)):
            return {}
        with store.transaction():
            for arrival in arrived:
                self._write(arrival)
            self._adapt(arrived)
            if renewing:
                store.renew(self._owner, LEASE)
                self._last_renewal = now
            claim = self._claim(candidates, due if claiming else [], free)
            if arrived or claim.claimed:
                store.put_tally(self._run_id, self._owner, self._tally())
        self._last_claim = now
        self._resume_at = now + claim.resume_at - time.time()
        # Only now, when it is safely written.
        for arrival in arrived:
            self._settle(arrival)
        ledger.settle_elsewhere(claim.answered, {})
        if arrived and not ledger.outstanding:
            store.put_tally(self._run_id, self._owner, self._tally())  # for whoever follows it; nothing may come after
        for key in claim.answered:
            self._resting.pop(key, None)
        if claim.halt is Halt.SPENT:
            self._end_budget()
        elif claim.halt is Halt.STOPPED:
            ledger.close_open(AnswersMissing("the run was stopped before this was asked; run again to go on"))
            self._stop_at = min(self._stop_at, time.monotonic() + GRACE)
        again = {key: self._resting.pop(key).request for key in claim.claimed if key in self._resting}
        ledger.ask_again(len(again))
        return again | ledger.ask(claim.claimed)

    def _claim(self, candidates: list[str], due: list[str], free: int) -> Claim:
        return self._store.claim(
            candidates,
            self._owner,
            resting=due,
            limit=max(free, 0),
            capacity=self._capacity,
            lease_seconds=LEASE,
            fresh=self._fresh,
            target=self._target.identity,
            run=self._run_id,
            most=self._settings.max_requests,
        )

    def _write(self, arrival: Arrival) -> None:
        key, request, outcome = arrival.key, arrival.request, arrival.outcome
        if isinstance(outcome, Response):
            self._store.record(key, request, self._target.identity, outcome, self._fresh)
        elif isinstance(outcome, TargetError):
            self._store.release(key, self._owner)  # another run may be set up better
            self._store.refuse(self._run_id, self._target.identity, str(outcome))
        elif arrival.again_at is not None:
            self._store.rest(key, self._owner)
        else:
            self._store.fail(key, self._target.identity, str(outcome), self._fresh)

    def _adapt(self, arrived: list[Arrival]) -> None:
        """Ask faster after answers, slower after overload."""
        if not arrived:
            return
        identity = self._target.identity
        before = pace = self._store.pace(identity)
        for arrival in arrived:
            outcome = arrival.outcome
            if isinstance(outcome, Response):
                pace = pace.answered(self._capacity)
            elif isinstance(outcome, RequestFailed) and outcome.fault in (Fault.BUSY, Fault.SLOW, Fault.UNREACHABLE):
                pace = pace.overloaded(self._capacity, sent_at=arrival.sent_at, now=time.time(), wait=outcome.wait)
        if pace != before:
            self._store.set_pace(identity, pace)

    def _settle(self, arrival: Arrival) -> None:
        key, outcome = arrival.key, arrival.outcome
        if isinstance(outcome, Response):
            self._ledger.answer(key, outcome)
        elif arrival.again_at is not None:
            self._resting[key] = Resting(arrival.request, arrival.again_at, outcome)
            return
        else:
            if (tries := self._tries[key].count) > 1:
                outcome = RequestFailed(f"{outcome} Asked {tries} times.")
            self._ledger.fail(key, outcome)
        self._tries.pop(key, None)

    def _end_budget(self) -> None:
        """Fail what the run may not send any more; what others are asking still arrives."""
        most = self._settings.max_requests or 0
        for key, resting in self._resting.items():
            self._store.release(key, self._owner)
            self._ledger.fail(key, over_budget(most, self._target.reusable, str(resting.error)))
        self._resting.clear()
        lost = self._store.unclaimed(self._ledger.open_keys(), self._fresh)
        self._ledger.settle_elsewhere([], dict.fromkeys(lost, over_budget(most, self._target.reusable)))

    def _read_news(self) -> None:
        news = self._store.news(self._since, self._target.identity, self._fresh)
        self._since = news.until
        failed = {key: RequestFailed(message) for key, message in news.failed.items()}
        if self._ledger.settle_elsewhere(news.answered, failed):
            self._patience.answered()
