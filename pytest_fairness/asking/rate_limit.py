"""Adaptive rate limit of a target: additive increase, multiplicative decrease (Chiu and Jain 1989, as in TCP).

This module only computes; the store keeps one rate limit for each target, which all processes share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from pytest_fairness.asking.timing import DEFAULT_TIMING, Timing


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Current rate limit of a target; times are in seconds since the epoch.

    Attributes:
        allowed: maximum number of requests in flight; infinite before the first overload, and after answers have raised
            it to the run's own maximum again.
        overloads: number of overloads (requests that were rejected or got no answer) since the last answer; overloads
            of requests that were sent together count once.
        resume_at: time until which no request is sent.
        reduced_at: time at which `allowed` was last reduced.
    """

    allowed: float = math.inf
    overloads: int = 0
    resume_at: float = 0.0
    reduced_at: float = 0.0

    def after_answer(self, capacity: int) -> Self:
        """Return the limit after an answer: `n` answers raise a limit of `n` requests in flight to `n + 1`.

        A limit that has reached `capacity`, the run's own maximum, becomes infinite.
        """
        if self.allowed >= capacity:
            return replace(self, allowed=math.inf, overloads=0)
        return replace(self, allowed=self.allowed + 1 / self.allowed, overloads=0)

    def after_overload(
        self, capacity: int, *, sent_at: float, now: float, retry_after: float | None, timing: Timing = DEFAULT_TIMING
    ) -> Self:
        """Return the limit after a request was rejected or got no answer: half as many requests in flight, and a pause.

        Args:
            capacity: the run's own maximum number of requests in flight.
            sent_at: time at which the request was sent. If this was before the last reduction, the limit is not reduced
                again.
            now: the current time.
            retry_after: seconds that the target asks to wait, or `None`.
            timing: pauses for targets that ask for no pause.
        """
        limit = self
        if sent_at >= self.reduced_at:
            doubled = timing.first_rate_limit_pause * 2.0 ** min(self.overloads, 30)
            pause = 0.0 if retry_after is not None else min(timing.longest_rate_limit_pause, doubled)
            limit = replace(
                self,
                allowed=max(1.0, min(self.allowed, capacity) / 2),
                overloads=self.overloads + 1,
                resume_at=max(self.resume_at, now + pause),
                reduced_at=now,
            )
        return limit if retry_after is None else replace(limit, resume_at=max(limit.resume_at, now + retry_after))
