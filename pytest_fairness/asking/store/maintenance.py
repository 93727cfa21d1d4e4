"""Maintenance of a store: sizes, copies to another store, and removal of old responses."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, NamedTuple

from pytest_fairness.asking.store.database import Database
from pytest_fairness.asking.store.result_cache import LAST_RUN
from pytest_fairness.asking.store.store import INSERT_RESPONSE, Store, response_pages


class Size(NamedTuple):
    """Size of a target's recorded responses.

    Attributes:
        target: identity of the target.
        responses: number of responses.
        characters: number of characters of these responses and of their requests, all as JSON.
        oldest, newest: dates of the target's oldest and newest response, in seconds since the epoch.
    """

    target: str
    responses: int
    characters: int
    oldest: float
    newest: float


def copy_responses(source: Store, destination: Store) -> tuple[int, int]:
    """Copy the responses of a store to another store.

    If both stores have a response to a request, the newer response is kept.

    Returns:
        The number of copied responses, and the number of responses in `source`.
    """
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
    """Return the size of each target's responses, the largest first."""
    query = (
        "SELECT target, count(*), sum(length(request) + length(response)), min(created), max(created) FROM responses "
        "GROUP BY target ORDER BY 3 DESC, 1"
    )
    rows = store.database.execute(query)
    return [Size(target, count, int(characters), *dates) for target, count, characters, *dates in rows]


def prune(store: Store, *, older_than: float, target: str | None = None) -> int:
    """Delete responses from before a date, and return the number of deleted responses.

    Without `target`, cached results from before the date are deleted as well. The cached document of the last run is
    kept, because `export` reads it.

    Args:
        older_than: the date (seconds since the epoch); later responses are kept.
        target: identity of the target whose responses are deleted; `None` for all targets.
    """
    database = store.database
    values = (older_than,) if target is None else (older_than, target)
    where = "created < ?" if target is None else "created < ? AND target = ?"

    def delete() -> int:
        ((count,),) = database.execute(f"SELECT count(*) FROM responses WHERE {where}", values)  # noqa: S608 - constants
        database.execute(f"DELETE FROM responses WHERE {where}", values)  # noqa: S608 - constants
        if target is None:
            database.execute("DELETE FROM measurements WHERE created < ? AND key != ?", (older_than, LAST_RUN))
        return int(count)

    return database.write(delete)


def _insert_newer(database: Database, rows: list[Any]) -> int:
    """Insert the newest row of each request, and return the number of inserted rows.

    A row is left out if the database has an equally new or a newer response to its request.
    """
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
