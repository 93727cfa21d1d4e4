"""Whether a request that got no answer is tried again, and when."""

from __future__ import annotations

import random
from collections import Counter

from pytest_fairness.errors import Fault, RequestFailed

MOST = {Fault.FINAL: 1, Fault.PASSING: 7, Fault.SLOW: 3, Fault.BUSY: 20, Fault.REWORDED: 3}
"""How often one request may end in each fault; one that never reached the target is no try at all."""
FIRST_PAUSE = 0.5
"""Seconds before the second try after a passing fault; each further pause is twice as long."""
LONGEST_PAUSE = 8.0


class Tries:
    """What has become of one request so far."""

    def __init__(self) -> None:
        self._ended: Counter[Fault] = Counter()

    def pause(self, error: RequestFailed) -> float | None:
        """Seconds until the next try, from 0; `None` where there is to be none.

        Where the whole target is busy or away the pause is not the request's own, but the target's; see `Pace`.
        """
        fault = error.fault
        self._ended[fault] += 1
        if self._ended[fault] >= MOST.get(fault, float("inf")):
            return None
        if fault is not Fault.PASSING:
            return 0.0
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (self._ended[fault] - 1))
        # Not all at the same moment.
        return max(error.wait or 0.0, pause * random.uniform(0.75, 1.0))  # noqa: S311 - nothing secret

    @property
    def count(self) -> int:
        """How many tries there were."""
        return self._ended.total()
