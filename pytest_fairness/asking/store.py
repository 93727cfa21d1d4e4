"""What came back, kept: every answer from the moment it arrives, and who is asking for what right now.

One SQLite file, and the only meeting point of processes. All SQL is in this module and in `claims.py`; connections are
in `database.py`.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pytest_fairness.asking import claims
from pytest_fairness.asking.claims import DAY, Claim, Claims, RunId
from pytest_fairness.asking.database import Database
from pytest_fairness.asking.freshness import CONDITION, EVERY, Freshness
from pytest_fairness.closing import Closing
from pytest_fairness.records import Json, Request, Response, Sampling

T = TypeVar("T")

__all__ = ["Claim", "News", "Recorded", "RunId", "Store", "response_key"]

VERSION = 3
"""Of the tables below; a store of a higher version is not touched."""

ANSWERS = """
CREATE TABLE responses (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,  -- in the order of recording, over all processes
    key TEXT NOT NULL,
    run TEXT NOT NULL,        -- the run that asked
    target TEXT NOT NULL,
    request TEXT NOT NULL,    -- JSON
    response TEXT NOT NULL,   -- JSON
    created REAL NOT NULL,    -- seconds since the epoch
    UNIQUE (key, run)
);
CREATE TABLE failures (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    target TEXT NOT NULL,
    key TEXT NOT NULL,
    scope TEXT NOT NULL,      -- see Freshness
    message TEXT NOT NULL,
    created REAL NOT NULL
);
"""
TABLES = f"""
{ANSWERS}
CREATE TABLE measurements (key TEXT PRIMARY KEY, measurement TEXT NOT NULL);
CREATE TABLE answer_sets (digest TEXT PRIMARY KEY, answers TEXT NOT NULL, created REAL NOT NULL);
"""
CHANGES = {
    2: f"DROP TABLE claims; {claims.TABLES}",
    3: f"""
{claims.DROP_TABLES} {claims.TABLES}
DROP TABLE failures;
ALTER TABLE responses RENAME TO old_responses;
{ANSWERS}
INSERT INTO responses SELECT sequence, key, '', target, request, response, created FROM old_responses;
DROP TABLE old_responses;
""",  # noqa: S608
}
"""What brings an older store up to each version."""

_ANSWERS = f"""
SELECT key, response, created FROM responses WHERE {CONDITION} AND key IN (SELECT value FROM json_each(?))
ORDER BY run = ?, sequence
"""  # noqa: S608

# Escapes everything beyond ASCII, so that NUL and lone surrogates, which SQLite's text cannot hold, survive.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def response_key(target_identity: str, request: Request) -> str:
    """Under what the answer is recorded: a digest of all that can change it, and of nothing else. 64 hex digits."""
    parts: list[Json] = [target_identity, request.system, request.prompt, request.sampling.to_json(), request.trial]
    if request.answer_format != "text":
        parts.append(request.answer_format)
    if request.continuation is not None:
        parts.append(request.continuation)
    return hashlib.sha256(_encode(parts).encode()).hexdigest()


class News(NamedTuple):
    """What was written to the store since one looked last, by whomever.

    Attributes:
        until: from where to look next time.
        answered: keys that were recorded.
        failed: key to message, of requests that got no answer.
    """

    until: tuple[int, int]
    answered: list[str]
    failed: dict[str, str]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded answer with its question, as it is exported."""

    key: str
    target: str
    request: Request
    response: Response


class Store(Claims, Closing):
    """The recorded responses of a project; usable from several threads, and by several processes at once.

    Args:
        path: the file, made if need be. Its folder, if new, keeps itself out of version control.

    Raises:
        StoreError: here and in every method: the file cannot be read or written, is none of ours, or is from a newer
            version; the message says what to do.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(Database(path, version=VERSION, tables=TABLES + claims.TABLES, changes=CHANGES))

    @property
    def database(self) -> Database:
        """The file itself, for what is kept in it besides answers."""
        return self._database

    def close(self) -> None:
        """Close the file in all threads."""
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside is written at once, or not at all. Others wait meanwhile, so keep it short."""
        with self._database.transaction():
            yield

    # Answers

    def get(self, keys: Iterable[str], fresh: Freshness) -> dict[str, Response]:
        """The answers to those of the keys that have one which the run accepts: its own, or else the newest."""
        rows = self._database.read(_ANSWERS, (*fresh.parameters, _encode(list(keys)), fresh.run))
        with self._database.readable():
            return {key: _response(response, created) for key, response, created in rows}

    def oldest_of(self, keys: Iterable[str]) -> float | None:
        """Return when the oldest answer to these keys came, in seconds since the epoch; `None` where there is none.

        Of several answers to one key the newest counts, as that is the one that is reused.
        """
        query = (
            "SELECT min(newest) FROM (SELECT max(created) AS newest FROM responses "
            "WHERE key IN (SELECT value FROM json_each(?)) GROUP BY key)"
        )
        oldest: float | None = self._database.read(query, (_encode(list(keys)),))[0][0]
        return oldest

    def record(
        self, key: str, request: Request, target_identity: str, response: Response, fresh: Freshness = EVERY
    ) -> None:
        """Write an answer, in place of those of runs that are over, and give up the claim to its question.

        Args:
            key, request, target_identity, response: what is written.
            fresh: of the run that asked.
        """
        row = (
            key,
            fresh.run,
            target_identity,
            _encode(_plain_request(request)),
            _encode(_plain_response(response)),
            response.created,
        )
        columns = "key, run, target, request, response, created"
        with self._database.transaction() as connection:
            connection.execute(
                "DELETE FROM responses WHERE key = ? AND run NOT IN (SELECT run FROM runs WHERE NOT stopped)", (key,)
            )
            connection.execute(f"INSERT OR REPLACE INTO responses ({columns}) VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608
            connection.execute("DELETE FROM claims WHERE key = ? AND scope = ?", (key, fresh.scope))

    def everything(self) -> Iterator[Recorded]:
        """All recorded answers with their questions, in the order of recording."""
        query = "SELECT key, target, request, response, created FROM responses ORDER BY sequence"
        for key, target, request, response, created in self._database.read(query):
            with self._database.readable():
                recorded = Recorded(key, target, _request(request), _response(response, created))
            yield recorded

    # What others do

    def changed(self) -> bool:
        """Whether anybody else wrote anything since this thread asked last; costs next to nothing."""
        return self._database.changed()

    def now(self) -> tuple[int, int]:
        """From where `news` has to look to see what is written from now on."""
        query = "SELECT (SELECT max(sequence) FROM responses), (SELECT max(sequence) FROM failures)"
        answers, failures = self._database.read(query)[0]
        return answers or 0, failures or 0

    def news(self, since: tuple[int, int], target_identity: str, fresh: Freshness) -> News:
        """Return what was written since then, as far as it concerns a run."""
        answers = self._database.read(
            f"SELECT sequence, key FROM responses WHERE {CONDITION} AND sequence > ? ORDER BY 1",  # noqa: S608
            (*fresh.parameters, since[0]),
        )
        failures = self._database.read(
            "SELECT sequence, key, message FROM failures WHERE sequence > ? AND target = ? AND scope = ? ORDER BY 1",
            (since[1], target_identity, fresh.scope),
        )
        return News(
            (answers[-1][0] if answers else since[0], failures[-1][0] if failures else since[1]),
            [key for _, key in answers],
            {key: message for _, key, message in failures},
        )

    def fail(self, key: str, target_identity: str, message: str, fresh: Freshness = EVERY) -> None:
        """Tell the other processes of the run that a request got no answer, so that they do not try it as well.

        Args:
            key: the request's, whose claim is given up.
            target_identity: who did not answer.
            message: why.
            fresh: of the run that asked.
        """
        now = time.time()
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM claims WHERE key = ? AND scope = ?", (key, fresh.scope))
            connection.execute("DELETE FROM failures WHERE created < ?", (now - DAY,))
            connection.execute(
                "INSERT INTO failures (target, key, scope, message, created) VALUES (?, ?, ?, ?, ?)",
                (target_identity, key, fresh.scope, message.encode("utf-8", "replace").decode(), now),
            )

    # Measurements and sets of answers

    def get_measurement(self, key: str, read: Callable[[Json], T]) -> T | None:
        """Return the measurement kept under this key, converted by `read`, or `None`."""
        rows = self._database.read("SELECT measurement FROM measurements WHERE key = ?", (key,))
        with self._database.readable():
            return read(json.loads(rows[0][0])) if rows else None

    def put_measurement(self, key: str, measurement: Json) -> None:
        """Keep a measurement under a key of everything that it was made from; it comes back in the order it has now."""
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO measurements VALUES (?, ?)", (key, json.dumps(measurement)))

    def put_answer_set(self, answers: Iterable[Json]) -> str:
        """Hand answers over to another process: it gets them by the digest that this returns. Kept for a day."""
        text = "\n".join(map(_encode, answers))
        digest = hashlib.sha256(text.encode()).hexdigest()
        now = time.time()
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM answer_sets WHERE created < ?", (now - DAY,))
            connection.execute("INSERT OR REPLACE INTO answer_sets VALUES (?, ?, ?)", (digest, text, now))
        return digest

    def get_answer_set(self, digest: str) -> Iterator[Json]:
        """The answers that `put_answer_set` kept, one after the other; none where it kept none."""
        for (text,) in self._database.read("SELECT answers FROM answer_sets WHERE digest = ?", (digest,)):
            with self._database.readable():
                answers = [json.loads(line) for line in text.splitlines()]
            yield from answers


def _plain_request(request: Request) -> dict[str, Json]:
    more = {} if request.continuation is None else {"continuation": request.continuation}
    return {
        "prompt": request.prompt,
        "system": request.system,
        "sampling": request.sampling.to_json(),
        "trial": request.trial,
        "answer_format": request.answer_format,
        **more,
    }


def _request(text: str) -> Request:
    data: dict[str, Any] = json.loads(text)
    request = Request(**{**data, "sampling": Sampling(**data["sampling"])})
    _require(request.prompt, str)
    _require(request.system, str, type(None))
    _require(request.trial, int)
    return request


def _plain_response(response: Response) -> dict[str, Json]:
    served = {"model": response.model, "fingerprint": response.fingerprint}
    return {
        "text": response.text,
        "finish_reason": response.finish_reason,
        "prompt_tokens": response.prompt_tokens,
        "completion_tokens": response.completion_tokens,
        **{name: value for name, value in served.items() if value is not None},
    }


def _response(text: str, created: float) -> Response:
    response = Response(**json.loads(text), created=created)
    _require(response.text, str)
    _require(response.finish_reason, str, type(None))
    _require(response.prompt_tokens, int, type(None))
    _require(response.completion_tokens, int, type(None))
    _require(created, int, float)
    return response


def _require(value: object, *types: type) -> None:
    if type(value) not in types:
        raise TypeError(f"{type(value).__name__} where {types[0].__name__} is recorded")
