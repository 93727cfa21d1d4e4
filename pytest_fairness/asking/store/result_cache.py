"""Cache of computed results in the store: measurements, and answers that one process passes to another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from pytest_fairness.asking.store.database import Database, in_transaction, upsert
from pytest_fairness.records import Json, json_text, json_value

T = TypeVar("T")

LAST_RUN = "last run"
"""Key of the report document of the last run; see `run.last_run`."""
ANSWER_SET_KEPT = 86_400.0
"""Seconds after which answers that `put_answers` stored are removed."""

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class ResultCache:
    """Tables of computed results in the store."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def get(self, key: str, read: Callable[[Json], T]) -> T | None:
        """Return the result stored under this key, converted by the function `read`; `None` if there is no result."""
        rows = self.database.execute("SELECT measurement FROM measurements WHERE key = ?", (key,))
        with self.database.decoding_errors():
            return read(json_value(rows[0][0])) if rows else None

    def get_all(self, prefix: str) -> dict[str, Json]:
        """Return all results whose keys are this prefix and further hexadecimal digits, by key."""
        query = "SELECT key, measurement FROM measurements WHERE key > ? AND key < ?"
        rows = self.database.execute(query, (prefix, f"{prefix}g"))  # `g` follows all hexadecimal digits
        with self.database.decoding_errors():
            return {key: json_value(result) for key, result in rows}

    def put(self, key: str, result: Json) -> None:
        """Store a result under a key; see `put_all`."""
        self.put_all({key: result})

    @in_transaction
    def put_all(self, results: Mapping[str, Json]) -> None:
        """Store results under their keys; the caller derives the key from all inputs of the result.

        The order of the results' JSON members is kept.
        """
        now = self.database.now()
        rows = [(key, json_text(result), now) for key, result in results.items()]
        self.database.execute_many(upsert("measurements", "key", "measurement", "created"), rows)

    def put_answers(self, answers: Iterable[Json]) -> str:
        """Store answers for one day; return the digest with which another process can get these answers."""
        text = "\n".join(map(_encode, answers))
        digest = hashlib.sha256(text.encode()).hexdigest()
        self._put_answers(digest, text)
        return digest

    def get_answers(self, digest: str) -> Iterator[Json]:
        """Yield the answers that `put_answers` stored under this digest; nothing if the digest is unknown."""
        for (text,) in self.database.execute("SELECT answers FROM answer_sets WHERE digest = ?", (digest,)):
            with self.database.decoding_errors():
                answers = [json.loads(line) for line in text.splitlines()]
            yield from answers

    @in_transaction
    def _put_answers(self, digest: str, text: str) -> None:
        now = self.database.now()
        self.database.execute("DELETE FROM answer_sets WHERE created < ?", (now - ANSWER_SET_KEPT,))
        self.database.execute(upsert("answer_sets", "digest", "answers", "created"), (digest, text, now))
