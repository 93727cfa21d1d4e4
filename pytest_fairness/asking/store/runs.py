"""Tables of runs in the store: budget, stop, unusable targets and request counts."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from typing import NamedTuple

from pytest_fairness.asking.store.database import Database
from pytest_fairness.asking.store.processes import is_gone, this_process
from pytest_fairness.records import Json

RUN_KEPT = 7 * 86_400.0
"""Seconds after which a run counts as over if it is unknown whether its process has ended (process on another
machine)."""


class RunId(NamedTuple):
    """Identifier of a run, the same in all of its processes.

    Attributes:
        name: unique name.
        process: the process that the user started; the run is over when the process has ended.
    """

    name: str
    process: str

    @classmethod
    def new(cls) -> RunId:
        """Return the identifier of a new run that belongs to this process."""
        return cls(uuid.uuid4().hex, this_process())


class Runs:
    """Tables through which a run's processes share its budget, its counts, its unusable targets and its stop."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def stop(self, run: RunId) -> None:
        """Make every process of a run stop sending."""
        with self._database.transaction() as connection:
            self.state(run)
            connection.execute("UPDATE runs SET stopped = 1 WHERE run = ?", (run.name,))

    def state(self, run: RunId) -> tuple[int, bool]:
        """Return the number of requests that a run has sent, and whether the run was stopped.

        A run that is not in the table yet is added.
        """
        now = time.time()
        with self._database.transaction() as connection:
            query = "SELECT sent, stopped FROM runs WHERE run = ?"
            found = connection.execute(query, (run.name,)).fetchone()
            if found is None:
                self._drop_ended_runs(now)
                connection.execute("INSERT INTO runs VALUES (?, ?, 0, 0, ?)", (run.name, run.process, now))
                for table in ("refusals", "tallies", "preflights"):
                    connection.execute(f"DELETE FROM {table} WHERE run NOT IN (SELECT run FROM runs)")  # noqa: S608 - one of three constants
                found = (0, 0)
        return found[0], bool(found[1]) or is_gone(run.process)

    def count_sent(self, run: RunId, count: int) -> None:
        """Add to the number of requests that a run has sent."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE runs SET sent = sent + ? WHERE run = ?", (count, run.name))

    def put_target_error(self, run: RunId, target: str, message: str) -> None:
        """Store the error of a target that can answer no request, for the other processes of the run."""
        # SQLite's text cannot hold lone surrogates.
        row = (run.name, target, message.encode("utf-8", "replace").decode())
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO refusals VALUES (?, ?, ?)", row)

    def target_error(self, run: RunId, target: str) -> str | None:
        """Return the stored error of a target that can answer no request; `None` if no error is stored."""
        query = "SELECT message FROM refusals WHERE run = ? AND target = ?"
        rows = self._database.read(query, (run.name, target))
        return str(rows[0][0]) if rows else None

    def preflight(self, run: RunId, target: str) -> tuple[bool, str | None]:
        """Return whether a run may send all its requests to a target, and the key of the first request.

        The key is `None` if all requests may be sent, or if no request was sent yet.
        """
        rows = self._database.read("SELECT key FROM preflights WHERE run = ? AND target = ?", (run.name, target))
        key = rows[0][0] if rows else None
        return bool(rows) and key is None, key

    def put_preflight(self, run: RunId, target: str, key: str | None) -> None:
        """Store the key of the request that a run sends to a target before all others; `None` allows all requests."""
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO preflights VALUES (?, ?, ?)", (run.name, target, key))

    def put_request_counts(self, run: RunId, owner: str, counts: Json) -> None:
        """Store the request counts of an owner (one engine of one process)."""
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO tallies VALUES (?, ?, ?)", (run.name, owner, json.dumps(counts)))

    def request_counts(self, run: RunId) -> dict[str, Json]:
        """Return the latest request counts of a run, by owner."""
        rows = self._database.read("SELECT owner, counts FROM tallies WHERE run = ?", (run.name,))
        with self._database.readable():
            return {owner: _counts(json.loads(counts)) for owner, counts in rows}

    def _drop_ended_runs(self, now: float) -> None:
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM runs WHERE created < ?", (now - RUN_KEPT,))
            for (process,) in connection.execute("SELECT DISTINCT process FROM runs").fetchall():
                if is_gone(process):
                    connection.execute("DELETE FROM runs WHERE process = ?", (process,))


def _counts(counts: Mapping[str, Json]) -> dict[str, Json]:
    """Return the counts unchanged if every entry is a number or a mapping to numbers; otherwise raise `TypeError`."""
    return {name: _counts(count) if isinstance(count, dict) else count + 0 for name, count in counts.items()}
