"""Thread-safe table of this process's requests and their states."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import islice

from pytest_fairness.errors import FairnessError, short_message
from pytest_fairness.records import Request, Response

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
        """Return the requests that have not been planned yet."""
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
        """Return the keys of the first `count` (default: all) unsettled requests that this process has not sent."""
        with self._changed:
            return list(islice(self._unsent, count))

    def start(self, keys: Iterable[str], *, retries: int = 0) -> dict[str, Request]:
        """Mark requests as in flight and return them by key; leave out requests that are settled already.

        Args:
            keys: keys of requests; keys of requests that are already in flight are ignored.
            retries: number to add to the count `retried`.
        """
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
        """Settle every unsettled request as failed; requests planned after this call fail at once.

        Args:
            error: the error of these requests.
            unsent_only: whether to leave out the requests in flight, which may still be answered.
        """
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
        """Return whether any request is not settled."""
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
        """Return the numbers of requests in each state (planned, in flight, …); see `Engine.progress`."""
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
