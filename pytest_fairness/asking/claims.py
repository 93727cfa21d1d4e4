"""Who asks what right now, how fast and how much: the half of the store by which processes mind each other.

All of it is forgotten when the runs that it is about are over.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from itertools import chain, islice
from typing import NamedTuple

from pytest_fairness.asking.database import Database
from pytest_fairness.asking.freshness import CONDITION, Freshness
from pytest_fairness.asking.processes import is_gone, this_process
from pytest_fairness.asking.rate_limit import Pace
from pytest_fairness.records import Json

TABLES = """
CREATE TABLE claims (
    key TEXT NOT NULL,
    scope TEXT NOT NULL,      -- see Freshness
    owner TEXT NOT NULL,
    process TEXT NOT NULL,
    target TEXT NOT NULL,
    expires REAL NOT NULL,
    flying INTEGER NOT NULL,  -- 0 where the owner waits before it tries again
    PRIMARY KEY (key, scope)
);
CREATE TABLE runs (
    run TEXT PRIMARY KEY,
    process TEXT NOT NULL,    -- the one that the user started
    sent INTEGER NOT NULL,    -- tries, of all processes
    stopped INTEGER NOT NULL,
    created REAL NOT NULL
);
CREATE TABLE refusals (
    run TEXT NOT NULL,
    target TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (run, target)
);
CREATE TABLE tallies (
    run TEXT NOT NULL,
    owner TEXT NOT NULL,
    counts TEXT NOT NULL,     -- JSON
    PRIMARY KEY (run, owner)
);
CREATE TABLE paces (
    target TEXT PRIMARY KEY,
    allowed REAL NOT NULL,
    strikes INTEGER NOT NULL,
    resume_at REAL NOT NULL,
    reduced_at REAL NOT NULL,
    touched REAL NOT NULL
);
"""
DROP_TABLES = "".join(f"DROP TABLE {name};" for name in ("claims", "runs", "refusals", "tallies", "paces"))

DAY = 86_400.0
CHUNK = 500
"""Keys looked at in one go."""
RUN_KEPT = 7 * DAY
"""Seconds after which a run counts as over where it cannot be seen whether its process has ended."""
PACE_KEPT = 60.0
"""Seconds after which what was learnt of a target's pace is forgotten."""


class RunId(NamedTuple):
    """A run: the same in all of its processes.

    Attributes:
        name: no other run has it.
        process: the one that the user started; without it the run is over.
    """

    name: str
    process: str

    @classmethod
    def new(cls) -> RunId:
        """A run of this process."""
        return cls(uuid.uuid4().hex, this_process())


class Halt(Enum):
    """Why a run may send nothing more."""

    STOPPED = auto()
    """It was stopped, or the process that the user started has ended."""
    SPENT = auto()
    """As many requests were sent as the run may send."""


class Claim(NamedTuple):
    """What came of trying to claim requests.

    Attributes:
        claimed: keys that are now the owner's to ask, in the order given.
        answered: keys that need no asking any more: their answers are recorded.
        halt: why nothing is to be claimed ever again, if so.
        resume_at: seconds since the epoch before which nothing is to be claimed, as the target needs a pause.
    """

    claimed: list[str]
    answered: list[str]
    halt: Halt | None = None
    resume_at: float = 0.0


class Claims:
    """Claims, runs and paces in a database; see `Store`, which has the answers too."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._process = this_process()

    def recorded(self, keys: Iterable[str], fresh: Freshness) -> set[str]:
        """Those of the keys that have an answer which the run accepts."""
        query = f"SELECT key FROM responses WHERE {CONDITION} AND key IN (SELECT value FROM json_each(?))"  # noqa: S608
        return {key for (key,) in self._database.read(query, (*fresh.parameters, json.dumps(list(keys))))}

    # Claims

    def claim(
        self,
        keys: Iterable[str],
        owner: str,
        *,
        limit: int,
        capacity: int,
        lease_seconds: float,
        fresh: Freshness,
        resting: Sequence[str] = (),
        target: str = "",
        run: RunId | None = None,
        most: int | None = None,
    ) -> Claim:
        """Reserve questions, so that nobody else asks them; over all processes, never more than `capacity` at a time.

        Claims of processes that have ended, and claims not renewed in time, count no more.

        Args:
            keys: in the order in which they are to be asked; looked at only as far as needed.
            owner: whose claims they will be.
            limit: most keys to claim now.
            capacity: most claims in flight that there may be, everybody's together.
            lease_seconds: how long the claims hold unless renewed.
            fresh: which recorded answers count. Who accepts none of other runs is not held up by their claims either.
            resting: keys that the owner put to rest and now wants to try again; they go before `keys`.
            target: who is to be asked, and so at which pace.
            run: for which run.
            most: most requests that the run may send, tries of the same one counted each.
        """
        now = time.time()
        with self._database.transaction() as connection:
            self._drop_dead_claims(now)
            sent, stopped = self._run(run, now)
            if stopped:
                return Claim([], [], Halt.STOPPED)
            live = connection.execute("SELECT target FROM claims WHERE flying").fetchall()
            pace = self.pace(target)
            free = min(limit, capacity - len(live))
            if pace.allowed < capacity:
                free = min(free, int(pace.allowed) - live.count((target,)))
            if now < pace.resume_at:
                free = 0
            spent = most is not None and sent >= most
            if most is not None:
                free = min(free, most - sent)
            claim = Claim([], [], Halt.SPENT if spent else None, pace.resume_at)
            free = max(free, 0)
            mine = self._resting(resting, owner) if resting else set()
            claim.claimed.extend(islice((key for key in resting if key in mine), free))
            # Claims that lapsed meanwhile are anybody's.
            rest = chain((key for key in resting if key not in mine), keys)
            while len(claim.claimed) < free and (chunk := list(islice(rest, CHUNK))):
                answered = self.recorded(chunk, fresh)
                taken = self._taken(chunk, fresh)
                claim.answered.extend(key for key in chunk if key in answered)
                open_keys = (key for key in chunk if key not in answered and key not in taken)
                claim.claimed.extend(islice(open_keys, free - len(claim.claimed)))
            connection.executemany(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, ?, 1)",
                [(key, fresh.scope, owner, self._process, target, now + lease_seconds) for key in claim.claimed],
            )
            if run is not None and claim.claimed:
                connection.execute("UPDATE runs SET sent = sent + ? WHERE run = ?", (len(claim.claimed), run.name))
        return claim

    def unclaimed(self, keys: Sequence[str], fresh: Freshness) -> list[str]:
        """Those of the keys that have no answer, and that nobody is about to ask."""
        with self._database.transaction():
            self._drop_dead_claims(time.time())
            settled = self.recorded(keys, fresh) | self._taken(keys, fresh)
        return [key for key in keys if key not in settled]

    def renew(self, owner: str, lease_seconds: float) -> None:
        """Have all claims of an owner hold for `lease_seconds` from now."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE claims SET expires = ? WHERE owner = ?", (time.time() + lease_seconds, owner))

    def rest(self, key: str, owner: str) -> None:
        """Keep a claim, but count it as in flight no more: its question waits until it is tried again."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE claims SET flying = 0 WHERE key = ? AND owner = ?", (key, owner))

    def release(self, key: str, owner: str) -> None:
        """Give up a claim: the question stays unanswered, and others may ask it."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, owner))

    def release_all(self, owner: str) -> None:
        """Give up all claims of an owner."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM claims WHERE owner = ?", (owner,))

    def _drop_dead_claims(self, now: float) -> None:
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM claims WHERE expires < ?", (now,))
            for (process,) in connection.execute("SELECT DISTINCT process FROM claims").fetchall():
                if is_gone(process):
                    connection.execute("DELETE FROM claims WHERE process = ?", (process,))

    def _taken(self, keys: Sequence[str], fresh: Freshness) -> set[str]:
        query = "SELECT key FROM claims WHERE scope = ? AND key IN (SELECT value FROM json_each(?))"
        return {key for (key,) in self._database.read(query, (fresh.scope, json.dumps(list(keys))))}

    def _resting(self, keys: Sequence[str], owner: str) -> set[str]:
        query = "SELECT key FROM claims WHERE owner = ? AND NOT flying AND key IN (SELECT value FROM json_each(?))"
        return {key for (key,) in self._database.read(query, (owner, json.dumps(list(keys))))}

    # Paces

    def pace(self, target: str) -> Pace:
        """How the target is to be asked now; what was found out long ago counts no more."""
        query = "SELECT allowed, strikes, resume_at, reduced_at, touched FROM paces WHERE target = ?"
        rows = self._database.read(query, (target,))
        now = time.time()
        with self._database.readable():
            if not rows or (now - rows[0][4] > PACE_KEPT and rows[0][2] < now):
                return Pace()
            allowed, strikes, resume_at, reduced_at = rows[0][:4]
            return Pace(float(allowed), int(strikes), float(resume_at), float(reduced_at))

    def set_pace(self, target: str, pace: Pace) -> None:
        """Have everybody ask the target at this pace."""
        row = (target, pace.allowed, pace.strikes, pace.resume_at, pace.reduced_at, time.time())
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO paces VALUES (?, ?, ?, ?, ?, ?)", row)

    # Runs

    def stop_run(self, run: RunId) -> None:
        """Have no process of a run send anything more."""
        with self._database.transaction() as connection:
            self._run(run, time.time())
            connection.execute("UPDATE runs SET stopped = 1 WHERE run = ?", (run.name,))

    def refuse(self, run: RunId, target: str, message: str) -> None:
        """Tell the other processes of a run that a target answers nobody."""
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO refusals VALUES (?, ?, ?)", (run.name, target, _plain(message)))

    def refusal(self, run: RunId, target: str) -> str | None:
        """Why the target answers nobody, if another process of the run found so."""
        query = "SELECT message FROM refusals WHERE run = ? AND target = ?"
        rows = self._database.read(query, (run.name, target))
        return str(rows[0][0]) if rows else None

    def put_tally(self, run: RunId, owner: str, counts: Json) -> None:
        """Write down what an owner has counted so far."""
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO tallies VALUES (?, ?, ?)", (run.name, owner, json.dumps(counts)))

    def tallies(self, run: RunId) -> dict[str, Json]:
        """What the owners of a run counted last, by owner."""
        rows = self._database.read("SELECT owner, counts FROM tallies WHERE run = ?", (run.name,))
        with self._database.readable():
            return {owner: _counts(json.loads(counts)) for owner, counts in rows}

    def _run(self, run: RunId | None, now: float) -> tuple[int, bool]:
        """How many requests a run has sent, and whether it has been stopped."""
        if run is None:
            return 0, False
        with self._database.transaction() as connection:
            query = "SELECT sent, stopped FROM runs WHERE run = ?"
            found = connection.execute(query, (run.name,)).fetchone()
            if found is None:
                self._drop_dead_runs(now)
                connection.execute("INSERT INTO runs VALUES (?, ?, 0, 0, ?)", (run.name, run.process, now))
                for table in ("refusals", "tallies"):
                    connection.execute(f"DELETE FROM {table} WHERE run NOT IN (SELECT run FROM runs)")  # noqa: S608
                found = (0, 0)
        return found[0], bool(found[1]) or is_gone(run.process)

    def _drop_dead_runs(self, now: float) -> None:
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM runs WHERE created < ?", (now - RUN_KEPT,))
            for (process,) in connection.execute("SELECT DISTINCT process FROM runs").fetchall():
                if is_gone(process):
                    connection.execute("DELETE FROM runs WHERE process = ?", (process,))


def _counts(tally: Mapping[str, Json]) -> dict[str, Json]:
    """Return a tally whose entries are numbers, or tallies of numbers; others raise `TypeError`."""
    return {name: _counts(count) if isinstance(count, dict) else count + 0 for name, count in tally.items()}


def _plain(message: str) -> str:
    """Without half characters, which SQLite's text cannot hold."""
    return message.encode("utf-8", "replace").decode()
