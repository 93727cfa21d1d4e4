"""Which recorded answers may stand for new ones."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

CLOCK_SKEW = 60.0
"""Seconds that the clocks of machines which share a store may differ; an answer dated further ahead is not fresh."""


class Freshness(NamedTuple):
    """Which recorded answers a run accepts. Its own it always accepts, whatever the clock says.

    Attributes:
        run: name of the run; see `RunId`.
        oldest: seconds since the epoch. Answers of other runs count if they are dated from then until now; with `inf`
            none of them does, with `-inf` every one does, whatever its date.
    """

    run: str = ""
    oldest: float = -math.inf

    @property
    def scope(self) -> str:
        """With whom the run shares its questions: its own name, or nothing for all runs that accept others' answers."""
        return self.run if self.oldest == math.inf else ""

    @property
    def parameters(self) -> tuple[str, float, float]:
        """Values for the placeholders of `CONDITION`."""
        return self.run, self.oldest, math.inf if self.oldest == -math.inf else time.time() + CLOCK_SKEW


CONDITION = "(run = ? OR (created >= ? AND created <= ?))"
"""Of the table of responses, in SQL."""

EVERY = Freshness()
"""Every recorded answer, of whichever run and date."""
