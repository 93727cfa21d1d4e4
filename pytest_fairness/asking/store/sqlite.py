"""Store in a SQLite file: one connection for each thread, and errors that say what to do."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pytest_fairness.asking.store import schema
from pytest_fairness.asking.store.database import Database
from pytest_fairness.errors import StoreError

T = TypeVar("T")

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
    """SQLite file in write-ahead mode, so that readers never wait.

    A process that is killed loses nothing that was committed. A machine that loses power may lose the last
    transactions, but the file stays intact.

    Args:
        path: the file, created if it does not exist. A new folder gets a `.gitignore`.

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
        """Execute a statement, and return its rows."""
        with self._explained_errors():
            return self._connection().execute(query, parameters).fetchall()

    def execute_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement once for each row of parameters."""
        with self._explained_errors():
            self._connection().executemany(query, rows)

    def write(self, function: Callable[[], T]) -> T:
        """Call a function in a write transaction; see `Database.write`."""
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
        """Return whether another connection wrote anything since this thread's last call; true at the first call."""
        with self._explained_errors():
            version = self._connection().execute("PRAGMA data_version").fetchone()[0]
        known = getattr(self._thread, "data_version", None)
        self._thread.data_version = version
        return bool(version != known)

    def now(self) -> float:
        """Return this machine's time; all processes that use a SQLite file run on the same machine."""
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
        if found > schema.VERSION:
            raise StoreError(
                f"{self._path} was written by a newer pytest-fairness (store version {found}, this one reads "
                f"{schema.VERSION}). Update pytest-fairness, or name another file with the ini fairness_store."
            )
        if found == schema.VERSION:
            return
        if holds and found <= 0:
            raise StoreError(
                f"{self._path} has the store version {found}, which no version of pytest-fairness writes: the file "
                "is damaged. Move it away, or name another file with the ini fairness_store; the answers in the "
                "damaged file are requested again."
            )
        for statement in schema.upgrade(found).split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {schema.VERSION}")

    @contextmanager
    def _explained_errors(self) -> Iterator[None]:
        """Convert errors of SQLite and of the file system into `StoreError`."""
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
    """Create the store's folder so that only its owner can read it.

    An existing folder that the user has named keeps its permissions.
    """
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
    """Create the file so that only its owner can read it; SQLite gives its auxiliary files the same permissions."""
    with suppress(OSError):  # SQLite reports the reason
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
    for suffix in ("", "-wal", "-shm"):
        _tighten(path.with_name(path.name + suffix), PRIVATE_FILE)


def _tighten(path: Path, mode: int) -> None:
    """Remove permissions beyond `mode` from a path that this user owns."""
    with suppress(OSError):
        if (found := path.stat().st_mode) & ~mode & 0o777:
            path.chmod(found & mode)


def _write_ahead(connection: sqlite3.Connection, path: Path) -> None:
    """Switch write-ahead mode on.

    Retry while another process also switches write-ahead mode on, because SQLite does not wait for that process.
    """
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
    """Return what happened and what to do, as the end of a message."""
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
