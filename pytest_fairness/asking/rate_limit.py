"""How fast a target may be asked: additive increase, multiplicative decrease (Chiu and Jain 1989, as in TCP).

Pure arithmetic; the store keeps one pace a target, so that it holds for all processes together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

FIRST_PAUSE = 0.1
"""Seconds for which nobody is asked after a first overload, where the target names no time itself."""
LONGEST_PAUSE = 10.0
"""Seconds to which the pauses grow, doubling each time, while no answer comes."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a target is to be asked right now; all times are in seconds since the epoch.

    Attributes:
        allowed: most requests in flight; infinite until the first overload.
        strikes: overloads since the last answer; those of one batch in flight count as one.
        resume_at: nothing is sent before.
        reduced_at: when `allowed` was last reduced.
    """

    allowed: float = math.inf
    strikes: int = 0
    resume_at: float = 0.0
    reduced_at: float = 0.0

    def answered(self, capacity: int) -> Self:
        """The pace after an answer: one more in flight for as many answers as are in flight now."""
        if self.allowed >= capacity:
            return replace(self, allowed=math.inf, strikes=0)
        return replace(self, allowed=self.allowed + 1 / self.allowed, strikes=0)

    def overloaded(self, capacity: int, *, sent_at: float, now: float, wait: float | None) -> Self:
        """The pace after the target turned a request away: half as many in flight, and a pause.

        Args:
            capacity: most requests in flight that the run allows.
            sent_at: when the request was sent. What was sent before the last reduction is no news.
            now: the time.
            wait: seconds to pause, where the target said so.
        """
        pace = self
        if sent_at >= self.reduced_at:
            strikes = self.strikes + 1
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(strikes - 1, 30))
            pace = replace(
                self,
                allowed=max(1.0, min(self.allowed, capacity) / 2),
                strikes=strikes,
                resume_at=max(self.resume_at, now + (pause if wait is None else 0.0)),
                reduced_at=now,
            )
        return pace if wait is None else replace(pace, resume_at=max(pace.resume_at, now + wait))
