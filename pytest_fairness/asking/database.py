"""Connections to a SQLite file: one a thread, with errors that say what to do."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pytest_fairness.errors import StoreError
from pytest_fairness.targets.one_line import one_line

APPLICATION = 0x66616972
"""Marks a SQLite file as one of ours; spells "fair"."""
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
"""Permissions of the folder and the files of a store: prompts and answers are nobody else's."""
PATIENCE = 60.0
"""Seconds to wait for another process to finish writing."""


class Database:
    """A SQLite file in write-ahead mode, so that readers never wait.

    A process killed at any point loses nothing that was committed. (A machine that loses power may lose the last
    moments, but the file stays whole.)

    Args:
        path: the file, made if need be.
        version: of the tables.
        tables: the statements that make them.
        changes: by version, the statements that bring the tables of the version before up to it.

    Raises:
        StoreError: here and in every method.
    """

    def __init__(self, path: Path, *, version: int, tables: str, changes: Mapping[int, str]) -> None:
        self._path = path
        self._version = version
        self._thread = threading.local()
        self._lock = threading.Lock()
        self._connections: list[sqlite3.Connection] = []
        with self._understandable():
            _make_folder(path.parent)
            _keep_private(path)
            try:
                self._prepare(tables, changes)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close all connections; whatever is still running in another thread fails."""
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()
        self._thread = threading.local()

    def read(self, query: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query."""
        with self._understandable():
            return self._connection().execute(query, parameters).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One writing transaction; inside another one, a part of that."""
        with self._understandable():
            connection = self._connection()
            outermost = not connection.in_transaction
            if outermost:
                connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                if outermost:
                    connection.execute("COMMIT")
            except BaseException:
                # A full disk may have ended the transaction already.
                if outermost and connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Raise `StoreError` where what is recorded turns out inside not to be what this package writes."""
        try:
            yield
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            reason = one_line(f"{type(error).__name__}: {error}", 100)
            raise StoreError(
                f"{self._path}: a row cannot be read ({reason}). The file is damaged, or something else wrote to it. "
                "Move it away, or name another file with the ini fairness_store; what it held is asked again."
            ) from error

    def changed(self) -> bool:
        """Whether another connection wrote anything since this thread asked last; the first time it is so."""
        with self._understandable():
            version = self._connection().execute("PRAGMA data_version").fetchone()[0]
        known = getattr(self._thread, "data_version", None)
        self._thread.data_version = version
        return bool(version != known)

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._thread, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self._path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            with self._lock:
                self._connections.append(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            self._thread.connection = connection
        return connection

    def _prepare(self, tables: str, changes: Mapping[int, str]) -> None:
        connection = self._connection()
        _write_ahead(connection)
        with self.transaction():
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            holds = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if holds and application != APPLICATION:
                raise StoreError(
                    f"{self._path} is a database of something else. Name another file with the ini fairness_store."
                )
            if found > self._version:
                raise StoreError(
                    f"{self._path} was written by a newer pytest-fairness (store version {found}, this one reads "
                    f"{self._version}). Update pytest-fairness, or name another file with the ini fairness_store."
                )
            if found == self._version:
                return
            if holds and found <= 0:
                raise StoreError(
                    f"{self._path} has the store version {found}, which no pytest-fairness writes: the file is "
                    "damaged. Move it away, or name another file with the ini fairness_store; what it held is asked "
                    "again."
                )
            missing = [changes[version] for version in range(found + 1, self._version + 1)] if holds else [tables]
            for statement in ";".join(missing).split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {self._version}")

    @contextmanager
    def _understandable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self._path}: {_explained(error)}") from error
        except OSError as error:
            raise StoreError(
                f"{self._path}: the folder cannot be made ({error.strerror}). Make it writable, or name another file "
                f"with the ini fairness_store."
            ) from error


def _make_folder(folder: Path) -> None:
    """Make the folder of the store, which is for its owner only; a folder of another name is left as it was found."""
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
    """Make the file before SQLite does, for its owner only; SQLite gives the files beside it the same permissions."""
    with suppress(OSError):  # SQLite says what is wrong
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
    for suffix in ("", "-wal", "-shm"):
        _tighten(path.with_name(path.name + suffix), PRIVATE_FILE)


def _tighten(path: Path, mode: int) -> None:
    """Take from others what they may do with the path, where its owner is who runs this."""
    with suppress(OSError):
        if (found := path.stat().st_mode) & ~mode & 0o777:
            path.chmod(found & mode)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn write-ahead mode on. Of several processes that do so in a new file at once, all but one are sent away."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def _explained(error: sqlite3.Error) -> str:
    text = str(error)
    elsewhere = "or name another file with the ini fairness_store"
    if "not a database" in text:
        return f"this is no store of responses. Move the file away, {elsewhere}."
    if "malformed" in text:
        return f"the file is damaged. Move it away, {elsewhere}; what it held is asked again."
    if "full" in text:
        return "the disk is full. Make room and run again: what was recorded before is kept."
    if "readonly" in text or "unable to open" in text:
        return f"the file cannot be opened or written ({text}). Make it and its folder writable, {elsewhere}."
    if "locked" in text:
        return f"another process has been writing for over {PATIENCE:g} seconds. End it, {elsewhere}."
    return f"{text}. Move the file away, {elsewhere}."
