"""How long a target has to give an answer before what is left is given up."""

from __future__ import annotations

import time
from collections.abc import Collection

from pytest_fairness.asking.missing_answers import given_up, unreachable
from pytest_fairness.errors import AnswersMissing, FairnessError, Fault, RequestFailed

UNREACHED = 10.0
"""Seconds after which a target that could not be reached even once is given up."""


class Patience:
    """What a target has done so far, as far as it counts for giving it up.

    Args:
        name: the target's, for messages.
        limit: seconds without any answer after which it is given up.
    """

    def __init__(self, name: str, limit: float) -> None:
        self._name, self._limit = name, limit
        self._begins = 0.0
        self._unreached_since: float | None = None
        self._reached = False
        self._last_fault = ""

    def begin(self) -> None:
        """Count from now on: nothing was asked of it until now."""
        self._begins = time.monotonic()

    def answered(self) -> None:
        """It gave an answer."""
        self._begins, self._reached = time.monotonic(), True

    def failed(self, fault: FairnessError) -> None:
        """A try ended otherwise; whatever comes from the target itself shows that it is there."""
        self._last_fault = str(fault)
        if isinstance(fault, RequestFailed) and fault.fault is Fault.UNREACHABLE:
            self._unreached_since = self._unreached_since or time.monotonic()
        elif not isinstance(fault, RequestFailed) or fault.fault is not Fault.SLOW:
            self._reached = True

    def ends(self, flying_since: Collection[float], resume_at: float) -> float:
        """Until when it has time to give an answer, on the monotonic clock.

        Args:
            flying_since: when each request that is in flight was sent.
            resume_at: when it may be asked again, if it asked for a pause.

        Raises:
            AnswersMissing: no longer.
        """
        now = time.monotonic()
        end, never = self._begins + self._limit, False
        if self._unreached_since is not None and not self._reached:
            # What was sent when others were refused already may have got through, and only take its time.
            never = not any(since <= self._unreached_since for since in flying_since)
            end = min(end, self._unreached_since + UNREACHED) if never else end
        if now < end and (resume_at <= end or flying_since):
            return end
        if never:
            raise AnswersMissing(unreachable(self._name, min(UNREACHED, self._limit), self._last_fault))
        raise AnswersMissing(given_up(self._name, self._limit, resume_at - now, self._last_fault))
