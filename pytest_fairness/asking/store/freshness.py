"""Rule that decides which recorded answers a run reuses."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

CLOCK_SKEW = 60.0
"""Maximum difference (seconds) between the clocks of machines that share a store. An answer counts as dated in the
future if its date is later than now by more than this time."""


class Freshness(NamedTuple):
    """Rule that decides which recorded answers a run reuses. A run always reuses its own answers, of any date.

    Attributes:
        run: name of the run; see `RunId`.
        oldest: earliest date of an answer of another run, in seconds since the epoch; answers dated in the future are
            not accepted. Two values are special: `inf` accepts no answer of another run, and `-inf` accepts all
            answers, even answers dated in the future.
    """

    run: str = ""
    oldest: float = -math.inf

    @property
    def scope(self) -> str:
        """Return the scope of the run's claims; a claim prevents only runs with the same scope from sending a request.

        The scope is the run's name if it reuses no answers of other runs, and otherwise an empty text.
        """
        return self.run if self.oldest == math.inf else ""

    @property
    def parameters(self) -> tuple[str, float, float]:
        """Return the values of the placeholders in the SQL text `CONDITION`."""
        return self.run, self.oldest, math.inf if self.oldest == -math.inf else time.time() + CLOCK_SKEW


CONDITION = "(run = ? OR (created >= ? AND created <= ?))"
"""SQL condition for the responses that a run may reuse; `Freshness.parameters` are the values of its placeholders."""

ANY_ANSWER = Freshness()
"""Rule that accepts every recorded answer, of any run and date."""
