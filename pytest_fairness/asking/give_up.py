"""Timer that says when the run gives up on a target that gives no answers."""

from __future__ import annotations

import time
from collections.abc import Collection

from pytest_fairness.asking.missing_answers import given_up, unreachable
from pytest_fairness.errors import AnswersMissing, FairnessError, RequestFailed, RetryReason


class GiveUpTimer:
    """Timer that ends when a target has given no answer for a number of seconds.

    Args:
        name: the target's name, for messages.
        limit: seconds without any answer after which the run gives up on the target.
        unreachable_limit: shorter limit, in seconds, for a target to which no connection was ever made.
    """

    def __init__(self, name: str, limit: float, unreachable_limit: float) -> None:
        self._name, self._limit, self._unreachable_limit = name, limit, unreachable_limit
        self._started = 0.0
        self._unreachable_since: float | None = None
        self._reached = False
        self._last_error = ""

    def restart(self) -> None:
        """Restart the timer after a time in which the target had no request to answer."""
        self._started = time.monotonic()

    def record_answer(self) -> None:
        """Restart the timer after an answer."""
        self._started, self._reached = time.monotonic(), True

    def record_failure(self, error: FairnessError) -> None:
        """Record a failed attempt; if the target itself returned the error, count the target as reachable."""
        self._last_error = str(error)
        if isinstance(error, RequestFailed) and error.retry is RetryReason.UNREACHABLE:
            self._unreachable_since = self._unreachable_since or time.monotonic()
        elif not isinstance(error, RequestFailed) or error.retry is not RetryReason.TIMEOUT:
            self._reached = True

    def deadline(self, sent_at: Collection[float], resume_at: float) -> float:
        """Return the deadline (monotonic seconds) after which the run gives up on the target.

        Args:
            sent_at: time at which each request in flight was sent (monotonic seconds).
            resume_at: time at which the target's rate limit allows the next request (monotonic seconds).

        Raises:
            AnswersMissing: the deadline has passed; or no request is in flight and none is allowed before the deadline.
        """
        now = time.monotonic()
        deadline, never_reached = self._started + self._limit, False
        if self._unreachable_since is not None and not self._reached:
            # A request sent before the first refused connection may have arrived and still be answered.
            never_reached = not any(sent <= self._unreachable_since for sent in sent_at)
            deadline = min(deadline, self._unreachable_since + self._unreachable_limit) if never_reached else deadline
        if now < deadline and (resume_at <= deadline or sent_at):
            return deadline
        if never_reached:
            seconds = min(self._unreachable_limit, self._limit)
            raise AnswersMissing(unreachable(self._name, seconds, self._last_error))
        raise AnswersMissing(given_up(self._name, self._limit, resume_at - now, self._last_error))
