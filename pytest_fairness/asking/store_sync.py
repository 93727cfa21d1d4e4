"""Synchronisation with the store: results that arrived are recorded, and further requests claimed, in one transaction.

So no request is sent before the answers received so far are recorded, and answers that arrive together need only one
write.
"""

from __future__ import annotations

import math
import time
from functools import partial
from typing import NamedTuple

from pytest_fairness.asking.costs import with_cost
from pytest_fairness.asking.give_up import GiveUpTimer
from pytest_fairness.asking.missing_answers import over_budget
from pytest_fairness.asking.preflight import Preflight
from pytest_fairness.asking.request_counts import FAILURES
from pytest_fairness.asking.request_tracker import RequestTracker
from pytest_fairness.asking.store.claims import ClaimResult, StopReason
from pytest_fairness.asking.store.freshness import Freshness
from pytest_fairness.asking.store.runs import RunId
from pytest_fairness.asking.store.store import Store
from pytest_fairness.asking.timing import Timing
from pytest_fairness.errors import AnswersMissing, FairnessError, RequestFailed, RetryReason, TargetError
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Json, Request, Response
from pytest_fairness.targets.base import Target

_OVERLOADS = (RetryReason.OVERLOADED, RetryReason.TIMEOUT, RetryReason.UNREACHABLE)
"""Reasons of failures after which the target gets fewer requests at a time."""


class AttemptResult(NamedTuple):
    """Result of one attempt to send a request.

    Attributes:
        key, request: the request and its key.
        outcome: the response, or the error of the attempt.
        sent_at: time at which the request was sent (seconds since the epoch).
        retry_at: time of the next attempt (monotonic seconds), or `None` if there is no next attempt.
    """

    key: str
    request: Request
    outcome: Response | FairnessError
    sent_at: float
    retry_at: float | None = None


class BackingOff(NamedTuple):
    """Request that waits for its next attempt at the time `due` (monotonic seconds).

    `error` is the error of the last attempt.
    """

    request: Request
    due: float
    error: FairnessError


class StoreSync:
    """Synchronisation of one target's requests with the store: it records their results and claims further requests.

    All methods except `counts` and `now` block, so the event loop calls them in a separate thread, one at a time.

    Args:
        store: recorded responses.
        target: the system under test.
        tracker: the requests and their states.
        settings: settings of the run; `concurrency`, `max_requests`, `fresh` and `prices` are used.
        timer: give-up timer, which is restarted when another process received an answer.
        preflight: state of the preflight in this process.
        fresh: rule that decides which recorded answers are reused.
        owner: unique name of the owner of the claims.
        run: the run to which the requests belong.
        timing: pauses and time limits.

    Attributes:
        capacity: maximum number of requests in flight, of all processes together.
        target_error: error that another process of the run stored because the target can answer no request; else
            `None`.
        stopped: whether the run was stopped.
        resume_at: time at which the target's rate limit allows the next request (monotonic seconds).
    """

    def __init__(
        self,
        store: Store,
        target: Target,
        tracker: RequestTracker,
        settings: RunSettings,
        timer: GiveUpTimer,
        preflight: Preflight,
        *,
        fresh: Freshness,
        owner: str,
        run: RunId,
        timing: Timing,
    ) -> None:
        self._store, self._target, self._tracker, self._settings, self._timer = store, target, tracker, settings, timer
        self._fresh, self._owner, self._run, self._timing = fresh, owner, run, timing
        self._preflight = preflight
        self._position = store.position()
        self._backing_off: dict[str, BackingOff] = {}
        self._last_claim = self._last_renewal = 0.0
        self.capacity = min(settings.concurrency, target.concurrency or settings.concurrency)
        self.target_error: str | None = None
        self.stopped = False
        self.resume_at = 0.0

    def counts(self) -> dict[str, float]:
        """Return the request counts; see `Engine.progress`."""
        counts = self._tracker.counts()
        own = self._settings.fresh or not self._target.reusable
        asked_again = counts["answered"] if own else 0
        return {**with_cost(counts, self._settings.price_of(self._target.name)), "asked_again": asked_again}

    @property
    def next_retry(self) -> float:
        """Return the time at which the next waiting request is sent again (monotonic seconds); infinity without one."""
        return min((waiting.due for waiting in self._backing_off.values()), default=math.inf)

    def now(self) -> float:
        """Return the current time by the clock of the store (seconds since the epoch)."""
        return self._store.database.now()

    def put_counts(self) -> None:
        """Write the request counts to the store."""
        counts: dict[str, Json] = {**self.counts(), FAILURES: self._tracker.failures()}
        self._store.runs.put_request_counts(self._run, self._owner, counts)

    def release_all(self) -> None:
        """Release all claims of this owner."""
        self._store.claims.release_all(self._owner)

    def record_and_claim(self, results: list[AttemptResult], free: int, woken: bool) -> dict[str, Request]:
        """Record results, claim requests, and return the claimed requests by key; the sender must send them at once.

        Args:
            results: results that arrived since the last call.
            free: maximum number of requests to claim.
            woken: whether new requests may have been planned since the last call.
        """
        store, tracker, now = self._store, self._tracker, time.monotonic()
        changed = store.database.has_changed()
        if changed:
            self._read_changes()
            self.target_error = store.runs.target_error(self._run, self._target.identity)
            free = 0 if self.target_error else free
        due = [key for key, waiting in self._backing_off.items() if waiting.due <= now]
        renewing = now - self._last_renewal > self._timing.claim_renewal
        late = now - self._last_claim > self._timing.claim_retry or (self._last_claim < self.resume_at <= now)
        claiming = free > 0 and (woken or changed or late or due)
        # More keys than can be sent, because other processes may have claimed the first keys.
        candidates = tracker.next_unsent(free + 2 * self.capacity) if claiming else []
        for result in results:
            if result.key == self._preflight.key and self._preflight.is_rejection(result.request, result.outcome):
                candidates = tracker.next_unsent()[-1:]
        if not (results or candidates or renewing or (claiming and due)):
            return {}
        claim = store.database.write(
            lambda: self._write(results, candidates, due if claiming else [], free, renewing=renewing)
        )
        if renewing:
            self._last_renewal = now
        if claim.preflight or any(map(self._ends_preflight, results)):
            self._preflight.key = claim.claimed[0] if claim.preflight else None
        self._last_claim = now
        self.resume_at = now + claim.resume_at - store.database.now()
        # Settle requests after the transaction, because waiting threads then read the answers from the store.
        for result in results:
            if result.retry_at is not None and isinstance(result.outcome, FairnessError):
                self._backing_off[result.key] = BackingOff(result.request, result.retry_at, result.outcome)
        tracker.settle((result.key, result.outcome) for result in results if result.retry_at is None)
        tracker.settle_elsewhere(claim.answered, {})
        if results and not tracker.has_unsettled:
            self.put_counts()  # perhaps for the last time, and other processes show these counts
        for key in claim.answered:
            self._backing_off.pop(key, None)
        if claim.stop_reason is StopReason.OVER_BUDGET:
            self._end_budget()
        elif claim.stop_reason is StopReason.STOPPED:
            tracker.close(AnswersMissing("not sent: the run was stopped; run again to continue"), unsent_only=True)
            self.stopped = True
        retries = {key: self._backing_off.pop(key).request for key in claim.claimed if key in self._backing_off}
        return retries | tracker.start(claim.claimed, retries=len(retries))

    def _write(
        self, results: list[AttemptResult], candidates: list[str], due: list[str], free: int, *, renewing: bool
    ) -> ClaimResult:
        """Record results, claim requests, and return the claims; must be called in a transaction."""
        if any(map(self._ends_preflight, results)):
            self._store.runs.put_preflight(self._run, self._target.identity, None)
        answers = [(key, request, outcome) for key, request, outcome, *_ in results if isinstance(outcome, Response)]
        if answers:
            self._store.record_all(answers, self._target.identity, self._fresh)
        for result in results:
            if not isinstance(result.outcome, Response):
                self._record_error(result)
        self._adapt_rate_limit(results)
        if renewing:
            self._store.claims.renew(self._owner, self._timing.claim_lease)
        claim = self._claim(candidates, due, free)
        if results or claim.claimed:
            self.put_counts()
        return claim

    def _claim(self, candidates: list[str], due: list[str], free: int) -> ClaimResult:
        return self._store.claims.claim(
            candidates,
            self._owner,
            retries=due,
            limit=max(free, 0),
            capacity=self.capacity,
            lease_seconds=self._timing.claim_lease,
            fresh=self._fresh,
            target=self._target.identity,
            run=self._run,
            max_requests=self._settings.max_requests,
            preflight=getattr(self._target, "preflight", True),
        )

    def _ends_preflight(self, result: AttemptResult) -> bool:
        """Return whether this result ends the preflight, so that all other requests may be sent."""
        goes_on = self._preflight.keeps_others_waiting(result.request, result.outcome)
        return result.key == self._preflight.key and not goes_on

    def _record_error(self, result: AttemptResult) -> None:
        key, outcome, identity = result.key, result.outcome, self._target.identity
        if isinstance(outcome, TargetError):
            self._store.claims.release(key, self._owner)  # another run may have a valid key, for example
            self._store.runs.put_target_error(self._run, identity, str(outcome))
        elif result.retry_at is not None:
            self._store.claims.back_off(key, self._owner)
        else:
            self._store.record_failure(key, identity, str(outcome), self._fresh)

    def _adapt_rate_limit(self, results: list[AttemptResult]) -> None:
        """Raise the target's rate limit after answers, and lower it after overloads."""
        if not results:
            return
        limits, identity = self._store.rate_limits, self._target.identity
        before = limit = limits.get(identity)
        for result in results:
            outcome = result.outcome
            if isinstance(outcome, Response):
                limit = limit.after_answer(self.capacity)
            elif isinstance(outcome, RequestFailed) and outcome.retry in _OVERLOADS:
                limit = limit.after_overload(
                    self.capacity,
                    sent_at=result.sent_at,
                    now=self._store.database.now(),
                    retry_after=outcome.retry_after,
                    timing=self._timing,
                )
        if limit != before:
            limits.put(identity, limit)

    def _end_budget(self) -> None:
        """Settle the requests that the run's budget no longer allows, as failed.

        Requests that other processes have sent stay unsettled, because they may still be answered.
        """
        error_of = partial(
            over_budget, self._settings.max_requests or 0, self._target.reusable, shared=self._run.shared
        )
        for key in self._backing_off:
            self._store.claims.release(key, self._owner)
        self._tracker.settle((key, error_of(str(waiting.error))) for key, waiting in self._backing_off.items())
        self._backing_off.clear()
        lost = self._store.claims.unclaimed(self._tracker.next_unsent(), self._fresh)
        self._tracker.settle_elsewhere([], dict.fromkeys(lost, error_of()))

    def _read_changes(self) -> None:
        changes = self._store.changes(self._position, self._target.identity, self._fresh)
        self._position = changes.position
        failed = {key: RequestFailed(message) for key, message in changes.failed.items()}
        if self._tracker.settle_elsewhere(changes.answered, failed):
            self._timer.record_answer()
