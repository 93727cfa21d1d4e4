"""Table of rate limits in the store: one for each target, which all processes share."""

from __future__ import annotations

from pytest_fairness.asking.rate_limit import RateLimit
from pytest_fairness.asking.store.database import Database, in_transaction, upsert

RATE_LIMIT_KEPT = 60.0
"""A stored rate limit no longer applies this many seconds after its last change, unless its pause goes on."""
_PUT = upsert("rate_limits", "target", "allowed", "overloads", "resume_at", "reduced_at", "touched")


class RateLimitTable:
    """Table of the targets' rate limits."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def get(self, target: str) -> RateLimit:
        """Return the rate limit of a target; an infinite rate limit if no stored one applies.

        A stored rate limit no longer applies if its last change is more than `RATE_LIMIT_KEPT` seconds ago and its
        pause has ended.
        """
        query = "SELECT allowed, overloads, resume_at, reduced_at, touched FROM rate_limits WHERE target = ?"
        rows = self.database.execute(query, (target,))
        now = self.database.now()
        with self.database.decoding_errors():
            if not rows or (now - rows[0][4] > RATE_LIMIT_KEPT and rows[0][2] < now):
                return RateLimit()
            allowed, overloads, resume_at, reduced_at = rows[0][:4]
            return RateLimit(float(allowed), int(overloads), float(resume_at), float(reduced_at))

    @in_transaction
    def put(self, target: str, limit: RateLimit) -> None:
        """Store the rate limit of a target, which then applies to all processes."""
        row = (target, limit.allowed, limit.overloads, limit.resume_at, limit.reduced_at, self.database.now())
        self.database.execute(_PUT, row)
