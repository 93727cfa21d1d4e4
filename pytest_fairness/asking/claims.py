"""Tables of the store for running processes: claims, reuse of answers, rate limits, runs, cached results."""

from __future__ import annotations

import hashlib
import json
import math
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from pytest_fairness.asking.database import Database, in_transaction, is_gone, storable, this_process, upsert
from pytest_fairness.asking.limits import RateLimit
from pytest_fairness.records import Json, json_text, json_value

# Claims: reservations of requests, so that all processes together send each request once and respect the limits.

CHUNK = 500
"""Maximum number of keys in one SQL query."""
_PUT_CLAIM = upsert("claims", "key, scope", "owner", "process", "target", "expires", "in_flight")


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
        stop_reason: why the run may never claim anything again.
        resume_at: time until which the target's rate limit allows no request (seconds since the epoch).
        preflight: whether `claimed` is only the run's first request to the target, which is sent alone.
        rejected: whether `preflight`, and the run's first request was another one, which the target rejected.
    """

    claimed: list[str]
    answered: list[str]
    stop_reason: StopReason | None = None
    resume_at: float = 0.0
    preflight: bool = False
    rejected: bool = False


class Claims:
    """Table of claims in the store."""

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
            limit: maximum number of keys to claim now.
            capacity: maximum number of requests in flight, of all owners together.
            fresh: rule that decides which recorded answers are reused. If the run reuses no answers of other runs, it
                also ignores the claims of other runs.
            retries: keys of the owner's requests whose next attempt is due after a back-off; they are claimed before
                `keys`.
            target: identity of the target, whose rate limit applies.
            max_requests: budget of the run: maximum number of attempts, retries included.
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
            free = 0 if run is not None and self._runs.target_error(run, target) else min(free, 1)
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
        self.database.execute_many(_PUT_CLAIM, rows)
        if run is not None and claim.claimed:
            self._runs.count_sent(run, len(claim.claimed))
            if not passed:
                self._runs.put_preflight(run, target, claim.claimed[0])
        alone = not passed and bool(claim.claimed)
        return claim._replace(preflight=alone, rejected=alone and first not in (None, *claim.claimed))

    @in_transaction
    def unclaimed(self, keys: Sequence[str], fresh: Freshness) -> list[str]:
        """Return those `keys` whose requests have no recorded answer and no claim, and are in no batch."""
        self._drop_dead_claims(self.database.now())
        taken = recorded_keys(self.database, keys, fresh) | self._claimed(keys, fresh)
        return [key for key in keys if key not in taken]

    @in_transaction
    def renew(self, owner: str, lease_seconds: float) -> None:
        expires = self.database.now() + lease_seconds
        self.database.execute("UPDATE claims SET expires = ? WHERE owner = ?", (expires, owner))

    @in_transaction
    def back_off(self, key: str, owner: str) -> None:
        """Keep the claim of a request that waits for its next attempt, but do not count the request as in flight."""
        self.database.execute("UPDATE claims SET in_flight = 0 WHERE key = ? AND owner = ?", (key, owner))

    @in_transaction
    def release(self, key: str, owner: str) -> None:
        self.database.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, owner))

    @in_transaction
    def release_all(self, owner: str) -> None:
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
    query = f"SELECT key FROM responses WHERE {CONDITION} AND key IN (SELECT value FROM json_each(?))"  # noqa: S608 - `CONDITION` is a constant
    return {key for (key,) in database.execute(query, (*fresh.parameters, json.dumps(list(keys))))}


# Rule that decides which recorded answers a run reuses.

CLOCK_SKEW = 60.0
"""Maximum difference (seconds) between the clocks of machines that share a store. An answer counts as dated in the
future if its date is later than now by more than this time."""


class Freshness(NamedTuple):
    """Rule that decides which recorded answers a run reuses. A run always reuses its own answers, of any date.

    Attributes:
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
        return self.run, self.oldest, math.inf if self.oldest == -math.inf else time.time() + CLOCK_SKEW


CONDITION = "(run = ? OR (created >= ? AND created <= ?))"
"""SQL condition for the responses that a run may reuse; `Freshness.parameters` are the values of its placeholders."""

ANY_ANSWER = Freshness()
"""Rule that accepts every recorded answer, of any run and date."""


# Tables of runs in the store: spent budget, stop of the run, unusable targets and request counts.

RUN_KEPT = 7 * 86_400.0
"""Seconds after which a run counts as over, because the end of a run on another machine cannot be observed."""


class RunId(NamedTuple):
    """Identifier of a run, which is the same in all processes of the run on one machine.

    Attributes:
        process: the process that the user started on this machine; the run's part on this machine is over when this
            process has ended.
        shared: whether several machines take part in the run.
    """

    name: str
    process: str
    shared: bool = False

    @classmethod
    def new(cls, name: str | None = None) -> RunId:
        """Return the identifier of a run of this process; a name stands for a run of several machines."""
        return cls(name or uuid.uuid4().hex, this_process(), shared=name is not None)


class Runs:
    """Tables of the state that a run's processes share: budget, counts, unusable targets, first requests, stop."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @in_transaction
    def stop(self, run: RunId) -> None:
        """Make all processes of a run on this machine stop sending."""
        self.state(run)
        self.database.execute("UPDATE runs SET stopped = 1 WHERE run = ? AND process = ?", (run.name, run.process))

    @in_transaction
    def state(self, run: RunId) -> tuple[int, bool]:
        """Return the number of requests a run has sent on all machines, and whether it is over on this machine.

        A run is over if it was stopped, or if the process that the user started has ended. An unknown run is added to
        the table.
        """
        now = self.database.now()
        query = "SELECT stopped FROM runs WHERE run = ? AND process = ?"
        found = self.database.execute(query, (run.name, run.process))
        if not found:
            self._drop_ended_runs(now)
            row = (run.name, run.process, int(run.shared), now)
            self.database.execute("INSERT INTO runs VALUES (?, ?, 0, 0, ?, ?)", row)
            for table in ("target_errors", "request_counts", "preflights"):
                self.database.execute(f"DELETE FROM {table} WHERE run NOT IN (SELECT run FROM runs)")  # noqa: S608 - one of three constants
        stopped = bool(found and found[0][0]) or is_gone(run.process)
        return int(self.database.execute("SELECT sum(sent) FROM runs WHERE run = ?", (run.name,))[0][0]), stopped

    @in_transaction
    def count_sent(self, run: RunId, count: int) -> None:
        query = "UPDATE runs SET sent = sent + ? WHERE run = ? AND process = ?"
        self.database.execute(query, (count, run.name, run.process))

    @in_transaction
    def put_target_error(self, run: RunId, target: str, message: str) -> None:
        self.database.execute(upsert("target_errors", "run, target", "message"), (run.name, target, storable(message)))

    def target_error(self, run: RunId, target: str) -> str | None:
        query = "SELECT message FROM target_errors WHERE run = ? AND target = ?"
        rows = self.database.execute(query, (run.name, target))
        return str(rows[0][0]) if rows else None

    def preflight(self, run: RunId, target: str) -> tuple[bool, str | None]:
        """Return whether all requests may be sent, and, if not, the key of the first one that was sent."""
        rows = self.database.execute("SELECT key FROM preflights WHERE run = ? AND target = ?", (run.name, target))
        key = rows[0][0] if rows else None
        return bool(rows) and key is None, key

    @in_transaction
    def put_preflight(self, run: RunId, target: str, key: str | None) -> None:
        """Store the key of the first request of a run to a target, which is sent alone; `None` allows all requests."""
        self.database.execute(upsert("preflights", "run, target", "key"), (run.name, target, key))

    @in_transaction
    def put_request_counts(self, run: RunId, owner: str, counts: Json) -> None:
        """Store the request counts of one engine of one process."""
        row = (run.name, run.process, owner, json.dumps(counts))
        self.database.execute(upsert("request_counts", "run, process, owner", "counts"), row)

    def request_counts(self, run: RunId) -> dict[str, Json]:
        """Return the latest request counts of a run on this machine, by owner."""
        query = "SELECT owner, counts FROM request_counts WHERE run = ? AND process = ?"
        rows = self.database.execute(query, (run.name, run.process))
        with self.database.decoding_errors():
            return {owner: _checked_counts(json.loads(counts)) for owner, counts in rows}

    def _drop_ended_runs(self, now: float) -> None:
        """Delete runs that are older than `RUN_KEPT`, and runs of this machine alone whose process has ended."""
        self.database.execute("DELETE FROM runs WHERE created < ?", (now - RUN_KEPT,))
        for (process,) in self.database.execute("SELECT DISTINCT process FROM runs WHERE shared = 0"):
            if is_gone(process):
                self.database.execute("DELETE FROM runs WHERE process = ? AND shared = 0", (process,))


def _checked_counts(counts: Mapping[str, Json]) -> dict[str, Json]:
    """Return the counts if every entry is a number or a mapping to numbers; otherwise raise `TypeError`."""
    return {name: _checked_counts(count) if isinstance(count, dict) else count + 0 for name, count in counts.items()}


# Table of rate limits in the store: one for each target, which all processes share.

RATE_LIMIT_KEPT = 60.0
"""A stored rate limit no longer applies this many seconds after its last change, unless its pause goes on."""
_PUT_RATE_LIMIT = upsert("rate_limits", "target", "allowed", "overloads", "resume_at", "reduced_at", "touched")


class RateLimitTable:
    def __init__(self, database: Database) -> None:
        self.database = database

    def get(self, target: str) -> RateLimit:
        """Return the rate limit of a target; infinite if none was stored in `RATE_LIMIT_KEPT` seconds or pauses."""
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
        row = (target, limit.allowed, limit.overloads, limit.resume_at, limit.reduced_at, self.database.now())
        self.database.execute(_PUT_RATE_LIMIT, row)


# Cache of computed results in the store: measurements, and answers that one process passes to another.

T = TypeVar("T")

LAST_RUN = "last run"
"""Key of the report document of the last run; see `run.history.last_run`."""
NIGHTS = "night "
"""Start of the keys of the lines of a history; see `run.nights`."""
ANSWER_SET_KEPT = 86_400.0
"""Seconds after which answers that `put_answers` stored are removed."""

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class ResultCache:
    def __init__(self, database: Database) -> None:
        self.database = database

    def get(self, key: str, read: Callable[[Json], T]) -> T | None:
        rows = self.database.execute("SELECT measurement FROM measurements WHERE key = ?", (key,))
        with self.database.decoding_errors():
            return read(json_value(rows[0][0])) if rows else None

    def nights(self) -> list[Json]:
        """Return all results whose keys begin with `NIGHTS`, which are kept for ever."""
        rows = self.database.execute("SELECT measurement FROM measurements WHERE key LIKE ?", (f"{NIGHTS}%",))
        with self.database.decoding_errors():
            return [json_value(text) for (text,) in rows]

    @in_transaction
    def put(self, key: str, result: Json) -> None:
        """Store a result in the given order of its JSON members; its key is made from all inputs of the result."""
        row = (key, json_text(result), self.database.now())
        self.database.execute_many(upsert("measurements", "key", "measurement", "created"), [row])

    def put_answers(self, answers: Iterable[Json]) -> str:
        """Store answers for one day; another process gets them with the returned digest."""
        text = "\n".join(map(_encode, answers))
        digest = hashlib.sha256(text.encode()).hexdigest()
        self._put_answers(digest, text)
        return digest

    def get_answers(self, digest: str) -> Iterator[Json]:
        """Yield the answers of `put_answers`; nothing if the digest is unknown."""
        for (text,) in self.database.execute("SELECT answers FROM answer_sets WHERE digest = ?", (digest,)):
            with self.database.decoding_errors():
                answers = [json.loads(line) for line in text.splitlines()]
            yield from answers

    @in_transaction
    def _put_answers(self, digest: str, text: str) -> None:
        now = self.database.now()
        self.database.execute("DELETE FROM answer_sets WHERE created < ?", (now - ANSWER_SET_KEPT,))
        self.database.execute(upsert("answer_sets", "digest", "answers", "created"), (digest, text, now))
