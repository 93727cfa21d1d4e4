"""Database of a store: interface, SQL schema, names of processes, and the SQLite file."""

from __future__ import annotations

import os
import platform
import sqlite3
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from pytest_fairness.errors import StoreError, one_line
from pytest_fairness.resources import Closing

# Interface of a store's database; `asking/database.py` and `asking/postgres.py` implement it.
#
# Every statement of a store is written once, in SQL that both databases understand, with `?` as placeholder. A list
# of keys is one parameter: `key IN (SELECT value FROM json_each(?))`, with the keys as JSON.

T = TypeVar("T")
Parameters = ParamSpec("Parameters")


class Database(Closing):
    """Database of a store, with a connection for each thread; several processes can use it at once.

    Raises:
        StoreError: raised by every method if the database cannot be used.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._thread = threading.local()
        self._lock = threading.Lock()
        self._connections: list[Any] = []

    def close(self) -> None:
        """Close all connections; statements that still run in another thread fail."""
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()
        self._thread = threading.local()

    @abstractmethod
    def execute(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a statement."""

    @abstractmethod
    def execute_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement once for each row of parameters."""

    @abstractmethod
    def write(self, function: Callable[[], T]) -> T:
        """Call a function in a write transaction, and return its result.

        A call within a transaction starts no new transaction. Only one process writes at a time, so the function must
        be short. A database on a server calls the function again if the connection is lost before the transaction is
        committed.
        """

    @abstractmethod
    def has_changed(self) -> bool:
        """Return whether another connection wrote anything since this thread's last call; true at the first call."""

    @abstractmethod
    def now(self) -> float:
        """Return the current time in seconds since the epoch, by the clock that all processes of the store share."""

    def _require_known(self, version: int, kind: str) -> None:
        """Raise `StoreError` for tables of a newer version."""
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self.name} was written by a newer pytest-fairness (store version {version}, this one reads "
                f"{SCHEMA_VERSION}). Update pytest-fairness, or name another {kind} with the ini fairness_store."
            )

    @contextmanager
    def decoding_errors(self) -> Iterator[None]:
        """Convert errors in the `with` block, which decodes rows, to `StoreError`.

        A row that cannot be decoded means that the store is damaged, or that another program wrote the row.
        """
        try:
            yield
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            reason = one_line(f"{type(error).__name__}: {error}", 100)
            raise StoreError(
                f"{self.name}: a row cannot be read ({reason}). The store is damaged, or another program wrote to it. "
                "Move the store away, or name another store with the ini fairness_store; the old store's answers are "
                "requested again."
            ) from error


class HasDatabase(Protocol):
    database: Database


Self_ = TypeVar("Self_", bound=HasDatabase)


def in_transaction(method: Callable[Concatenate[Self_, Parameters], T]) -> Callable[Concatenate[Self_, Parameters], T]:
    """Decorate a method so that each call runs in one write transaction; see `Database.write`."""

    @wraps(method)
    def wrapped(self: Self_, *args: Parameters.args, **kwargs: Parameters.kwargs) -> T:
        return self.database.write(lambda: method(self, *args, **kwargs))

    return cast("Callable[Concatenate[Self_, Parameters], T]", wrapped)


def upsert(table: str, key: str, *others: str) -> str:
    """Return the statement that inserts a row, or replaces the row with the same key.

    `key` holds the names of the key's columns, separated by commas. A row has the key's values first.
    """
    places = ", ".join("?" * (len(key.split(",")) + len(others)))
    changes = ", ".join(f"{name} = excluded.{name}" for name in others)
    return (
        f"INSERT INTO {table} ({', '.join([key, *others])}) VALUES ({places}) "  # noqa: S608 - constants of the callers
        f"ON CONFLICT ({key}) DO UPDATE SET {changes}"
    )


def storable(text: str) -> str:
    """Return the text with `?` in place of characters that a database cannot store: lone surrogates and NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


# Store in a SQLite file: one connection for each thread, and errors that say what to do.

APPLICATION = 0x66616972
"""SQLite's application id of our files; spells "fair"."""
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
"""Permissions of the folder and the files of a store: only the owner may read prompts and answers."""
BUSY_TIMEOUT = 60.0
"""Maximum seconds to wait while another process writes."""
_LOCKED: set[Path] = set()
"""Files that were locked for `BUSY_TIMEOUT`: this process waits for them again after its next write."""
SYNCHRONOUS = "NORMAL"
"""SQLite's setting of when to wait for the disk: before and after changes move from the log to the file."""


class SqliteDatabase(Database):
    """SQLite file in write-ahead mode, so that readers never wait; a new folder gets a `.gitignore`.

    A process that is killed loses nothing that was committed. A machine that loses power may lose the last
    transactions, but the file stays intact.

    Raises:
        StoreError: raised here and by every method if the file cannot be read or written, is not a store, or was
            written by a newer version; the message says what to do.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        if path.is_dir():
            raise StoreError(f"{path} is a folder. Name a file in this folder, such as {path / 'responses.sqlite'}.")
        self._path = path
        with self._explained_errors():
            _make_folder(path.parent)
            _keep_private(path)
            try:
                _write_ahead(self._connection(), path)
                self.write(self._create_or_upgrade_tables)
            except BaseException:
                self.close()
                raise

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self._explained_errors():
            return self._connection().execute(query, parameters).fetchall()

    def execute_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._explained_errors():
            self._connection().executemany(query, rows)

    def write(self, function: Callable[[], T]) -> T:
        with self._explained_errors():
            connection = self._connection()
            if connection.in_transaction:
                return function()
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = function()
                connection.execute("COMMIT")
            except BaseException:
                # SQLite ends a transaction by itself when the disk is full.
                with suppress(sqlite3.OperationalError):  # no transaction is active
                    connection.execute("ROLLBACK")
                raise
            _LOCKED.discard(self._path)
            return result

    def has_changed(self) -> bool:
        with self._explained_errors():
            version = self._connection().execute("PRAGMA data_version").fetchone()[0]
        known = getattr(self._thread, "data_version", None)
        self._thread.data_version = version
        return bool(version != known)

    def now(self) -> float:
        return time.time()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._thread, "connection", None)
        if connection is None:
            connection = sqlite3.connect(
                self._path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
            )
            with self._lock:
                self._connections.append(connection)
            connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            self._thread.connection, self._thread.patience = connection, BUSY_TIMEOUT
        patience = 0.0 if self._path in _LOCKED else BUSY_TIMEOUT
        if self._thread.patience != patience:
            connection.execute(f"PRAGMA busy_timeout = {patience * 1000:.0f}")
            self._thread.patience = patience
        return connection

    def _create_or_upgrade_tables(self) -> None:
        connection = self._connection()
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        holds = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if holds and application != APPLICATION:
            raise StoreError(
                f"{self._path} is the database of another program. Name another file with the ini fairness_store."
            )
        self._require_known(found, "file")
        if found == SCHEMA_VERSION:
            return
        if holds and found <= 0:
            raise StoreError(
                f"{self._path} has the store version {found}, which no version of pytest-fairness writes: the file "
                "is damaged. Move it away, or name another file with the ini fairness_store; the answers in the "
                "damaged file are requested again."
            )
        for statement in upgrade_statements(found).split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextmanager
    def _explained_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if "locked" in str(error):
                _LOCKED.add(self._path)
            raise StoreError(f"{self._path}: {_reason_and_remedy(error)}") from error
        except OSError as error:
            raise StoreError(
                f"{self._path}: the folder cannot be created or written ({error.strerror}). Make the folder, and the "
                "one above it, writable, or name another file with the ini fairness_store."
            ) from error


def _make_folder(folder: Path) -> None:
    """Create the store's folder for its owner only; an existing folder of the user keeps its permissions."""
    new = not folder.is_dir()
    if new:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    if folder.name == ".fairness":
        _tighten(folder, PRIVATE_FOLDER)
        new = new or not (folder / ".gitignore").exists()
    if new:
        (folder / ".gitignore").write_text("*\n", "utf-8")


def _keep_private(path: Path) -> None:
    """Create the file for its owner only; SQLite gives its auxiliary files the same permissions."""
    with suppress(OSError):  # SQLite reports the reason
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
    for suffix in ("", "-wal", "-shm"):
        _tighten(path.with_name(path.name + suffix), PRIVATE_FILE)


def _tighten(path: Path, mode: int) -> None:
    with suppress(OSError):
        if (found := path.stat().st_mode) & ~mode & 0o777:
            path.chmod(found & mode)


def _write_ahead(connection: sqlite3.Connection, path: Path) -> None:
    """Switch write-ahead mode on; wait for another process that does so too, because SQLite does not."""
    deadline = time.monotonic() + (0 if path in _LOCKED else BUSY_TIMEOUT)
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _reason_and_remedy(error: sqlite3.Error) -> str:
    text = str(error)
    elsewhere = "or name another file with the ini fairness_store"
    if "not a database" in text:
        return f"the file is not a store of responses. Move it away, {elsewhere}."
    if "malformed" in text:
        return f"the file is damaged. Move it away, {elsewhere}; the answers in the damaged file are requested again."
    if "full" in text:
        return "the disk is full. Free some space and run again: the answers recorded so far are kept."
    if "readonly" in text or "unable to open" in text:
        return f"the file cannot be opened or written ({text}). Make it and its folder writable, {elsewhere}."
    if "locked" in text:
        return f"another process has been writing for over {BUSY_TIMEOUT:g} seconds. End the process, {elsewhere}."
    return f"{text}. Move the file away, {elsewhere}."


# SQL tables of the store, and the statements that upgrade the tables of older versions.
#
# The statements are written for SQLite; `asking/postgres.py` replaces the names of two types.

SCHEMA_VERSION = 6
"""Version of the tables below; a store with a higher version is not opened."""

_RESPONSES = """
CREATE TABLE responses (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,  -- in the order of recording, over all processes
    key TEXT NOT NULL,
    run TEXT NOT NULL,        -- the run that sent the request
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
_COORDINATION = """
CREATE TABLE claims (
    key TEXT NOT NULL,
    scope TEXT NOT NULL,      -- see Freshness
    owner TEXT NOT NULL,
    process TEXT NOT NULL,
    target TEXT NOT NULL,
    expires REAL NOT NULL,
    in_flight INTEGER NOT NULL,  -- 0 while the request waits for its next attempt, else 1
    PRIMARY KEY (key, scope)
);
CREATE TABLE runs (           -- a run with a name may have processes on several machines
    run TEXT NOT NULL,
    process TEXT NOT NULL,    -- the process that the user started
    sent INTEGER NOT NULL,    -- attempts, of this process and its workers
    stopped INTEGER NOT NULL,
    shared INTEGER NOT NULL,  -- 1 if other machines may join the run
    created REAL NOT NULL,
    PRIMARY KEY (run, process)
);
CREATE TABLE target_errors (  -- targets that can answer no request of a run
    run TEXT NOT NULL,
    target TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (run, target)
);
CREATE TABLE request_counts (
    run TEXT NOT NULL,
    process TEXT NOT NULL,    -- as in runs
    owner TEXT NOT NULL,
    counts TEXT NOT NULL,     -- JSON
    PRIMARY KEY (run, process, owner)
);
CREATE TABLE rate_limits (
    target TEXT PRIMARY KEY,
    allowed REAL NOT NULL,
    overloads INTEGER NOT NULL,  -- since the last answer
    resume_at REAL NOT NULL,
    reduced_at REAL NOT NULL,
    touched REAL NOT NULL
);
CREATE TABLE preflights (     -- first requests of a run to its targets
    run TEXT NOT NULL,
    target TEXT NOT NULL,
    key TEXT,                 -- of the request that is sent alone, NULL once all may be sent
    PRIMARY KEY (run, target)
);
"""
_BATCHES = """
CREATE TABLE IF NOT EXISTS batches (  -- batches of a provider
    token TEXT PRIMARY KEY,   -- in the metadata of the provider's batch
    target TEXT NOT NULL,
    state TEXT NOT NULL,      -- see BatchState
    file TEXT NOT NULL,       -- the provider's id of the uploaded requests, or empty
    remote TEXT NOT NULL,     -- the provider's id of the batch, or empty
    process TEXT NOT NULL,    -- the process that works on the batch until `expires`
    expires REAL NOT NULL,
    created REAL NOT NULL,
    touched REAL NOT NULL     -- last change of the state
);
CREATE TABLE IF NOT EXISTS batch_requests (  -- requests that no process may send, because a batch will answer them
    key TEXT PRIMARY KEY,
    token TEXT NOT NULL,
    request TEXT NOT NULL     -- JSON
);
CREATE INDEX IF NOT EXISTS batch_requests_by_token ON batch_requests (token);
"""
_HISTORY = """
CREATE TABLE IF NOT EXISTS history (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL         -- JSON
);
"""
_DROP_OLD_COORDINATION = "".join(
    f"DROP TABLE IF EXISTS {name};" for name in ("claims", "runs", "refusals", "tallies", "paces", "preflights")
)

_TABLES = f"""
{_RESPONSES}
CREATE TABLE measurements (key TEXT PRIMARY KEY, measurement TEXT NOT NULL, created REAL NOT NULL);
CREATE TABLE answer_sets (digest TEXT PRIMARY KEY, answers TEXT NOT NULL, created REAL NOT NULL);
{_COORDINATION}
{_BATCHES}
{_HISTORY}
"""
_MIGRATIONS = {
    2: "",  # the next version makes these tables
    3: f"""
DROP TABLE failures;
ALTER TABLE responses RENAME TO old_responses;
{_RESPONSES}
INSERT INTO responses SELECT sequence, key, '', target, request, response, created FROM old_responses;
DROP TABLE old_responses;
""",  # noqa: S608 - constants of this module
    4: "",
    5: f"""
{_BATCHES} {_HISTORY}
ALTER TABLE measurements ADD COLUMN created REAL NOT NULL DEFAULT 0;
""",
    6: f"{_DROP_OLD_COORDINATION} {_COORDINATION}",
}
"""Statements that upgrade the tables from the previous version, by the new version."""


def upgrade_statements(version: int) -> str:
    """Return the statements that upgrade the tables of a version to `SCHEMA_VERSION`; version 0 means no tables yet."""
    if version == 0:
        return _TABLES
    return "".join(_MIGRATIONS[older + 1] for older in range(version, SCHEMA_VERSION))


# Names of processes, and whether a named process has ended.


def this_process() -> str:
    """Return the name of this process, `machine/process id`; see `is_gone`."""
    return f"{_machine()}/{os.getpid()}"


def is_gone(process: str) -> bool:
    """Return whether the process has certainly ended; not known on another machine, and on Windows."""
    if process == this_process():
        return False
    machine, _, number = process.rpartition("/")
    if machine != _machine() or os.name == "nt":  # on Windows, `os.kill` with signal 0 ends the process
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return _is_zombie(int(number))


def _is_zombie(number: int) -> bool:
    """Return whether the process has ended, but its exit status was not collected; known on Linux only."""
    try:
        return Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False


@cache
def _machine() -> str:
    """Return the host name and, on Linux, the boot id and the namespace of process ids."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        space = boot = ""
    return f"{platform.node()}/{boot}/{space}"
