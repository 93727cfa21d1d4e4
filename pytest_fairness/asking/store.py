"""Store of recorded responses, through which the processes of a run share all state; batches; maintenance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pytest_fairness.asking import claims
from pytest_fairness.asking.claims import (
    ANY_ANSWER,
    CONDITION,
    LAST_RUN,
    NIGHTS,
    Claims,
    Freshness,
    RateLimitTable,
    ResultCache,
    RunId,
    Runs,
)
from pytest_fairness.asking.database import Database, SqliteDatabase, in_transaction, is_gone, storable, this_process
from pytest_fairness.backends import chunks_of
from pytest_fairness.errors import StoreError
from pytest_fairness.option_types import DatabaseUrl
from pytest_fairness.records import Json, Message, Request, Response, Sampling, calls_in
from pytest_fairness.resources import Closing

# Store of recorded responses, through which the processes of a run share all state.
#
# This module holds the SQL statements for the tables of responses, failures and batches; `asking/claims.py` holds the
# statements for the other tables. `asking/database.py` defines all tables, and holds the connections to SQLite;
# `asking/postgres.py` holds those to PostgreSQL.

FAILURE_KEPT = 86_400.0
"""Seconds after which a failed request is forgotten."""
RESPONSE_COLUMNS = "key, run, target, request, response, created"
"""Columns of the table of responses, without the sequence number."""
INSERT_RESPONSE = f"INSERT INTO responses ({RESPONSE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 - a constant
"""Statement that inserts a response; it fails if the run already has a response with this key."""
PAGE = 1_000
"""Number of responses that are read from the database at once."""

_ANSWERS = f"""
SELECT key, response, created FROM responses WHERE {CONDITION} AND key IN (SELECT value FROM json_each(?))
ORDER BY run = ?, sequence
"""  # noqa: S608 - `CONDITION` is a constant

# ASCII, because the text of a database holds neither NUL nor lone surrogates.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def response_key(target_identity: str, request: Request) -> str:
    """Return the key of a recorded response: 64 hex digits, from all that can change the answer."""
    parts: list[Json] = [target_identity, request.system, request.prompt, request.sampling.to_json(), request.trial]
    if request.answer_format != "text":
        parts.append(request.answer_format)
    if request.continuation is not None:
        parts.append(request.continuation)
    if request.history:
        parts.append(request.history)
    if request.tools:
        parts.append({"tools": request.tools})
    return hashlib.sha256(_encode(parts).encode()).hexdigest()


class Changes(NamedTuple):
    """Answers and failures written to the store after an earlier position; see `Store.position`."""

    position: tuple[int, int]
    answered: list[str]
    failed: dict[str, str]


@dataclass(frozen=True, slots=True)
class Recorded:
    key: str
    target: str
    request: Request
    response: Response


class Store(Closing):
    """Store of a project's recorded responses; several threads and several processes can use it at once.

    Raises:
        StoreError: raised here and by every method if the store cannot be read or written, is not a store, or was
            written by a newer version; the message says what to do.
    """

    def __init__(self, address: Path | DatabaseUrl) -> None:
        self.database = _database(address)
        self.runs = Runs(self.database)
        self.rate_limits = RateLimitTable(self.database)
        self.claims = Claims(self.database, self.runs, self.rate_limits)
        self.cache = ResultCache(self.database)

    def close(self) -> None:
        self.database.close()

    def get(self, keys: Iterable[str], fresh: Freshness) -> dict[str, Response]:
        """Return the recorded answers that a run reuses, by key: its own answer or, without one, the newest answer."""
        rows = self._answers(keys, fresh)
        with self.database.decoding_errors():
            return {key: _response(response, created) for key, response, created in rows}

    def _answers(self, keys: Iterable[str], fresh: Freshness) -> list[Any]:
        """Return the key, the JSON and the date of each answer that the run may reuse; the last one of a key counts."""
        return self.database.execute(_ANSWERS, (*fresh.parameters, _encode(list(keys)), fresh.run))

    def recorded(self, keys: Iterable[str], fresh: Freshness) -> set[str]:
        return claims.recorded_keys(self.database, keys, fresh)

    def oldest_of(self, keys: Iterable[str]) -> float | None:
        """Return the date of the oldest answer (seconds since the epoch), of each key's newest answers."""
        query = (
            "SELECT min(newest) FROM (SELECT max(created) AS newest FROM responses "
            "WHERE key IN (SELECT value FROM json_each(?)) GROUP BY key) AS of_each_key"
        )
        oldest: float | None = self.database.execute(query, (_encode(list(keys)),))[0][0]
        return oldest

    def all_recorded(self) -> Iterator[Recorded]:
        for page in response_pages(self.database):
            for key, _, target, request, response, created in page:
                with self.database.decoding_errors():
                    recorded = Recorded(key, target, decode_request(request), _response(response, created))
                yield recorded

    @in_transaction
    def record(
        self, key: str, request: Request, target_identity: str, response: Response, fresh: Freshness = ANY_ANSWER
    ) -> None:
        """Record an answer, release its claim, and delete earlier answers of this run and of ended runs."""
        self.record_all([(key, request, response)], target_identity, fresh)

    @in_transaction
    def record_all(
        self, answers: Sequence[tuple[str, Request, Response]], target_identity: str, fresh: Freshness
    ) -> None:
        """Record answers as `record` does; no key may occur twice."""
        keys = _encode([key for key, _, _ in answers])
        self.database.execute(
            "DELETE FROM responses WHERE key IN (SELECT value FROM json_each(?)) "
            "AND (run = ? OR run NOT IN (SELECT run FROM runs WHERE stopped = 0))",
            (keys, fresh.run),
        )
        rows = [
            (
                key,
                fresh.run,
                target_identity,
                encode_request(request),
                _encode_response(response),
                response.created,
            )
            for key, request, response in answers
        ]
        self.database.execute_many(INSERT_RESPONSE, rows)
        self._release(keys, fresh)

    @in_transaction
    def record_failure(self, key: str, target_identity: str, message: str, fresh: Freshness = ANY_ANSWER) -> None:
        """Record that a request failed, so that other processes do not send it, and release the claim."""
        now = self.database.now()
        self._release(_encode([key]), fresh)
        self.database.execute("DELETE FROM failures WHERE created < ?", (now - FAILURE_KEPT,))
        self.database.execute(
            "INSERT INTO failures (target, key, scope, message, created) VALUES (?, ?, ?, ?, ?)",
            (target_identity, key, fresh.scope, storable(message), now),
        )

    def _release(self, keys: str, fresh: Freshness) -> None:
        """Release the claims of requests, and take the requests out of their batches; `keys` is a JSON array."""
        among = "key IN (SELECT value FROM json_each(?))"
        self.database.execute(f"DELETE FROM claims WHERE scope = ? AND {among}", (fresh.scope, keys))  # noqa: S608 - a constant
        self.database.execute(f"DELETE FROM batch_requests WHERE {among}", (keys,))  # noqa: S608 - a constant

    def position(self) -> tuple[int, int]:
        """Return the sequence numbers of the latest answer and the latest failure, for a later call of `changes`."""
        query = "SELECT (SELECT max(sequence) FROM responses), (SELECT max(sequence) FROM failures)"
        answers, failures = self.database.execute(query)[0]
        return answers or 0, failures or 0

    def changes(self, position: tuple[int, int], target_identity: str, fresh: Freshness) -> Changes:
        """Return the answers that the run may reuse, and the target's failures, that were written after a position."""
        answers = self.database.execute(
            f"SELECT sequence, key FROM responses WHERE {CONDITION} AND sequence > ? ORDER BY 1",  # noqa: S608 - `CONDITION` is a constant
            (*fresh.parameters, position[0]),
        )
        failures = self.database.execute(
            "SELECT sequence, key, message FROM failures WHERE sequence > ? AND target = ? AND scope = ? ORDER BY 1",
            (position[1], target_identity, fresh.scope),
        )
        return Changes(
            (answers[-1][0] if answers else position[0], failures[-1][0] if failures else position[1]),
            [key for _, key in answers],
            {key: message for _, key, message in failures},
        )


def response_pages(database: Database) -> Iterator[list[Any]]:
    """Yield lists of rows with `RESPONSE_COLUMNS`, in the order of recording; only one is in memory at a time."""
    query = f"SELECT sequence, {RESPONSE_COLUMNS} FROM responses WHERE sequence > ? ORDER BY 1 LIMIT ?"  # noqa: S608 - a constant
    last = 0
    while rows := database.execute(query, (last, PAGE)):
        last = rows[-1][0]
        yield [row[1:] for row in rows]


def _database(address: Path | DatabaseUrl) -> Database:
    if isinstance(address, Path):
        return SqliteDatabase(address)
    try:
        from pytest_fairness.asking.postgres import PostgresDatabase  # needs the extra `postgres`
    except ImportError as error:
        raise StoreError(
            f"{address}: a PostgreSQL store needs the package psycopg. Install it: "
            '`pip install "pytest-fairness[postgres]"`.'
        ) from error
    return PostgresDatabase(address)


_ALWAYS, _IF_SET = ("prompt", "system", "trial", "answer_format"), ("continuation", "history", "tools")
"""Fields of a request in the store; those of the second kind only if they are set."""
_OF_A_RESPONSE = ("text", "finish_reason", "prompt_tokens", "completion_tokens")
_REQUEST_TYPES = {"prompt": (str,), "system": (str, type(None)), "trial": (int,)}
_RESPONSE_TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "finish_reason": (str, type(None)),
    "prompt_tokens": (int, type(None)),
    "completion_tokens": (int, type(None)),
    "created": (int, float),
}


def encode_request(request: Request) -> str:
    plain: dict[str, Json] = {name: getattr(request, name) for name in _ALWAYS}
    plain |= {name: value for name in _IF_SET if (value := getattr(request, name)) not in (None, "", ())}
    return _encode({**plain, "sampling": request.sampling.to_json()})


def decode_request(text: str) -> Request:
    """Return the request; call it in a block `with database.decoding_errors()`, because the JSON may be damaged."""
    data: dict[str, Any] = json.loads(text)
    history = tuple(Message(*message) for message in data.get("history", ()))
    request = Request(**{**data, "sampling": Sampling.from_json(data["sampling"]), "history": history})
    _require_types(request, _REQUEST_TYPES)
    return request


def _encode_response(response: Response) -> str:
    reported = {name: getattr(response, name) for name in ("model", "fingerprint", "tool_calls")}
    plain = {name: getattr(response, name) for name in _OF_A_RESPONSE}
    return _encode(plain | {name: value for name, value in reported.items() if value is not None})


def _response(text: str, created: float) -> Response:
    response = Response(**json.loads(text), created=created)
    _require_types(response, _RESPONSE_TYPES)
    calls_in(response.tool_calls)
    return response


def _require_types(record: Request | Response, types: Mapping[str, tuple[type, ...]]) -> None:
    for name, allowed in types.items():
        if type(value := getattr(record, name)) not in allowed:
            raise TypeError(f"a recorded {name} has the type {type(value).__name__}, expected {allowed[0].__name__}")


# Tables of provider batches: the requests of each batch, and the state of its creation.

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

        The batch has only as many requests as the budget allows; the result is their number, and without any, no batch
        is added. Batches older than `BATCH_KEPT` are deleted.
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
        query = (
            f"SELECT {_COLUMNS} FROM batches WHERE token IN (SELECT value FROM json_each(?)) ORDER BY created, token"  # noqa: S608 - a constant
        )
        rows = self.database.execute(query, (json.dumps(list(tokens)),))
        with self.database.decoding_errors():
            return [Batch(token, BatchState(state), *rest) for token, state, *rest in rows]

    def requests(self, token: str, keys: Iterable[str] | None = None) -> dict[str, Request]:
        """Return the unanswered requests of a batch by key."""
        query, parameters = "SELECT key, request FROM batch_requests WHERE token = ?", [token]
        if keys is not None:
            query += " AND key IN (SELECT value FROM json_each(?))"
            parameters.append(json.dumps(list(keys)))
        rows = self.database.execute(f"{query} ORDER BY key", parameters)
        with self.database.decoding_errors():
            return {key: decode_request(request) for key, request in rows}

    def remotes(self) -> set[str]:
        return {remote for (remote,) in self.database.execute("SELECT remote FROM batches WHERE remote != ''")}

    @in_transaction
    def reserve(self, token: str, seconds: float) -> bool:
        """Reserve a batch for some seconds; return `False` if it has ended, or another process has reserved it."""
        now = self.database.now()
        rows = self.database.execute("SELECT process, expires FROM batches WHERE token = ?", (token,))
        if not rows or (rows[0][1] >= now and rows[0][0] != this_process() and not is_gone(rows[0][0])):
            return False
        query = "UPDATE batches SET process = ?, expires = ? WHERE token = ?"
        self.database.execute(query, (this_process(), now + seconds, token))
        return True

    @in_transaction
    def release(self, token: str) -> None:
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


# Maintenance of a store: sizes, copies to another store, and removal of old responses.


class Size(NamedTuple):
    """Number of a target's recorded responses, and of characters of these and of their requests, all as JSON.

    The dates are in seconds since the epoch.
    """

    target: str
    responses: int
    characters: int
    oldest: float
    newest: float


def copy_responses(source: Store, destination: Store) -> tuple[int, int]:
    """Copy responses, the newer one of a request; return how many were copied, and how many `source` has."""
    copied = found = 0
    for page in response_pages(source.database):
        copied += destination.database.write(partial(_insert_newer, destination.database, page))
        found += len(page)
    return copied, found


def copy_history(source: Store, destination: Store) -> int:
    """Copy the history of runs unless the destination has a history; return the number of copied runs."""

    def insert() -> int:
        if destination.database.execute("SELECT 1 FROM history LIMIT 1"):
            return 0
        destination.database.execute_many("INSERT INTO history (run) VALUES (?)", rows)
        return len(rows)

    rows = source.database.execute("SELECT run FROM history ORDER BY sequence")
    return destination.database.write(insert)


def sizes(store: Store) -> list[Size]:
    query = (
        "SELECT target, count(*), sum(length(request) + length(response)), min(created), max(created) FROM responses "
        "GROUP BY target ORDER BY 3 DESC, 1"
    )
    rows = store.database.execute(query)
    return [Size(target, count, int(characters), *dates) for target, count, characters, *dates in rows]


def prune(store: Store, *, older_than: float, target: str | None = None) -> int:
    """Delete responses from before a date (seconds since the epoch), and return the number of deleted responses.

    Without `target`, cached results from before the date are deleted as well. The cached document of the last run,
    which `export` reads, and the lines of a history are kept.
    """
    database = store.database
    values = (older_than,) if target is None else (older_than, target)
    where = "created < ?" if target is None else "created < ? AND target = ?"

    def delete() -> int:
        ((count,),) = database.execute(f"SELECT count(*) FROM responses WHERE {where}", values)  # noqa: S608 - constants
        database.execute(f"DELETE FROM responses WHERE {where}", values)  # noqa: S608 - constants
        if target is None:
            database.execute(
                "DELETE FROM measurements WHERE created < ? AND key != ? AND key NOT LIKE ?",
                (older_than, LAST_RUN, f"{NIGHTS}%"),
            )
        return int(count)

    return database.write(delete)


def _insert_newer(database: Database, rows: list[Any]) -> int:
    """Insert the newest row of each request unless the database has an equally new one; return the number inserted."""
    newest: dict[str, Any] = {}
    for row in rows:
        if row[0] not in newest or row[-1] > newest[row[0]][-1]:
            newest[row[0]] = row
    query = "SELECT key, max(created) FROM responses WHERE key IN (SELECT value FROM json_each(?)) GROUP BY key"
    known = dict(database.execute(query, (json.dumps(list(newest)),)))
    chosen = {key: row for key, row in newest.items() if key not in known or row[-1] > known[key]}
    replaced = json.dumps(list(chosen))
    database.execute("DELETE FROM responses WHERE key IN (SELECT value FROM json_each(?))", (replaced,))
    database.execute_many(INSERT_RESPONSE, list(chosen.values()))
    return len(chosen)
