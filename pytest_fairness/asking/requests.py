"""Requests of a process and their states: tracker, counts, preflight, synchronisation with the store."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice
from typing import NamedTuple

from pytest_fairness.asking.claims import ClaimResult, Freshness, RunId, StopReason
from pytest_fairness.asking.limits import GiveUpTimer, Timing, over_budget, with_cost
from pytest_fairness.asking.store import Store
from pytest_fairness.errors import AnswersMissing, FairnessError, RequestFailed, RetryReason, TargetError, short_message
from pytest_fairness.options import RunSettings
from pytest_fairness.records import Json, Request, Response
from pytest_fairness.targets.base import Target

# Synchronisation with the store: results that arrived are recorded, and further requests claimed, in one
# transaction.
#
# So no request is sent before the answers received so far are recorded, and answers that arrive together need only
# one write.

_OVERLOADS = (RetryReason.OVERLOADED, RetryReason.TIMEOUT, RetryReason.UNREACHABLE)
"""Reasons of failures after which the target gets fewer requests at a time."""


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


class BackingOff(NamedTuple):
    """Request that waits for its next attempt at the time `due` (monotonic seconds) after an error."""

    request: Request
    due: float
    error: FairnessError


class StoreSync:
    """Synchronisation of one target's requests with the store: it records their results and claims further requests.

    All methods except `counts` and `now` block, so the event loop calls them in a separate thread, one at a time.

    Attributes:
        capacity: maximum number of requests in flight, of all processes together.
        target_error: error that another process of the run stored because the target can answer no request.
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
        counts = self._tracker.counts()
        own = self._settings.fresh or not self._target.reusable
        asked_again = counts["answered"] if own else 0
        return {**with_cost(counts, self._settings.price_of(self._target.name)), "asked_again": asked_again}

    @property
    def next_retry(self) -> float:
        """Return when the next waiting request is sent again (monotonic seconds); infinity without one."""
        return min((waiting.due for waiting in self._backing_off.values()), default=math.inf)

    def now(self) -> float:
        return self._store.database.now()

    def put_counts(self) -> None:
        counts: dict[str, Json] = {**self.counts(), FAILURES: self._tracker.failures()}
        self._store.runs.put_request_counts(self._run, self._owner, counts)

    def release_all(self) -> None:
        self._store.claims.release_all(self._owner)

    def record_and_claim(self, results: list[AttemptResult], free: int, woken: bool) -> dict[str, Request]:
        """Record results, claim up to `free` requests, and return these by key; the sender must send them at once.

        `woken` says whether new requests may have been planned since the last call.
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
            self._preflight.is_last = claim.rejected
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
        """Settle the requests that the budget no longer allows as failed, but not those that others have sent."""
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


# Thread-safe table of this process's requests and their states.

WAKE_INTERVAL = 1.0
"""Interval in seconds at which a waiting thread wakes up, so that Python handles signals on every platform."""

KEPT_MESSAGES = 10
"""Maximum number of different error messages of failed requests that are reported."""

COUNTED = ("reused", "sent", "retried", "answered", "failed", "prompt_tokens", "completion_tokens", "uncounted")


class RequestTracker:
    """Table of requests by key.

    A request is first planned, then sent by this process or by another one, and finally settled: answered or failed.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._planned: dict[bytes, bool] = {}
        """For the key of each planned request, whether an answer was already recorded. Keys are bytes, which take less
        memory than hex digits."""
        self._reported = 0
        self._unsent: dict[str, Request] = {}
        self._in_flight: set[str] = set()
        self._answered: set[str] = set()
        self._failed: dict[str, FairnessError] = {}
        self._messages: Counter[str] = Counter()
        """Number of failed requests of this process, by error message."""
        self._closed: FairnessError | None = None
        self._counts = dict.fromkeys(COUNTED, 0)

    def unplanned(self, requests: Mapping[str, Request]) -> dict[str, Request]:
        with self._changed:
            return {key: request for key, request in requests.items() if bytes.fromhex(key) not in self._planned}

    def add(self, requests: Mapping[str, Request], recorded: Iterable[str]) -> bool:
        """Plan requests in order, settle those with a key in `recorded`, and return whether any request is unsent."""
        with self._changed:
            new = self.unplanned(requests)
            answered = new.keys() & set(recorded)
            self._planned |= {bytes.fromhex(key): key in answered for key in new}
            self._counts["reused"] += len(answered)
            left = {key: request for key, request in new.items() if key not in answered}
            if self._closed is None:
                self._unsent |= left
            else:
                self._failed |= dict.fromkeys(left, self._closed)
            self._changed.notify_all()
            return bool(self._unsent)

    def newly_planned(self) -> dict[str, bool]:
        """Return the requests planned since the last call: for each key, whether an answer was already recorded."""
        with self._changed:
            new = {key.hex(): recorded for key, recorded in islice(self._planned.items(), self._reported, None)}
            self._reported = len(self._planned)
            return new

    def next_unsent(self, count: int | None = None) -> list[str]:
        """Return the keys of the first requests, by default all, that are neither settled nor sent by this process."""
        with self._changed:
            return list(islice(self._unsent, count))

    def start(self, keys: Iterable[str], *, retries: int = 0) -> dict[str, Request]:
        """Mark requests as in flight and return them by key, without those that are settled or in flight already."""
        with self._changed:
            taken = {key: self._unsent.pop(key) for key in keys if key in self._unsent}
            self._in_flight.update(taken)
            self._counts["sent"] += len(taken)
            self._counts["retried"] += retries
            return taken

    def settle(self, outcomes: Iterable[tuple[str, Response | FairnessError]]) -> None:
        """Record the answers and errors, by key, of requests that this process sent."""
        with self._changed:
            for key, outcome in outcomes:
                if isinstance(outcome, Response):
                    self._record_answer(key, outcome)
                else:
                    self._record_failure(key, outcome)
            self._changed.notify_all()

    def _record_answer(self, key: str, response: Response) -> None:
        if key not in self._in_flight and key in self._failed:
            self._counts["failed"] -= 1  # it was closed as failed before its answer arrived
            self._messages[short_message(str(self._failed[key]))] -= 1
        self._in_flight.discard(key)
        self._answered.add(key)
        self._counts["answered"] += 1
        self._counts["prompt_tokens"] += response.prompt_tokens or 0
        self._counts["completion_tokens"] += response.completion_tokens or 0
        self._counts["uncounted"] += None in (response.prompt_tokens, response.completion_tokens)

    def _record_failure(self, key: str, error: FairnessError) -> None:
        if key in self._in_flight:
            self._in_flight.remove(key)
            self._counts["failed"] += 1
            self._messages[short_message(str(error))] += 1
        self._failed[key] = error

    def settle_elsewhere(self, answered: Iterable[str], failed: Mapping[str, FairnessError]) -> bool:
        """Settle requests that this process need not send; return whether this call settled a request as answered."""
        with self._changed:
            found = [key for key in answered if self._remove(key)]
            self._answered.update(found)
            self._failed |= {key: error for key, error in failed.items() if self._unsent.pop(key, None)}
            self._changed.notify_all()
            return bool(found)

    def _remove(self, key: str) -> bool:
        # Another process may also send a request of this process whose claim has expired.
        if key in self._in_flight:
            self._in_flight.remove(key)
            return True
        return self._unsent.pop(key, None) is not None

    def close(self, error: FairnessError, *, unsent_only: bool = False) -> None:
        """Settle every unsettled request, or the unsent ones only, as failed; requests planned later fail at once."""
        with self._changed:
            self._closed = self._closed or error
            self._failed |= dict.fromkeys(self._unsent, error)
            self._unsent.clear()
            if not unsent_only:
                self._failed |= dict.fromkeys(self._in_flight, error)
                self._counts["failed"] += len(self._in_flight)
                self._messages[short_message(str(error))] += len(self._in_flight)
                self._in_flight.clear()
            self._changed.notify_all()

    @property
    def has_unsettled(self) -> bool:
        with self._changed:
            return bool(self._unsent or self._in_flight)

    def wait(self, keys: Iterable[str]) -> dict[str, FairnessError]:
        """Wait until all these planned requests are settled, and return the errors of the failed requests, by key.

        Python's signal handlers run during the wait; if a handler raises an exception, this method raises it.
        """
        waiting = deque(keys)
        keys = list(waiting)
        with self._changed:
            while waiting:
                key = waiting[-1]
                if self._planned.get(bytes.fromhex(key)) or key in self._answered or key in self._failed:
                    waiting.pop()
                else:
                    self._changed.wait(WAKE_INTERVAL)
            return {key: self._failed[key] for key in keys if key in self._failed}

    def counts(self) -> dict[str, int]:
        with self._changed:
            settled = self._counts["reused"] + len(self._answered) + len(self._failed)
            return {
                "planned": len(self._planned),
                "settled": settled,
                "in_flight": len(self._in_flight),
                **self._counts,
            }

    def failures(self) -> dict[str, int]:
        """Return the most frequent error messages of this process, each with its number of failed requests."""
        with self._changed:
            return {message: count for message, count in self._messages.most_common(KEPT_MESSAGES) if count > 0}


# Request counts of a whole run, added up over its engines and processes.

RequestCounts = Mapping[str, Json]
"""Counts of one engine; see `Engine.progress`. The entry `FAILURES` holds the number of failed requests by error
message."""

FAILURES = "failures"


def total_counts(counts_by_owner: Mapping[str, RequestCounts]) -> dict[str, float]:
    """Return the request counts of a run, combined from those of its engines, whose owners are named `process/engine`.

    All processes plan the same requests and find the same recorded answers, so `planned` and `reused` are the largest
    counts of one process. The other counts are added up, because each process sends only a part of the requests.
    """
    total: Counter[str] = Counter(sent=0, answered=0, failed=0)
    by_process: dict[str, Counter[str]] = defaultdict(Counter)
    for owner, recorded in counts_by_owner.items():
        counts = {name: count for name, count in recorded.items() if name != FAILURES}
        total.update(counts)
        by_process[owner.partition("/")[0]].update(counts)
    for name in ("planned", "reused"):
        total[name] = max((counts[name] for counts in by_process.values()), default=0)
    # An answer that one process finds recorded during the run may have been requested by another process.
    total["reused"] = min(total["reused"], max(0, total["planned"] - total["sent"]))
    total["settled"] = min(total["planned"], total["reused"] + total["answered"] + total["failed"])
    return dict(total)


def failure_counts(counts_by_owner: Mapping[str, RequestCounts]) -> dict[str, int]:
    """Return the number of failed requests of a run by error message, the most frequent first."""
    total: Counter[str] = Counter()
    for counts in counts_by_owner.values():
        total.update(counts.get(FAILURES, {}))
    return dict(sorted(total.items(), key=lambda pair: (-pair[1], pair[0])))


# Preflight: a run's first request to a server is sent alone, so that a wrong key or model name causes one error. If it
# is rejected, another prompt is sent alone, because a server may reject the content of the first one.


class Preflight:
    """State of the preflight in one process; the store records which request is the run's first one.

    `key` is that of the request that this process now sends alone; `is_last` says whether the run's first request was
    rejected, so that a rejection of this one ends sending.
    """

    def __init__(self, tracker: RequestTracker) -> None:
        self._tracker = tracker
        self.key: str | None = None
        self.is_last = False

    def is_rejection(self, request: Request, outcome: Response | FairnessError) -> bool:
        """Return whether the target rejected a request for a reason that may concern all other requests too.

        The result is `False` if the run reuses an answer of the target, which shows that the target accepted an earlier
        request. It is also `False` for embeddings, because a single text may be too long.
        """
        rejected = isinstance(outcome, RequestFailed) and outcome.check is not None
        return rejected and request.answer_format != "embedding" and not self._tracker.counts()["reused"]

    def keeps_others_waiting(self, request: Request, outcome: Response | FairnessError) -> bool:
        rephrased = isinstance(outcome, RequestFailed) and outcome.retry is RetryReason.REPHRASED
        return rephrased or isinstance(outcome, TargetError) or self.is_rejection(request, outcome)

    def final_outcome(self, key: str, request: Request, outcome: Response | FairnessError) -> Response | FairnessError:
        """Return the outcome, or a `TargetError`, which ends sending, after a second rejection."""
        if key != self.key or not self.is_last or not self.is_rejection(request, outcome):
            return outcome
        said, check = str(outcome).rstrip("."), getattr(outcome, "check", "")
        return TargetError(f"{said}. The first requests were rejected, so no more were sent. Check {check}; run again.")
