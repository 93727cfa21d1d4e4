"""Tables of runs in the store: spent budget, stop of the run, unusable targets and request counts."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import NamedTuple

from pytest_fairness.asking.store.database import Database, in_transaction, storable, upsert
from pytest_fairness.asking.store.processes import is_gone, this_process
from pytest_fairness.records import Json

RUN_KEPT = 7 * 86_400.0
"""Seconds after which a run counts as over, because the end of a run on another machine cannot be observed."""


class RunId(NamedTuple):
    """Identifier of a run, which is the same in all processes of the run on one machine.

    Attributes:
        name: unique name, or the name that the user gave to the runs of several machines.
        process: the process that the user started on this machine; the run's part on this machine is over when this
            process has ended.
        shared: whether several machines take part in the run.
    """

    name: str
    process: str
    shared: bool = False

    @classmethod
    def new(cls, name: str | None = None) -> RunId:
        """Return the identifier of a run that belongs to this process.

        Args:
            name: name of a run of several machines; `None` makes a new run of this machine alone.
        """
        return cls(name or uuid.uuid4().hex, this_process(), shared=name is not None)


class Runs:
    """Tables of the state that a run's processes share.

    The state is the spent budget, the request counts, the unusable targets, the first requests to the targets, and
    whether the run was stopped.
    """

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

        A run is over if it was stopped, or if the process that the user started has ended.

        A run that is not in the table yet is added.
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
        """Add to the number of requests that a run has sent."""
        query = "UPDATE runs SET sent = sent + ? WHERE run = ? AND process = ?"
        self.database.execute(query, (count, run.name, run.process))

    @in_transaction
    def put_target_error(self, run: RunId, target: str, message: str) -> None:
        """Store the error of a target that can answer no request, for the other processes of the run."""
        self.database.execute(upsert("target_errors", "run, target", "message"), (run.name, target, storable(message)))

    def target_error(self, run: RunId, target: str) -> str | None:
        """Return the stored error of a target that can answer no request; `None` if no error is stored."""
        query = "SELECT message FROM target_errors WHERE run = ? AND target = ?"
        rows = self.database.execute(query, (run.name, target))
        return str(rows[0][0]) if rows else None

    def preflight(self, run: RunId, target: str) -> tuple[bool, str | None]:
        """Return whether a run may send all its requests to a target, and the key of its first request.

        The key is `None` if all requests may be sent, or if no request was sent yet.
        """
        rows = self.database.execute("SELECT key FROM preflights WHERE run = ? AND target = ?", (run.name, target))
        key = rows[0][0] if rows else None
        return bool(rows) and key is None, key

    @in_transaction
    def put_preflight(self, run: RunId, target: str, key: str | None) -> None:
        """Store the key of the first request of a run to a target, which is sent alone; `None` allows all requests."""
        self.database.execute(upsert("preflights", "run, target", "key"), (run.name, target, key))

    @in_transaction
    def put_request_counts(self, run: RunId, owner: str, counts: Json) -> None:
        """Store the request counts of an owner (one engine of one process)."""
        row = (run.name, run.process, owner, json.dumps(counts))
        self.database.execute(upsert("request_counts", "run, process, owner", "counts"), row)

    def request_counts(self, run: RunId) -> dict[str, Json]:
        """Return the latest request counts of a run's processes on this machine, by owner."""
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
    """Return the counts unchanged if every entry is a number or a mapping to numbers; otherwise raise `TypeError`."""
    return {name: _checked_counts(count) if isinstance(count, dict) else count + 0 for name, count in counts.items()}
