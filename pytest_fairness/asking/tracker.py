"""Requests of a process and their states, and counts of requests."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from itertools import islice

from pytest_fairness.errors import FairnessError, short_message
from pytest_fairness.records import Json, Request, Response

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
