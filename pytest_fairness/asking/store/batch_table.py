"""Tables of provider batches: the requests of each batch, and the state of its creation."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from pytest_fairness.asking.store.database import in_transaction
from pytest_fairness.asking.store.freshness import Freshness
from pytest_fairness.asking.store.processes import is_gone, this_process
from pytest_fairness.asking.store.runs import RunId
from pytest_fairness.asking.store.store import Store, decode_request, encode_request
from pytest_fairness.chunks import chunks_of
from pytest_fairness.records import Request

BATCH_KEPT = 30 * 86_400.0
"""Seconds after which a batch is deleted from the tables: providers delete its results after 29 or 30 days."""
_CHUNK = 4_000
"""Number of keys in one SQL query."""
_COLUMNS = "token, state, file, remote, created, touched"


class BatchState(StrEnum):
    """State of a batch; a batch that has ended is deleted from the tables."""

    PLANNED = "planned"
    """The requests of the batch are chosen; nothing was sent."""
    CREATING = "creating"
    """The request that creates the batch was perhaps sent; the provider may have the batch."""
    CREATED = "created"
    """The provider's id of the batch is known."""


class Batch(NamedTuple):
    """One batch.

    Attributes:
        token: this package's name for the batch, which the provider stores as metadata if it supports metadata.
        state: state of the batch's creation at the provider.
        file: the provider's id of the file with the batch's requests; empty if there is none.
        remote: the provider's id of the batch; empty if it is not known.
        created, touched: dates at which the batch was added and last changed, in seconds since the epoch.
    """

    token: str
    state: BatchState
    file: str
    remote: str
    created: float
    touched: float


class BatchTable:
    """Tables of the batches and of their requests."""

    def __init__(self, store: Store) -> None:
        self._store, self.database = store, store.database

    @in_transaction
    def add(
        self,
        token: str,
        target: str,
        requests: Mapping[str, Request],
        *,
        fresh: Freshness,
        run: RunId,
        max_requests: int | None,
    ) -> int:
        """Add a batch of the requests that have no recorded answer and no claim, and are in no other batch.

        The batch has only as many requests as the budget allows. Batches older than `BATCH_KEPT` are deleted.

        Args:
            token: name of the new batch.
            target: identity of the target.
            requests: the requests by key.
            fresh: rule that decides which recorded answers are reused.
            run: the run, whose budget the requests use.
            max_requests: budget of the run.

        Returns:
            The number of requests in the batch; if it is 0, no batch was added.
        """
        now = self.database.now()
        self.database.execute(
            "DELETE FROM batch_requests WHERE token IN (SELECT token FROM batches WHERE created < ?)",
            (now - BATCH_KEPT,),
        )
        self.database.execute("DELETE FROM batches WHERE created < ?", (now - BATCH_KEPT,))
        keys = self._store.claims.unclaimed(list(requests), fresh)
        sent, _ = self._store.runs.state(run)
        if max_requests is not None:
            keys = keys[: max(0, max_requests - sent)]
        if keys:
            row = (token, target, BatchState.PLANNED.value, "", "", "", 0.0, now, now)
            self.database.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            rows = [(key, token, encode_request(requests[key])) for key in keys]
            self.database.execute_many("INSERT INTO batch_requests (key, token, request) VALUES (?, ?, ?)", rows)
            self._store.runs.count_sent(run, len(keys))
        return len(keys)

    def pending(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the token of each request's batch, by the request's key; leave out requests that are in no batch."""
        found: dict[str, str] = {}
        query = "SELECT key, token FROM batch_requests WHERE key IN (SELECT value FROM json_each(?))"
        for chunk in chunks_of(keys, _CHUNK):
            found |= dict(self.database.execute(query, (json.dumps(chunk),)))
        return found

    def batches(self, tokens: Collection[str]) -> list[Batch]:
        """Return the unfinished batches with these tokens, the oldest first."""
        query = (
            f"SELECT {_COLUMNS} FROM batches WHERE token IN (SELECT value FROM json_each(?)) ORDER BY created, token"  # noqa: S608 - a constant
        )
        rows = self.database.execute(query, (json.dumps(list(tokens)),))
        with self.database.decoding_errors():
            return [Batch(token, BatchState(state), *rest) for token, state, *rest in rows]

    def requests(self, token: str, keys: Iterable[str] | None = None) -> dict[str, Request]:
        """Return the unanswered requests of a batch by key; if `keys` is given, only the requests with these keys."""
        query, parameters = "SELECT key, request FROM batch_requests WHERE token = ?", [token]
        if keys is not None:
            query += " AND key IN (SELECT value FROM json_each(?))"
            parameters.append(json.dumps(list(keys)))
        rows = self.database.execute(f"{query} ORDER BY key", parameters)
        with self.database.decoding_errors():
            return {key: decode_request(request) for key, request in rows}

    def remotes(self) -> set[str]:
        """Return the provider's ids of all batches in the store."""
        return {remote for (remote,) in self.database.execute("SELECT remote FROM batches WHERE remote != ''")}

    @in_transaction
    def reserve(self, token: str, seconds: float) -> bool:
        """Reserve a batch for this process; return `False` if the batch has ended, or another process has reserved it.

        Args:
            token: name of the batch.
            seconds: time after which another process may reserve the batch, unless this method is called again.
        """
        now = self.database.now()
        rows = self.database.execute("SELECT process, expires FROM batches WHERE token = ?", (token,))
        if not rows or (rows[0][1] >= now and rows[0][0] != this_process() and not is_gone(rows[0][0])):
            return False
        query = "UPDATE batches SET process = ?, expires = ? WHERE token = ?"
        self.database.execute(query, (this_process(), now + seconds, token))
        return True

    @in_transaction
    def release(self, token: str) -> None:
        """Give up this process's reservation of a batch."""
        query = "UPDATE batches SET expires = 0 WHERE token = ? AND process = ?"
        self.database.execute(query, (token, this_process()))

    @in_transaction
    def put(self, batch: Batch) -> None:
        """Write the state of a batch and the provider's ids, with the date of this change."""
        self.database.execute(
            "UPDATE batches SET state = ?, file = ?, remote = ?, touched = ? WHERE token = ?",
            (batch.state.value, batch.file, batch.remote, self.database.now(), batch.token),
        )

    @in_transaction
    def delete_all(self) -> tuple[int, int]:
        """Delete all batches, and return the numbers of batches and of their unanswered requests."""
        tables = ("batches", "batch_requests")
        batches, requests = (self.database.execute(f"SELECT count(*) FROM {table}")[0][0] for table in tables)  # noqa: S608 - constants
        for table in tables:
            self.database.execute(f"DELETE FROM {table}")  # noqa: S608 - constants
        return batches, requests

    @in_transaction
    def delete(self, token: str) -> None:
        """Delete a batch that has ended or was not created; its unanswered requests may be sent again."""
        self.database.execute("DELETE FROM batch_requests WHERE token = ?", (token,))
        self.database.execute("DELETE FROM batches WHERE token = ?", (token,))
