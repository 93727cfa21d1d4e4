"""Rule that decides whether and when a failed request is sent again."""

from __future__ import annotations

import random
from collections import Counter

from pytest_fairness.asking.timing import Timing
from pytest_fairness.errors import RequestFailed, RetryReason

MAX_FAILURES = {
    RetryReason.TRANSIENT: 7,
    RetryReason.TIMEOUT: 3,
    RetryReason.OVERLOADED: 20,
    RetryReason.REPHRASED: 3,
}
"""Number of failures, by reason, after which a request is not sent again. Attempts that never reached the target are
limited by `GiveUpTimer` only."""


class Attempts:
    """Failed attempts of one request.

    Args:
        timing: lengths of the pauses between attempts.
    """

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._failures: Counter[RetryReason | None] = Counter()

    def pause_after(self, error: RequestFailed) -> float | None:
        """Count a failure; return the seconds until the next attempt, or `None` if there is no further attempt.

        Only the pause after a transient failure is longer than 0 seconds. After an overload, a timeout or a refused
        connection, all requests to the target pause instead (see `RateLimit`).
        """
        reason = error.retry
        self._failures[reason] += 1
        if reason is None or self._failures[reason] >= MAX_FAILURES.get(reason, float("inf")):
            return None
        if reason is not RetryReason.TRANSIENT:
            return 0.0
        doubled = self._timing.first_retry_pause * 2.0 ** (self._failures[reason] - 1)
        pause = min(self._timing.longest_retry_pause, doubled)
        # Jitter, so that requests that failed together are not sent again together.
        return max(error.retry_after or 0.0, pause * random.uniform(0.75, 1.0))  # noqa: S311 - not a secret

    @property
    def count(self) -> int:
        """Return the number of failed attempts so far."""
        return self._failures.total()
