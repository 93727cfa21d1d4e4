"""Claims: reservations of requests, so that all processes together send each request once and respect the limits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from itertools import chain, islice
from typing import NamedTuple

from pytest_fairness.asking.store.database import Database, in_transaction, upsert
from pytest_fairness.asking.store.freshness import CONDITION, Freshness
from pytest_fairness.asking.store.processes import is_gone, this_process
from pytest_fairness.asking.store.rate_limit_table import RateLimitTable
from pytest_fairness.asking.store.runs import RunId, Runs

CHUNK = 500
"""Maximum number of keys in one SQL query."""
_PUT = upsert("claims", "key, scope", "owner", "process", "target", "expires", "in_flight")


class StopReason(Enum):
    """Reason why a run may send no further requests."""

    STOPPED = auto()
    """The run was stopped, or the process that the user started no longer exists."""
    OVER_BUDGET = auto()
    """The run has spent its budget of requests."""


class ClaimResult(NamedTuple):
    """Result of `Claims.claim`.

    Attributes:
        claimed: keys of requests that the owner may now send, in the order of sending.
        answered: keys of requests that need not be sent, because their answers are recorded.
        stop_reason: why the run may never claim anything again, or `None`.
        resume_at: time until which the target's rate limit allows no request (seconds since the epoch).
        preflight: whether `claimed` is only the run's first request to the target, which is sent alone.
    """

    claimed: list[str]
    answered: list[str]
    stop_reason: StopReason | None = None
    resume_at: float = 0.0
    preflight: bool = False


class Claims:
    """Table of claims in the store.

    Args:
        database: the store's database.
        runs: table of runs; a run that is stopped or has spent its budget gets no claims.
        rate_limits: table of the targets' rate limits, which limit the number of claims.
    """

    def __init__(self, database: Database, runs: Runs, rate_limits: RateLimitTable) -> None:
        self.database, self._runs, self._rate_limits = database, runs, rate_limits
        self._process = this_process()

    @in_transaction
    def claim(
        self,
        keys: Iterable[str],
        owner: str,
        *,
        limit: int,
        capacity: int,
        lease_seconds: float,
        fresh: Freshness,
        retries: Sequence[str] = (),
        target: str = "",
        run: RunId | None = None,
        max_requests: int | None = None,
        preflight: bool = True,
    ) -> ClaimResult:
        """Claim requests for an owner, so that no other owner sends them.

        Claims of processes that have ended and claims that were not renewed in time are dropped first. With
        `preflight`, the first request of a run to a target is claimed alone; other requests can be claimed after a call
        of `Runs.put_preflight` with the key `None`.

        Args:
            keys: keys of requests in the order of sending; only as many as needed are read from the iterable.
            owner: owner of the new claims.
            limit: maximum number of keys to claim now.
            capacity: maximum number of requests in flight, of all owners together.
            lease_seconds: seconds after which the claims expire unless they are renewed.
            fresh: rule that decides which recorded answers are reused. If the run reuses no answers of other runs, it
                also ignores the claims of other runs.
            retries: keys of the owner's requests whose next attempt is due after a back-off; they are claimed before
                `keys`.
            target: identity of the target, whose rate limit applies.
            run: the run, whose budget applies.
            max_requests: budget of the run: maximum number of attempts, retries included.
            preflight: whether the first request of the run to the target is claimed alone.
        """
        now = self.database.now()
        self._drop_dead_claims(now)
        sent, stopped = (0, False) if run is None else self._runs.state(run)
        if stopped:
            return ClaimResult([], [], StopReason.STOPPED)
        in_flight = dict(
            self.database.execute("SELECT target, count(*) FROM claims WHERE in_flight = 1 GROUP BY target")
        )
        rate_limit = self._rate_limits.get(target)
        free = min(limit, capacity - sum(in_flight.values()))
        if rate_limit.allowed < capacity:
            free = min(free, int(rate_limit.allowed) - in_flight.get(target, 0))
        if now < rate_limit.resume_at:
            free = 0
        spent = max_requests is not None and sent >= max_requests
        if max_requests is not None:
            free = min(free, max_requests - sent)
        claim = ClaimResult([], [], StopReason.OVER_BUDGET if spent else None, rate_limit.resume_at)
        passed, first = self._runs.preflight(run, target) if preflight and run is not None else (True, None)
        if not passed:
            free = min(free, 1)
            if first is not None and self._claimed([first], fresh):
                # The first request was sent, and its owner may have to send it again.
                keys, retries = (), [key for key in retries if key == first]
        free = max(free, 0)
        own = self._backing_off(retries, owner) if retries else set()
        claim.claimed.extend(islice((key for key in retries if key in own), free))
        # Other owners may have claimed retries whose claims expired, so these are claimed like new requests.
        rest = chain((key for key in retries if key not in own), keys)
        size = 2 * free  # usually enough; more only where other owners have claimed these keys
        while len(claim.claimed) < free and (chunk := list(islice(rest, min(size, CHUNK)))):
            size *= 4
            answered = recorded_keys(self.database, chunk, fresh)
            claimed = self._claimed(chunk, fresh)
            claim.answered.extend(key for key in chunk if key in answered)
            open_keys = (key for key in chunk if key not in answered and key not in claimed)
            claim.claimed.extend(islice(open_keys, free - len(claim.claimed)))
        expires = now + lease_seconds
        rows = [(key, fresh.scope, owner, self._process, target, expires, 1) for key in claim.claimed]
        self.database.execute_many(_PUT, rows)
        if run is not None and claim.claimed:
            self._runs.count_sent(run, len(claim.claimed))
            if not passed:
                self._runs.put_preflight(run, target, claim.claimed[0])
        return claim._replace(preflight=not passed and bool(claim.claimed))

    @in_transaction
    def unclaimed(self, keys: Sequence[str], fresh: Freshness) -> list[str]:
        """Return those `keys` whose requests have no recorded answer and no claim, and are in no batch."""
        self._drop_dead_claims(self.database.now())
        taken = recorded_keys(self.database, keys, fresh) | self._claimed(keys, fresh)
        return [key for key in keys if key not in taken]

    @in_transaction
    def renew(self, owner: str, lease_seconds: float) -> None:
        """Make all claims of an owner expire `lease_seconds` from now."""
        expires = self.database.now() + lease_seconds
        self.database.execute("UPDATE claims SET expires = ? WHERE owner = ?", (expires, owner))

    @in_transaction
    def back_off(self, key: str, owner: str) -> None:
        """Keep the claim of a request that waits for its next attempt, but do not count the request as in flight."""
        self.database.execute("UPDATE claims SET in_flight = 0 WHERE key = ? AND owner = ?", (key, owner))

    @in_transaction
    def release(self, key: str, owner: str) -> None:
        """Release a claim, so that other owners may send the request."""
        self.database.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, owner))

    @in_transaction
    def release_all(self, owner: str) -> None:
        """Release all claims of an owner."""
        self.database.execute("DELETE FROM claims WHERE owner = ?", (owner,))

    def _drop_dead_claims(self, now: float) -> None:
        self.database.execute("DELETE FROM claims WHERE expires < ?", (now,))
        for (process,) in self.database.execute("SELECT DISTINCT process FROM claims"):
            if is_gone(process):
                self.database.execute("DELETE FROM claims WHERE process = ?", (process,))

    def _claimed(self, keys: Sequence[str], fresh: Freshness) -> set[str]:
        """Return those `keys` whose requests are in a batch, or are claimed in the scope of `fresh`."""
        among = "key IN (SELECT value FROM json_each(?))"
        query = f"SELECT key FROM claims WHERE scope = ? AND {among} UNION SELECT key FROM batch_requests WHERE {among}"  # noqa: S608 - constants
        listed = json.dumps(list(keys))
        return {key for (key,) in self.database.execute(query, (fresh.scope, listed, listed))}

    def _backing_off(self, keys: Sequence[str], owner: str) -> set[str]:
        query = "SELECT key FROM claims WHERE owner = ? AND in_flight = 0 AND key IN (SELECT value FROM json_each(?))"
        return {key for (key,) in self.database.execute(query, (owner, json.dumps(list(keys))))}


def recorded_keys(database: Database, keys: Iterable[str], fresh: Freshness) -> set[str]:
    """Return the keys for which the run can reuse a recorded answer."""
    query = f"SELECT key FROM responses WHERE {CONDITION} AND key IN (SELECT value FROM json_each(?))"  # noqa: S608 - `CONDITION` is a constant
    return {key for (key,) in database.execute(query, (*fresh.parameters, json.dumps(list(keys))))}
