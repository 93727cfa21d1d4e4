"""Asks the target what the ledger holds, and records what comes back: the work of the engine's event loop.

Everything turns on one visit to the store at a time. A visit writes down the answers that arrived since the last one
and claims as many new questions, all in one transaction: a slot is free again only when its answer is recorded, and
answers that arrive together are recorded together. Whatever arrives during a visit is the matter of the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from pytest_fairness.errors import AnswersMissing, FairnessError, RequestFailed, StoreError, TargetError
from pytest_fairness.records import Request, Response
from pytest_fairness.response.ledger import Ledger
from pytest_fairness.response.store import Store
from pytest_fairness.settings import RunSettings
from pytest_fairness.target.base import Target
from pytest_fairness.target.text import one_line
from pytest_fairness.target.threads import DaemonThreads

LEASE = 30.0
"""Seconds that a claim holds. (A process of this machine that ends loses its claims at once.)"""
RENEWAL = 5.0
"""Seconds between renewals of the claims."""
POLL = 0.05
"""Seconds between looks at what other processes wrote, while questions are open."""
RECLAIM = 1.0
"""Seconds after which claiming is tried again though nothing was written: a claim lapses silently."""


class Arrival(NamedTuple):
    """What became of one request in flight."""

    key: str
    request: Request
    outcome: Response | FairnessError


class Sender:
    """Sends the ledger's open questions, in their order, until it is stopped.

    Args:
        store: where answers are recorded.
        target: who is asked.
        ledger: what is to be asked.
        settings: the run's; `concurrency`, `timeout` and `give_up` matter.
        oldest: an answer created before this counts as none.
        owner: whose the claims are; no other sender has the same.
    """

    def __init__(
        self, store: Store, target: Target, ledger: Ledger, settings: RunSettings, *, oldest: float, owner: str
    ) -> None:
        self._store, self._target, self._ledger, self._settings = store, target, ledger, settings
        self._oldest, self._owner = oldest, owner
        self._capacity = min(settings.concurrency, target.concurrency or settings.concurrency)
        self._since = store.now()
        self._threads = DaemonThreads("fairness-store")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bell = asyncio.Event()
        self._opening: asyncio.Task[None] | None = None
        self._flying: dict[str, asyncio.Task[None]] = {}
        self._arrived: list[Arrival] = []
        self._stop_at = math.inf
        self._last_success = self._last_claim = self._last_renewal = 0.0
        self._last_fault = ""

    # From any thread

    def wake(self) -> None:
        """Say that there is something new in the ledger."""
        self._have_loop(self._bell.set)

    def stop(self, grace: float) -> None:
        """Send nothing more; what is in flight has `grace` seconds to arrive."""
        self._stop_at = time.monotonic() + grace
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
            self._ledger.close(error)
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
        self._last_success = time.monotonic()

    async def _turn(self) -> None:
        rung = self._bell.is_set()
        self._bell.clear()
        arrived, self._arrived = self._arrived, []
        fatal = next((arrival.outcome for arrival in arrived if isinstance(arrival.outcome, TargetError)), None)
        free = 0 if fatal else self._capacity - len(self._flying)
        try:
            claimed = await self._threads.run(self._visit, arrived, free, rung)
        except StoreError:
            self._arrived = arrived + self._arrived  # one more try at the end
            raise
        if fatal:
            raise fatal
        for key, request in claimed.items():
            self._flying[key] = asyncio.create_task(self._ask(key, request))

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
            give_up = self._last_success + self._settings.give_up
            if now >= give_up:
                raise AnswersMissing(self._given_up())
            until = min(until, give_up, now + (POLL if self._ledger.next_open(1) else RENEWAL))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if until == math.inf else until - now):
                await self._bell.wait()
        if not outstanding:
            self._last_success = time.monotonic()  # idle time is not the target's fault

    async def _ask(self, key: str, request: Request) -> None:
        outcome = await self._outcome(request)
        # Before the bell, and not when the task is done: the next visit fills the slot.
        del self._flying[key]
        self._arrived.append(Arrival(key, request, outcome))
        self._bell.set()

    async def _outcome(self, request: Request) -> Response | FairnessError:
        name, limit = self._target.name, self._settings.timeout
        try:
            async with asyncio.timeout(limit) as watch:
                response = await self._target.ask(request)
        except FairnessError as error:
            fault = error
        except Exception as error:  # noqa: BLE001 - a fault of one request must not end all of them
            if isinstance(error, TimeoutError) and watch.expired():
                fault = RequestFailed(f"{name}: no answer within {limit:g} seconds (ini fairness_timeout).")
            else:
                fault = RequestFailed(f"{name}: {type(error).__name__}: {one_line(error)}")
        else:
            self._last_success = time.monotonic()
            # A clock that is set back during the run must not make an answer too old at once.
            return replace(response, created=max(time.time(), self._oldest))
        self._last_fault = str(fault)
        return fault

    async def _finish(self) -> None:
        """Record what has arrived, give everything else back."""
        flying = list(self._flying.values())
        for task in flying:
            task.cancel()
        if flying:
            await asyncio.wait(flying, timeout=1)
        with contextlib.suppress(StoreError):  # if it cannot be written now, it could not be before either
            await self._threads.run(self._visit, self._arrived, 0, False)
            await self._threads.run(self._store.release_all, self._owner)
        self._ledger.close(AnswersMissing("nothing is sent any more"))
        await self._target.close()
        self._threads.close()

    def _given_up(self) -> str:
        last = f"Last fault: {self._last_fault}" if self._last_fault else "Is it up, and its address right?"
        return (
            f"given up: {self._target.name} gave no answer for {self._settings.give_up:g} seconds (ini "
            f"fairness_give_up); what came before is recorded. {last}"
        )

    # In the store's thread

    def _visit(self, arrived: list[Arrival], free: int, rung: bool) -> dict[str, Request]:
        """Record and claim; gives the questions that are now to be asked."""
        store, ledger, now = self._store, self._ledger, time.monotonic()
        changed = store.changed()
        if changed:
            self._read_news()
        renewing = now - self._last_renewal > RENEWAL
        claiming = free > 0 and (rung or changed or now - self._last_claim > RECLAIM)
        # The first open questions may all be in other processes' hands.
        candidates = ledger.next_open(free + 2 * self._capacity) if claiming else []
        if not (arrived or candidates or renewing):
            return {}
        with store.transaction():
            for arrival in arrived:
                self._write(arrival)
            if renewing:
                store.renew(self._owner, LEASE)
                self._last_renewal = now
            claim = store.claim(
                candidates,
                self._owner,
                limit=max(free, 0),
                capacity=self._capacity,
                lease_seconds=LEASE,
                oldest=self._oldest,
            )
        self._last_claim = now
        # Only now, when it is safely written.
        for arrival in arrived:
            if isinstance(arrival.outcome, Response):
                ledger.answer(arrival.key, arrival.outcome)
            else:
                ledger.fail(arrival.key, arrival.outcome)
        ledger.settle_elsewhere(claim.answered, {})
        return ledger.ask(claim.claimed)

    def _write(self, arrival: Arrival) -> None:
        key, request, outcome = arrival
        if isinstance(outcome, Response):
            self._store.record(key, request, self._target.identity, outcome)
        elif isinstance(outcome, TargetError):
            self._store.release(key, self._owner)  # another process may be set up better
        else:
            self._store.fail(key, self._target.identity, str(outcome))

    def _read_news(self) -> None:
        news = self._store.news(self._since, self._target.identity)
        self._since = news.until
        failed = {key: RequestFailed(message) for key, message in news.failed.items()}
        if self._ledger.settle_elsewhere(news.answered, failed):
            self._last_success = time.monotonic()
